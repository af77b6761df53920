//! The JIT: loads verified modules into this process, with either backend.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::code::{Code, KeepAlive};
#[cfg(feature = "cranelift")]
use super::cranelift_jit::CraneliftJit;
use super::error::EngineError;
#[cfg(feature = "_llvm")]
use super::llvm_jit::{IrCompiler, LlvmJit};
use super::loader::Loader;
use super::objects::{LoadedObjects, Unit};
use super::options::{Builder, Options};
use super::symbols::SymbolResolver;
use crate::backend::Backend;
use crate::globals::register_globals;
#[cfg(feature = "_llvm")]
use crate::ir::FuncDecl;
use crate::ir::VerifiedModule;

/// Compiles modules for this machine and loads them. Clones are cheap and share everything.
///
/// Any number of threads can call `load` at the same time. They share the target, the symbols and the code's owners,
/// which are immutable once built. They also share the pool of idle compilers; its lock isn't held while compiling.
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
    /// Finds symbols that no other source defines.
    last: OnceLock<Box<Find>>,
    keep_alive: Vec<KeepAlive>,
    /// Compiles a caller's LLVM IR, for every backend.
    #[cfg(feature = "_llvm")]
    llvm_ir: IrCompiler,
}

/// Finds the address of a symbol. The address stays valid forever.
type Find = dyn Fn(&str) -> Option<*const u8> + Send + Sync;

impl fmt::Debug for Jit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jit")
            .field("backend", &self.inner.backend)
            .field("symbols", &self.inner.symbols)
            .finish_non_exhaustive()
    }
}

/// The settings specific to a [`Jit`]: none.
#[derive(Debug, Default)]
pub struct JitSettings;

/// The builder of a [`Jit`].
pub type JitBuilder = Builder<JitSettings>;

/// The symbols and owners of one load, in addition to the [`Jit`]'s own.
#[derive(Debug, Default)]
pub struct LoadOptions<'a> {
    /// Symbols that take precedence over the [`Jit`]'s own.
    pub symbols: &'a [(&'a str, *const u8)],
    /// Values that live as long as the code.
    pub keep_alive: Vec<KeepAlive>,
}

#[cfg_attr(not(feature = "unstable"), doc(hidden))]
impl JitBuilder {
    /// Adds a symbol. The address must stay valid as long as code that uses it; see [`keep_alive`](Self::keep_alive).
    pub fn symbol(mut self, name: impl Into<String>, address: *const u8) -> Self {
        self.options.symbols.add(name, address);
        self
    }

    /// Adds a table of symbols, such as the runtime's.
    pub fn symbols<N: Into<String>>(mut self, table: impl IntoIterator<Item = (N, *const u8)>) -> Self {
        self.options.symbols.add_all(table);
        self
    }

    /// Searches the exports of the process as well, after all other symbols.
    pub fn search_process(mut self) -> Self {
        self.options.symbols.search_process();
        self
    }

    /// Whether to use only instructions that every CPU of the architecture has, as a portable object would. Off by
    /// default.
    pub fn baseline_cpu(mut self, yes: bool) -> Self {
        self.options.baseline = yes;
        self
    }

    /// Builds the JIT.
    ///
    /// # Errors
    /// The backend doesn't support this machine, or `TVM_FFI_CODEGEN_PERF` has an unknown value.
    pub fn build(self) -> Result<Jit, EngineError> {
        let mut options = self.options;
        options.debugging = options.debugging.or_environment()?;
        // without the runtime's global function, launches on the CPU use one thread
        let _ = register_globals();
        let loader: Box<dyn Loader> = match options.backend {
            #[cfg(feature = "cranelift")]
            Backend::Cranelift => Box::new(CraneliftJit::new(&options)?),
            #[cfg(feature = "_llvm")]
            Backend::Llvm => Box::new(LlvmJit::new(&options)?),
        };
        #[cfg(feature = "_llvm")]
        let llvm_ir = IrCompiler::new(&options);
        let Options { backend, symbols, keep_alive, .. } = options;
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
    /// Starts building a JIT.
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

    /// Sets the function that finds otherwise undefined symbols, unless one is set.
    pub(super) fn resolve_last_by(&self, find: impl Fn(&str) -> Option<*const u8> + Send + Sync + 'static) {
        self.inner.last.get_or_init(|| Box::new(find));
    }

    /// Compiles a module and loads it.
    ///
    /// # Errors
    /// Symbols are missing, or the system has no memory.
    pub fn load(&self, module: &VerifiedModule) -> Result<Arc<Code>, EngineError> {
        self.load_with(module, LoadOptions::default())
    }

    /// Like [`load`](Self::load), with additional symbols and owners.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub fn load_with(&self, module: &VerifiedModule, options: LoadOptions<'_>) -> Result<Arc<Code>, EngineError> {
        if let Some(what) = module.only_in_objects() {
            return Err(EngineError::OnlyInObjects { what });
        }
        let mut keep_alive = options.keep_alive;
        keep_alive.extend(self.inner.keep_alive.iter().cloned());
        let resolve = |names: &[String]| self.resolve(names, options.symbols);
        Ok(Arc::new(self.inner.loader.load(module, &resolve, keep_alive)?))
    }

    /// Links kernels' objects. `addresses` are those of the unit's imports.
    pub(super) fn load_objects(&self, unit: &Unit<'_>, addresses: &[usize]) -> Result<LoadedObjects, EngineError> {
        self.inner.loader.load_objects(unit, addresses)
    }

    /// Compiles a module in LLVM IR, text or bitcode, to an object. `label` describes the module in messages, and
    /// `kernels` are functions of it.
    #[cfg(feature = "_llvm")]
    pub(super) fn compile_llvm(
        &self,
        module: &[u8],
        kernels: &[&FuncDecl],
        label: &str,
    ) -> Result<Vec<u8>, EngineError> {
        self.inner.llvm_ir.compile(module, kernels, label)
    }

    /// The addresses of all symbols that the code refers to, or the names of all missing ones.
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
