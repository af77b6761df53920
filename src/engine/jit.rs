//! The JIT: from a verified module to code in this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::default_libcall_names;

use super::code::{Code, KeepAlive};
use super::error::EngineError;
use super::memory::Arena;
use super::symbols::SymbolResolver;
use crate::backend::OptLevel;
use crate::backend::cranelift::{Bindings, CompiledModule, Compiler, IsaOptions, Options, host_isa};
use crate::ir::VerifiedModule;

/// How many idle compilers to keep.
const POOL: usize = 16;

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
    isa: OwnedTargetIsa,
    symbols: SymbolResolver,
    keep_alive: Vec<KeepAlive>,
    pool: Mutex<Vec<Box<Compiler>>>,
}

/// What a [`Jit`] is made of.
#[derive(Default)]
pub struct JitBuilder {
    symbols: SymbolResolver,
    keep_alive: Vec<KeepAlive>,
    isa: IsaOptions,
}

/// What one load needs beyond what the [`Jit`] knows.
#[derive(Default)]
pub struct LoadOptions<'a> {
    /// Symbols that come before the [`Jit`]'s own.
    pub symbols: &'a [(&'a str, *const u8)],
    /// What the code needs alive.
    pub keep_alive: Vec<KeepAlive>,
}

impl JitBuilder {
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

    /// Whether to look for symbols among those that the process exports, after all others. Off by default.
    pub fn search_process(mut self, yes: bool) -> Self {
        self.symbols.search_process(yes);
        self
    }

    /// Keeps something alive for as long as any code that is loaded.
    pub fn keep_alive(mut self, what: KeepAlive) -> Self {
        self.keep_alive.push(what);
        self
    }

    /// How much to optimise.
    pub fn opt_level(mut self, level: OptLevel) -> Self {
        self.isa.opt_level = level;
        self
    }

    /// Whether Cranelift checks its own work; on by default in debug builds.
    pub fn verifier(mut self, yes: bool) -> Self {
        self.isa.verifier = yes;
        self
    }

    /// Builds it; fails on a machine that Cranelift has no code generator for.
    pub fn build(self) -> Result<Jit, EngineError> {
        let isa = host_isa(&self.isa)?;
        Ok(Jit {
            inner: Arc::new(Inner { isa, symbols: self.symbols, keep_alive: self.keep_alive, pool: Mutex::default() }),
        })
    }
}

impl Jit {
    /// Starts building one.
    pub fn builder() -> JitBuilder {
        JitBuilder::default()
    }

    /// The target that code is made for.
    pub fn isa(&self) -> &OwnedTargetIsa {
        &self.inner.isa
    }

    /// The symbols that imports are resolved with.
    pub fn symbols(&self) -> &SymbolResolver {
        &self.inner.symbols
    }

    /// Compiles a module and loads it.
    pub fn load(&self, module: &VerifiedModule) -> Result<Arc<Code>, EngineError> {
        self.load_with(module, LoadOptions::default())
    }

    /// As [`load`](Self::load), with symbols and owners of its own.
    pub fn load_with(&self, module: &VerifiedModule, options: LoadOptions<'_>) -> Result<Arc<Code>, EngineError> {
        let compiled = self.compile(module, Options::default())?;
        self.link(&compiled, options)
    }

    /// Compiles a module without loading it, with a compiler of the pool.
    pub fn compile(&self, module: &VerifiedModule, options: Options) -> Result<CompiledModule, EngineError> {
        let idle = self.inner.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut compiler = idle.unwrap_or_default();
        let compiled = compiler.compile(module, &*self.inner.isa, options);
        if !compiler.is_bloated() {
            let mut pool = self.inner.pool.lock().unwrap_or_else(PoisonError::into_inner);
            if pool.len() < POOL {
                pool.push(compiler);
            }
        }
        Ok(compiled?)
    }

    /// Loads what [`compile`](Self::compile) made. It may be loaded any number of times.
    pub fn link(&self, compiled: &CompiledModule, options: LoadOptions<'_>) -> Result<Arc<Code>, EngineError> {
        let symbols = self.resolve(compiled, options.symbols)?;
        let size = compiled.loaded_size();
        let memory = |source| EngineError::Memory { size, source };
        let (arena, finished) = Arena::new(size).map_err(memory)?;

        // `JITModule` panics where it can't go on. All the reasons are excluded by now; if not, it must not get out.
        let functions = catch_unwind(AssertUnwindSafe(|| {
            let mut builder = JITBuilder::with_isa(Arc::clone(&self.inner.isa), default_libcall_names());
            builder.symbols(symbols);
            builder.memory_provider(Box::new(arena));
            let mut module = JITModule::new(builder);
            let defined = compiled.add_to(&mut module, &Bindings::new())?;
            module.finalize_definitions().map_err(crate::backend::cranelift::Error::from)?;
            let address = |id| module.get_finalized_function(id).expose_provenance();
            Ok::<_, EngineError>(defined.functions().map(|(name, id)| (name.into(), address(id))).collect::<Vec<_>>())
            // The module's tables go here; the code itself stays in the mapping, which is `finished`'s by now.
        }))
        .map_err(|_| EngineError::Internal("Cranelift's JIT panicked while linking".to_owned()))??;

        let mapping = finished.take().ok_or_else(|| EngineError::Internal("the code was not finalized".to_owned()))?;
        let mut keep_alive = options.keep_alive;
        keep_alive.extend(self.inner.keep_alive.iter().cloned());
        let sizes = (compiled.code_size(), compiled.data_size());
        Ok(Arc::new(Code::new(functions, sizes, Box::new(mapping), keep_alive)))
    }

    /// The addresses of all that the code refers to, or the names of all that is missing.
    fn resolve(
        &self,
        compiled: &CompiledModule,
        extra: &[(&str, *const u8)],
    ) -> Result<Vec<(String, *const u8)>, EngineError> {
        let libcall_name = default_libcall_names();
        let libcalls = compiled.libcalls().iter().map(|&call| libcall_name(call));
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for name in compiled.imports().map(|f| f.name.clone()).chain(libcalls) {
            let own = extra.iter().find(|(known, _)| *known == name).map(|&(_, address)| address);
            match own.or_else(|| self.inner.symbols.resolve(&name)) {
                Some(address) => found.push((name, address)),
                None => missing.push(name),
            }
        }
        if missing.is_empty() { Ok(found) } else { Err(EngineError::Unresolved { names: missing }) }
    }
}
