//! Compiles signatures and kernels to an object file.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use target_lexicon::Triple;

use super::error::EmitError;
use super::object::ObjectFile;
use super::progress::{NOBODY, Observer, Progress, Step};
#[cfg(feature = "_llvm")]
use crate::backend::llvm::{self, LlvmIr};
use crate::backend::{Backend, ObjectOptions, OptLevel, verified};
use crate::host_program::HostProgram;
use crate::ir::VerifiedModule;
use crate::lower::{Kernel, Purpose, Recipe, RecipeFunction, RuntimeHelpers};
use crate::spec::Signature;

/// Builds an object file from signatures and kernels.
///
/// The object defines, besides its local symbols:
///
/// | symbol | item |
/// | --- | --- |
/// | `__tvm_ffi_<name>` | the function |
/// | `__tvm_ffi__metadata_<name>` | a function that returns [metadata](crate::lower::metadata) |
/// | `__tvm_ffi__doc_<name>` | a function that returns the doc, if there is one |
/// | `__tvm_ffi__library_ctx` | a variable for the address of the library's module; objects that are linked together share it |
///
/// It needs `TVMFFI*` functions of the C API and the kernels' symbols. From the C library's `libm` it needs functions
/// that a body calls by name ([`Expr::exp`](crate::Expr::exp) and the like, `fmod` for the `%` of floats). It also
/// needs `floor`, `ceil`, `trunc` and `nearbyint` if a body rounds and the CPU may lack the instruction. For
/// `float32` these names end in `f`. The object is position-independent, and the same input gives the same bytes.
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
#[must_use]
pub struct LibraryBuilder {
    recipe: Recipe<'static>,
    backend: Backend,
    opt_level: OptLevel,
    cpu: Option<String>,
    features: Vec<String>,
    threads: Option<NonZeroUsize>,
    verifier: bool,
}

impl Default for LibraryBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl LibraryBuilder {
    /// Creates a builder without functions, for the host's target.
    pub fn new() -> Self {
        LibraryBuilder {
            recipe: Recipe { purpose: Purpose::Library, helpers: RuntimeHelpers::Define, ..Recipe::default() },
            backend: Backend::default(),
            opt_level: OptLevel::default(),
            cpu: None,
            features: Vec::new(),
            threads: None,
            verifier: cfg!(debug_assertions),
        }
    }

    /// Sets the target of the object. The default is the host.
    pub fn target(mut self, triple: Triple) -> Self {
        self.recipe.target = triple;
        self
    }

    /// Sets the backend. The default is Cranelift if that is among the crate's features.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Sets how much the code is optimised.
    pub fn opt_level(mut self, level: OptLevel) -> Self {
        self.opt_level = level;
        self
    }

    /// Sets the minimum CPU for the code, with the backend's name for it: LLVM's `x86-64-v3` and `apple-m1`,
    /// Cranelift's `x86_64_v3` and `skylake`. By default the code runs on any CPU of the architecture.
    pub fn cpu(mut self, name: impl Into<String>) -> Self {
        self.cpu = Some(name.into());
        self
    }

    /// Adds a feature that the CPU is guaranteed to have, with the backend's name for it: LLVM's `+avx2`, Cranelift's
    /// `has_avx2`.
    pub fn feature(mut self, name: impl Into<String>) -> Self {
        self.features.push(name.into());
        self
    }

    /// Sets the maximum number of threads for code generation. The default is the machine's number of threads. Only
    /// Cranelift uses more than one, and only if a library has enough instructions to make starting a thread
    /// worthwhile. The object's bytes don't depend on this setting.
    pub fn threads(mut self, max: NonZeroUsize) -> Self {
        self.threads = Some(max);
        self
    }

    /// Sets whether the IR is verified, and whether Cranelift checks its own output. Both are on by default in debug
    /// builds. LLVM's IR is always verified, as LLVM crashes on malformed IR.
    pub fn verifier(mut self, yes: bool) -> Self {
        self.verifier = yes;
        self
    }

