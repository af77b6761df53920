//! Prints and reads the modules of all fixtures, and of random signatures.

use proptest::prelude::*;
use tvm_ffi_codegen::artifact::Triple;
use tvm_ffi_codegen::backend::cranelift::{self, Compiler, IsaOptions, Options};
use tvm_ffi_codegen::ir::{self, Module};
use tvm_ffi_codegen::lower::{
    BIND_SYMBOL, Capabilities, LAUNCH_SYMBOLS, Purpose, REPORT_SYMBOL, Recipe, RuntimeHelpers, TAKE_RESULT_SYMBOL,
    helpers_module, lower,
};
use tvm_ffi_codegen::{Kernel, Signature};

use super::same::same;
use crate::fixtures::signatures;
use crate::property;
use crate::support::{parallel, random};

/// Cranelift's object of a module.
fn object(module: &Module, triple: &str) -> Result<Vec<u8>, String> {
    let triple: Triple = triple.parse().map_err(|e| format!("{e}"))?;
    let verified = ir::verify(module.clone()).map_err(|e| e.to_string())?;
    let isa = || cranelift::isa_for(&triple, &IsaOptions { pic: true, ..IsaOptions::default() });
    let compiled = Compiler::new().compile(&verified, &*isa().map_err(|e| e.to_string())?, Options::default());
    let compiled = compiled.map_err(|e| e.to_string())?;
    compiled.into_object(isa().map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

/// Checks that a module survives printing and reading. Returns the length of its text.
fn survives(module: &Module) -> Result<usize, String> {
    let text = module.to_string();
    let read: Module = text.parse().map_err(|e| format!("{e}\n{text}"))?;
    same(module, &read).map_err(|e| format!("{e}\n{text}"))?;
    if read.to_string() != text {
        return Err(format!("printed again:\n{read}\nfirst:\n{text}"));
    }
    Ok(text.len())
}

/// The same, and that it compiles to the same object.
fn compiles_alike(module: &Module, triple: &str) -> Result<usize, String> {
    let read: Module = module.to_string().parse().map_err(|e| format!("{e}\n{module}"))?;
    if object(module, triple)? != object(&read, triple)? {
        return Err(format!("another object of\n{module}"));
    }
    survives(module)
}

const LITTLE: &str = "x86_64-unknown-linux-gnu";
const BIG: &str = "s390x-unknown-linux-gnu";

/// The libraries of one signature.
fn libraries(signature: &Signature, kernel: &Kernel) -> Result<Vec<Module>, String> {
    let library = |triple: &&str| {
        let target: Triple = triple.parse().map_err(|e| format!("{e}"))?;
        let recipe = Recipe { target, purpose: Purpose::Library, ..Recipe::default() };
        recipe.function(signature, kernel).lower().map(|lowered| lowered.module).map_err(|e| format!("{e:?}"))
    };
    [LITTLE, BIG].iter().map(library).collect()
}

#[test]
fn modules_of_all_fixtures_survive() {
    let signatures = signatures();
    let results = parallel::map(&signatures, |(heading, signature, kernel)| {
        let lens = || {
            let wrapper = lower(signature, kernel, RuntimeHelpers::Import).map_err(|e| e.to_string())?;
            // the listing's own lines as locations, of the ends of blocks too
            let located = wrapper.located_in_listing().1;
            let len = compiles_alike(&wrapper, LITTLE)? + survives(&located)?;
            let libraries = libraries(signature, kernel)?;
            Ok(len + libraries.iter().map(survives).sum::<Result<usize, String>>()?)
        };
        lens().map_err(|e: String| format!("{heading}: {e}"))
    });
    let bytes: usize = results.into_iter().map(Result::unwrap).sum();
    println!("{} signatures, {bytes} bytes of text", signatures.len());
}

#[test]
fn modules_of_helpers_survive() {
    let symbols = [&[BIND_SYMBOL, TAKE_RESULT_SYMBOL, REPORT_SYMBOL], LAUNCH_SYMBOLS.as_flattened()].concat();
    for triple in [LITTLE, BIG] {
        let endianness = triple.parse::<Triple>().unwrap().endianness().unwrap();
        compiles_alike(&helpers_module(&symbols, Capabilities::ALL, endianness), triple).unwrap();
    }
}

#[test]
fn modules_of_random_signatures_survive() {
    let strategy = (property::signatures::signature(), any::<u8>());
    random::run(random::stated_or(30), &strategy, |(signature, choice)| {
        let kernel = property::Behind::choose(&signature, choice).kernel(&signature).map_err(TestCaseError::fail)?;
        let module = lower(&signature, &kernel, RuntimeHelpers::Import);
        let module = module.map_err(|e| TestCaseError::fail(e.to_string()))?;
        compiles_alike(&module, LITTLE).map_err(TestCaseError::fail)?;
        Ok(())
    });
}
