//! The engine: compiles signatures and kernels to callable functions.

use std::sync::Arc;

#[cfg(not(feature = "external-runtime"))]
use tvm_ffi_runtime::AsObject;
use tvm_ffi_runtime::abi::TVMFFISafeCallType;
use tvm_ffi_runtime::abi::symbol::{FUNCTION, LIBRARY_CTX};
use tvm_ffi_runtime::{self as runtime, Function};

use super::code::Code;
use super::compiled::{Compiled, Owner};
use super::error::EngineError;
use super::helpers::{Helpers, Linked, Needs};
use super::jit::{Jit, JitBuilder, LoadOptions};
#[cfg(not(feature = "external-runtime"))]
use super::jit_module::{self, ModuleFunction};
use super::natives::{LinkedNatives, Natives};
use super::options::{Builder, Options};
use crate::backend;
use crate::ir::{self, Data, DataKind, FuncDecl, VerifiedModule};
use crate::lower::{self, Capabilities, Kernel, Lowered, LoweredFunction, Purpose, Recipe, RuntimeHelpers};
use crate::spec::Signature;

/// The memory in bytes that must be available before a compilation starts. A small compilation needs less.
const COMPILATION: usize = 1 << 20;

/// Checks that memory is available while an error can still be returned: compilers abort the process when an allocation
/// fails.
fn check_memory() -> Result<(), EngineError> {
    let mut memory: Vec<u8> = Vec::new();
    let no_memory = |_| EngineError::Memory { size: COMPILATION, source: std::io::ErrorKind::OutOfMemory.into() };
    memory.try_reserve_exact(COMPILATION).map_err(no_memory)
}

/// Lists the wrappers of a compilation, after the check of the memory, since a list needs memory too.
fn list<'a>(
    wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel)>,
) -> Result<Vec<(&'a Signature, &'a Kernel)>, EngineError> {
    check_memory()?;
    Ok(wrappers.into_iter().collect())
}

/// Compiles wrappers into this process. Clones are cheap, and any number of threads can compile with one `&Engine`.
///
/// A [`Function`] keeps its code alive; dropping the last one of a module frees the memory. Errors, strings and tensors
/// that a call returns don't refer to the code.
///
/// Code that calls a function by its symbol gets the function of that name that this engine, or a clone, has compiled
/// last. It keeps that function alive. Symbols that you give are used for all other names. Code that calls functions of
/// imported modules, or caches global functions, belongs to a [module](runtime::Module) that the function keeps alive.
#[derive(Clone, Debug)]
pub struct Engine {
    jit: Jit,
    /// The runtime helpers of all wrappers, compiled when first needed.
    helpers: Arc<Helpers>,
    /// The functions that other code may call by their symbols.
    compiled: Arc<Compiled>,
    #[cfg(not(feature = "external-runtime"))]
    imports: Vec<runtime::Module>,
    bundled: bool,
    verifier: bool,
}

/// The settings specific to an [`Engine`].
#[derive(Debug)]
pub struct EngineSettings {
    #[cfg(not(feature = "external-runtime"))]
    imports: Vec<runtime::Module>,
    bundled: bool,
}

/// The builder of an [`Engine`].
pub type EngineBuilder = Builder<EngineSettings>;

impl EngineBuilder {
    /// Defines the address of a symbol, for [`Kernel::symbol`].
    ///
    /// # Safety
    /// The address is that of a C function with the prototype that each kernel of that name needs. It stays valid as
    /// long as any function of this engine lives.
    pub unsafe fn symbol(mut self, name: impl Into<String>, address: *const u8) -> Self {
        self.options.symbols.add(name, address);
        self
    }

    /// Looks up symbols that you didn't define among the exports of this process.
    ///
    /// # Safety
    /// The same as for [`symbol`](Self::symbol), for everything that the process exports.
    pub unsafe fn search_process(mut self) -> Self {
        self.options.symbols.search_process();
        self
    }

