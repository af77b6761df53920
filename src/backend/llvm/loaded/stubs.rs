//! The functions of LLVM's C interface, defined here: each jumps to the address in its slot.
//!
//! So the linker finds all that `llvm-sys` declares, a program that has this code starts without LLVM, and no other LLVM of the process takes the
//! place of the one that was chosen. The functions are hidden: a shared library that has them doesn't export them.

use std::arch::global_asm;
use std::ffi::c_void;
use std::io::Write;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::initialize;

/// A line `llvm_function NAME` for each function, of which an assembler's macro makes the function and its slot. They are those that `llvm-sys` declares
/// and LLVM 22.1 has; the step `python` of `cargo xtask test` compares.
const LINES: &str = include_str!("functions.s");

const COUNT: usize = {
    let (mut at, mut count) = (0, 0);
    while at < LINES.len() {
        count += (LINES.as_bytes()[at] == b'\n') as usize;
        at += 1;
    }
    count
};

/// The assembler's words for Mach-O: sections, and the beginning of a symbol.
#[cfg(target_vendor = "apple")]
macro_rules! words {
    (slots) => {
        ".pushsection __DATA,__data"
    };
    (code) => {
        ".pushsection __TEXT,__text,regular,pure_instructions"
    };
    (symbol $name:literal) => {
        concat!(".globl _", $name, "\n.private_extern _", $name, "\n_", $name, ":")
    };
}

/// The assembler's words for COFF: sections, and the beginning of a symbol.
#[cfg(windows)]
macro_rules! words {
    (slots) => {
        ".pushsection .data,\"dw\""
    };
    (code) => {
        ".pushsection .text,\"xr\""
    };
    (symbol $name:literal) => {
        concat!(".globl ", $name, "\n", $name, ":")
    };
}

/// The assembler's words for ELF: sections, and the beginning of a symbol.
#[cfg(not(any(target_vendor = "apple", windows)))]
macro_rules! words {
    (slots) => {
        ".pushsection .data.tvm_ffi_codegen_llvm,\"aw\",%progbits"
    };
    (code) => {
        ".pushsection .text.tvm_ffi_codegen_llvm,\"ax\",%progbits"
    };
    (symbol $name:literal) => {
        concat!(".globl ", $name, "\n.hidden ", $name, "\n.type ", $name, ",%function\n", $name, ":")
    };
}

// A jump to the address in the slot at the label `7`, by a register that holds no argument.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp *7b(%rip)"
    };
}
#[cfg(all(target_arch = "aarch64", target_vendor = "apple"))]
macro_rules! jump {
    () => {
        "adrp x16, 7b@PAGE\nldr x16, [x16, 7b@PAGEOFF]\nbr x16"
    };
}
#[cfg(all(target_arch = "aarch64", not(target_vendor = "apple")))]
macro_rules! jump {
    () => {
        "adrp x16, 7b\nldr x16, [x16, :lo12:7b]\nbr x16"
    };
}
#[cfg(target_arch = "riscv64")]
macro_rules! jump {
    () => {
        "ld t1, 7b\njr t1"
    };
}
#[cfg(target_arch = "s390x")]
macro_rules! jump {
    () => {
        "lgrl %r1, 7b\nbr %r1"
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64", target_arch = "s390x")))]
compile_error!("the feature `llvm22-1-loaded` is for x86-64, AArch64, 64-bit RISC-V and s390x; `llvm22-1` links LLVM");

global_asm!(
    words!(slots),
    ".p2align 3",
    words!(symbol "tvm_ffi_codegen_llvm_slots"),
    ".popsection",
    ".macro llvm_function name, first={not_loaded}",
    words!(slots),
    "7: .quad \\first",
    ".popsection",
    words!(code),
    ".p2align 2",
    words!(symbol "\\name"),
    jump!(),
    ".popsection",
    ".endm",
    include_str!("functions.s"),
    // those that `llvm-sys` has in C, behind the slots of the others
    "llvm_function LLVM_InitializeNativeTarget, {native_target}",
    "llvm_function LLVM_InitializeNativeAsmPrinter, {native_asm_printer}",
    "llvm_function LLVM_InitializeNativeAsmParser, {native_asm_parser}",
    "llvm_function LLVM_InitializeNativeDisassembler, {native_disassembler}",
    "llvm_function LLVM_InitializeAllTargetInfos, {all_target_infos}",
    "llvm_function LLVM_InitializeAllTargets, {all_targets}",
    "llvm_function LLVM_InitializeAllTargetMCs, {all_target_mcs}",
    "llvm_function LLVM_InitializeAllAsmPrinters, {all_asm_printers}",
    "llvm_function LLVM_InitializeAllAsmParsers, {all_asm_parsers}",
    "llvm_function LLVM_InitializeAllDisassemblers, {all_disassemblers}",
    ".purgem llvm_function",
    not_loaded = sym not_loaded,
    native_target = sym initialize::native_target,
    native_asm_printer = sym initialize::native_asm_printer,
    native_asm_parser = sym initialize::native_asm_parser,
    native_disassembler = sym initialize::native_disassembler,
    all_target_infos = sym initialize::all_target_infos,
    all_targets = sym initialize::all_targets,
    all_target_mcs = sym initialize::all_target_mcs,
    all_asm_printers = sym initialize::all_asm_printers,
    all_asm_parsers = sym initialize::all_asm_parsers,
    all_disassemblers = sym initialize::all_disassemblers,
    #[cfg(target_arch = "x86_64")]
    options(att_syntax),
);

unsafe extern "C" {
    #[link_name = "tvm_ffi_codegen_llvm_slots"]
    static SLOTS: [AtomicPtr<c_void>; COUNT];
}

/// The names of the functions, in the order of the slots.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LINES.lines().filter_map(|line| line.strip_prefix("llvm_function "))
}

/// Sets the addresses of the functions, in the order of [`names`]; a function without one stays as it is.
///
/// # Safety
/// The addresses are those of LLVM's functions of these names, and stay.
pub(super) unsafe fn fill(addresses: impl Iterator<Item = Option<*mut c_void>>) {
    for (slot, address) in slots().iter().zip(addresses) {
        if let Some(address) = address {
            slot.store(address, Ordering::Release);
        }
    }
}

/// The functions of LLVM that have an address, with their names.
pub(super) fn loaded() -> impl Iterator<Item = (&'static str, *mut c_void)> {
    let addresses = slots().iter().map(|slot| slot.load(Ordering::Acquire));
    names().zip(addresses).filter(|(_, address)| *address != not_loaded as *mut c_void)
}

fn slots() -> &'static [AtomicPtr<c_void>] {
    // SAFETY: the array is defined above, with a slot for each line, and no more than loaded and stored.
    unsafe { &SLOTS }
}

/// The function of an empty slot. There is no result that it could give, nor a caller who would expect an unwinding.
pub(super) extern "C" fn not_loaded() -> ! {
    let text = b"tvm-ffi-codegen: a function of LLVM was called before `embed::llvm::load`, or one that this LLVM doesn't have\n";
    let _ = std::io::stderr().write_all(text);
    std::process::abort()
}
