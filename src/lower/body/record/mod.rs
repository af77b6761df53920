//! Records the operations of a body as a tree of text, which prints and reads back to the same code.
//!
//! Each operation records one statement: mostly `let %n = ...`, with values of earlier statements as inputs. `trees`
//! makes these inputs. At the end `inline` moves values into the statements that use them, and names the rest.
//! A body is recorded only when its text is asked for. Otherwise each operation tests once that there is no recorder.

mod inline;
mod matches;
mod operation;
mod questions;
mod trees;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::args::{Args, TensorVars};
use crate::host::tree::{At, Block, Expr as Tree, ExprKind, Scoped, Statement, StatementKind};
use crate::image::Image;
use crate::ir::Value;
use crate::spec::ScalarType;

/// The images of launches, which a text gives names.
pub(in crate::lower) type Images = Rc<RefCell<Vec<Image>>>;

/// The name of an image, by its number among all images.
pub(in crate::lower) fn image_name(number: usize) -> String {
    format!("image{number}")
}

/// The names of a launch's images, which are added to those that have names.
pub(in crate::lower) fn image_names(images: &[Image], known: &Images) -> Vec<(String, Range<usize>)> {
    let all = &mut *known.borrow_mut();
    let mut number = |image: &Image| {
        all.iter().position(|known| known == image).unwrap_or_else(|| {
            all.push(image.clone());
            all.len() - 1
        })
    };
    images.iter().map(|image| (image_name(number(image)), 0..0)).collect()
}

/// The number of a recorded value. Its name is `%` with the number until `inline` names it.
type Id = u32;

/// A record of a body's operations.
pub(in crate::lower) struct Recorder {
    state: RefCell<State>,
    paused: Cell<bool>,
    /// Whether an operation has used a value that no operation has recorded.
    is_incomplete: Cell<bool>,
    images: Images,
}

#[derive(Default)]
struct State {
    /// The open blocks, from the outermost to the innermost.
    open: Vec<Open>,
    /// The blocks that have ended, and belong to the operation that is being recorded.
    closed: Vec<Closed>,
    /// How the text names the values of the code.
    values: HashMap<(Value, ScalarType), Known>,
    /// Owned values, by their addresses in the frame.
    owned: HashMap<Value, Tree>,
    /// Tensors, by the addresses of their values.
    tensors: HashMap<*const TensorVars, Tree>,
    /// Results of calls and the like, by the addresses of their values; each with its path.
    results: HashMap<*const Args, (Tree, String)>,
    lets: Lets,
}

/// The properties of recorded values.
#[derive(Default)]
struct Lets {
    count: Id,
    /// Values that are read without code: they may be read later.
    silent: HashSet<Id>,
    /// Conversions of scalars to their own type: a place for numbers needs none.
    reads: HashSet<Id>,
}

/// How the text names a value.
#[derive(Clone)]
struct Known {
    tree: Tree,
    /// Whether the name as an argument passes another value: that of an argument, as it came.
    is_other_argument: bool,
}

#[derive(Default)]
struct Open {
    statements: Vec<Statement>,
    value: Option<Tree>,
    /// The names of the values before the block.
    before: Vec<((Value, ScalarType), Option<Known>)>,
}

/// A block that has ended, with its value.
struct Closed {
    block: Block,
    value: Option<Tree>,
}

impl Closed {
    fn scoped(self) -> Scoped {
        Scoped { value: self.value.unwrap_or_else(|| tree(ExprKind::None)), block: self.block }
    }
}

fn tree(kind: ExprKind) -> Tree {
    Tree { span: 0..0, depth: 0, kind: Box::new(kind) }
}

fn at<T>(value: T) -> At<T> {
    At { span: 0..0, value }
}

fn name_of(id: Id) -> String {
    format!("%{id}")
}

fn named(id: Id) -> Tree {
    tree(ExprKind::Name(name_of(id)))
}

impl Recorder {
    pub(in crate::lower) fn new(images: Images) -> Self {
        let state = State { open: vec![Open::default()], ..State::default() };
        Recorder { state: RefCell::new(state), paused: Cell::new(false), is_incomplete: Cell::new(false), images }
    }

    /// Whether the text lacks an operation, because it isn't recorded.
    pub(in crate::lower) fn is_incomplete(&self) -> bool {
        self.is_incomplete.get()
    }

    /// The place of a value that no operation has recorded.
    fn unknown(&self) -> ExprKind {
        self.is_incomplete.set(true);
        ExprKind::None
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.get()
    }

    /// Runs operations that belong to another one, without recording them.
    pub(super) fn pause<R>(&self, run: impl FnOnce() -> R) -> R {
        let before = self.paused.replace(true);
        let result = run();
        self.paused.set(before);
        result
    }

    pub(super) fn images(&self) -> &Images {
        &self.images
    }

    /// Begins a block.
    pub(super) fn open(&self) {
        self.state.borrow_mut().open.push(Open::default());
    }

    /// Ends a block.
    pub(super) fn close(&self) {
        let state = &mut *self.state.borrow_mut();
        let Some(Open { statements, value, before }) = state.open.pop() else { return };
        for (key, known) in before.into_iter().rev() {
            match known {
                Some(known) => state.values.insert(key, known),
                None => state.values.remove(&key),
            };
        }
        state.closed.push(Closed { block: Block { span: 0..0, statements }, value });
    }

    /// Takes the block that has ended last.
    fn closed(&self) -> Closed {
        let closed = self.state.borrow_mut().closed.pop();
        closed.unwrap_or_else(|| Closed { block: Block::default(), value: None })
    }

    pub(super) fn statement(&self, kind: StatementKind) {
        if let Some(open) = self.state.borrow_mut().open.last_mut() {
            open.statements.push(Statement { span: 0..0, kind });
        }
    }

    fn new_id(&self) -> Id {
        let lets = &mut self.state.borrow_mut().lets;
        lets.count += 1;
        lets.count
    }

    fn let_(&self, kind: ExprKind) -> Id {
        let id = self.new_id();
        self.statement(StatementKind::Let(at(name_of(id)), tree(kind)));
        id
    }

    fn know(&self, (value, ty): (Value, ScalarType), known: Known) {
        let state = &mut *self.state.borrow_mut();
        let before = state.values.insert((value, ty), known);
        if let Some(open) = state.open.last_mut() {
            open.before.push(((value, ty), before));
        }
    }

    fn know_id(&self, key: (Value, ScalarType), id: Id) {
        self.know(key, Known { tree: named(id), is_other_argument: false });
    }

    fn know_owned(&self, any: Value, tree: Tree) {
        self.state.borrow_mut().owned.insert(any, tree);
    }

    fn know_tensor(&self, vars: &TensorVars, tree: Tree) {
        self.state.borrow_mut().tensors.insert(vars, tree);
    }

    fn know_result(&self, args: &Args, id: Id) {
        let path = args.params.first().map_or_else(String::new, |node| node.path.clone());
        self.state.borrow_mut().results.insert(args, (named(id), path));
    }
}
