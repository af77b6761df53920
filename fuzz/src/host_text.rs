//! Host functions as text: a text that parses is printed, and what is read back prints the same and has the same code.

use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::lower::{Recipe, RuntimeHelpers};
use tvm_ffi_codegen::{HostProgram, Kernel};

/// The maximum size of an input in bytes. It keeps the check of each text fast.
const LONGEST: usize = 4096;

/// Reads an input as a file of functions, and as a block.
///
/// # Panics
/// The printed text of a program isn't read back to the same program.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(&input[..input.len().min(LONGEST)]);
    let images: [(&str, Image); 0] = [];
    let _ = Kernel::text(&text, images);
    let Ok(program) = HostProgram::parse(&text) else { return };
    let printed = program.to_string();
    let read = match HostProgram::parse(&printed) {
        Ok(read) => read,
        // a value that prints in parentheses is one deeper
        Err(error) if error.errors.iter().all(|error| error.message.starts_with("expected at most ")) => return,
        Err(error) => panic!("{error}\n{printed}"),
    };
    assert_eq!(read.to_string(), printed, "what is read back prints otherwise");
    assert!(program.globals().eq(read.globals()), "the global functions of\n{printed}");
    let [before, after] = [&program, &read].map(code);
    assert_eq!(before.is_ok(), after.is_ok(), "errors of\n{printed}");
    if let (Ok(before), Ok(after)) = (before, after) {
        assert!(before == after, "the code of what is read back differs:\n{printed}");
    }
}

/// The code of a program's functions.
fn code(program: &HostProgram) -> Result<String, String> {
    let recipe = Recipe { helpers: RuntimeHelpers::Import, ..Recipe::default() };
    let functions = program.functions().chain(program.c_functions());
    let recipe = functions.fold(recipe, |recipe, (signature, kernel)| recipe.function(signature, kernel));
    recipe.lower().map(|lowered| lowered.module.to_string()).map_err(|errors| format!("{errors:?}"))
}
