//! Printed values in traces: objects with their numbers, tensors with their elements.

use std::ffi::{CStr, c_char, c_void};

use tvm_ffi_codegen::DLDeviceType;
use tvm_ffi_codegen::runtime::abi::{DLTensor, TVMFFIAny, TVMFFIByteArray, TVMFFIObject, TypeIndex};
use tvm_ffi_codegen::runtime::{Any, AnyView, Error, ObjectRef};

use super::super::{element, show};
use super::{Change, Recorder};

/// Tensors with more elements are printed without them.
const MOST_ELEMENTS: i64 = 64;

impl Recorder {
    /// Prints a value passed by generated code.
    ///
    /// # Safety
    /// The value is valid.
    pub(super) unsafe fn value(&mut self, value: TVMFFIAny) -> String {
        // SAFETY: the caller's promise.
        unsafe {
            match TypeIndex(value.type_index) {
                TypeIndex::OBJECT_RVALUE_REF if value.bits() != 0 => {
                    format!("moved {}", self.object(value.ptr().cast::<*mut c_void>().read()))
                }
                TypeIndex::DL_TENSOR_PTR if value.bits() != 0 => descriptor(&*value.ptr().cast::<DLTensor>()),
                index if index.is_object() => self.object(value.ptr()),
                _ => show::brief(AnyView::from_raw(value)),
            }
        }
    }

    /// Prints values passed by generated code.
    ///
    /// # Safety
    /// `values` points to `count` valid values.
    pub(super) unsafe fn values(&mut self, values: *const TVMFFIAny, count: i32) -> String {
        // SAFETY: the caller's promise.
        let all: Vec<_> = (0..count.max(0) as usize).map(|i| unsafe { self.value(values.add(i).read()) }).collect();
        all.join(", ")
    }

    /// Prints an object.
    ///
    /// # Safety
    /// The handle is NULL or that of a live object.
    pub(super) unsafe fn object(&mut self, handle: *mut c_void) -> String {
        // SAFETY: the caller's promise.
        let Some(object) = (unsafe { ObjectRef::clone_from_raw(handle.cast::<TVMFFIObject>()) }) else {
            return "NULL".to_owned();
        };
        let number = self.number(&object);
        format!("{}#{number}", show::value(&Any::from(object)))
    }

    /// The number of an object.
    ///
    /// # Safety
    /// As for [`object`](Self::object).
    pub(super) unsafe fn number_of(&mut self, handle: *mut c_void) -> Option<usize> {
        // SAFETY: the caller's promise.
        unsafe { ObjectRef::clone_from_raw(handle.cast::<TVMFFIObject>()) }.map(|object| self.number(&object))
    }

    /// Prints an error with its kind and message.
    ///
    /// # Safety
    /// As for [`object`](Self::object).
    pub(super) unsafe fn error(&mut self, handle: *mut c_void) -> String {
        // SAFETY: the caller's promise.
        unsafe {
            let text = self.object(handle);
            let object = ObjectRef::clone_from_raw(handle.cast::<TVMFFIObject>());
            let error = object.and_then(|object| Error::try_from(object).ok());
            error.map_or(text.clone(), |error| format!("{text} {error}"))
        }
    }

    /// Prints an error to which generated code has a new reference.
    ///
    /// # Safety
    /// As for [`object`](Self::object).
    pub(super) unsafe fn got_error(&mut self, handle: *mut c_void) -> String {
        // SAFETY: the caller's promise.
        unsafe {
            // libraries don't keep errors
            let number = self.number_of(handle);
            self.trace.changes.extend(number.map(Change::Got));
            self.error(handle)
        }
    }

    /// Notes a new reference to an object, and returns its number.
    ///
    /// # Safety
    /// As for [`object`](Self::object).
    unsafe fn gets_object(&mut self, handle: *mut c_void) -> Option<usize> {
        // SAFETY: the caller's promise.
        let number = unsafe { self.number_of(handle) };
        number.into_iter().for_each(|number| self.gets(number));
        number
    }