    /// Makes the library a system library: it is linked into a program instead of being loaded, and registers its
    /// symbols when the program starts. A host finds it by this prefix (`ffi.SystemLib`,
    /// [`Module::system_lib`](tvm_ffi_runtime::Module::system_lib)). The prefix is also part of all exported C
    /// symbols: at the start, or after `__tvm_ffi_` for functions. A program may therefore contain several system
    /// libraries with different prefixes.
    pub fn system_library(mut self, prefix: impl Into<String>) -> Self {
        self.recipe.purpose = Purpose::SystemLibrary(prefix.into());
        self
    }

    /// States that the program also contains modules of this system library: an object of a
    /// [`PackBuilder`](super::PackBuilder) with the same
    /// [prefix](super::PackBuilder::symbol_prefix). The modules are then registered with the functions, and the
    /// program doesn't link without that object. You don't need this for a library that is loaded as a file, because
    /// its loader finds the modules.
    pub fn carries_modules(mut self) -> Self {
        self.recipe.carries_modules = true;
        self
    }

    /// Sets whether each function carries its metadata (type schema, parameters' names and defaults, the signature's
    /// source); on by default. Without metadata a library is smaller, and hosts know only a function's name and doc.
    pub fn metadata(mut self, yes: bool) -> Self {
        self.recipe.metadata = yes;
        self
    }

    /// Makes the object import the runtime helpers instead of defining them. Use this for a loader in this process
    /// that knows [`embed::runtime_symbols`](crate::embed::runtime_symbols). The helpers are then compiled once per
    /// process, at the first call.
    pub fn import_helpers(mut self) -> Self {
        self.recipe.helpers = RuntimeHelpers::DefineForLaunches;
        self
    }

    /// Adds a function. Hosts show the signature's [documentation](Signature::doc).
    pub fn function(mut self, signature: &Signature, kernel: &Kernel) -> Self {
        let (signature, kernel) = (Cow::Owned(signature.clone()), Ok(Cow::Owned(kernel.clone())));
        self.recipe.functions.push(RecipeFunction { signature, kernel, is_c: false });
        self
    }

