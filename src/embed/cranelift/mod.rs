//! Adds wrappers to your own `cranelift_module::Module`.

mod declare;
mod finish;
mod refusal;
mod targets;

use cranelift_module::{FuncId, FuncOrDataId, Linkage, Module};

pub use self::declare::{declare_kernel, kernel_signature};
#[cfg(not(feature = "external-runtime"))]
pub use self::finish::finish;
pub use self::finish::{finish_functions, host_isa, jit_builder, jit_module};
use self::targets::ModuleTarget as Machine;
use super::error::{EmbedError, undefined};
use super::library::{self, LoweredWrappers};
use super::native;
pub use crate::backend::cranelift::Error;
use crate::backend::cranelift::{Bindings, CompiledModule, list_functions};
use crate::backend::{CodegenError, local_symbol, name_of_local};
use crate::lower::{Capabilities, HelperSet, Kernel, KernelReturn, LoweredFunction};
use crate::spec::{ParamType, Signature, SourceLocation};

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

/// The wrappers that were added to a `cranelift_module::Module`, each with its id.
pub type Added = super::Added<FuncId>;

/// A kernel that a [`Wrappers`] has declared in a `cranelift_module::Module`.
pub type Native<'l> = super::Native<'l, KernelSource, FuncId>;

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
    let added = wrappers.into_iter().fold(Wrappers::self_contained(), add).add_to(module)?;
    Ok(added.functions().copied().collect())
}

impl Wrappers {
    /// Adds a function and declares its kernel in your module: a function with the signature's name that isn't visible
    /// outside. It has convention `flat` and returns a status. The kernel also gets the caller's own arguments for the
    /// parameters in `passed_on` ([`Kernel::with_arguments`]), to pass them on. Define it with your code generator.
    ///
    /// ```
    /// use cranelift_codegen::Context;
    /// use cranelift_codegen::ir::InstBuilder;
    /// use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
    /// use cranelift_module::Module;
    /// use tvm_ffi_codegen::embed::cranelift::{self, Wrappers};
    /// use tvm_ffi_codegen::ScalarType::Int64;
    ///
    /// let mut module = cranelift::jit_module(cranelift::host_isa()?)?;
    /// let mut library = Wrappers::in_process();
    /// let signature = "refuse(n: int64)".parse()?;
    /// let mut kernel = library.native(&mut module, &signature, &[])?;
    /// assert_eq!(kernel.parameters()[0].key(), "n.value");
    /// let raise = kernel.raise(&mut module, None, "ValueError", "got {}", [Int64.into()])?;
    ///
    /// // int32_t refuse(int64_t n) { return raise(n); }
    /// let id = kernel.function();
    /// let mut context = Context::new();
    /// context.func.signature = module.declarations().get_function_decl(id).signature.clone();
    /// let raise = module.declare_func_in_func(raise, &mut context.func);
    /// let mut frontend = FunctionBuilderContext::new();
    /// let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    /// let entry = b.create_block();
    /// b.append_block_params_for_function_params(entry);
    /// b.switch_to_block(entry);
    /// b.seal_block(entry);
    /// let n = b.block_params(entry)[0];
    /// let call = b.ins().call(raise, &[n]);
    /// let status = b.inst_results(call)[0];
    /// b.ins().return_(&[status]);
    /// b.finalize(module.target_config());
    /// module.define_function(id, &mut context)?;
    ///
    /// let added = library.add_to(&mut module)?;
    /// // SAFETY: the kernel reads no memory.
    /// let functions = unsafe { cranelift::finish_functions(module, [added], ())? };
    /// assert_eq!(functions[0].call((3,)).unwrap_err().to_string(), "ValueError: got 3");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The signature has no argument of a name in `passed_on`, or the module has the name with another signature.
    pub fn native<M: Module + ?Sized>(
        &mut self,
        module: &mut M,
        signature: &Signature,
        passed_on: &[String],
    ) -> Result<Native<'_>, EmbedError> {
        let kernel = native::kernel(signature, passed_on);
        let function = declare_kernel(module, Linkage::Local, signature, &kernel)?;
        Ok(Native::new(self, (signature, kernel), function)?)
    }

    /// Adds the wrappers and everything that belongs to them to your module.
    ///
    /// # Errors
    /// As [`add_wrapper`], and for a library as [`LibraryBuilder::emit`](crate::artifact::LibraryBuilder::emit). On
    /// an error nothing is added.
    pub fn add_to<M: Module + ?Sized>(&self, module: &mut M) -> Result<Added, EmbedError> {
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

impl Native<'_> {
    /// Declares a C function that raises an error. It takes the values that the message prints, one for each `{}`.
    ///
    /// # Errors
    /// A type isn't valid, or the module has the C function's name already. [`Wrappers::add_to`] reports a message with
    /// another number of values.
    pub fn raise<M: Module + ?Sized>(
        &mut self,
        module: &mut M,
        location: impl Into<Option<SourceLocation>>,
        kind: &str,
        message: &str,
        values: impl IntoIterator<Item = ParamType>,
    ) -> Result<FuncId, EmbedError> {
        let declare =
            |signature: &Signature, kernel: &Kernel| declare_kernel(module, Linkage::Import, signature, kernel);
        self.add_raise(location.into(), (kind, message), values, declare)
    }

    /// Declares a C function that calls a global function, and checks that the result has the stated type. The address
    /// for the result is the last parameter. An argument of the kernel that is passed on has the type `Any`.
    ///
    /// # Errors
    /// A type isn't valid, or the module has the C function's name already. [`Wrappers::add_to`] reports types that
    /// can't be passed.
    pub fn call<M: Module + ?Sized>(
        &mut self,
        module: &mut M,
        location: impl Into<Option<SourceLocation>>,
        global: &str,
        args: impl IntoIterator<Item = ParamType>,
        result: Option<ParamType>,
    ) -> Result<FuncId, EmbedError> {
        let declare =
            |signature: &Signature, kernel: &Kernel| declare_kernel(module, Linkage::Import, signature, kernel);
        self.add_call(location.into(), global, (args, result), declare)
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
