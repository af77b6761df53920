//! Maps: the descent into values and their replacement, with a stack of its own.
//! Rules: upstream's `StructuralMutatorObj::DefaultMutateExpected`.

use std::sync::LazyLock;

use super::super::region;
use super::children::Child;
use super::context::{annotated, with_objects};
use super::mutator::{Mutator, references};
use super::outcome::{checked, is_unchanged, or_unchanged, unchanged};
use super::rebuild::Rebuild;
use super::rewrite::Plan;
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Error, Result, type_error};
use crate::function::Function;
use crate::reflect::children::{MAX_DEPTH, object_of, too_deep};
use crate::type_table::AttrColumn;

static HOOKS: LazyLock<AttrColumn> = LazyLock::new(|| AttrColumn::named(b"__s_mutate__"));
static IN_PLACE_HOOKS: LazyLock<AttrColumn> = LazyLock::new(|| AttrColumn::named(b"__s_maybe_inplace_mutate__"));

/// The permission to change a value in place: the number of references to it when it was given. A callback that keeps
/// the value has a further one, and then the value doesn't change.
type Permission = Option<u32>;

/// The work after the descent into a value.
enum After {
    Nothing,
    /// The callbacks of the value.
    Callbacks,
    /// The result is this replacement, which was descended into, unless the descent has another one.
    Replaced(Any),
}

/// A value that is being mapped.
struct Frame {
    node: Any,
    rebuild: Rebuild,
    /// True if the value isn't in an error's context.
    is_bare: bool,
    after: After,
    /// The bits of the current child.
    child: TVMFFIAny,
    /// The region to restore after the current child.
    after_child: Option<i32>,
    /// The region to restore after all children.
    after_all: Option<i32>,
    /// The kind of structural equality of an object with fields.
    equality: i32,
}

/// A value with its result, or one whose descent has begun.
enum Entered {
    Done(Any),
    Open(Frame),
}

/// The outcome of a descent's beginning.
enum Descent {
    Done(Any),
    Open { rebuild: Rebuild, after_all: Option<i32>, equality: i32 },
}

impl Mutator {
    /// Maps a value, in copies. The result may be the mark of an unchanged value.
    ///
    /// # Errors
    /// Any error of a callback, hook, getter or setter.
    pub(super) fn mutate(&self, value: &AnyView<'_>) -> Result<Any> {
        let first = self.child(value.to_owned()?, None)?;
        self.run(first)
    }

    /// Maps a value that may change in place.
    ///
    /// # Errors
    /// As [`Mutator::mutate`].
    pub(super) fn mutate_in_place(&self, value: &AnyView<'_>) -> Result<Any> {
        let value = value.to_owned()?;
        let permission = references(&value);
        let first = self.child(value, permission)?;
        self.run(first)
    }

    /// Maps a value that only the caller owns, or a copy of any other. The result is never the mark.
    ///
    /// # Errors
    /// As [`Mutator::mutate`].
    pub(super) fn mutate_root(&self, root: Any) -> Result<Any> {
        let is_owned = references(&root) == Some(1);
        let value = root.clone();
        let permission = references(&value).filter(|_| is_owned);
        let first = self.child(value, permission)?;
        Ok(or_unchanged(self.run(first)?, root))
    }

    /// Maps the values inside a value as its type does, without callbacks for the value itself.
    ///
    /// # Errors
    /// As [`Mutator::mutate`].
    pub(super) fn default_mutate(&self, value: &AnyView<'_>) -> Result<Any> {
        let first = self.descend(value.to_owned()?, None, false, After::Nothing)?;
        self.run(first)
    }

    /// As [`Mutator::default_mutate`], for a hook: the value itself isn't in an error's context.
    ///
    /// # Errors
    /// As [`Mutator::mutate`].
    pub(super) fn mutate_inside(&self, value: &AnyView<'_>) -> Result<Any> {
        let first = self.descend(value.to_owned()?, None, true, After::Nothing)?;
        self.run(first)
    }

    /// As [`Mutator::mutate_inside`], for a value that may change in place.
    ///
    /// # Errors
    /// As [`Mutator::mutate`].
    pub(super) fn mutate_inside_in_place(&self, value: &AnyView<'_>) -> Result<Any> {
        let value = value.to_owned()?;
        let permission = references(&value);
        let first = self.descend(value, permission, true, After::Nothing)?;
        self.run(first)
    }

