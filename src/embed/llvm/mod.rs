//! Adds wrappers to your own `inkwell::module::Module` (inkwell 0.11).

mod finish;

use std::collections::HashMap;

use inkwell::module::{Linkage, Module};
use inkwell::values::FunctionValue;

use target_lexicon::Triple;

#[cfg(not(feature = "external-runtime"))]
pub use self::finish::finish;
pub use self::finish::finish_functions;
use super::error::{EmbedError, undefined};
use super::library::{self, LoweredWrappers};
use super::native;
use crate::backend::llvm::Destructors;
use crate::backend::{CodegenError, llvm, local_symbol, name_of_local, verified};
use crate::ir::VerifiedModule;
use crate::lower::{Capabilities, HelperSet, Kernel, KernelReturn, local_helpers_module};
use crate::spec::{ParamType, Signature, SourceLocation};

mod declare;
mod refusal;

pub use crate::backend::llvm::{Error, load, version};
#[cfg(feature = "llvm22-1-loaded")]
pub use crate::backend::llvm::{FileProblem, UnusableFile};
pub use declare::{declare_kernel, kernel_type};

/// The function that a wrapper in your module calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum KernelSource<'ctx> {
    /// A function of that module with convention `flat`. `None` means the return that [`Kernel::symbol`] assumes.
    /// LLVM may inline the function into the wrapper.
    Function(FunctionValue<'ctx>, Option<KernelReturn>),
    /// Any other kernel. A [symbol](Kernel::symbol) is looked up in the module, and declared if the module doesn't
    /// have it.
    Kernel(Kernel),
}

impl<'ctx> From<FunctionValue<'ctx>> for KernelSource<'ctx> {
    fn from(function: FunctionValue<'ctx>) -> Self {
        KernelSource::Function(function, None)
    }
}

impl From<Kernel> for KernelSource<'_> {
    fn from(kernel: Kernel) -> Self {
        KernelSource::Kernel(kernel)
    }
}

/// Wrappers for an `inkwell::module::Module`, and everything else that the module gets.
pub type Wrappers<'ctx> = super::Wrappers<KernelSource<'ctx>>;

/// The wrappers that were added to an `inkwell::module::Module`, each with its symbol.
pub type Added = super::Added<String>;

/// A kernel that a [`Wrappers`] has declared in an `inkwell::module::Module`.
pub type Native<'l, 'ctx> = super::Native<'l, KernelSource<'ctx>, FunctionValue<'ctx>>;

/// Adds a wrapper to your module as an exported function [`Signature::symbol`]. The first wrapper also adds the
/// runtime helpers that it uses; see [`Wrappers`] for other options.
///
/// When the module is linked, it must be able to resolve the functions of the C API that the wrapper declares. They are
/// in [`runtime_symbols`](super::runtime_symbols). The wrapper isn't optimised yet, so your passes should process it.
/// They don't change the helpers and the slow path, which rarely run (`optnone`).
///
/// # Errors
/// The kernel doesn't fit the signature, its type isn't that of the convention, or a name is taken. The module is
/// then unchanged.
pub fn add_wrapper<'ctx>(
    module: &Module<'ctx>,
    signature: &Signature,
    target: impl Into<KernelSource<'ctx>>,
) -> Result<FunctionValue<'ctx>, EmbedError> {
    let functions = add_wrappers(module, [(signature, target.into())])?;
    functions.first().copied().ok_or_else(|| undefined(&signature.symbol()))
}

/// Adds several wrappers as [`add_wrapper`] adds one. They share the strings of their errors.
///
/// # Errors
/// As [`add_wrapper`]. On an error nothing is added.
pub fn add_wrappers<'ctx, 'a>(
    module: &Module<'ctx>,
    wrappers: impl IntoIterator<Item = (&'a Signature, KernelSource<'ctx>)>,
) -> Result<Vec<FunctionValue<'ctx>>, EmbedError> {
    let add = |library: Wrappers<'ctx>, (signature, target)| library.function(signature, target);
    let added = wrappers.into_iter().fold(Wrappers::self_contained(), add).add_to(module)?;
    added.functions().map(|name| module.get_function(name).ok_or_else(|| undefined(name))).collect()
}

impl<'ctx> Wrappers<'ctx> {
    /// Adds a function and declares its kernel in your module: a function with the signature's name that isn't visible
    /// outside. It has convention `flat` and returns a status. The kernel also gets the caller's own arguments for the
    /// parameters in `passed_on` ([`Kernel::with_arguments`]), to pass them on. Define it with your code generator.
    ///
    /// # Errors
    /// The signature has no argument of a name in `passed_on`, or the module has the name already.
    pub fn native(
        &mut self,
        module: &Module<'ctx>,
        signature: &Signature,
        passed_on: &[String],
    ) -> Result<Native<'_, 'ctx>, EmbedError> {
        let kernel = native::kernel(signature, passed_on);
        let function = declare_kernel(module, Some(Linkage::Internal), signature, &kernel)?;
        Ok(Native::new(self, (signature, kernel), function)?)
    }

