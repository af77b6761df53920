//! Libraries on Windows. For each imported symbol they name the image (a program or a library) that exports it.

use std::ffi::{CString, OsString, c_void};
use std::os::windows::ffi::OsStringExt;
use std::path::Path;
use std::ptr;

use libloading::Library;
use libloading::os::windows::{LOAD_LIBRARY_AS_IMAGE_RESOURCE, Library as WindowsLibrary};
use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleFileNameW,
    GetModuleHandleExW, GetProcAddress,
};

use self::image::Image;
use crate::error::{Result, runtime_error};
use crate::handed_down::c_symbols as symbols;

mod image;

/// Returns the library, unless it has bound a symbol of the C API to a runtime other than this crate. An error raised
/// in one runtime can't be read from the other.
pub(super) fn expect_this_runtime(path: &str, library: Library) -> Result<Library> {
    let handle = WindowsLibrary::from(library).into_raw();
    // SAFETY: the handle has just been taken from the library.
    let library: Library = unsafe { WindowsLibrary::from_raw(handle) }.into();
    // SAFETY: the library is loaded, and closed at the end of this function at the earliest.
    let imports = unsafe { Image::at(base(handle)) }.map(|image| image.imports()).unwrap_or_default();
    let own = own_image();
    for import in imports {
        let Some((name, address)) = import.symbol.as_deref().and_then(of_runtime) else { continue };
        let bound = import.address as *const c_void;
        // An export may be a jump to the function.
        if bound != address && own.and_then(|own| exported(own, name)) != Some(bound) {
            // Don't close it: it has run its initialisers, and their results may be in use.
            std::mem::forget(library);
            return Err(runtime_error(&format!(
                "Failed to load dynamic shared library {path}: its `{name}` is that of another TVM FFI runtime, {}. {}",
                import.image,
                advice()
            )));
        }
    }
    Ok(library)
}

/// The reason why a library isn't loaded, to append to Windows' message. That has only an error number, without the
/// name of the missing library or symbol. Empty if no reason is found.
pub(super) fn explain(path: &str) -> String {
    // Windows searches several directories for a name without a path.
    if path.contains(['/', '\\']) && !Path::new(path).exists() {
        return ": there is no such file".to_owned();
    }
    // SAFETY: the library is only mapped, and none of its code runs.
    let Ok(mapped) = (unsafe { WindowsLibrary::load_with_flags(path, LOAD_LIBRARY_AS_IMAGE_RESOURCE) }) else {
        return String::new();
    };
    let handle = mapped.into_raw();
    // SAFETY: the library stays mapped until it is dropped below.
    let imports = unsafe { Image::at(base(handle)) }.map(|image| image.imports()).unwrap_or_default();
    // SAFETY: the handle has been taken from the library.
    drop(unsafe { WindowsLibrary::from_raw(handle) });
    for import in imports {
        let needs_runtime = import.symbol.as_deref().and_then(of_runtime).is_some();
        let advice = if needs_runtime { format!(". {}", advice()) } else { String::new() };
        // SAFETY: this runs no initialisers that the caller didn't allow: the loader has just tried to load it, too.
        let Ok(library) = (unsafe { Library::new(&import.image) }) else {
            return format!(": it needs {}, which can't be loaded{advice}", import.image);
        };
        let Some(symbol) = &import.symbol else { continue };
        // SAFETY: this only looks up the symbol's address.
        if unsafe { library.get::<*const c_void>(&**symbol) }.is_err() {
            return format!(": it needs `{symbol}`, which {} doesn't have{advice}", import.image);
        }
    }
    String::new()
}

/// The symbol of the C API of that name.
fn of_runtime(name: &str) -> Option<(&'static str, *const c_void)> {
    symbols().iter().find(|(known, _)| *known == name).map(|(name, address)| (*name, address.as_ptr()))
}

/// Advice for a library that isn't bound to this runtime.
fn advice() -> String {
    let own = own_image().and_then(file_name).unwrap_or_else(|| "this program".to_owned());
    format!(
        "The TVM FFI runtime of this process is in {own}: link the library against that file, from which it then takes \
         the symbols (`Linker::runtime` of tvm-ffi-codegen, or `--runtime` of its command line)"
    )
}

/// The image that this crate is a part of.
fn own_image() -> Option<HMODULE> {
    let (_, address) = symbols().first()?;
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut handle = ptr::null_mut();
    // SAFETY: with these flags the name is any address rather than a string. The handle is written to a variable of its
    // type.
    let found = unsafe { GetModuleHandleExW(flags, address.as_ptr().cast(), &mut handle) };
    (found != 0).then_some(handle)
}

/// The address at which an image exports a symbol.
fn exported(image: HMODULE, name: &str) -> Option<*const c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: the image contains this code, so it is loaded. The name ends with NUL.
    unsafe { GetProcAddress(image, name.as_ptr().cast()) }.map(|address| address as *const c_void)
}

fn file_name(image: HMODULE) -> Option<String> {
    const LONGEST: usize = 0x7fff;
    let mut path = vec![0; LONGEST];
    // SAFETY: the image is loaded, and the buffer has the given length.
    let len = unsafe { GetModuleFileNameW(image, path.as_mut_ptr(), LONGEST as u32) } as usize;
    let path = OsString::from_wide(path.get(..len)?);
    Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned())
}

/// The first address of an image. Windows stores how an image is mapped in the lowest bits of its handle.
fn base(handle: isize) -> *const u8 {
    ptr::with_exposed_provenance((handle & !3) as usize)
}
