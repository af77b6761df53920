//! Calls: the result is owned and taken apart, assigned to a variable, or returned.

use super::args::Args;
use super::calls::{
    ArgKind, Call, CallArg, CallResult, CallTarget, Callee, KnownOwned, Owned, PART_OF_THE_NEXT_TURN, placeholder,
};
use super::control::unreachable;
use super::expr::Ops;
use super::function::BodyLowerer;
use super::held::Held;
use super::life::Ended;
use super::own_arguments;
use super::pack::{Beside, Packed, address_of, evaluate, evaluate_each};
use super::param::ParamRef;
use super::take::Taken;
use crate::ir::{BinaryOp, IntCC, MemFlags, Type, Value};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX, store_none};
use crate::lower::once::Looked;
use crate::lower::symbol_call::{KnownArg, SymbolCall};
use crate::spec::ParamType;
use tvm_ffi_runtime::abi::TypeIndex;

/// Makes a call. If it is `forwarded`, the caller's own arguments follow those of the call.
pub(super) fn call<'b>(call: Call<'b>, ty: Option<ParamType>, forwarded: bool) -> CallResult<'b> {
    let body = call.body;
    let operation = format!("call of `{}`", call.target.name());
    body.is_in_graph(&operation);
    let depth = body.emit(|l| Some(l.exits.depth())).unwrap_or_default();
    // a result without a plain type is taken as a whole, including its payload
    let whole = !ty.as_ref().is_some_and(owns_nothing);
    let called = make_call(&call, &operation, forwarded, Goes::ToSlot { whole });
    let (made, any) = match called {
        Some(Called { code, any }) => (Some(code), any),
        None => (None, body.value(|l| l.any_slot())),
    };
    body.run(&mut |l| {
        if let Some(code) = made {
            forget_moved(l, &call);
            l.exit_unless_zero(code);
        }
        l.let_go(depth);
        l.hold(Held::Value(any));
    });
    let path = match &call.target {
        CallTarget::Value(_) => "result of a function value".to_owned(),
        target => format!("result of `{}`", target.name()),
    };
    let known = match &ty {
        Some(ty) => KnownOwned::Type(body.arena().ty(ty.clone())),
        None => KnownOwned::Nothing,
    };
    let loops = body.emit(|l| Some(l.exits.loops()));
    let owned = Owned { body, any, scope: body.scope(), known, loops };
    let Some(ty) = ty else {
        body.run(&mut |l| l.let_go(depth));
        return placeholder(body, &path, &ParamType::None, owned);
    };
    let plain = owns_nothing(&ty);
    let result = take_apart(owned, &path, "called by", ty);
    if plain {
        body.run(&mut |l| l.exits.forget());
    }
    result
}

/// Whether a checked value of the type is never an object.
fn owns_nothing(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Scalar(_) | ParamType::None | ParamType::Int(_) | ParamType::Bool(_) | ParamType::Device)
}

/// Sets the moved arguments of a call to None that the callee has taken.
pub(super) fn forget_moved(l: &mut BodyLowerer<'_>, call: &Call<'_>) {
    let all = call.args.iter().chain(call.kwargs.iter().map(|(_, arg)| arg));
    for arg in all {
        if let ArgKind::Moved(owned) = &arg.0 {
            forget_taken(l, owned.any);
        }
    }
}

