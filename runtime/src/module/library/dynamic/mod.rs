//! Shared libraries, opened lazily and locally, as upstream.

use std::ffi::{CStr, c_void};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::Library;

use super::symbols::{Address, SymbolLookup};
use crate::abi::symbol::FUNCTION;
use crate::error::{Error, Result, runtime_error};
#[cfg(not(windows))]
use crate::handed_down::c_symbols as symbols;

#[cfg(windows)]
mod windows;

/// Advice for a program with a runtime that is hidden on purpose.
#[cfg(all(not(windows), feature = "hidden"))]
const NOT_EXPORTED: &str = "The library uses a TVM FFI runtime of the process, and the one that loads it is hidden: \
`tvm-ffi-runtime` was built with its feature `hidden`. Build it without that feature, or with the feature `external`";

/// Advice for an executable that doesn't export this crate's symbols to a library.
#[cfg(all(not(windows), not(feature = "hidden")))]
const NOT_EXPORTED: &str = "The library uses the TVM FFI runtime of this process, and this executable doesn't export \
its symbols. Link it with `-rdynamic`: for a Rust program, let the final crate's build script print \
`cargo::rustc-link-arg-bins=-rdynamic` (`-examples`, `-tests`, `-benches` instead of `-bins` for those)";

/// Advice for an executable without a dynamic loader.
#[cfg(unix)]
const STATIC: &str = "This executable is statically linked and has no dynamic loader. Link it dynamically (a Rust \
program with `-C target-feature=-crt-static`), or link the library's objects into it as a system library";

/// An open library. By default it stays open when this value is dropped. Values, functions and threads that it has made
/// need its code, and the runtime can't know whether any exist.
struct DynamicLibrary {
    library: ManuallyDrop<Library>,
    /// The library's handle, for looking up symbols without the allocations of `Library::get`.
    #[cfg(unix)]
    handle: *mut c_void,
    may_close: AtomicBool,
}

// SAFETY: any thread may look for symbols.
#[cfg(unix)]
unsafe impl Send for DynamicLibrary {}
// SAFETY: as above.
#[cfg(unix)]
unsafe impl Sync for DynamicLibrary {}

impl Drop for DynamicLibrary {
    fn drop(&mut self) {
        if *self.may_close.get_mut() {
            // SAFETY: by the contract of `close_when_unused`, the library isn't used any more. This runs once.
            unsafe { ManuallyDrop::drop(&mut self.library) };
        }
    }
}

impl SymbolLookup for DynamicLibrary {
    fn symbol(&self, name: &str) -> Option<Address> {
        self.joined("", name)
    }

    fn function(&self, name: &str) -> Option<Address> {
        self.joined(FUNCTION, name)
    }

    fn description(&self, before: &str, name: &str) -> Option<Address> {
        self.joined(before, name)
    }

    unsafe fn close_when_unused(&self) -> bool {
        self.may_close.store(true, Ordering::Release);
        true
    }
}

impl DynamicLibrary {
    #[cfg(unix)]
    fn new(library: Library) -> Self {
        use libloading::os::unix::Library as UnixLibrary;

        let handle = UnixLibrary::from(library).into_raw();
        // SAFETY: the handle has just been taken from the library.
        let library = unsafe { UnixLibrary::from_raw(handle) };
        Self { library: ManuallyDrop::new(library.into()), handle, may_close: AtomicBool::new(false) }
    }

    #[cfg(not(unix))]
    fn new(library: Library) -> Self {
        Self { library: ManuallyDrop::new(library), may_close: AtomicBool::new(false) }
    }

    /// The symbol with the name `before` followed by `name`.
    fn joined(&self, before: &str, name: &str) -> Option<Address> {
        // Nearly all names fit into this buffer, which avoids an allocation.
        let mut place = [0; 256];
        let len = before.len() + name.len();
        let long;
        let name = match place.get_mut(..=len) {
            Some(place) => {
                let (start, end) = place.split_at_mut(before.len());
                start.copy_from_slice(before.as_bytes());
                end[..name.len()].copy_from_slice(name.as_bytes());
                &*place
            }
            None => {
                long = [before.as_bytes(), name.as_bytes(), &[0]].concat();
                &long[..]
            }
        };
        // Reject a name that contains NUL: the loader would look up only the part before it.
        self.named(CStr::from_bytes_with_nul(name).ok()?)
    }

    #[cfg(unix)]
    fn named(&self, name: &CStr) -> Option<Address> {
        // SAFETY: the handle is that of the open library.
        Address::new(unsafe { libc::dlsym(self.handle, name.as_ptr()) })
    }

    #[cfg(not(unix))]
    fn named(&self, name: &CStr) -> Option<Address> {
        // SAFETY: this reads the symbol as an address, which is valid for a symbol of any type.
        let symbol = unsafe { self.library.get::<*mut c_void>(name) };
        symbol.ok().and_then(|symbol| Address::new(*symbol))
    }
}

/// Opens a library.
pub(super) fn open(path: &str) -> Result<impl SymbolLookup + 'static> {
    let library = DynamicLibrary::new(open_library(path)?);
    #[cfg(not(windows))]
    if !is_exported() {
        refuse_another_runtime(path, &library)?;
    }
    Ok(library)
}

