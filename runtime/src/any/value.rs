//! Values: [`Any`] owns what it holds, [`AnyView`] borrows it for the length of a call. Both have the layout of a
//! `TVMFFIAny`. The neighbouring files hold the conversions. Header section: `TVMFFIAny`; ownership rules follow
//! upstream's `any.h`.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use crate::abi::*;
use crate::error::{Result, runtime_error, type_error};
use crate::heap::{AsObject, ObjectRef, count, live};
use crate::string::{bytes_of, raw_str_from_bytes};

/// Reads a value of any type as a `T`.
///
/// Conversions are upstream's. An integer accepts a boolean; a float accepts an integer or boolean; a boolean accepts
/// an integer. A pointer accepts None; a string or bytes accepts its three forms; a data type or device accepts its
/// name. An array accepts a list, a map accepts a dict, and vice versa, each as a copy. A shape accepts an array or
/// list of integers. `Option<T>` reads None as `None`.
#[diagnostic::on_unimplemented(
    message = "a value of TVM FFI can't be read as `{Self}`",
    label = "`Any` doesn't convert to this type",
    note = "numbers, `bool`, strings, `Option`, containers, `Tensor`, `Function` and `Obj<T>` are types that it \
        converts to",
    note = "`derive(Object)` makes a struct `T` an object, which is read as `Obj<T>`"
)]
pub trait TryFromAny: Sized {
    /// Converts a borrowed value.
    ///
    /// # Errors
    /// `TypeError` "expected X, got Y" for a type that does not convert, `ValueError` for a value
    /// that does not fit.
    fn try_from_view(view: AnyView<'_>) -> Result<Self>;
}

/// A borrowed value of any type, as functions receive their arguments.
#[repr(transparent)]
#[derive(Copy, Clone)]
pub struct AnyView<'a>(TVMFFIAny, PhantomData<&'a ()>);

impl<'a> AnyView<'a> {
    /// The value None.
    #[inline]
    pub const fn none() -> Self {
        Self(TVMFFIAny::none(), PhantomData)
    }

    /// Views a raw value.
    ///
    /// # Safety
    /// The memory that the value points to must be alive for `'a`, and valid for the type index.
    #[inline]
    pub const unsafe fn from_raw(raw: TVMFFIAny) -> Self {
        Self(raw, PhantomData)
    }

    /// Views a `DLTensor` that a framework owns; pass a tensor of this crate directly instead.
    ///
    /// ```compile_fail,E0277
    /// let f = tvm_ffi_runtime::Function::from_packed(|_| Ok(().into()));
    /// f.call((8 as *mut tvm_ffi_runtime::DLTensor,));
    /// ```
    ///
    /// # Safety
    /// The tensor must be filled as `dlpack.h` specifies, and its memory and lists must be valid for `'a`. If a
    /// function that receives the view writes to it, the memory must be writable.
    #[inline]
    pub const unsafe fn from_dl_tensor(tensor: *const DLTensor) -> Self {
        Self(TVMFFIAny::from_ptr(TypeIndex::DL_TENSOR_PTR, tensor.cast_mut().cast()), PhantomData)
    }

    /// Views an untyped pointer, `void*`.
    ///
    /// ```compile_fail,E0277
    /// let f = tvm_ffi_runtime::Function::from_packed(|_| Ok(().into()));
    /// f.call((8 as *mut std::ffi::c_void,));
    /// ```
    ///
    /// # Safety
    /// The pointer must be valid for every use that the functions that receive the view make of it.
    #[inline]
    pub const unsafe fn from_opaque_ptr(pointer: *mut c_void) -> Self {
        Self(TVMFFIAny::from_ptr(TypeIndex::OPAQUE_PTR, pointer), PhantomData)
    }

