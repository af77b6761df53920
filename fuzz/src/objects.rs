//! Objects of kernels, and archives, for x86-64. The loader must refuse them, or load and unload them without errors.
//! The code itself is never called, since an object may contain any code.

use std::panic::{catch_unwind, resume_unwind};
use std::sync::LazyLock;

use tvm_ffi_codegen::embed::runtime_symbols;
use tvm_ffi_codegen::engine::{LibraryImage, SymbolResolver};
use tvm_ffi_codegen::{Engine, Kernel, Signature};

/// The functions that the committed objects call.
const CALLED: [&str; 14] = [
    "sin",
    "puts",
    "other",
    "__gxx_personality_v0",
    "_Unwind_Resume",
    "__cxa_begin_catch",
    "__cxa_end_catch",
    "__cxa_throw",
    "__cxa_allocate_exception",
    "__cxa_free_exception",
    "_ZNSt13runtime_errorC1EPKc",
    "_ZNSt13runtime_errorD1Ev",
    "_ZTISt13runtime_error",
    "_ZTISt9exception",
];

extern "C" fn nothing() {}

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let called = CALLED.iter().fold(Engine::builder(), |builder, name| {
        // SAFETY: nothing calls it.
        unsafe { builder.symbol(*name, nothing as *const u8) }
    });
    called.build().expect("there is an engine")
});

static SIGNATURE: LazyLock<Signature> =
    LazyLock::new(|| "k(x: Tensor([n], float32))".parse().expect("it is a signature"));

/// Makes the unwinder read the registered tables.
fn unwind() {
    // `resume_unwind` calls no panic hook; libFuzzer's would end the process
    catch_unwind(|| resume_unwind(Box::new(()))).expect_err("it was raised");
}

/// Loads the object `input` as the object of a kernel `k`, and as a library.
pub fn run(input: &[u8]) {
    let kernel = Kernel::object(input, "k");
    // SAFETY: the function is never called.
    if let Ok(function) = unsafe { ENGINE.compile(&SIGNATURE, &kernel) } {
        unwind();
        drop(function);
        unwind();
    }
    let mut symbols = SymbolResolver::new();
    symbols.add_all(runtime_symbols());
    symbols.add_all(CALLED.map(|name| (name, nothing as *const u8)));
    // SAFETY: the image is never loaded.
    if let Ok(image) = unsafe { LibraryImage::link([input], &symbols) } {
        unwind();
        drop(image);
        unwind();
    }
}
