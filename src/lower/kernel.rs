//! The kernel of a wrapper: its code, how it is called, its convention and its C result.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::args;
use super::body::{Body, BodyFn};
use super::convention::c_type::CType;
use super::convention::param::KernelParam;
use super::convention::{Convention, KernelReturn, params, returns_value, writes_result};
use super::error::LowerError;
use super::host_text;
use super::launch::{BlockFunction, LaunchSpec, block_prototype};
use super::native::NativeCode;
use super::problem::{ConventionProblem, LaunchProblem, ReturnProblem};
use super::unit::{self, import_conflict};
use crate::host::{self, HostTextError};
use crate::image::Image;
use crate::ir::{self, FuncSig};
use crate::spec::{KernelArg, Launch, ParamType, Signature, TensorType};
use tvm_ffi_runtime::abi::symbol;

/// The code that a wrapper calls.
///
/// A native kernel is called by a [`Convention`], `flat` unless stated. For
/// `scale(x: Tensor([n], float32), f: float64)`:
///
/// ```c
/// void scale(float* x, double f, int64_t n);
/// ```
#[derive(Clone)]
#[must_use]
pub struct Kernel {
    pub(super) code: KernelCode,
    /// The compiled code that defines a native kernel's symbol, if you passed it with the kernel.
    native: Option<NativeCode>,
    /// Other objects and archives that the code may refer to.
    pub(super) beside: Vec<NativeCode>,
    /// Addresses of symbols that the code refers to.
    pub(super) given: Vec<(String, u64)>,
    /// Values that live as long as code that calls the kernel.
    owners: Vec<Arc<dyn Any + Send + Sync>>,
    /// The method that was called on a kernel that isn't native, although only native kernels support it.
    misused: Option<&'static str>,
    /// The text of a body that was made from one, without images.
    pub(super) text: Option<Box<host::Text>>,
}

/// The code of a kernel.
#[derive(Clone)]
pub(super) enum KernelCode {
    CheckOnly,
    Body(BodyFn),
    Native { target: NativeTarget, call: CallSpec },
}

/// How a wrapper runs a native kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NativeTarget {
    /// Calls an imported symbol.
    Symbol(String),
    /// Calls an address of this process.
    Address(u64),
    /// Launches it on the device of the tensors.
    Launch(Arc<LaunchSpec>),
    /// Calls nothing; does the first-use work of launched kernels on a device.
    FirstUses(Vec<Arc<LaunchSpec>>),
}

/// How a native kernel takes its arguments and returns its result.
#[derive(Clone, Debug, Default)]
pub(super) struct CallSpec {
    pub(super) convention: Convention,
    pub(super) returns: Option<KernelReturn>,
    /// The C parameters, if they are stated.
    args: Option<Arc<[KernelArg]>>,
    /// The signature's parameters whose arguments are passed as they came, too.
    arguments: Vec<String>,
}

impl Kernel {
    const fn new(code: KernelCode) -> Self {
        Kernel {
            code,
            native: None,
            beside: Vec::new(),
            given: Vec::new(),
            owners: Vec::new(),
            misused: None,
            text: None,
        }
    }

    fn native(target: NativeTarget) -> Self {
        Self::new(KernelCode::Native { target, call: CallSpec::default() })
    }

    /// No kernel: the wrapper only checks its arguments and returns nothing.
    pub const fn check_only() -> Self {
        Self::new(KernelCode::CheckOnly)
    }