    /// Makes every module of this engine import another module, after those stated before, so its code can call that
    /// module's functions.
    #[cfg(not(feature = "external-runtime"))]
    pub fn import(mut self, module: runtime::Module) -> Self {
        self.own.imports.push(module);
        self
    }

    /// Binds the code to another implementation of the TVM FFI C API than the bundled one. An example is the
    /// `libtvm_ffi` that a Python process has loaded. A process has one runtime, so such an engine compiles to
    /// [code](Engine::compile_code), not to a [`Function`] of the bundled runtime.
    ///
    /// # Safety
    /// The table contains the `TVMFFI*` functions of one runtime, with the prototypes in `tvm/ffi/c_api.h`.
    pub unsafe fn external_runtime<N: Into<String>>(
        mut self,
        symbols: impl IntoIterator<Item = (N, *const u8)>,
    ) -> Self {
        self.options.symbols.add_all(symbols);
        self.own.bundled = false;
        self
    }

    /// Builds the engine.
    ///
    /// # Errors
    /// The backend doesn't support this machine, or a foreign runtime lacks a function that wrappers need. With the
    /// feature `external-runtime`: the process has no runtime. Without it: this binary's C symbols resolve to another
    /// runtime that was loaded before.
    pub fn build(self) -> Result<Engine, EngineError> {
        let Builder { mut options, own } = self;
        if own.bundled {
            runtime::capi::check_symbols()
                .map_err(|error| EngineError::NoRuntime { message: error.message().to_owned() })?;
            options
                .symbols
                .add_all(runtime::capi::symbols().iter().map(|(name, address)| (*name, address.as_ptr().cast())));
        }
        let verifier = options.verifier.unwrap_or(cfg!(debug_assertions));
        let jit = JitBuilder { options, ..JitBuilder::default() }.build()?;
        let helpers = Arc::new(Helpers::new(&jit, own.bundled)?);
        let of_jit = Arc::clone(&helpers);
        jit.resolve_last_by(move |name| of_jit.resolve(name));
        Ok(Engine {
            jit,
            helpers,
            compiled: Arc::default(),
            #[cfg(not(feature = "external-runtime"))]
            imports: own.imports,
            bundled: own.bundled,
            verifier,
        })
    }
}

impl Engine {
    /// An engine for this machine, bound to the bundled runtime.
    ///
    /// # Errors
    /// The errors of [`EngineBuilder::build`].
    pub fn new() -> Result<Self, EngineError> {
        Self::builder().build()
    }

    /// Starts building an engine.
    pub fn builder() -> EngineBuilder {
        let own = EngineSettings {
            #[cfg(not(feature = "external-runtime"))]
            imports: Vec::new(),
            bundled: true,
        };
        Builder { options: Options::default(), own }
    }

    /// The underlying JIT, with the engine's symbols and the runtime helpers that wrappers import.
    #[cfg(feature = "unstable")]
    pub fn jit(&self) -> &Jit {
        &self.jit
    }

    /// Compiles one wrapper.
    ///
    /// ```
    /// use tvm_ffi_codegen::{DLDataType, Engine, Kernel, Signature, TensorType, runtime::Tensor};
    ///
    /// let sig = Signature::builder("add_one")
    ///     .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
    ///     .param("y", TensorType::new(["n"], DLDataType::FLOAT32))
    ///     .build()?;
    /// let kernel = Kernel::body(|b| {
    ///     let (x, y) = (b.tensor("x"), b.tensor("y"));
    ///     b.for_range(0, b.dim("n"), |i| y.store([i], x.load([i]) + 1.0));
    /// });
    /// let engine = Engine::new()?;
    /// // SAFETY: the body stays within `0..n`, the shape that both tensors have.
    /// let add_one = unsafe { engine.compile(&sig, &kernel)? };
    ///
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    /// let y = Tensor::from_slice(&[0.0f32; 3], &[3])?;
    /// add_one.call((&x, &y))?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// The wrapper's checks make every call safe, provided that the kernel does its part. Given arguments that the
    /// signature accepts, the kernel reads and writes only what they describe. A native kernel has the prototype of its
    /// [convention](Kernel).
    ///
    /// # Errors
    /// The kernel doesn't fit the signature, its body has errors, or symbols are missing; all of these are listed.
    /// There isn't enough memory for the code, or to start the compilation. The process aborts if memory runs out
    /// during the compilation.
    pub unsafe fn compile(&self, signature: &Signature, kernel: &Kernel) -> Result<Function, EngineError> {
        // SAFETY: the caller guarantees the same.
        let function = unsafe { self.compile_functions([(signature, kernel)]) }?.pop();
        function.ok_or_else(|| undefined(&signature.symbol()))
    }

