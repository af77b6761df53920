//! Wrappers on the way into a module of the caller's, whatever its backend: what is to be added, and the IR of it.

use target_lexicon::{BinaryFormat, Endianness, Triple};

use super::EmbedError;
use crate::backend::CodegenError;
use crate::ir::{HOST_ENDIANNESS, VerifiedModule};
use crate::lower::{
    Body, Capabilities, HelperSet, Kernel, LaunchDescription, LibraryLowering, LowerError, Lowering, RuntimeHelpers,
};
use crate::spec::Signature;
use tvm_ffi_runtime::abi::symbol::FUNCTION;

/// The use of a module of the caller's.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Purpose {
    /// Anything: it gets the wrappers alone.
    Any,
    /// Code of this process.
    Process,
    /// The object file of a library, with a prefix if it is a system library.
    Library(Option<String>),
}

/// Wrappers for a module of the caller's, and what it gets beside them. `T` is the backend's kind of target:
/// [`cranelift::Library`](super::cranelift::Library) or `llvm::Library`.
///
/// | built by | what is added | the runtime helpers | afterwards |
/// | --- | --- | --- | --- |
/// | [`in_process`](Self::in_process) | wrappers | this process's, imported | `finish` makes a module of the runtime |
/// | [`new`](Self::new), [`system`](Self::system) | wrappers, metadata, docs, the library's context, in a system library its registration | defined once in the module | the module becomes an object file |
///
/// ```
/// # #[cfg(feature = "cranelift")] {
/// use tvm_ffi_codegen::embed::cranelift::{self, Library};
/// use tvm_ffi_codegen::{Kernel, Signature};
///
/// let double: Signature = "double(n: int64) -> int64".parse()?;
/// let kernel = Kernel::body(|b| b.ret(b.arg("n") * 2)); // or a function of the module
/// let mut module = cranelift::jit_module(cranelift::host_isa()?)?;
/// let added = Library::in_process().documented(&double, kernel, "2n").add_to(&mut module)?;
/// // SAFETY: the body reads no memory.
/// let module = unsafe { cranelift::finish(module, [added], ())? };
/// let double = module.get_function("double")?.ok_or("no function")?;
/// assert_eq!(double.call((21,))?.cast::<i64>()?, 42);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is added before `add_to`"]
pub struct Library<T> {
    functions: Vec<Wanted<T>>,
    purpose: Purpose,
    metadata: bool,
}

/// A function that is to be added.
#[derive(Clone, Debug)]
struct Wanted<T> {
    signature: Signature,
    target: T,
    doc: Option<String>,
    /// Whether it is a C function, and no wrapper.
    is_c: bool,
}

/// Wrappers that were added to a module, with what `finish` has to know of them. `F` is the backend's name for a function.
#[derive(Clone, Debug)]
pub struct Added<F> {
    pub(super) functions: Vec<Wrapper<F>>,
    /// The functions that run when the code goes.
    pub(super) destructors: Vec<F>,
}

/// A wrapper in a module.
#[derive(Clone, Debug)]
pub(super) struct Wrapper<F> {
    pub(super) id: F,
    pub(super) signature: Signature,
    #[cfg_attr(feature = "external-runtime", allow(dead_code))] // modules can't be made there
    pub(super) doc: Option<String>,
    #[cfg_attr(feature = "external-runtime", allow(dead_code))]
    pub(super) launches: Vec<LaunchDescription>,
}

impl<F> Added<F> {
    /// The wrappers, in the order in which they were stated.
    pub fn functions(&self) -> impl Iterator<Item = &F> {
        self.functions.iter().map(|wrapper| &wrapper.id)
    }
}

/// Wrappers as IR.
pub(super) struct Lowered {
    pub(super) ir: VerifiedModule,
    /// The runtime helpers' parts that they need, which the IR imports.
    pub(super) capabilities: Capabilities,
    /// Of each wrapper its symbol.
    pub(super) symbols: Vec<String>,
    /// Of each wrapper the launches that its code makes.
    pub(super) launches: Vec<Vec<LaunchDescription>>,
}

