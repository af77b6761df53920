//! Targets: the CPU, system and settings that code is generated for.

use std::ffi::CStr;
use std::sync::OnceLock;

use inkwell::OptimizationLevel;
use inkwell::llvm_sys::target_machine::{LLVMGetTargetMachineFeatureString, LLVMSetTargetMachineFastISel};
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target as InkwellTarget, TargetMachine, TargetTriple,
};
use target_lexicon::{Architecture, BinaryFormat, Endianness, OperatingSystem, PointerWidth, Triple};

use super::diagnostics::take_message;
use super::error::Error;
use super::library::{self, has_code_generator};
use crate::backend::OptLevel;
use crate::backend::target::{ON_GPU, is_gpu};
use crate::ir::VerifiedModule;

const NO_MACHINE: &str = "LLVM can't make a code generator for it";

/// The byte order of all supported targets.
pub(crate) const ENDIANNESS: Endianness = Endianness::Little;

/// Checks that constants and data have that byte order.
pub(super) fn check_endianness(ir: &VerifiedModule) -> Result<(), Error> {
    if ir.endianness == ENDIANNESS { Ok(()) } else { Err(Error::Endianness) }
}

/// Settings of a target.
#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    /// The level of optimisation.
    pub opt_level: OptLevel,
    /// The CPU by LLVM's name (`x86-64-v3`, `apple-m1`, ...); `None` for any CPU of the architecture.
    pub cpu: Option<String>,
    /// CPU features by LLVM's names with a sign: `+avx2`, `-avx512f`.
    pub features: Vec<String>,
}

/// A machine to generate code for. This is plain data; LLVM's own state is created from it when needed.
#[derive(Clone, Debug)]
pub struct LlvmTarget {
    triple: String,
    cpu: String,
    features: String,
    opt_level: OptLevel,
    format: BinaryFormat,
    architecture: Architecture,
}

/// This machine as LLVM detects it: triple, CPU and features.
fn host() -> &'static (String, String, String) {
    static HOST: OnceLock<(String, String, String)> = OnceLock::new();
    HOST.get_or_init(|| {
        let text = |s: &CStr| s.to_string_lossy().into_owned();
        let triple = TargetMachine::get_default_triple();
        (
            text(triple.as_str()),
            TargetMachine::get_host_cpu_name().to_string(),
            TargetMachine::get_host_cpu_features().to_string(),
        )
    })
}

impl LlvmTarget {
    /// The target for this process's machine, with all features of its CPU.
    ///
    /// # Errors
    /// This libLLVM doesn't support the machine, or no LLVM was found.
    pub fn host(options: &TargetOptions) -> Result<Self, Error> {
        library::load()?;
        let (triple, cpu, features) = host();
        let cpu = options.cpu.clone().unwrap_or_else(|| cpu.clone());
        let mut all = vec![features.clone()];
        all.extend(options.features.iter().cloned());
        Self::checked(Triple::host(), triple.clone(), cpu, all.join(","), options.opt_level)
    }

    /// The target for another machine.
    ///
    /// # Errors
    /// This libLLVM doesn't support the machine, or no LLVM was found.
    pub fn new(triple: &Triple, options: &TargetOptions) -> Result<Self, Error> {
        let cpu = options.cpu.clone().unwrap_or_else(|| match triple.architecture {
            Architecture::X86_64 => "x86-64".to_owned(),
            Architecture::Riscv64(_) => "generic-rv64".to_owned(),
            _ => "generic".to_owned(),
        });
        let mut features = options.features.clone();
        let mut name = triple.to_string();
        // Rust's triples name the extensions, but LLVM's don't. `+d` selects the C ABI with floats in registers.
        if let Architecture::Riscv64(_) = triple.architecture
            && let Some((_, rest)) = name.split_once('-')
        {
            name = format!("riscv64-{rest}");
            features.insert(0, "+m,+a,+f,+d,+c".to_owned());
        }
        // Without a version in the triple LLVM writes none, but Apple's linker needs one. These are the oldest that
        // Rust supports.
        if let OperatingSystem::Darwin(None) | OperatingSystem::MacOSX(None) = triple.operating_system {
            let (arch, version) = match triple.architecture {
                Architecture::Aarch64(_) => ("arm64", "11.0.0"),
                _ => ("x86_64", "10.12.0"),
            };
            name = format!("{arch}-apple-macosx{version}");
        }
        Self::checked(triple.clone(), name, cpu, features.join(","), options.opt_level)
    }

