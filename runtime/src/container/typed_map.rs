//! `Map<K, V>` and `Dict<K, V>`: handles to maps and dicts with keys of type `K` and values of type `V`.

use std::fmt;
use std::marker::PhantomData;

use super::collections::element;
use super::dict::Dict;
use super::item::{ContainerItem, checked, is_stored_so};
use super::map::Map;
use super::plain_key::PlainKey;
use crate::any::{Any, AnyView, Arg, ToAnyView, TryFromAny, try_from_any};
use crate::error::Result;
use crate::heap::ObjectRef;

/// The converted entries, or `None` when every entry is already stored in converted form.
///
/// # Errors
/// The error of the first key that isn't a `K`, or value that isn't a `V`.
#[track_caller]
fn converted<K: ContainerItem, V: TryFromAny + Into<Any>>(map: &Map) -> Result<Option<Vec<(Any, Any)>>> {
    let mut all_stored = true;
    let mut made = Vec::with_capacity(map.len());
    for (place, (key, value)) in map.iter().enumerate() {
        let new_key: Any = element::<K>(key, format_args!("key {place}"))?.into();
        let new_value: Any = element::<V>(value, format_args!("value {place}"))?.into();
        all_stored &= is_stored_so(key, &new_key) && is_stored_so(value, &new_value);
        made.push((new_key, new_value));
    }
    Ok(Some(made).filter(|_| !all_stored))
}

macro_rules! typed_maps {
    ($($name:ident, $what:literal, $entries:expr;)*) => {$(
        impl<K, V> Clone for $name<K, V> {
            fn clone(&self) -> Self {
                Self(self.0.clone(), PhantomData)
            }
        }

        impl<K, V> $name<K, V> {
            /// The same object with entries of any types.
            pub fn into_untyped(self) -> $name {
                $name(self.0, PhantomData)
            }

            /// The same object with entries of any types.
            pub fn as_untyped(&self) -> &$name {
                // SAFETY: both are transparent wrappers of an `ObjectRef`.
                unsafe { &*std::ptr::from_ref(self).cast() }
            }
        }

        impl $name {
            #[doc = concat!("The ", $what, " with its entries checked.")]
            ///
            /// Returns the same object if the entries are already stored as `K`s and `V`s. Otherwise it returns a copy
            /// with converted entries, as upstream does.
            ///
            /// # Errors
            /// `TypeError` or `ValueError` for the first key or value that doesn't convert; the error of a key's
            /// `__any_hash__` or `__any_equal__`.
            #[track_caller]
            pub fn into_typed<K: ContainerItem, V: TryFromAny + Into<Any>>(self) -> Result<$name<K, V>> {
                let object = match converted::<K, V>(&$entries(&self))? {
                    None => self.0,
                    Some(made) => <$name>::try_from_entries(made)?.0,
                };
                Ok($name(object, PhantomData))
            }
        }

        impl<K: ContainerItem, V: TryFromAny + Into<Any>> TryFromAny for $name<K, V> {
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                checked(view, $name::into_typed)
            }
        }

        impl<K: ContainerItem, V> ToAnyView for $name<K, V> {
            fn to_arg(&self) -> Arg<'_> {
                self.as_untyped().to_arg()
            }
        }

        impl<K: ContainerItem, V> From<$name<K, V>> for Any {
            fn from(entries: $name<K, V>) -> Self {
                entries.0.into()
            }
        }

        impl<K: ContainerItem, V> From<$name<K, V>> for ObjectRef {
            fn from(entries: $name<K, V>) -> Self {
                entries.0
            }
        }

        impl<K: ContainerItem, V> From<$name<K, V>> for $name {
            fn from(entries: $name<K, V>) -> Self {
                entries.into_untyped()
            }
        }

        impl<K: PlainKey + ContainerItem, V: TryFromAny + Into<Any>> FromIterator<(K, V)> for $name<K, V> {
            fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
                Self(<$name>::from_iter(entries).0, PhantomData)
            }
        }

        impl<K: ContainerItem, V> Default for $name<K, V> {
            fn default() -> Self {
                Self(<$name>::default().0, PhantomData)
            }
        }

        impl<K: ContainerItem, V> fmt::Debug for $name<K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.as_untyped().fmt(f)
            }
        }

        try_from_any!([K: ContainerItem, V: TryFromAny + Into<Any>] $name<K, V>);
    )*};
}
typed_maps! {
    Map, "map", <Map>::clone;
    Dict, "dict", <Dict>::to_map;
}

