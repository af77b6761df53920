//! Native kernels that a library declares in your module, and the C functions that their code calls.

use super::error::EmbedError;
use super::library::Wrappers;
use crate::lower::{Kernel, KernelParam, KernelReturn, LowerError};
use crate::spec::{ParamType, Part, Signature, SignatureError, SourceLocation};

/// A kernel that a [`Wrappers`] has declared in your module. Your code generator defines its
/// [function](Self::function), whose C parameters have [keys](KernelParam::key).
///
/// The kernel's code raises errors and calls TVM FFI functions with C functions that `raise` and `call` declare, such
/// as [`cranelift::Native::raise`](super::cranelift::Native::raise). You state the types of the values, and the C
/// function takes them as a kernel of convention `flat` does. It returns a status. If that isn't 0, the kernel returns
/// it to its own caller. The location of the raise or call ends the error's backtrace; without one, it is the location
/// of the kernel's signature.
///
/// `F` is the backend's handle of a function.
#[derive(Debug)]
pub struct Native<'l, T, F> {
    library: &'l mut Wrappers<T>,
    signature: Signature,
    function: F,
    parameters: Vec<KernelParam>,
    /// The number of C functions so far.
    functions: usize,
}

/// The kernel of a function: it has the function's name and returns a status.
pub(super) fn kernel(signature: &Signature, passed_on: &[String]) -> Kernel {
    Kernel::symbol(signature.name()).returns(KernelReturn::Status).with_arguments(passed_on)
}

impl<'l, T: From<Kernel>, F: Copy> Native<'l, T, F> {
    /// Adds a function whose kernel was declared.
    pub(super) fn new(
        library: &'l mut Wrappers<T>,
        (signature, kernel): (&Signature, Kernel),
        function: F,
    ) -> Result<Self, LowerError> {
        let parameters = kernel.parameters(signature)?;
        library.push(signature, kernel.into());
        Ok(Native { library, signature: signature.clone(), function, parameters, functions: 0 })
    }

    /// The function to define in your module. It isn't visible outside of the module.
    pub fn function(&self) -> F {
        self.function
    }

    /// The C parameters of the function, in order. The status that it returns is an `int32_t`.
    pub fn parameters(&self) -> &[KernelParam] {
        &self.parameters
    }

    /// Adds a C function that raises an error.
    pub(super) fn add_raise(
        &mut self,
        location: Option<SourceLocation>,
        (kind, message): (&str, &str),
        values: impl IntoIterator<Item = ParamType>,
        declare: impl FnOnce(&Signature, &Kernel) -> Result<F, EmbedError>,
    ) -> Result<F, EmbedError> {
        let body = super::library::raise(kind, message);
        self.add(location, (values, None), body, declare)
    }

    /// Adds a C function that calls a global function.
    pub(super) fn add_call(
        &mut self,
        location: Option<SourceLocation>,
        global: &str,
        (args, result): (impl IntoIterator<Item = ParamType>, Option<ParamType>),
        declare: impl FnOnce(&Signature, &Kernel) -> Result<F, EmbedError>,
    ) -> Result<F, EmbedError> {
        let body = super::library::call(global, result.clone());
        self.add(location, (args, result), body, declare)
    }

    /// Adds a C function, and declares it. Without a location it gets the one of the kernel's signature.
    fn add(
        &mut self,
        location: Option<SourceLocation>,
        (params, result): (impl IntoIterator<Item = ParamType>, Option<ParamType>),
        body: Kernel,
        declare: impl FnOnce(&Signature, &Kernel) -> Result<F, EmbedError>,
    ) -> Result<F, EmbedError> {
        let name = format!("{}.{}", self.signature.name(), self.functions);
        let location = location.or_else(|| self.signature.location(Part::Signature).cloned());
        let signature = c_signature(name, location, params, result)?;
        let kernel = Kernel::symbol(self.library.c_symbol(&signature)).returns(KernelReturn::Status);
        let function = declare(&signature, &kernel)?;
        self.functions += 1;
        self.library.push_c(&signature, body);
        Ok(function)
    }
}

/// The signature of a C function, whose parameters have no names of their own.
fn c_signature(
    name: String,
    location: Option<SourceLocation>,
    params: impl IntoIterator<Item = ParamType>,
    result: Option<ParamType>,
) -> Result<Signature, SignatureError> {
    let builder = Signature::builder(name);
    let params = params.into_iter().enumerate();
    let builder = params.fold(builder, |builder, (number, ty)| builder.param(format!("x{number}"), ty));
    let signature = result.into_iter().fold(builder, |builder, ty| builder.returns(ty)).build()?;
    signature.with_locations(location.map(|location| (Part::Signature, location)))
}
