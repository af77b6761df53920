//! Arguments of a call: [`Arg`] and the trait [`ToArg`], which types that can be arguments implement.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;

use super::value::{Any, AnyView};
use crate::abi::*;

/// An argument: a borrowed value, or an owned one that lives until the call is over.
pub struct Arg<'a> {
    raw: TVMFFIAny,
    owned: bool,
    borrow: PhantomData<&'a ()>,
}

impl<'a> Arg<'a> {
    /// A borrowed value.
    #[inline]
    pub fn view(view: AnyView<'a>) -> Self {
        Self::raw(view.as_raw())
    }

    /// An owned value.
    #[inline]
    pub fn owned(value: Any) -> Self {
        Self { raw: value.into_raw(), owned: true, borrow: PhantomData }
    }

    /// The value, for as long as the argument lives.
    #[inline]
    pub fn as_view(&self) -> AnyView<'_> {
        // SAFETY: the memory that the value points to lives for `'a` or as long as `self`.
        unsafe { AnyView::from_raw(self.raw) }
    }

    /// A borrowed value.
    #[inline]
    pub(super) fn raw(raw: TVMFFIAny) -> Self {
        Self { raw, owned: false, borrow: PhantomData }
    }

    #[inline]
    pub(crate) fn plain(index: TypeIndex, bits: u64) -> Self {
        Self::raw(TVMFFIAny::from_bits(index, bits))
    }

    #[inline]
    pub(crate) fn pointer(index: TypeIndex, ptr: *mut c_void) -> Self {
        Self::raw(TVMFFIAny::from_ptr(index, ptr))
    }
}

impl fmt::Debug for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arg").field("value", &self.as_view()).field("owned", &self.owned).finish()
    }
}

impl Drop for Arg<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: an owned argument was made from an `Any`, which is dropped here, once.
            drop(unsafe { Any::from_raw(self.raw) });
        }
    }
}

/// A value that can be an argument of a call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be an argument of a call",
    label = "expected a value of TVM FFI, or a reference to one",
    note = "pointers become arguments with `AnyView::from_opaque_ptr` and `AnyView::from_dl_tensor`, which are `unsafe`"
)]
pub trait ToAnyView {
    /// Converts to an argument, which borrows from `self` if possible.
    ///
    /// The ABI can't borrow from a `&str` or `&[u8]` with more than seven bytes: a string must end with NUL, and bytes
    /// need a separate descriptor. So longer ones are copied to the heap. To avoid the copy, pass `&CStr`,
    /// [`Str`](crate::Str) or [`Bytes`](crate::Bytes).
    fn to_arg(&self) -> Arg<'_>;
}

impl<T: ToAnyView + ?Sized> ToAnyView for &T {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        (**self).to_arg()
    }
}

impl<T: ToAnyView + ?Sized> ToAnyView for &mut T {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        (**self).to_arg()
    }
}

impl<T: ToAnyView> ToAnyView for Option<T> {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        match self {
            Some(value) => value.to_arg(),
            None => Arg::view(AnyView::none()),
        }
    }
}

impl ToAnyView for Any {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::view(self.as_view())
    }
}

impl ToAnyView for AnyView<'_> {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::view(*self)
    }
}
