//! Owning handles over any object: [`ObjectRef`] (strong) and [`WeakRef`].
//! Typed handles wrap an `ObjectRef`.
//! Header sections: `TVMFFIObject`, "Basic object API".

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::count;
use crate::abi::*;

/// A strong reference to an object of any type. Cloning adds a reference, dropping gives it up.
#[repr(transparent)]
pub struct ObjectRef(NonNull<TVMFFIObject>);

// SAFETY: counts are atomic, and the TVM FFI contract makes every object usable and destroyable on
// any thread: whoever creates one (a closure must be Send + Sync; a C callback comes through an
// unsafe constructor) promises that. A handle gives no access to the contents beyond the header.
unsafe impl Send for ObjectRef {}
// SAFETY: as for Send; a shared handle only reads the immutable header and changes atomic counts.
unsafe impl Sync for ObjectRef {}

impl ObjectRef {
    /// Takes over a strong reference; `None` for NULL.
    ///
    /// # Safety
    /// A non-NULL `object` must point at an object of which the caller owns a strong reference,
    /// which moves into the result.
    #[inline]
    pub unsafe fn from_raw(object: *mut TVMFFIObject) -> Option<Self> {
        NonNull::new(object).map(Self)
    }

    /// Adds a strong reference to a borrowed object; `None` for NULL.
    ///
    /// # Safety
    /// A non-NULL `object` must point at an object that is alive during this call.
    #[inline]
    pub unsafe fn clone_from_raw(object: *mut TVMFFIObject) -> Option<Self> {
        let object = NonNull::new(object)?;
        // SAFETY: the object is alive by contract.
        unsafe { count::inc_ref(object.as_ptr()) };
        Some(Self(object))
    }

    /// # Safety
    /// The caller owns a strong reference, which moves into the result.
    #[inline]
    pub(crate) unsafe fn from_non_null<T>(object: NonNull<T>) -> Self {
        Self(object.cast())
    }

    /// Gives the strong reference away as a raw pointer.
    #[inline]
    pub fn into_raw(self) -> *mut TVMFFIObject {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// The object's address; the reference stays with `self`.
    #[inline]
    pub fn as_ptr(&self) -> *mut TVMFFIObject {
        self.0.as_ptr()
    }

    /// The object's type index.
    #[inline]
    pub fn type_index(&self) -> TypeIndex {
        // SAFETY: the reference keeps the object alive, and its type index never changes.
        TypeIndex(unsafe { (*self.as_ptr()).type_index })
    }

    /// The object's type key, such as `ffi.Tensor`.
    pub fn type_key(&self) -> String {
        crate::type_info::key_of(self.type_index())
    }

    /// Number of strong references at this moment.
    pub fn strong_count(&self) -> u32 {
        // SAFETY: the reference keeps the object alive.
        unsafe { count::counts(self.as_ptr()) }.0
    }

    /// Number of weak references at this moment.
    pub fn weak_count(&self) -> u32 {
        // SAFETY: the reference keeps the object alive.
        unsafe { count::counts(self.as_ptr()) }.1
    }

    /// Whether this is the only reference of either kind. With `&mut self` it then stays so.
    pub fn is_unique(&self) -> bool {
        // SAFETY: the reference keeps the object alive.
        unsafe { count::counts(self.as_ptr()) == (1, 0) }
    }

    /// A weak reference to the same object.
    pub fn downgrade(&self) -> WeakRef {
        // SAFETY: the strong reference keeps the object alive.
        unsafe { count::inc_weak(self.as_ptr()) };
        WeakRef(self.0)
    }

    /// Whether both refer to the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Converts to a typed handle, or gives the reference back when the type differs.
    ///
    /// # Errors
    /// `self`, when the object's type index is not the one of `T`, or its layout is not
    /// ([`AsObject::has_layout`]).
    pub fn downcast<T: AsObject>(self) -> Result<T, ObjectRef> {
        if T::is_object(&self) {
            // SAFETY: both conditions were checked.
            Ok(unsafe { T::from_object_unchecked(self) })
        } else {
            Err(self)
        }
    }
}

impl Clone for ObjectRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: `self` keeps the object alive.
        unsafe { count::inc_ref(self.as_ptr()) };
        Self(self.0)
    }
}

impl Drop for ObjectRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` owns a strong reference and gives it up here, once.
        unsafe { count::dec_ref(self.as_ptr()) };
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:p})", self.type_key(), self.0)
    }
}

/// A weak reference: it keeps the storage, not the object.
pub struct WeakRef(NonNull<TVMFFIObject>);

// SAFETY: as for `ObjectRef`: counts are atomic, and objects may be used on any thread.
unsafe impl Send for WeakRef {}
// SAFETY: as above.
unsafe impl Sync for WeakRef {}

impl WeakRef {
    /// A strong reference, unless the object is destroyed.
    pub fn upgrade(&self) -> Option<ObjectRef> {
        // SAFETY: the weak reference keeps the counts alive.
        let upgraded = unsafe { count::try_upgrade(self.0.as_ptr()) };
        // Lazily: an `ObjectRef` that is made and dropped would give up a reference.
        upgraded.then(|| ObjectRef(self.0))
    }
}

impl Clone for WeakRef {
    fn clone(&self) -> Self {
        // SAFETY: `self` holds a weak reference.
        unsafe { count::inc_weak(self.0.as_ptr()) };
        Self(self.0)
    }
}

impl Drop for WeakRef {
    fn drop(&mut self) {
        // SAFETY: `self` owns a weak reference and gives it up here, once.
        unsafe { count::dec_weak(self.0.as_ptr()) };
    }
}

impl fmt::Debug for WeakRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakRef({:p})", self.0)
    }
}

/// A typed handle: an [`ObjectRef`] whose object is known to have one type.
///
/// # Safety
/// The type must be `repr(transparent)` over [`ObjectRef`], and objects of `TYPE_INDEX` for which
/// `has_layout` holds must have the layout that the handle's methods read.
pub unsafe trait AsObject: Sized {
    /// The type index of its objects.
    const TYPE_INDEX: TypeIndex;

    /// The untyped handle.
    fn as_object(&self) -> &ObjectRef;

    /// The untyped handle, moved out.
    fn into_object(self) -> ObjectRef;

    /// Whether an object of `TYPE_INDEX` has that layout: always where the header fixes it.
    fn has_layout(_object: &ObjectRef) -> bool {
        true
    }

    /// The test whether an object is of this type: its type index is `TYPE_INDEX`, and its layout is this type's.
    fn is_object(object: &ObjectRef) -> bool {
        object.type_index() == Self::TYPE_INDEX && Self::has_layout(object)
    }

    /// The typed handle of an object.
    ///
    /// # Safety
    /// The object's type index must be `TYPE_INDEX`, and [`AsObject::has_layout`] hold for it.
    unsafe fn from_object_unchecked(object: ObjectRef) -> Self;
}
