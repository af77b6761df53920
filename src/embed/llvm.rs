//! Wrappers in an `inkwell::module::Module` (inkwell 0.11) of the caller's.

mod finish;

use std::collections::HashMap;

use inkwell::module::Module;
use inkwell::values::FunctionValue;

use target_lexicon::Triple;

#[cfg(not(feature = "external-runtime"))]
pub use self::finish::finish;
pub use self::finish::finish_functions;
use super::library::{self, Added, Lowered};
use super::{EmbedError, undefined};
use crate::backend::llvm::Destructors;
use crate::backend::{CodegenError, llvm, local_symbol, name_of_local};
use crate::ir::VerifiedModule;
use crate::lower::{Capabilities, HelperSet, Kernel, KernelReturn, local_helpers_module};
use crate::spec::Signature;

mod declare;
mod refusal;

pub use crate::backend::llvm::load;
pub use declare::{declare_kernel, kernel_type};

/// The function that a wrapper in a caller's module calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target<'ctx> {
    /// A function of that module, by convention `flat`; `None` for the return that [`Kernel::symbol`] assumes. LLVM may
    /// inline it into the wrapper.
    Function(FunctionValue<'ctx>, Option<KernelReturn>),
    /// Any other kernel. A [symbol](Kernel::symbol) is looked up in the module, and declared if it isn't there.
    Kernel(Kernel),
}

impl<'ctx> From<FunctionValue<'ctx>> for Target<'ctx> {
    fn from(function: FunctionValue<'ctx>) -> Self {
        Target::Function(function, None)
    }
}

impl From<Kernel> for Target<'_> {
    fn from(kernel: Kernel) -> Self {
        Target::Kernel(kernel)
    }
}

/// Wrappers for an `inkwell::module::Module`, and what it gets beside them.
pub type Library<'ctx> = super::Library<Target<'ctx>>;

/// Adds a wrapper to the caller's module, as an exported function [`Signature::symbol`]. The module gets a copy of the runtime helpers, as far as its
/// wrappers use them, with the first wrapper; see [`Library`] for other ways.
///
/// The module has to know the functions of the C API that the wrapper declares when it is linked:
/// [`runtime_symbols`](super::runtime_symbols) has them. The wrapper is left unoptimised; the caller's passes go over it. They leave the helpers and the
/// slow path as they are, which hardly ever run (`optnone`).
///
/// # Errors
/// The kernel doesn't fit the signature, or its type isn't that of the convention; a name is taken. The module is then as it
/// was.
pub fn add_wrapper<'ctx>(
    module: &Module<'ctx>,
    signature: &Signature,
    target: impl Into<Target<'ctx>>,
) -> Result<FunctionValue<'ctx>, EmbedError> {
    let functions = add_wrappers(module, [(signature, target.into())])?;
    functions.first().copied().ok_or_else(|| undefined(&signature.symbol()))
}

/// Adds several wrappers, as [`add_wrapper`] does one. They share the text of their errors.
///
/// # Errors
/// As [`add_wrapper`]; it's all or nothing.
pub fn add_wrappers<'ctx, 'a>(
    module: &Module<'ctx>,
    wrappers: impl IntoIterator<Item = (&'a Signature, Target<'ctx>)>,
) -> Result<Vec<FunctionValue<'ctx>>, EmbedError> {
    let add = |library: Library<'ctx>, (signature, target)| library.function(signature, target);
    let added = wrappers.into_iter().fold(Library::wrappers(), add).add_to(module)?;
    added.functions().map(|name| module.get_function(name).ok_or_else(|| undefined(name))).collect()
}

impl<'ctx> Library<'ctx> {
    /// Adds the wrappers and what belongs to them to the caller's module. [`Added`] has them by their symbols.
    ///
    /// # Errors
    /// As [`add_wrapper`], and for a library as [`LibraryBuilder::emit`](crate::artifact::LibraryBuilder::emit); it's all or nothing.
    pub fn add_to(&self, module: &Module<'ctx>) -> Result<Added<String>, EmbedError> {
        refusal::check_machine(module)?;
        let triple = module.get_triple();
        let mut target: Triple = triple.as_str().to_string_lossy().parse().unwrap_or(Triple::host());
        if target.endianness() != Ok(llvm::ENDIANNESS) {
            target = Triple::host();
        }
        let mut bindings = HashMap::new();
        let Lowered { ir, capabilities, symbols, launches } =
            self.lower(&target, |signature, name, target| match target {
                Target::Kernel(kernel) => {
                    refusal::check_linked(module, signature, kernel)?;
                    Ok(kernel.clone())
                }
                Target::Function(function, returns) => {
                    let kernel = returns.iter().copied().fold(Kernel::symbol(&name), Kernel::returning);
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
        Ok(self.added(symbols, launches, destructors))
    }
}

/// Binds the helpers that code imports to those of the module, which are added where it has none that serve the code.
fn bind_helpers<'ctx>(
    module: &Module<'ctx>,
    ir: &VerifiedModule,
    needed: Capabilities,
    bindings: &mut HashMap<String, FunctionValue<'ctx>>,
) -> Result<(), EmbedError> {
    // local functions have names that backtraces leave out
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
            let helpers = VerifiedModule::lowered(helpers, cfg!(debug_assertions)).map_err(CodegenError::from)?;
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
