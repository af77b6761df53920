//! Arrays: immutable sequences of values.
//! Layout: header, `TVMFFISeqCell`, the elements; C++ code may store the elements elsewhere.
//! Header sections: `kTVMFFIArray`, `TVMFFISeqCell`.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use super::seq;
use crate::abi::TypeIndex;
use crate::any::Any;
use crate::equality;
use crate::error::{Result, object_wrapper};
use crate::heap::ObjectRef;

/// An immutable sequence of values, `ffi.Array`. An untyped array dereferences to `[Any]`. An array of a
/// [`ContainerItem`](super::ContainerItem) type was checked when the handle was made, and returns elements of that
/// type.
#[repr(transparent)]
pub struct Array<T = Any>(pub(super) ObjectRef, pub(super) PhantomData<fn() -> T>);

object_wrapper!(Array[PhantomData], TypeIndex::ARRAY);

impl Array {
    /// The elements.
    pub fn as_slice(&self) -> &[Any] {
        // SAFETY: the cell describes elements that live as long as the object. They do not change: upstream's
        // copy-on-write only changes an array to which it holds the one reference.
        unsafe { seq::values_of(seq::cell_of(&self.0).as_ref()) }
    }

    /// True if some element equals `value`, with the equality of [`Map`](super::Map) keys.
    ///
    /// # Errors
    /// The error of an `__any_equal__` attribute of an element's type.
    pub fn contains(&self, value: &Any) -> Result<bool> {
        equality::contains(self, value.into())
    }
}

impl Array {
    /// An array of the first `count` of these values, constructed in place.
    ///
    /// # Errors
    /// The first error of a value.
    pub(super) fn try_from_values(count: usize, values: impl Iterator<Item = Result<Any>>) -> Result<Self> {
        seq::try_new_inline::<{ TypeIndex::ARRAY.0 }, _>(count, values).map(|object| Self(object, PhantomData))
    }
}

impl From<Vec<Any>> for Array {
    fn from(values: Vec<Any>) -> Self {
        Self(seq::new_inline::<{ TypeIndex::ARRAY.0 }>(values), PhantomData)
    }
}

impl<T: Into<Any>> FromIterator<T> for Array {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        values.into_iter().map(T::into).collect::<Vec<Any>>().into()
    }
}

impl Default for Array {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl Deref for Array {
    type Target = [Any];

    fn deref(&self) -> &[Any] {
        self.as_slice()
    }
}

impl<'a> IntoIterator for &'a Array {
    type Item = &'a Any;
    type IntoIter = std::slice::Iter<'a, Any>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}
