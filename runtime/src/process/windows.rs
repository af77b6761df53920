//! Runtimes by the modules of a Windows process.

use std::ffi::{CStr, c_void};

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{GetModuleFileNameW, GetProcAddress};
use windows_sys::Win32::System::ProcessStatus::K32EnumProcessModules;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::{MARK, Runtime};

/// The runtimes of this process. None of them is global: a DLL names the file of each symbol.
pub(crate) fn runtimes() -> Vec<Runtime> {
    let mut modules: Vec<HMODULE> = vec![std::ptr::null_mut(); 1024];
    let mut needed = 0;
    let size = u32::try_from(size_of_val(modules.as_slice())).unwrap_or(u32::MAX);
    // SAFETY: the list has room for as many bytes as stated.
    let listed = unsafe { K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), size, &raw mut needed) };
    let len = if listed == 0 { 0 } else { needed as usize / size_of::<HMODULE>() };
    modules.iter().take(len).filter_map(|&module| runtime_of(module, false)).collect()
}

/// The runtime that libraries find which don't name any: on this system each names its own.
pub(super) fn global_runtime() -> Option<Runtime> {
    None
}

/// The address of its mark, NULL for none.
pub(super) fn global_mark() -> *mut c_void {
    std::ptr::null_mut()
}

fn runtime_of(module: HMODULE, is_global: bool) -> Option<Runtime> {
    let handle = module.expose_provenance();
    let mark = symbol(handle, MARK);
    (!mark.is_null()).then(|| Runtime { handle, base: handle, file: file_of(module), is_global })
}

/// Where the module begins that has this code.
pub(super) fn own_base() -> usize {
    use windows_sys::Win32::System::LibraryLoader::{
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleHandleExW,
    };

    static HERE: u8 = 0;
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module: HMODULE = std::ptr::null_mut();
    // SAFETY: with these flags the name is any address; the place is writable.
    unsafe { GetModuleHandleExW(flags, (&raw const HERE).cast(), &raw mut module) };
    module.expose_provenance()
}

fn file_of(module: HMODULE) -> String {
    let mut name = [0u16; 1024];
    // SAFETY: the buffer has as many characters as stated.
    let len = unsafe { GetModuleFileNameW(module, name.as_mut_ptr(), name.len() as u32) };
    String::from_utf16_lossy(&name[..(len as usize).min(name.len())])
}

/// The address of a symbol, NULL where there is none.
pub(super) fn symbol(handle: usize, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is that of a module, and the name ends with NUL.
    let found = unsafe { GetProcAddress(std::ptr::with_exposed_provenance_mut(handle), name.as_ptr().cast()) };
    found.map_or(std::ptr::null_mut(), |function| function as *mut c_void)
}

/// Opens a library for the life of the process.
#[cfg(feature = "external")]
pub(crate) fn open(file: &str) -> Result<Runtime, String> {
    use windows_sys::Win32::System::LibraryLoader::LoadLibraryW;

    let name: Vec<u16> = file.encode_utf16().chain([0]).collect();
    // SAFETY: whoever asks for an external runtime answers for what its initialisers do; the name ends with NUL.
    let module = unsafe { LoadLibraryW(name.as_ptr()) };
    if module.is_null() {
        return Err(format!("{file}: {}", std::io::Error::last_os_error()));
    }
    runtime_of(module, true)
        .ok_or_else(|| format!("{file} is no TVM FFI runtime: it has no `{}`", MARK.to_string_lossy()))
}

/// The file that has this code.
#[cfg(not(feature = "external"))]
pub(super) fn own_file() -> String {
    file_of(std::ptr::with_exposed_provenance_mut(own_base()))
}

/// The file that has an address, if it isn't this code's: a DLL's symbols lead to itself.
#[cfg(not(feature = "external"))]
pub(super) fn elsewhere(_address: *const c_void) -> Option<String> {
    None
}

/// A number that grows when a library is opened, which this system doesn't have.
pub(crate) fn changes() -> Option<u64> {
    None
}
