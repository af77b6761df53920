//! See `calls` of the library.
#![no_main]

use tvm_ffi_codegen_fuzz::{calls, fenced::Fenced};

#[global_allocator]
static ALLOCATOR: Fenced = Fenced;

libfuzzer_sys::fuzz_target!(|input: &[u8]| calls::run(input));
