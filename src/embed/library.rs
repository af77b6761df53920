//! Wrappers to be added to a caller's module, for any backend: the functions to add, and their IR.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use target_lexicon::Triple;

use super::error::EmbedError;
use crate::backend::verified;
use crate::ir::VerifiedModule;
use crate::lower::{
    self, Body, Capabilities, HelperSet, Kernel, LaunchDescription, LowerError, Lowered, LoweredFunction, Purpose,
    Recipe, RecipeFunction, RuntimeHelpers,
};
use crate::spec::{ParamType, Signature};

/// Wrappers for your module, and everything else that the module gets. `T` is the backend's kind of target:
/// [`cranelift::Wrappers`](super::cranelift::Wrappers) or `llvm::Wrappers`.
///
/// | built by | what is added | the runtime helpers | afterwards |
/// | --- | --- | --- | --- |
/// | [`in_process`](Self::in_process) | wrappers | this process's, imported | `finish` turns it into a runtime module |
/// | [`new`](Self::new), [`system`](Self::system) | wrappers, metadata, docs, the library's context, in a system library its registration | defined once in the module | the module becomes an object file |
///
/// ```
/// # #[cfg(feature = "cranelift")] {
/// use tvm_ffi_codegen::embed::cranelift::{self, Wrappers};
/// use tvm_ffi_codegen::{Kernel, Signature};
///
/// let double: Signature = "double(n: int64) -> int64".parse()?;
/// let kernel = Kernel::body(|b| b.ret(b.arg("n") * 2)); // or a function of the module
/// let mut module = cranelift::jit_module(cranelift::host_isa()?)?;
/// let added = Wrappers::in_process().function(&double, kernel).add_to(&mut module)?;
/// // SAFETY: the body reads no memory.
/// let module = unsafe { cranelift::finish(module, [added], ())? };
/// let double = module.get_function("double")?.ok_or("no function")?;
/// assert_eq!(double.call((21,))?.cast::<i64>()?, 42);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is added before `add_to`"]
pub struct Wrappers<T> {
    functions: Vec<Wanted<T>>,
    purpose: Purpose,
    metadata: bool,
    carries_modules: bool,
    globals: Vec<(String, String)>,
}

/// A function to be added.
#[derive(Clone, Debug)]
struct Wanted<T> {
    signature: Signature,
    target: T,
    /// Whether it is a C function instead of a wrapper.
    is_c: bool,
}

/// The wrappers that were added to a module, with the information that `finish` needs. `F` is the backend's handle of
/// a function.
#[derive(Clone, Debug)]
pub struct Added<F> {
    pub(super) functions: Vec<Wrapper<F>>,
    /// The functions that run when the code is unloaded.
    pub(super) destructors: Vec<F>,
    /// The symbols that the wrappers import, with the functions that call them.
    pub(super) callers: Callers,
}

/// A wrapper in a module.
#[derive(Clone, Debug)]
pub(super) struct Wrapper<F> {
    pub(super) id: F,
    pub(super) signature: Signature,
    #[cfg_attr(feature = "external-runtime", allow(dead_code))] // modules can't be made there
    pub(super) launches: Vec<LaunchDescription>,
}

impl<F> Added<F> {
    /// The wrappers, in the order in which you added them.
    pub fn functions(&self) -> impl Iterator<Item = &F> {
        self.functions.iter().map(|wrapper| &wrapper.id)
    }
}

/// Wrappers lowered to IR.
pub(super) struct LoweredWrappers {
    pub(super) ir: VerifiedModule,
    /// The capabilities of the runtime helpers that the IR imports.
    pub(super) capabilities: Capabilities,
    /// The wrappers.
    pub(super) functions: Vec<LoweredFunction>,
    /// The symbols that the IR imports, with the functions that call them.
    pub(super) callers: Callers,
}

/// Symbols with the functions that call them.
pub(super) type Callers = BTreeMap<String, BTreeSet<String>>;

impl<T> Default for Wrappers<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Wrappers<T> {
    fn of(purpose: Purpose) -> Self {
        Wrappers { functions: Vec::new(), purpose, metadata: true, carries_modules: false, globals: Vec::new() }
    }

    /// Only wrappers, with their own helpers.
    pub(super) fn self_contained() -> Self {
        Self::of(Purpose::Wrappers)
    }

    /// For a module that becomes the object file of a library for hosts to load. Add all wrappers of the library
    /// together, to a separate object or one with the kernels, like
    /// [`LibraryBuilder`](crate::artifact::LibraryBuilder).
    pub fn new() -> Self {
        Self::of(Purpose::Library)
    }