    /// A body. `build` writes it into the wrapper's module each time the kernel is lowered.
    pub fn body(build: impl Fn(&Body<'_>) + Send + Sync + 'static) -> Self {
        Self::new(KernelCode::Body(Arc::new(build)))
    }

    /// A body as text, in braces: the block of a function in `docs/reference/host-text.md`. `images` are those that its
    /// launches may use, each with its name.
    ///
    #[cfg_attr(feature = "cranelift", doc = "```")]
    #[cfg_attr(not(feature = "cranelift"), doc = "```text")]
    /// use tvm_ffi_codegen::{Engine, Kernel, Signature, image::Image, runtime::Tensor};
    ///
    /// let signature: Signature = "scale(x: Tensor([n], float32), by: float32)".parse()?;
    /// let kernel = Kernel::text("{ for i in range(0, n) { x[i] = x[i] * by; } }", [] as [(&str, Image); 0])?;
    /// // SAFETY: the body stays within `0..n`, the shape of `x`.
    /// let scale = unsafe { Engine::new()?.compile(&signature, &kernel)? };
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2])?;
    /// scale.call((&x, 3.0))?;
    /// assert_eq!(x.to_vec::<f32>()?, [3.0, 6.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// All errors of the text's grammar. Errors of names, types and ownership are reported with the place in the text
    /// when the kernel is lowered, as [`LowerError::Body`].
    pub fn text<N: Into<String>>(
        block: &str,
        images: impl IntoIterator<Item = (N, Image)>,
    ) -> Result<Self, HostTextError> {
        let source = host_text::Source::new(block, images);
        Ok(Self::of_text(source.clone(), host::block(block, &source.names())?))
    }

    /// A body of a text that has been parsed.
    pub(crate) fn of_text(source: host_text::Source, text: host::Text) -> Self {
        let block = Arc::clone(&text.block);
        // images of two texts may have one name
        let text = source.names().is_empty().then(|| Box::new(text));
        let body = Self::body(move |body| host_text::build(&source, &block, body));
        Kernel { text, ..body }
    }

    /// Creates a body from a shared closure.
    pub(super) fn of_body(build: BodyFn) -> Self {
        Self::new(KernelCode::Body(build))
    }

    /// A C function, given by its symbol. The symbol is resolved when the module is linked or loaded.
    ///
    /// Some symbols are reserved: those that begin with `TVMFFI`, `llvm.` or `.L`, and those that a library defines for
    /// itself, such as `__tvm_ffi__library_ctx`.
    pub fn symbol(name: impl Into<String>) -> Self {
        Self::native(NativeTarget::Symbol(name.into()))
    }

    /// A C function of a relocatable object, or of an archive of such objects, given by its symbol. The bytes are an
    /// ELF, Mach-O or COFF file for this machine, as a compiler writes it. From an archive, only the members that the
    /// symbol needs are linked.
    ///
    /// An [`Engine`](crate::Engine) links the object into memory, next to the wrapper; the two share one lifetime.
    /// Kernels of one compilation are linked together: equal bytes are linked once, and objects may refer to each
    /// other. The engine supplies the other symbols that an object refers to. For a library compiled [ahead of
    /// time](crate::artifact), pass the objects to the linker and name the kernel with [`symbol`](Self::symbol).
    ///
    /// No code runs when the object is loaded. An object with constructors or destructors (`.init_array` and the like),
    /// thread-local variables or indirect functions is rejected.
    pub fn object(bytes: impl Into<Arc<[u8]>>, symbol: impl Into<String>) -> Self {
        Self::symbol(symbol).with(NativeCode::Object(bytes.into()))
    }

    /// A C function of a module in LLVM's textual IR, given by its symbol. An [`Engine`](crate::Engine) compiles the
    /// module with LLVM for this machine, at the engine's optimisation level, whichever backend the engine has. The
    /// result is treated as an [object](Self::object).
    ///
    /// The module must state this machine's target triple and data layout, or none.
    #[cfg(feature = "_llvm")]
    pub fn llvm_ir(text: impl Into<Arc<str>>, symbol: impl Into<String>) -> Self {
        Self::symbol(symbol).with(NativeCode::LlvmIr(text.into()))
    }

    /// A C function of a module in LLVM bitcode, given by its symbol; otherwise like [`llvm_ir`](Self::llvm_ir).
    #[cfg(feature = "_llvm")]
    pub fn bitcode(bytes: impl Into<Arc<[u8]>>, symbol: impl Into<String>) -> Self {
        Self::symbol(symbol).with(NativeCode::Bitcode(bytes.into()))
    }

    /// Adds an object or archive that the kernel's code, or an object added before, may refer to. It may define the
    /// function of a [symbol](Self::symbol), or functions that a body calls by their symbols. An
    /// [`Engine`](crate::Engine) links them together.
    pub fn beside(mut self, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.beside.push(NativeCode::Object(bytes.into()));
        self
    }

    /// Adds the address of a symbol that the kernel's code refers to, such as a function of its compiler's runtime. It
    /// takes precedence over the symbols of the [`Engine`](crate::Engine), but not over the code's own definitions.
    /// Pass the owner of the memory at the address to [`keep_alive`](Self::keep_alive). Kernels that are compiled
    /// together share these symbols, so it is an error if two kernels give one name different addresses.
    pub fn with_symbol(mut self, name: impl Into<String>, address: *const u8) -> Self {
        self.given.push((name.into(), address as u64));
        self
    }

    fn with(mut self, native: NativeCode) -> Self {
        self.native = Some(native);
        self
    }

    /// A C function at an address of this process. The wrapper can run only in this process. Pass the owner of the code
    /// at the address to [`keep_alive`](Self::keep_alive).
    pub fn address(address: *const u8) -> Self {
        Self::native(NativeTarget::Address(address as u64))
    }

    /// A kernel of a device. The wrapper launches it on the device of the function's tensors, on the environment's
    /// stream for that device (`TVMFFIEnvGetStream`), and doesn't wait for it. `images` are the kernel's code for one
    /// or more architectures. The device's compute capability selects one of them; PTX is used only if no machine code
    /// fits.
    ///
    /// You need no driver to compile, link or load the code. The first call locates the driver, with
    /// `dlopen("libcuda.so.1")` or `dlopen("libamdhip64.so")`, on Windows as `nvcuda.dll` or `amdhip64_6.dll`. Without
    /// a driver, a call raises a `RuntimeError`. See docs/howto/gpu.md for details.
    ///
    /// # Errors
    /// Creating the wrapper reports all errors together, as [`LowerError::Launch`]: parameters that the images' kernels
    /// don't take, extents that no device supports, names that the signature lacks.
    pub fn launch(launch: Launch, images: impl IntoIterator<Item = Image>) -> Self {
        Self::native(NativeTarget::Launch(Arc::new(LaunchSpec::new(launch, images.into_iter().collect()))))
    }

    /// A launch on the CPU, with the same [`Launch`] as for a device. The function is called once for each block of the
    /// grid; the wrapper returns when all blocks are done. With it, you can run a compiler's tests without a device.
    ///
    /// `function` is a native kernel that returns nothing: a [symbol](Self::symbol), an [address](Self::address), or
    /// one that you pass with its code ([`object`](Self::object) and others). After the launch's parameters it receives
    /// the block's position in the grid and the grid's extents, in x, y and z:
    ///
    /// ```c
    /// // add(x: Tensor([n], float32), y: Tensor([n], float32)) @ launch add grid=ceil_div(n, 128)
    /// void add(const float* x, float* y, int64_t n, uint32_t block_x, uint32_t block_y, uint32_t block_z,
    ///          uint32_t grid_x, uint32_t grid_y, uint32_t grid_z);
    /// ```
    ///
    /// A [struct](crate::spec::KernelArg::Struct) is passed by its address. Clusters, shared memory, cooperative
    /// launches and tensor maps are errors. The block's extents are checked, but the function has to implement its
    /// threads. Priorities have no effect.
    ///
    /// Blocks run on the threads of the parallel-for that is registered in the process
    /// ([`register_globals`](crate::register_globals)). An engine registers one. Without one, blocks run on
    /// the calling thread.
    ///
    /// # Errors
    /// Errors are reported when the wrapper is created, as for [`launch`](Self::launch). A kernel other than a native
    /// function is an error as well.
    pub fn launch_on_cpu(launch: Launch, function: Kernel) -> Self {
        let is_plain = match &function.code {
            KernelCode::Native { call, .. } => {
                let returns_nothing = matches!(call.returns, None | Some(KernelReturn::Nothing));
                let is_flat = call.convention == Convention::Flat && call.args.is_none() && call.arguments.is_empty();
                is_flat && returns_nothing
            }
            _ => false,
        };
        let block = match function.target().filter(|_| is_plain) {
            Some(NativeTarget::Symbol(symbol)) => BlockFunction::Symbol(symbol.clone()),
            Some(NativeTarget::Address(address)) => BlockFunction::Address(*address),
            _ => BlockFunction::Other,
        };
        let launched = Self::native(NativeTarget::Launch(Arc::new(LaunchSpec::on_cpu(launch, block))));
        Kernel { code: launched.code, ..function }
    }

    /// The first-use work of launched kernels, as a separate function. The function has one parameter, a `Device`, and
    /// returns nothing. It opens the driver, loads the images and prepares the kernels for the device. Otherwise the
    /// first launch does this work. Call it before you capture a stream (`cuStreamBeginCapture`), so the launches can
    /// be captured. `kernels` are the kernels of other functions of the same module; kernels that aren't launched are
    /// ignored.
    ///
    /// # Errors
    /// Reported when the wrapper is created: the signature differs, there is no launch, or the launches are for two
    /// kinds of devices ([`LowerError::Launch`]).
    pub fn prepare<'k>(kernels: impl IntoIterator<Item = &'k Kernel>) -> Self {
        let specs = kernels.into_iter().filter_map(|kernel| match kernel.target() {
            Some(NativeTarget::Launch(spec)) if spec.block_function().is_none() => Some(Arc::clone(spec)),
            _ => None,
        });
        Self::native(NativeTarget::FirstUses(specs.collect()))
    }

    /// Keeps a value alive as long as the code that an [`Engine`](crate::Engine) compiles from the kernel. Pass the
    /// owner of the code at an [address](Self::address), such as a JIT's module or a loaded library. The value is
    /// dropped with the last function of the compilation, after its code, on any thread. The kernel and each of its
    /// clones keep the value alive too.
    pub fn keep_alive(mut self, owner: Arc<dyn Any + Send + Sync>) -> Self {
        self.owners.push(owner);
        self
    }

    /// States the C result of a native kernel. By default it is a status if the kernel writes its result or has the
    /// packed convention; otherwise the signature's value, or nothing. For a kernel that isn't native, creating the
    /// wrapper reports [`LowerError::NotNative`].
    pub fn returns(self, what: KernelReturn) -> Self {
        self.state("returns", |call| call.returns = Some(what))
    }

    /// States the calling convention of a native kernel. For a kernel that isn't native this is an error, as for
    /// [`returns`](Self::returns).
    pub fn convention(self, convention: Convention) -> Self {
        self.state("convention", |call| call.convention = convention)
    }

    /// States the C parameters of a native kernel, instead of those of convention `flat`. They can be scalars at other
    /// widths, dimension variables and expressions, strides, constants, and a tensor's device number. An integer that
    /// doesn't fit raises a `ValueError`. If the kernel writes its result, the result's address follows them. A
    /// returned tensor is the parameter `result`, or `result[0]`. A struct is passed by value, as the target's C ABI
    /// passes the type that the [header](Self::header) defines for it. Only [launches](Self::launch) support scratch
    /// memory and tensor maps.
    ///
    /// ```
    /// use tvm_ffi_codegen::spec::KernelArg;
    /// use tvm_ffi_codegen::{Kernel, ScalarType, Signature, dim};
    ///
    /// let signature: Signature = "scale(x: Tensor([n], float32), f: float64)".parse()?;
    /// let [x, device] = [KernelArg::Param, KernelArg::DeviceId].map(|part| part("x".to_owned()));
    /// let args = [x, KernelArg::Int(dim("n"), ScalarType::Int32), device];
    /// let kernel = Kernel::symbol("scale").args(args);
    /// assert_eq!(kernel.c_prototype(&signature)?, "void scale(float* x, int32_t n, int32_t x_device_id);");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// For a kernel that isn't native this is an error, as for [`returns`](Self::returns). Errors in the parameters
    /// are reported together when the wrapper is created, as [`LowerError::Convention`].
    pub fn args(self, args: impl IntoIterator<Item = KernelArg>) -> Self {
        let args = args.into_iter().collect();
        self.state("args", |call| call.args = Some(args))
    }

    /// Also passes arguments to a native kernel as they came, so the kernel can pass them on to TVM FFI functions. For
    /// each of these parameters of the signature, the kernel gets a `const TVMFFIAny*` after all other C parameters.
    /// The value at that address is the caller's own argument: borrowed, and valid during the call. If the call
    /// leaves the argument out, it is the default.
    ///
    /// A kernel passes such an address to a C function whose parameter has the type `Any`, such as one that
    #[cfg_attr(feature = "_engine", doc = "[`embed::Wrappers::c_call`](crate::embed::Wrappers::c_call) makes:")]
    #[cfg_attr(not(feature = "_engine"), doc = "`embed::Wrappers::c_call` makes:")]
    ///
    /// ```
    /// use tvm_ffi_codegen::{Kernel, Signature};
    ///
    /// let signature: Signature = "show(x: Tensor([n], float32), k: int64)".parse()?;
    /// let kernel = Kernel::symbol("show").with_arguments(["x"]);
    /// assert_eq!(
    ///     kernel.c_prototype(&signature)?,
    ///     "void show(float* x, int64_t k, int64_t n, const TVMFFIAny* x_argument);"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// For a kernel that isn't native this is an error, as for [`returns`](Self::returns). Names that the signature
    /// doesn't pass are a [`LowerError::Convention`], and so is the convention `packed`, which passes all arguments.
    pub fn with_arguments(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.state("with_arguments", |call| call.arguments = names)
    }

    /// The signature's parameters whose arguments are passed as they came, too.
    pub(super) fn arguments(&self) -> &[String] {
        match &self.code {
            KernelCode::Native { call, .. } => &call.arguments,
            KernelCode::CheckOnly | KernelCode::Body(_) => &[],
        }
    }

    /// The C parameters, if they are stated.
    pub(super) fn stated_args(&self) -> Option<&[KernelArg]> {
        match &self.code {
            KernelCode::Native { call, .. } => call.args.as_deref(),
            KernelCode::CheckOnly | KernelCode::Body(_) => None,
        }
    }

    fn state(mut self, method: &'static str, set: impl FnOnce(&mut CallSpec)) -> Self {
        match &mut self.code {
            KernelCode::CheckOnly
            | KernelCode::Body(_)
            | KernelCode::Native { target: NativeTarget::Launch(_), .. } => self.misused = Some(method),
            KernelCode::Native { call, .. } => set(call),
        }
        self
    }

    /// How a wrapper runs a native kernel; `None` for a body or no kernel.
    pub(super) fn target(&self) -> Option<&NativeTarget> {
        match &self.code {
            KernelCode::CheckOnly | KernelCode::Body(_) => None,
            KernelCode::Native { target, .. } => Some(target),
        }
    }

    /// Whether the kernel runs on a device. The wrapper itself then raises its errors.
    pub(super) fn is_on_device(&self) -> bool {
        matches!(self.target(), Some(NativeTarget::Launch(_) | NativeTarget::FirstUses(_)))
    }

    /// Why a function can't do the first-use work of kernels.
    fn first_use_problem(&self, signature: &Signature) -> Option<LaunchProblem> {
        let Some(NativeTarget::FirstUses(specs)) = self.target() else { return None };
        let takes_device = matches!(signature.params(), [param] if param.ty == ParamType::Device);
        match specs.as_slice() {
            [] => Some(LaunchProblem::PreparesNothing),
            [first, rest @ ..] if rest.iter().any(|spec| spec.device() != first.device()) => {
                Some(LaunchProblem::PreparesTwoApis)
            }
            _ if !takes_device || signature.ret().is_some_and(|ret| *ret != ParamType::None) => {
                Some(LaunchProblem::PrepareSignature)
            }
            _ => None,
        }
    }

    /// The launch of a kernel that runs on a device.
    pub(super) fn launch_spec(&self) -> Option<&LaunchSpec> {
        match self.target() {
            Some(NativeTarget::Launch(spec)) => Some(spec),
            _ => None,
        }
    }

    /// The symbol of the C function that is called, directly or for each block of a launch.
    pub(crate) fn symbol_name(&self) -> Option<&str> {
        match self.target()? {
            NativeTarget::Symbol(name) => Some(name),
            NativeTarget::Launch(spec) => match spec.block_function()? {
                BlockFunction::Symbol(name) => Some(name),
                BlockFunction::Address(_) | BlockFunction::Other => None,
            },
            NativeTarget::Address(_) | NativeTarget::FirstUses(_) => None,
        }
    }

    /// The address of the C function that is called, directly or for each block of a launch.
    pub(super) fn function_address(&self) -> Option<u64> {
        match self.target()? {
            NativeTarget::Address(address) => Some(*address),
            NativeTarget::Launch(spec) => match spec.block_function()? {
                BlockFunction::Address(address) => Some(*address),
                BlockFunction::Symbol(_) | BlockFunction::Other => None,
            },
            NativeTarget::Symbol(_) | NativeTarget::FirstUses(_) => None,
        }
    }

    /// The code that was passed with the kernel, and the kernel's symbol in it.
    pub(crate) fn native_code(&self) -> Option<(&NativeCode, &str)> {
        Some((self.native.as_ref()?, self.symbol_name()?))
    }

    /// The other objects and archives that the code may refer to.
    #[cfg(feature = "_engine")]
    pub(crate) fn code_beside(&self) -> &[NativeCode] {
        &self.beside
    }

    /// The addresses of symbols that were passed with the kernel.
    #[cfg(feature = "_engine")]
    pub(crate) fn given_symbols(&self) -> &[(String, u64)] {
        &self.given
    }

    /// The values to keep alive as long as code that calls the kernel.
    #[cfg(feature = "_engine")]
    pub(crate) fn owners(&self) -> &[Arc<dyn Any + Send + Sync>] {
        &self.owners
    }

    /// Rejects a kernel with its own code, for outputs where a separate linker has to add that code.
    pub(crate) fn check_linked_elsewhere(&self, signature: &Signature) -> Result<(), LowerError> {
        if let Some((symbol, _)) = self.given.first() {
            let (function, symbol) = (signature.name().to_owned(), symbol.clone());
            return Err(LowerError::SymbolInFile { function, symbol });
        }
        let function = || signature.name().to_owned();
        match self.native_code() {
            Some((code, symbol)) => {
                let (code, symbol) = (code.name(), symbol.to_owned());
                Err(LowerError::CodeForTheLinker { function: function(), code, symbol })
            }
            None if !self.beside.is_empty() => Err(LowerError::ObjectsForTheLinker { function: function() }),
            None => Ok(()),
        }
    }

    /// The convention that determines the parameters; `flat` for a body.
    pub(super) fn stated_convention(&self) -> Convention {
        match &self.code {
            KernelCode::CheckOnly | KernelCode::Body(_) => Convention::Flat,
            KernelCode::Native { call, .. } => call.convention,
        }
    }

    /// Checks that the kernel fits the signature.
    pub(super) fn check(&self, signature: &Signature) -> Result<(), LowerError> {
        let function = || signature.name().to_owned();
        match self.symbol_name() {
            Some(name) if name.is_empty() || name.contains('\0') => {
                return Err(LowerError::KernelName { function: function(), symbol: name.to_owned() });
            }
            Some(name) if let Some(meaning) = reserved_symbol(name) => {
                let (symbol, meaning) = (name.to_owned(), meaning.to_owned());
                return Err(LowerError::ReservedSymbol { function: function(), symbol, meaning });
            }
            _ => {}
        }
        if self.function_address() == Some(0) {
            return Err(LowerError::NullAddress { function: function() });
        }
        if let Some(method) = self.misused {
            let kernel = match &self.code {
                KernelCode::Body(_) => "a body",
                KernelCode::Native { .. } => "a launch",
                KernelCode::CheckOnly => "check-only",
            };
            return Err(LowerError::NotNative { function: function(), kernel, method });
        }
        let problems = self.launch_spec().map(|spec| spec.problems(signature)).unwrap_or_default();
        if let (Some(spec), false) = (self.launch_spec(), problems.is_empty()) {
            let kernel = spec.launch.entry().to_owned();
            return Err(LowerError::Launch { function: function(), kernel, problems });
        }
        if let Some(problem) = self.first_use_problem(signature) {
            return Err(LowerError::Launch {
                function: function(),
                kernel: signature.name().to_owned(),
                problems: vec![problem],
            });
        }
        if let Some(problem) = self.convention_problem(signature) {
            return Err(LowerError::Convention { function: function(), convention: self.stated_convention(), problem });
        }
        match self.return_problem(signature) {
            Some(problem) => Err(LowerError::KernelReturn { function: function(), problem }),
            None => Ok(()),
        }
    }

    /// Why the convention can't pass a part of the signature.
    fn convention_problem(&self, signature: &Signature) -> Option<ConventionProblem> {
        let is_unknown = |name: &&String| !signature.passed().any(|param| param.name == **name);
        if let Some(unknown) = self.arguments().iter().find(is_unknown) {
            return Some(ConventionProblem::UnknownArgument(unknown.clone()));
        }
        if let Some(args) = self.stated_args() {
            return match self.stated_convention() {
                Convention::Flat => Some(args::problems(args, signature))
                    .filter(|problems| !problems.is_empty())
                    .map(ConventionProblem::Args),
                _ => Some(ConventionProblem::ArgsOfOtherConvention),
            };
        }
        match self.stated_convention() {
            Convention::Flat | Convention::DlTensor => None,
            Convention::MemRef => {
                let mut problem = None;
                let mut look = |tensor: &TensorType| {
                    let boxed = || Box::new(tensor.clone());
                    if tensor.shape.rank().is_none() {
                        problem = Some(ConventionProblem::AnyRank { tensor: boxed() });
                    } else if tensor.is_opaque() {
                        problem = Some(ConventionProblem::OpaqueData { tensor: boxed() });
                    } else if tensor.device.kind().is_none() {
                        problem = Some(ConventionProblem::PerhapsOpaqueData { tensor: boxed() });
                    }
                };
                signature.params().iter().for_each(|param| passed_tensors(&param.ty, &mut look));
                signature.returned_tensors().into_iter().filter(|tensor| tensor.is_opaque()).for_each(look);
                problem
            }
            Convention::Packed if !self.arguments().is_empty() => Some(ConventionProblem::AllArguments),
            Convention::Packed => {
                (!signature.returned_tensors().is_empty()).then_some(ConventionProblem::ReturnedTensor)
            }
        }
    }

    fn return_problem(&self, signature: &Signature) -> Option<ReturnProblem> {
        let returns = self.return_kind(signature);
        let Some(ty) = signature.ret() else {
            return match returns {
                Some(KernelReturn::Value) => Some(ReturnProblem::UnexpectedValue),
                Some(KernelReturn::Nothing) if self.stated_convention() == Convention::Packed => {
                    Some(ReturnProblem::StatusOfConvention)
                }
                _ => None,
            };
        };
        let boxed = || Box::new(ty.clone());
        match (&self.code, returns) {
            (KernelCode::CheckOnly, _) => Some(ReturnProblem::NoKernel { ty: boxed() }),
            (_, Some(KernelReturn::Value | KernelReturn::Nothing))
                if self.stated_convention() == Convention::Packed =>
            {
                Some(ReturnProblem::StatusOfConvention)
            }
            (_, Some(KernelReturn::Nothing)) if returns_value(ty) => Some(ReturnProblem::NoValue { ty: boxed() }),
            (_, Some(KernelReturn::Nothing | KernelReturn::Value)) if writes_result(ty) => {
                Some(ReturnProblem::NoStatus { ty: boxed() })
            }
            (_, Some(KernelReturn::Value)) if !returns_value(ty) => Some(ReturnProblem::PassedResult { ty: boxed() }),
            _ => None,
        }
    }

    /// Checks that the module can import the kernel's symbol with the prototype that the signature needs. `wrapper` is
    /// the wrapper's own symbol.
    pub(super) fn check_symbol(
        &self,
        signature: &Signature,
        wrapper: &str,
        module: &ir::Module,
    ) -> Result<(), LowerError> {
        let Some(name) = self.symbol_name() else { return Ok(()) };
        let found = match name == wrapper {
            true => Some(unit::DEFINED.to_owned()),
            false => import_conflict(module, name, &self.called_sig(signature)),
        };
        found.map_or(Ok(()), |found| {
            let function = signature.name().to_owned();
            Err(LowerError::SymbolConflict { function, symbol: name.to_owned(), found })
        })
    }

    /// The kind of result that a native kernel returns; `None` for a body or no kernel.
    pub(super) fn return_kind(&self, signature: &Signature) -> Option<KernelReturn> {
        let KernelCode::Native { call, .. } = &self.code else { return None };
        let default = match signature.ret() {
            // a launch returns its error's code
            _ if call.convention == Convention::Packed || self.is_on_device() => KernelReturn::Status,
            Some(ty) if returns_value(ty) => KernelReturn::Value,
            Some(ty) if writes_result(ty) => KernelReturn::Status,
            _ => KernelReturn::Nothing,
        };
        Some(call.returns.unwrap_or(default))
    }

    /// The prototype of the C function that is called, directly or for each block of a launch.
    fn called_sig(&self, signature: &Signature) -> FuncSig {
        match self.launch_spec().filter(|spec| spec.block_function().is_some()) {
            Some(spec) => block_prototype(&spec.block_params(signature)),
            None => self.func_sig(signature),
        }
    }

    /// The prototype of a native kernel.
    pub(super) fn func_sig(&self, signature: &Signature) -> FuncSig {
        let returns = self.return_kind(signature).unwrap_or(KernelReturn::Nothing);
        let mut sig = match self.stated_args() {
            None => params::func_sig(signature, self.stated_convention(), returns),
            Some(args) => {
                let params = args::c_params(args, signature, returns).iter().map(|param| param.c_type.abi()).collect();
                FuncSig { params, ret: params::c_result(signature, returns).map(CType::abi) }
            }
        };
        sig.params.extend(self.arguments().iter().map(|_| params::ARGUMENT.abi()));
        sig
    }

    /// The C parameters of a native kernel.
    pub(super) fn c_params(&self, signature: &Signature) -> Vec<KernelParam> {
        let returns = self.return_kind(signature).unwrap_or(KernelReturn::Nothing);
        let mut all = match self.stated_args() {
            None => params::params(signature, self.stated_convention(), returns),
            Some(args) => args::c_params(args, signature, returns),
        };
        params::add_arguments(&mut all, self.arguments());
        all
    }
}

