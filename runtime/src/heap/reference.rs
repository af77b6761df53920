//! Owning handles to any object: [`ObjectRef`] (strong) and [`WeakRef`].
//! Typed handles wrap an `ObjectRef`.
//! Header sections: `TVMFFIObject`, "Basic object API".

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::count;
use crate::abi::*;

/// A strong reference to an object of any type. Cloning adds a reference, dropping releases it.
#[repr(transparent)]
pub struct ObjectRef(NonNull<TVMFFIObject>);

// SAFETY: counts are atomic, and the TVM FFI contract makes every object usable and destroyable on any thread. The code
// that creates an object promises that: a closure must be `Send + Sync`, and a C callback needs an unsafe constructor.
// A handle gives no access to the contents beyond the header.
unsafe impl Send for ObjectRef {}
// SAFETY: as for Send; a shared handle only reads the immutable header and changes atomic counts.
unsafe impl Sync for ObjectRef {}

impl ObjectRef {
    /// Takes ownership of a strong reference; `None` for NULL.
    ///
    /// # Safety
    /// A non-NULL `object` must point to an object. The caller must own a strong reference to it, which moves into the
    /// result.
    #[inline]
    pub unsafe fn from_raw(object: *mut TVMFFIObject) -> Option<Self> {
        NonNull::new(object).map(Self)
    }

    /// Adds a strong reference to a borrowed object; `None` for NULL.
    ///
    /// # Safety
    /// A non-NULL `object` must point to an object that is alive during this call.
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

    /// Releases ownership of the strong reference and returns it as a raw pointer.
    #[inline]
    pub fn into_raw(self) -> *mut TVMFFIObject {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// The object's address; `self` keeps the reference.
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

    /// The current number of strong references.
    pub fn strong_count(&self) -> u32 {
        // SAFETY: the reference keeps the object alive.
        unsafe { count::counts(self.as_ptr()) }.0
    }

    /// The current number of weak references.
    pub fn weak_count(&self) -> u32 {
        // SAFETY: the reference keeps the object alive.
        unsafe { count::counts(self.as_ptr()) }.1
    }

    /// True if this is the only reference of either kind. While you hold `&mut self`, it stays the only one.
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

    /// True if both refer to the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Converts to a typed handle, or returns the reference unchanged when the type differs.
    ///
    /// # Errors
    /// `self`, when the object's type index is not that of `T`, or its layout is not `T`'s ([`AsObject::has_layout`]).
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
        // SAFETY: `self` owns a strong reference, which is released here, once.
        unsafe { count::dec_ref(self.as_ptr()) };
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:p})", self.type_key(), self.0)
    }
}

/// A weak reference: it keeps the storage but not the object alive.
pub struct WeakRef(NonNull<TVMFFIObject>);

// SAFETY: as for `ObjectRef`: counts are atomic, and objects may be used on any thread.
unsafe impl Send for WeakRef {}
// SAFETY: as above.
unsafe impl Sync for WeakRef {}

impl WeakRef {
    /// Returns a strong reference, unless the object has been destroyed.
    pub fn upgrade(&self) -> Option<ObjectRef> {
        // SAFETY: the weak reference keeps the counts alive.
        let upgraded = unsafe { count::try_upgrade(self.0.as_ptr()) };
        // Lazily: creating and then dropping an `ObjectRef` would release a reference.
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
        // SAFETY: `self` owns a weak reference, which is released here, once.
        unsafe { count::dec_weak(self.0.as_ptr()) };
    }
}

impl fmt::Debug for WeakRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakRef({:p})", self.0)
    }
}

/// A typed handle: an [`ObjectRef`] to an object of one known type.
///
/// # Safety
/// The type must be `repr(transparent)` over [`ObjectRef`], and objects of `TYPE_INDEX` for which
/// `has_layout` holds must have the layout that the handle's methods read.
pub unsafe trait AsObject: Sized {
    /// The type index of its objects.
    const TYPE_INDEX: TypeIndex;

    /// Borrows the untyped handle.
    fn as_object(&self) -> &ObjectRef;

    /// Converts into the untyped handle.
    fn into_object(self) -> ObjectRef;

    /// True if an object of `TYPE_INDEX` has the layout of this type; always true if the header fixes the layout.
    fn has_layout(_object: &ObjectRef) -> bool {
        true
    }

    /// True if an object is of this type: its type index is `TYPE_INDEX` and its layout is this type's.
    fn is_object(object: &ObjectRef) -> bool {
        object.type_index() == Self::TYPE_INDEX && Self::has_layout(object)
    }

    /// Converts an untyped handle to this type.
    ///
    /// # Safety
    /// The object's type index must be `TYPE_INDEX`, and [`AsObject::has_layout`] must hold for it.
    unsafe fn from_object_unchecked(object: ObjectRef) -> Self;
}