fn failed(path: &str, error: &libloading::Error) -> Error {
    let mut message = format!("Failed to load dynamic shared library {path}: {error}");
    // The loader's own message is in the error's sources.
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        message.push_str(&format!(": {error}"));
        source = error.source();
    }
    #[cfg(windows)]
    message.push_str(&windows::explain(path));
    #[cfg(not(windows))]
    if misses_runtime(&message) {
        message.push_str(&format!(". {NOT_EXPORTED}"));
    }
    runtime_error(&message)
}

/// True if a loader's message is about a symbol of this crate. The wording differs between glibc, musl and macOS.
#[cfg(not(windows))]
fn misses_runtime(message: &str) -> bool {
    message.contains("symbol") && symbols().iter().any(|(name, _)| message.contains(name))
}

#[cfg(unix)]
fn open_library(path: &str) -> Result<Library> {
    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};

    // SAFETY: the code that loads a library is responsible for its initialisers.
    let open = |flags| unsafe { Library::open(Some(path), flags | RTLD_LOCAL) };
    if !is_exported() {
        if let Err(error) = this_process() {
            return Err(runtime_error(&format!("{}. {STATIC}", failed(path, &error).message())));
        }
        // Bind all functions now, since a later call of a missing one would end the process.
        match open(RTLD_NOW) {
            Ok(library) => return Ok(library.into()),
            Err(error) => {
                let error = failed(path, &error);
                if error.message().ends_with(NOT_EXPORTED) {
                    return Err(error);
                }
            }
        }
    }
    open(RTLD_LAZY).map(Into::into).map_err(|error| failed(path, &error))
}

#[cfg(not(unix))]
fn open_library(path: &str) -> Result<Library> {
    // SAFETY: the code that loads a library is responsible for its initialisers.
    let library = unsafe { Library::new(path) }.map_err(|error| failed(path, &error))?;
    #[cfg(windows)]
    let library = windows::expect_this_runtime(path, library)?;
    Ok(library)
}

/// The process's own symbols. An executable without a dynamic loader has none.
#[cfg(unix)]
fn this_process() -> std::result::Result<libloading::os::unix::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

    // SAFETY: the process itself is open already, so this runs no initialisers.
    unsafe { Library::open(None::<&str>, RTLD_LAZY | RTLD_LOCAL) }
}

/// True if newly opened libraries bind to this crate's symbols, rather than to another runtime's or to none.
#[cfg(unix)]
fn is_exported() -> bool {
    static EXPORTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *EXPORTED.get_or_init(|| {
        let Ok(this) = this_process() else { return false };
        // Check all of them: naming each one also makes the linker keep it.
        symbols().iter().all(|(name, address)| {
            // SAFETY: this reads the symbol as an address, which is valid for a symbol of any type.
            let symbol = unsafe { this.get::<*const c_void>(*name) };
            symbol.is_ok_and(|symbol| *symbol == address.as_ptr())
        })
    })
}

#[cfg(not(any(unix, windows)))]
fn is_exported() -> bool {
    false
}

/// Refuses a library that uses another runtime: an error raised in one runtime can't be read from the other.
#[cfg(not(windows))]
fn refuse_another_runtime(path: &str, library: &DynamicLibrary) -> Result<()> {
    let another = symbols().iter().find(|(name, address)| {
        library.symbol(name).is_some_and(|found| !std::ptr::eq(found.as_ptr(), address.as_ptr()))
    });
    match another {
        None => Ok(()),
        Some((name, _)) => Err(runtime_error(&format!(
            "Failed to load dynamic shared library {path}: its `{name}` is that of another TVM FFI runtime. \
             {NOT_EXPORTED}"
        ))),
    }
}

#[cfg(all(test, unix, not(miri)))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The executable of unit tests exports nothing: `rustc-link-arg-tests` is for integration tests.
    #[test]
    #[cfg_attr(
        all(target_env = "musl", target_feature = "crt-static"),
        ignore = "a static executable loads no library"
    )]
    fn an_executable_that_exports_nothing_is_told_so() {
        assert!(!is_exported());
        let directory = tempfile::tempdir().unwrap();
        let compile = |name: &str, text: &str| {
            let (source, library) = (directory.path().join("source.c"), directory.path().join(name));
            std::fs::write(&source, text).unwrap();
            let mut command = std::process::Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
            command.args(cfg!(target_os = "macos").then_some("-Wl,-undefined,dynamic_lookup"));
            assert!(command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap().success());
            library.to_str().unwrap().to_owned()
        };
        let error = |path: &str| open(path).map(drop).unwrap_err().message().to_owned();

        // A missing function: lazy binding would look it up only when it is called.
        let calls =
            compile("calls.so", "int TVMFFIEnvCheckSignals(void); int f(void) { return TVMFFIEnvCheckSignals(); }");
        let message = error(&calls);
        assert!(message.contains("TVMFFIEnvCheckSignals") && message.ends_with(NOT_EXPORTED), "{message}");

        let brings = compile("brings.so", "int TVMFFIEnvCheckSignals(void) { return 0; }");
        let message = error(&brings);
        assert!(message.contains("of another TVM FFI runtime") && message.ends_with(NOT_EXPORTED), "{message}");

        let needs_nothing = compile("nothing.so", "int f(void) { return 1; }");
        assert!(open(&needs_nothing).unwrap().symbol("f").is_some());
        // Any other missing function fails only when it is called, as upstream.
        let lazy = compile("lazy.so", "int no_such_function(void); int f(void) { return no_such_function(); }");
        assert!(open(&lazy).unwrap().symbol("f").is_some());
    }
}