    /// Adds the wrappers and everything that belongs to them to your module. [`Added`] refers to them with their
    /// symbols.
    ///
    /// # Errors
    /// As [`add_wrapper`], and for a library as [`LibraryBuilder::emit`](crate::artifact::LibraryBuilder::emit). On
    /// an error nothing is added.
    pub fn add_to(&self, module: &Module<'ctx>) -> Result<Added, EmbedError> {
        refusal::check_machine(module)?;
        let triple = module.get_triple();
        let mut target: Triple = triple.as_str().to_string_lossy().parse().unwrap_or(Triple::host());
        if target.endianness() != Ok(llvm::ENDIANNESS) {
            target = Triple::host();
        }
        let mut bindings = HashMap::new();
        let LoweredWrappers { ir, capabilities, functions, callers } =
            self.lower(&target, |signature, name, target| match target {
                KernelSource::Kernel(kernel) => {
                    refusal::check_linked(module, signature, kernel)?;
                    Ok(kernel.clone())
                }
                KernelSource::Function(function, returns) => {
                    let kernel = returns.iter().copied().fold(Kernel::symbol(&name), Kernel::returns);
                    refusal::check_function(module, signature, &kernel, *function)?;
                    bindings.insert(name, *function);
                    Ok(kernel)
                }
            })?;
        llvm::check(&ir, module, &bindings).map_err(CodegenError::from)?;
        if self.defines_helpers() {
            bind_helpers(module, &ir, capabilities, &mut bindings)?;
        }
        let destructors = match (self.is_file(), self.is_finished()) {
            (true, _) => Destructors::Listed(target.binary_format),
            (false, true) => Destructors::Exported,
            (false, false) => Destructors::LeftOut,
        };
        let destructors = llvm::add_to(&ir, module, &bindings, destructors).map_err(CodegenError::from)?;
        Ok(self.added(functions.into_iter().map(|function| (function.symbol.clone(), function)), callers, destructors))
    }
}

impl<'ctx> Native<'_, 'ctx> {
    /// Declares a C function that raises an error. It takes the values that the message prints, one for each `{}`.
    ///
    /// # Errors
    /// A type isn't valid, or the module has the C function's name already. [`Wrappers::add_to`] reports a message with
    /// another number of values.
    pub fn raise(
        &mut self,
        module: &Module<'ctx>,
        location: impl Into<Option<SourceLocation>>,
        kind: &str,
        message: &str,
        values: impl IntoIterator<Item = ParamType>,
    ) -> Result<FunctionValue<'ctx>, EmbedError> {
        let declare = |signature: &Signature, kernel: &Kernel| declare_kernel(module, None, signature, kernel);
        self.add_raise(location.into(), (kind, message), values, declare)
    }

    /// Declares a C function that calls a global function, and checks that the result has the stated type. The address
    /// for the result is the last parameter. An argument of the kernel that is passed on has the type `Any`.
    ///
    /// # Errors
    /// A type isn't valid, or the module has the C function's name already. [`Wrappers::add_to`] reports types that
    /// can't be passed.
    pub fn call(
        &mut self,
        module: &Module<'ctx>,
        location: impl Into<Option<SourceLocation>>,
        global: &str,
        args: impl IntoIterator<Item = ParamType>,
        result: Option<ParamType>,
    ) -> Result<FunctionValue<'ctx>, EmbedError> {
        let declare = |signature: &Signature, kernel: &Kernel| declare_kernel(module, None, signature, kernel);
        self.add_call(location.into(), global, (args, result), declare)
    }
}

/// Binds the helpers that code imports to those of the module. Helpers are added if the module has none that serve
/// the code.
fn bind_helpers<'ctx>(
    module: &Module<'ctx>,
    ir: &VerifiedModule,
    needed: Capabilities,
    bindings: &mut HashMap<String, FunctionValue<'ctx>>,
) -> Result<(), EmbedError> {
    // local functions have names that backtraces omit
    let local = |name: &str| module.get_function(&local_symbol(name));
    for set in HelperSet::ALL {
        if !ir.imports().any(|(_, import)| set.symbols().contains(&import.name.as_str())) {
            continue;
        }
        let capabilities = library::choose(
            set,
            needed,
            |name| local(name).is_some(),
            |found| {
                module.get_functions().for_each(|function| {
                    let name = function.get_name().to_string_lossy();
                    found(name_of_local(&name).unwrap_or(&name));
                });
            },
        );
        if local(&set.local_name(set.symbols()[0], capabilities)).is_none() {
            let helpers = local_helpers_module(set, capabilities, llvm::ENDIANNESS);
            let helpers = verified(helpers, cfg!(debug_assertions))?;
            llvm::add_to(&helpers, module, &HashMap::new(), Destructors::LeftOut).map_err(CodegenError::from)?;
        }
        for symbol in set.symbols() {
            let name = set.local_name(symbol, capabilities);
            bindings.insert((*symbol).to_owned(), local(&name).ok_or_else(|| undefined(&name))?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
