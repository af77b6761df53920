//! Symbols: resolves names of imports to addresses in this process.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};

/// Resolves names to addresses. It tries the symbols that you added, then the C library's functions that code needs
/// (its math, `memcpy` and the like). If enabled, it finally tries all symbols that this process exports.
#[derive(Clone, Debug)]
pub struct SymbolResolver {
    // Addresses, not pointers, so a resolver can be shared by threads. They refer to code, or to data that lives
    // forever.
    given: HashMap<String, usize>,
    math: bool,
    process: bool,
}

impl Default for SymbolResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl SymbolResolver {
    /// A resolver that knows only the C library's functions.
    pub fn new() -> Self {
        // instrumented code calls the sanitizer's runtime, which the process exports
        SymbolResolver { given: HashMap::new(), math: true, process: cfg!(generated_code_asan) }
    }

    /// Adds a symbol, replacing one of the same name.
    ///
    /// The address must stay valid as long as code that uses it.
    pub fn add(&mut self, name: impl Into<String>, address: *const u8) {
        self.given.insert(name.into(), address.expose_provenance());
    }

    /// Adds a table of symbols, such as the runtime's.
    pub fn add_all<N: Into<String>>(&mut self, table: impl IntoIterator<Item = (N, *const u8)>) {
        self.given.extend(table.into_iter().map(|(name, address)| (name.into(), address.expose_provenance())));
    }

    /// Searches the exports of the process as well, after all other symbols.
    ///
    /// An executable that is statically linked with musl has no dynamic loader, so the search finds nothing there.
    pub fn search_process(&mut self) {
        self.process = true;
    }

    /// The address of a symbol, if it is known.
    pub fn resolve(&self, name: &str) -> Option<*const u8> {
        if let Some(&address) = self.given.get(name) {
            return Some(std::ptr::with_exposed_provenance(address));
        }
        if self.math
            && let Some(address) = c_function(name)
        {
            return Some(address);
        }
        if self.process { process_symbol(name) } else { None }
    }
}

