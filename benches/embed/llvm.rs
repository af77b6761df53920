//! Modules of inkwell.

use std::time::Instant;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine};
use tvm_ffi_codegen::Backend;
use tvm_ffi_codegen::embed::llvm::{Wrappers, add_wrapper, finish_functions};

use super::{Result, SIGNATURES, engine, heading, kernel, many, median, row, signature};

const RUNS: usize = 50;

fn machine() -> Result<TargetMachine> {
    Target::initialize_native(&InitializationConfig::default())?;
    let triple = TargetMachine::get_default_triple();
    let target = Target::from_triple(&triple).map_err(|e| e.to_string())?;
    let (cpu, features) = (TargetMachine::get_host_cpu_name(), TargetMachine::get_host_cpu_features());
    let (cpu, features) = (cpu.to_str()?, features.to_str()?);
    let level = inkwell::OptimizationLevel::Default;
    let machine = target.create_target_machine(&triple, cpu, features, level, RelocMode::PIC, CodeModel::Default);
    Ok(machine.ok_or("no machine")?)
}

fn optimise(module: &Module<'_>, machine: &TargetMachine) -> Result<()> {
    Ok(module.run_passes("default<O2>", machine, PassBuilderOptions::create()).map_err(|e| e.to_string())?)
}

/// Restores the former treatment of cold code: the caller's passes optimise it for size.
fn as_before(context: &Context, module: &Module<'_>) {
    let here = AttributeLoc::Function;
    let kind = Attribute::get_named_enum_kind_id;
    for function in module.get_functions().filter(|f| f.get_enum_attribute(here, kind("optnone")).is_some()) {
        function.remove_enum_attribute(here, kind("optnone"));
        function.remove_string_attribute(here, "no-builtins");
        for name in ["minsize", "optsize"] {
            function.add_attribute(here, context.create_enum_attribute(kind(name), 0));
        }
    }
}

pub fn table() -> Result<()> {
    let machine = machine()?;
    for (what, text) in SIGNATURES {
        let (alone, each) = engine(Backend::Llvm, text, RUNS)?;
        heading(Backend::Llvm, what);
        row("engine", alone, Some(each), alone);

        // the time to an object, without loading it
        let before = median(RUNS / 3, || {
            let context = Context::create();
            let module = context.create_module("mine");
            add_wrapper(&module, &signature(text, "f")?, kernel())?;
            as_before(&context, &module);
            optimise(&module, &machine)?;
            Ok(machine.write_to_memory_buffer(&module, FileType::Object).map_err(|e| e.to_string())?.get_size())
        })?;
        row("before (to the object)", before, None, alone);

        let one = median(RUNS, || {
            let context = Context::create();
            let module = context.create_module("mine");
            add_wrapper(&module, &signature(text, "f")?, kernel())?;
            optimise(&module, &machine)?;
            Ok(machine.write_to_memory_buffer(&module, FileType::Object).map_err(|e| e.to_string())?.get_size())
        })?;
        row("add_wrapper (to the object)", one, None, alone);

        let in_process = |names: &[String]| -> Result<_> {
            let context = Context::create();
            let module = context.create_module("mine");
            let mut all = Vec::new();
            for name in names {
                all.push(Wrappers::in_process().function(&signature(text, name)?, kernel()).add_to(&module)?);
            }
            optimise(&module, &machine)?;
            // SAFETY: the functions are never called.
            Ok(unsafe { finish_functions(&module, &machine, all, ())? })
        };
        let one = median(RUNS, || in_process(&["f".to_owned()]))?;
        let names: Vec<String> = (0..many()).map(|i| format!("f{i}")).collect();
        let start = Instant::now();
        let functions = in_process(&names)?;
        let each = start.elapsed().as_secs_f64() * 1e6 / functions.len() as f64;
        row("in_process and finish", one, Some(each), alone);
    }
    Ok(())
}
