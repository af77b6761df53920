//! Kernels for one convention each, which note what they receive.

use std::ffi::c_void;

use tvm_ffi_codegen::runtime::abi::{DLTensor, TVMFFIAny};

use super::kernels::{Noted, note, receive};
use super::show;

/// Notes a descriptor in the same form as `record`.
///
/// # Safety
/// The tensor is well-formed, or the pointer is NULL.
unsafe fn note_descriptor(tensor: *const DLTensor) {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(tensor) = tensor.as_ref() else { return receive([0]) };
        let data = tensor.data.expose_provenance() as u64;
        note([show::descriptor(tensor).into(), Noted::Word(data), Noted::Word(tensor.byte_offset)]);
    }
}

/// (x: Tensor(...)), `dltensor`, returns a status
pub unsafe extern "C" fn dltensor(x: *const DLTensor) -> i32 {
    // SAFETY: the arguments are those of the convention.
    unsafe { note_descriptor(x) };
    0
}

/// (x: Optional[Tensor(...)], y: Optional[Tensor(...)]), `dltensor`
pub unsafe extern "C" fn dltensor2(x: *const DLTensor, y: *const DLTensor) {
    // SAFETY: the arguments are those of the convention.
    unsafe {
        note_descriptor(x);
        note_descriptor(y);
    }
}

/// # Safety
/// `s` points to `s_size` characters.
unsafe fn note_rest(s: *const u8, s_size: usize, k_given: u8, k: f32) {
    // SAFETY: the caller's promise.
    note([show::text("str", unsafe { std::slice::from_raw_parts(s, s_size) }).into()]);
    receive([s_size as u64, k_given.into(), k.to_bits().into()]);
}

/// (x: Tensor([n], float32), s: str, k: Optional[float32]), `flat`
pub unsafe extern "C" fn note_flat(x: u64, s: *const u8, s_size: usize, k_given: u8, k: f32, n: i64) {
    receive([x]);
    // SAFETY: the arguments are those of the convention.
    unsafe { note_rest(s, s_size, k_given, k) };
    receive([n as u64]);
}

/// The same, `dltensor`
pub unsafe extern "C" fn note_dltensor(x: *const DLTensor, s: *const u8, s_size: usize, k_given: u8, k: f32) {
    // SAFETY: the arguments are those of the convention.
    unsafe {
        note_descriptor(x);
        note_rest(s, s_size, k_given, k);
    }
}

/// The same, `memref`
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn note_memref(
    allocated: u64,
    aligned: u64,
    offset: i64,
    size: i64,
    stride: i64,
    s: *const u8,
    s_size: usize,
    k_given: u8,
    k: f32,
) {
    receive([allocated, aligned, offset as u64, size as u64, stride as u64]);
    // SAFETY: the arguments are those of the convention.
    unsafe { note_rest(s, s_size, k_given, k) };
}

/// Any signature without a result, `packed`
pub unsafe extern "C" fn note_packed(_: *mut c_void, args: *const TVMFFIAny, num_args: i32, _: *mut TVMFFIAny) -> i32 {
    receive([num_args as u64]);
    // SAFETY: the arguments are those of the convention.
    note(unsafe { show::arguments(args, num_args) }.into_iter().map(Noted::Text));
    0
}

/// (n: int64, v: float32) -> Tensor([n], float32), `flat`, returns a status: 7 if v is negative
pub unsafe extern "C" fn fill_flat(n: i64, v: f32, result: *mut f32, _: i64) -> i32 {
    for i in 0..n as usize {
        // SAFETY: the wrapper has allocated `n` elements.
        unsafe { result.add(i).write(v) };
    }
    if v < 0.0 { 7 } else { 0 }
}

/// The same, `dltensor`
pub unsafe extern "C" fn fill_dltensor(n: i64, v: f32, result: *mut DLTensor) -> i32 {
    // SAFETY: the arguments are those of the convention.
    unsafe {
        note([show::descriptor(&*result).into(), Noted::Word((*result).byte_offset)]);
        fill_flat(n, v, (*result).data.cast(), n)
    }
}

/// The same, `memref`
pub unsafe extern "C" fn fill_memref(
    n: i64,
    v: f32,
    allocated: *mut f32,
    aligned: *mut f32,
    offset: i64,
    size: i64,
    stride: i64,
) -> i32 {
    receive([u64::from(allocated == aligned), offset as u64, size as u64, stride as u64]);
    // SAFETY: the arguments are those of the convention.
    unsafe { fill_flat(n, v, aligned, n) }
}