/// A map from `K`s to `V`s. Its entries were checked when the handle was made, and don't change.
///
/// ```
/// use tvm_ffi_runtime::Map;
///
/// let ages: Map<String, i64> = [("ann".to_owned(), 30), ("bob".to_owned(), 40)].into_iter().collect();
/// assert_eq!(ages.get("bob")?, Some(40));
/// assert_eq!(ages.values().sum::<i64>(), 70);
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
impl<K: ContainerItem, V: TryFromAny + Into<Any>> Map<K, V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.as_untyped().len()
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The error of the key's `__any_hash__` or `__any_equal__`, or of a user-defined conversion that now rejects a
    /// value it accepted when the map was checked.
    pub fn get<Q: ToAnyView + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        self.as_untyped().get(key)?.map(Any::cast).transpose()
    }

    /// True if the map has an entry for `key`.
    ///
    /// # Errors
    /// The error of the key's `__any_hash__` or `__any_equal__`.
    pub fn contains_key<Q: ToAnyView + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.as_untyped().contains_key(key)
    }

    /// The entries in insertion order, without those that a user-defined conversion now rejects.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, V)> {
        self.as_untyped().iter().filter_map(|(key, value)| Some((key.cast().ok()?, value.cast().ok()?)))
    }

    /// The keys of the entries that [`Map::iter`] returns.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values of the entries that [`Map::iter`] returns.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = V> {
        self.iter().map(|(_, value)| value)
    }
}

/// A dict from `K`s to `V`s. If another handle stores a value of another type, reading that value is an error.
impl<K: ContainerItem, V: TryFromAny + Into<Any>> Dict<K, V> {
    /// Number of entries at this moment.
    pub fn len(&self) -> usize {
        self.as_untyped().len()
    }

    /// True if there are no entries at this moment.
    pub fn is_empty(&self) -> bool {
        self.as_untyped().is_empty()
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The error of the key's `__any_hash__` or `__any_equal__`; `TypeError` or `ValueError` when the value isn't a
    /// `V`.
    pub fn get<Q: ToAnyView + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        self.as_untyped().get(key)?.map(|value| value.cast()).transpose()
    }

    /// True if the dict has an entry for `key`.
    ///
    /// # Errors
    /// The error of the key's `__any_hash__` or `__any_equal__`.
    pub fn contains_key<Q: ToAnyView + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.as_untyped().contains_key(key)
    }

    /// Sets the value of `key` and returns the old one, which may be of any type.
    ///
    /// # Errors
    /// The error of a key's `__any_hash__` or `__any_equal__`; nothing is changed then.
    pub fn insert(&self, key: K, value: V) -> Result<Option<Any>> {
        self.as_untyped().insert(key, value)
    }

    /// Removes the entry of `key` and returns its value, which may be of any type.
    ///
    /// # Errors
    /// The error of the key's `__any_hash__` or `__any_equal__`; nothing is changed then.
    pub fn remove<Q: ToAnyView + ?Sized>(&self, key: &Q) -> Result<Option<Any>> {
        self.as_untyped().remove(key)
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.as_untyped().clear();
    }

    /// A copy of the entries as they are at this moment.
    ///
    /// # Errors
    /// `TypeError` or `ValueError` for the first key that isn't a `K`, or value that isn't a `V`.
    pub fn to_map(&self) -> Result<Map<K, V>> {
        self.as_untyped().to_map().into_typed()
    }
}
