//! Equality and hashes of values as keys. Strings and bytes are compared by content, small or on the heap. All other
//! values are compared by type and bits: `1`, `true` and `1.0` differ, and so do `0.0` and `-0.0`. An object equals
//! only itself, unless its type has the attributes `__any_hash__` and `__any_equal__`. Rules: upstream's `AnyHash` and
//! `AnyEqual` in any.h.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::LazyLock;

use crate::abi::{TVMFFIAny, TypeIndex};
use crate::any::{Any, AnyView, TryFromAny};
use crate::error::{Error, Result, runtime_error};
use crate::function::Function;
use crate::stable_hash::{self, combine};
use crate::string::bytes_of;
use crate::type_table::AttrColumn;

/// A borrowed value as a key, to look up or to hash.
#[derive(Copy, Clone)]
pub(crate) struct Key<'a> {
    raw: TVMFFIAny,
    /// The content of a string or bytes, with the type index that all their forms share.
    content: Option<(TypeIndex, &'a [u8])>,
    value: PhantomData<&'a Any>,
}

/// The result of comparing two values as keys.
pub(crate) enum Verdict {
    Equal,
    Different,
    /// The attribute `__any_equal__` of their type decides.
    Ask,
}

impl<'a> From<&'a Any> for Key<'a> {
    #[inline]
    fn from(value: &'a Any) -> Self {
        let index = value.type_index();
        Self { raw: *value.as_raw(), content: content(value.as_raw(), index), value: PhantomData }
    }
}

impl<'a> Key<'a> {
    /// The key of an argument. An object in an r-value argument stays there.
    ///
    /// # Errors
    /// As [`AnyView::to_owned`].
    #[inline]
    pub(crate) fn of_view(view: &'a AnyView<'_>) -> Result<Self> {
        let (raw, index) = (view.as_raw(), view.type_index());
        if (TypeIndex::DL_TENSOR_PTR.0..=TypeIndex::OBJECT_RVALUE_REF.0).contains(&index.0) {
            return Self::of_borrowed(view, index);
        }
        Ok(Self { raw, content: content(view.raw_ref(), index), value: PhantomData })
    }

    /// As [`Key::of_view`], for forms that only arguments have.
    fn of_borrowed(view: &'a AnyView<'_>, index: TypeIndex) -> Result<Self> {
        let (raw, content) = match index {
            TypeIndex::RAW_STR => (view.as_raw(), view.str_bytes().map(|bytes| (TypeIndex::STR, bytes))),
            TypeIndex::BYTE_ARRAY_PTR => (view.as_raw(), view.as_bytes().map(|bytes| (TypeIndex::BYTES, bytes))),
            _ => {
                let object = view.borrowed_object();
                let raw = object.map(|object| TVMFFIAny::from_ptr(object.type_index(), object.as_ptr().cast()));
                let content = raw.as_ref().and_then(|raw| {
                    let (index, bytes) = self::content(raw, TypeIndex(raw.type_index))?;
                    // SAFETY: the argument keeps the string alive for `'a`. The string is not a small one, which would
                    // be in `raw`.
                    Some((index, unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }))
                });
                match raw {
                    Some(raw) => return Ok(Self { raw, content, value: PhantomData }),
                    None => (view.as_raw(), None),
                }
            }
        };
        match content {
            Some(_) => Ok(Self { raw, content, value: PhantomData }),
            // Such a value has no owned form, and that error is reported.
            None => Err(view.to_owned().err().unwrap_or_else(|| runtime_error("the value can't be a key"))),
        }
    }

    /// True if values of a type are plain keys. They have an owned form and a plain hash, and
    /// [`compare`](Self::compare) needs no attribute for them.
    #[inline]
    pub(crate) fn is_plain(index: TypeIndex) -> bool {
        index.0 < TypeIndex::DL_TENSOR_PTR.0
            || matches!(index, TypeIndex::SMALL_STR | TypeIndex::SMALL_BYTES | TypeIndex::STR | TypeIndex::BYTES)
    }

    /// The key of a value of a [plain](Key::is_plain) type. It is made in place. [`of_view`](Self::of_view) moves its
    /// result there, and the processor waits for the move.
    #[inline]
    pub(crate) fn of_plain(view: &'a AnyView<'_>) -> Self {
        Self { raw: view.as_raw(), content: content(view.raw_ref(), view.type_index()), value: PhantomData }
    }

    /// The hash; `None` if the type's attribute `__any_hash__` computes it.
    #[inline]
    pub(crate) fn plain_hash(&self) -> Option<u64> {
        match self.content {
            Some((index, bytes)) => Some(combine(index.0 as u64, stable_hash::bytes(bytes))),
            None if self.hook(&ANY_HASH).is_some() => None,
            None => Some(self.hash_with(self.raw.bits())),
        }
    }

    /// The hash.
    ///
    /// # Errors
    /// The error that the type's `__any_hash__` raises; `RuntimeError` if that attribute is not callable.
    #[inline]
    pub(crate) fn hash(&self) -> Result<u64> {
        match self.content {
            None => match self.hook(&ANY_HASH) {
                Some(hook) => call_hook(&hook, &[self.view()]).map(|code: i64| self.hash_with(code.cast_unsigned())),
                None => Ok(self.hash_with(self.raw.bits())),
            },
            Some((index, bytes)) => Ok(combine(index.0 as u64, stable_hash::bytes(bytes))),
        }
    }

    #[inline]
    fn hash_with(&self, value: u64) -> u64 {
        // Values have non-negative type indices.
        combine(self.raw.type_index as u64, value)
    }

    /// Compares without user code.
    #[inline]
    pub(crate) fn compare(&self, other: &Any) -> Verdict {
        let index = other.type_index();
        if self.raw.type_index == index.0 {
            let other = other.as_raw();
            // A small string's length is stored next to its bits, and the bits past its end are zero.
            if self.raw.bits() == other.bits() && (self.is_exact() || self.raw.zero_padding == other.zero_padding) {
                return Verdict::Equal;
            }
            if !index.is_object() {
                return Verdict::Different;
            }
        }
        self.compare_further(other, index)
    }

    /// As [`compare`](Self::compare), for a value of another type index, or two objects.
    #[inline(never)]
    fn compare_further(&self, other: &Any, index: TypeIndex) -> Verdict {
        match self.content {
            Some(own) => match content(other.as_raw(), index) == Some(own) {
                true => Verdict::Equal,
                false => Verdict::Different,
            },
            None if self.raw.type_index == index.0 && self.hook(&ANY_EQUAL).is_some() => Verdict::Ask,
            None => Verdict::Different,
        }
    }

    /// True if equal bits mean an equal value. They don't for a small string: its length is stored next to them.
    #[inline]
    fn is_exact(&self) -> bool {
        !matches!(TypeIndex(self.raw.type_index), TypeIndex::SMALL_STR | TypeIndex::SMALL_BYTES)
    }

    /// True if a value is this key.
    ///
    /// # Errors
    /// The error that the type's `__any_equal__` raises; `RuntimeError` if that attribute is not callable.
    #[inline]
    pub(crate) fn equals(&self, other: &Any) -> Result<bool> {
        match self.compare(other) {
            Verdict::Equal => Ok(true),
            Verdict::Different => Ok(false),
            Verdict::Ask => self.ask(other),
        }
    }

    /// Compares a value in a container with this key, using the type's `__any_equal__`.
    ///
    /// # Errors
    /// As [`Key::equals`].
    #[cold]
    pub(crate) fn ask(&self, other: &Any) -> Result<bool> {
        self.hook(&ANY_EQUAL).map_or(Ok(false), |hook| call_hook(&hook, &[other.as_view(), self.view()]))
    }

    fn view(&self) -> AnyView<'a> {
        // SAFETY: the value is alive for `'a`.
        unsafe { AnyView::from_raw(self.raw) }
    }

    /// An attribute of the type of an object other than a string or bytes.
    #[inline]
    fn hook(&self, column: &LazyLock<AttrColumn>) -> Option<AnyView<'static>> {
        let index = TypeIndex(self.raw.type_index);
        if !index.is_object() { None } else { column.value(index) }
    }
}

