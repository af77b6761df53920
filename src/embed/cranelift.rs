//! Adds wrappers to your own `cranelift_module::Module`.

mod declare;
mod finish;
mod refusal;
mod targets;

use cranelift_module::{FuncId, FuncOrDataId, Module};

pub use self::declare::{declare_kernel, kernel_signature};
#[cfg(not(feature = "external-runtime"))]
pub use self::finish::finish;
pub use self::finish::{finish_functions, host_isa, jit_builder, jit_module};
use self::targets::ModuleTarget as Machine;
use super::error::{EmbedError, undefined};
use super::library::{self, Added, LoweredWrappers};
use crate::backend::cranelift::{Bindings, CompiledModule, list_functions};
use crate::backend::{CodegenError, local_symbol, name_of_local};
use crate::lower::{Capabilities, HelperSet, Kernel, KernelReturn, LoweredFunction};
use crate::spec::Signature;

/// The function that a wrapper in your module calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum KernelSource {
    /// A function of that module with convention `flat`. `None` means the return that [`Kernel::symbol`] assumes.
    Function(FuncId, Option<KernelReturn>),
    /// Any other kernel. A [symbol](Kernel::symbol) is looked up in the module, and imported if the module doesn't
    /// have it.
    Kernel(Kernel),
}

impl From<FuncId> for KernelSource {
    fn from(id: FuncId) -> Self {
        KernelSource::Function(id, None)
    }
}

impl From<Kernel> for KernelSource {
    fn from(kernel: Kernel) -> Self {
        KernelSource::Kernel(kernel)
    }
}

/// Wrappers for a `cranelift_module::Module`, and everything else that the module gets.
pub type Wrappers = super::Wrappers<KernelSource>;

/// Adds a wrapper to your module as an exported function [`Signature::symbol`]. The first wrapper also adds the
/// runtime helpers that it uses; see [`Wrappers`] for other options.
///
/// When the module is finalized or linked, it must be able to resolve the functions of the C API that the wrapper
/// imports. They are in [`runtime_symbols`](super::runtime_symbols).
///
/// # Errors
/// The kernel doesn't fit the signature, its prototype in the module isn't that of the convention, or a name is
/// taken. The module is then unchanged.
pub fn add_wrapper<M: Module + ?Sized>(
    module: &mut M,
    signature: &Signature,
    target: impl Into<KernelSource>,
) -> Result<FuncId, EmbedError> {
    let ids = add_wrappers(module, [(signature, target.into())])?;
    ids.first().copied().ok_or_else(|| undefined(&signature.symbol()))
}

/// Adds several wrappers as [`add_wrapper`] adds one. They share the strings of their errors.
///
/// # Errors
/// As [`add_wrapper`]. On an error nothing is added.
pub fn add_wrappers<'a, M: Module + ?Sized>(
    module: &mut M,
    wrappers: impl IntoIterator<Item = (&'a Signature, KernelSource)>,
) -> Result<Vec<FuncId>, EmbedError> {
    let add = |library: Wrappers, (signature, target)| library.function(signature, target);
    let added = wrappers.into_iter().fold(Wrappers::wrappers(), add).add_to(module)?;
    Ok(added.functions().copied().collect())
}

impl Wrappers {
    /// Adds the wrappers and everything that belongs to them to your module.
    ///
    /// # Errors
    /// As [`add_wrapper`], and for a library as [`LibraryBuilder::emit`](crate::artifact::LibraryBuilder::emit). On
    /// an error nothing is added.
    pub fn add_to<M: Module + ?Sized>(&self, module: &mut M) -> Result<Added<FuncId>, EmbedError> {
        refusal::check_machine(module.isa())?;
        let machine = Machine::of(module.isa())?;
        let mut bound = Vec::new();
        let triple = module.isa().triple();
        let LoweredWrappers { ir, capabilities, functions, callers } =
            self.lower(triple, |signature, name, target| match target {
                KernelSource::Kernel(kernel) => {
                    refusal::check_linked(module, signature, kernel)?;
                    Ok(kernel.clone())
                }
                KernelSource::Function(id, returns) => {
                    let kernel = returns.iter().copied().fold(Kernel::symbol(&name), Kernel::returns);
                    refusal::check_function(module, signature, &kernel, *id)?;
                    bound.push((name, *id));
                    Ok(kernel)
                }
            })?;
        let bindings = bound.into_iter().fold(Bindings::new(), |bindings, (name, id)| bindings.bind(name, id));
        let compiled = machine.compile(&ir)?;
        compiled.check(module, &bindings).map_err(CodegenError::from)?;
        let bindings = match self.defines_helpers() {
            true => bind_helpers(module, &machine, &compiled, capabilities, bindings)?,
            false => bindings,
        };
        let placed = compiled.place(module, &bindings, false).map_err(CodegenError::from)?;
        if self.is_file() {
            list_functions(module, &placed.constructors, &placed.destructors).map_err(CodegenError::from)?;
        }
        let with_id = |function: LoweredFunction| {
            let id = placed.defined.function(&function.symbol).ok_or_else(|| undefined(&function.symbol))?;
            Ok((id, function))
        };
        let functions = functions.into_iter().map(with_id).collect::<Result<Vec<_>, EmbedError>>()?;
        Ok(self.added(functions, callers, if self.is_finished() { placed.destructors } else { Vec::new() }))
    }
}

/// Binds the helpers that code imports to those of the module. Helpers are added if the module has none that serve
/// the code.
fn bind_helpers<M: Module + ?Sized>(
    module: &mut M,
    machine: &Machine,
    code: &CompiledModule,
    needed: Capabilities,
    mut bindings: Bindings,
) -> Result<Bindings, EmbedError> {
    for set in HelperSet::ALL {
        if !code.imports().any(|import| set.symbols().contains(&import.name.as_str())) {
            continue;
        }
        // local functions have names that backtraces omit
        let function = |module: &M, name: &str| match module.get_name(&local_symbol(name)) {
            Some(FuncOrDataId::Func(id)) => Some(id),
            _ => None,
        };
        let capabilities = library::choose(
            set,
            needed,
            |name| function(module, name).is_some(),
            |found| {
                let functions = module.declarations().get_functions();
                functions.filter_map(|(_, known)| name_of_local(known.name.as_deref()?)).for_each(found);
            },
        );
        let first = set.local_name(set.symbols()[0], capabilities);
        if function(module, &first).is_none() {
            machine.helpers(set, capabilities)?.add_named(module).map_err(CodegenError::from)?;
        }
        for symbol in set.symbols() {
            let name = set.local_name(symbol, capabilities);
            let id = function(module, &name).ok_or_else(|| undefined(&name))?;
            bindings = bindings.bind(*symbol, id);
        }
    }
    Ok(bindings)
}

#[cfg(test)]
mod tests;
