//! The kernel behind a wrapper: its code, how control gets to it, its convention and its C result.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use super::body::{Body, BodyFn};
use super::convention::c_type::CType;
use super::convention::param::KernelParam;
use super::convention::{Convention, KernelReturn, params, returns_value, writes_result};
use super::error::LowerError;
use super::launch::{BlockFunction, LaunchSpec, block_prototype};
use super::native::NativeCode;
use super::unit::{self, import_conflict};
use crate::image::Image;
use crate::ir::{self, FuncSig};
use crate::spec::{Launch, LaunchArg, ParamType, Signature, TensorType};
use tvm_ffi_runtime::abi::symbol;

/// The code behind a wrapper.
///
/// A native kernel is called by a [`Convention`], `flat` unless stated. For
/// `scale(x: Tensor([n], float32), f: float64)`:
///
/// ```c
/// void scale(float* x, double f, int64_t n);
/// ```
#[derive(Clone)]
pub struct Kernel {
    pub(super) code: KernelCode,
    /// The compiled code that has the symbol of a native kernel, where the kernel comes with it.
    native: Option<NativeCode>,
    /// Values that live as long as code that calls the kernel.
    owners: Vec<Arc<dyn Any + Send + Sync>>,
    /// A method that only native kernels have a use for, called on another kernel.
    misused: Option<&'static str>,
}

/// The code of a kernel.
#[derive(Clone)]
pub(super) enum KernelCode {
    CheckOnly,
    Body(BodyFn),
    Native { target: Target, call: CallSpec },
}

/// How control gets to a native kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// By a call of an imported symbol.
    Symbol(String),
    /// By a call of an address of this process.
    Address(u64),
    /// By a launch on the device of the tensors.
    Launch(Arc<LaunchSpec>),
    /// No call: what the first use of launched kernels does on a device.
    FirstUses(Vec<Arc<LaunchSpec>>),
}

/// How a native kernel takes its arguments and gives its result.
#[derive(Clone, Debug, Default)]
pub(super) struct CallSpec {
    convention: Convention,
    returns: Option<KernelReturn>,
    /// The C parameters, where they are stated.
    args: Option<Arc<LaunchSpec>>,
}

impl Kernel {
    const fn new(code: KernelCode) -> Self {
        Kernel { code, native: None, owners: Vec::new(), misused: None }
    }

    fn native(target: Target) -> Self {
        Self::new(KernelCode::Native { target, call: CallSpec::default() })
    }

    /// No kernel: the wrapper checks its arguments and returns nothing.
    pub const fn check_only() -> Self {
        Self::new(KernelCode::CheckOnly)
    }

