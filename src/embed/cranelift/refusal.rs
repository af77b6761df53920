//! Why a `cranelift_module::Module` is refused.

use cranelift_codegen::ir::{ArgumentExtension, ArgumentPurpose, Signature as ClifSignature, Type};
use std::collections::BTreeSet;
use std::sync::OnceLock;

use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_module::{FuncId, FuncOrDataId, Module};

use target_lexicon::Triple;

use crate::backend::cranelift::{IsaOptions, c_signature, host_isa};
use crate::embed::refusal::{self, Expected};
use crate::embed::{EmbedError, HostProblem};
use crate::ir::{Extension, FuncSig};
use crate::lower::{Kernel, LowerError, PrototypeProblem};
use crate::spec::Signature;

/// Checks that wrappers run on the module's machine.
pub(super) fn check_machine(isa: &dyn TargetIsa) -> Result<(), EmbedError> {
    if isa.pointer_bits() == 64 { Ok(()) } else { Err(refusal::machine(isa.triple().to_string(), refusal::NARROW)) }
}

/// Checks that code for a target runs in this process.
pub(super) fn check_host(isa: &dyn TargetIsa) -> Result<(), EmbedError> {
    static HOST: OnceLock<Option<OwnedTargetIsa>> = OnceLock::new();
    let refuse = |problem: HostProblem| EmbedError::OtherMachine { target: isa.triple().to_string(), problem };
    let triple = isa.triple();
    let here = Triple::host();
    if triple.architecture != here.architecture {
        return Err(refuse(HostProblem::OtherHost { host: here.to_string() }));
    }
    let [theirs, ours] = [triple, &here].map(CallConv::triple_default);
    if theirs != ours {
        let [module, expected] = [theirs, ours].map(|convention| convention.to_string());
        return Err(refuse(HostProblem::OtherConvention { module, host: here.to_string(), expected }));
    }
    let Some(host) = HOST.get_or_init(|| host_isa(&IsaOptions::default()).ok()) else {
        return Err(refuse(HostProblem::NoCodeGenerator));
    };
    let features = |isa: &dyn TargetIsa| -> BTreeSet<&'static str> {
        let on = isa.isa_flags().into_iter().filter(|flag| flag.as_bool() == Some(true));
        on.map(|flag| flag.name).filter(|name| name.starts_with("has_")).collect()
    };
    let missing: Vec<String> = features(isa).difference(&features(&**host)).map(ToString::to_string).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(refuse(HostProblem::MissingFeatures { features: missing })),
    }
}

/// Checks a kernel that is a symbol, if the module defines or declares it.
pub(super) fn check_linked<M: Module + ?Sized>(
    module: &M,
    signature: &Signature,
    kernel: &Kernel,
) -> Result<(), LowerError> {
    match kernel.linked_symbol().and_then(|symbol| module.get_name(symbol)) {
        Some(FuncOrDataId::Func(id)) => check_function(module, signature, kernel, id),
        Some(FuncOrDataId::Data(_)) | None => Ok(()),
    }
}

/// Checks that a function of the module is called as the kernel is.
pub(super) fn check_function<M: Module + ?Sized>(
    module: &M,
    signature: &Signature,
    kernel: &Kernel,
    id: FuncId,
) -> Result<(), LowerError> {
    // the backend refuses an id of another module
    if id.as_u32() as usize >= module.declarations().get_functions().size_hint().0 {
        return Ok(());
    }
    let declared = module.declarations().get_function_decl(id);
    let name = declared.linkage_name(id).into_owned();
    compare(module.isa(), &Expected::new(signature, kernel, &name)?, &declared.signature)
}

fn compare(isa: &dyn TargetIsa, expected: &Expected<'_>, found: &ClifSignature) -> Result<(), LowerError> {
    let ours = c_signature(isa, &expected.sig);
    if found.call_conv != ours.call_conv {
        let [found, ours] = [found, &ours].map(|sig| sig.call_conv.to_string());
        return Err(expected.refuse(PrototypeProblem::CallingConvention { found, expected: ours }));
    }
    if expected.takes_structs() {
        return match plain(found) == plain(&ours) {
            true => Ok(()),
            false => Err(expected.structs(&found.to_string(), &ours.to_string())),
        };
    }
    // a result in memory comes first and isn't part of the prototype
    let hidden = ours.params.len() - expected.sig.params.len();
    for (index, param) in found.params.iter().enumerate().skip(hidden) {
        if param.purpose != ArgumentPurpose::Normal {
            let (param, purpose) = (expected.param(index - hidden), param.purpose.to_string());
            return Err(expected.refuse(PrototypeProblem::SpecialParam { param, purpose }));
        }
    }
    let fits = |sig: &FuncSig| plain(&c_signature(isa, sig)) == plain(found);
    if found.params.len() != ours.params.len() {
        return Err(expected.count(found.params.len().saturating_sub(hidden), fits));
    }
    for (index, (found, ours)) in found.params.iter().zip(&ours.params).enumerate().skip(hidden) {
        if found.value_type != ours.value_type {
            let [found, passed] = [found, ours].map(|param| param.value_type.to_string());
            let param = expected.param(index - hidden);
            return Err(expected.refuse(PrototypeProblem::ParamType { param, found, passed, advice: "" }));
        }
        let wanted = match found.extension {
            ArgumentExtension::None => None,
            ArgumentExtension::Sext => Some(Extension::Signed),
            ArgumentExtension::Uext => Some(Extension::Unsigned),
        };
        if let Some(refusal) = expected.extension(index - hidden, wanted) {
            return Err(refusal);
        }
    }
    if plain(found) == plain(&ours) { Ok(()) } else { Err(expected.result(result(found), result(&ours), fits)) }
}

/// The types of parameters and results.
fn plain(sig: &ClifSignature) -> [Vec<Type>; 2] {
    [&sig.params, &sig.returns].map(|all| all.iter().map(|param| param.value_type).collect())
}

fn result(sig: &ClifSignature) -> String {
    let returns: Vec<String> = sig.returns.iter().map(|ret| format!("`{}`", ret.value_type)).collect();
    if returns.is_empty() { "nothing".to_owned() } else { returns.join(", ") }
}
