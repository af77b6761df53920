//! The targets of callers' modules, with the runtime helpers compiled for them. They are kept for the process, so a
//! module gets its helpers as bytes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::Flags;
use target_lexicon::Endianness;

use crate::backend::CodegenError;
use crate::backend::cranelift::{ByLoops, CompiledModule, Compiler, Options, isa_identity};
use crate::engine::ObjectPool;
use crate::ir::{HOST_ENDIANNESS, VerifiedModule};
use crate::lower::{Capabilities, HelperSet, local_helpers_module};

/// The maximum number of targets per process, and of helper sets per target.
const TARGETS: usize = 16;
const SETS: usize = 16;

/// A target of callers' modules.
pub(super) struct ModuleTarget {
    /// The key of a target.
    flags: Flags,
    identity: String,
    isas: ByLoops,
    endianness: Endianness,
    helpers: Mutex<Vec<(HelperSet, Capabilities, Arc<CompiledModule>)>>,
}

/// The most recently used targets, the newest at the end.
static KNOWN: Mutex<Vec<Arc<ModuleTarget>>> = Mutex::new(Vec::new());
static COMPILERS: ObjectPool<Box<Compiler>> = ObjectPool::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModuleTarget {
    /// The target of a module.
    ///
    /// # Errors
    /// Cranelift doesn't know its triple.
    pub(super) fn of(isa: &dyn TargetIsa) -> Result<Arc<Self>, CodegenError> {
        let identity = isa_identity(isa);
        let mut known = lock(&KNOWN);
        let same = |target: &Arc<Self>| target.flags == *isa.flags() && target.identity == identity;
        if let Some(target) = known.iter().find(|target| same(target)) {
            return Ok(Arc::clone(target));
        }
        let target = Arc::new(ModuleTarget {
            flags: isa.flags().clone(),
            identity,
            isas: ByLoops::like(isa, cfg!(debug_assertions))?,
            endianness: isa.triple().endianness().unwrap_or(HOST_ENDIANNESS),
            helpers: Mutex::default(),
        });
        if known.len() == TARGETS {
            known.remove(0);
        }
        known.push(Arc::clone(&target));
        Ok(target)
    }

    /// Compiles a module like an engine.
    pub(super) fn compile(&self, module: &VerifiedModule) -> Result<CompiledModule, CodegenError> {
        let mut compiler = COMPILERS.take().unwrap_or_default();
        let compiled = compiler.compile_by_loops(module, &self.isas, Options::default());
        if !compiler.is_bloated() {
            COMPILERS.give(compiler);
        }
        Ok(compiled?)
    }

    /// The helpers of a set, compiled for the target.
    pub(super) fn helpers(
        &self,
        set: HelperSet,
        capabilities: Capabilities,
    ) -> Result<Arc<CompiledModule>, CodegenError> {
        let find = |kept: &[(HelperSet, Capabilities, Arc<CompiledModule>)]| {
            let found = kept.iter().find(|(known, has, _)| *known == set && *has == capabilities);
            found.map(|(_, _, compiled)| Arc::clone(compiled))
        };
        if let Some(compiled) = find(&lock(&self.helpers)) {
            return Ok(compiled);
        }
        let module = local_helpers_module(set, capabilities, self.endianness);
        let compiled = Arc::new(self.compile(&VerifiedModule::lowered(module, cfg!(debug_assertions))?)?);
        let mut kept = lock(&self.helpers);
        if kept.len() == SETS {
            kept.remove(0);
        }
        kept.push((set, capabilities, Arc::clone(&compiled)));
        Ok(compiled)
    }
}
