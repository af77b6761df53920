//! The functions that LLVM's headers have in C, and `llvm-sys` in a C file: each calls one function, or a few, of the machine's code generator or of all.

use std::ffi::{c_int, c_void};

use super::stubs;

/// The machine's code generator, as LLVM's functions name it.
const NATIVE: &str = if cfg!(target_arch = "x86_64") {
    "X86"
} else if cfg!(target_arch = "aarch64") {
    "AArch64"
} else if cfg!(target_arch = "riscv64") {
    "RISCV"
} else {
    "SystemZ"
};

/// Calls the functions `LLVMInitialize`, code generator, part. The result is 0, which is success in LLVM's C interface.
fn initialize(native: bool, parts: &[&str]) -> c_int {
    let mut is_called = false;
    for (name, address) in stubs::loaded() {
        let of_target = name.strip_prefix("LLVMInitialize").unwrap_or_default();
        let target = parts.iter().find_map(|part| of_target.strip_suffix(part));
        if target.is_some_and(|target| if native { target == NATIVE } else { !target.is_empty() }) {
            // SAFETY: `void LLVMInitializeX86Target(void)`, and so on: functions of the loaded LLVM, which stays.
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(address)() };
            is_called = true;
        }
    }
    if is_called { 0 } else { stubs::not_loaded() }
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
