//! The JIT: from a verified module to code in this process, with one backend or the other.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use super::code::{Code, KeepAlive};
#[cfg(feature = "cranelift")]
use super::cranelift_jit::CraneliftJit;
use super::debug::{Debugging, Perf};
use super::error::EngineError;
#[cfg(feature = "_llvm")]
use super::llvm_jit::{IrCompiler, LlvmJit};
use super::objects::{LoadedObjects, Unit};
use super::symbols::SymbolResolver;
use crate::backend::{Backend, OptLevel};
#[cfg(feature = "_llvm")]
use crate::ir::FuncDecl;
use crate::ir::VerifiedModule;

/// Compiles modules for this machine and loads them. Cheap to clone; clones share everything.
///
/// `load` may run on any number of threads at once. They share the target, the symbols and what code needs alive,
/// all immutable once built, and the pool of idle compilers, which a lock guards and which none holds while compiling.
///
/// ```
/// # use tvm_ffi_codegen::{engine::Jit, ir::*};
/// # let mut module = Module::new();
/// # let f = module.declare("forty_two", FuncSig::new([], Some(Type::I32)), Linkage::Export);
/// # let mut b = FunctionBuilder::new(&mut module, f);
/// # let v = b.iconst(Type::I32, 42);
/// # b.ret(Some(v));
/// # b.finish();
/// # let module = verify(module).unwrap();
/// let jit = Jit::builder().build()?;
/// let code = jit.load(&module)?;
/// let address = code.function("forty_two").unwrap();
/// // SAFETY: the function has this signature, and `code` outlives the call.
/// let forty_two: extern "C" fn() -> i32 = unsafe { std::mem::transmute(address) };
/// assert_eq!(forty_two(), 42);
/// # Ok::<(), tvm_ffi_codegen::engine::EngineError>(())
/// ```
#[derive(Clone)]
pub struct Jit {
    inner: Arc<Inner>,
}

struct Inner {
    loader: Box<dyn Loader>,
    backend: Backend,
    symbols: SymbolResolver,
    /// A further way to find symbols, after all others.
    last: OnceLock<Box<Find>>,
    keep_alive: Vec<KeepAlive>,
    /// Compiles LLVM's IR of somebody else, whatever the backend.
    #[cfg(feature = "_llvm")]
    llvm_ir: IrCompiler,
}

/// Finds the address of a symbol, which stays good for good.
type Find = dyn Fn(&str) -> Option<*const u8> + Send + Sync;

impl fmt::Debug for Jit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jit")
            .field("backend", &self.inner.backend)
            .field("symbols", &self.inner.symbols)
            .finish_non_exhaustive()
    }
}

/// What a backend does for the [`Jit`]: compile, ask for addresses, and load.
pub(super) trait Loader: Send + Sync {
    /// Compiles a module and loads it. `resolve` is asked once, for everything that the code refers to.
    fn load(
        &self,
        module: &VerifiedModule,
        resolve: Resolve<'_>,
        keep_alive: Vec<KeepAlive>,
    ) -> Result<Code, EngineError>;

    /// Links objects into this process. `addresses` are those of the unit's imports; a weak import that nobody defines has address 0.
    fn load_objects(&self, unit: &Unit<'_>, addresses: &[usize]) -> Result<LoadedObjects, EngineError>;
}

/// Gives the addresses of names, in their order, or says which are missing.
pub(crate) type Resolve<'a> = &'a dyn Fn(&[String]) -> Result<Vec<*const u8>, EngineError>;

/// The settings that a [`Jit`] is built with.
#[derive(Debug, Default)]
pub struct JitBuilder {
    backend: Backend,
    opt_level: OptLevel,
    verifier: Option<bool>,
    threads: Option<NonZeroUsize>,
    baseline: bool,
    debugging: Debugging,
    symbols: SymbolResolver,
    keep_alive: Vec<KeepAlive>,
}

/// The symbols and owners of one load, besides the [`Jit`]'s own.
#[derive(Debug, Default)]
pub struct LoadOptions<'a> {
    /// Symbols that come before the [`Jit`]'s own.
    pub symbols: &'a [(&'a str, *const u8)],
    /// Values that live as long as the code.
    pub keep_alive: Vec<KeepAlive>,
}

impl JitBuilder {
    /// Sets the code generator: the default [`Backend`] unless stated.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Adds a symbol. The address must stay good for as long as code that uses it; see [`keep_alive`](Self::keep_alive).
    pub fn symbol(mut self, name: impl Into<String>, address: *const u8) -> Self {
        self.symbols.add(name, address);
        self
    }

    /// Adds a table of symbols, such as the runtime's.
    pub fn symbols<N: Into<String>>(mut self, table: impl IntoIterator<Item = (N, *const u8)>) -> Self {
        self.symbols.add_all(table);
        self
    }

    /// Looks for symbols among those that the process exports, too, after all others.
    pub fn search_process(mut self) -> Self {
        self.symbols.search_process();
        self
    }

    /// Keeps something alive for as long as any code that is loaded.
    pub fn keep_alive(mut self, what: KeepAlive) -> Self {
        self.keep_alive.push(what);
        self
    }

    /// Sets the level of optimisation.
    pub fn opt_level(mut self, level: OptLevel) -> Self {
        self.opt_level = level;
        self
    }

    /// Whether Cranelift checks its own work; on by default in debug builds. What LLVM gets is always checked, since it
    /// crashes on what is malformed.
    pub fn verifier(mut self, yes: bool) -> Self {
        self.verifier = Some(yes);
        self
    }

