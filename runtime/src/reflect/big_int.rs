//! Reflection of the type of big integers.
//! No header section: upstream registers it in C++.

use super::native::{address, outcome};
use crate::abi::*;
use crate::any::{AnyView, TryFromAny};
use crate::big_int::BigInt;
use crate::error::{Result, type_error};
use crate::function::Function;
use crate::string::Str;
use crate::type_table::Definition;

/// The type's built-in reflection.
pub(crate) fn types() -> Vec<Definition> {
    // SAFETY: the attributes are functions of these types.
    let (hash, equal) = unsafe { (address(any_hash as *const ()), address(any_equal as *const ())) };
    let definition = Definition::object("ffi.BigInt", "ffi.Object", BigInt::OBJECT_SIZE, true)
        .attribute("__any_hash__", hash)
        .attribute("__any_equal__", equal)
        .attribute("__ffi_eq__", Function::built_in(|args| two(args).map(|(one, two)| (one == two).into())))
        .attribute(
            "__ffi_compare__",
            Function::built_in(|args| two(args).map(|(one, two)| (one.cmp(&two) as i64).into())),
        )
        .attribute(
            "__ffi_hash__",
            Function::built_in(|args| Ok(first::<BigInt>(args)?.stable_hash().cast_signed().into())),
        )
        .attribute("__data_to_json__", Function::built_in(|args| Ok(first::<BigInt>(args)?.to_string().into())))
        .attribute(
            "__data_from_json__",
            Function::built_in(|args| Ok(first::<Str>(args)?.as_str().parse::<BigInt>()?.into())),
        );
    vec![definition]
}

fn first<T: TryFromAny>(args: &[AnyView<'_>]) -> Result<T> {
    args.first().ok_or_else(|| type_error("expected an argument"))?.cast()
}

fn two(args: &[AnyView<'_>]) -> Result<(BigInt, BigInt)> {
    match args {
        [one, two, ..] => Ok((one.cast()?, two.cast()?)),
        _ => Err(type_error("expected two integers")),
    }
}

unsafe extern "C" fn any_hash(value: *const TVMFFIAny) -> TVMFFIAny {
    // SAFETY: the attribute's contract: a valid value.
    let value = unsafe { AnyView::from_raw(*value) };
    outcome(|| value.cast::<BigInt>().map(|value| value.stable_hash().cast_signed().into()))
}

unsafe extern "C" fn any_equal(one: *const TVMFFIAny, two: *const TVMFFIAny) -> TVMFFIAny {
    // SAFETY: as above.
    let (one, two) = unsafe { (AnyView::from_raw(*one), AnyView::from_raw(*two)) };
    outcome(|| one.cast::<BigInt>().and_then(|one| Ok((one == two.cast()?).into())))
}
