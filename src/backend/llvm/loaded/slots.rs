//! The addresses of LLVM's functions.

use std::ffi::c_void;
use std::io::Write;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Contains a line `llvm_function NAME` for each function; an assembler macro expands it to the function and its slot.
/// These are the functions that `llvm-sys` declares and LLVM 22.1 has; step `python` of `cargo xtask test` checks that.
const LINES: &str = include_str!("functions.s");

const COUNT: usize = {
    let (mut at, mut count) = (0, 0);
    while at < LINES.len() {
        count += (LINES.as_bytes()[at] == b'\n') as usize;
        at += 1;
    }
    count
};

unsafe extern "C" {
    #[link_name = "tvm_ffi_codegen_llvm_slots"]
    static SLOTS: [AtomicPtr<c_void>; COUNT];
}

/// The functions' names, in the order of the slots.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LINES.lines().filter_map(|line| line.strip_prefix("llvm_function "))
}

/// Sets the addresses of the functions, in the order of [`names`]. The slot of a function without an address is
/// unchanged.
///
/// # Safety
/// Each address must be that of the LLVM function of this name, and must stay valid for good.
pub(super) unsafe fn fill(addresses: impl Iterator<Item = Option<*mut c_void>>) {
    for (slot, address) in slots().iter().zip(addresses) {
        if let Some(address) = address {
            slot.store(address, Ordering::Release);
        }
    }
}

/// The LLVM functions that have an address, with their names.
pub(super) fn loaded() -> impl Iterator<Item = (&'static str, *mut c_void)> {
    let addresses = slots().iter().map(|slot| slot.load(Ordering::Acquire));
    names().zip(addresses).filter(|(_, address)| *address != not_loaded as *mut c_void)
}

fn slots() -> &'static [AtomicPtr<c_void>] {
    // SAFETY: `stubs` defines the array with a slot for each line, and Rust only
    // loads and stores the slots atomically.
    unsafe { &SLOTS }
}

/// The function in an empty slot. It aborts, because it has no result to return and its callers don't expect unwinding.
pub(super) extern "C" fn not_loaded() -> ! {
    let text = b"tvm-ffi-codegen: a function of LLVM was called before `embed::llvm::load`, or one that this LLVM \
        doesn't have\n";
    let _ = std::io::stderr().write_all(text);
    std::process::abort()
}