    /// Views the arguments of a call; NULL or a count below one gives an empty slice.
    ///
    /// # Safety
    /// `args` must point at `num_args` values that are valid for `'a` as in [`AnyView::from_raw`].
    #[inline]
    pub unsafe fn slice_from_raw(args: *const TVMFFIAny, num_args: i32) -> &'a [AnyView<'a>] {
        // SAFETY: promised by the caller.
        unsafe { Self::elements_from_raw(args, usize::try_from(num_args).unwrap_or(0)) }
    }

    /// Views the elements of an array as a kernel of `tvm-ffi-codegen` receives them: `const TVMFFIAny* xs, size_t
    /// xs_size`. NULL gives an empty slice. Read each element like any other value.
    ///
    /// ```
    /// use tvm_ffi_runtime::abi::TVMFFIAny;
    /// use tvm_ffi_runtime::{Any, AnyView, Tensor};
    ///
    /// /// The kernel of `total(xs: Array[Tensor([n], float32)]) -> float32`.
    /// unsafe extern "C" fn total(xs: *const TVMFFIAny, xs_size: usize) -> f32 {
    ///     // SAFETY: the wrapper passes that many elements, which live for the call.
    ///     let xs = unsafe { AnyView::elements_from_raw(xs, xs_size) };
    ///     let tensors = xs.iter().filter_map(|x| x.cast::<Tensor>().ok());
    ///     tensors.flat_map(|x| x.to_vec::<f32>().unwrap_or_default()).sum()
    /// }
    ///
    /// let tensor = Tensor::from_vec(vec![1.0f32, 2.0], &[2])?;
    /// let xs = [Any::from(tensor.clone()), Any::from(tensor)];
    /// // SAFETY: an `Any` is laid out as a `TVMFFIAny`.
    /// assert_eq!(unsafe { total(xs.as_ptr().cast(), xs.len()) }, 6.0);
    /// # Ok::<(), tvm_ffi_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    /// `elements` must point at `len` values that are valid for `'a` as in [`AnyView::from_raw`].
    #[inline]
    pub unsafe fn elements_from_raw(elements: *const TVMFFIAny, len: usize) -> &'a [AnyView<'a>] {
        if elements.is_null() {
            return &[];
        }
        // SAFETY: promised by the caller; a view is a transparent `TVMFFIAny`.
        unsafe { std::slice::from_raw_parts(elements.cast(), len) }
    }

    /// The raw value.
    #[inline]
    pub const fn as_raw(&self) -> TVMFFIAny {
        self.0
    }

    /// A reference to the raw value in place.
    #[inline]
    pub(crate) const fn raw_ref(&self) -> &TVMFFIAny {
        &self.0
    }

    /// The type index.
    #[inline]
    pub const fn type_index(&self) -> TypeIndex {
        TypeIndex(self.0.type_index)
    }

    /// The type key, such as `int` or `ffi.Tensor`.
    pub fn type_key(&self) -> String {
        crate::type_info::key_of(self.type_index())
    }

    /// True if the value is None.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.0.type_index == TypeIndex::NONE.0
    }

    /// Converts by the rules of [`TryFromAny`].
    ///
    /// # Errors
    /// `TypeError` "expected X, got Y" when the type does not convert; `ValueError` when the value
    /// does not fit.
    #[inline]
    #[track_caller]
    pub fn cast<T: TryFromAny>(&self) -> Result<T> {
        T::try_from_view(*self)
    }

    /// The bytes of a string of any of the three string types; they need not be UTF-8.
    pub fn str_bytes(&self) -> Option<&[u8]> {
        match self.type_index() {
            // SAFETY: the view's string is alive for `'a`, and a small one lives in `self`.
            TypeIndex::SMALL_STR | TypeIndex::STR => unsafe { bytes_of(&self.0) },
            TypeIndex::RAW_STR => {
                // SAFETY: a raw string value holds a NUL-terminated string or NULL.
                let text = unsafe { self.0.v.v_c_str };
                if text.is_null() {
                    return None;
                }
                // SAFETY: the string is alive for `'a` and ends with NUL.
                Some(unsafe { CStr::from_ptr(text) }.to_bytes())
            }
            _ => None,
        }
    }

    /// The string in a value of any of the three string types; `None` for other types and for strings that are not
    /// UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.str_bytes()?).ok()
    }

    /// The bytes of a bytes value of any of the three bytes types.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.type_index() {
            // SAFETY: the view's bytes are alive for `'a`, and small ones live in `self`.
            TypeIndex::SMALL_BYTES | TypeIndex::BYTES => unsafe { bytes_of(&self.0) },
            TypeIndex::BYTE_ARRAY_PTR => {
                let array = self.0.ptr().cast::<TVMFFIByteArray>();
                if array.is_null() {
                    return None;
                }
                // SAFETY: the array and its bytes are alive for `'a`.
                Some(unsafe { (*array).as_slice() })
            }
            _ => None,
        }
    }

    /// The `DLTensor` of a tensor argument, owned or not; `None` for other types and where C code passes NULL.
    ///
    /// The pointer is valid for as long as the view.
    pub fn as_dl_tensor(&self) -> Option<*mut DLTensor> {
        let pointer = self.0.ptr();
        match self.type_index() {
            _ if pointer.is_null() => None,
            TypeIndex::DL_TENSOR_PTR => Some(pointer.cast()),
            // The tensor's `DLTensor` follows its header.
            TypeIndex::TENSOR => Some(pointer.cast::<TVMFFIObject>().wrapping_add(1).cast()),
            _ => None,
        }
    }

    /// Takes the object in the value if it is `wanted`: a new reference, or the reference that an r-value argument
    /// transfers. An object that isn't wanted stays in the value.
    pub(crate) fn object(&self, wanted: impl Fn(&ObjectRef) -> bool) -> Option<ObjectRef> {
        let object = self.borrowed_object().filter(|object| wanted(object))?;
        if self.type_index().is_object() {
            return Some(ObjectRef::clone(&object));
        }
        // SAFETY: an r-value argument points at an object pointer that owns a reference; the code that reads the
        // argument may take it, and leaves NULL.
        unsafe { self.0.ptr().cast::<*mut TVMFFIObject>().write(std::ptr::null_mut()) };
        Some(ManuallyDrop::into_inner(object))
    }

    /// The object in the value, including one in an r-value argument, without taking it.
    #[inline]
    pub(crate) fn borrowed_object(&self) -> Option<ManuallyDrop<ObjectRef>> {
        // SAFETY: the view's object, or the one in an r-value argument, is alive; NULL means no object.
        let object = unsafe {
            if self.type_index().is_object() {
                ObjectRef::from_raw(self.0.v.v_obj)
            } else if self.type_index() == TypeIndex::OBJECT_RVALUE_REF {
                ObjectRef::from_raw(*self.0.ptr().cast::<*mut TVMFFIObject>().as_ref()?)
            } else {
                None
            }
        };
        object.map(ManuallyDrop::new)
    }

    /// Borrows the object in the value as its typed handle; the value keeps its reference. `None` if the object has
    /// another type.
    #[inline]
    pub(crate) fn borrow<T: AsObject>(&self) -> Option<ManuallyDrop<T>> {
        let object = self.borrowed_object().filter(|object| T::is_object(object))?;
        // SAFETY: the object's type index and layout were checked. The value keeps its
        // reference, as `ManuallyDrop` drops none.
        Some(ManuallyDrop::new(unsafe { T::from_object_unchecked(ManuallyDrop::into_inner(object)) }))
    }

    /// A new reference to the object in the value; an r-value argument keeps its own.
    pub(crate) fn shared_object(&self) -> Option<ObjectRef> {
        self.borrowed_object().map(|object| ObjectRef::clone(&object))
    }

    /// The type index of the object in the value, including one in an r-value argument; without an object, that of the
    /// value.
    pub(crate) fn inner_type_index(&self) -> TypeIndex {
        self.borrowed_object().map_or(self.type_index(), |object| object.type_index())
    }

    /// Converts to an owned value: objects gain a reference, raw strings and byte arrays are copied, an r-value
    /// reference is moved (upstream's `AnyViewToOwnedAny`).
    ///
    /// # Errors
    /// `RuntimeError` for a NULL string, or for an r-value reference that was already moved. `TypeError` for a
    /// `DLTensor*`, the form in which a [`TensorView`](crate::TensorView) is passed, because nothing keeps its memory
    /// alive.
    #[inline]
    pub fn to_owned(&self) -> Result<Any> {
        if self.borrows() { self.borrowed_to_owned() } else { Ok(Any(self.share())) }
    }

    /// True if the value points at memory that is not an object and has another owner.
    #[inline]
    pub(crate) fn borrows(&self) -> bool {
        (TypeIndex::DL_TENSOR_PTR.0..=TypeIndex::OBJECT_RVALUE_REF.0).contains(&self.0.type_index)
    }

    /// Copies the raw value, and adds a reference to its object if it has one.
    #[inline]
    pub(crate) fn share(&self) -> TVMFFIAny {
        if self.type_index().is_object() && !self.0.ptr().is_null() {
            // SAFETY: the view's object is alive for `'a`.
            unsafe { count::inc_ref(self.0.v.v_obj) };
        }
        self.0
    }

    /// Like [`to_owned`](Self::to_owned), for the types that point at memory with another owner.
    fn borrowed_to_owned(&self) -> Result<Any> {
        match self.type_index() {
            TypeIndex::RAW_STR => match self.str_bytes() {
                Some(bytes) => Ok(Any(raw_str_from_bytes(bytes))),
                None => Err(runtime_error("string argument is NULL")),
            },
            TypeIndex::BYTE_ARRAY_PTR => match self.as_bytes() {
                Some(bytes) => Ok(crate::Bytes::new(bytes).into()),
                None => Err(runtime_error("byte array argument is NULL")),
            },
            TypeIndex::OBJECT_RVALUE_REF => match self.object(|_| true) {
                Some(object) => Ok(object.into()),
                None => Err(runtime_error("RValueRef already moved")),
            },
            _ => Err(type_error("a DLTensor* is borrowed for a call and cannot be kept: pass a Tensor")),
        }
    }
}

