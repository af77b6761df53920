//! From signatures and kernels to an object file.

use std::num::NonZeroUsize;

use target_lexicon::{BinaryFormat, Triple};

use super::error::EmitError;
use super::object::ObjectFile;
use super::progress::{NOBODY, Observer, Progress, Step};
#[cfg(feature = "_llvm")]
use crate::backend::llvm::{self, LlvmIr};
use crate::backend::{Backend, CodegenError, ObjectOptions, OptLevel};
use crate::ir::{self, VerifiedModule};
use crate::lower::{Kernel, LibraryLowering};
use crate::spec::Signature;

/// A builder of an object file, from signatures and kernels.
///
/// The object has, besides what is local to it:
///
/// | symbol | item |
/// | --- | --- |
/// | `__tvm_ffi_<name>` | the function |
/// | `__tvm_ffi__metadata_<name>` | a function that returns [metadata](crate::lower::metadata) |
/// | `__tvm_ffi__doc_<name>` | a function that returns the doc, where there is one |
/// | `__tvm_ffi__library_ctx` | a variable for the address of the library's module; objects that are linked together share it |
///
/// It needs `TVMFFI*` functions of the C API, the kernels' symbols, and of the C library's `libm` the functions whose names a body calls
/// ([`Expr::exp`](crate::Expr::exp) and the like, `fmod` for the `%` of floats), and `floor`, `ceil`, `trunc` and `nearbyint` where a body
/// rounds and the CPU may have no instruction for it; each with `f` behind its name for `float32`. It is position-independent, and the
/// same input gives the same bytes.
///
/// ```
/// use tvm_ffi_codegen::{DLDataType, Kernel, Signature, TensorType, artifact::LibraryBuilder};
///
/// let scale = Signature::builder("scale")
///     .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
///     .build()?;
/// let object = LibraryBuilder::new()
///     .target("aarch64-unknown-linux-gnu".parse()?)
///     .function(&scale, &Kernel::symbol("my_scale"))
///     .emit()?;
/// assert_eq!(object.functions(), ["scale"]);
/// assert!(object.as_bytes().starts_with(b"\x7fELF"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LibraryBuilder {
    target: Triple,
    backend: Backend,
    opt_level: OptLevel,
    cpu: Option<String>,
    features: Vec<String>,
    prefix: Option<String>,
    carries_modules: bool,
    metadata: bool,
    threads: Option<NonZeroUsize>,
    verifier: bool,
    functions: Vec<Function>,
    /// Functions with the names that they have as global functions.
    globals: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
struct Function {
    signature: Signature,
    kernel: Kernel,
    doc: Option<String>,
}

impl Default for LibraryBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl LibraryBuilder {
    /// A builder without functions, for this machine's target.
    pub fn new() -> Self {
        LibraryBuilder {
            target: Triple::host(),
            backend: Backend::default(),
            opt_level: OptLevel::default(),
            cpu: None,
            features: Vec::new(),
            prefix: None,
            carries_modules: false,
            metadata: true,
            threads: None,
            verifier: cfg!(debug_assertions),
            functions: Vec::new(),
            globals: Vec::new(),
        }
    }

    /// Sets the target of the object; the host's, unless stated.
    pub fn target(mut self, triple: Triple) -> Self {
        self.target = triple;
        self
    }

    /// Sets the backend that makes the code. Unless stated, it is Cranelift if that is among the crate's features.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Sets how much the code is optimised.
    pub fn opt_level(mut self, level: OptLevel) -> Self {
        self.opt_level = level;
        self
    }

    /// Sets the least CPU that the code has to run on, by the backend's name for it: LLVM's `x86-64-v3` and `apple-m1`, Cranelift's `x86_64_v3`
    /// and `skylake`. Unless stated, the code runs on any CPU of the architecture.
    pub fn cpu(mut self, name: impl Into<String>) -> Self {
        self.cpu = Some(name.into());
        self
    }

    /// Adds a feature that the CPU has for certain, by the backend's name for it: LLVM's `+avx2`, Cranelift's `has_avx2`.
    pub fn feature(mut self, name: impl Into<String>) -> Self {
        self.features.push(name.into());
        self
    }

