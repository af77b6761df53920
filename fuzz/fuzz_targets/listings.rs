//! See `listings` of the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tvm_ffi_codegen_fuzz::listings::run(input));
