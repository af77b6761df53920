//! Tests the counts of objects and of references to functions, which the other tests of calls rely on.

use tvm_ffi_codegen::runtime::abi::{DLDevice, DLTensor, TVMFFIAny, TVMFFIByteArray};
use tvm_ffi_codegen::runtime::registry::get_global;
use tvm_ffi_codegen::runtime::{Any, Array, DLDataType, ObjectRef};

use super::callees;
use crate::support::allocator::live;
use crate::support::recording::real::{TVMFFIEnvTensorAlloc, TVMFFIStringFromByteArray};

/// Objects that Rust creates, and objects that the runtime's C functions create.
#[test]
fn objects_are_counted() {
    callees::register();
    let before = live();
    let array = Array::from(vec![Any::from("a text that is not small")]);
    assert_eq!(live(), before + 2);
    let (text, mut string) = (TVMFFIByteArray::from_slice(b"another text that is not small"), TVMFFIAny::none());
    // SAFETY: the text and the pointer for the result are valid; the result is owned here.
    let string = unsafe {
        assert_eq!(TVMFFIStringFromByteArray(&text, &mut string), 0);
        Any::from_raw(string)
    };
    // upstream allocates its own objects itself, not with the allocator that is set
    assert_eq!(live(), before + if cfg!(feature = "external-runtime") { 2 } else { 3 });
    drop((array, string));
    assert_eq!(live(), before);
}

#[test]
fn tensors_are_counted() {
    callees::register();
    let before = live();
    let (mut shape, mut tensor) = ([3], std::ptr::null_mut());
    let mut prototype = DLTensor {
        data: std::ptr::null_mut(),
        device: DLDevice::CPU,
        ndim: 1,
        dtype: DLDataType::FLOAT32,
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    // SAFETY: the prototype and the pointer for the result are valid; the result is owned here.
    let tensor = unsafe {
        assert_eq!(TVMFFIEnvTensorAlloc(&mut prototype, &mut tensor), 0);
        ObjectRef::from_raw(tensor.cast())
    };
    // on a runtime other than the bundled one, its memory is a separate allocation
    assert!(live() > before);
    drop(tensor);
    assert_eq!(live(), before);
}

#[test]
fn references_to_functions_are_counted() {
    callees::register();
    let alone = callees::alone();
    let before = alone.references();
    let held = get_global("calls.echo");
    let more: u32 = alone.references().iter().zip(&before).map(|(now, before)| now.1 - before.1).sum();
    assert_eq!(more, 1);
    drop(held);
    assert_eq!(alone.references(), before);
}
