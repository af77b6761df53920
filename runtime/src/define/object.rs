//! References to objects whose type is defined in Rust.

use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::Deref;

use super::registration::Registration;
use super::slot::TypeSlot;
use crate::abi::{TVMFFIObject, TVMFFITypeInfo, TypeIndex};
use crate::any::{Any, AnyView, Arg, ToAnyView, TryFromAny};
use crate::container::ContainerItem;
use crate::error::{Error, Result, type_mismatch};
use crate::heap::{ObjectLayout, ObjectRef, WeakRef, make_object_with_index, release_one};
use crate::type_info;
use crate::typed::TypeSchema;

/// A type whose values are objects. `#[derive(Object)]` implements it.
///
/// ```
/// use tvm_ffi_runtime::{Any, Array, Error, Obj, Object};
///
/// /// A place in the plane.
/// #[derive(Object)]
/// #[object(key = "docs.Point")]
/// struct Point {
///     /// To the right.
///     x: i64,
///     y: i64,
/// }
///
/// let point = Obj::new(Point { x: 3, y: 4 })?;
/// let array: Array = [point.clone()].into_iter().collect();
/// let again: Obj<Point> = array[0].cast()?;
/// assert_eq!((again.x, again.y), (3, 4));
/// assert_eq!(Any::from(again).type_key(), "docs.Point");
/// # Ok::<(), Error>(())
/// ```
///
/// # Safety
/// [`describe`](Object::describe) must describe the fields correctly. `Parent` must be [`Root`] or the type of a field
/// at offset 0 of the value. The values of both types must be at the same offset in their objects.
pub unsafe trait Object: Send + Sync + Sized + 'static {
    /// The type that this one extends.
    type Parent: Ancestor;

    /// The type key, which must be unique in the process.
    const TYPE_KEY: &'static str;

    /// The slot that stores the type's index.
    #[doc(hidden)]
    fn slot() -> &'static TypeSlot;

    /// Describes the fields and methods.
    ///
    /// # Errors
    /// The errors of creating values for the description, such as defaults.
    #[doc(hidden)]
    fn describe(registration: &mut Registration<Self>) -> Result<()>;
}

/// A type that other types can extend: [`Root`], or any [`Object`].
pub trait Ancestor: sealed::Sealed {
    /// Number of ancestors.
    #[doc(hidden)]
    const DEPTH: i32;

    /// The type's index. Registers the type if necessary.
    ///
    /// # Errors
    /// `RuntimeError` when the type can't be registered: there is no runtime, or other code has registered the key.
    fn type_index() -> Result<TypeIndex>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Root {}
    impl<T: super::Object> Sealed for T {}
}

/// The root type of all objects, `ffi.Object`.
#[derive(Copy, Clone, Debug)]
pub enum Root {}

impl Ancestor for Root {
    const DEPTH: i32 = 0;

    fn type_index() -> Result<TypeIndex> {
        Ok(TypeIndex::OBJECT)
    }
}

/// The layout of an object: its header and the value of its type.
#[repr(C)]
pub(super) struct Body<T> {
    header: TVMFFIObject,
    value: T,
}

// SAFETY: repr(C) with the header first.
unsafe impl<T> ObjectLayout for Body<T> {
    // A placeholder: objects are created with the type's own index.
    const TYPE_INDEX: TypeIndex = TypeIndex::OBJECT;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller.
        unsafe { (&raw mut (*object).value).drop_in_place() };
    }
}

/// The offset of the value in an object.
pub const fn value_offset<T>() -> usize {
    offset_of!(Body<T>, value)
}

/// The size of an object.
pub(super) const fn size<T>() -> usize {
    size_of::<Body<T>>()
}

/// A reference to an object of type `T` or of a type that extends `T`. Cloning adds a reference.
#[repr(transparent)]
pub struct Obj<T>(ManuallyDrop<ObjectRef>, PhantomData<T>);

impl<T: Object> Obj<T> {
    /// Creates an object.
    ///
    /// # Errors
    /// `RuntimeError` when the type can't be registered, as for [`Ancestor::type_index`].
    pub fn new(value: T) -> Result<Self> {
        let index = T::type_index()?;
        let object = make_object_with_index(index, |header| Body { header, value });
        // SAFETY: `make_object_with_index` returns the object's one strong reference.
        Ok(Self(ManuallyDrop::new(unsafe { ObjectRef::from_non_null(object) }), PhantomData))
    }

    /// Borrows the untyped reference.
    pub fn as_object(&self) -> &ObjectRef {
        &self.0
    }