impl<T> Default for Library<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Library<T> {
    fn of(purpose: Purpose) -> Self {
        Library { functions: Vec::new(), purpose, metadata: true }
    }

    /// Wrappers alone, with helpers of their own.
    pub(super) fn wrappers() -> Self {
        Self::of(Purpose::Any)
    }

    /// For a module that becomes the object file of a library, which a host loads. All wrappers of the library are added at once, to an object of their own
    /// or one with the kernels, as by [`LibraryBuilder`](crate::artifact::LibraryBuilder).
    pub fn new() -> Self {
        Self::of(Purpose::Library(None))
    }

    /// As [`new`](Self::new), for a system library of this prefix: one that is linked into a program, and registers its functions when that
    /// starts ([`LibraryBuilder::system_library`](crate::artifact::LibraryBuilder::system_library)).
    pub fn system(prefix: impl Into<String>) -> Self {
        Self::of(Purpose::Library(Some(prefix.into())))
    }

    /// For a module that runs in this process. It imports the functions of [`runtime_symbols`](super::runtime_symbols), among them the runtime
    /// helpers, which all such modules share with all engines.
    pub fn in_process() -> Self {
        Self::of(Purpose::Process)
    }

    /// Sets whether the functions of a library carry metadata, as they do unless stated. What `finish` makes has it always.
    pub fn metadata(mut self, yes: bool) -> Self {
        self.metadata = yes;
        self
    }

    /// Adds a function.
    pub fn function(self, signature: &Signature, target: impl Into<T>) -> Self {
        self.add(signature, target.into(), None)
    }

    /// Adds a function with a doc, which hosts show.
    pub fn documented(self, signature: &Signature, target: impl Into<T>, doc: impl Into<String>) -> Self {
        self.add(signature, target.into(), Some(doc.into()))
    }

    fn add(mut self, signature: &Signature, target: T, doc: Option<String>) -> Self {
        self.functions.push(Wanted { signature: signature.clone(), target, doc, is_c: false });
        self
    }

    /// Adds a [body](Kernel::body) as a C function of the signature's name, for kernels of the module: what a kernel can't do by itself, such as raising
    /// an error or calling a function of TVM FFI, it does by calling this one. It has the prototype of a kernel that returns a status:
    ///
    /// ```c
    /// // refuse(mode: str, n: int64)
    /// int32_t refuse(const char* mode, size_t mode_size, int64_t n);
    /// // rate(currency: str) -> float64
    /// int32_t rate(const char* currency, size_t currency_size, double* result);
    /// ```
    ///
    /// The kernel returns a status that isn't 0 to its own caller. A kernel that is made before declares the function as an import
    /// ([`cranelift::declare_kernel`](super::cranelift::declare_kernel), `llvm::declare_kernel`). The body may pass scalars, texts and bytes
    /// on to functions that it calls, and no tensors.
    pub fn c_function(mut self, signature: &Signature, body: Kernel) -> Self
    where
        T: From<Kernel>,
    {
        self.functions.push(Wanted { signature: signature.clone(), target: body.into(), doc: None, is_c: true });
        self
    }

    /// Adds a C function, as [`c_function`](Self::c_function) does, that raises an error. In the message each `{}` stands for a parameter, in their order,
    /// as for [`Body::raise_with`](crate::Body::raise_with). The error ends in the signature's place, if it has one.
    pub fn raising(self, signature: &Signature, kind: impl Into<String>, message: impl Into<String>) -> Self
    where
        T: From<Kernel>,
    {
        let (kind, message) = (kind.into(), message.into());
        let body = move |b: &Body<'_>| b.raise_with(&kind, &message, b.params().collect::<Vec<_>>());
        self.c_function(signature, Kernel::body(body))
    }

