//! Unwind tables of loaded code, registered with this process's unwinder.

/// A registered table; dropping it deregisters it.
#[cfg(all(unix, feature = "cranelift"))]
pub(in crate::engine) struct Frames {
    /// The table, if this value owns it. Aligned, since an unwinder may read words, and never moved or changed.
    _table: Box<[u64]>,
    /// The addresses that were registered.
    registered: Vec<usize>,
}

#[cfg(all(unix, feature = "cranelift"))]
unsafe extern "C" {
    fn __register_frame(begin: *const u8);
    fn __deregister_frame(begin: *const u8);
}

#[cfg(all(unix, feature = "cranelift"))]
impl Frames {
    /// Registers an `.eh_frame` that ends with four zeros and uses absolute addresses.
    ///
    /// # Safety
    /// The table is well-formed, and the code that it describes stays where it is until the `Frames` is dropped.
    pub(in crate::engine) unsafe fn register(eh_frame: &[u8]) -> Self {
        let words = eh_frame.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        let table: Box<[u64]> = words.collect();
        let start = table.as_ptr().expose_provenance();
        // SAFETY: the caller guarantees it; the table lives until `drop` has deregistered it.
        unsafe { Self::register_table(table, start, eh_frame) }
    }

    /// Registers the `.eh_frame` of `len` bytes at an address. It is followed by four zeros and uses relative
    /// addresses.
    ///
    /// # Safety
    /// The table is well-formed, and it and the code that it describes stay where they are until the `Frames` is
    /// dropped.
    pub(in crate::engine) unsafe fn register_in_place(address: usize, len: usize) -> Self {
        let start: *const u8 = std::ptr::with_exposed_provenance(address);
        // SAFETY: the table stays there, unchanged.
        let eh_frame = unsafe { std::slice::from_raw_parts(start, len) };
        // SAFETY: the caller guarantees it.
        unsafe { Self::register_table(Box::default(), address, eh_frame) }
    }

    /// # Safety
    /// The same as for [`register_in_place`](Self::register_in_place), for a table at `start`, which `table` may own.
    unsafe fn register_table(table: Box<[u64]>, start: usize, eh_frame: &[u8]) -> Self {
        let offsets = if takes_entries() { entries(eh_frame) } else { vec![0] };
        let registered = offsets.into_iter().map(|offset| start + offset).collect();
        let frames = Frames { _table: table, registered };
        for place in frames.places() {
            // SAFETY: the caller guarantees a well-formed table, and it lives until `drop` has deregistered it.
            unsafe { __register_frame(place) };
        }
        frames
    }

    fn places(&self) -> impl Iterator<Item = *const u8> {
        self.registered.iter().map(|&address| std::ptr::with_exposed_provenance(address))
    }
}

#[cfg(all(unix, feature = "cranelift"))]
impl Drop for Frames {
    fn drop(&mut self) {
        for place in self.places() {
            // SAFETY: `register_table` has registered it, and it is deregistered only here.
            unsafe { __deregister_frame(place) };
        }
    }
}

/// The offsets of the functions' entries (FDEs) in an `.eh_frame`.
#[cfg(all(unix, feature = "cranelift"))]
fn entries(eh_frame: &[u8]) -> Vec<usize> {
    let word = |at: usize| Some(u32::from_ne_bytes(eh_frame.get(at..at + 4)?.try_into().ok()?));
    let mut entries = Vec::new();
    let mut at = 0;
    while let Some(length) = word(at).filter(|length| *length != 0) {
        // the word after the length is 0 for a CIE, and refers to one for an FDE
        if word(at + 4).is_some_and(|of| of != 0) {
            entries.push(at);
        }
        at += 4 + length as usize;
    }
    entries
}

/// Whether the unwinder is LLVM's, whose `__register_frame` takes one entry. libgcc's takes a whole table.
#[cfg(all(unix, feature = "cranelift"))]
fn takes_entries() -> bool {
    use std::sync::OnceLock;
    static TAKES_ENTRIES: OnceLock<bool> = OnceLock::new();
    // These use LLVM's. A static executable can't look the symbol up.
    if cfg!(any(
        target_vendor = "apple",
        target_os = "android",
        all(target_env = "musl", target_feature = "crt-static")
    )) {
        return true;
    }
    // SAFETY: the name is a C string; the address is compared and not used.
    *TAKES_ENTRIES
        .get_or_init(|| !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__unw_add_dynamic_fde".as_ptr()) }.is_null())
}

/// A function table registered with Windows; dropping it deregisters it.
#[cfg(all(windows, target_arch = "x86_64", feature = "cranelift"))]
pub(in crate::engine) struct Frames {
    table: Box<[windows_sys::Win32::System::Diagnostics::Debug::IMAGE_RUNTIME_FUNCTION_ENTRY]>,
}

#[cfg(all(windows, target_arch = "x86_64", feature = "cranelift"))]
impl Frames {
    /// Registers functions: the begin, the end and the `UNWIND_INFO` of each, relative to `base`. `None` if Windows
    /// refuses.
    ///
    /// # Safety
    /// The `UNWIND_INFO`s are well-formed, and code and `UNWIND_INFO`s stay where they are until the `Frames` is
    /// dropped.
    pub(in crate::engine) unsafe fn register(base: usize, functions: &[[u32; 3]]) -> Option<Self> {
        use windows_sys::Win32::System::Diagnostics::Debug::{
            IMAGE_RUNTIME_FUNCTION_ENTRY, IMAGE_RUNTIME_FUNCTION_ENTRY_0, RtlAddFunctionTable,
        };
        let entry = |&[begin, end, info]: &[u32; 3]| IMAGE_RUNTIME_FUNCTION_ENTRY {
            BeginAddress: begin,
            EndAddress: end,
            Anonymous: IMAGE_RUNTIME_FUNCTION_ENTRY_0 { UnwindInfoAddress: info },
        };
        let mut functions = functions.to_vec();
        functions.sort_unstable();
        let table: Box<[_]> = functions.iter().map(entry).collect();
        // SAFETY: the table is sorted and lives until `drop` has deregistered it; the caller guarantees the rest.
        let known = unsafe { RtlAddFunctionTable(table.as_ptr(), table.len() as u32, base as u64) };
        known.then_some(Frames { table })
    }
}

#[cfg(all(windows, target_arch = "x86_64", feature = "cranelift"))]
impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: `register` has registered the table.
        unsafe { windows_sys::Win32::System::Diagnostics::Debug::RtlDeleteFunctionTable(self.table.as_ptr()) };
    }
}

/// An empty table: unwinding isn't implemented for this platform.
#[cfg(not(all(feature = "cranelift", any(unix, all(windows, target_arch = "x86_64")))))]
pub(in crate::engine) struct Frames;