impl fmt::Debug for AnyView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.as_str() {
            return write!(f, "{text:?}");
        }
        match self.type_index() {
            TypeIndex::NONE => f.write_str("None"),
            TypeIndex::INT => write!(f, "{}", self.0.bits().cast_signed()),
            TypeIndex::BOOL => write!(f, "{}", self.0.bits() != 0),
            TypeIndex::FLOAT => write!(f, "{:?}", f64::from_bits(self.0.bits())),
            _ => write!(f, "{}({:#x})", self.type_key(), self.0.bits()),
        }
    }
}

impl Default for AnyView<'_> {
    fn default() -> Self {
        Self::none()
    }
}

/// An owned value of any type: it holds a reference to its object, if it has one.
///
/// An opaque pointer inside is not owned; only unsafe code can use it.
#[repr(transparent)]
pub struct Any(pub(super) TVMFFIAny);

// SAFETY: objects may be used on any thread (see `ObjectRef`), and other values are plain data. Following a raw pointer
// takes unsafe code, which is responsible for the thread.
unsafe impl Send for Any {}
// SAFETY: as above; a shared `Any` is only read.
unsafe impl Sync for Any {}

impl Any {
    /// The value None.
    #[inline]
    pub const fn none() -> Self {
        Self(TVMFFIAny::none())
    }

