//! gdb's JIT interface: a list of object files in memory, and a function where gdb stops whenever the list changes.
//!
//! wasmtime's crate for this, `wasmtime-internal-jit-debug`, compiles a C file for each target, so cross-compiling this
//! crate would need a C compiler for the target.

use std::ptr;
use std::sync::{Mutex, PoisonError};

/// An object file registered with gdb; dropping it deregisters it.
pub(in crate::engine) struct Image {
    entry: Box<JitCodeEntry>,
    /// The file that the entry points to.
    _file: Box<[u8]>,
}

// SAFETY: the entry's pointers are read and written only under the lock, or by a debugger that has stopped the process.
unsafe impl Send for Image {}
// SAFETY: as above, and a shared reference gives no access to the fields.
unsafe impl Sync for Image {}

/// gdb's `struct jit_code_entry`.
#[repr(C)]
struct JitCodeEntry {
    next: *mut JitCodeEntry,
    previous: *mut JitCodeEntry,
    file: *const u8,
    size: u64,
}

/// gdb's `struct jit_descriptor`.
#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut JitCodeEntry,
    first: *mut JitCodeEntry,
}

const NOTHING: u32 = 0;
const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
macro_rules! return_instruction {
    () => {
        "ret"
    };
}
#[cfg(target_arch = "s390x")]
macro_rules! return_instruction {
    () => {
        "br %r14"
    };
}

// Weak, because a program must have these symbols once, even if several libraries define them, as LLVM does. Rust can
// express that only in assembly.
std::arch::global_asm!(
    ".pushsection .text.__jit_debug_register_code,\"ax\",@progbits",
    ".weak __jit_debug_register_code",
    ".type __jit_debug_register_code,@function",
    ".p2align 4",
    "__jit_debug_register_code:",
    return_instruction!(),
    ".size __jit_debug_register_code, . - __jit_debug_register_code",
    ".popsection",
    ".pushsection .data.__jit_debug_descriptor,\"aw\",@progbits",
    ".weak __jit_debug_descriptor",
    ".type __jit_debug_descriptor,@object",
    ".p2align 3",
    "__jit_debug_descriptor:",
    ".long 1",
    ".long 0",
    ".quad 0",
    ".quad 0",
    ".size __jit_debug_descriptor, 24",
    ".popsection",
);

unsafe extern "C" {
    fn __jit_debug_register_code();
    static mut __jit_debug_descriptor: Descriptor;
}

/// Guards the descriptor and the list.
static LOCK: Mutex<()> = Mutex::new(());

impl Image {
    /// Registers an object file with gdb. Its sections have the addresses of the loaded code.
    pub(in crate::engine) fn register(file: Vec<u8>) -> Self {
        let file = file.into_boxed_slice();
        let (next, previous) = (ptr::null_mut(), ptr::null_mut());
        let entry = Box::new(JitCodeEntry { next, previous, file: file.as_ptr(), size: file.len() as u64 });
        let mut image = Image { entry, _file: file };
        let entry = &raw mut *image.entry;
        let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held, and entries of the list are alive, since `drop` removes them.
        unsafe {
            let descriptor = &raw mut __jit_debug_descriptor;
            let first = (*descriptor).first;
            (*entry).next = first;
            if !first.is_null() {
                (*first).previous = entry;
            }
            (*descriptor).first = entry;
            tell(entry, REGISTER);
        }
        image
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let entry = &raw mut *self.entry;
        let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held, `register` has put the entry into the list, and its neighbours are alive.
        unsafe {
            let descriptor = &raw mut __jit_debug_descriptor;
            let (next, previous) = ((*entry).next, (*entry).previous);
            if previous.is_null() {
                (*descriptor).first = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
            tell(entry, UNREGISTER);
        }
    }
}

/// Reports a change to gdb by calling the function where it has a breakpoint.
///
/// # Safety
/// The lock is held, and the entry is alive.
unsafe fn tell(entry: *mut JitCodeEntry, action: u32) {
    // SAFETY: the lock is held, so no other thread writes the descriptor.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        // another runtime in the process may define the descriptor, and a debugger reads the fields from memory
        (&raw mut (*descriptor).relevant).write_volatile(entry);
        (&raw mut (*descriptor).action).write_volatile(action);
        __jit_debug_register_code();
        (&raw mut (*descriptor).action).write_volatile(NOTHING);
        (&raw mut (*descriptor).relevant).write_volatile(ptr::null_mut());
    }
}
