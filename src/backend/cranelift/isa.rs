//! Targets: the CPU, system and settings that code is generated for.

use std::fmt;
use std::sync::Arc;

use cranelift_codegen::isa::{self, LookupError, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, SetError};
use target_lexicon::{PointerWidth, Triple};

use super::error::Error;
use crate::backend::OptLevel;
use crate::backend::target::{ON_GPU, is_gpu};

/// Settings of a target.
#[derive(Clone, Debug)]
pub struct IsaOptions {
    /// The level of optimisation.
    pub opt_level: OptLevel,
    /// Generate position-independent code, for objects that become shared libraries. A `JITModule` doesn't accept it.
    pub pic: bool,
    /// Let Cranelift check its own IR before and between passes. On in debug builds.
    pub verifier: bool,
    /// Allocate registers in a single pass: compiling takes half the time, and the code is 40 % larger.
    pub single_pass: bool,
    /// CPU features that the target is guaranteed to have, by Cranelift's names (`has_sse41`, `has_lse`, ...) or
    /// presets (`x86_64_v3`). Without any, the code runs on every CPU of the architecture.
    pub features: Vec<String>,
}

impl Default for IsaOptions {
    fn default() -> Self {
        IsaOptions {
            opt_level: OptLevel::default(),
            pic: false,
            verifier: cfg!(debug_assertions),
            single_pass: false,
            features: Vec::new(),
        }
    }
}

/// A target in several settings. With [`OptLevel::Speed`], a function's loops decide how much it is optimised.
pub struct ByLoops {
    /// For functions that loop on their usual path.
    pub looping: OwnedTargetIsa,
    /// For functions without such loops.
    pub straight: OwnedTargetIsa,
    /// For rarely called functions without such loops.
    pub cold: OwnedTargetIsa,
}

impl fmt::Debug for ByLoops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // the `Display` of a target prints its name and settings
        let ByLoops { looping, straight, cold } = self;
        let shown = |isa: &OwnedTargetIsa| isa.to_string();
        f.debug_struct("ByLoops")
            .field("looping", &shown(looping))
            .field("straight", &shown(straight))
            .field("cold", &shown(cold))
            .finish()
    }
}

impl ByLoops {
    /// Creates the targets for a level. `isa` creates a target from options whose level is [`OptLevel::None`] or
    /// [`OptLevel::Full`]. Single-pass register allocation, if the options ask for it, applies to cold functions only.
    ///
    /// # Errors
    /// The errors of `isa`.
    pub fn new(
        level: OptLevel,
        options: &IsaOptions,
        isa: impl Fn(&IsaOptions) -> Result<OwnedTargetIsa, Error>,
    ) -> Result<Self, Error> {
        let (looping, straight) = match level {
            OptLevel::None => (OptLevel::None, OptLevel::None),
            OptLevel::Speed => (OptLevel::Full, OptLevel::None),
            OptLevel::Full => (OptLevel::Full, OptLevel::Full),
        };
        let isa = |opt_level, single_pass| isa(&IsaOptions { opt_level, single_pass, ..options.clone() });
        let (looping, best) = (isa(looping, false)?, isa(straight, false)?);
        let cold = if options.single_pass { isa(straight, true)? } else { Arc::clone(&best) };
        Ok(ByLoops { looping, straight: best, cold })
    }

