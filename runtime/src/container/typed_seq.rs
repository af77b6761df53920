//! `Array<T>` and `List<T>`: handles to arrays and lists with elements of type `T`.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use super::array::Array;
use super::collections::element;
use super::item::{ContainerItem, checked, is_stored_so};
use super::list::List;
use crate::any::{Any, AnyView, Arg, ToAnyView, TryFromAny, try_from_any};
use crate::error::Result;
use crate::heap::ObjectRef;

/// The converted elements, or `None` when every element is already stored in converted form.
///
/// # Errors
/// The error of the first element that isn't a `T`.
#[track_caller]
fn converted<T: ContainerItem>(values: &[Any]) -> Result<Option<Vec<Any>>> {
    let mut all_stored = true;
    let mut made = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let item: Any = element::<T>(value, format_args!("element {index}"))?.into();
        all_stored &= is_stored_so(value, &item);
        made.push(item);
    }
    Ok(Some(made).filter(|_| !all_stored))
}

macro_rules! typed_sequences {
    ($($name:ident, $what:literal;)*) => {$(
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                Self(self.0.clone(), PhantomData)
            }
        }

        impl<T> $name<T> {
            /// The same object as a sequence of elements of any type.
            pub fn into_untyped(self) -> $name {
                $name(self.0, PhantomData)
            }

            /// The same object as a sequence of elements of any type.
            pub fn as_untyped(&self) -> &$name {
                // SAFETY: both are transparent wrappers of an `ObjectRef`.
                unsafe { &*std::ptr::from_ref(self).cast() }
            }
        }

        impl $name {
            #[doc = concat!("The ", $what, " with its elements checked.")]
            ///
            /// Returns the same object if its elements are already stored as `T`s. Otherwise it returns a copy with
            /// converted elements, as upstream does.
            ///
            /// # Errors
            /// `TypeError` or `ValueError` for the first element that doesn't convert.
            #[track_caller]
            pub fn into_typed<T: ContainerItem>(self) -> Result<$name<T>> {
                let made = converted::<T>(&self.to_vec())?;
                Ok($name(made.map_or(self.0, |made| <$name>::from(made).0), PhantomData))
            }
        }

        impl<T: ContainerItem> TryFromAny for $name<T> {
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                checked(view, $name::into_typed)
            }
        }

        impl<T: ContainerItem> ToAnyView for $name<T> {
            fn to_arg(&self) -> Arg<'_> {
                self.as_untyped().to_arg()
            }
        }

        impl<T: ContainerItem> From<$name<T>> for Any {
            fn from(values: $name<T>) -> Self {
                values.0.into()
            }
        }

        impl<T: ContainerItem> From<$name<T>> for ObjectRef {
            fn from(values: $name<T>) -> Self {
                values.0
            }
        }

        impl<T: ContainerItem> From<$name<T>> for $name {
            fn from(values: $name<T>) -> Self {
                values.into_untyped()
            }
        }

        impl<T: ContainerItem> FromIterator<T> for $name<T> {
            fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
                Self(<$name>::from_iter(values).0, PhantomData)
            }
        }

        impl<T: ContainerItem> Default for $name<T> {
            fn default() -> Self {
                Self(<$name>::default().0, PhantomData)
            }
        }

        impl<T: ContainerItem> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.as_untyped().fmt(f)
            }
        }

        try_from_any!([T: ContainerItem] $name<T>);
    )*};
}
typed_sequences! {
    Array, "array";
    List, "list";
}