    /// Converts into the untyped reference.
    pub fn into_object(self) -> ObjectRef {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once, since `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Creates a weak reference to the object.
    pub fn downgrade(&self) -> WeakRef {
        self.0.downgrade()
    }

    /// True if both refer to the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// Converts to a reference of the parent type.
    pub fn upcast(self) -> Obj<T::Parent>
    where
        T::Parent: Object,
    {
        // SAFETY: an object of `T` is also an object of every type that `T` extends.
        unsafe { Obj::from_object_unchecked(self.into_object()) }
    }

    /// Converts to a reference of a type that extends `T`.
    ///
    /// # Errors
    /// `self`, when the object is not a `U`.
    pub fn downcast<U: Object>(self) -> Result<Obj<U>, Self> {
        if is_instance::<U>(&self.0) {
            // SAFETY: the type was checked.
            return Ok(unsafe { Obj::from_object_unchecked(self.into_object()) });
        }
        Err(self)
    }

    /// # Safety
    /// The object must be of type `T` or of a type that extends it.
    unsafe fn from_object_unchecked(object: ObjectRef) -> Self {
        Self(ManuallyDrop::new(object), PhantomData)
    }
}

/// True if an object is of type `T` or of a type that extends it.
fn is_instance<T: Object>(object: &ObjectRef) -> bool {
    // A type that isn't registered has no objects.
    let Some(wanted) = T::slot().get() else { return false };
    let index = object.type_index();
    index == wanted || extends(index, wanted, T::DEPTH)
}

fn extends(index: TypeIndex, ancestor: TypeIndex, depth: i32) -> bool {
    let Some(info) = type_info::of_registered(index.0) else { return false };
    // SAFETY: infos are never freed, and a type of depth n has n ancestors, which never change.
    unsafe {
        let info: &TVMFFITypeInfo = &*info;
        info.type_depth > depth && (**info.type_ancestors.add(depth as usize)).type_index == ancestor.0
    }
}

impl<T> Drop for Obj<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken once, here.
        let object = unsafe { ManuallyDrop::take(&mut self.0) };
        // `release_one` handles chains of objects of any length.
        release_one(object);
    }
}

impl<T> Clone for Obj<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T: Object> Deref for Obj<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the object is of type `T` or extends it, so a `T` follows the header. It lives as long as this
        // reference. No code changes it, because a lock protects the fields that others may write.
        unsafe { &(*self.0.as_ptr().cast::<Body<T>>()).value }
    }
}

impl<T: Object> fmt::Debug for Obj<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_object().fmt(f)
    }
}

impl<T: Object> ToAnyView for Obj<T> {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        self.as_object().to_arg()
    }
}

impl<T: Object> From<Obj<T>> for ObjectRef {
    fn from(object: Obj<T>) -> Self {
        object.into_object()
    }
}

impl<T: Object> From<Obj<T>> for Any {
    fn from(object: Obj<T>) -> Self {
        object.into_object().into()
    }
}

impl<T: Object> TryFromAny for Obj<T> {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        match view.object(is_instance::<T>) {
            // SAFETY: the type was checked.
            Some(object) => Ok(unsafe { Self::from_object_unchecked(object) }),
            None => Err(type_mismatch(T::TYPE_KEY, view.inner_type_index())),
        }
    }
}

impl<T: Object> TryFrom<ObjectRef> for Obj<T> {
    type Error = Error;

    #[track_caller]
    fn try_from(object: ObjectRef) -> Result<Self> {
        if is_instance::<T>(&object) {
            // SAFETY: the type was checked.
            return Ok(unsafe { Self::from_object_unchecked(object) });
        }
        Err(type_mismatch(T::TYPE_KEY, object.type_index()))
    }
}

impl<T: Object> TryFrom<Any> for Obj<T> {
    type Error = Error;

    #[track_caller]
    fn try_from(value: Any) -> Result<Self> {
        value.cast()
    }
}

impl<T: Object> TryFrom<AnyView<'_>> for Obj<T> {
    type Error = Error;

    #[track_caller]
    fn try_from(value: AnyView<'_>) -> Result<Self> {
        value.cast()
    }
}

impl<T: Object> ContainerItem for Obj<T> {}

impl<T: Object> TypeSchema for Obj<T> {
    fn type_name() -> String {
        T::TYPE_KEY.to_owned()
    }

    fn type_schema() -> String {
        format!("{{\"type\":\"{}\"}}", T::TYPE_KEY)
    }
}
