//! Loading what Cranelift made: `cranelift-jit` links it into one mapping, which is ours.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::default_libcall_names;
use target_lexicon::Triple;

use super::code::{Code, KeepAlive, Symbols};
use super::error::EngineError;
use super::jit::{Loader, Resolve};
use super::memory::Arena;
use super::pool::Pool;
use crate::backend::cranelift::{Bindings, ByLoops, CompiledModule, Compiler, IsaOptions, Options, host_isa, isa_for};
use crate::backend::{CodegenError, OptLevel};
use crate::ir::VerifiedModule;

/// Compiles with Cranelift and loads.
pub(super) struct CraneliftJit {
    isas: ByLoops,
    threads: Option<NonZeroUsize>,
    pool: Pool<Box<Compiler>>,
}

impl CraneliftJit {
    /// `baseline`: for any CPU of the architecture.
    pub(super) fn new(
        opt_level: OptLevel,
        verifier: Option<bool>,
        threads: Option<NonZeroUsize>,
        baseline: bool,
    ) -> Result<Self, EngineError> {
        // nobody counts the bytes
        let mut options = IsaOptions { single_pass: true, ..IsaOptions::default() };
        options.verifier = verifier.unwrap_or(options.verifier);
        let isas = ByLoops::new(opt_level, &options, |options| match baseline {
            true => isa_for(&Triple::host(), options),
            false => host_isa(options),
        })
        .map_err(CodegenError::from)?;
        Ok(CraneliftJit { isas, threads, pool: Pool::default() })
    }

    /// Compiles a module without loading it, with a compiler of the pool. A frame of its own, so that a tool that
    /// doesn't know the pool's lock can be told of this one (xtask/valgrind.supp).
    #[inline(never)]
    pub(super) fn compile(&self, module: &VerifiedModule, options: Options) -> Result<CompiledModule, EngineError> {
        let mut compiler = self.pool.take().unwrap_or_default();
        let compiled = compiler.compile_by_loops(module, &self.isas, options);
        if !compiler.is_bloated() {
            self.pool.give(compiler);
        }
        Ok(compiled.map_err(CodegenError::from)?)
    }

    /// Loads what [`compile`](Self::compile) made. It may be loaded any number of times.
    pub(super) fn link(
        &self,
        compiled: &CompiledModule,
        resolve: Resolve<'_>,
        keep_alive: Vec<KeepAlive>,
    ) -> Result<Code, EngineError> {
        let libcall_name = default_libcall_names();
        let libcalls = compiled.libcalls().iter().map(|&call| libcall_name(call));
        let names: Vec<String> = compiled.imports().map(|f| f.name.clone()).chain(libcalls).collect();
        let addresses = resolve(&names)?;

        let (size, state) = (compiled.loaded_size(), compiled.writable_size());
        let memory = |source| EngineError::Memory { size: size.saturating_add(state), source };
        let (arena, finished) = Arena::new(size, state).map_err(memory)?;

        // `JITModule` panics where it can't go on. All the reasons are excluded by now; if not, it must not get out.
        let symbols = catch_unwind(AssertUnwindSafe(|| {
            let mut builder = JITBuilder::with_isa(Arc::clone(&self.isas.straight), default_libcall_names());
            builder.symbols(names.into_iter().zip(addresses));
            builder.memory_provider(Box::new(arena));
            let mut module = JITModule::new(builder);
            let placed = compiled.place(&mut module, &Bindings::new(), false).map_err(CodegenError::from)?;
            module.finalize_definitions().map_err(|e| CodegenError::Cranelift(e.into()))?;
            let address = |id| module.get_finalized_function(id).expose_provenance();
            let variable = |id| module.get_finalized_data(id).0.expose_provenance();
            Ok::<_, EngineError>(Symbols {
                functions: placed.defined.functions().map(|(name, id)| (name.into(), address(id))).collect(),
                variables: placed.defined.variables().map(|(name, id)| (name.into(), variable(id))).collect(),
                destructors: placed.destructors.into_iter().map(address).collect(),
            })
            // The module's tables go here; the code itself stays in the mapping, which is `finished`'s by now.
        }))
        .map_err(|_| EngineError::internal("Cranelift's JIT panicked while linking"))??;

        let mapping = finished.take().ok_or_else(|| EngineError::internal("the code was not finalized"))?;
        let sizes = (compiled.code_size(), compiled.data_size());
        Ok(Code::new(symbols, sizes, Box::new(mapping), keep_alive))
    }
}

impl Loader for CraneliftJit {
    fn load(
        &self,
        module: &VerifiedModule,
        resolve: Resolve<'_>,
        keep_alive: Vec<KeepAlive>,
    ) -> Result<Code, EngineError> {
        let compiled = self.compile(module, Options { threads: self.threads, ..Options::default() })?;
        self.link(&compiled, resolve, keep_alive)
    }
}