/// An array of `T`s. Its elements were checked when the handle was made, and don't change.
///
/// ```
/// use tvm_ffi_runtime::{Any, Array, Function};
///
/// let numbers: Array<i64> = [1, 2, 3].into_iter().collect();
/// assert_eq!(numbers.get(1), Some(2));
/// assert_eq!(numbers.iter().sum::<i64>(), 6);
///
/// let sum = Function::from_typed(|numbers: Array<i64>| numbers.iter().sum::<i64>());
/// assert_eq!(sum.call_as::<i64>((&numbers,))?, 6);
/// let mixed = Array::from(vec![Any::from(1), Any::from("x")]);
/// let message = sum.call((&mixed,)).unwrap_err().to_string();
/// assert!(message.ends_with("Expected `Array<int>` but got `Array[index 1: ffi.SmallStr]`"));
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
impl<T: ContainerItem> Array<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.as_untyped().as_slice().len()
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`; `None` past the end.
    ///
    /// The result is also `None` when a user-defined conversion now rejects an element that it accepted when the array
    /// was checked.
    pub fn get(&self, index: usize) -> Option<T> {
        self.as_untyped().as_slice().get(index)?.cast().ok()
    }

    /// The elements that [`Array::get`] returns.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> {
        self.as_untyped().as_slice().iter().filter_map(|value| value.cast().ok())
    }

    /// The elements that [`Array::get`] returns.
    pub fn to_vec(&self) -> Vec<T> {
        self.iter().collect()
    }
}

/// A list of `T`s. If another handle stores an element that isn't a `T`, reading that element is an error.
///
/// ```
/// use tvm_ffi_runtime::List;
///
/// let names: List<String> = ["a".to_owned()].into_iter().collect();
/// names.push("b".to_owned());
/// assert_eq!(names.get(1)?, Some("b".to_owned()));
/// names.as_untyped().push(3);
/// assert_eq!(names.get(2).unwrap_err().message(), "element 2: expected ffi.String, got int");
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
impl<T: ContainerItem> List<T> {
    /// Number of elements at this moment.
    pub fn len(&self) -> usize {
        self.as_untyped().len()
    }

    /// True if the list has no elements at this moment.
    pub fn is_empty(&self) -> bool {
        self.as_untyped().is_empty()
    }

    /// The element at `index`.
    ///
    /// # Errors
    /// `TypeError` or `ValueError` when the element isn't a `T`.
    pub fn get(&self, index: usize) -> Result<Option<T>> {
        let value = self.as_untyped().get(index);
        value.map(|value| element(&value, format_args!("element {index}"))).transpose()
    }

    /// All elements as they are at this moment.
    ///
    /// # Errors
    /// `TypeError` or `ValueError` for the first element that isn't a `T`.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let values = self.as_untyped().to_vec();
        values.iter().enumerate().map(|(index, value)| element(value, format_args!("element {index}"))).collect()
    }

    /// Adds an element at the end.
    pub fn push(&self, value: T) {
        self.as_untyped().push(value);
    }

    /// Appends elements in one step, so they are adjacent.
    pub fn extend(&self, values: impl IntoIterator<Item = T>) {
        self.as_untyped().extend(values);
    }

    /// Replaces the element at `index`.
    ///
    /// # Errors
    /// `IndexError` when there is no such element.
    pub fn set(&self, index: usize, value: T) -> Result<()> {
        self.as_untyped().set(index, value)
    }

    /// Adds an element before the one at `index`, or at the end.
    ///
    /// # Errors
    /// `IndexError` when `index` is beyond the end.
    pub fn insert(&self, index: usize, value: T) -> Result<()> {
        self.as_untyped().insert(index, value)
    }

    /// Removes and returns the element at `index`.
    ///
    /// # Errors
    /// `IndexError` when there is no such element; `TypeError` or `ValueError` when the element isn't a `T`. In the
    /// latter case it is removed anyway.
    pub fn remove(&self, index: usize) -> Result<T> {
        element(&self.as_untyped().remove(index)?, format_args!("element {index}"))
    }

    /// Removes and returns the last element.
    ///
    /// # Errors
    /// `TypeError` or `ValueError` when the element isn't a `T`. It is removed anyway.
    pub fn pop(&self) -> Result<Option<T>> {
        self.as_untyped().pop().map(|value| element(&value, "last element")).transpose()
    }

    /// Replaces the elements in `range` with `values`.
    ///
    /// # Errors
    /// `IndexError` when the range ends before its start or extends past the list's end.
    pub fn replace_range(&self, range: Range<usize>, values: impl IntoIterator<Item = T>) -> Result<()> {
        self.as_untyped().replace_range(range, values)
    }

    /// Removes all elements.
    pub fn clear(&self) {
        self.as_untyped().clear();
    }
}