    /// Prints an object to which generated code has a new reference.
    ///
    /// # Safety
    /// As for [`object`](Self::object).
    pub(super) unsafe fn got(&mut self, handle: *mut c_void) -> String {
        // SAFETY: the caller's promise.
        unsafe {
            self.gets_object(handle);
            self.object(handle)
        }
    }

    /// Prints a function created by generated code.
    ///
    /// # Safety
    /// As for [`object`](Self::object).
    pub(super) unsafe fn made_function(&mut self, handle: *mut c_void) -> String {
        // SAFETY: the caller's promise.
        unsafe {
            let number = self.gets_object(handle);
            self.made_functions.extend(number);
            self.object(handle)
        }
    }

    /// Prints a tensor allocated by generated code, without its uninitialised elements.
    ///
    /// # Safety
    /// As for [`object`](Self::object).
    pub(super) unsafe fn allocated(&mut self, handle: *mut c_void) -> String {
        // SAFETY: the caller's promise.
        let number = unsafe { self.gets_object(handle) };
        number.map_or("NULL".to_owned(), |number| format!("Tensor#{number}"))
    }

    /// Prints a value that generated code now owns.
    ///
    /// # Safety
    /// The value is valid.
    pub(super) unsafe fn got_value(&mut self, value: TVMFFIAny) -> String {
        // SAFETY: the caller's promise.
        unsafe {
            match TypeIndex(value.type_index) {
                index if index.is_object() => self.got(value.ptr()),
                _ => self.value(value),
            }
        }
    }
}

/// Prints the text of a byte array.
///
/// # Safety
/// The pointer is NULL or valid.
pub(super) unsafe fn bytes(array: *const TVMFFIByteArray) -> String {
    // SAFETY: the caller's promise.
    match unsafe { array.as_ref() } {
        // SAFETY: as above.
        Some(array) => show::text("", unsafe { array.as_slice() }).trim_start().to_owned(),
        None => "NULL".to_owned(),
    }
}

/// Converts a C string.
///
/// # Safety
/// The pointer is NULL or valid.
pub(super) unsafe fn c_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Prints a descriptor, with the elements if the CPU can read them.
///
/// # Safety
/// The descriptor is well-formed, and its memory is accessible.
pub(super) unsafe fn descriptor(tensor: &DLTensor) -> String {
    // SAFETY: the caller's promise.
    unsafe {
        let (text, offset) = (show::descriptor(tensor), tensor.byte_offset);
        format!("DLTensor* to {text}, byte_offset {offset}{}", elements(tensor))
    }
}

/// # Safety
/// As for [`descriptor`].
unsafe fn elements(tensor: &DLTensor) -> String {
    let ndim = tensor.ndim.max(0) as usize;
    // SAFETY: `ndim` sizes exist, and as many strides unless the pointer is NULL.
    let numbers = |at: *const i64| (0..ndim).map(|i| unsafe { at.add(i).read() }).collect::<Vec<_>>();
    let shape = numbers(tensor.shape);
    let count: i64 = shape.iter().product();
    let readable =
        tensor.device.device_type == DLDeviceType::CPU && !tensor.data.is_null() && tensor.dtype.bits.is_multiple_of(8);
    if !readable || count > MOST_ELEMENTS {
        return String::new();
    }
    let strides = match tensor.strides.is_null() {
        true => (0..ndim).map(|i| shape[i + 1..].iter().product()).collect(),
        false => numbers(tensor.strides),
    };
    let (first, size) = (tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize), tensor.dtype.itemsize());
    let one = |mut number: i64| {
        let mut offset = 0;
        for (size, stride) in shape.iter().zip(&strides).rev() {
            offset += number % size * stride;
            number /= size;
        }
        let at = first.wrapping_offset(offset as isize * size as isize);
        // SAFETY: the descriptor's memory contains all elements.
        let bytes: Vec<u8> = (0..size).map(|i| unsafe { at.add(i).read() }).collect();
        element::show(tensor.dtype, &bytes)
    };
    format!(" = [{}]", (0..count).map(one).collect::<Vec<_>>().join(", "))
}