/// True if `value` is among `values`.
///
/// # Errors
/// As [`Key::equals`].
pub(crate) fn contains(values: &[Any], value: Key<'_>) -> Result<bool> {
    for candidate in values {
        if value.equals(candidate)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The columns exist from the start, and their values stay.
static ANY_HASH: LazyLock<AttrColumn> = LazyLock::new(|| AttrColumn::named(b"__any_hash__"));
static ANY_EQUAL: LazyLock<AttrColumn> = LazyLock::new(|| AttrColumn::named(b"__any_equal__"));

/// The content of a string or bytes, with the type index that both of its forms share here.
#[inline]
fn content(raw: &TVMFFIAny, index: TypeIndex) -> Option<(TypeIndex, &[u8])> {
    let index = match index {
        TypeIndex::SMALL_STR | TypeIndex::STR => TypeIndex::STR,
        TypeIndex::SMALL_BYTES | TypeIndex::BYTES => TypeIndex::BYTES,
        _ => return None,
    };
    // SAFETY: the type index was checked. The value keeps a heap object alive, and holds a small one.
    unsafe { bytes_of(raw) }.map(|bytes| (index, bytes))
}

/// Calls an attribute with one or two values. It is a function object or the address of C code.
fn call_hook<T: TryFromAny>(hook: &AnyView<'_>, args: &[AnyView<'_>]) -> Result<T> {
    if hook.type_index() == TypeIndex::FUNCTION {
        return hook.cast::<Function>()?.call_packed(args)?.cast();
    }
    let address = if hook.type_index() == TypeIndex::OPAQUE_PTR { hook.as_raw().ptr() } else { std::ptr::null_mut() };
    if address.is_null() {
        return Err(runtime_error("an attribute for keys must be a function or the address of one"));
    }
    // SAFETY: an address in these attributes is a function that takes pointers to that many values and returns an owned
    // value (upstream's `NativeFunctionView`). The code that registered the attribute, through the C API, promised
    // that.
    let result = unsafe { Any::from_raw(call_address(address, args)) };
    if result.type_index() == TypeIndex::ERROR {
        return Err(result.cast::<Error>()?);
    }
    result.cast()
}

/// # Safety
/// `address` must be a function that takes pointers to as many values as there are `args`.
unsafe fn call_address(address: *mut c_void, args: &[AnyView<'_>]) -> TVMFFIAny {
    type Unary = unsafe extern "C" fn(*const TVMFFIAny) -> TVMFFIAny;
    type Binary = unsafe extern "C" fn(*const TVMFFIAny, *const TVMFFIAny) -> TVMFFIAny;
    // SAFETY: promised by the caller; the values are alive for the call.
    unsafe {
        match args {
            [value] => std::mem::transmute::<*mut c_void, Unary>(address)(value.raw_ref()),
            [a, b] => std::mem::transmute::<*mut c_void, Binary>(address)(a.raw_ref(), b.raw_ref()),
            _ => TVMFFIAny::none(),
        }
    }
}
