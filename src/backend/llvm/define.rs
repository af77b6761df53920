//! Adds a translated module to one that the caller owns: completely, or not at all.

use std::collections::HashMap;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;
use inkwell::targets::TargetTriple;
use inkwell::types::FunctionType;
use inkwell::values::{AsValueRef, FunctionValue};

use super::diagnostics::refused;
use super::error::Error;
use super::module::{Destructors, ModuleTranslator, Surroundings};
use super::target::check_endianness;
use super::translate::translate;
use super::types::Types;
use crate::ir::{DataKind, FuncDecl, Linkage, VerifiedModule};

/// Translates into `module`. Imports are bound to its functions, and existing variables are reused. All problems are
/// found before the module is touched. Comparisons find those of the request. A rehearsal in another module finds IR
/// that LLVM rejects, which is a bug of this library. Returns the names of exported destructors.
pub(crate) fn add_to<'ctx>(
    ir: &VerifiedModule,
    module: &LlvmModule<'ctx>,
    bindings: &HashMap<String, FunctionValue<'ctx>>,
    destructors: Destructors,
) -> Result<Vec<String>, Error> {
    check(ir, module, bindings)?;
    rehearse(ir, &module.get_triple())?;
    let mut translator = ModuleTranslator::new(ir, module);
    if let Destructors::Listed(format) = destructors {
        translator = translator.for_format(format, true);
    }
    translate(&mut translator, &Surroundings { bindings, alone: false, destructors })
        .map_err(|e| Error::Codegen { message: e.to_string(), listing: ir.to_string() })?;
    let added = std::mem::take(&mut translator.added);
    share_cpu(&added, bindings);
    leave_cold_alone(module, &added);
    Ok(std::mem::take(&mut translator.destructors))
}

/// Checks a request without touching the module. Imports that are neither bound nor present in the module can still be
/// bound later.
pub(crate) fn check<'ctx>(
    ir: &VerifiedModule,
    module: &LlvmModule<'ctx>,
    bindings: &HashMap<String, FunctionValue<'ctx>>,
) -> Result<(), Error> {
    check_endianness(ir)?;
    let types = Types::of_module(module);
    for decl in ir.functions.values() {
        match decl.linkage {
            Linkage::Local => {}
            Linkage::Export => check_export(module, &types, decl)?,
            Linkage::Import => check_import(module, &types, decl, bindings)?,
        }
    }
    ir.data
        .values()
        .filter(|data| data.kind == DataKind::Variable)
        .try_for_each(|data| check_variable(module, &data.name))
}

/// Translates into a temporary module for the same target, to see whether LLVM accepts it.
fn rehearse(ir: &VerifiedModule, triple: &TargetTriple) -> Result<(), Error> {
    let context = Context::create();
    let module = context.create_module("tvm_ffi");
    module.set_triple(triple);
    let mut translator = ModuleTranslator::new(ir, &module);
    let surroundings = Surroundings { bindings: &HashMap::new(), alone: true, destructors: Destructors::Exported };
    translate(&mut translator, &surroundings).map_err(|e| refused(&e.to_string(), &module))?;
    module.verify().map_err(|e| refused(&e.to_string(), &module))
}

/// Keeps the caller's passes from optimising rarely called functions: they would take longer than all others, and turn
/// loops into C library calls.
fn leave_cold_alone<'ctx>(module: &LlvmModule<'ctx>, added: &[FunctionValue<'ctx>]) {
    let here = AttributeLoc::Function;
    let context = module.get_context();
    let [cold, minsize, optsize, optnone, noinline] =
        ["cold", "minsize", "optsize", "optnone", "noinline"].map(Attribute::get_named_enum_kind_id);
    let is_cold = |function: &&FunctionValue<'ctx>| function.get_enum_attribute(here, cold).is_some();
    for function in added.iter().filter(|f| f.count_basic_blocks() > 0).filter(is_cold) {
        // these attributes and `optnone` are mutually exclusive
        for kind in [minsize, optsize] {
            function.remove_enum_attribute(here, kind);
        }
        for kind in [optnone, noinline] {
            function.add_attribute(here, context.create_enum_attribute(kind, 0));
        }
        function.add_attribute(here, context.create_string_attribute("no-builtins", ""));
    }
}

fn check_export<'ctx>(module: &LlvmModule<'ctx>, types: &Types<'ctx>, decl: &FuncDecl) -> Result<(), Error> {
    let Some(known) = named(module, &decl.name)? else { return Ok(()) };
    if known.count_basic_blocks() > 0 {
        return Err(Error::Duplicate { name: decl.name.clone() });
    }
    check_type(known, &decl.name, types.function(&decl.signature))
}

/// Checks that the name is free, or names a variable of the right kind.
fn check_variable(module: &LlvmModule<'_>, name: &str) -> Result<(), Error> {
    let fits = match module.get_global(name) {
        Some(known) => !known.is_constant() && !known.is_thread_local(),
        None => module.get_function(name).is_none(),
    };
    if fits { Ok(()) } else { Err(Error::NotAVariable { name: name.to_owned() }) }
}

fn check_import<'ctx>(
    module: &LlvmModule<'ctx>,
    types: &Types<'ctx>,
    decl: &FuncDecl,
    bindings: &HashMap<String, FunctionValue<'ctx>>,
) -> Result<(), Error> {
    let known = match bindings.get(&decl.name) {
        Some(&bound) => {
            let name = bound.get_name().to_string_lossy();
            let ours = module.get_functions().any(|f| f.as_value_ref() == bound.as_value_ref());
            if !ours {
                return Err(Error::OtherModule { name: name.into_owned() });
            }
            Some(bound)
        }
        None => named(module, &decl.name)?,
    };
    known.map_or(Ok(()), |known| check_type(known, &decl.name, types.outside(&decl.signature)))
}

/// The function of that name, if the module has one.
fn named<'ctx>(module: &LlvmModule<'ctx>, name: &str) -> Result<Option<FunctionValue<'ctx>>, Error> {
    match module.get_function(name) {
        None if module.get_global(name).is_some() => Err(Error::NotAFunction { name: name.to_owned() }),
        found => Ok(found),
    }
}

/// Checks that a function has the type that its callers expect.
pub(super) fn check_type<'ctx>(
    known: FunctionValue<'ctx>,
    name: &str,
    expected: FunctionType<'ctx>,
) -> Result<(), Error> {
    if known.get_type() == expected {
        return Ok(());
    }
    let (expected, found) = (expected.print_to_string(), known.get_type().print_to_string());
    Err(Error::SignatureConflict { name: name.to_owned(), expected: expected.to_string(), found: found.to_string() })
}

/// Gives wrappers the CPU and features of the kernels that they call: LLVM inlines a function only into callers with
/// its features.
fn share_cpu<'ctx>(added: &[FunctionValue<'ctx>], bindings: &HashMap<String, FunctionValue<'ctx>>) {
    let here = AttributeLoc::Function;
    let Some(kernel) = bindings.values().next() else { return };
    for name in ["target-cpu", "tune-cpu", "target-features"] {
        let Some(attribute) = kernel.get_string_attribute(here, name) else { continue };
        for function in added.iter().filter(|f| f.count_basic_blocks() > 0) {
            function.add_attribute(here, attribute);
        }
    }
}