    /// Adds a C function, as [`c_function`](Self::c_function) does, that calls a global function with its arguments, and returns its result, which is checked
    /// to be of the signature's type. An error of the callee gets the signature's place, if it has one, as a line of its backtrace.
    pub fn calling(self, signature: &Signature, global: impl Into<String>) -> Self
    where
        T: From<Kernel>,
    {
        let (global, result) = (global.into(), signature.ret().cloned());
        let body = move |b: &Body<'_>| {
            let call = b.call_global(&global, b.params().collect::<Vec<_>>());
            match &result {
                None => call.run(),
                Some(ty) if ty.as_scalar().is_some() => b.ret(call.returns(ty.clone()).value()),
                Some(ty) => b.ret_value(call.returns(ty.clone())),
            }
        };
        self.c_function(signature, Kernel::body(body))
    }

    fn wrappers_wanted(&self) -> impl Iterator<Item = &Wanted<T>> {
        self.functions.iter().filter(|wanted| !wanted.is_c)
    }

    /// Whether the module gets a copy of the runtime helpers.
    pub(super) fn defines_helpers(&self) -> bool {
        self.purpose != Purpose::Process
    }

    /// Whether whoever loads the code finds the functions that run first and last in lists of the object file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.purpose, Purpose::Library(_))
    }

    /// Whether `finish` has to know the functions that run last.
    pub(super) fn is_finished(&self) -> bool {
        self.purpose == Purpose::Process
    }

    /// The IR. `kernel` gives the kernel of a target: of a function of the caller's module it is the symbol that stands for it in the IR.
    pub(super) fn lower(
        &self,
        target: &Triple,
        mut kernel: impl FnMut(&Signature, String, &T) -> Result<Kernel, EmbedError>,
    ) -> Result<Lowered, EmbedError> {
        let endianness = target.endianness().unwrap_or(HOST_ENDIANNESS);
        let mut lowering = self.lowering(endianness)?;
        lowering.for_windows(target.binary_format == BinaryFormat::Coff);
        let mut launches = Vec::new();
        for Wanted { signature, target, doc, is_c } in &self.functions {
            let kernel = kernel(signature, import_name(signature), target)?;
            kernel.check_linked_elsewhere(signature)?;
            match is_c {
                true => lowering.add_c_function(signature, &kernel)?,
                false => {
                    lowering.add(signature, &kernel, doc.as_deref())?;
                    launches.push(lowering.launches().to_vec());
                }
            }
        }
        let signatures = self.wrappers_wanted().map(|function| &function.signature);
        if let Some(mistake) = lowering.check_calls(signatures).into_iter().next() {
            return Err(mistake.into());
        }
        let capabilities = lowering.capabilities();
        let ir = VerifiedModule::lowered(lowering.finish(), cfg!(debug_assertions)).map_err(CodegenError::from)?;
        let prefix = match &self.purpose {
            Purpose::Library(Some(prefix)) => prefix,
            _ => "",
        };
        let symbol = |wanted: &Wanted<T>| format!("{FUNCTION}{prefix}{}", wanted.signature.name());
        Ok(Lowered { ir, capabilities, symbols: self.wrappers_wanted().map(symbol).collect(), launches })
    }

    fn lowering(&self, endianness: Endianness) -> Result<AnyLowering, LowerError> {
        let Purpose::Library(prefix) = &self.purpose else {
            let mut wrappers = Lowering::for_endianness(RuntimeHelpers::Import, endianness);
            wrappers.define_launch_helpers();
            wrappers.threads_stay(self.is_finished());
            return Ok(AnyLowering::Wrappers(wrappers));
        };
        let mut library = match prefix {
            None => LibraryLowering::new(endianness),
            Some(prefix) => LibraryLowering::system(prefix, endianness)?,
        };
        library.import_helpers();
        if !self.metadata {
            library.without_metadata();
        }
        Ok(AnyLowering::Library(library))
    }

    /// The additions: a wrapper for each id, in order, with its launches.
    pub(super) fn added<F>(&self, ids: Vec<F>, launches: Vec<Vec<LaunchDescription>>, destructors: Vec<F>) -> Added<F> {
        let wrapper = |(wanted, (id, launches)): (&Wanted<T>, (F, _))| Wrapper {
            id,
            signature: wanted.signature.clone(),
            doc: wanted.doc.clone(),
            launches,
        };
        Added {
            functions: self.wrappers_wanted().zip(ids.into_iter().zip(launches)).map(wrapper).collect(),
            destructors,
        }
    }
}

