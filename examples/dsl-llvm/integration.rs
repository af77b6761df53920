//! All that is in this compiler because of TVM FFI: types become signatures, kernels functions, and the functions
//! outside calls and errors.

// -- both modes --

use super::{codegen, dsl::program::*, host::Result};
use inkwell::module::Module;
use std::mem::{offset_of, size_of};
use tvm_ffi_codegen::embed::{llvm, llvm::Wrappers};
use tvm_ffi_codegen::runtime::{self, abi::TVMFFIAny};
use tvm_ffi_codegen::{KernelParam, ParamType, Signature, artifact, spec};

/// Adds the kernels to a module, and the functions outside that they call.
fn add<'ctx>(module: &Module<'ctx>, program: &Program, mut library: Wrappers<'ctx>) -> Result<llvm::Added> {
    for kernel in &program.kernels {
        let location = |line| spec::SourceLocation::new(&program.file, line, &kernel.head.name);
        let signature = signature(&kernel.head)?.with_location(spec::Part::Signature, location(kernel.head.line))?;
        let mut native = library.native(module, &signature.with_doc(&kernel.doc), &kernel.passed_on)?;
        let mut outside = Vec::new();
        for Outside { params, result, effect, line } in &kernel.outside {
            let params = params.iter().map(param_type).collect::<Result<Vec<_>>>()?;
            outside.push(match effect {
                Effect::Raise { kind, message } => native.raise(module, location(*line), kind, message, params)?,
                Effect::Call { function } => {
                    let result = result.as_ref().map(param_type).transpose()?;
                    native.call(module, location(*line), function, params, result)?
                }
            });
        }
        let keys = native.parameters().iter().map(KernelParam::key);
        codegen::define(module, kernel, native.function(), keys, &outside, CELLS)?;
    }
    Ok(library.add_to(module)?)
}

/// The elements of a list are values of any type, with a payload each.
const CELLS: codegen::Cells = codegen::Cells { size: size_of::<TVMFFIAny>(), value: offset_of!(TVMFFIAny, v) };

fn signature(head: &Head) -> Result<Signature> {
    let params: Vec<_> = head.params.iter().map(|param| format!("{}: {}", param.name, text(&param.ty))).collect();
    let result = head.result.as_ref().map_or("None".to_owned(), text);
    let limits = if head.constraints.is_empty() { String::new() } else { format!("where {}", list(&head.constraints)) };
    Ok(format!("{}({}) -> {result} {limits}", head.name, params.join(", ")).parse()?)
}

fn param_type(ty: &Type) -> Result<ParamType> {
    Ok(text(ty).parse()?)
}

fn text(ty: &Type) -> String {
    match ty {
        Type::Scalar(scalar) => scalar.name().to_owned(),
        Type::Str => "str".to_owned(),
        Type::Whole => "Any".to_owned(),
        Type::List(element) => format!("Array[{}]", element.name()),
        Type::Tuple(items) => format!("Tuple[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Type::Optional(inner) => format!("Optional[{}]", text(inner)),
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
pub fn compile(unit: &codegen::Unit<'_>, program: &Program) -> Result<runtime::Module> {
    let added = add(&unit.module, program, Wrappers::in_process())?;
    unit.optimise()?;
    // SAFETY: the front end keeps each access within its tensor or list, and the library has declared each function.
    Ok(unsafe { llvm::finish(&unit.module, &unit.machine, [added], ())? })
}

// -- ahead of time --

/// Writes the kernels as a shared library, with metadata and docs.
pub fn write_library(unit: &codegen::Unit<'_>, program: &Program, path: &std::path::Path) -> Result {
    add(&unit.module, program, Wrappers::new())?;
    Ok(artifact::Linker::new(artifact::Triple::host()).object(unit.object()?).link(path)?)
}