    /// As [`new`](Self::new), for a system library with this prefix. It is linked into a program and registers its
    /// functions when the program starts
    /// ([`LibraryBuilder::system_library`](crate::artifact::LibraryBuilder::system_library)).
    pub fn system(prefix: impl Into<String>) -> Self {
        Self::of(Purpose::SystemLibrary(prefix.into()))
    }

    /// For a module that runs in this process. It imports the functions of
    /// [`runtime_symbols`](super::runtime_symbols). These include the runtime helpers, which all such modules share
    /// with all engines.
    pub fn in_process() -> Self {
        Self::of(Purpose::Process)
    }

    /// Sets whether the functions of a library carry metadata; on by default. The results of `finish` always have it.
    pub fn metadata(mut self, yes: bool) -> Self {
        self.metadata = yes;
        self
    }

    /// States that the program also contains modules of this [system library](Self::system), like
    /// [`LibraryBuilder::carries_modules`](crate::artifact::LibraryBuilder::carries_modules).
    pub fn carries_modules(mut self) -> Self {
        self.carries_modules = true;
        self
    }

    /// Registers a function of the library as a global function while the library is loaded, as
    /// [`LibraryBuilder::register_global`](crate::artifact::LibraryBuilder::register_global) does. Only an object file
    /// has a loader that does this. For a module that [runs in this process](Self::in_process), register the function
    /// that you get from it with [`set_global`](tvm_ffi_runtime::registry::set_global).
    pub fn register_global(mut self, function: impl Into<String>, global: impl Into<String>) -> Self {
        self.globals.push((function.into(), global.into()));
        self
    }

    /// Adds a function. Hosts show the signature's [documentation](Signature::doc).
    pub fn function(mut self, signature: &Signature, target: impl Into<T>) -> Self {
        self.push(signature, target.into());
        self
    }

    pub(super) fn push(&mut self, signature: &Signature, target: T) {
        self.functions.push(Wanted { signature: signature.clone(), target, is_c: false });
    }

    pub(super) fn push_c(&mut self, signature: &Signature, body: Kernel)
    where
        T: From<Kernel>,
    {
        self.functions.push(Wanted { signature: signature.clone(), target: body.into(), is_c: true });
    }

    /// Adds a [body](Kernel::body) as a C function with the signature's name, for kernels of the module. A kernel
    /// calls this function to do what it can't do directly, such as raising an error or calling a TVM FFI function.
    /// The C function has the prototype of a kernel that returns a status:
    ///
    /// ```c
    /// // refuse(mode: str, n: int64)
    /// int32_t refuse(const char* mode, size_t mode_size, int64_t n);
    /// // rate(currency: str) -> float64
    /// int32_t rate(const char* currency, size_t currency_size, double* result);
    /// ```
    ///
    /// The kernel must return a nonzero status to its own caller. A kernel that is generated earlier declares the
    /// function as an import ([`cranelift::declare_kernel`](super::cranelift::declare_kernel),
    /// `llvm::declare_kernel`). In a [system library](Self::system) the function's symbol begins with the library's
    /// prefix ([`c_symbol`](Self::c_symbol)), so several libraries can be linked into a program.
    ///
    /// The body may pass scalars, strings, bytes, objects and values of type `Any` on to functions that it calls. A C
    /// argument for a tensor is only an address of elements. To pass a tensor on, give the C function a parameter of
    /// type `Any`, a `const TVMFFIAny*`; a kernel gets it for an argument of its own with [`Kernel::with_arguments`].
    /// The callee receives the argument as the kernel's caller passed it.
    pub fn c_function(mut self, signature: &Signature, body: Kernel) -> Self
    where
        T: From<Kernel>,
    {
        self.push_c(signature, body);
        self
    }

    /// The symbol with which kernels call a [C function](Self::c_function) of the library: the prefix of a system
    /// library, if any, followed by the signature's name.
    pub fn c_symbol(&self, signature: &Signature) -> String {
        format!("{}{}", self.purpose.prefix(), signature.name())
    }

    /// Adds a [C function](Self::c_function) that raises an error. Each `{}` in the message stands for a parameter,
    /// in order, as for [`Body::raise`](crate::Body::raise). The last line of the error's backtrace is the
    /// signature's place, if it has one.
    pub fn c_raise(self, signature: &Signature, kind: impl Into<String>, message: impl Into<String>) -> Self
    where
        T: From<Kernel>,
    {
        self.c_function(signature, raise(kind, message))
    }

