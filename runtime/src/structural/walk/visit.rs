//! Visits: the descent into values, with a stack of its own.
//! Rules: upstream's `StructuralVisitorObj::DefaultVisitExpected`, `VisitReflectedFieldsExpected`.

use std::sync::LazyLock;

use super::super::region;
use super::children::{Child, Children};
use super::context::with_objects;
use super::outcome::{Outcome, Stop, visit_result};
use super::policy::Next;
use super::visitor::Visitor;
use crate::abi::*;
use crate::any::Any;
use crate::error::type_error;
use crate::function::Function;
use crate::reflect::children::{MAX_DEPTH, object_of, too_deep};
use crate::type_table::AttrColumn;

static HOOKS: LazyLock<AttrColumn> = LazyLock::new(|| AttrColumn::named(b"__s_visit__"));

/// A value that is being visited.
struct Frame {
    node: Any,
    children: Children,
    /// True if only the values inside are visited: no callbacks for this one, and it isn't in an error's context.
    is_bare: bool,
    /// The region to restore after the current child.
    after_child: Option<i32>,
    /// The region to restore after all children.
    after_all: Option<i32>,
}

/// A value whose visit is over, or has begun.
enum Entered {
    Done,
    Open(Frame),
}

impl Visitor {
    /// Visits a value.
    pub(super) fn visit(&self, value: Any) -> Outcome {
        match self.child(value)? {
            Entered::Done => Ok(()),
            Entered::Open(frame) => self.run(frame),
        }
    }

    /// Visits the values inside a value, without callbacks for the value itself.
    pub(super) fn default_visit(&self, value: Any) -> Outcome {
        match self.descend(value, true)? {
            Entered::Done => Ok(()),
            Entered::Open(frame) => self.run(frame),
        }
    }

    /// Begins the visit of a value. Another implementation's visitor ends it too.
    fn child(&self, value: Any) -> Outcome<Entered> {
        let Some(policy) = self.engine() else { return self.call_vtable(&value).map(|()| Entered::Done) };
        if value.is_none() || policy.before(self.object(), self.region(), &value)? == Next::Skip {
            return Ok(Entered::Done);
        }
        let entered = self.descend(value.clone(), false).map_err(|stop| stop.at(&value))?;
        if matches!(entered, Entered::Done) {
            policy.after(self.region(), &value)?;
        }
        Ok(entered)
    }

    /// Begins the descent into a value: calls its type's hook, or opens a frame.
    fn descend(&self, node: Any, is_bare: bool) -> Outcome<Entered> {
        let Some(object) = object_of(&node) else {
            return match node.type_index() {
                // A NULL object, which only C code makes.
                index if index.is_object() => Ok(Entered::Done),
                index => self.hook_or(index, &node, || Ok(Entered::Done)),
            };
        };
        let frame =
            |node, children, after_all| Entered::Open(Frame { node, children, is_bare, after_child: None, after_all });
        if let Some(children) = Children::of_container(&object) {
            return Ok(frame(node, children, None));
        }
        let index = object.type_index();
        self.hook_or(index, &node, || {
            let inside = region::inside(self.region(), region::equality_kind(index)?);
            let children = Children::of_fields(object)?;
            let after_all = (inside != self.region()).then(|| self.enter(inside));
            Ok(frame(node.clone(), children, after_all))
        })
    }

    /// Calls the hook of a type. Without one, the result is that of `otherwise`.
    fn hook_or(&self, index: TypeIndex, node: &Any, otherwise: impl FnOnce() -> Outcome<Entered>) -> Outcome<Entered> {
        let Some(hook) = HOOKS.value(index) else { return otherwise() };
        match hook.type_index() {
            // SAFETY: a pointer in this column is the address of a hook.
            TypeIndex::OPAQUE_PTR => unsafe { self.call_hook(hook.as_raw().ptr(), node)? },
            TypeIndex::FUNCTION => visit_result(hook.cast::<Function>()?.call((self.object(), node)))?,
            _ => return Err(type_error("__s_visit__ must be an opaque function pointer or ffi.Function").into()),
        }
        Ok(Entered::Done)
    }

    /// Visits everything inside a frame.
    fn run(&self, frame: Frame) -> Outcome {
        let mut stack = vec![frame];
        while let Some(frame) = stack.last_mut() {
            match self.step(frame) {
                Ok(Some(Entered::Open(child))) => {
                    stack.push(child);
                    if stack.len() > MAX_DEPTH {
                        return Err(self.unwind(stack, too_deep("StructuralVisit").into()));
                    }
                }
                Ok(Some(Entered::Done)) => {}
                Ok(None) => {
                    let outcome = match stack.pop() {
                        Some(frame) => self.close(&frame),
                        None => Ok(()),
                    };
                    if let Err(stop) = outcome {
                        return Err(self.unwind(stack, stop));
                    }
                }
                Err(stop) => return Err(self.unwind(stack, stop)),
            }
        }
        Ok(())
    }

    /// Begins the visit of a frame's next child; `None` after the last one.
    fn step(&self, frame: &mut Frame) -> Outcome<Option<Entered>> {
        self.restore(&mut frame.after_child);
        let Some(Child { value, region }) = frame.children.next()? else { return Ok(None) };
        frame.after_child = region.map(|kind| self.enter(kind));
        self.child(value).map(Some)
    }

    fn close(&self, frame: &Frame) -> Outcome {
        self.restore(&mut { frame.after_all });
        match self.engine() {
            Some(policy) if !frame.is_bare => policy.after(self.region(), &frame.node),
            _ => Ok(()),
        }
    }

    /// Leaves all frames, and adds their values to an error's context.
    fn unwind(&self, stack: Vec<Frame>, stop: Stop) -> Stop {
        let frames = stack.iter().rev();
        let nodes = self.leave(frames.map(|frame| ([frame.after_child, frame.after_all], &frame.node, frame.is_bare)));
        match stop {
            Stop::Failed(error) => Stop::Failed(with_objects(error, nodes)),
            interrupt => interrupt,
        }
    }
}
