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
use super::pack::{Beside, Packed, address_of, evaluate, evaluate_each};
use super::param::ParamRef;
use super::take::Taken;
use crate::ir::{BinaryOp, IntCC, MemFlags, Type, Value};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX, store_none};
use crate::lower::once::Looked;
use crate::lower::symbol_call::{KnownArg, SymbolCall};
use crate::spec::ParamType;
use tvm_ffi_runtime::abi::TypeIndex;

/// Makes a call.
pub(super) fn call<'b>(call: Call<'b>, ty: Option<ParamType>) -> CallResult<'b> {
    let Call { body, target, args, kwargs } = call;
    let operation = format!("call of `{}`", target.name());
    let depth = body.emit(|l| Some(l.exits.depth())).unwrap_or_default();
    // a result without a plain type is taken as a whole, including its payload
    let whole = !ty.as_ref().is_some_and(owns_nothing);
    let called = make_call(body, &operation, &target, &args, &kwargs, whole);
    let (made, any) = match called {
        Some(Called { code, any }) => (Some(code), any),
        None => (None, body.value(|l| l.any_slot())),
    };
    let moved: Vec<Value> = args.iter().chain(kwargs.iter().map(|(_, arg)| arg)).filter_map(moved_slot).collect();
    body.run(&mut |l| {
        if let Some(code) = made {
            moved.iter().for_each(|any| forget_taken(l, *any));
            l.exit_unless_zero(code);
        }
        l.let_go(depth);
        l.hold(Held::Value(any));
    });
    let path = match &target {
        CallTarget::Value(_) => "the result of a call".to_owned(),
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

fn moved_slot(arg: &CallArg<'_>) -> Option<Value> {
    match &arg.0 {
        ArgKind::Moved(owned) => Some(owned.any),
        _ => None,
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
struct Called {
    code: Value,
    /// The address of the function's result.
    any: Value,
}

/// Packs the arguments and calls. With `whole`, the payload of the result is read even if the callee doesn't write it.
fn make_call(
    body: &dyn Ops,
    operation: &str,
    target: &CallTarget<'_>,
    args: &[CallArg<'_>],
    kwargs: &[(String, CallArg<'_>)],
    whole: bool,
) -> Option<Called> {
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
    if i32::try_from(packed.len()).is_err() {
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
    let known = kwargs.is_empty().then(|| args.iter().map(CallArg::known).collect::<Vec<KnownArg>>());
    body.emit(|l| {
        let function = match (target, callee) {
            (CallTarget::Symbol { name }, _) => {
                let wrapper = l.wrapper(name);
                let (caller, location) = (l.signature.name().to_owned(), l.location());
                let call = SymbolCall { caller, callee: name.clone(), args: known.clone(), location };
                l.symbol_calls.push(call);
                let array = l.store(&packed);
                let any = l.result_slot(whole);
                let (handle, count) = (l.b.ptr_const(0), l.b.iconst(Type::I32, packed.len() as i64));
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
        let any = l.result_slot(whole);
        Some(Called { code: l.call_function(function, &packed, any), any })
    })
}

/// Checks an owned value against a stated type and returns its parts.
fn take_apart<'b>(owned: Owned<'b>, path: &str, relation: &str, ty: ParamType) -> CallResult<'b> {
    let body = owned.body;
    if !ty.is_passed() {
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
