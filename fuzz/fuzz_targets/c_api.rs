//! See `c_api` of the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tvm_ffi_codegen_fuzz::c_api::run(input));
