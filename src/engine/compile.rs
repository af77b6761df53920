//! The engine: from signatures and kernels to functions that can be called.

use std::num::NonZeroUsize;
use std::sync::Arc;

#[cfg(not(feature = "external-runtime"))]
use tvm_ffi_runtime::AsObject;
use tvm_ffi_runtime::abi::TVMFFISafeCallType;
use tvm_ffi_runtime::abi::symbol::{FUNCTION, LIBRARY_CTX};
use tvm_ffi_runtime::{self as runtime, Function};

use super::code::{Code, KeepAlive};
use super::compiled::{Compiled, Owner};
use super::debug::Perf;
use super::error::EngineError;
use super::helpers::{Helpers, Linked, Needs};
use super::jit::{Jit, JitBuilder, LoadOptions};
#[cfg(not(feature = "external-runtime"))]
use super::jit_module::{self, ModuleFunction};
use super::natives::{LinkedNatives, Natives};
use crate::backend::{Backend, CodegenError, OptLevel};
use crate::ir::{self, Data, DataKind, FuncDecl, VerifiedModule};
use crate::lower::{Capabilities, Kernel, LaunchDescription, Lowering, RuntimeHelpers};
use crate::spec::Signature;

/// Compiles wrappers into this process. Cheap to clone; `&Engine` compiles from any number of threads at once.
///
/// A [`Function`] keeps its code alive, and the last one of a module to go gives the memory back. An error, string or tensor
/// that came out of a call holds nothing of the code.
///
/// Code that calls a function by its symbol finds the one of that name that this engine, or a clone, has compiled last, and keeps it
/// alive; [symbols](EngineBuilder::symbol) that were given are for all other names. Code that calls functions of imported modules, or
/// global functions that it keeps, belongs to a [module](runtime::Module) that the function keeps alive.
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

/// The settings that an [`Engine`] is built with.
#[derive(Debug)]
pub struct EngineBuilder {
    jit: JitBuilder,
    #[cfg(not(feature = "external-runtime"))]
    imports: Vec<runtime::Module>,
    bundled: bool,
    verifier: bool,
}

impl EngineBuilder {
    /// Gives a symbol its address, for [`Kernel::symbol`].
    ///
    /// # Safety
    /// The address is that of a C function whose prototype is what each kernel of that name needs, and stays good for as
    /// long as any function of this engine lives.
    pub unsafe fn symbol(mut self, name: impl Into<String>, address: *const u8) -> Self {
        self.jit = self.jit.symbol(name, address);
        self
    }

    /// Looks for symbols that nobody gave among those that this process exports.
    ///
    /// # Safety
    /// As for [`symbol`](Self::symbol), of whatever the process exports.
    pub unsafe fn search_process(mut self) -> Self {
        self.jit = self.jit.search_process();
        self
    }

    /// Keeps something, such as a loaded library, alive for as long as any code of this engine.
    pub fn keep_alive(mut self, what: KeepAlive) -> Self {
        self.jit = self.jit.keep_alive(what);
        self
    }

    /// Lets each module of this engine import another, after those that were stated before, so that its code can call functions of it.
    #[cfg(not(feature = "external-runtime"))]
    pub fn import(mut self, module: runtime::Module) -> Self {
        self.imports.push(module);
        self
    }

    /// Sets the code generator. Cranelift unless stated, if it is among the crate's features.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.jit = self.jit.backend(backend);
        self
    }

    /// Sets the level of optimisation.
    pub fn opt_level(mut self, level: OptLevel) -> Self {
        self.jit = self.jit.opt_level(level);
        self
    }

    /// The most threads to compile a module on; as many as the machine has, unless stated. Only Cranelift uses more than one, for modules
    /// with so many instructions that a thread is worth starting.
    pub fn threads(mut self, most: NonZeroUsize) -> Self {
        self.jit = self.jit.threads(most);
        self
    }

    /// Whether the IR is verified, and Cranelift checks its own work; on by default in debug builds. What LLVM gets is always checked
    /// by LLVM, which crashes on what is malformed.
    pub fn verifier(mut self, yes: bool) -> Self {
        (self.jit, self.verifier) = (self.jit.verifier(yes), yes);
        self
    }

    /// Whether debuggers, backtraces and unwinders are told of the code. By default they are told of modules whose bodies have source locations,
    /// and unwinders of modules that call other functions, too.
    pub fn debug_info(mut self, yes: bool) -> Self {
        self.jit = self.jit.debug_info(yes);
        self
    }

    /// Tells Linux' profiler `perf` of all code. Elsewhere it does nothing. Unless set, the environment variable `TVM_FFI_CODEGEN_PERF` says: `map`
    /// or `jitdump`.
    pub fn perf(mut self, perf: Perf) -> Self {
        self.jit = self.jit.perf(perf);
        self
    }

    /// Binds the code to another implementation of the TVM FFI C API than the bundled one, such as the `libtvm_ffi`
    /// that a Python process already has. One runtime owns a process: such an engine gives [code](Engine::compile_code), and no
    /// [`Function`] of the bundled runtime.
    ///
    /// # Safety
    /// The table holds the `TVMFFI*` functions of one runtime, of the prototypes of `tvm/ffi/c_api.h`.
    pub unsafe fn foreign_runtime<N: Into<String>>(
        mut self,
        symbols: impl IntoIterator<Item = (N, *const u8)>,
    ) -> Self {
        self.jit = self.jit.symbols(symbols);
        self.bundled = false;
        self
    }

    /// Builds the engine.
    ///
    /// # Errors
    /// This machine has no code generator, or a foreign runtime lacks a function that wrappers need. The process has no runtime, with the
    /// feature `external-runtime`; without it, the C symbols of this file lead to another runtime, which was there before.
    pub fn build(self) -> Result<Engine, EngineError> {
        if self.bundled {
            runtime::capi::check_symbols()
                .map_err(|error| EngineError::NoRuntime { message: error.message().to_owned() })?;
        }
        let jit = match self.bundled {
            true => self
                .jit
                .symbols(runtime::capi::symbols().iter().map(|(name, address)| (*name, address.as_ptr().cast()))),
            false => self.jit,
        };
        let jit = jit.build()?;
        let helpers = Arc::new(Helpers::new(&jit, self.bundled)?);
        let of_jit = Arc::clone(&helpers);
        jit.resolve_last_by(move |name| of_jit.resolve(name));
        Ok(Engine {
            jit,
            helpers,
            compiled: Arc::default(),
            #[cfg(not(feature = "external-runtime"))]
            imports: self.imports,
            bundled: self.bundled,
            verifier: self.verifier,
        })
    }
}