    /// Sets the most threads to make code on; as many as the machine has, unless stated. Only Cranelift uses more than one thread, for
    /// libraries with so many instructions that a thread is worth starting. The object's bytes don't depend on it.
    pub fn threads(mut self, most: NonZeroUsize) -> Self {
        self.threads = Some(most);
        self
    }

    /// Sets whether the IR is verified, and whether Cranelift checks its own work; both are on by default in debug builds. LLVM's IR is
    /// always verified, as LLVM crashes on malformed IR.
    pub fn verifier(mut self, yes: bool) -> Self {
        self.verifier = yes;
        self
    }

    /// Makes the library a system library: it is linked into a program instead of loaded, and registers its symbols when the program
    /// starts. A host finds it by this prefix (`ffi.SystemLib`, [`Module::system_lib`](tvm_ffi_runtime::Module::system_lib)). All exported C symbols begin with it too, behind `__tvm_ffi_` for
    /// functions, so that a program may have several, each with a prefix of its own.
    pub fn system_library(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// States that the program has modules of this system library too: an object of a [`LibraryBinBuilder`](super::LibraryBinBuilder) with
    /// the same [prefix](super::LibraryBinBuilder::symbol_prefix). The modules are then registered with the functions, and the program doesn't link
    /// without that object. A library that is loaded as a file doesn't need this, as its loader finds the modules.
    pub fn carries_modules(mut self) -> Self {
        self.carries_modules = true;
        self
    }

    /// Sets whether each function carries its metadata (type schema, parameters' names and defaults, the signature's text), as it does unless
    /// stated. Without metadata a library is smaller, and hosts know no more of a function than its name and doc.
    pub fn metadata(mut self, yes: bool) -> Self {
        self.metadata = yes;
        self
    }

    /// Adds a function.
    pub fn function(self, signature: &Signature, kernel: &Kernel) -> Self {
        self.add(signature, kernel, None)
    }

    /// Adds a function with a doc, which hosts show.
    pub fn documented(self, signature: &Signature, kernel: &Kernel, doc: impl Into<String>) -> Self {
        self.add(signature, kernel, Some(doc.into()))
    }

    fn add(mut self, signature: &Signature, kernel: &Kernel, doc: Option<String>) -> Self {
        let (signature, kernel) = (signature.clone(), kernel.clone());
        self.functions.push(Function { signature, kernel, doc });
        self
    }

    /// Registers a function of the library as a global function while the library is loaded: when it is loaded, under a name that nobody has
    /// taken by then, and until it is unloaded, or the program ends. A name that is taken stays with whoever has it, since nobody is there to be told of
    /// an error; a program that has to know looks the global function up.
    ///
    /// Who has got the global function keeps the library loaded, as with any function of a library's code.
    ///
    /// ```
    /// use tvm_ffi_codegen::{Kernel, ScalarType, Signature, artifact::LibraryBuilder};
    ///
    /// let signature: Signature = "double(n: int64) -> int64".parse()?;
    /// let double = Kernel::body(|b| b.ret(b.arg("n") * 2));
    /// let object = LibraryBuilder::new().function(&signature, &double).register_global("double", "my.double").emit()?;
    /// # let _ = object;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_global(mut self, function: impl Into<String>, global: impl Into<String>) -> Self {
        self.globals.push((function.into(), global.into()));
        self
    }

    /// All that decides the object but the functions, with names.
    pub(super) fn cached_options(&self) -> Vec<(&'static str, String)> {
        // A code generator that isn't there has no version. Nothing was ever made by it, so that its key finds nothing.
        let version = self.backend.codegen().version().unwrap_or_default();
        // the object's bytes depend neither on the number of threads nor on the verifier
        vec![
            ("target", self.target.to_string()),
            ("backend", format!("{} {version}", self.backend)),
            ("opt_level", self.opt_level.to_string()),
            ("cpu", format!("{:?}", self.cpu)),
            ("features", format!("{:?}", self.features)),
            ("prefix", format!("{:?} {}", self.prefix, self.carries_modules)),
            ("metadata", self.metadata.to_string()),
            ("globals", format!("{:?}", self.globals)),
        ]
    }

    /// The functions with their kernels and docs.
    pub(super) fn cached_functions(&self) -> impl Iterator<Item = (&Signature, &Kernel, Option<&str>)> {
        self.functions.iter().map(|function| (&function.signature, &function.kernel, function.doc.as_deref()))
    }

