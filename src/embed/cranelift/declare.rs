//! Declares kernels as functions of a `cranelift_module::Module`, from signatures.

use cranelift_codegen::ir::Signature as ClifSignature;
use cranelift_codegen::isa::TargetIsa;
use cranelift_module::{FuncId, Linkage, Module};

use crate::backend::{CodegenError, cranelift};
use crate::embed::{EmbedError, refusal};
use crate::lower::Kernel;
use crate::spec::Signature;

/// The Cranelift signature of a kernel: its parameters in the order of [`Kernel::parameters`], with the target's C
/// calling convention and the extensions of narrow integers. Bodies and check-only kernels get the signature that a
/// native kernel would have.
///
/// If the target's C ABI returns structs through memory, as on s390x, a returned `DLDataType` or `DLDevice` adds a
/// first parameter with purpose `StructReturn`. On RISC-V, C passes floats after the eighth as integers, so these
/// parameters have the types `I32` and `I64`.
///
/// # Errors
/// The kernel doesn't fit the signature, or takes a struct by value ([`CType::StructOf`](crate::CType::StructOf)).
pub fn kernel_signature(
    isa: &dyn TargetIsa,
    signature: &Signature,
    kernel: &Kernel,
) -> Result<ClifSignature, EmbedError> {
    Ok(cranelift::c_signature(isa, &refusal::prototype(signature, kernel)?))
}

/// Declares a kernel in your module with [`kernel_signature`], under the kernel's symbol, or the function's name if
/// the kernel has no symbol.
///
#[cfg_attr(feature = "cranelift", doc = "```")]
#[cfg_attr(not(feature = "cranelift"), doc = "```text")]
/// use cranelift_jit::{JITBuilder, JITModule};
/// use cranelift_module::{Linkage, Module};
/// use tvm_ffi_codegen::{Kernel, Signature, embed};
///
/// let mut module = JITModule::new(JITBuilder::new(cranelift_module::default_libcall_names())?);
/// let signature: Signature = "scale(x: Tensor([n], float32), f: float64)".parse()?;
/// let kernel = Kernel::symbol("scale");
/// let id = embed::cranelift::declare_kernel(&mut module, Linkage::Local, &signature, &kernel)?;
/// // its body comes from the compiler, which finds each value by `kernel.parameters(&signature)`
/// assert_eq!(module.declarations().get_function_decl(id).signature.params.len(), 3);
/// embed::cranelift::add_wrapper(&mut module, &signature, kernel)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`kernel_signature`], or the module has this name with another signature.
pub fn declare_kernel<M: Module + ?Sized>(
    module: &mut M,
    linkage: Linkage,
    signature: &Signature,
    kernel: &Kernel,
) -> Result<FuncId, EmbedError> {
    let prototype = kernel_signature(module.isa(), signature, kernel)?;
    let name = kernel.linked_symbol().unwrap_or(signature.name());
    let declared = module.declare_function(name, linkage, &prototype);
    Ok(declared.map_err(|error| CodegenError::from(cranelift::Error::from(error)))?)
}
