//! Finds runtimes using the system's loader of ELF and Mach-O files.

use std::ffi::{CStr, CString, c_void};

use super::{MARK, Runtime};

/// The runtimes of this process, without duplicates. The global one is first: that of libraries that don't name a
/// runtime.
pub(crate) fn runtimes() -> Vec<Runtime> {
    let mut found: Vec<Runtime> = global_runtime().into_iter().collect();
    for file in files() {
        // SAFETY: with `RTLD_NOLOAD` this loads nothing. For a library that was closed meanwhile it returns NULL.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        match runtime_of(handle) {
            Some(runtime) if found.iter().all(|other| other.base != runtime.base) => found.push(runtime),
            _ if handle.is_null() => {}
            // SAFETY: the handle was just opened, and nothing else uses it.
            _ => drop(unsafe { libc::dlclose(handle) }),
        }
    }
    found
}

/// The global runtime, which libraries use if they don't name one.
pub(crate) fn global_runtime() -> Option<Runtime> {
    runtime_of(global_handle())
}

/// The address of the global runtime's [`MARK`]; NULL if there is no global runtime.
pub(super) fn global_mark() -> *mut c_void {
    let handle = global_handle();
    if handle.is_null() { handle } else { symbol(handle.expose_provenance(), MARK) }
}

fn global_handle() -> *mut c_void {
    // SAFETY: the process itself is already open, so this runs no initialisers.
    unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) }
}

/// The runtime that provides the functions found through a handle.
fn runtime_of(handle: *mut c_void) -> Option<Runtime> {
    if handle.is_null() {
        return None;
    }
    let mark = symbol(handle.expose_provenance(), MARK);
    (!mark.is_null()).then(|| {
        let (base, file) = file_of(mark);
        Runtime { handle: handle.expose_provenance(), base, file }
    })
}

/// The start address of the file that contains this code.
pub(super) fn own_base() -> usize {
    file_of(here()).0
}

/// An address in this file.
fn here() -> *mut c_void {
    // A Rust static, since the loader may resolve a C symbol to another file.
    static HERE: u8 = 0;
    (&raw const HERE).cast_mut().cast()
}

/// The file that contains this code.
pub(super) fn own_file() -> String {
    file_of(here()).1
}

/// The file that contains an address, unless it is this code's file.
pub(super) fn elsewhere(address: *const c_void) -> Option<String> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if is_in_this_file(address) {
        return None;
    }
    let (base, file) = file_of(address.cast_mut());
    (base != 0 && base != own_base()).then_some(file)
}

/// True if an address is in this file. The loader's list of segments answers this much faster than `dladdr`, which
/// searches symbols. Speed matters here because every new engine calls this.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_in_this_file(address: *const c_void) -> bool {
    struct Search {
        wanted: usize,
        here: usize,
        is_here: bool,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        search: *mut c_void,
    ) -> std::ffi::c_int {
        // SAFETY: the loader passes a filled structure with `dlpi_phnum` headers, and the `Search` below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        let has = |address: usize| {
            (0..usize::from(info.dlpi_phnum)).any(|number| {
                // SAFETY: as above.
                let segment = unsafe { &*info.dlpi_phdr.add(number) };
                let start = (info.dlpi_addr as usize).wrapping_add(segment.p_vaddr as usize);
                segment.p_type == libc::PT_LOAD && address.wrapping_sub(start) < segment.p_memsz as usize
            })
        };
        if !has(search.here) {
            return 0;
        }
        search.is_here = has(search.wanted);
        // Stop iterating.
        1
    }
    let mut search = Search { wanted: address.addr(), here: here().addr(), is_here: false };
    // SAFETY: the callback takes a `Search`. It doesn't unwind, and doesn't load libraries.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.is_here
}

/// The start address and the name of the file that contains an address.
fn file_of(address: *mut c_void) -> (usize, String) {
    // SAFETY: all bits zero are a valid structure of pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` accepts any address, and the structure is writable.
    let is_known = unsafe { libc::dladdr(address, &raw mut info) } != 0;
    if !is_known || info.dli_fname.is_null() {
        return (0, "this program".to_owned());
    }
    // SAFETY: the loader's name of an open file is a C string.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    (info.dli_fbase.addr(), name)
}

/// The address of a symbol; NULL if it doesn't exist.
pub(super) fn symbol(handle: usize, name: &CStr) -> *mut c_void {
    // SAFETY: `dlopen` returned the handle.
    unsafe { libc::dlsym(std::ptr::with_exposed_provenance_mut(handle), name.as_ptr()) }
}

/// Opens a library until the process ends, so other libraries find its symbols.
#[allow(dead_code, reason = "only an external runtime is opened")]
pub(crate) fn open(file: &str) -> Result<Runtime, String> {
    let name = CString::new(file).map_err(|_| format!("{file:?}: the name has a NUL"))?;
    // SAFETY: the code that selects an external runtime is responsible for its initialisers.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: this returns the thread's last message. It is NULL, or a string valid until the next loader call.
        let message = unsafe { libc::dlerror() };
        if message.is_null() {
            return Err(format!("{file}: not found"));
        }
        // SAFETY: as above.
        return Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned());
    }
    runtime_of(handle)
        .ok_or_else(|| format!("{file} isn't a TVM FFI runtime: it doesn't export `{}`", MARK.to_string_lossy()))
}

/// The open files.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn files() -> Vec<CString> {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        files: *mut c_void,
    ) -> std::ffi::c_int {
        // SAFETY: the loader passes a filled structure, and the list `files` below.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() && *name != 0 {
                (*files.cast::<Vec<CString>>()).push(CStr::from_ptr(name).to_owned());
            }
        }
        0
    }
    let mut files: Vec<CString> = Vec::new();
    // SAFETY: the callback takes a list of files. It loads nothing, and fails only if memory can't be allocated, which
    // ends the process.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut files).cast()) };
    files
}

/// The usual file names of runtimes. These systems have no common interface that lists the open files.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn files() -> Vec<CString> {
    let suffix = if cfg!(target_vendor = "apple") { "dylib" } else { "so" };
    let names = ["libtvm_ffi", "libtvm_ffi_runtime"];
    names.iter().filter_map(|name| CString::new(format!("{name}.{suffix}")).ok()).collect()
}

/// A number that grows when a library is opened; `None` if the system doesn't report one.
pub(crate) fn changes() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" fn note(
            info: *mut libc::dl_phdr_info,
            _size: libc::size_t,
            adds: *mut c_void,
        ) -> std::ffi::c_int {
            // SAFETY: glibc passes the whole structure, and the number below.
            unsafe { *adds.cast::<u64>() = (*info).dlpi_adds };
            // Stop iterating.
            1
        }
        let mut adds = 0u64;
        // SAFETY: the callback takes a `u64`. It doesn't unwind, and doesn't load libraries.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut adds).cast()) };
        Some(adds)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}
