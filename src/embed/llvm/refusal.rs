//! The reasons for which an `inkwell::module::Module` is refused.

use inkwell::module::Module;
use inkwell::targets::{ByteOrdering, TargetData};
use inkwell::types::{BasicMetadataTypeEnum, FunctionType};
use inkwell::values::{AsValueRef, FunctionValue};
use target_lexicon::Architecture;

use crate::backend::ON_GPU;
use crate::backend::llvm::{NotPlain, extension, function_type};
use crate::embed::EmbedError;
use crate::embed::refusal::{self, Expected};
use crate::ir::FuncSig;
use crate::lower::Kernel;
use crate::spec::Signature;

/// The beginnings of GPUs' architectures in LLVM's triples.
const GPUS: [&str; 8] = ["nvptx", "amdgcn", "r600", "spirv", "spir", "amdil", "hsail", "dxil"];

/// Whether wrappers run on the module's machine. A module without a triple is for this one.
pub(super) fn check_machine(module: &Module<'_>) -> Result<(), EmbedError> {
    let triple = module.get_triple().as_str().to_string_lossy().into_owned();
    if let Some(problem) = machine_problem(&triple) {
        return Err(refusal::machine(triple, problem));
    }
    let layout = module.get_data_layout().as_str().to_string_lossy().into_owned();
    let data = TargetData::create(&layout);
    let stated = |problem: &str| refusal::machine(if triple.is_empty() { &layout } else { &triple }, problem);
    if data.get_pointer_byte_size(None) != 8 {
        return Err(stated(&format!("by the data layout {}", refusal::NARROW)));
    }
    match data.get_byte_ordering() {
        ByteOrdering::LittleEndian => Ok(()),
        ByteOrdering::BigEndian => Err(stated(&format!("by the data layout {BIG_ENDIAN}"))),
    }
}

/// The reason why a machine of the other byte order is refused.
const BIG_ENDIAN: &str = "it is big-endian, and LLVM is used for little-endian machines";

fn machine_problem(triple: &str) -> Option<String> {
    let name = triple.split('-').next().unwrap_or_default();
    if GPUS.iter().any(|gpu| name.starts_with(gpu)) {
        return Some(ON_GPU.to_owned());
    }
    match name.parse::<Architecture>() {
        _ if triple.is_empty() => None,
        Ok(Architecture::X86_64 | Architecture::X86_64h | Architecture::Aarch64(_) | Architecture::Riscv64(_)) => None,
        Ok(other) if other.pointer_width().is_ok_and(|width| width.bits() != 64) => Some(refusal::NARROW.to_owned()),
        Ok(other) if other.endianness() == Ok(target_lexicon::Endianness::Big) => Some(BIG_ENDIAN.to_owned()),
        Ok(_) | Err(()) => Some("wrappers are for x86-64, AArch64 and 64-bit RISC-V".to_owned()),
    }
}

/// Checks a kernel that is a symbol, if the module has it.
pub(super) fn check_linked(module: &Module<'_>, signature: &Signature, kernel: &Kernel) -> Result<(), EmbedError> {
    // a name with a NUL is lowering's to refuse
    let symbol = kernel.linked_symbol().filter(|symbol| !symbol.contains('\0'));
    match symbol.and_then(|symbol| module.get_function(symbol)) {
        Some(function) => check_function(module, signature, kernel, function),
        None => Ok(()),
    }
}

/// Whether a function of the module is called as the kernel is.
pub(super) fn check_function<'ctx>(
    module: &Module<'ctx>,
    signature: &Signature,
    kernel: &Kernel,
    function: FunctionValue<'ctx>,
) -> Result<(), EmbedError> {
    // a function of another module is the backend's to refuse
    let name = function.get_name().to_string_lossy();
    let is_here = module.get_function(&name).is_some_and(|known| known.as_value_ref() == function.as_value_ref());
    if !is_here && !module.get_functions().any(|known| known.as_value_ref() == function.as_value_ref()) {
        return Ok(());
    }
    let expected = Expected::new(signature, kernel, &name)?;
    if let Some(problem) = NotPlain::of(function) {
        return Err(expected.refuse(problem.in_words(|index| expected.param(index))));
    }
    compare(function, &expected)
}

fn compare(function: FunctionValue<'_>, expected: &Expected<'_>) -> Result<(), EmbedError> {
    let found = function.get_type();
    let ours = function_type(found.get_context(), &expected.sig);
    let params = found.get_param_types();
    let fits = |sig: &FuncSig| function_type(found.get_context(), sig) == found;
    if params.len() != expected.sig.params.len() {
        return Err(expected.count(params.len(), fits));
    }
    for (index, (found, ours)) in params.into_iter().zip(ours.get_param_types()).enumerate() {
        let param = expected.param(index);
        if found != ours {
            let hint = match found {
                BasicMetadataTypeEnum::PointerType(_) if matches!(ours, BasicMetadataTypeEnum::PointerType(_)) => {
                    "; cast it to the other address space inside of the kernel (`addrspacecast`)"
                }
                _ => "",
            };
            let [found, ours] = [found, ours].map(|ty| ty.print_to_string().to_string());
            return Err(expected.refuse(format!("has {param} as `{found}`, and it is passed as `{ours}`{hint}")));
        }
        if let Some(refusal) = expected.extension(index, extension(function, index)) {
            return Err(refusal);
        }
    }
    if found.get_return_type() != ours.get_return_type() {
        return Err(expected.result(&result(found), &result(ours), fits));
    }
    Ok(())
}

fn result(ty: FunctionType<'_>) -> String {
    ty.get_return_type().map_or_else(|| "nothing".to_owned(), |ty| format!("`{}`", ty.print_to_string().to_string()))
}