/// Sets an owned value to None if a callee has taken it.
fn forget_taken(l: &mut BodyLowerer<'_>, any: Value) {
    let index = l.b.load(Type::I64, any, TYPE_INDEX, MemFlags::ALIGNED);
    let payload = l.b.load(Type::I64, any, PAYLOAD, MemFlags::ALIGNED);
    let taken = l.b.icmp_imm(IntCC::Eq, payload, 0);
    let type_index = l.b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
    let is_object = l.b.icmp_imm(IntCC::SGe, type_index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
    let gone = l.b.binary(BinaryOp::And, taken, is_object);
    let none = l.b.i64(0);
    let index = l.b.select(gone, none, index);
    l.b.store(index, any, TYPE_INDEX, MemFlags::ALIGNED);
}

/// A completed call.
#[derive(Clone, Copy)]
pub(super) struct Called {
    pub code: Value,
    /// The address of the callee's result.
    any: Value,
}

/// Where a call writes its result.
#[derive(Clone, Copy)]
pub(super) enum Goes {
    /// To a slot of its own. With `whole`, its payload is read even if the callee doesn't write it.
    ToSlot { whole: bool },
    /// To the function's own result.
    ToResult,
}

/// Packs the arguments and calls. If the call is `forwarded`, the caller's own arguments follow.
pub(super) fn make_call(call: &Call<'_>, operation: &str, forwarded: bool, goes: Goes) -> Option<Called> {
    let Call { body, target, args, kwargs } = call;
    let body = *body;
    let beside = Beside::new(args.iter().chain(kwargs.iter().map(|(_, value)| value)));
    let mut packed = evaluate_each(body, operation, args)?;
    if !kwargs.is_empty() {
        packed.push(body.emit(|l| Some(Packed::Copy(l.made_by("ffi.GetKwargsObject", &[]))))?);
        for (name, value) in kwargs {
            packed.push(body.emit(|l| Some(l.text(name)))?);
            packed.push(evaluate(body, operation, value)?);
        }
    }
    beside.check(body, operation);
    let own = if forwarded { body.emit(|l| Some(own_arguments::append(l, call, &mut packed)))? } else { None };
    let count = packed.len().max(own.map_or(0, |(_, count)| count));
    if i32::try_from(count).is_err() {
        body.note(operation, "has more arguments than a call can have".to_owned());
        return None;
    }
    let name = target.name();
    if name.is_empty() || name.contains('\0') {
        body.note(operation, "the name is empty or holds a NUL byte".to_owned());
        return None;
    }
    let callee = match target {
        CallTarget::Value(Callee::Owned(owned)) => Some(Ok(owned.used(operation).any)),
        CallTarget::Value(Callee::Param(param)) => match (param.node, param.ty()) {
            (Some(_), Some(ParamType::Function)) if param.args.any.is_none() => {
                Some(Err(param.value().used(operation).value))
            }
            (Some(node), Some(_)) if param.alive(operation).node.is_some() => {
                match body.emit(|l| Some(address_of(l, param.args, &node.path)))? {
                    Ok(any) => Some(Ok(any)),
                    Err(problem) => {
                        body.note(operation, problem);
                        return None;
                    }
                }
            }
            _ => return None,
        },
        _ => None,
    };
    let mut known = kwargs.is_empty().then(|| args.iter().map(CallArg::known).collect::<Vec<KnownArg>>());
    let arguments = |l: &mut BodyLowerer<'_>| own.unwrap_or_else(|| (l.store(&packed), packed.len()));
    body.emit(|l| {
        let function = match (target, callee) {
            (CallTarget::Symbol { name }, _) => {
                let wrapper = l.wrapper(name);
                let (caller, location) = (l.signature.name().to_owned(), l.location());
                if let Some(known) = known.as_mut().filter(|_| forwarded) {
                    known.extend(own_arguments::known(l.signature));
                }
                let call = SymbolCall { caller, callee: name.clone(), args: known.take(), location };
                l.symbol_calls.push(call);
                let (array, count) = arguments(l);
                let any = goes.address(l)?;
                let (handle, count) = (l.b.ptr_const(0), l.b.iconst(Type::I32, count as i64));
                let code = l.b.call(wrapper, &[handle, array, count, any])?;
                return Some(Called { code, any });
            }
            (CallTarget::Global { name, uncached: false }, _) => l.global(name),
            (CallTarget::Global { name, uncached: true }, _) => l.global_now(name),
            (CallTarget::Import { name }, _) => l.looked_up(Looked::Import(name.clone())),
            (CallTarget::Value(_), Some(Ok(any))) => l.function_at(any, &format!("`{}`", target.name())),
            (CallTarget::Value(_), Some(Err(function))) => function,
            (CallTarget::Value(_), None) => return None,
        };
        // after looking up the function, so no register keeps the address during the look-up
        let any = goes.address(l)?;
        let arguments = arguments(l);
        Some(Called { code: l.call_stored(function, arguments, any), any })
    })
}

impl Goes {
    /// The address that the callee gets for its result.
    fn address(self, l: &mut BodyLowerer<'_>) -> Option<Value> {
        match self {
            Goes::ToSlot { whole } => Some(l.result_slot(whole)),
            Goes::ToResult => l.result_pointer(),
        }
    }
}

/// Checks an owned value against a stated type and returns its parts.
fn take_apart<'b>(owned: Owned<'b>, path: &str, relation: &str, ty: ParamType) -> CallResult<'b> {
    let body = owned.body;
    if ty.is_of_parameters() {
        body.note("returns", format!("an {ty} is no value"));
        return placeholder(body, path, &ParamType::None, owned);
    }
    let life = body.life_of_part(owned.any);
    let value = Taken { any: owned.any, life, is_owned: true };
    let args = body.emit(|l| Some(l.checked_value(value, path, relation, &ty)));
    match args {
        Some(Ok(args)) => {
            let args: &'b Args = body.arena().args(args);
            CallResult { owned, param: ParamRef { body, args, node: args.params.first() } }
        }
        Some(Err(problem)) => {
            body.note("returns", problem);
            placeholder(body, path, &ty, owned)
        }
        None => placeholder(body, path, &ty, owned),
    }
}