    /// Begins the map of a value. Another implementation's mutator ends it too.
    fn child(&self, value: Any, permission: Permission) -> Result<Entered> {
        let Some(engine) = self.engine() else {
            return self.call_vtable(&value, permission.is_some()).map(Entered::Done);
        };
        match engine.policy.before(self.object(), self.region(), &value, permission.is_some())? {
            Plan::Result(result) => Ok(Entered::Done(result)),
            Plan::Descend => self.descend(value, permission, false, After::Callbacks),
            Plan::Replace(new) => {
                // The references of `new` and of the descent.
                const OWN_REFERENCES: u32 = 2;
                let descended = new.clone();
                let permission = references(&new).filter(|&count| permission.is_some() && count == OWN_REFERENCES);
                self.descend(descended, permission, false, After::Replaced(new))
            }
        }
    }

    /// Begins the descent into a value.
    fn descend(&self, node: Any, permission: Permission, is_bare: bool, after: After) -> Result<Entered> {
        match self.begin(&node, permission) {
            Ok(Descent::Done(result)) => self.finish(&node, after, result).map(Entered::Done),
            Ok(Descent::Open { rebuild, after_all, equality }) => Ok(Entered::Open(Frame {
                node,
                rebuild,
                is_bare,
                after,
                child: TVMFFIAny::none(),
                after_child: None,
                after_all,
                equality,
            })),
            Err(error) if is_bare => Err(error),
            Err(error) => Err(annotated(error, &node.as_view())),
        }
    }

    /// Calls the hook of a value's type, or opens the value.
    fn begin(&self, node: &Any, permission: Permission) -> Result<Descent> {
        let index = node.type_index();
        let is_exclusive = permission.is_some() && references(node) == permission;
        match index {
            // A NULL object, which only C code makes.
            _ if index.is_object() && node.as_raw().ptr().is_null() => return Ok(Descent::Done(unchanged())),
            TypeIndex::STR | TypeIndex::BYTES | TypeIndex::BIG_INT => return Ok(Descent::Done(unchanged())),
            TypeIndex::LIST | TypeIndex::DICT | TypeIndex::ARRAY | TypeIndex::MAP => {
                let object = object_of(node);
                // SAFETY: all references to an exclusive value are known: that of the place where it is, which is
                // exclusive too, and those of this map. So no other code can reach it. C code that permits a change
                // in place promises the same.
                let open = |object| unsafe { Rebuild::of_container(&object, is_exclusive) };
                let rebuild = object.and_then(open);
                return Ok(match rebuild {
                    Some(rebuild) => {
                        Descent::Open { rebuild, after_all: None, equality: kTVMFFISEqHashKindUnsupported }
                    }
                    None => Descent::Done(unchanged()),
                });
            }
            _ => {}
        }
        let is_hook = |hook: &AnyView<'_>| matches!(hook.type_index(), TypeIndex::OPAQUE_PTR | TypeIndex::FUNCTION);
        if let Some(hook) = IN_PLACE_HOOKS.value(index).filter(|hook| is_exclusive && is_hook(hook)) {
            return self.hook(&hook, node).map(Descent::Done);
        }
        match HOOKS.value(index) {
            Some(hook) => self.hook(&hook, node).map(Descent::Done),
            None => self.begin_fields(node),
        }
    }

    fn hook(&self, hook: &AnyView<'_>, node: &Any) -> Result<Any> {
        match hook.type_index() {
            // SAFETY: a pointer in these columns is the address of a hook.
            TypeIndex::OPAQUE_PTR => unsafe { self.call_hook(hook.as_raw().ptr(), node) },
            TypeIndex::FUNCTION => checked(hook.cast::<Function>()?.call((self.object(), node))?),
            _ => Err(type_error("__s_mutate__ must be a direct hook pointer or ffi.Function")),
        }
    }