    /// A body, written by `build` into the module of the wrapper each time that it is lowered.
    pub fn body(build: impl Fn(&Body<'_>) + Send + Sync + 'static) -> Self {
        Self::new(KernelCode::Body(Arc::new(build)))
    }

    /// A body that is shared.
    pub(super) fn of_body(build: BodyFn) -> Self {
        Self::new(KernelCode::Body(build))
    }

    /// A C function by its symbol, found when the module is linked or loaded.
    ///
    /// Some symbols are no kernel's: those that begin with `TVMFFI`, `llvm.` or `.L`, and those that a library has for itself, such as
    /// `__tvm_ffi__library_ctx`.
    pub fn symbol(name: impl Into<String>) -> Self {
        Self::native(Target::Symbol(name.into()))
    }

    /// A C function of a relocatable object, or of an archive of such objects, by its symbol. The bytes are those of an ELF, Mach-O or COFF file for
    /// this machine, as a compiler writes it; of an archive the members are taken that the symbol needs.
    ///
    /// An [`Engine`](crate::Engine) links the object into memory, beside the wrapper, and the two go together. Kernels of one compilation are linked
    /// together too: equal bytes are linked once, and objects may refer to each other. Other symbols that an object refers to are those of the engine.
    /// Objects of a library that is made [ahead of time](crate::artifact) are given to the linker, and the kernel is named by [`symbol`](Self::symbol).
    ///
    /// Nothing runs when the object is loaded: an object with constructors or destructors (`.init_array` and the like) is refused, as is one with
    /// thread-local variables or indirect functions.
    pub fn object(bytes: impl Into<Arc<[u8]>>, symbol: impl Into<String>) -> Self {
        Self::symbol(symbol).with(NativeCode::Object(bytes.into()))
    }

    /// A C function of a module in LLVM's textual IR, by its symbol. An [`Engine`](crate::Engine) has LLVM compile the module for this machine at the
    /// engine's level of optimisation, whatever the engine's backend is, and goes on as with an [object](Self::object).
    ///
    /// The module's target triple and data layout are this machine's, or not stated.
    #[cfg(feature = "_llvm")]
    pub fn llvm_ir(text: impl Into<Arc<str>>, symbol: impl Into<String>) -> Self {
        Self::symbol(symbol).with(NativeCode::LlvmIr(text.into()))
    }

    /// A C function of a module in LLVM's bitcode, by its symbol; otherwise as [`llvm_ir`](Self::llvm_ir).
    #[cfg(feature = "_llvm")]
    pub fn bitcode(bytes: impl Into<Arc<[u8]>>, symbol: impl Into<String>) -> Self {
        Self::symbol(symbol).with(NativeCode::Bitcode(bytes.into()))
    }

    fn with(mut self, native: NativeCode) -> Self {
        self.native = Some(native);
        self
    }

    /// A C function at an address of this process. Such a wrapper runs only in this process.
    /// [`keep_alive`](Self::keep_alive) takes the owner of the code at the address.
    pub fn address(address: *const c_void) -> Self {
        Self::native(Target::Address(address as u64))
    }

    /// A kernel of a device: the wrapper launches it on the device of the function's tensors, and on the environment's stream of that device
    /// (`TVMFFIEnvGetStream`). It doesn't wait for the kernel. `images` are the code of the kernel, for one architecture or several, among which the device's
    /// compute capability chooses; PTX is taken where no machine code fits.
    ///
    /// Nothing of the device's driver is needed when the code is compiled, linked or loaded. The driver is looked for at the first call, by
    /// `dlopen("libcuda.so.1")` or `dlopen("libamdhip64.so")`, on Windows as `nvcuda.dll` or `amdhip64_6.dll`; a call on a machine without it is a
    /// `RuntimeError`. docs/gpu.md tells more.
    ///
    /// # Errors
    /// Mistakes are reported when the wrapper is made, all at once, as [`LowerError::Launch`]: parameters that the images' kernels don't take, extents
    /// that no device has, names that the signature doesn't have.
    pub fn launch(launch: Launch, images: impl IntoIterator<Item = Image>) -> Self {
        Self::native(Target::Launch(Arc::new(LaunchSpec::new(launch, images.into_iter().collect()))))
    }

    /// A launch on the CPU, by the same [`Launch`] as on a device: the function is called once for each block of the grid, by as many threads as there are
    /// processors, 64 at most. The wrapper returns when all blocks are done. A compiler's tests run so without a device.
    ///
    /// `function` is a native kernel that returns nothing: a [symbol](Self::symbol), an [address](Self::address), or one that comes with its code
    /// ([`object`](Self::object) and others). Behind the launch's parameters it gets the block's place in the grid and the grid's extents, in x, y and z:
    ///
    /// ```c
    /// // add(x: Tensor([n], float32), y: Tensor([n], float32)) @ launch add grid=ceil_div(n, 128)
    /// void add(const float* x, float* y, int64_t n, uint32_t block_x, uint32_t block_y, uint32_t block_z,
    ///          uint32_t grid_x, uint32_t grid_y, uint32_t grid_z);
    /// ```
    ///
    /// A [struct](crate::spec::LaunchArg::Struct) is passed by its address. Clusters, shared memory, cooperative launches and tensor maps are mistakes; the block's
    /// extents are checked and left to the function, and priorities have no effect.
    ///
    /// Threads are made by the first launch of several blocks, and end when the code goes. The code needs `pthread_create` and `pthread_join`, `sem_init`,
    /// `sem_wait`, `sem_post` and `sem_destroy`, `get_nprocs` and `getpid` of the C library, so Linux.
    ///
    /// # Errors
    /// Mistakes are reported when the wrapper is made, as for [`launch`](Self::launch); another kernel than a native function is one of them.
    pub fn launch_on_cpu(launch: Launch, function: Kernel) -> Self {
        let is_plain = match &function.code {
            KernelCode::Native { call, .. } => {
                let returns_nothing = matches!(call.returns, None | Some(KernelReturn::Nothing));
                call.convention == Convention::Flat && returns_nothing && call.args.is_none()
            }
            _ => false,
        };
        let block = match function.target().filter(|_| is_plain) {
            Some(Target::Symbol(symbol)) => BlockFunction::Symbol(symbol.clone()),
            Some(Target::Address(address)) => BlockFunction::Address(*address),
            _ => BlockFunction::Other,
        };
        let launched = Self::native(Target::Launch(Arc::new(LaunchSpec::on_cpu(launch, block))));
        Kernel { native: function.native, owners: function.owners, misused: function.misused, ..launched }
    }

    /// The first use of launched kernels, as a function of its own: the function has one parameter, a `Device`, and returns nothing. It opens the driver,
    /// loads the images and gets the kernels ready for the device, all of which else the first launch does. A call of it before a stream is captured
    /// (`cuStreamBeginCapture`) lets launches be captured. `kernels` are those of other functions of the same module; others than launches do nothing.
    ///
    /// # Errors
    /// Reported when the wrapper is made: the signature is another, or there is no launch, or they are of two kinds of devices
    /// ([`LowerError::Launch`]).
    pub fn first_use<'k>(kernels: impl IntoIterator<Item = &'k Kernel>) -> Self {
        let specs = kernels.into_iter().filter_map(|kernel| match kernel.target() {
            Some(Target::Launch(spec)) if spec.block_function().is_none() => Some(Arc::clone(spec)),
            _ => None,
        });
        Self::native(Target::FirstUses(specs.collect()))
    }

