//! `ffi.StructuralKey`: a value with its structural hash, for maps whose keys are compared structurally.
//! Header section: upstream's `extra/structural_key.h`.

use std::mem::offset_of;
use std::sync::OnceLock;

use super::equal::{Options, equal};
use super::hash::hash;
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Error, Result, kind, runtime_error};
use crate::heap::{ObjectLayout, ObjectRef, make_object, release};
use crate::reflect::builtin::{ANY, Builtin, INT, define, object_of, stored};
use crate::reflect::native::{address, outcome};
use crate::registry::{built_in, metadata_of};
use crate::type_table::{Definition, key_to_index};

/// Layout: upstream's `StructuralKeyObj`.
#[repr(C)]
struct Key {
    header: TVMFFIObject,
    key: Any,
    hash: i64,
}

// SAFETY: repr(C) with the header first.
unsafe impl ObjectLayout for Key {
    // The header of a new object gets the index of its own type.
    const TYPE_INDEX: TypeIndex = TypeIndex::OBJECT;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: the last reference is gone, and the value is dropped once, here.
        release(unsafe { std::mem::take(&mut (*object).key) }.into_object().into_iter());
    }
}

impl Builtin for Key {
    const KEY: &'static str = "ffi.StructuralKey";
    const SIZE: usize = size_of::<Self>();
}

/// How keys are compared and hashed.
const OPTIONS: Options = Options { map_free_vars: false, skip_tensor_content: false };

/// `ffi.StructuralKey`: the key of a value.
///
/// # Errors
/// As [`hash`].
pub(super) fn new(value: Any) -> Result<ObjectRef> {
    static INDEX: OnceLock<Option<i32>> = OnceLock::new();
    let index = INDEX.get_or_init(|| key_to_index(Key::KEY)).ok_or_else(|| runtime_error("no type of keys"))?;
    let hash = hash(&value, OPTIONS)?.cast_signed();
    let object = make_object::<Key>(0, |header, _| Key {
        header: TVMFFIObject { type_index: index, ..header },
        key: value,
        hash,
    });
    // SAFETY: `make_object` returns the object's only strong reference.
    Ok(unsafe { ObjectRef::from_non_null(object) })
}

/// The value of a key, and its hash. `name` is the argument's in upstream's message.
///
/// # Errors
/// `InternalError` for a value of another type.
fn parts(key: &AnyView<'_>, name: &str) -> Result<(Any, i64)> {
    let object =
        object_of::<Key>(key).map_err(|_| Error::new(kind::INTERNAL_ERROR, &format!("Check not null: {name} ")))?;
    // SAFETY: objects of this final type have this layout, and nothing changes them.
    let key = unsafe { &*object.as_ptr().cast::<Key>() };
    Ok((key.key.clone(), key.hash))
}

/// `ffi.StructuralKeyEqual`: true if two keys have structurally equal values.
///
/// # Errors
/// `InternalError` for arguments that aren't keys; as [`equal`].
pub(super) fn keys_equal(one: &AnyView<'_>, other: &AnyView<'_>) -> Result<bool> {
    let (raw, other_raw) = (one.as_raw(), other.as_raw());
    if raw.type_index == other_raw.type_index && raw.bits() == other_raw.bits() {
        return Ok(true);
    }
    let ((value, hash), (other_value, other_hash)) = (parts(one, "lhs_obj")?, parts(other, "rhs_obj")?);
    Ok(hash == other_hash && equal(&value, &other_value, OPTIONS)?)
}

/// The type of keys.
pub(super) fn types() -> Vec<Definition> {
    let field = |name, schema, offset, index| match index {
        TypeIndex::ANY => stored::<Any>(name, "", schema, offset, index).info(),
        _ => stored::<i64>(name, "", schema, offset, index).info(),
    };
    // Use the same function for the attribute and the method.
    let init: Any = built_in("(Any) -> ffi.Object", |[value]| new(value.to_owned()?).map(Any::from)).into();
    // SAFETY: the attributes are functions of these types.
    let (hash, equal) = unsafe { (address(any_hash as *const ()), address(any_equal as *const ())) };
    vec![
        define::<Key>("ffi.Object", true)
            .field(field("key", ANY, offset_of!(Key, key), TypeIndex::ANY))
            .field(field("hash_i64", INT, offset_of!(Key, hash), TypeIndex::INT))
            .method(
                "__ffi_init__",
                "Constructor that takes any key and computes its structural hash",
                metadata_of("(Any) -> ffi.Object"),
                kTVMFFIFieldFlagBitMaskIsStaticMethod,
                init.clone(),
            )
            .attribute("__ffi_init__", init)
            .attribute("__any_hash__", hash)
            .attribute("__any_equal__", equal),
    ]
}

unsafe extern "C" fn any_hash(key: *const TVMFFIAny) -> TVMFFIAny {
    // SAFETY: the attribute's contract: a valid value.
    let key = unsafe { AnyView::from_raw(*key) };
    outcome(|| parts(&key, "key_obj").map(|(_, hash)| hash.into()))
}

unsafe extern "C" fn any_equal(one: *const TVMFFIAny, other: *const TVMFFIAny) -> TVMFFIAny {
    // SAFETY: as above.
    let (one, other) = unsafe { (AnyView::from_raw(*one), AnyView::from_raw(*other)) };
    outcome(|| keys_equal(&one, &other).map(Any::from))
}
