//! Why an `inkwell::module::Module` is refused.

use inkwell::module::Module;
use inkwell::targets::{ByteOrdering, TargetData, TargetMachine};
use inkwell::types::{BasicMetadataTypeEnum, FunctionType};
use inkwell::values::{AsValueRef, FunctionValue};
use target_lexicon::{Architecture, Triple};

use crate::backend::ON_GPU;
use crate::backend::llvm::{NotPlain, c_type, extension, features_of};
use crate::embed::refusal::{self, Expected};
use crate::embed::{EmbedError, HostProblem};
use crate::ir::FuncSig;
use crate::lower::{Kernel, LowerError, PrototypeProblem};
use crate::spec::Signature;

/// The prefixes of GPU architectures in LLVM's triples.
const GPUS: [&str; 8] = ["nvptx", "amdgcn", "r600", "spirv", "spir", "amdil", "hsail", "dxil"];

/// Checks that wrappers run on the module's machine. A module without a triple is for the host.
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

/// Why a machine with the other byte order is refused.
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

/// Checks that code of a module, compiled for a target machine, runs in this process.
pub(super) fn check_host(module: &Module<'_>, machine: &TargetMachine) -> Result<(), EmbedError> {
    let here = Triple::host();
    let [of_module, of_machine] =
        [module.get_triple(), machine.get_triple()].map(|triple| triple.as_str().to_string_lossy().into_owned());
    for text in [of_module, of_machine] {
        // a module without a triple is for the machine for which it is compiled
        if text.is_empty() {
            continue;
        }
        let is_here =
            |triple: Triple| triple.architecture == here.architecture && triple.binary_format == here.binary_format;
        if !text.parse().is_ok_and(is_here) {
            let problem = HostProblem::OtherHost { host: here.to_string() };
            return Err(EmbedError::OtherMachine { target: text, problem });
        }
    }
    let wanted = features_of(machine);
    let known = TargetMachine::get_host_cpu_features().to_string();
    let lacks = |feature: &&str| {
        feature.strip_prefix('+').is_some_and(|name| known.split(',').any(|k| k.strip_prefix('-') == Some(name)))
    };
    let missing: Vec<String> = wanted.split(',').filter(lacks).map(str::to_owned).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(EmbedError::OtherMachine {
            target: machine.get_triple().as_str().to_string_lossy().into_owned(),
            problem: HostProblem::MissingFeatures { features: missing },
        }),
    }
}

/// Checks a kernel that is a symbol, if the module defines or declares it.
pub(super) fn check_linked(module: &Module<'_>, signature: &Signature, kernel: &Kernel) -> Result<(), LowerError> {
    // lowering refuses a name with a NUL
    let symbol = kernel.linked_symbol().filter(|symbol| !symbol.contains('\0'));
    match symbol.and_then(|symbol| module.get_function(symbol)) {
        Some(function) => check_function(module, signature, kernel, function),
        None => Ok(()),
    }
}

/// Checks that a function of the module is called as the kernel is.
pub(super) fn check_function<'ctx>(
    module: &Module<'ctx>,
    signature: &Signature,
    kernel: &Kernel,
    function: FunctionValue<'ctx>,
) -> Result<(), LowerError> {
    // the backend refuses a function of another module
    let name = function.get_name().to_string_lossy();
    let is_here = module.get_function(&name).is_some_and(|known| known.as_value_ref() == function.as_value_ref());
    if !is_here && !module.get_functions().any(|known| known.as_value_ref() == function.as_value_ref()) {
        return Ok(());
    }
    let expected = Expected::new(signature, kernel, &name)?;
    if let Some(problem) = NotPlain::of(function) {
        let reason = problem.in_words(|index| expected.param(index));
        return Err(expected.refuse(PrototypeProblem::NotPlain { reason }));
    }
    if expected.takes_structs() {
        let (found, ours) = (function.get_type(), c_type(module, &expected.sig));
        let shown = |ty: FunctionType<'_>| ty.print_to_string().to_string();
        return if found == ours { Ok(()) } else { Err(expected.structs(&shown(found), &shown(ours))) };
    }
    compare(module, function, &expected)
}

fn compare<'ctx>(
    module: &Module<'ctx>,
    function: FunctionValue<'ctx>,
    expected: &Expected<'_>,
) -> Result<(), LowerError> {
    let found = function.get_type();
    let ours = c_type(module, &expected.sig);
    let params = found.get_param_types();
    let fits = |sig: &FuncSig| c_type(module, sig) == found;
    if params.len() != expected.sig.params.len() {
        return Err(expected.count(params.len(), fits));
    }
    for (index, (found, ours)) in params.into_iter().zip(ours.get_param_types()).enumerate() {
        let param = expected.param(index);
        if found != ours {
            let advice = match found {
                BasicMetadataTypeEnum::PointerType(_) if matches!(ours, BasicMetadataTypeEnum::PointerType(_)) => {
                    "; cast it to the other address space inside of the kernel (`addrspacecast`)"
                }
                _ => "",
            };
            let [found, passed] = [found, ours].map(|ty| ty.print_to_string().to_string());
            return Err(expected.refuse(PrototypeProblem::ParamType { param, found, passed, advice }));
        }
        if let Some(refusal) = expected.extension(index, extension(function, index)) {
            return Err(refusal);
        }
    }
    if found.get_return_type() != ours.get_return_type() {
        return Err(expected.result(result(found), result(ours), fits));
    }
    Ok(())
}

fn result(ty: FunctionType<'_>) -> String {
    ty.get_return_type().map_or_else(|| "nothing".to_owned(), |ty| format!("`{}`", ty.print_to_string().to_string()))
}
