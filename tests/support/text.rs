//! Functions as text, which is read back to the same code.

use tvm_ffi_codegen::ir;
use tvm_ffi_codegen::lower::{Recipe, RuntimeHelpers};
use tvm_ffi_codegen::{HostProgram, Kernel, LowerError, Signature};

/// Lowers functions to one module.
///
/// # Errors
/// Lowering rejects a function, or the module as a whole.
pub fn lowered(functions: &[(Signature, Kernel)], helpers: RuntimeHelpers) -> Result<ir::Module, String> {
    let recipe = Recipe { helpers, ..Recipe::default() };
    let recipe = functions.iter().fold(recipe, |recipe, (signature, kernel)| recipe.function(signature, kernel));
    let lowered = recipe.lower().map(|lowered| lowered.module);
    lowered.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Prints functions as text, and compares the code of what is read back.
#[track_caller]
pub fn reads_back(functions: &[(Signature, Kernel)]) {
    let program = match HostProgram::of(functions.iter().map(|(signature, kernel)| (signature, kernel))) {
        // other kernels than bodies
        Err(LowerError::NoText { what, .. }) if !what.starts_with("a body") => return,
        printed => printed.unwrap_or_else(|error| panic!("{error}")),
    };
    let text = program.to_string();
    let images = program.images().map(|(name, image)| (name, image.clone()));
    let read = HostProgram::parse_with(&text, images).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(read.to_string(), text);
    let read: Vec<(Signature, Kernel)> =
        read.functions().map(|(signature, kernel)| (signature.clone(), kernel.clone())).collect();
    let [before, after] = [functions, &read[..]].map(|functions| lowered(functions, RuntimeHelpers::Import));
    let after = after.unwrap_or_else(|error| panic!("{error}\n{text}")).to_string();
    let before = before.unwrap_or_else(|error| panic!("{error}")).to_string();
    let difference = before.lines().zip(after.lines()).find(|(before, after)| before != after);
    assert!(before == after, "{difference:?}\n{text}");
}