    /// Compiles wrappers that may call each other by their symbols. Returns their functions in order. Each function
    /// keeps the code of all alive.
    ///
    /// ```
    /// use tvm_ffi_codegen::{Engine, HostProgram};
    ///
    /// let program = HostProgram::parse(
    ///     "even(n: int64) -> bool { if n == 0 { return True; } let b = call symbol odd(n - 1) -> bool; return b; }
    ///      odd(n: int64) -> bool { if n == 0 { return False; } let b = call symbol even(n - 1) -> bool; return b; }",
    /// )?;
    /// // SAFETY: the bodies read no memory.
    /// let functions = unsafe { Engine::new()?.compile_functions(program.functions())? };
    /// assert!(functions[0].call((10,))?.cast::<bool>()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// The same as for [`compile`](Self::compile), for each kernel.
    ///
    /// # Errors
    /// The errors of [`compile`](Self::compile), or two wrappers have the same name. Either all wrappers are compiled
    /// or none.
    pub unsafe fn compile_functions<'a>(
        &self,
        wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel)>,
    ) -> Result<Vec<Function>, EngineError> {
        let all = list(wrappers)?;
        let signatures = all.iter().map(|(signature, _)| *signature);
        let wrappers = self.wrappers(&all)?;
        let safe_calls = signatures.clone().map(|signature| self.safe_call(&wrappers.code, signature));
        let safe_calls = safe_calls.collect::<Result<Vec<_>, EngineError>>()?;
        #[cfg(not(feature = "external-runtime"))]
        if wrappers.needs_module {
            let module = self.module_of(wrappers, signatures.clone())?;
            let function = |signature: &Signature| {
                let function = module.get_function(signature.name());
                function.ok().flatten().ok_or_else(|| undefined(&signature.symbol()))
            };
            return signatures.map(function).collect();
        }
        self.keep(&wrappers, None, signatures);
        // SAFETY: each function owns the code, so the address is valid as long as it can be called.
        let function = |safe_call| unsafe { Function::from_code(safe_call, Arc::clone(&wrappers.code)) };
        Ok(safe_calls.into_iter().map(function).collect())
    }

    /// Compiles wrappers into one module of kind `jit`, which imports what the engine's modules
    /// [import](EngineBuilder::import). Its code can call functions of these modules, and of modules that the caller
    /// lets it import. The module exposes the functions' docs and [metadata](crate::lower::metadata). With the feature
    /// `external-runtime` this function doesn't exist, since an external runtime's modules are C++ objects; use
    /// [`compile_code`](Self::compile_code) or [`compile`](Self::compile) instead.
    ///
    /// ```
    /// use tvm_ffi_codegen::{Engine, Kernel, Signature};
    ///
    /// let double = "double(n: int64) -> int64".parse::<Signature>()?.with_doc("2n");
    /// let kernel = Kernel::body(|b| b.ret(b.arg("n") * 2));
    /// // SAFETY: the body reads no memory.
    /// let module = unsafe { Engine::new()?.compile_module([(&double, &kernel)])? };
    /// assert_eq!(module.function_doc("double", false)?.as_deref(), Some("2n"));
    /// assert!(module.function_metadata("double", false)?.is_some_and(|text| text.contains("int64")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// The same as for [`compile`](Self::compile), for each kernel.
    ///
    /// # Errors
    /// The errors of [`compile`](Self::compile), or two wrappers have the same name. Either all wrappers are compiled
    /// or none.
    #[cfg(not(feature = "external-runtime"))]
    pub unsafe fn compile_module<'a>(
        &self,
        wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel)>,
    ) -> Result<runtime::Module, EngineError> {
        let all = list(wrappers)?;
        let wrappers = self.wrappers(&all)?;
        self.module_of(wrappers, all.iter().map(|(signature, _)| *signature))
    }

    /// Creates the module that owns the code of wrappers.
    #[cfg(not(feature = "external-runtime"))]
    fn module_of<'s>(
        &self,
        wrappers: Wrappers,
        signatures: impl Iterator<Item = &'s Signature> + Clone,
    ) -> Result<runtime::Module, EngineError> {
        let function = |(signature, lowered): (&Signature, &LoweredFunction)| {
            let safe_call = self.safe_call(&wrappers.code, signature)?;
            Ok(ModuleFunction { safe_call, signature: signature.clone(), launches: lowered.launches.clone() })
        };
        let functions = signatures.clone().zip(&wrappers.functions).map(function);
        let functions: Vec<_> = functions.collect::<Result<_, EngineError>>()?;
        // SAFETY: the caller that had the code compiled has guaranteed that it may be called, and nothing else owns the
        // code yet.
        let module = unsafe { jit_module::module(Arc::clone(&wrappers.code), functions) };
        self.keep(&wrappers, Some(module.as_object().downgrade()), signatures);
        self.importing(module)
    }

    /// Adds the imports that all modules of the engine have.
    #[cfg(not(feature = "external-runtime"))]
    fn importing(&self, module: runtime::Module) -> Result<runtime::Module, EngineError> {
        for import in &self.imports {
            // the module is new, so no import cycle is possible
            module.import_module(import).map_err(|error| EngineError::internal(error.to_string()))?;
        }
        Ok(module)
    }

    /// Compiles wrappers into code. Its [addresses](Code::function), by [`Signature::symbol`], have type
    /// `TVMFFISafeCallType`. You call them and keep the code alive. If the code calls functions of imported modules,
    /// you also [set](Code::set_library_context) the module that imports them.
    ///
    /// # Errors
    /// The errors of [`compile_module`](Self::compile_module).
    pub fn compile_code<'a>(
        &self,
        wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel)>,
    ) -> Result<Arc<Code>, EngineError> {
        let all = list(wrappers)?;
        let wrappers = self.wrappers(&all)?;
        self.keep(&wrappers, None, all.iter().map(|(signature, _)| *signature));
        Ok(wrappers.code)
    }

    /// Compiles the wrappers of a [`list`].
    fn wrappers(&self, wrappers: &[(&Signature, &Kernel)]) -> Result<Wrappers, EngineError> {
        let mut recipe = Recipe { purpose: Purpose::Process, helpers: RuntimeHelpers::Import, ..Recipe::default() };
        let mut natives = Natives::default();
        for &(signature, kernel) in wrappers {
            recipe = recipe.function(signature, kernel);
            natives.add(kernel);
        }
        let Lowered { module, functions, capabilities, always_binds } =
            recipe.lower().map_err(EngineError::Functions)?;
        let module = backend::verified(module, self.verifier)?;
        let code = self.load_needing(&module, Needs { capabilities, always_binds }, natives);
        let code = code.map_err(|error| match error {
            EngineError::Unresolved { names, references, .. } => {
                EngineError::Unresolved { names, callers: lower::callers(&module, &functions), references }
            }
            other => other,
        })?;
        // SAFETY: lowering generates destructors that only release what the module's functions have obtained from the
        // runtime, and end threads that these have started. That happens only after a function was called.
        unsafe { code.run_destructors_on_drop() };
        Ok(Wrappers { code, needs_module: needs_module(&module), functions })
    }

    /// Registers functions for code that will call them by their symbols.
    fn keep<'a>(
        &self,
        wrappers: &Wrappers,
        module: Option<runtime::WeakRef>,
        signatures: impl IntoIterator<Item = &'a Signature>,
    ) {
        let symbols: Vec<String> = signatures.into_iter().map(Signature::symbol).collect();
        let owner = Owner { code: Arc::downgrade(&wrappers.code), module };
        self.compiled.add(symbols.iter().map(String::as_str), &owner);
    }

    /// Loads a lowered module.
    ///
    /// # Errors
    /// Symbols are missing, or the system has no memory.
    #[cfg(feature = "unstable")]
    pub fn load(&self, module: &VerifiedModule) -> Result<Arc<Code>, EngineError> {
        let needs = Needs { capabilities: Capabilities::ALL, always_binds: false };
        self.load_needing(module, needs, Natives::default())
    }

    fn load_needing(&self, module: &VerifiedModule, needs: Needs, natives: Natives) -> Result<Arc<Code>, EngineError> {
        let Linked { mut symbols, mut keep_alive } = self.helpers.link(&self.jit, module, needs)?;
        let helpers: Vec<&str> = symbols.iter().map(|(name, _)| *name).collect();
        let imports = module.imports().map(|(_, import)| import);
        let imports: Vec<&FuncDecl> = imports.filter(|import| !helpers.contains(&import.name.as_str())).collect();
        let compiled = |name: &str| name.starts_with(FUNCTION).then(|| self.compiled.find(name)).flatten();
        let LinkedNatives { symbols: kernels, keep_alive: owners } = natives.link(&self.jit, &imports, &compiled)?;
        symbols.extend(kernels.iter().map(|(name, address)| (name.as_str(), *address)));
        keep_alive.extend(owners);
        for (_, import) in module.imports() {
            if import.name.starts_with(FUNCTION)
                && !symbols.iter().any(|(known, _)| *known == import.name)
                && let Some((address, keep)) = self.compiled.find(&import.name)
            {
                symbols.push((import.name.as_str(), address));
                keep_alive.push(keep);
            }
        }
        self.jit.load_with(module, LoadOptions { symbols: &symbols, keep_alive })
    }

    fn safe_call(&self, code: &Code, signature: &Signature) -> Result<TVMFFISafeCallType, EngineError> {
        if !self.bundled {
            return Err(EngineError::ForeignRuntime);
        }
        let symbol = signature.symbol();
        let address = code.function(&symbol).ok_or_else(|| undefined(&symbol))?;
        // SAFETY: lowering exports wrappers under this symbol with the prototype of `TVMFFISafeCallType`
        // (tvm/ffi/c_api.h), and a code address is not null.
        Ok(unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) })
    }
}

fn undefined(symbol: &str) -> EngineError {
    EngineError::internal(format!("{symbol} was not defined"))
}

/// Compiled wrappers.
struct Wrappers {
    code: Arc<Code>,
    /// Whether the code needs a module object, because it caches values or looks up imports.
    #[cfg_attr(feature = "external-runtime", allow(dead_code))] // modules can't be created there
    needs_module: bool,
    /// The lowered functions, in order.
    #[cfg_attr(feature = "external-runtime", allow(dead_code))]
    functions: Vec<LoweredFunction>,
}

fn needs_module(module: &ir::Module) -> bool {
    let of_module = |data: &Data| match data.kind {
        DataKind::State => true,
        DataKind::Variable => data.name == LIBRARY_CTX,
        DataKind::Constant => false,
    };
    module.data.values().any(of_module)
}

#[cfg(all(test, not(feature = "external-runtime")))]
mod tests;