    /// Takes over a raw value.
    ///
    /// # Safety
    /// The value must be valid by its type index and own a reference to its object, if it has one.
    #[inline]
    pub const unsafe fn from_raw(raw: TVMFFIAny) -> Self {
        Self(raw)
    }

    /// Wraps an untyped pointer, `void*`.
    ///
    /// For a kernel parameter of type `EnvState("mylang.state")`, register a global function of that name that returns
    /// such a pointer. A wrapper requests it once, so the state must live as long as the code:
    ///
    /// ```
    /// use tvm_ffi_runtime::registry::set_global;
    /// use tvm_ffi_runtime::{Any, Function};
    ///
    /// struct State {
    ///     threads: usize,
    /// }
    /// static STATE: State = State { threads: 4 };
    ///
    /// let state = Function::from_packed(|_| {
    ///     let pointer = (&raw const STATE).cast_mut().cast();
    ///     // SAFETY: the kernels of `mylang` read a `State` there, which lives as long as the process.
    ///     Ok(unsafe { Any::from_opaque_ptr(pointer) })
    /// });
    /// set_global("mylang.state", state, false)?;
    /// # assert_eq!(STATE.threads, 4);
    /// # Ok::<(), tvm_ffi_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    /// The pointer must be valid for every use that the functions that receive the value make of it.
    #[inline]
    pub const unsafe fn from_opaque_ptr(pointer: *mut c_void) -> Self {
        Self(TVMFFIAny::from_ptr(TypeIndex::OPAQUE_PTR, pointer))
    }

