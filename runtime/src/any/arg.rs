//! Arguments of a call: [`Arg`], and the trait of what can be one.

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
        // SAFETY: what the value points at lives for `'a` or as long as `self`.
        unsafe { AnyView::from_raw(self.raw) }
    }

    /// A borrowed value.
    #[inline]
    pub(super) fn raw(raw: TVMFFIAny) -> Self {
        Self { raw, owned: false, borrow: PhantomData }
    }

    #[inline]
    pub(super) fn plain(index: TypeIndex, bits: u64) -> Self {
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
pub trait ToAnyView {
    /// The argument; it borrows from `self` where it can.
    ///
    /// Text of more than seven bytes without a NUL, and bytes of more than seven, have no borrowed
    /// form in the ABI that a `&str` or `&[u8]` could give: they are copied to the heap. Pass
    /// `&CStr`, [`Str`](crate::Str) or [`Bytes`](crate::Bytes) where that matters.
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
