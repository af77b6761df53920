//! Modules of `cranelift_jit`.

use std::time::Instant;

use cranelift_jit::JITModule;
use cranelift_module::Module as _;
use tvm_ffi_codegen::backend::cranelift::{Bindings, compile};
use tvm_ffi_codegen::embed::cranelift::{Wrappers, add_wrapper, finish_functions, host_isa, jit_module};
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::{Backend, ir};

use super::{Result, SIGNATURES, engine, heading, kernel, many, median, row, signature};

const RUNS: usize = 200;

/// The former `add_wrapper`: each wrapper has its own helpers, compiled for the module's target.
fn add_before(module: &mut JITModule, text: &str, name: &str) -> Result<*const u8> {
    let signature = signature(text, name)?;
    let verified = ir::verify(lower(&signature, &kernel(), RuntimeHelpers::Define)?)?;
    let defined = compile(&verified, module.isa())?.add_to(module, &Bindings::new())?;
    let id = defined.function(&signature.symbol()).ok_or("no wrapper")?;
    module.finalize_definitions()?;
    Ok(module.get_finalized_function(id))
}

pub fn table() -> Result<()> {
    let isa = host_isa()?;
    let module = || jit_module(isa.clone());
    for (what, text) in SIGNATURES {
        let (alone, each) = engine(Backend::Cranelift, text, RUNS)?;
        heading(Backend::Cranelift, what);
        row("engine", alone, Some(each), alone);

        let free = |module: JITModule| {
            // SAFETY: no code keeps an address in it.
            unsafe { module.free_memory() }
        };
        let before = median(RUNS / 4, || {
            let mut module = module()?;
            add_before(&mut module, text, "f")?;
            free(module);
            Ok(())
        })?;
        let mut one_module = module()?;
        let start = Instant::now();
        (0..many()).try_for_each(|i| add_before(&mut one_module, text, &format!("f{i}")).map(drop))?;
        row("before", before, Some(start.elapsed().as_secs_f64() * 1e6 / many() as f64), alone);
        free(one_module);

        let one = median(RUNS, || {
            let mut module = module()?;
            let id = add_wrapper(&mut module, &signature(text, "f")?, kernel())?;
            module.finalize_definitions()?;
            let address = module.get_finalized_function(id);
            free(module);
            Ok(address)
        })?;
        let mut one_module = module()?;
        let start = Instant::now();
        for i in 0..many() {
            add_wrapper(&mut one_module, &signature(text, &format!("f{i}"))?, kernel())?;
            one_module.finalize_definitions()?;
        }
        row("add_wrapper", one, Some(start.elapsed().as_secs_f64() * 1e6 / many() as f64), alone);
        free(one_module);

        let one = median(RUNS, || {
            let mut module = module()?;
            let added = Wrappers::in_process().function(&signature(text, "f")?, kernel()).add_to(&mut module)?;
            // SAFETY: the function is never called.
            Ok(unsafe { finish_functions(module, [added], ())? })
        })?;
        let mut one_module = module()?;
        let start = Instant::now();
        let mut all = Vec::new();
        for i in 0..many() {
            let signature = signature(text, &format!("f{i}"))?;
            all.push(Wrappers::in_process().function(&signature, kernel()).add_to(&mut one_module)?);
        }
        // SAFETY: the functions are never called.
        let functions = unsafe { finish_functions(one_module, all, ())? };
        let each = start.elapsed().as_secs_f64() * 1e6 / functions.len() as f64;
        row("in_process and finish", one, Some(each), alone);
    }
    Ok(())
}