    fn checked(
        known: Triple,
        triple: String,
        cpu: String,
        features: String,
        opt_level: OptLevel,
    ) -> Result<Self, Error> {
        let unsupported = |reason: &str| Error::UnsupportedTarget { target: triple.clone(), reason: reason.to_owned() };
        if is_gpu(&known) {
            return Err(unsupported(ON_GPU));
        }
        // The IR has 64-bit pointers.
        if known.pointer_width() != Ok(PointerWidth::U64) {
            return Err(unsupported(
                "only targets with 64-bit pointers are supported: x86-64, AArch64 and 64-bit RISC-V",
            ));
        }
        if known.endianness() != Ok(ENDIANNESS) {
            return Err(unsupported("only little-endian targets are supported: x86-64, AArch64 and 64-bit RISC-V"));
        }
        library::load()?;
        initialize(&known).map_err(|reason| unsupported(&reason))?;
        let format = known.binary_format;
        // Target machines are created only when needed: creating one takes most of a millisecond, because LLVM builds
        // its CPU tables.
        let found =
            InkwellTarget::from_triple(&TargetTriple::create(&triple)).map_err(|e| unsupported(&e.to_string()))?;
        if !found.has_target_machine() {
            return Err(unsupported(NO_MACHINE));
        }
        Ok(LlvmTarget { triple, cpu, features, opt_level, format, architecture: known.architecture })
    }

    /// The target triple, as LLVM spells it.
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// The format of its object files.
    pub(super) fn format(&self) -> BinaryFormat {
        self.format
    }

    /// The CPU, by LLVM's name.
    pub fn cpu(&self) -> &str {
        &self.cpu
    }

    /// The maximum number of bytes that the target's code compares in one instruction. LLVM's C API doesn't list a
    /// CPU's features, so known CPU names stand for them.
    pub(super) fn widest_piece(&self) -> u32 {
        let avx = self.features.split(',').any(|feature| feature == "+avx")
            || ["x86-64-v3", "x86-64-v4"].contains(&&*self.cpu);
        if avx { 32 } else { 16 }
    }

    /// Whether its architecture is x86-64.
    pub(super) fn is_x86_64(&self) -> bool {
        self.architecture == Architecture::X86_64
    }

    /// The level of optimisation.
    pub fn opt_level(&self) -> OptLevel {
        self.opt_level
    }

    /// LLVM's target machine. It is position-independent, so the same object works for a shared library and for the
    /// JIT, where imports may be out of range of a near call.
    pub(super) fn machine(&self, level: OptLevel) -> Result<TargetMachine, Error> {
        let unsupported = |reason: String| Error::UnsupportedTarget { target: self.triple.clone(), reason };
        let triple = TargetTriple::create(&self.triple);
        let target = InkwellTarget::from_triple(&triple).map_err(|e| unsupported(e.to_string()))?;
        let generation = match level {
            OptLevel::None => OptimizationLevel::None,
            OptLevel::Speed => OptimizationLevel::Less,
            OptLevel::Full => OptimizationLevel::Aggressive,
        };
        target
            .create_target_machine(&triple, &self.cpu, &self.features, generation, RelocMode::PIC, CodeModel::Default)
            .ok_or_else(|| unsupported(NO_MACHINE.to_owned()))
    }
}

/// The CPU features that a machine's code uses, as LLVM lists them. inkwell's function leaks the text.
pub(crate) fn features_of(machine: &TargetMachine) -> String {
    // SAFETY: the machine is alive, and LLVM returns a copy of its text.
    unsafe { take_message(LLVMGetTargetMachineFeatureString(machine.as_mut_ptr())) }
}

/// Selects instructions with FastISel: compiling a wrapper takes a quarter less time, for 5 % more instructions.
pub(super) fn select_fast(machine: &TargetMachine, fast: bool) {
    // SAFETY: the machine is alive, and nothing else uses it at the same time.
    unsafe { LLVMSetTargetMachineFastISel(machine.as_mut_ptr(), fast.into()) };
}

/// Registers the architecture's code generator with LLVM. Repeating this is harmless, and inkwell holds a lock.
fn initialize(triple: &Triple) -> Result<(), String> {
    let config = InitializationConfig { info: true, machine_code: true, asm_printer: true, ..Default::default() };
    let none = || format!("no code generator for {}", triple.architecture);
    let (name, initialize): (_, fn(&InitializationConfig)) = match triple.architecture {
        Architecture::X86_64 => ("X86", InkwellTarget::initialize_x86),
        Architecture::Aarch64(_) => ("AArch64", InkwellTarget::initialize_aarch64),
        Architecture::Riscv64(_) => ("RISCV", InkwellTarget::initialize_riscv),
        _ => return Err(none()),
    };
    if !has_code_generator(name) {
        return Err(none());
    }
    initialize(&config);
    Ok(())
}
