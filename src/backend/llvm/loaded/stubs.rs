//! Defines the functions of LLVM's C API: each jumps to the address in its slot.
//!
//! So the linker resolves everything that `llvm-sys` declares, and a program with this code starts without LLVM. No
//! other LLVM in the process can replace the chosen one. The functions are hidden: a shared library that contains them
//! doesn't export them.

use std::arch::global_asm;

use super::{initialize, slots};

/// Assembler directives for Mach-O: sections, and the start of a symbol.
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

/// Assembler directives for COFF: sections, and the start of a symbol.
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

/// Assembler directives for ELF: sections, and the start of a symbol.
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

// Jumps to the address in the slot at label `7`, with a register that holds no argument.
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
    // those that `llvm-sys` defines in C come after the slots of the others
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
    not_loaded = sym slots::not_loaded,
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
