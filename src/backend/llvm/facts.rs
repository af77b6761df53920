//! Facts beyond the code itself, as LLVM attributes and metadata.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::ContextRef;
use inkwell::values::{CallSiteValue, FunctionValue, InstructionValue, MetadataValue};

use target_lexicon::BinaryFormat;

use super::types::Types;
use crate::ir::{Extension, FuncDecl, FuncSig, Hint, PointerFacts};

/// The weight of a branch's likely successor: clang's value for `__builtin_expect`.
const LIKELY: u64 = 2000;

/// Attributes and metadata of one LLVM context.
pub(super) struct Facts<'ctx> {
    context: ContextRef<'ctx>,
    types: Types<'ctx>,
    likely: MetadataValue<'ctx>,
    unlikely: MetadataValue<'ctx>,
    empty: MetadataValue<'ctx>,
    prof: u32,
    invariant_load: u32,
    signext: Attribute,
    zeroext: Attribute,
    nobuiltin: Attribute,
    probes_inline: bool,
}

fn enum_attribute(context: ContextRef<'_>, name: &str, value: u64) -> Attribute {
    context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value)
}

impl<'ctx> Facts<'ctx> {
    pub(super) fn new(context: ContextRef<'ctx>, types: &Types<'ctx>) -> Self {
        let weights = |then: u64, otherwise: u64| {
            let name = context.metadata_string("branch_weights");
            let weight = |w| types.i32.const_int(w, false).into();
            context.metadata_node(&[name.into(), weight(then), weight(otherwise)])
        };
        Facts {
            context,
            types: *types,
            likely: weights(LIKELY, 1),
            unlikely: weights(1, LIKELY),
            empty: context.metadata_node(&[]),
            prof: context.get_kind_id("prof"),
            invariant_load: context.get_kind_id("invariant.load"),
            signext: enum_attribute(context, "signext", 0),
            zeroext: enum_attribute(context, "zeroext", 0),
            nobuiltin: enum_attribute(context, "nobuiltin", 0),
            probes_inline: true,
        }
    }

    /// Adapts the attributes to an object file of this format.
    pub(super) fn for_format(self, format: BinaryFormat) -> Self {
        Facts { probes_inline: format != BinaryFormat::Coff, ..self }
    }

    /// Adds the attributes of every function that this library defines.
    pub(super) fn define(&self, function: FunctionValue<'ctx>, decl: &FuncDecl) {
        self.declare(function, decl);
        let here = AttributeLoc::Function;
        // An unwinder may pass through (a debugger's, or one of a kernel called from here), but this code never throws.
        function.add_attribute(here, enum_attribute(self.context, "nounwind", 0));
        function.add_attribute(here, enum_attribute(self.context, "uwtable", 1));
        // A frame larger than the guard page must not step over it. The probe is inline because no library provides the
        // function. On Windows LLVM calls `__chkstk` of the C library instead.
        if self.probes_inline {
            function.add_attribute(here, self.context.create_string_attribute("probe-stack", "inline-asm"));
        }
    }

    /// Adds the attributes that callers of a function need.
    pub(super) fn declare(&self, function: FunctionValue<'ctx>, decl: &FuncDecl) {
        self.prototype(function, &decl.signature);
        for (index, facts) in (0u32..).zip(&decl.param_facts) {
            self.pointer(facts, |attribute| function.add_attribute(AttributeLoc::Param(index), attribute));
        }
        if decl.cold {
            for name in ["cold", "minsize", "optsize", "noinline"] {
                function.add_attribute(AttributeLoc::Function, enum_attribute(self.context, name, 0));
            }
        }
    }

    /// Adds the part of a prototype that types don't express: the extensions of narrow integers.
    pub(super) fn prototype(&self, function: FunctionValue<'ctx>, sig: &FuncSig) {
        self.extensions(sig, |at, attribute| function.add_attribute(at, attribute));
    }

    fn pointer(&self, facts: &PointerFacts, mut add: impl FnMut(Attribute)) {
        let mut add = |name, value| add(enum_attribute(self.context, name, value));
        for (holds, name) in [(facts.nonnull, "nonnull"), (facts.noalias, "noalias"), (facts.readonly, "readonly")] {
            if holds {
                add(name, 0);
            }
        }
        if facts.dereferenceable > 0 {
            add("dereferenceable", u64::from(facts.dereferenceable));
        }
        if facts.align > 1 {
            add("align", u64::from(facts.align));
        }
    }

    /// Adds extensions to a call, since the C ABI of some targets relies on them. `nobuiltin` keeps LLVM from assuming
    /// what a function does by its name: a kernel may be called `exp`, and the C library defines what `pow` returns.
    pub(super) fn call(&self, call: CallSiteValue<'ctx>, sig: &FuncSig) {
        call.add_attribute(AttributeLoc::Function, self.nobuiltin);
        self.extensions(sig, |at, attribute| call.add_attribute(at, attribute));
    }

    fn extensions(&self, sig: &FuncSig, mut add: impl FnMut(AttributeLoc, Attribute)) {
        let attribute = |ext| match ext {
            Extension::None => None,
            Extension::Signed => Some(self.signext),
            Extension::Unsigned => Some(self.zeroext),
        };
        let scalars = self.types.scalars(sig);
        let sig = scalars.as_ref().map_or(sig, |scalars| &scalars.sig);
        for (index, param) in (0u32..).zip(&sig.params) {
            if let Some(attribute) = attribute(param.ext) {
                add(AttributeLoc::Param(index), attribute);
            }
        }
        if let Some(attribute) = sig.ret.and_then(|ret| attribute(ret.ext)) {
            add(AttributeLoc::Return, attribute);
        }
    }

    pub(super) fn branch(&self, branch: InstructionValue<'ctx>, hint: Hint) {
        let weights = match hint {
            Hint::None => return,
            Hint::Likely => self.likely,
            Hint::Unlikely => self.unlikely,
        };
        // This fails only for values other than metadata nodes, and this is a metadata node.
        let _ = branch.set_metadata(weights, self.prof);
    }

    pub(super) fn invariant_load(&self, load: InstructionValue<'ctx>) {
        let _ = load.set_metadata(self.empty, self.invariant_load);
    }
}
