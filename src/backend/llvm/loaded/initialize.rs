//! Functions that LLVM's headers define in C, and `llvm-sys` in a C file: each calls one or a few functions, for the
//! machine's code generator or for all.

use std::ffi::{c_int, c_void};

use super::slots;

/// The name of the machine's code generator in LLVM's functions.
const NATIVE: &str = if cfg!(target_arch = "x86_64") {
    "X86"
} else if cfg!(target_arch = "aarch64") {
    "AArch64"
} else if cfg!(target_arch = "riscv64") {
    "RISCV"
} else {
    "SystemZ"
};

/// Calls the functions named `LLVMInitialize`, code generator, part. Returns 0, which is success in LLVM's C API.
fn initialize(native: bool, parts: &[&str]) -> c_int {
    let mut is_called = false;
    for (name, address) in slots::loaded() {
        let of_target = name.strip_prefix("LLVMInitialize").unwrap_or_default();
        let target = parts.iter().find_map(|part| of_target.strip_suffix(part));
        if target.is_some_and(|target| if native { target == NATIVE } else { !target.is_empty() }) {
            // SAFETY: the address is that of `void LLVMInitializeX86Target(void)` or a similar function of the loaded
            // LLVM, which is never unloaded.
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(address)() };
            is_called = true;
        }
    }
    if is_called { 0 } else { slots::not_loaded() }
}

pub(super) extern "C" fn native_target() -> c_int {
    initialize(true, &["TargetInfo", "Target", "TargetMC"])
}

pub(super) extern "C" fn native_asm_printer() -> c_int {
    initialize(true, &["AsmPrinter"])
}

pub(super) extern "C" fn native_asm_parser() -> c_int {
    initialize(true, &["AsmParser"])
}

pub(super) extern "C" fn native_disassembler() -> c_int {
    initialize(true, &["Disassembler"])
}

pub(super) extern "C" fn all_target_infos() -> c_int {
    initialize(false, &["TargetInfo"])
}

pub(super) extern "C" fn all_targets() -> c_int {
    initialize(false, &["Target"])
}

pub(super) extern "C" fn all_target_mcs() -> c_int {
    initialize(false, &["TargetMC"])
}

pub(super) extern "C" fn all_asm_printers() -> c_int {
    initialize(false, &["AsmPrinter"])
}

pub(super) extern "C" fn all_asm_parsers() -> c_int {
    initialize(false, &["AsmParser"])
}

pub(super) extern "C" fn all_disassemblers() -> c_int {
    initialize(false, &["Disassembler"])
}