/// The name that a function of the caller's module goes by as an import: nothing outside sees it.
fn import_name(signature: &Signature) -> String {
    format!("kernel of {}", signature.name())
}

/// Wrappers, or wrappers with all else that a library has.
enum AnyLowering {
    Wrappers(Lowering),
    Library(LibraryLowering),
}

impl AnyLowering {
    fn for_windows(&mut self, yes: bool) {
        match self {
            AnyLowering::Wrappers(lowering) => lowering.for_windows(yes),
            AnyLowering::Library(lowering) => lowering.for_windows(yes),
        }
    }

    fn add(&mut self, signature: &Signature, kernel: &Kernel, doc: Option<&str>) -> Result<(), LowerError> {
        match self {
            AnyLowering::Wrappers(lowering) => lowering.add(signature, kernel).map(drop),
            AnyLowering::Library(lowering) => lowering.add(signature, kernel, doc),
        }
    }

    fn add_c_function(&mut self, signature: &Signature, body: &Kernel) -> Result<(), LowerError> {
        match self {
            AnyLowering::Wrappers(lowering) => lowering.add_c_function(signature, body).map(drop),
            AnyLowering::Library(lowering) => lowering.add_c_function(signature, body),
        }
    }

    fn launches(&self) -> &[LaunchDescription] {
        match self {
            AnyLowering::Wrappers(lowering) => lowering.launches(),
            AnyLowering::Library(lowering) => lowering.launches(),
        }
    }

    fn check_calls<'s>(&self, signatures: impl IntoIterator<Item = &'s Signature>) -> Vec<LowerError> {
        match self {
            AnyLowering::Wrappers(lowering) => lowering.check_calls(signatures),
            AnyLowering::Library(lowering) => lowering.check_calls(signatures),
        }
    }

    fn capabilities(&self) -> Capabilities {
        match self {
            AnyLowering::Wrappers(lowering) => lowering.capabilities(),
            AnyLowering::Library(lowering) => lowering.capabilities(),
        }
    }

    fn finish(self) -> crate::ir::Module {
        match self {
            AnyLowering::Wrappers(lowering) => lowering.finish(),
            AnyLowering::Library(lowering) => lowering.finish(),
        }
    }
}

/// The sets of helpers that a module may have of each kind. The last has every capability.
const SETS: usize = 3;

/// The capabilities of the set that serves code with these needs. `has` tells whether the module has a function of that name, and `names` gives
/// the names of its functions. Where no set of the module serves the code, the next one has all that was asked for so far.
pub(super) fn choose(
    set: HelperSet,
    needed: Capabilities,
    has: impl Fn(&str) -> bool,
    names: impl FnOnce(&mut dyn FnMut(&str)),
) -> Capabilities {
    // Names are looked up in a table, and going through all of them takes the longer the more wrappers the module has.
    let known = |capabilities: &Capabilities| has(&set.local_name(set.symbols()[0], *capabilities));
    if let Some(capabilities) = [needed, Capabilities::ALL].into_iter().find(known) {
        return capabilities;
    }
    let mut sets = Vec::new();
    names(&mut |name| sets.extend(set.of_local_name(name)));
    match sets.iter().find(|capabilities| capabilities.covers(needed)) {
        Some(capabilities) => *capabilities,
        None if sets.len() + 1 >= SETS => Capabilities::ALL,
        None => sets.into_iter().fold(needed, Capabilities::union),
    }
}
