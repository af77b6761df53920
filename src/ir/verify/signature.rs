//! The rules for a signature, of a function or of an indirect call.

use super::problem::Rule;
use crate::ir::types::{Extension, FuncSig, Type};

/// Checks a signature. `of` begins the message for a signature that isn't the function's own.
pub(super) fn check_signature(sig: &FuncSig, of: &str, report: &mut impl FnMut(Rule, String)) {
    let params = sig.params.iter().enumerate().map(|(i, param)| (Some(i), param));
    for (i, param) in params.chain(sig.ret.iter().map(|ret| (None, ret))) {
        let which = || i.map_or("the result".to_owned(), |i| format!("parameter {i}"));
        if param.ty == Type::Bool {
            report(Rule::SignatureTypes, format!("{of}{} is a bool", which()));
        }
        if param.aggregate && !matches!(param.ty, Type::I32 | Type::I64) {
            report(Rule::SignatureTypes, format!("{of}{} is `{param}`", which()));
        }
        let is_address = param.ty == Type::Ptr && !param.aggregate && i.is_some();
        if param.by_value.is_some() && !is_address {
            report(Rule::SignatureTypes, format!("{of}{} is `{param}`", which()));
        }
        if param.ext != Extension::None && !matches!(param.ty, Type::I8 | Type::I16 | Type::I32) {
            report(Rule::Extensions, format!("{of}{} is `{param}`", which()));
        }
    }
}

/// Checks the signature of a function that the module defines, beyond [`check_signature`].
pub(super) fn check_defined(sig: &FuncSig, report: &mut impl FnMut(Rule, String)) {
    for (i, param) in sig.params.iter().enumerate().filter(|(_, param)| param.by_value.is_some()) {
        report(
            Rule::SignatureTypes,
            format!("parameter {i} is `{param}`, but only functions outside the module take it"),
        );
    }
}