    /// Creates targets whose code can be mixed with code for `isa`: same triple and settings. They may differ in
    /// optimisation ([`OptLevel::Speed`]), in register allocation of cold code, and in Cranelift's self-checks.
    ///
    /// # Errors
    /// Cranelift doesn't know the triple or a setting, for example because `isa` is a custom target.
    pub fn like(isa: &dyn TargetIsa, verifier: bool) -> Result<Self, Error> {
        let triple = isa.triple();
        let failed = |name: &str, e: SetError| Error::Setting {
            target: triple.to_string(),
            name: name.to_owned(),
            reason: e.to_string(),
        };
        let like = |level: &str, algorithm: &str| {
            let mut builder = isa::lookup(triple.clone()).map_err(|e| unsupported(triple, e))?;
            let mut flags = settings::builder();
            for value in isa.isa_flags() {
                builder.set(value.name, &value.value_string()).map_err(|e| failed(value.name, e))?;
            }
            for value in isa.flags().iter() {
                flags.set(value.name, &value.value_string()).map_err(|e| failed(value.name, e))?;
            }
            let verifier = if verifier { "true" } else { "false" };
            for (name, value) in
                [("opt_level", level), ("regalloc_algorithm", algorithm), ("enable_verifier", verifier)]
            {
                flags.set(name, value).map_err(|e| failed(name, e))?;
            }
            builder.finish(settings::Flags::new(flags)).map_err(|e| unsupported(triple, e))
        };
        Ok(ByLoops {
            looping: like("speed", "backtracking")?,
            straight: like("none", "backtracking")?,
            cold: like("none", "single_pass")?,
        })
    }
}

/// The target for this process's machine, with all features of its CPU.
pub fn host_isa(options: &IsaOptions) -> Result<OwnedTargetIsa, Error> {
    let host = Triple::host();
    let builder = cranelift_native::builder().map_err(|reason| unsupported(&host, reason))?;
    finish(builder, &host, options)
}

/// The target for another machine; `options.features` lists its CPU features.
pub fn isa_for(triple: &Triple, options: &IsaOptions) -> Result<OwnedTargetIsa, Error> {
    if is_gpu(triple) {
        return Err(unsupported(triple, ON_GPU));
    }
    let builder = isa::lookup(triple.clone()).map_err(|error| match error {
        LookupError::SupportDisabled => unsupported(triple, "build tvm-ffi-codegen with the feature `all-arch` for it"),
        LookupError::Unsupported => {
            unsupported(triple, "Cranelift generates code for x86-64, AArch64, 64-bit RISC-V and s390x only")
        }
    })?;
    finish(builder, triple, options)
}

/// The triple and the settings that affect code. Code for two ISAs with the same identity can be mixed.
pub(crate) fn isa_identity(isa: &dyn TargetIsa) -> String {
    use std::fmt::Write;
    let flags = isa.flags();
    let mut out = isa.triple().to_string();
    if flags.is_pic() {
        out.push_str(" pic");
    }
    if flags.use_colocated_libcalls() {
        out.push_str(" colocated-libcalls");
    }
    for value in isa.isa_flags() {
        if value.as_bool() == Some(true) {
            let _ = write!(out, " {}", value.name);
        }
    }
    out
}

fn finish(mut builder: isa::Builder, triple: &Triple, options: &IsaOptions) -> Result<OwnedTargetIsa, Error> {
    // The IR has 64-bit pointers.
    if triple.pointer_width() != Ok(PointerWidth::U64) {
        return Err(unsupported(
            triple,
            "only targets with 64-bit pointers are supported: x86-64, AArch64, 64-bit RISC-V and s390x",
        ));
    }
    let failed = |name: &str, e: SetError| Error::Setting {
        target: triple.to_string(),
        name: name.to_owned(),
        reason: e.to_string(),
    };
    for name in &options.features {
        builder.enable(name).map_err(|e| failed(name, e))?;
    }
    let on = |value: bool| if value { "true" } else { "false" };
    let mut flags = settings::builder();
    for (name, value) in [
        (
            "opt_level",
            match options.opt_level {
                OptLevel::None => "none",
                OptLevel::Speed | OptLevel::Full => "speed",
            },
        ),
        ("is_pic", on(options.pic)),
        ("regalloc_algorithm", if options.single_pass { "single_pass" } else { "backtracking" }),
        ("enable_verifier", on(options.verifier)),
        // libm may be anywhere in the address space.
        ("use_colocated_libcalls", "false"),
        // A frame larger than the guard page must not step over it. The probe is inline because no library provides the
        // function.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ] {
        flags.set(name, value).map_err(|e| failed(name, e))?;
    }
    builder.finish(settings::Flags::new(flags)).map_err(|e| unsupported(triple, e))
}

fn unsupported(triple: &Triple, reason: impl ToString) -> Error {
    Error::UnsupportedTarget { target: triple.to_string(), reason: reason.to_string() }
}