/// Tensors that are passed individually, not inside containers.
fn passed_tensors(ty: &ParamType, f: &mut dyn FnMut(&TensorType)) {
    match ty {
        ParamType::Tensor(tensor) => f(tensor),
        ParamType::Optional(_) | ParamType::Tuple(_) | ParamType::Record { .. } => {
            ty.inner().into_iter().for_each(|inner| passed_tensors(inner, f));
        }
        _ => {}
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            KernelCode::CheckOnly => f.write_str("Kernel::CheckOnly"),
            KernelCode::Body(_) => f.write_str("Kernel::Body"),
            KernelCode::Native { target: NativeTarget::Symbol(name), call } => match &self.native {
                Some(code) => write!(f, "Kernel::Symbol({name:?} of {}, {call:?})", code.name()),
                None => write!(f, "Kernel::Symbol({name:?}, {call:?})"),
            },
            KernelCode::Native { target: NativeTarget::FirstUses(specs), .. } => {
                f.debug_list().entries(specs.iter().map(|spec| spec.launch.entry())).finish()
            }
            KernelCode::Native { target: NativeTarget::Launch(spec), .. } => {
                write!(f, "Kernel::Launch({:?})", spec.launch)
            }
            KernelCode::Native { target: NativeTarget::Address(address), call } => {
                write!(f, "Kernel::Address({address:#x}, {call:?})")
            }
        }
    }
}

/// The purpose of a symbol that is reserved in every module; `None` if a kernel may have it.
fn reserved_symbol(name: &str) -> Option<&'static str> {
    // in a system library, a prefix precedes the name
    let of_libraries = [symbol::LIBRARY_CTX, symbol::LIBRARY_BIN, symbol::METADATA, symbol::DOC];
    match name {
        // generated code calls these with prototypes of its own
        _ if name.starts_with("TVMFFI") => Some("reserved for the C API"),
        _ if of_libraries.iter().any(|of_library| name.contains(of_library)) => {
            Some("reserved for what a library carries")
        }
        // such a name is never a function's own: it is a part of a wrapper
        _ if name.starts_with(symbol::FUNCTION) && name.contains('-') => Some("reserved for parts of wrappers"),
        _ if name.starts_with(".L") => Some("a label that assemblers keep to themselves"),
        _ if name.starts_with("llvm.") => Some("reserved for the intrinsics of LLVM"),
        _ if name.starts_with('\u{1}') => Some("taken by LLVM for the name behind the first character"),
        _ => None,
    }
}