    /// Keeps a value alive for as long as code that an [`Engine`](crate::Engine) compiles of the kernel: the owner of the code at an
    /// [address](Self::address), such as a JIT's module or a loaded library. The value is dropped with the last function of the compilation, after its
    /// code, on whatever thread that happens. The kernel itself, and each clone of it, keeps the value too.
    pub fn keep_alive(mut self, owner: Arc<dyn Any + Send + Sync>) -> Self {
        self.owners.push(owner);
        self
    }

    /// States the C result of a native kernel. Unless stated, it is the signature's value; a status where the kernel writes its result, or
    /// has the packed convention; else nothing. For a kernel that isn't native this is a mistake, [`LowerError::NotNative`], which is
    /// reported when the wrapper is made.
    pub fn returning(self, what: KernelReturn) -> Self {
        self.state("returning", |call| call.returns = Some(what))
    }

    /// States the calling convention of a native kernel. For a kernel that isn't native this is a mistake, as for
    /// [`returning`](Self::returning).
    pub fn convention(self, convention: Convention) -> Self {
        self.state("convention", |call| call.convention = convention)
    }

    /// States the C parameters of a native kernel, in place of those of convention `flat`: scalars at other widths, symbols and expressions (an integer that
    /// doesn't fit is a `ValueError`), strides, constants, the number of a tensor's device. Behind them stands the place that the kernel writes its result to, if it
    /// does. A returned tensor is the parameter `result`, or `result[0]`. Structs, scratch memory and tensor maps are for [launches](Self::launch).
    ///
    /// ```
    /// use tvm_ffi_codegen::spec::LaunchArg;
    /// use tvm_ffi_codegen::{Kernel, ScalarType, Signature, dim};
    ///
    /// let signature: Signature = "scale(x: Tensor([n], float32), f: float64)".parse()?;
    /// let args = [LaunchArg::Param("x".to_owned()), LaunchArg::Int(dim("n"), ScalarType::Int32), LaunchArg::DeviceId("x".to_owned())];
    /// let kernel = Kernel::symbol("scale").args(args);
    /// assert_eq!(kernel.c_prototype(&signature)?, "void scale(float* x, int32_t n, int32_t x_device_id);");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// For a kernel that isn't native this is a mistake, as for [`returning`](Self::returning). Mistakes of the parameters are reported when the wrapper
    /// is made, all at once, as [`LowerError::Convention`].
    pub fn args(self, args: impl IntoIterator<Item = LaunchArg>) -> Self {
        let args = Arc::new(LaunchSpec::called(args.into_iter().collect()));
        self.state("args", |call| call.args = Some(args))
    }