/// A table of C functions, each with one prototype. They are linked, so nothing is searched at run time.
macro_rules! c_functions {
    ($($(#[$condition:meta])* $name:ident: fn($($arg:ty),*) -> $ret:ty;)*) => {
        mod c {
            #[allow(unused_imports)] // some functions exist only on some systems
            use super::{c_char, c_int, c_void};

            unsafe extern "C" {
                $($(#[$condition])* pub(super) fn $name($(_: $arg),*) -> $ret;)*
            }
        }

        /// A function of the C library, or on Windows of kernel32.
        fn c_function(name: &str) -> Option<*const u8> {
            match name {
                $($(#[$condition])* stringify!($name) => Some(c::$name as unsafe extern "C" fn($($arg),*) -> $ret as *const u8),)*
                _ => None,
            }
        }

        /// All of these functions, with their addresses. A `JITModule` can't find them in a static executable or in
        /// kernel32.
        #[cfg(feature = "_engine")]
        pub(crate) fn c_functions() -> impl Iterator<Item = (&'static str, *const u8)> {
            let names = [$($(#[$condition])* stringify!($name)),*];
            names.into_iter().filter_map(|name| Some((name, c_function(name)?)))
        }
    };
}

c_functions! {
    sqrtf: fn(f32) -> f32;
    sqrt: fn(f64) -> f64;
    cbrtf: fn(f32) -> f32;
    cbrt: fn(f64) -> f64;
    expf: fn(f32) -> f32;
    exp: fn(f64) -> f64;
    exp2f: fn(f32) -> f32;
    exp2: fn(f64) -> f64;
    expm1f: fn(f32) -> f32;
    expm1: fn(f64) -> f64;
    logf: fn(f32) -> f32;
    log: fn(f64) -> f64;
    log2f: fn(f32) -> f32;
    log2: fn(f64) -> f64;
    log10f: fn(f32) -> f32;
    log10: fn(f64) -> f64;
    log1pf: fn(f32) -> f32;
    log1p: fn(f64) -> f64;
    sinf: fn(f32) -> f32;
    sin: fn(f64) -> f64;
    cosf: fn(f32) -> f32;
    cos: fn(f64) -> f64;
    tanf: fn(f32) -> f32;
    tan: fn(f64) -> f64;
    asinf: fn(f32) -> f32;
    asin: fn(f64) -> f64;
    acosf: fn(f32) -> f32;
    acos: fn(f64) -> f64;
    atanf: fn(f32) -> f32;
    atan: fn(f64) -> f64;
    atan2f: fn(f32, f32) -> f32;
    atan2: fn(f64, f64) -> f64;
    sinhf: fn(f32) -> f32;
    sinh: fn(f64) -> f64;
    coshf: fn(f32) -> f32;
    cosh: fn(f64) -> f64;
    tanhf: fn(f32) -> f32;
    tanh: fn(f64) -> f64;
    asinhf: fn(f32) -> f32;
    asinh: fn(f64) -> f64;
    acoshf: fn(f32) -> f32;
    acosh: fn(f64) -> f64;
    atanhf: fn(f32) -> f32;
    atanh: fn(f64) -> f64;
    erff: fn(f32) -> f32;
    erf: fn(f64) -> f64;
    erfcf: fn(f32) -> f32;
    erfc: fn(f64) -> f64;
    powf: fn(f32, f32) -> f32;
    pow: fn(f64, f64) -> f64;
    fmodf: fn(f32, f32) -> f32;
    fmod: fn(f64, f64) -> f64;
    hypotf: fn(f32, f32) -> f32;
    hypot: fn(f64, f64) -> f64;
    fmaf: fn(f32, f32, f32) -> f32;
    fma: fn(f64, f64, f64) -> f64;
    floorf: fn(f32) -> f32;
    floor: fn(f64) -> f64;
    ceilf: fn(f32) -> f32;
    ceil: fn(f64) -> f64;
    truncf: fn(f32) -> f32;
    trunc: fn(f64) -> f64;
    roundf: fn(f32) -> f32;
    round: fn(f64) -> f64;
    rintf: fn(f32) -> f32;
    rint: fn(f64) -> f64;
    nearbyintf: fn(f32) -> f32;
    nearbyint: fn(f64) -> f64;
    // LLVM replaces loops with calls of these.
    memcpy: fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    memmove: fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    memset: fn(*mut c_void, c_int, usize) -> *mut c_void;
    memcmp: fn(*const c_void, *const c_void, usize) -> c_int;
    // Windows has no such function, and LLVM doesn't call it there.
    #[cfg(unix)]
    bcmp: fn(*const c_void, *const c_void, usize) -> c_int;
    strlen: fn(*const c_char) -> usize;
    // Launches find a device's driver with these. They wait with the last one while another thread does first-use work.
    #[cfg(unix)]
    dlopen: fn(*const c_char, c_int) -> *mut c_void;
    #[cfg(unix)]
    dlsym: fn(*mut c_void, *const c_char) -> *mut c_void;
    #[cfg(unix)]
    dlerror: fn() -> *const c_char;
    #[cfg(unix)]
    nanosleep: fn(*const c_void, *mut c_void) -> c_int;
    #[cfg(windows)]
    LoadLibraryA: fn(*const c_char) -> *mut c_void;
    #[cfg(windows)]
    GetProcAddress: fn(*mut c_void, *const c_char) -> *mut c_void;
    #[cfg(windows)]
    Sleep: fn(u32) -> ();
    // GCC generates calls of these: for `sin` and `cos` of one angle, and for functions with arrays if the distribution
    // enables stack protection.
    #[cfg(target_os = "linux")]
    sincosf: fn(f32, *mut f32, *mut f32) -> ();
    #[cfg(target_os = "linux")]
    sincos: fn(f64, *mut f64, *mut f64) -> ();
    #[cfg(target_os = "linux")]
    __stack_chk_fail: fn() -> ();
}

/// The address that the dynamic linker finds under a name, starting at the executable.
#[cfg(unix)]
fn process_symbol(name: &str) -> Option<*const u8> {
    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

    // SAFETY: the process itself is already open, so no initialisers run.
    let this = unsafe { Library::open(None::<&str>, RTLD_LAZY | RTLD_LOCAL) }.ok()?;
    // SAFETY: nothing is read through the symbol; only its address is used.
    let symbol = unsafe { this.get::<*const u8>(name.as_bytes()) }.ok()?;
    // Closing the handle of the process itself unloads nothing.
    some_address(symbol.as_raw_ptr())
}

/// The address that a module of this process exports under a name. The executable comes first; the others follow in the
/// order in which they were loaded.
#[cfg(windows)]
fn process_symbol(name: &str) -> Option<*const u8> {
    use windows_sys::Win32::Foundation::HMODULE;
    use windows_sys::Win32::System::LibraryLoader::GetProcAddress;
    use windows_sys::Win32::System::ProcessStatus::K32EnumProcessModules;
    use windows_sys::Win32::System::Threading::GetCurrentProcess;

    let name = std::ffi::CString::new(name).ok()?;
    let mut modules: Vec<HMODULE> = vec![std::ptr::null_mut(); 64];
    loop {
        let size = size_of_val(&modules[..]) as u32;
        let mut needed = 0;
        // SAFETY: `size` bytes may be written to the vector.
        if unsafe { K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), size, &mut needed) } == 0 {
            return None;
        }
        // a module may be loaded between two calls
        let fits = needed <= size;
        modules.resize(needed as usize / size_of::<HMODULE>(), std::ptr::null_mut());
        if fits {
            break;
        }
    }
    modules.into_iter().find_map(|module| {
        // SAFETY: the name ends with a zero. A module that was unloaded in the meantime has no symbols.
        let symbol = unsafe { GetProcAddress(module, name.as_ptr().cast()) };
        some_address(symbol.map_or(std::ptr::null_mut(), |symbol| symbol as *mut c_void))
    })
}

#[cfg(any(unix, windows))]
fn some_address(symbol: *mut c_void) -> Option<*const u8> {
    (!symbol.is_null()).then_some(symbol as *const u8)
}

#[cfg(not(any(unix, windows)))]
fn process_symbol(_: &str) -> Option<*const u8> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_symbols_come_first() {
        let mut symbols = SymbolResolver::new();
        assert!(symbols.resolve("expf").is_some());
        let mine = (&raw const *"mine").cast::<u8>();
        symbols.add("expf", mine);
        assert_eq!(symbols.resolve("expf"), Some(mine));
    }

    #[test]
    fn the_process_is_searched_only_if_wanted() {
        let mut symbols = SymbolResolver::new();
        assert_eq!(symbols.resolve("getenv"), None);
        symbols.search_process();
        let has_loader = !cfg!(all(target_env = "musl", target_feature = "crt-static"));
        assert_eq!(symbols.resolve("getenv").is_some(), has_loader);
        assert_eq!(symbols.resolve("no_such_symbol_anywhere"), None);
        assert_eq!(symbols.resolve("a\0b"), None);
    }
}
