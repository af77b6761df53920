//! Members of enums in graphs: an enum has one object for each value, so a graph has the value's index alone.
//! Header section: upstream's `enum.h`.

use crate::abi::TypeIndex;
use crate::any::Any;
use crate::container::Dict;
use crate::error::{Result, runtime_error, value_error};
use crate::heap::ObjectRef;
use crate::reflect::accessors::convert;
use crate::reflect::field;
use crate::string::Str;
use crate::type_info::key_of;
use crate::type_table::{attr_value, is_instance, key_to_index};

/// The index by which a type's members are known.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Index {
    Int,
    Str,
}

impl Index {
    /// The kind of index of a type; `None` for a type that isn't an enum.
    pub(super) fn of(index: TypeIndex) -> Option<Self> {
        let is = |key| key_to_index(key).is_some_and(|ancestor| is_instance(index, TypeIndex(ancestor)));
        if is("ffi.IntEnum") {
            return Some(Self::Int);
        }
        is("ffi.Enum").then_some(Self::Str)
    }

    /// The index of a member.
    ///
    /// # Errors
    /// Any error of the field's getter.
    pub(super) fn of_member(self, member: &ObjectRef) -> Result<Any> {
        let name: &[u8] = if self == Self::Int { b"_int_index" } else { b"_str_index" };
        named(member, name)
    }

    /// The member of an enum with that index.
    ///
    /// # Errors
    /// `ValueError` if there is none; `TypeError` for an index of another kind.
    pub(super) fn member(self, index: TypeIndex, value: &Any) -> Result<Any> {
        let (value, text): (Any, String) = match self {
            Self::Int => {
                let number: i64 = convert(value.as_view(), "int")?;
                (number.into(), number.to_string())
            }
            Self::Str => {
                let name: Str = convert(value.as_view(), "str")?;
                (name.clone().into(), String::from_utf8_lossy(name.as_bytes()).into_owned())
            }
        };
        let found = match attr_value(index, b"__ffi_enum__") {
            Some(state) => named(&state.cast()?, b"indexes")?.cast::<Dict>()?.get(&value)?,
            None => None,
        };
        found.ok_or_else(|| value_error(&format!("Enum `{}` has no instance with index {text}", key_of(index))))
    }
}

/// The value of a field.
fn named(object: &ObjectRef, name: &[u8]) -> Result<Any> {
    let missing = || runtime_error(&format!("`{}` isn't an enum's", object.type_key()));
    field::named(object, name)?.ok_or_else(missing)
}