    /// The C parameters, where they are stated.
    pub(super) fn stated_args(&self) -> Option<&Arc<LaunchSpec>> {
        match &self.code {
            KernelCode::Native { call, .. } => call.args.as_ref(),
            KernelCode::CheckOnly | KernelCode::Body(_) => None,
        }
    }

    fn state(mut self, method: &'static str, set: impl FnOnce(&mut CallSpec)) -> Self {
        match &mut self.code {
            KernelCode::CheckOnly | KernelCode::Body(_) | KernelCode::Native { target: Target::Launch(_), .. } => {
                self.misused = Some(method)
            }
            KernelCode::Native { call, .. } => set(call),
        }
        self
    }

    /// How control gets to a native kernel; `None` for a body or no kernel.
    pub(super) fn target(&self) -> Option<&Target> {
        match &self.code {
            KernelCode::CheckOnly | KernelCode::Body(_) => None,
            KernelCode::Native { target, .. } => Some(target),
        }
    }

    /// Whether the kernel is a device's, so that the wrapper itself raises its errors.
    pub(super) fn is_on_device(&self) -> bool {
        matches!(self.target(), Some(Target::Launch(_) | Target::FirstUses(_)))
    }

    /// Why a function can't do the first use of kernels.
    fn first_use_problem(&self, signature: &Signature) -> Option<&'static str> {
        let Some(Target::FirstUses(specs)) = self.target() else { return None };
        let takes_device = matches!(signature.params(), [param] if param.ty == ParamType::Device);
        match specs.as_slice() {
            [] => Some("prepares no kernel that is launched"),
            [first, rest @ ..] if rest.iter().any(|spec| spec.api().name != first.api().name) => {
                Some("prepares kernels of two kinds of devices; make a function for each")
            }
            _ if !takes_device || signature.ret().is_some_and(|ret| *ret != ParamType::None) => {
                Some("prepares kernels for a device: it takes one parameter, a Device, and returns nothing")
            }
            _ => None,
        }
    }

    /// The launch of a kernel that runs on a device.
    pub(super) fn launch_spec(&self) -> Option<&LaunchSpec> {
        match self.target() {
            Some(Target::Launch(spec)) => Some(spec),
            _ => None,
        }
    }

    /// The symbol of the C function that is called, for each block of a launch or by itself.
    fn symbol_name(&self) -> Option<&str> {
        match self.target()? {
            Target::Symbol(name) => Some(name),
            Target::Launch(spec) => match spec.block_function()? {
                BlockFunction::Symbol(name) => Some(name),
                BlockFunction::Address(_) | BlockFunction::Other => None,
            },
            Target::Address(_) | Target::FirstUses(_) => None,
        }
    }

    /// The address of the C function that is called, for each block of a launch or by itself.
    pub(super) fn function_address(&self) -> Option<u64> {
        match self.target()? {
            Target::Address(address) => Some(*address),
            Target::Launch(spec) => match spec.block_function()? {
                BlockFunction::Address(address) => Some(*address),
                BlockFunction::Symbol(_) | BlockFunction::Other => None,
            },
            Target::Symbol(_) | Target::FirstUses(_) => None,
        }
    }

    /// The code that the kernel comes with, and its symbol there.
    pub(crate) fn native_code(&self) -> Option<(&NativeCode, &str)> {
        Some((self.native.as_ref()?, self.symbol_name()?))
    }

    /// The values that live as long as code that calls the kernel.
    #[cfg(feature = "_engine")]
    pub(crate) fn owners(&self) -> &[Arc<dyn Any + Send + Sync>] {
        &self.owners
    }

    /// Refuses a kernel that comes with its code, where that has to be put beside the wrapper by a linker.
    pub(crate) fn check_linked_elsewhere(&self, signature: &Signature) -> Result<(), LowerError> {
        self.native_code().map_or(Ok(()), |(code, symbol)| {
            let (function, symbol) = (signature.name().to_owned(), symbol.to_owned());
            Err(LowerError::CodeForTheLinker { function, code: code.name(), symbol })
        })
    }

    /// The convention that lays the parameters out; `flat` for a body.
    pub(super) fn stated_convention(&self) -> Convention {
        match &self.code {
            KernelCode::CheckOnly | KernelCode::Body(_) => Convention::Flat,
            KernelCode::Native { call, .. } => call.convention,
        }
    }

    /// Whether the kernel fits the signature.
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
                problems: vec![problem.to_owned()],
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

    /// Why the convention can't pass what the signature has.
    fn convention_problem(&self, signature: &Signature) -> Option<String> {
        if let Some(args) = self.stated_args() {
            let problems = match self.stated_convention() {
                Convention::Flat => args.call_problems(signature),
                _ => vec!["states its args, which take the place of convention flat's".to_owned()],
            };
            return (!problems.is_empty()).then(|| problems.join("; "));
        }
        match self.stated_convention() {
            Convention::Flat | Convention::DlTensor => None,
            Convention::MemRef => {
                let mut problem = None;
                let mut look = |tensor: &TensorType| {
                    if tensor.shape.rank().is_none() {
                        problem = Some(format!("{tensor} has any rank"));
                    } else if tensor.is_opaque() {
                        problem = Some(format!("{tensor} has an opaque handle for data"));
                    } else if tensor.device.kind().is_none() {
                        problem = Some(format!("{tensor} may have an opaque handle for data"));
                    }
                };
                signature.params().iter().for_each(|param| passed_tensors(&param.ty, &mut look));
                signature.returned_tensors().into_iter().filter(|tensor| tensor.is_opaque()).for_each(look);
                problem
            }
            Convention::Packed => (!signature.returned_tensors().is_empty())
                .then(|| "a tensor that the wrapper allocates has no place among the arguments".to_owned()),
        }
    }

    fn return_problem(&self, signature: &Signature) -> Option<String> {
        let returns = self.returns(signature);
        let Some(ty) = signature.ret() else {
            return match returns {
                Some(KernelReturn::Value) => Some("returns a value, and the signature returns nothing".to_owned()),
                Some(KernelReturn::Nothing) if self.stated_convention() == Convention::Packed => {
                    Some("has to return a status, as its convention says".to_owned())
                }
                _ => None,
            };
        };
        match (&self.code, returns) {
            (KernelCode::CheckOnly, _) => {
                Some(format!("is missing: the signature returns {ty}, which only a kernel can make"))
            }
            (KernelCode::Body(_), _) if ty.as_scalar().is_none() && returns_value(ty) => {
                Some(format!("is a body, and bodies don't return {ty}"))
            }
            (_, Some(KernelReturn::Value)) if self.stated_convention() == Convention::Packed => {
                Some("has to return a status, as its convention says".to_owned())
            }
            (_, Some(KernelReturn::Nothing)) if self.stated_convention() == Convention::Packed => {
                Some("has to return a status, as its convention says".to_owned())
            }
            (_, Some(KernelReturn::Nothing)) if returns_value(ty) => {
                Some(format!("has to return {ty}, as the signature does, or a status and write it"))
            }
            (_, Some(KernelReturn::Nothing | KernelReturn::Value)) if writes_result(ty) => {
                Some(format!("has to return a status, as it writes its {ty}"))
            }
            (_, Some(KernelReturn::Value)) if !returns_value(ty) => {
                Some(format!("returns a value, and its {ty} is passed to it"))
            }
            _ => None,
        }
    }

    /// Whether the module can import the kernel's symbol as the signature needs it; `wrapper` is the wrapper's own.
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

    /// What a native kernel returns; `None` for a body or no kernel.
    pub(super) fn returns(&self, signature: &Signature) -> Option<KernelReturn> {
        let KernelCode::Native { call, .. } = &self.code else { return None };
        let default = match signature.ret() {
            // a launch gives the code of its error
            _ if call.convention == Convention::Packed || self.is_on_device() => KernelReturn::Status,
            Some(ty) if returns_value(ty) => KernelReturn::Value,
            Some(ty) if writes_result(ty) => KernelReturn::Status,
            _ => KernelReturn::Nothing,
        };
        Some(call.returns.unwrap_or(default))
    }

    /// The prototype of the C function that is called, for each block of a launch or by itself.
    fn called_sig(&self, signature: &Signature) -> FuncSig {
        match self.launch_spec().filter(|spec| spec.block_function().is_some()) {
            Some(spec) => block_prototype(&spec.block_params(signature)),
            None => self.func_sig(signature),
        }
    }

    /// The prototype of a native kernel.
    pub(super) fn func_sig(&self, signature: &Signature) -> FuncSig {
        let returns = self.returns(signature).unwrap_or(KernelReturn::Nothing);
        match self.stated_args() {
            None => params::func_sig(signature, self.stated_convention(), returns),
            Some(args) => {
                let params = args.called_params(signature, returns).iter().map(|param| param.c_type.abi()).collect();
                FuncSig { params, ret: params::c_result(signature, returns).map(CType::abi) }
            }
        }
    }

    /// The C parameters of a native kernel.
    pub(super) fn c_params(&self, signature: &Signature) -> Vec<KernelParam> {
        let returns = self.returns(signature).unwrap_or(KernelReturn::Nothing);
        match self.stated_args() {
            None => params::params(signature, self.stated_convention(), returns),
            Some(args) => args.called_params(signature, returns),
        }
    }
}

