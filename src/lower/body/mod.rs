//! The body builder: a kernel that the compiler writes in terms of its parameters. It is compiled with the wrapper that
//! calls it.
//!
//! A body sees the parameters after all checks. You write it once; it runs on every backend and on the interpreter.
//! Errors in a body, such as an unknown name or operands of two types, are recorded and returned together as one
//! [`LowerError::Body`]; nothing panics.

mod arena;
mod args;
mod builder;
mod calls;
mod closure;
mod control;
mod descriptor;
mod division;
mod dtype_device;
mod exits;
mod expr;
mod forward;
mod frame;
mod function;
mod graph;
mod handler;
mod held;
mod invoke;
mod kinds;
mod launches;
mod life;
mod lookup;
mod loops;
mod match_key;
mod matching;
mod memory;
mod narrow;
mod open_graph;
mod ops;
mod own_arguments;
mod pack;
mod param;
mod questions;
mod raise;
mod record;
mod rows;
mod scope;
mod take;
mod tensor;
mod text_names;
mod types;
mod uses;
mod variable;
mod views;

pub use builder::Body;
pub use calls::{Call, CallArg, CallArgs, CallResult, Callee, Owned};
pub use dtype_device::{DTypeValue, DeviceValue};
pub use expr::{Expr, Operand};
pub use handler::Caught;
pub use kinds::ValueKind;
pub use launches::LaunchValue;
pub use match_key::{MatchKey, MatchPattern, MatchRow, MatchValue};
pub(super) use matching::MatchPart;
pub use narrow::TensorFact;
pub use param::ParamRef;
pub use tensor::TensorRef;
pub use variable::Variable;

use std::cell::RefCell;

use super::error::{BodyError, LowerError};
use super::unit::Unit;
use crate::host::tree::Block;
use crate::ir::{self, FuncRef, HOST_ENDIANNESS};
use crate::spec::{Part, Signature, TextPlace};

use arena::Arena;
use args::Args;
use builder::BuildState;
pub(super) use builder::{BodyFn, Closure};
use function::BodyLowerer;
pub(super) use function::{Enclosing, Extra};
use record::Recorder;
pub(super) use record::{Images, image_name, image_names};

/// The lowered form of a body.
pub(super) struct Code {
    pub form: Form,
    /// Its last parameters, in addition to those of convention `flat`.
    pub extras: Vec<Extra>,
    /// Whether it gets the caller's own result instead of a slot whose value is checked after it.
    pub writes_to_caller: bool,
}

/// How a body is lowered.
pub(super) enum Form {
    /// A function of the module.
    Function(FuncRef),
    /// Branch-free code that the wrapper inlines.
    Straight(ir::Function),
}

/// A lowered body, with the closures that it creates.
pub(super) struct Lowered {
    pub code: Code,
    pub closures: Vec<Closure>,
}

/// Defines the function of a body; the wrapper calls it with its checked arguments.
pub(super) fn lower(
    into: &mut Unit,
    signature: &Signature,
    enclosing: Enclosing<'_>,
    build: &dyn Fn(&Body<'_>),
) -> Result<Lowered, LowerError> {
    let known = into.module.function_named(&function::symbol(enclosing));
    let taken = known.is_some_and(|(_, known)| !enclosing.is_c || known.linkage != ir::Linkage::Import);
    if taken {
        return Err(LowerError::DuplicateName { name: signature.name().to_owned() });
    }
    let declared = into.module.functions.len();
    let built = function::define(into, signature, enclosing, |l, args| {
        let from = signature.location(Part::Signature).filter(|_| enclosing.is_c);
        l.locate(from);
        fill(l, signature, args, build, None)
    });
    let closures = built.result?;
    let func = built.func;
    into.symbol_calls.extend(built.symbol_calls);
    into.always_binds |= built.always_binds;
    // a body with callees isn't inlined: they are declared after it, and must stay
    let alone = into.module.functions.len() == declared + 1;
    let form = match &mut into.module.functions[func].body {
        Some(body) if body.is_straight() && alone && !enclosing.is_c => {
            let body = std::mem::take(body);
            into.module.truncate_functions(declared);
            Form::Straight(body)
        }
        _ => Form::Function(func),
    };
    let code = Code { form, extras: built.extras, writes_to_caller: built.writes_to_caller };
    Ok(Lowered { code, closures })
}

/// Records a body as text. `images` collects those of its launches.
pub(super) fn record(
    signature: &Signature,
    enclosing: Enclosing<'_>,
    build: &dyn Fn(&Body<'_>),
    images: &Images,
) -> Result<Block, LowerError> {
    let recorder = Recorder::new(images.clone());
    // the code isn't used
    let mut unit = Unit::new(HOST_ENDIANNESS);
    let built =
        function::define(&mut unit, signature, enclosing, |l, args| fill(l, signature, args, build, Some(&recorder)));
    built.result?;
    if recorder.is_incomplete() {
        let what = "a body with an operation that isn't recorded";
        return Err(LowerError::NoText { function: signature.name().to_owned(), what });
    }
    Ok(recorder.finish(signature))
}

/// Builds the body at the lowerer's current block and returns from the function. Returns the closures that the body
/// creates.
fn fill(
    l: &mut BodyLowerer<'_>,
    signature: &Signature,
    args: &Args,
    build: &dyn Fn(&Body<'_>),
    recorder: Option<&Recorder>,
) -> Result<Vec<Closure>, LowerError> {
    let state = BuildState {
        lowerer: l,
        errors: Vec::new(),
        open: Vec::new(),
        scopes: 0,
        closures: Vec::new(),
        frame_is_full: false,
        text: None,
    };
    let arena = Arena::default();
    let body = Body { signature, args, arena: &arena, state: RefCell::new(state), recorder };
    build(&body);
    let BuildState { mut errors, closures, text, .. } = body.state.into_inner();
    if !l.b.is_terminated() {
        match signature.ret().filter(|_| function::has_result(signature)) {
            None => l.succeed(),
            Some(ty) if l.b.is_reachable() => errors.push(BodyError {
                operation: if text.is_some() { "return" } else { "ret" }.to_owned(),
                problem: format!("the body can end without returning its {ty}"),
                location: l.location(),
                place: text.map(|(text, span)| Box::new(TextPlace::new(&text, span))),
            }),
            // code after a `ret` or `raise` never runs, but its block must still be terminated
            Some(_) => l.succeed(),
        }
    }
    match errors.is_empty() {
        true => Ok(closures),
        false => Err(LowerError::Body { function: signature.name().to_owned(), errors }),
    }
}