    /// Adds a [C function](Self::c_function) that calls a global function with its arguments. It checks that the
    /// result has the signature's type, and returns it. The signature's place, if it has one, is added to the
    /// backtrace of a callee's error.
    pub fn c_call(self, signature: &Signature, global: impl Into<String>) -> Self
    where
        T: From<Kernel>,
    {
        self.c_function(signature, call(global, signature.ret().cloned()))
    }

    /// Whether the module gets a copy of the runtime helpers.
    pub(super) fn defines_helpers(&self) -> bool {
        self.purpose != Purpose::Process
    }

    /// Whether the loader finds initialisers and finalisers in lists of the object file.
    pub(super) fn is_file(&self) -> bool {
        self.purpose.is_library()
    }

    /// Whether `finish` has to know the functions that run at unload.
    pub(super) fn is_finished(&self) -> bool {
        self.purpose == Purpose::Process
    }

    /// Lowers to IR. `kernel` returns the kernel of a target. For a function of the caller's module it is the symbol
    /// that represents the function in the IR.
    pub(super) fn lower(
        &self,
        target: &Triple,
        mut kernel: impl FnMut(&Signature, String, &T) -> Result<Kernel, LowerError>,
    ) -> Result<LoweredWrappers, EmbedError> {
        let mut function = |Wanted { signature, target, is_c }: &'_ Wanted<T>| {
            let kernel = kernel(signature, import_name(signature), target);
            let kernel =
                kernel.and_then(|kernel| kernel.check_linked_elsewhere(signature).map(|()| Cow::Owned(kernel)));
            RecipeFunction { signature: Cow::Owned(signature.clone()), kernel, is_c: *is_c }
        };
        let recipe = Recipe {
            target: target.clone(),
            purpose: self.purpose.clone(),
            helpers: RuntimeHelpers::DefineForLaunches,
            metadata: self.metadata,
            carries_modules: self.carries_modules,
            functions: self.functions.iter().map(&mut function).collect(),
            globals: self.globals.clone(),
        };
        let Lowered { module, mut functions, capabilities, .. } = recipe.lower().map_err(EmbedError::Functions)?;
        let callers = lower::callers(&module, &functions);
        let mut wanted = self.functions.iter();
        functions.retain(|_| wanted.next().is_some_and(|wanted| !wanted.is_c));
        let ir = verified(module, cfg!(debug_assertions))?;
        Ok(LoweredWrappers { ir, capabilities, functions, callers })
    }

    /// The added wrappers, one per id, in order.
    pub(super) fn added<F>(
        &self,
        functions: impl IntoIterator<Item = (F, LoweredFunction)>,
        callers: Callers,
        destructors: Vec<F>,
    ) -> Added<F> {
        let wrapper = |(wanted, (id, lowered)): (&Wanted<T>, (F, LoweredFunction))| Wrapper {
            id,
            signature: wanted.signature.clone(),
            launches: lowered.launches,
        };
        let wanted = self.functions.iter().filter(|wanted| !wanted.is_c);
        Added { functions: wanted.zip(functions).map(wrapper).collect(), destructors, callers }
    }
}

/// The body of a C function that raises an error, whose message prints the parameters.
pub(super) fn raise(kind: impl Into<String>, message: impl Into<String>) -> Kernel {
    let (kind, message) = (kind.into(), message.into());
    Kernel::body(move |b: &Body<'_>| b.raise(&kind, &message, b.params().collect::<Vec<_>>()))
}

/// The body of a C function that calls a global function with the parameters, and returns its result.
pub(super) fn call(global: impl Into<String>, result: Option<ParamType>) -> Kernel {
    let global = global.into();
    Kernel::body(move |b: &Body<'_>| {
        let call = b.call_global(&global, b.params().collect::<Vec<_>>());
        match &result {
            None => call.run(),
            Some(ty) if ty.as_scalar().is_some() => b.ret(call.returns(ty.clone()).value()),
            Some(ty) => b.ret_value(call.returns(ty.clone())),
        }
    })
}

/// The name under which the IR imports a function of the caller's module. It isn't visible outside.
fn import_name(signature: &Signature) -> String {
    format!("kernel of {}", signature.name())
}

/// The maximum number of helper sets of each kind per module. The last one has every capability.
const SETS: usize = 3;

/// Chooses the capabilities of the helper set for code with these needs. `has` returns whether the module has a
/// function with a given name, and `names` returns the names of its functions. If no set of the module serves the
/// code, the next set has all capabilities requested so far.
pub(super) fn choose(
    set: HelperSet,
    needed: Capabilities,
    has: impl Fn(&str) -> bool,
    names: impl FnOnce(&mut dyn FnMut(&str)),
) -> Capabilities {
    // A name is looked up in a table, while iterating over all names takes longer with each wrapper in the module.
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
