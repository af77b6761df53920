//! The settings for code in this process, shared by engines and JITs.

use std::num::NonZeroUsize;

use super::code::KeepAlive;
use super::debug::{Debugging, Perf};
use super::symbols::SymbolResolver;
use crate::backend::{Backend, OptLevel};

/// The settings of all code.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub backend: Backend,
    pub opt_level: OptLevel,
    pub verifier: Option<bool>,
    pub threads: Option<NonZeroUsize>,
    /// Generate code for every CPU of the architecture.
    pub baseline: bool,
    pub debugging: Debugging,
    pub symbols: SymbolResolver,
    pub keep_alive: Vec<KeepAlive>,
}

/// The builder of an [`Engine`](super::Engine) or a `Jit`; `S` has the settings specific to one of them.
#[derive(Debug, Default)]
#[must_use = "nothing is built before `build`"]
pub struct Builder<S> {
    pub(super) options: Options,
    pub(super) own: S,
}

impl<S> Builder<S> {
    /// Keeps something, such as a loaded library, alive as long as any loaded code.
    pub fn keep_alive(mut self, what: KeepAlive) -> Self {
        self.options.keep_alive.push(what);
        self
    }

    /// Sets the code generator. The default is Cranelift if the crate's features enable it.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.options.backend = backend;
        self
    }

    /// Sets the level of optimisation.
    pub fn opt_level(mut self, level: OptLevel) -> Self {
        self.options.opt_level = level;
        self
    }

    /// Sets the max number of threads to compile a module on; by default the machine's number of CPUs. Only Cranelift
    /// uses more than one, for modules with enough instructions to make a thread worth starting.
    pub fn threads(mut self, max: NonZeroUsize) -> Self {
        self.options.threads = Some(max);
        self
    }

    /// Sets whether an engine verifies the IR that lowering generates, and whether Cranelift checks its own work. Both
    /// are on by default in debug builds. LLVM's IR is always verified, since LLVM crashes on malformed IR.
    pub fn verifier(mut self, yes: bool) -> Self {
        self.options.verifier = Some(yes);
        self
    }

    /// Sets whether code is registered with debuggers, backtraces and unwinders. By default, modules whose bodies have
    /// source locations are registered with all of these, and modules that call other functions with unwinders.
    pub fn debug_info(mut self, yes: bool) -> Self {
        self.options.debugging.info = Some(yes);
        self
    }

    /// Registers all code with Linux's profiler `perf`; does nothing on other systems. The default comes from the
    /// environment variable `TVM_FFI_CODEGEN_PERF`: `map` or `jitdump`.
    pub fn perf(mut self, perf: Perf) -> Self {
        self.options.debugging.perf = Some(perf);
        self
    }
}