/// Tensors that are passed one by one: not those in containers.
fn passed_tensors(ty: &ParamType, f: &mut dyn FnMut(&TensorType)) {
    match ty {
        ParamType::Tensor(tensor) => f(tensor),
        ParamType::Optional(_) | ParamType::Tuple(_) => {
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
            KernelCode::Native { target: Target::Symbol(name), call } => match &self.native {
                Some(code) => write!(f, "Kernel::Symbol({name:?} of {}, {call:?})", code.name()),
                None => write!(f, "Kernel::Symbol({name:?}, {call:?})"),
            },
            KernelCode::Native { target: Target::FirstUses(specs), .. } => {
                f.debug_list().entries(specs.iter().map(|spec| spec.launch.entry())).finish()
            }
            KernelCode::Native { target: Target::Launch(spec), .. } => write!(f, "Kernel::Launch({:?})", spec.launch),
            KernelCode::Native { target: Target::Address(address), call } => {
                write!(f, "Kernel::Address({address:#x}, {call:?})")
            }
        }
    }
}

/// What a symbol is that can't be a kernel's, whatever the module has.
fn reserved_symbol(name: &str) -> Option<&'static str> {
    // that of a system library has a prefix before it
    let of_libraries = [symbol::LIBRARY_CTX, symbol::LIBRARY_BIN, symbol::METADATA, symbol::DOC];
    match name {
        // generated code calls these by prototypes of their own
        _ if name.starts_with("TVMFFI") => Some("reserved for the C API"),
        _ if of_libraries.iter().any(|of_library| name.contains(of_library)) => {
            Some("reserved for what a library carries")
        }
        // no function has such a name: it is a part of the wrapper
        _ if name.starts_with(symbol::FUNCTION) && name.contains('-') => Some("reserved for parts of wrappers"),
        _ if name.starts_with(".L") => Some("a label that assemblers keep to themselves"),
        _ if name.starts_with("llvm.") => Some("reserved for the intrinsics of LLVM"),
        _ if name.starts_with('\u{1}') => Some("taken by LLVM for the name behind the first character"),
        _ => None,
    }
}
