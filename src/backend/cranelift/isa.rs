//! Targets: which CPU and system code is made for, and with which settings.

use std::fmt;
use std::sync::Arc;

use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, SetError};
use target_lexicon::{PointerWidth, Triple};

use super::Error;
use crate::backend::OptLevel;

/// Settings of a target.
#[derive(Clone, Debug)]
pub struct IsaOptions {
    /// The level of optimisation.
    pub opt_level: OptLevel,
    /// Position-independent code: for objects that become shared libraries. A `JITModule` takes none.
    pub pic: bool,
    /// Let Cranelift check its own IR before and between passes; on in debug builds.
    pub verifier: bool,
    /// Allocate registers in a single pass: half of the time to compile, for two fifths more code.
    pub single_pass: bool,
    /// CPU features that the target has for certain, by Cranelift's names (`has_sse41`, `has_lse`, ...) or presets
    /// (`x86_64_v3`). Without any, code runs on every CPU of the architecture.
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

/// A target in several settings: as [`OptLevel::Speed`] says, how much a function gains from being optimised depends on its loops.
pub struct ByLoops {
    /// For functions that loop on their usual path.
    pub looping: OwnedTargetIsa,
    /// For the others.
    pub straight: OwnedTargetIsa,
    /// For those of the others that are hardly ever called.
    pub cold: OwnedTargetIsa,
}

impl fmt::Debug for ByLoops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // a target shows itself by its name and settings
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
    /// The settings of a level; `isa` makes the target with these options, whose level is [`OptLevel::None`] or [`OptLevel::Full`]. That registers
    /// are allocated in a single pass, if they say so, is for cold functions alone.
    ///
    /// # Errors
    /// As `isa`.
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

    /// Targets whose code can be mixed with that for `isa`: of the same triple and settings, but for how much is optimised
    /// ([`OptLevel::Speed`]), how cold code gets its registers, and what Cranelift checks of its own work.
    ///
    /// # Errors
    /// Cranelift doesn't know the triple or a setting, as that of a target of somebody else's.
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

/// The machine that this process runs on, with every feature that its CPU has.
pub fn host_isa(options: &IsaOptions) -> Result<OwnedTargetIsa, Error> {
    let host = Triple::host();
    let builder = cranelift_native::builder().map_err(|reason| unsupported(&host, reason))?;
    finish(builder, &host, options)
}

/// Any other machine; `options.features` says what its CPU has.
pub fn isa_for(triple: &Triple, options: &IsaOptions) -> Result<OwnedTargetIsa, Error> {
    let builder = isa::lookup(triple.clone()).map_err(|e| unsupported(triple, e))?;
    finish(builder, triple, options)
}

fn finish(mut builder: isa::Builder, triple: &Triple, options: &IsaOptions) -> Result<OwnedTargetIsa, Error> {
    // The IR has 64-bit pointers.
    if triple.pointer_width() != Ok(PointerWidth::U64) {
        return Err(unsupported(triple, "only targets with 64-bit pointers are supported"));
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
        // A frame larger than the guard page must not step over it; inline, since nobody provides the function.
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