    /// Opens an object with fields. A variable outside of a definition has the replacement of its definition.
    fn begin_fields(&self, node: &Any) -> Result<Descent> {
        let Some(object) = object_of(node) else { return Ok(Descent::Done(node.clone())) };
        let equality = region::equality_kind(object.type_index())?;
        if has_identity(equality) {
            let known = self.replacement(&node.as_view())?;
            if !known.is_none() {
                return Ok(Descent::Done(known));
            }
        }
        if equality == kTVMFFISEqHashKindFreeVar && self.region() == kTVMFFIDefRegionKindNone {
            return Ok(Descent::Done(unchanged()));
        }
        let rebuild = Rebuild::of_fields(node, &object)?;
        let inside = region::inside(self.region(), equality);
        let after_all = (inside != self.region()).then(|| self.enter(inside));
        Ok(Descent::Open { rebuild, after_all, equality })
    }

    /// Runs what follows a descent.
    fn finish(&self, node: &Any, after: After, result: Any) -> Result<Any> {
        match after {
            After::Nothing => Ok(result),
            After::Replaced(new) => Ok(or_unchanged(result, new)),
            After::Callbacks => match self.engine() {
                Some(engine) => engine.policy.after(self.region(), node, result),
                None => Ok(result),
            },
        }
    }

    /// Maps everything inside a value.
    fn run(&self, mut entered: Entered) -> Result<Any> {
        let mut stack = Vec::new();
        loop {
            let fed = match (entered, stack.last_mut()) {
                (Entered::Done(result), None) => return Ok(result),
                (Entered::Done(result), Some(frame)) => self.feed(frame, result),
                (Entered::Open(frame), _) => {
                    stack.push(frame);
                    if stack.len() > MAX_DEPTH { Err(too_deep("StructuralMutate")) } else { Ok(()) }
                }
            };
            entered = match fed.and_then(|()| self.advance(&mut stack)) {
                Ok(entered) => entered,
                Err(error) => return Err(self.unwind(stack, error)),
            };
        }
    }

    /// Begins the map of the next child of the last frame, or ends the frame after its last child.
    fn advance(&self, stack: &mut Vec<Frame>) -> Result<Entered> {
        if let Some(frame) = stack.last_mut()
            && let Some(child) = self.step(frame)?
        {
            return Ok(child);
        }
        stack.pop().map_or_else(|| Ok(unchanged()), |frame| self.close(frame)).map(Entered::Done)
    }

    /// Begins the map of a frame's next child; `None` after the last one.
    fn step(&self, frame: &mut Frame) -> Result<Option<Entered>> {
        let Some(Child { value, region }) = frame.rebuild.next()? else { return Ok(None) };
        frame.child = *value.as_raw();
        frame.after_child = region.map(|kind| self.enter(kind));
        let permission = if frame.rebuild.owns(&value) { references(&value) } else { None };
        self.child(value, permission).map(Some)
    }

    /// Takes the result for a frame's child.
    fn feed(&self, frame: &mut Frame, result: Any) -> Result<()> {
        self.restore(&mut frame.after_child);
        frame.rebuild.feed(&frame.child, result)
    }

    /// The result for a frame's value.
    fn close(&self, mut frame: Frame) -> Result<Any> {
        self.restore(&mut frame.after_all);
        let result = frame.rebuild.finish();
        // A simple definition that didn't change needs no entry: its uses find none, and don't change either.
        let is_known_without = frame.equality == kTVMFFISEqHashKindFreeVar
            && is_unchanged(&result)
            && self.region() != kTVMFFIDefRegionKindPattern;
        if has_identity(frame.equality) && !is_known_without {
            let node = frame.node.as_view();
            self.store(&node, &result.as_view()).map_err(|error| annotated(error, &node))?;
        }
        self.finish(&frame.node, frame.after, result)
    }

    /// Leaves all frames, and adds their values to an error's context.
    fn unwind(&self, stack: Vec<Frame>, error: Error) -> Error {
        let frames = stack.iter().rev();
        let nodes = self.leave(frames.map(|frame| ([frame.after_child, frame.after_all], &frame.node, frame.is_bare)));
        with_objects(error, nodes)
    }
}

/// True for types whose objects are mapped once, and have the same replacement wherever they occur.
fn has_identity(equality: i32) -> bool {
    equality == kTVMFFISEqHashKindFreeVar || equality == kTVMFFISEqHashKindDAGNode
}