    /// Adds the functions of a text, and registers those that it names as global functions. Its C functions are
    /// exported under their own names.
    ///
    /// ```
    /// use tvm_ffi_codegen::{HostProgram, artifact::LibraryBuilder};
    ///
    /// let text = "register double as \"my.double\"; double(n: int64) -> int64 { return n * 2; }";
    /// let object = LibraryBuilder::new().program(&HostProgram::parse(text)?).emit()?;
    /// assert_eq!(object.functions(), ["double"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn program(mut self, program: &HostProgram) -> Self {
        let wrappers = program.functions().map(|function| (function, false));
        for ((signature, kernel), is_c) in wrappers.chain(program.c_functions().map(|function| (function, true))) {
            let (signature, kernel) = (Cow::Owned(signature.clone()), Ok(Cow::Owned(kernel.clone())));
            self.recipe.functions.push(RecipeFunction { signature, kernel, is_c });
        }
        let globals = program.globals().map(|(function, global)| (function.to_owned(), global.to_owned()));
        self.recipe.globals.extend(globals);
        self
    }

    /// Registers a function of the library as a global function while the library is loaded, until it is unloaded or
    /// the program ends. If the name is already registered when the library is loaded, the existing function stays,
    /// because an error couldn't be reported. To find out, the program looks the global function up.
    ///
    /// A reference to the global function keeps the library loaded, like a reference to any function of a library.
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
        self.recipe.globals.push((function.into(), global.into()));
        self
    }

    /// Everything that decides the object, except the functions, with names.
    pub(super) fn cached_options(&self) -> Vec<(&'static str, String)> {
        // A missing code generator has no version. It has never made an artifact, so its key finds none.
        let version = self.backend.codegen().version().unwrap_or_default();
        // the object's bytes depend neither on the number of threads nor on the verifier
        let Recipe { target, purpose, helpers, metadata, carries_modules, globals, .. } = &self.recipe;
        vec![
            ("target", target.to_string()),
            ("backend", format!("{} {version}", self.backend)),
            ("opt_level", self.opt_level.to_string()),
            ("cpu", format!("{:?}", self.cpu)),
            ("features", format!("{:?}", self.features)),
            ("purpose", format!("{purpose:?} {carries_modules}")),
            ("metadata", metadata.to_string()),
            ("helpers", format!("{helpers:?}")),
            ("globals", format!("{globals:?}")),
        ]
    }

    /// The functions with their kernels.
    pub(super) fn cached_functions(&self) -> impl Iterator<Item = (&Signature, &Kernel)> {
        let functions = self.recipe.functions.iter();
        functions.filter_map(|RecipeFunction { signature, kernel, .. }| Some((&**signature, kernel.as_deref().ok()?)))
    }

    /// Emits the object file. A library without functions contains only its context.
    ///
    /// # Errors
    /// Functions have errors: a kernel or body that doesn't fit its signature, a kernel that is an address, a name that
    /// is used twice, or a reserved name. Or the backend has no code generator for the target.
    pub fn emit(&self) -> Result<ObjectFile, EmitError> {
        self.emit_with_progress(NOBODY)
    }

    /// Like [`emit`](Self::emit), with an observer that receives the progress.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tvm_ffi_codegen::artifact::{LibraryBuilder, Step};
    /// use tvm_ffi_codegen::{Kernel, Signature};
    ///
    /// let (one, two): (Signature, Signature) = ("one(x: int64)".parse()?, "two(x: int64)".parse()?);
    /// let none = Kernel::check_only();
    /// let lowered = AtomicU64::new(0);
    /// LibraryBuilder::new().function(&one, &none).function(&two, &none).emit_with_progress(&|progress| {
    ///     if progress.step == Step::Lower {
    ///         lowered.store(progress.done, Ordering::Relaxed);
    ///     }
    /// })?;
    /// assert_eq!(lowered.into_inner(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The same as for [`emit`](Self::emit).
    pub fn emit_with_progress(&self, observer: &(dyn Fn(Progress) + Sync)) -> Result<ObjectFile, EmitError> {
        let module = self.lower(observer)?;
        observer(Progress::uncounted(Step::Compile));
        let compiled = |done, total| observer(Progress::new(Step::Compile, done, total));
        let options = self.object_options(&compiled);
        let bytes = self.backend.codegen().object(module, &options)?;
        let wrappers = self.recipe.functions.iter().filter(|function| !function.is_c);
        let names = wrappers.map(|function| function.signature.name().to_owned());
        Ok(ObjectFile::new(bytes, self.recipe.target.clone(), names.collect()))
    }

    /// Finds the errors of the functions, without compiling them.
    ///
    /// # Errors
    /// Functions have errors, as for [`emit`](Self::emit).
    pub fn check(&self) -> Result<(), EmitError> {
        self.lower(NOBODY).map(|_| ())
    }

    /// The functions as LLVM IR, whatever the backend: the module that [`emit`](Self::emit) compiles when the backend
    /// is LLVM.
    ///
    /// # Errors
    /// The same as for [`emit`](Self::emit).
    #[cfg(feature = "_llvm")]
    pub fn llvm_ir(&self) -> Result<LlvmIr, EmitError> {
        Ok(llvm::ir(self.lower(NOBODY)?, &self.object_options(&|_, _| ()))?)
    }

    fn object_options<'a>(&'a self, compiled: &'a (dyn Fn(u64, u64) + Sync)) -> ObjectOptions<'a> {
        ObjectOptions {
            target: &self.recipe.target,
            opt_level: self.opt_level,
            cpu: self.cpu.as_deref(),
            features: &self.features,
            threads: self.threads,
            verifier: self.verifier,
            compiled,
        }
    }

    fn lower(&self, observer: Observer<'_>) -> Result<VerifiedModule, EmitError> {
        let total = self.recipe.functions.len() as u64;
        let lowered = self.recipe.lower_with_progress(|done| observer(Progress::new(Step::Lower, done, total)));
        let module = lowered.map_err(EmitError::Functions)?.module;
        Ok(verified(module, self.verifier)?)
    }
}
