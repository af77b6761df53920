//! All that is in this compiler because of TVM FFI: types become signatures, kernels functions, and the functions
//! outside calls and errors.

// -- both modes --

use super::{codegen, dsl::program::*, host::Result};
use cranelift_module::{FuncId, Linkage, Module};
use tvm_ffi_codegen::embed::{Added, cranelift, cranelift::Wrappers};
use tvm_ffi_codegen::{KernelReturn, Signature, artifact, runtime, spec};

/// Adds the kernels to a module, and the functions outside that they call.
fn add(module: &mut impl Module, program: &Program, mut library: Wrappers) -> Result<Added<FuncId>> {
    let native = |head: &Head| tvm_ffi_codegen::Kernel::symbol(&head.name).returns(KernelReturn::Status);
    for kernel in &program.kernels {
        let mut outside = Vec::new();
        for Outside { head, effect } in &kernel.outside {
            let signature = signature(program, kernel, head)?;
            outside.push(cranelift::declare_kernel(module, Linkage::Import, &signature, &native(head))?);
            library = match effect {
                Effect::Raise { kind, message } => library.raising(&signature, kind, message),
                Effect::Call { function } => library.calling(&signature, function),
            };
        }
        let (signature, native) = (signature(program, kernel, &kernel.head)?, native(&kernel.head));
        let id = cranelift::declare_kernel(module, Linkage::Local, &signature, &native)?;
        codegen::define(module, kernel, id, native.parameters(&signature)?.iter().map(|p| p.key()), &outside)?;
        library = library.function(&signature.with_doc(&kernel.doc), native);
    }
    Ok(library.add_to(module)?)
}

fn signature(program: &Program, kernel: &Kernel, head: &Head) -> Result<Signature> {
    let params: Vec<_> = head.params.iter().map(|param| format!("{}: {}", param.name, type_text(&param.ty))).collect();
    let result = head.result.as_ref().map_or("None".to_owned(), type_text);
    let limits = if head.constraints.is_empty() { String::new() } else { format!("where {}", list(&head.constraints)) };
    let signature: Signature = format!("{}({}) -> {result} {limits}", head.name, params.join(", ")).parse()?;
    Ok(signature
        .with_location(spec::Part::Signature, spec::SourceLocation::new(&program.file, head.line, &kernel.head.name))?)
}

fn type_text(ty: &Type) -> String {
    match ty {
        Type::Scalar(scalar) => scalar.name().to_owned(),
        Type::Str => "str".to_owned(),
        Type::Optional(tensor) => format!("Optional[{}]", type_text(&Type::Tensor(tensor.clone()))),
        Type::Tensor(Tensor { element, shape, strides }) => {
            let strides: String = strides.iter().map(|strides| format!(", strides=[{}]", list(strides))).collect();
            format!("Tensor([{}], {}{strides})", list(shape), element.name())
        }
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

// -- in this process --

/// The kernels as functions of this process.
pub fn compile(program: &Program) -> Result<runtime::Module> {
    let mut module = cranelift::jit_module(cranelift::host_isa()?)?;
    let added = add(&mut module, program, Wrappers::in_process())?;
    // SAFETY: the front end keeps each access within its tensor, and the code generator takes its prototypes from the
    // signatures.
    Ok(unsafe { cranelift::finish(module, [added], ())? })
}

// -- ahead of time --

/// Writes the kernels as a shared library, with metadata and docs.
pub fn write_library(program: &Program, path: &std::path::Path) -> Result {
    let mut module = codegen::object_module()?;
    add(&mut module, program, Wrappers::new())?;
    Ok(artifact::Linker::new(artifact::Triple::host()).object(module.finish().emit()?).link(path)?)
}
