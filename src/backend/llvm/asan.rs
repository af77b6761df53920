//! AddressSanitizer in generated code, for the tests of `cargo xtask soak --only asan`, which build this library with
//! `--cfg generated_code_asan`. The process must contain the sanitizer's runtime.

use std::ffi::{CStr, c_char};
use std::sync::Once;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::module::Module as LlvmModule;
use inkwell::targets::TargetMachine;

use super::pipeline::passes;

/// LLVM's options. Globals aren't instrumented: their redzones would change the layout of data, and an object in memory
/// has no constructor that registers them.
const OPTIONS: [&CStr; 4] = [c"", c"-asan-globals=0", c"-asan-constructor-kind=none", c"-asan-use-after-return=always"];

/// Makes each access to memory in the module's functions call the sanitizer if it is invalid.
pub(super) fn instrument(module: &LlvmModule<'_>, machine: &TargetMachine) -> Result<(), String> {
    static PARSED: Once = Once::new();
    PARSED.call_once(|| {
        let words: Vec<*const c_char> = OPTIONS.iter().map(|word| word.as_ptr()).collect();
        // SAFETY: the words are that many NUL-terminated strings, which LLVM copies. The overview may be NULL. Other
        // threads compile only after the first call.
        unsafe { LLVMParseCommandLineOptions(words.len() as i32, words.as_ptr(), std::ptr::null()) };
    });
    let context = module.get_context();
    let kind = Attribute::get_named_enum_kind_id("sanitize_address");
    for function in module.get_functions().filter(|function| function.count_basic_blocks() > 0) {
        function.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
    }
    passes(module, machine, "asan")
}
