//! See `images` of the library.
#![no_main]

use tvm_ffi_codegen_fuzz::{images, memory::Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

libfuzzer_sys::fuzz_target!(|input: &[u8]| images::run(input));