    /// Makes the object file. A library without functions has only its context.
    ///
    /// # Errors
    /// Functions have mistakes: a kernel or body that doesn't fit its signature, a kernel that is an address, a name that two functions have or that
    /// libraries use for something else. Or the backend has no code generator for the target.
    pub fn emit(&self) -> Result<ObjectFile, EmitError> {
        self.emit_observed(NOBODY)
    }

    /// As [`emit`](Self::emit), and tells an observer how far it is.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tvm_ffi_codegen::artifact::{LibraryBuilder, Step};
    /// use tvm_ffi_codegen::{Kernel, Signature};
    ///
    /// let (one, two): (Signature, Signature) = ("one(x: int64)".parse()?, "two(x: int64)".parse()?);
    /// let none = Kernel::check_only();
    /// let lowered = AtomicU64::new(0);
    /// LibraryBuilder::new().function(&one, &none).function(&two, &none).emit_observed(&|progress| {
    ///     if progress.step == Step::Lower {
    ///         lowered.store(progress.done, Ordering::Relaxed);
    ///     }
    /// })?;
    /// assert_eq!(lowered.into_inner(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    pub fn emit_observed(&self, observer: &(dyn Fn(Progress) + Sync)) -> Result<ObjectFile, EmitError> {
        let module = self.lower(observer)?;
        observer(Progress::uncounted(Step::Compile));
        let compiled = |done, total| observer(Progress::new(Step::Compile, done, total));
        let options = self.object_options(&compiled);
        let bytes = self.backend.codegen().object(module, &options)?;
        let names = self.functions.iter().map(|function| function.signature.name().to_owned());
        Ok(ObjectFile::new(bytes, self.target.clone(), names.collect()))
    }

    /// The functions in LLVM's IR, whatever the backend: the module of which [`emit`](Self::emit) makes an object with LLVM.
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    #[cfg(feature = "_llvm")]
    pub fn llvm_ir(&self) -> Result<LlvmIr, EmitError> {
        Ok(llvm::ir(self.lower(NOBODY)?, &self.object_options(&|_, _| ()))?)
    }

    fn object_options<'a>(&'a self, compiled: &'a (dyn Fn(u64, u64) + Sync)) -> ObjectOptions<'a> {
        ObjectOptions {
            target: &self.target,
            opt_level: self.opt_level,
            cpu: self.cpu.as_deref(),
            features: &self.features,
            threads: self.threads,
            verifier: self.verifier,
            compiled,
        }
    }

    fn lower(&self, observer: Observer<'_>) -> Result<VerifiedModule, EmitError> {
        let mut mistakes = Vec::new();
        // the backend refuses a target of which not even this is known
        let endianness = self.target.endianness().unwrap_or(ir::HOST_ENDIANNESS);
        let mut lowering = match &self.prefix {
            None => LibraryLowering::new(endianness),
            Some(prefix) => LibraryLowering::system(prefix, endianness).unwrap_or_else(|mistake| {
                mistakes.push(mistake);
                LibraryLowering::new(endianness)
            }),
        };
        if !self.metadata {
            lowering.without_metadata();
        }
        if self.carries_modules {
            lowering.carries_modules();
        }
        lowering.for_windows(self.target.binary_format == BinaryFormat::Coff);
        let total = self.functions.len() as u64;
        for (done, Function { signature, kernel, doc }) in (1..).zip(&self.functions) {
            mistakes.extend(lowering.add(signature, kernel, doc.as_deref()).err());
            observer(Progress::new(Step::Lower, done, total));
        }
        // a function with a mistake is none of the library's
        if mistakes.is_empty() {
            let registered = self.globals.iter().map(|(function, global)| lowering.register_global(function, global));
            mistakes.extend(registered.filter_map(Result::err));
        }
        if mistakes.is_empty() {
            mistakes = lowering.check_calls(self.functions.iter().map(|function| &function.signature));
        }
        if !mistakes.is_empty() {
            return Err(EmitError::Functions(mistakes));
        }
        Ok(VerifiedModule::lowered(lowering.finish(), self.verifier).map_err(CodegenError::from)?)
    }
}