    /// Takes over a value that a C function wrote as its result. The function should have written an owned value: a
    /// borrowed string or byte array is copied, and a borrowed tensor is an error.
    ///
    /// # Safety
    /// As for [`Any::from_raw`], or the value must be a view that is valid now.
    #[inline]
    pub(crate) unsafe fn from_result(raw: TVMFFIAny) -> Result<Self> {
        if (TypeIndex::DL_TENSOR_PTR.0..=TypeIndex::OBJECT_RVALUE_REF.0).contains(&raw.type_index) {
            // SAFETY: a valid view, by contract.
            return unsafe { AnyView::from_raw(raw) }.to_owned();
        }
        Ok(Self(raw))
    }

    /// Returns the raw value, transferring its reference.
    #[inline]
    pub fn into_raw(self) -> TVMFFIAny {
        ManuallyDrop::new(self).0
    }

    /// Like [`into_raw`](Self::into_raw), for a value that was just created.
    #[inline]
    pub(crate) fn into_fresh_raw(self) -> TVMFFIAny {
        let value = ManuallyDrop::new(self);
        // SAFETY: `value` is a live local variable.
        unsafe { TVMFFIAny::read_parts(&raw const value.0) }
    }

    /// Like [`into_raw`](Self::into_raw), for a value that is kept until the process ends.
    pub(crate) fn into_kept_raw(self) -> TVMFFIAny {
        if self.type_index().is_object() {
            live::gone(self.0.ptr());
        }
        self.into_raw()
    }

    /// The raw value; `self` keeps the reference.
    #[inline]
    pub const fn as_raw(&self) -> &TVMFFIAny {
        &self.0
    }

    /// Converts to the object in the value, if it holds one.
    pub(crate) fn into_object(self) -> Option<ObjectRef> {
        if !self.type_index().is_object() {
            return None;
        }
        // SAFETY: the value owns a reference to its object, or is NULL.
        unsafe { ObjectRef::from_raw(self.into_raw().v.v_obj) }
    }

    /// Borrows the value.
    #[inline]
    pub const fn as_view(&self) -> AnyView<'_> {
        AnyView(self.0, PhantomData)
    }

    /// The type index.
    #[inline]
    pub const fn type_index(&self) -> TypeIndex {
        TypeIndex(self.0.type_index)
    }

    /// The type key, such as `int` or `ffi.Tensor`.
    pub fn type_key(&self) -> String {
        self.as_view().type_key()
    }

    /// True if the value is None.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.as_view().is_none()
    }

    /// Converts by the rules of [`TryFromAny`]; `self` keeps its value.
    ///
    /// # Errors
    /// As [`AnyView::cast`].
    #[inline]
    #[track_caller]
    pub fn cast<T: TryFromAny>(&self) -> Result<T> {
        T::try_from_view(self.as_view())
    }

    /// The value of a string, as in [`AnyView::as_str`].
    pub fn as_str(&self) -> Option<&str> {
        let bytes = match self.type_index() {
            // SAFETY: `self` keeps its string alive, and a small one lives in `self`.
            TypeIndex::SMALL_STR | TypeIndex::STR => unsafe { bytes_of(&self.0) }?,
            _ => return None,
        };
        std::str::from_utf8(bytes).ok()
    }

    /// The bytes of a bytes value.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.type_index() {
            // SAFETY: `self` keeps its bytes alive, and small ones live in `self`.
            TypeIndex::SMALL_BYTES | TypeIndex::BYTES => unsafe { bytes_of(&self.0) },
            _ => None,
        }
    }
}

impl Clone for Any {
    #[inline]
    fn clone(&self) -> Self {
        if self.type_index().is_object() && !self.0.ptr().is_null() {
            // SAFETY: `self` keeps its object alive.
            unsafe { count::inc_ref(self.0.v.v_obj) };
        }
        Self(self.0)
    }
}

impl Drop for Any {
    #[inline]
    fn drop(&mut self) {
        if self.type_index().is_object() && !self.0.ptr().is_null() {
            // SAFETY: `self` owns a reference and releases it here.
            unsafe { count::dec_ref(self.0.v.v_obj) };
        }
    }
}

impl Default for Any {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}
