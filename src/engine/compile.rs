//! The engine: from signatures and kernels to functions that can be called.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tvm_ffi_runtime::abi::TVMFFISafeCallType;
use tvm_ffi_runtime::{self as runtime, Function};

use super::code::{Code, KeepAlive};
use super::debug::Perf;
use super::error::EngineError;
use super::helpers::{Helpers, Needs};
use super::jit::{Jit, JitBuilder, LoadOptions};
use crate::backend::{Backend, CodegenError, OptLevel};
use crate::ir::{self, VerifiedModule};
use crate::lower::{Capabilities, Kernel, Lowering, RuntimeHelpers};
use crate::spec::Signature;

/// Compiles wrappers into this process. Cheap to clone; `&Engine` compiles from any number of threads at once.
///
/// A [`Function`] keeps its code alive, and the last one of a module to go gives the memory back. An error, string or tensor
/// that came out of a call holds nothing of the code.
#[derive(Clone, Debug)]
pub struct Engine {
    jit: Jit,
    /// The runtime helpers of all wrappers, compiled when first needed.
    helpers: Arc<Helpers>,
    bundled: bool,
    verifier: bool,
}

/// The settings that an [`Engine`] is built with.
#[derive(Debug)]
pub struct EngineBuilder {
    jit: JitBuilder,
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

    /// The most threads to compile a module on; as many as the machine has, unless stated. Only Cranelift uses more than one, from about
    /// a hundred functions on.
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
    /// and unwinders of modules that call other functions, too. See [the guide](https://docs.rs/tvm-ffi-codegen/latest/tvm_ffi_codegen/#debugging).
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
    /// This machine has no code generator, a foreign runtime lacks a function that wrappers need, or, with the feature `external-runtime`,
    /// the process has no runtime.
    pub fn build(self) -> Result<Engine, EngineError> {
        #[cfg(feature = "external-runtime")]
        if self.bundled {
            runtime::check_runtime().map_err(|error| EngineError::NoRuntime { message: error.message().to_owned() })?;
        }
        let jit = match self.bundled {
            true => self
                .jit
                .symbols(runtime::capi::symbols().iter().map(|(name, address)| (*name, address.as_ptr().cast()))),
            false => self.jit,
        };
        let jit = jit.build()?;
        let helpers = Arc::new(Helpers::new(&jit, self.bundled)?);
        Ok(Engine { jit, helpers, bundled: self.bundled, verifier: self.verifier })
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
        EngineBuilder { jit: Jit::builder(), bundled: true, verifier: cfg!(debug_assertions) }
    }

    /// The JIT below, with the engine's symbols.
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
        let code = self.compile_code([(signature, kernel)])?;
        self.function(&code, signature)
    }

    /// Compiles wrappers into one module. With the feature `external-runtime` there is no such thing, since an external runtime's modules
    /// are C++ objects; [`compile_code`](Self::compile_code) and [`compile`](Self::compile) make functions.
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
        let wrappers: Vec<_> = wrappers.into_iter().collect();
        let code = self.compile_code(wrappers.iter().copied())?;
        let mut functions = Vec::new();
        for (signature, _) in wrappers {
            functions.push((signature.name().to_owned(), self.function(&code, signature)?));
        }
        Ok(runtime::Module::new("jit", functions))
    }

    /// Compiles wrappers into code whose [addresses](Code::function), under [`Signature::symbol`], are of type
    /// `TVMFFISafeCallType`. Calling one is up to the caller, who also keeps the code.
    ///
    /// # Errors
    /// As [`compile_module`](Self::compile_module).
    pub fn compile_code<'a>(
        &self,
        wrappers: impl IntoIterator<Item = (&'a Signature, &'a Kernel)>,
    ) -> Result<Arc<Code>, EngineError> {
        let mut lowering = Lowering::new(RuntimeHelpers::Import);
        for (signature, kernel) in wrappers {
            lowering.add(signature, kernel)?;
        }
        let needs = Needs { capabilities: lowering.capabilities(), always_binds: lowering.always_binds() };
        self.load_needing(&verified(lowering.finish(), self.verifier)?, needs)
    }

    /// Loads a lowered module.
    ///
    /// # Errors
    /// Symbols are missing, or the system gives no memory.
    pub fn load(&self, module: &VerifiedModule) -> Result<Arc<Code>, EngineError> {
        self.load_needing(module, Needs { capabilities: Capabilities::ALL, always_binds: false })
    }

    fn load_needing(&self, module: &VerifiedModule, needs: Needs) -> Result<Arc<Code>, EngineError> {
        let helpers = self.helpers.link(&self.jit, module, needs)?;
        self.jit.load_with(module, LoadOptions { symbols: &helpers.symbols, keep_alive: helpers.keep_alive })
    }

    fn function(&self, code: &Arc<Code>, signature: &Signature) -> Result<Function, EngineError> {
        if !self.bundled {
            return Err(EngineError::ForeignRuntime);
        }
        let missing = || EngineError::internal(format!("{} was not defined", signature.symbol()));
        let address = code.function(&signature.symbol()).ok_or_else(missing)?;
        // SAFETY: lowering exports wrappers under this symbol with the prototype of `TVMFFISafeCallType`
        // (tvm/ffi/c_api.h), and a code address is not null.
        let safe_call = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) };
        // SAFETY: the function owns the code, so that the address is good as long as it may be called.
        Ok(unsafe { Function::from_code(safe_call, Arc::clone(code)) })
    }
}
