//! Runtimes by the system's loader of ELF and Mach-O files.

use std::ffi::{CStr, CString, c_void};

use super::{MARK, Runtime};

/// The runtimes of this process: first the one that libraries find which don't name any, then others, each once.
pub(crate) fn runtimes() -> Vec<Runtime> {
    let mut found: Vec<Runtime> = global_runtime().into_iter().collect();
    for file in files() {
        // SAFETY: nothing is loaded here; a library that is gone meanwhile gives NULL.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        match runtime_of(handle, false) {
            Some(runtime) if found.iter().all(|other| other.base != runtime.base) => found.push(runtime),
            _ if handle.is_null() => {}
            // SAFETY: the handle was got just now, and nothing uses it.
            _ => drop(unsafe { libc::dlclose(handle) }),
        }
    }
    found
}

/// The runtime that libraries find which don't name any.
pub(super) fn global_runtime() -> Option<Runtime> {
    runtime_of(global_handle(), true)
}

/// The address of [`MARK`] that libraries find which don't name a runtime, NULL where there is none.
pub(super) fn global_mark() -> *mut c_void {
    let handle = global_handle();
    if handle.is_null() { handle } else { symbol(handle.expose_provenance(), MARK) }
}

fn global_handle() -> *mut c_void {
    // SAFETY: the process itself is open already, so that nothing is initialised.
    unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) }
}

/// The runtime whose functions are found through a handle.
fn runtime_of(handle: *mut c_void, is_global: bool) -> Option<Runtime> {
    if handle.is_null() {
        return None;
    }
    let mark = symbol(handle.expose_provenance(), MARK);
    (!mark.is_null()).then(|| {
        let (base, file) = file_of(mark);
        Runtime { handle: handle.expose_provenance(), base, file, is_global }
    })
}

/// Where the file begins that has this code.
pub(super) fn own_base() -> usize {
    file_of(here()).0
}

/// An address in this file.
fn here() -> *mut c_void {
    // Not a symbol of C, which the loader may find in another file.
    static HERE: u8 = 0;
    (&raw const HERE).cast_mut().cast()
}

/// The file that has this code.
#[cfg(not(feature = "external"))]
pub(super) fn own_file() -> String {
    file_of(here()).1
}

/// The file that has an address, if it isn't this code's.
#[cfg(not(feature = "external"))]
pub(super) fn elsewhere(address: *const c_void) -> Option<String> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if is_in_this_file(address) {
        return None;
    }
    let (base, file) = file_of(address.cast_mut());
    (base != 0 && base != own_base()).then_some(file)
}

/// Whether an address is in this file. The loader's list of segments tells it much sooner than `dladdr`, which goes through symbols: an engine asks as it
/// is made.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(feature = "external")))]
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
        // SAFETY: the loader passes a filled structure, whose headers are as many as it says, and the search below.
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
        // no more of them
        1
    }
    let mut search = Search { wanted: address.addr(), here: here().addr(), is_here: false };
    // SAFETY: the callback takes the search, and neither unwinds nor loads.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.is_here
}

/// The file that has an address: where it begins, and its name.
fn file_of(address: *mut c_void) -> (usize, String) {
    // SAFETY: all bits zero are a valid structure of pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the structure is writable.
    let is_known = unsafe { libc::dladdr(address, &raw mut info) } != 0;
    if !is_known || info.dli_fname.is_null() {
        return (0, "this program".to_owned());
    }
    // SAFETY: the loader's name of a file that is open.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    (info.dli_fbase.addr(), name)
}

/// The address of a symbol, NULL where there is none.
pub(super) fn symbol(handle: usize, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is one that `dlopen` gave.
    unsafe { libc::dlsym(std::ptr::with_exposed_provenance_mut(handle), name.as_ptr()) }
}

/// Opens a library for the life of the process, so that other libraries find its symbols.
#[cfg(feature = "external")]
pub(crate) fn open(file: &str) -> Result<Runtime, String> {
    let name = CString::new(file).map_err(|_| format!("{file:?}: the name has a NUL"))?;
    // SAFETY: whoever asks for an external runtime answers for what its initialisers do.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: the thread's last message, which is NULL or a string until the next call of the loader.
        let message = unsafe { libc::dlerror() };
        if message.is_null() {
            return Err(format!("{file}: not found"));
        }
        // SAFETY: as above.
        return Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned());
    }
    runtime_of(handle, true)
        .ok_or_else(|| format!("{file} is no TVM FFI runtime: it has no `{}`", MARK.to_string_lossy()))
}

/// The files that are open.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn files() -> Vec<CString> {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        files: *mut c_void,
    ) -> std::ffi::c_int {
        // SAFETY: the loader passes a filled structure, and the list that `files` below gives it.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() && *name != 0 {
                (*files.cast::<Vec<CString>>()).push(CStr::from_ptr(name).to_owned());
            }
        }
        0
    }
    let mut files: Vec<CString> = Vec::new();
    // SAFETY: the callback takes a list of files, unwinds for want of memory alone, which ends the process, and loads nothing.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut files).cast()) };
    files
}

/// The files by which runtimes are known: this system's loader has no list of what is open that all have.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn files() -> Vec<CString> {
    let suffix = if cfg!(target_vendor = "apple") { "dylib" } else { "so" };
    let names = ["libtvm_ffi", "libtvm_ffi_runtime"];
    names.iter().filter_map(|name| CString::new(format!("{name}.{suffix}")).ok()).collect()
}

/// A number that grows when a library is opened, where the system has it.
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
            // No more of them.
            1
        }
        let mut adds = 0u64;
        // SAFETY: the callback takes a number, and neither unwinds nor loads.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut adds).cast()) };
        Some(adds)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}
