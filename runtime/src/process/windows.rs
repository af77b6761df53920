//! Finds runtimes among the modules of a Windows process.

use std::ffi::{CStr, c_void};

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{GetModuleFileNameW, GetProcAddress};
use windows_sys::Win32::System::ProcessStatus::K32EnumProcessModules;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::{MARK, Runtime};

/// The runtimes of this process. None of them is global, since a DLL names the file of each symbol that it imports.
pub(crate) fn runtimes() -> Vec<Runtime> {
    modules().into_iter().filter_map(runtime_of).collect()
}

/// The modules of this process; empty if Windows doesn't list them.
fn modules() -> Vec<HMODULE> {
    let mut modules: Vec<HMODULE> = vec![std::ptr::null_mut(); 256];
    loop {
        let mut needed = 0;
        let size = u32::try_from(size_of_val(modules.as_slice())).unwrap_or(u32::MAX);
        // SAFETY: the list has room for `size` bytes.
        if unsafe { K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), size, &raw mut needed) } == 0 {
            return Vec::new();
        }
        let count = needed as usize / size_of::<HMODULE>();
        if count <= modules.len() {
            modules.truncate(count);
            return modules;
        }
        // with room for modules that other threads load meanwhile
        modules.resize(count + 64, std::ptr::null_mut());
    }
}

/// The global runtime, which libraries use if they don't name one. On Windows each library names its own.
pub(crate) fn global_runtime() -> Option<Runtime> {
    None
}

/// The address of the global runtime's [`MARK`]; always NULL on Windows.
pub(super) fn global_mark() -> *mut c_void {
    std::ptr::null_mut()
}

fn runtime_of(module: HMODULE) -> Option<Runtime> {
    let handle = module.expose_provenance();
    let mark = symbol(handle, MARK);
    (!mark.is_null()).then(|| Runtime { handle, base: handle, file: file_of(module) })
}

/// The start address of the module that contains this code.
pub(super) fn own_base() -> usize {
    use windows_sys::Win32::System::LibraryLoader::{
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleHandleExW,
    };

    static HERE: u8 = 0;
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module: HMODULE = std::ptr::null_mut();
    // SAFETY: with these flags the name is any address, and `module` is writable.
    unsafe { GetModuleHandleExW(flags, (&raw const HERE).cast(), &raw mut module) };
    module.expose_provenance()
}

/// The path of a module's file.
fn file_of(module: HMODULE) -> String {
    // the max number of UTF-16 units in a path of Windows
    const MAX: usize = 1 << 15;
    let mut name = vec![0_u16; 260];
    loop {
        // SAFETY: the buffer has the given length.
        let len = unsafe { GetModuleFileNameW(module, name.as_mut_ptr(), name.len() as u32) } as usize;
        // a path that doesn't fit fills the buffer
        if len < name.len() || name.len() >= MAX {
            return String::from_utf16_lossy(&name[..len.min(name.len())]);
        }
        name.resize(2 * name.len(), 0);
    }
}

/// The address of a symbol; NULL if it doesn't exist.
pub(super) fn symbol(handle: usize, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is that of a module, and the name ends with NUL.
    let found = unsafe { GetProcAddress(std::ptr::with_exposed_provenance_mut(handle), name.as_ptr().cast()) };
    found.map_or(std::ptr::null_mut(), |function| function as *mut c_void)
}

/// Opens a library until the process ends.
#[allow(dead_code, reason = "only an external runtime is opened")]
pub(crate) fn open(file: &str) -> Result<Runtime, String> {
    use windows_sys::Win32::System::LibraryLoader::LoadLibraryW;

    let name: Vec<u16> = file.encode_utf16().chain([0]).collect();
    // SAFETY: the code that selects an external runtime is responsible for its initialisers. The name ends with NUL.
    let module = unsafe { LoadLibraryW(name.as_ptr()) };
    if module.is_null() {
        return Err(format!("{file}: {}", std::io::Error::last_os_error()));
    }
    runtime_of(module)
        .ok_or_else(|| format!("{file} isn't a TVM FFI runtime: it doesn't export `{}`", MARK.to_string_lossy()))
}

/// The file that contains this code.
pub(super) fn own_file() -> String {
    file_of(std::ptr::with_exposed_provenance_mut(own_base()))
}

/// The file that contains an address, unless it is this code's. A reference in a DLL to its own symbol resolves to
/// itself, so always `None`.
pub(super) fn elsewhere(_address: *const c_void) -> Option<String> {
    None
}

/// A number that grows when a library is opened. Windows doesn't report one.
pub(crate) fn changes() -> Option<u64> {
    None
}