/// The value of a variable, checked against a stated type.
pub(super) fn cast<'b>(owned: Owned<'b>, path: &str, ty: ParamType) -> CallResult<'b> {
    take_apart(owned.used("cast"), path, "of", ty)
}

/// Assigns a value to a variable, and releases the old value.
pub(super) fn assign<'b>(variable: Owned<'b>, value: CallArg<'b>) {
    const OPERATION: &str = "set";
    let (body, to) = (variable.body, variable.any);
    body.is_in_graph(OPERATION);
    if variable.ended() == Some(Ended::Block) {
        variable.used(OPERATION);
        return;
    }
    let depth = body.emit(|l| Some(l.exits.depth())).unwrap_or_default();
    let packed = evaluate(body, OPERATION, &value);
    // even after an error: the variable counts as set
    if !body.emit(|l| l.give(to)) {
        body.note(OPERATION, PART_OF_THE_NEXT_TURN.to_owned());
    }
    let Some(packed) = packed else { return };
    body.run(&mut |l| {
        // the new value may be made from the old one, so release the old one last
        let new = match packed {
            Packed::Moved(from) => from,
            _ => {
                let new = l.any_slot();
                l.own(&packed, new);
                new
            }
        };
        let words = [TYPE_INDEX, PAYLOAD].map(|at| l.b.load(Type::I64, new, at, MemFlags::ALIGNED));
        store_none(&mut l.b, new);
        super::exits::release_any(&mut l.b, to, true);
        l.store_words(words[0], words[1], to);
        l.let_go(depth);
    });
}

/// Returns a non-scalar value from the function; `false` after an error.
pub(super) fn return_value<'b>(body: &'b dyn Ops, value: CallArg<'b>) -> bool {
    let depth = body.emit(|l| Some(l.exits.depth())).unwrap_or_default();
    let Some(packed) = evaluate(body, "ret_value", &value) else { return false };
    body.run(&mut |l| {
        let Some(result) = l.result_pointer() else { return };
        match packed {
            Packed::Moved(from) => {
                let words = [TYPE_INDEX, PAYLOAD].map(|at| l.b.load(Type::I64, from, at, MemFlags::ALIGNED));
                store_none(&mut l.b, from);
                l.store_words(words[0], words[1], result);
            }
            _ => l.own(&packed, result),
        }
        l.succeed();
        unreachable(l);
        l.let_go(depth);
    });
    true
}
