//! Targets: which CPU and system code is made for, and with which settings.

use std::ffi::CStr;
use std::sync::OnceLock;

use inkwell::OptimizationLevel;
use inkwell::llvm_sys::target_machine::LLVMSetTargetMachineFastISel;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple};
use target_lexicon::{Architecture, BinaryFormat, OperatingSystem, PointerWidth, Triple};

use super::library::{self, has_code_generator};
use super::{ENDIANNESS, Error};
use crate::backend::{ON_GPU, OptLevel, is_gpu};

const NO_MACHINE: &str = "LLVM can't make a code generator for it";

/// Settings of a target.
#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    /// The level of optimisation.
    pub opt_level: OptLevel,
    /// The CPU by LLVM's name (`x86-64-v3`, `apple-m1`, ...); `None` for any of its architecture.
    pub cpu: Option<String>,
    /// CPU features by LLVM's names with a sign: `+avx2`, `-avx512f`.
    pub features: Vec<String>,
}

/// A machine that code is made for. Plain data: LLVM's own state is made from it where it is needed.
#[derive(Clone, Debug)]
pub struct Target {
    triple: String,
    cpu: String,
    features: String,
    opt_level: OptLevel,
    format: BinaryFormat,
    architecture: Architecture,
}

/// What LLVM finds out of this machine: triple, CPU and features.
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

impl Target {
    /// The machine that this process runs on, with every feature that its CPU has.
    ///
    /// # Errors
    /// This libLLVM can't make code for it, or there is none.
    pub fn host(options: &TargetOptions) -> Result<Self, Error> {
        library::load()?;
        let (triple, cpu, features) = host();
        let cpu = options.cpu.clone().unwrap_or_else(|| cpu.clone());
        let mut all = vec![features.clone()];
        all.extend(options.features.iter().cloned());
        Self::checked(Triple::host(), triple.clone(), cpu, all.join(","), options.opt_level)
    }

    /// Any other machine.
    ///
    /// # Errors
    /// This libLLVM can't make code for it, or there is none.
    pub fn new(triple: &Triple, options: &TargetOptions) -> Result<Self, Error> {
        let cpu = options.cpu.clone().unwrap_or_else(|| match triple.architecture {
            Architecture::X86_64 => "x86-64".to_owned(),
            Architecture::Riscv64(_) => "generic-rv64".to_owned(),
            _ => "generic".to_owned(),
        });
        let mut features = options.features.clone();
        let mut name = triple.to_string();
        // Rust's triples name the extensions, LLVM's don't; the C ABI with floats in registers follows from `+d`.
        if let Architecture::Riscv64(_) = triple.architecture
            && let Some((_, rest)) = name.split_once('-')
        {
            name = format!("riscv64-{rest}");
            features.insert(0, "+m,+a,+f,+d,+c".to_owned());
        }
        // Without a version LLVM says none, and Apple's linker wants to know; these are the oldest that Rust supports.
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
            return Err(unsupported("only targets with 64-bit pointers are supported"));
        }
        if known.endianness() != Ok(ENDIANNESS) {
            return Err(unsupported("only little-endian targets are supported"));
        }
        library::load()?;
        initialize(&known).map_err(|reason| unsupported(&reason))?;
        let format = known.binary_format;
        // A machine is made where it is needed: most of a millisecond, for what LLVM has to know of the CPU.
        let found = LlvmTarget::from_triple(&TargetTriple::create(&triple)).map_err(|e| unsupported(&e.to_string()))?;
        if !found.has_target_machine() {
            return Err(unsupported(NO_MACHINE));
        }
        Ok(Target { triple, cpu, features, opt_level, format, architecture: known.architecture })
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

    /// The most bytes that its code compares in one instruction. LLVM's C interface doesn't say what a CPU has, so that of CPUs by name
    /// these are the ones that stand for it.
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

    /// LLVM's code generator for it. Position-independent: then the same object serves the JIT, where imports may be out of
    /// reach of a near call, and a shared library.
    pub(super) fn machine(&self, level: OptLevel) -> Result<TargetMachine, Error> {
        let unsupported = |reason: String| Error::UnsupportedTarget { target: self.triple.clone(), reason };
        let triple = TargetTriple::create(&self.triple);
        let target = LlvmTarget::from_triple(&triple).map_err(|e| unsupported(e.to_string()))?;
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

/// Has a machine select instructions one by one: a quarter less time for a wrapper, at the price of an instruction in twenty.
pub(super) fn select_fast(machine: &TargetMachine, fast: bool) {
    // SAFETY: the machine is alive, and used by nobody else meanwhile.
    unsafe { LLVMSetTargetMachineFastISel(machine.as_mut_ptr(), fast.into()) };
}

/// Makes the architecture's code generator known to LLVM. Doing so again is harmless, and inkwell holds a lock.
fn initialize(triple: &Triple) -> Result<(), String> {
    let config = InitializationConfig { info: true, machine_code: true, asm_printer: true, ..Default::default() };
    let none = || format!("no code generator for {}", triple.architecture);
    let (name, initialize): (_, fn(&InitializationConfig)) = match triple.architecture {
        Architecture::X86_64 => ("X86", LlvmTarget::initialize_x86),
        Architecture::Aarch64(_) => ("AArch64", LlvmTarget::initialize_aarch64),
        Architecture::Riscv64(_) => ("RISCV", LlvmTarget::initialize_riscv),
        _ => return Err(none()),
    };
    if !has_code_generator(name) {
        return Err(none());
    }
    initialize(&config);
    Ok(())
}
