//! The function's own arguments as those of a callee, in the order in which its caller has passed them.

use super::args::Origin;
use super::calls::{ArgKind, Call, CallArg, CallTarget, Callee};
use super::expr::Operand;
use super::function::{BodyLowerer, Extra};
use super::pack::Packed;
use crate::ir::Value;
use crate::lower::abi::ANY_SIZE;
use crate::lower::symbol_call::KnownArg;
use crate::spec::{DTypePolicy, ParamType, ScalarType, Signature};

/// The function's own arguments, for a callee: appends them to those of the call, or returns their array with their
/// number if the call has none.
pub(super) fn append(l: &mut BodyLowerer<'_>, call: &Call<'_>, packed: &mut Vec<Packed>) -> Option<(Value, usize)> {
    let count = l.signature.passed().count();
    if lends(call) {
        let copies = (0..count).map(|number| Packed::Copy(l.argument(number)));
        packed.extend(copies);
        return None;
    }
    let base = l.extra(Extra::Originals);
    if packed.is_empty() {
        return Some((base, count));
    }
    for number in 0..count {
        packed.push(Packed::Copy(l.b.ptr_add_imm(base, number as i64 * i64::from(ANY_SIZE))));
    }
    None
}

/// Whether a call lends a part of the function's own arguments to the callee. Then the callee can't take an argument
/// over by an rvalue reference, because that part would end with it.
fn lends(call: &Call<'_>) -> bool {
    let is_own = match &call.target {
        CallTarget::Value(Callee::Param(param)) => !param.args.is_captured,
        _ => false,
    };
    is_own || call.args.iter().any(lends_argument)
}

fn lends_argument(arg: &CallArg<'_>) -> bool {
    match &arg.0 {
        ArgKind::Param(param) => {
            !matches!(param.ty(), Some(ParamType::Scalar(_) | ParamType::DType | ParamType::Device))
        }
        // a tensor that the body owns isn't part of an argument
        ArgKind::Tensor(tensor) => !tensor.known.is_some_and(|known| matches!(known.vars.origin, Origin::Object(_))),
        ArgKind::Array(values) => values.iter().any(lends_argument),
        ArgKind::Scalar(Operand::Expr(pointer)) => pointer.ty() == ScalarType::Handle,
        _ => false,
    }
}

/// The properties of the caller's own arguments that the signature determines. The checks may convert all but tensors.
pub(super) fn known(signature: &Signature) -> Vec<KnownArg> {
    let is_exact = signature.dtype_policy() == DTypePolicy::EXACT;
    let known = signature.passed().map(|param| match KnownArg::of(&param.ty) {
        KnownArg::Tensor(mut tensor) => {
            tensor.dtype = tensor.dtype.filter(|_| is_exact);
            KnownArg::Tensor(tensor)
        }
        _ => KnownArg::Unknown,
    });
    known.collect()
}