/// A module that lowering has made, verified if `check`.
pub(super) fn verified(module: ir::Module, check: bool) -> Result<VerifiedModule, CodegenError> {
    Ok(VerifiedModule::lowered(module, check)?)
}

impl Engine {
    /// An engine for this machine, bound to the bundled runtime.
    ///
    /// # Errors
    /// As [`EngineBuilder::build`].
    pub fn new() -> Result<Self, EngineError> {
        Self::builder().build()
    }

    /// The settings of a new engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            jit: Jit::builder(),
            #[cfg(not(feature = "external-runtime"))]
            imports: Vec::new(),
            bundled: true,
            verifier: cfg!(debug_assertions),
        }
    }

    /// The JIT below, with the engine's symbols and the runtime helpers that wrappers import.
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
    /// What the wrapper checks is safe to call with anything. The kernel has to keep its side: given arguments that the
    /// signature accepts, it reads and writes only what they describe; a native kernel has the prototype that its
    /// [convention](Kernel) says.
    ///
    /// # Errors
    /// The kernel doesn't fit the signature, its body has mistakes, or symbols are missing: all of them are named.
    pub unsafe fn compile(&self, signature: &Signature, kernel: &Kernel) -> Result<Function, EngineError> {
        let wrappers = self.wrappers([(signature, kernel)])?;
        let safe_call = self.safe_call(&wrappers.code, signature)?;
        #[cfg(not(feature = "external-runtime"))]
        if wrappers.needs_module {
            let module = self.module_of(wrappers, &[(signature, None)])?;
            let function = module.get_function(signature.name());
            return function.ok().flatten().ok_or_else(|| undefined(&signature.symbol()));
        }
        self.keep(&wrappers, None, [signature]);
        // SAFETY: the function owns the code, so that the address is good as long as it may be called.
        Ok(unsafe { Function::from_code(safe_call, wrappers.code) })
    }

    /// Compiles wrappers into one module, of kind `jit`, that imports what the engine's modules [import](EngineBuilder::import). Its code
    /// finds functions of these, and of what the caller lets it import. It tells the functions' [metadata](crate::lower::metadata). With the
    /// feature `external-runtime` there is no such thing, since an external runtime's modules are C++ objects;
    /// [`compile_code`](Self::compile_code) and [`compile`](Self::compile) make functions.
    ///
    /// # Safety
    /// As [`compile`](Self::compile), for each kernel.
    ///
    /// # Errors
    /// As [`compile`](Self::compile), or two wrappers have one name. It's all or nothing.
    #[cfg(not(feature = "external-runtime"))]
    pub unsafe fn compile_module<'a>(
        &self,
        wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel)>,
    ) -> Result<runtime::Module, EngineError> {
        let wrappers = wrappers.into_iter().map(|(signature, kernel)| (signature, kernel, None));
        // SAFETY: as here.
        unsafe { self.compile_documented(wrappers) }
    }

    /// As [`compile_module`](Self::compile_module), for functions with docs, which hosts show.
    ///
    /// ```
    /// use tvm_ffi_codegen::{Engine, Kernel, Signature};
    ///
    /// let double: Signature = "double(n: int64) -> int64".parse()?;
    /// let kernel = Kernel::body(|b| b.ret(b.arg("n") * 2));
    /// // SAFETY: the body reads no memory.
    /// let module = unsafe { Engine::new()?.compile_documented([(&double, &kernel, Some("2n"))])? };
    /// assert_eq!(module.function_doc("double", false)?.as_deref(), Some("2n"));
    /// assert!(module.function_metadata("double", false)?.is_some_and(|text| text.contains("int64")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// As [`compile`](Self::compile), for each kernel.
    ///
    /// # Errors
    /// As [`compile_module`](Self::compile_module).
    #[cfg(not(feature = "external-runtime"))]
    pub unsafe fn compile_documented<'a>(
        &self,
        wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel, Option<&'a str>)>,
    ) -> Result<runtime::Module, EngineError> {
        let all: Vec<_> = wrappers.into_iter().collect();
        let wrappers = self.wrappers(all.iter().map(|&(signature, kernel, _)| (signature, kernel)))?;
        let documented: Vec<_> = all.iter().map(|&(signature, _, doc)| (signature, doc)).collect();
        self.module_of(wrappers, &documented)
    }

    /// The module that owns code of wrappers, which have docs perhaps.
    #[cfg(not(feature = "external-runtime"))]
    fn module_of(
        &self,
        wrappers: Wrappers,
        documented: &[(&Signature, Option<&str>)],
    ) -> Result<runtime::Module, EngineError> {
        let function = |(&(signature, doc), launches): (&(&Signature, Option<&str>), &[LaunchDescription])| {
            let safe_call = self.safe_call(&wrappers.code, signature)?;
            let (signature, doc, launches) = (signature.clone(), doc.map(str::to_owned), launches.to_vec());
            Ok(ModuleFunction { safe_call, signature, doc, launches })
        };
        let launches = wrappers.launches.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        let functions = documented.iter().zip(launches).map(function);
        let functions: Vec<_> = functions.collect::<Result<_, EngineError>>()?;
        // SAFETY: whoever has the code compiled vouches for its calls, and nobody else has it.
        let module = unsafe { jit_module::module(Arc::clone(&wrappers.code), functions) };
        let signatures = documented.iter().map(|(signature, _)| *signature);
        self.keep(&wrappers, Some(module.as_object().downgrade()), signatures);
        self.importing(module)
    }

    /// A new module with the imports that all modules of the engine have.
    #[cfg(not(feature = "external-runtime"))]
    fn importing(&self, module: runtime::Module) -> Result<runtime::Module, EngineError> {
        for import in &self.imports {
            // nothing imports the module yet
            module.import_module(import).map_err(|error| EngineError::internal(error.to_string()))?;
        }
        Ok(module)
    }

    /// Compiles wrappers into code whose [addresses](Code::function), under [`Signature::symbol`], are of type
    /// `TVMFFISafeCallType`. Calling one is up to the caller, who also keeps the code. Where code calls functions of imported modules, the caller
    /// also [says](Code::set_library_context) which module it is that imports them.
    ///
    /// # Errors
    /// As [`compile_module`](Self::compile_module).
    pub fn compile_code<'a>(
        &self,
        wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel)>,
    ) -> Result<Arc<Code>, EngineError> {
        let wrappers: Vec<_> = wrappers.into_iter().collect();
        let signatures: Vec<&Signature> = wrappers.iter().map(|(signature, _)| *signature).collect();
        let wrappers = self.wrappers(wrappers)?;
        self.keep(&wrappers, None, signatures);
        Ok(wrappers.code)
    }

    fn wrappers<'a>(
        &self,
        wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel)>,
    ) -> Result<Wrappers, EngineError> {
        let mut lowering = Lowering::new(RuntimeHelpers::Import);
        lowering.threads_stay(true);
        let mut signatures = Vec::new();
        let mut natives = Natives::default();
        let mut launches = Vec::new();
        for (signature, kernel) in wrappers {
            lowering.add(signature, kernel)?;
            launches.push(lowering.launches().to_vec());
            natives.add(kernel);
            signatures.push(signature);
        }
        if let Some(mistake) = lowering.check_calls(signatures).into_iter().next() {
            return Err(mistake.into());
        }
        let called = lowering.called_symbols();
        let needs = Needs { capabilities: lowering.capabilities(), always_binds: lowering.always_binds() };
        let module = verified(lowering.finish(), self.verifier)?;
        let code = self.load_needing(&module, needs, natives).map_err(|error| match error {
            EngineError::Unresolved { names, references, .. } => {
                EngineError::Unresolved { names, callers: called, references }
            }
            other => other,
        })?;
        // SAFETY: lowering makes them so that they only release what the module's functions have got from the runtime, and end threads that these
        // have made. Nothing is got or made before a function is called.
        unsafe { code.run_destructors_on_drop() };
        Ok(Wrappers { code, needs_module: needs_module(&module), launches })
    }

    /// Notes functions for code that will call them by their symbols.
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
    /// Symbols are missing, or the system gives no memory.
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

/// Wrappers that are compiled.
struct Wrappers {
    code: Arc<Code>,
    /// Whether the code belongs to a module object, as it keeps something while it lives or looks at its imports.
    #[cfg_attr(feature = "external-runtime", allow(dead_code))] // modules can't be made there
    needs_module: bool,
    /// The launches that each makes.
    #[cfg_attr(feature = "external-runtime", allow(dead_code))]
    launches: Vec<Vec<LaunchDescription>>,
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