    /// The most threads to compile a module on; as many as the machine has, unless stated. Only Cranelift uses more than one, for modules
    /// with so many instructions that a thread is worth starting.
    pub fn threads(mut self, most: NonZeroUsize) -> Self {
        self.threads = Some(most);
        self
    }

    /// Whether to use only instructions that every CPU of the architecture has, as an object for any machine would.
    /// Off by default.
    pub fn baseline_cpu(mut self, yes: bool) -> Self {
        self.baseline = yes;
        self
    }

    /// Whether debuggers, unwinders and backtraces are told of modules. By default they are told of modules with source locations, and unwinders
    /// of modules with state, too.
    pub fn debug_info(mut self, yes: bool) -> Self {
        self.debugging.info = Some(yes);
        self
    }

    /// Tells Linux' profiler of all code. Elsewhere it does nothing. Unless set, the environment variable `TVM_FFI_CODEGEN_PERF` says: `map` or
    /// `jitdump`.
    pub fn perf(mut self, perf: Perf) -> Self {
        self.debugging.perf = Some(perf);
        self
    }

    /// Builds the JIT.
    ///
    /// # Errors
    /// The backend has no code generator for this machine, or `TVM_FFI_CODEGEN_PERF` has an unknown value.
    pub fn build(self) -> Result<Jit, EngineError> {
        let debugging = self.debugging.or_environment()?;
        let loader: Box<dyn Loader> = match self.backend {
            #[cfg(feature = "cranelift")]
            Backend::Cranelift => {
                Box::new(CraneliftJit::new(self.opt_level, self.verifier, self.threads, self.baseline, debugging)?)
            }
            #[cfg(feature = "_llvm")]
            Backend::Llvm => Box::new(LlvmJit::new(self.opt_level, self.baseline, debugging)?),
        };
        #[cfg(feature = "_llvm")]
        let llvm_ir = IrCompiler::new(self.opt_level, self.baseline);
        let JitBuilder { backend, symbols, keep_alive, .. } = self;
        let inner = Inner {
            loader,
            backend,
            symbols,
            last: OnceLock::new(),
            keep_alive,
            #[cfg(feature = "_llvm")]
            llvm_ir,
        };
        Ok(Jit { inner: Arc::new(inner) })
    }
}

impl Jit {
    /// The settings of a new JIT.
    pub fn builder() -> JitBuilder {
        JitBuilder::default()
    }

    /// The code generator.
    pub fn backend(&self) -> Backend {
        self.inner.backend
    }

    /// The symbols that imports are resolved with.
    pub fn symbols(&self) -> &SymbolResolver {
        &self.inner.symbols
    }

    /// Lets a function find the symbols that nobody else has, unless there is such a function.
    pub(super) fn resolve_last_by(&self, find: impl Fn(&str) -> Option<*const u8> + Send + Sync + 'static) {
        self.inner.last.get_or_init(|| Box::new(find));
    }

    /// Compiles a module and loads it.
    ///
    /// # Errors
    /// Symbols are missing, or the system gives no memory.
    pub fn load(&self, module: &VerifiedModule) -> Result<Arc<Code>, EngineError> {
        self.load_with(module, LoadOptions::default())
    }

    /// As [`load`](Self::load), with symbols and owners of its own.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with(&self, module: &VerifiedModule, options: LoadOptions<'_>) -> Result<Arc<Code>, EngineError> {
        if let Some(what) = module.only_in_objects() {
            return Err(EngineError::OnlyInObjects { what });
        }
        let mut keep_alive = options.keep_alive;
        keep_alive.extend(self.inner.keep_alive.iter().cloned());
        let resolve = |names: &[String]| self.resolve(names, options.symbols);
        Ok(Arc::new(self.inner.loader.load(module, &resolve, keep_alive)?))
    }

    /// Links objects that kernels come with. `addresses` are those of the unit's imports.
    pub(super) fn load_objects(&self, unit: &Unit<'_>, addresses: &[usize]) -> Result<LoadedObjects, EngineError> {
        self.inner.loader.load_objects(unit, addresses)
    }

    /// Compiles a module in LLVM's IR, text or bitcode, to an object; `label` is the module in words, and `kernels` are functions of it.
    #[cfg(feature = "_llvm")]
    pub(super) fn compile_llvm(
        &self,
        module: &[u8],
        kernels: &[&FuncDecl],
        label: &str,
    ) -> Result<Vec<u8>, EngineError> {
        self.inner.llvm_ir.compile(module, kernels, label)
    }

    /// The addresses of all that code refers to, or the names of all that is missing.
    fn resolve(&self, names: &[String], extra: &[(&str, *const u8)]) -> Result<Vec<*const u8>, EngineError> {
        let mut found = Vec::with_capacity(names.len());
        let mut missing = Vec::new();
        for name in names {
            let own = extra.iter().find(|(known, _)| known == name).map(|&(_, address)| address);
            let last = || self.inner.last.get().and_then(|find| find(name));
            match own.or_else(|| self.inner.symbols.resolve(name)).or_else(last) {
                Some(address) => found.push(address),
                None => missing.push(name.clone()),
            }
        }
        if missing.is_empty() {
            Ok(found)
        } else {
            Err(EngineError::Unresolved { names: missing, callers: BTreeMap::new(), references: BTreeMap::new() })
        }
    }
}
