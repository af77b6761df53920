//! References to objects of a type that is defined in Rust.

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
use crate::heap::{ObjectLayout, ObjectRef, WeakRef, make_object_with_index, release};
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
/// What [`describe`](Object::describe) states of fields must be so. `Parent` is [`Root`], or the type of a field that lies at the very
/// beginning of the value, and the values of both lie in their objects at the same place.
pub unsafe trait Object: Send + Sync + Sized + 'static {
    /// The type that this one extends.
    type Parent: Ancestor;

    /// The type key, which no other type of the process has.
    const TYPE_KEY: &'static str;

    /// The place of the type's index.
    #[doc(hidden)]
    fn slot() -> &'static TypeSlot;

    /// States the fields and methods.
    ///
    /// # Errors
    /// Those of values that are made for that.
    #[doc(hidden)]
    fn describe(registration: &mut Registration<Self>) -> Result<()>;
}

/// A type that others may extend: [`Root`], or any [`Object`].
pub trait Ancestor: sealed::Sealed {
    /// Number of types that it extends.
    #[doc(hidden)]
    const DEPTH: i32;

    /// The type's index; registers the type where that is not done yet.
    ///
    /// # Errors
    /// `RuntimeError` where the type can't be registered: there is no runtime, or other code has registered the key.
    fn type_index() -> Result<TypeIndex>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Root {}
    impl<T: super::Object> Sealed for T {}
}

/// The type that all objects extend, `ffi.Object`.
#[derive(Copy, Clone, Debug)]
pub enum Root {}

impl Ancestor for Root {
    const DEPTH: i32 = 0;

    fn type_index() -> Result<TypeIndex> {
        Ok(TypeIndex::OBJECT)
    }
}

/// An object: its header, and the value of its type.
#[repr(C)]
pub(super) struct Body<T> {
    header: TVMFFIObject,
    value: T,
}

// SAFETY: repr(C) with the header first.
unsafe impl<T> ObjectLayout for Body<T> {
    // Objects are made with the type's own index.
    const TYPE_INDEX: TypeIndex = TypeIndex::OBJECT;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller.
        unsafe { (&raw mut (*object).value).drop_in_place() };
    }
}

/// Where the value of an object begins.
pub const fn value_offset<T>() -> usize {
    offset_of!(Body<T>, value)
}

/// The size of an object.
pub(super) const fn size<T>() -> usize {
    size_of::<Body<T>>()
}

/// A reference to an object of type `T`, or of a type that extends `T`. Cloning adds a reference.
#[repr(transparent)]
pub struct Obj<T>(ManuallyDrop<ObjectRef>, PhantomData<T>);

impl<T: Object> Obj<T> {
    /// A new object.
    ///
    /// # Errors
    /// `RuntimeError` where the type can't be registered, as [`Ancestor::type_index`].
    pub fn new(value: T) -> Result<Self> {
        let index = T::type_index()?;
        let object = make_object_with_index(index, |header| Body { header, value });
        // SAFETY: `make_object_with_index` hands out the object's one strong reference.
        Ok(Self(ManuallyDrop::new(unsafe { ObjectRef::from_non_null(object) }), PhantomData))
    }

    /// The untyped reference.
    pub fn as_object(&self) -> &ObjectRef {
        &self.0
    }

    /// The untyped reference, moved out.
    pub fn into_object(self) -> ObjectRef {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once, since `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// A weak reference to the object.
    pub fn downgrade(&self) -> WeakRef {
        self.0.downgrade()
    }

    /// Whether both refer to the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// The object as one of the type that `T` extends.
    pub fn upcast(self) -> Obj<T::Parent>
    where
        T::Parent: Object,
    {
        // SAFETY: an object of `T` is one of each type that `T` extends.
        unsafe { Obj::from_object_unchecked(self.into_object()) }
    }

    /// The object as one of a type that extends `T`, or as it is.
    ///
    /// # Errors
    /// `self`, where it is none.
    pub fn downcast<U: Object>(self) -> Result<Obj<U>, Self> {
        if is_instance::<U>(&self.0) {
            // SAFETY: the type was checked.
            return Ok(unsafe { Obj::from_object_unchecked(self.into_object()) });
        }
        Err(self)
    }

    /// # Safety
    /// The object must be one of `T`.
    unsafe fn from_object_unchecked(object: ObjectRef) -> Self {
        Self(ManuallyDrop::new(object), PhantomData)
    }
}

/// Whether an object is of type `T`, or of one that extends it.
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
        // However long a chain of objects is.
        release(std::iter::once(object));
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
        // SAFETY: the object is one of `T`, whose value lies behind the header, also where another type extends it. It lives for as long
        // as this reference, and is changed by nobody: what others may write is behind a lock.
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
