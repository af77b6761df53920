//! LLVM that is found while the program runs: `llvm-sys` declares its functions, [`stubs`] defines them, and [`load`] finds a libLLVM that has them.

mod initialize;
mod stubs;

use std::env;
use std::error::Error as _;
use std::ffi::{OsString, c_uint, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use super::Error;

/// Names the file of libLLVM. No other one is tried then.
const VARIABLE: &str = "TVM_FFI_CODEGEN_LIBLLVM";

/// The version whose C interface `llvm-sys` declares.
const VERSION: (c_uint, c_uint) = (22, 1);

/// The names and places of LLVM's library: the dynamic linker's own, then those of Debian and apt.llvm.org, Arch and Alpine, and Fedora.
#[cfg(not(any(target_vendor = "apple", windows)))]
const FILES: &[&str] = &[
    "libLLVM.so.22.1",
    "libLLVM-22.so",
    "/usr/lib/llvm-22/lib/libLLVM.so.22.1",
    "/usr/lib/llvm22/lib/libLLVM.so.22.1",
    "/usr/lib64/llvm22/lib64/libLLVM.so.22.1",
];

/// The places of LLVM's library: Homebrew's on both machines, of this version or the newest.
#[cfg(target_vendor = "apple")]
const FILES: &[&str] = &[
    "libLLVM.dylib",
    "/opt/homebrew/opt/llvm@22/lib/libLLVM.dylib",
    "/opt/homebrew/opt/llvm/lib/libLLVM.dylib",
    "/usr/local/opt/llvm@22/lib/libLLVM.dylib",
    "/usr/local/opt/llvm/lib/libLLVM.dylib",
];

/// The name of LLVM's library, which has the C interface.
#[cfg(windows)]
const FILES: &[&str] = &["LLVM-C.dll"];

/// The ends of functions that a libLLVM may be without: it was built without the code generator.
const OF_TARGETS: [&str; 6] = ["Target", "TargetInfo", "TargetMC", "AsmPrinter", "AsmParser", "Disassembler"];

/// The functions that the loaded LLVM doesn't have, once there is one.
static LACKING: OnceLock<Vec<&'static str>> = OnceLock::new();

/// Loads LLVM, unless it is. It stays: LLVM has state of its own, and can't be unloaded. After an error the next call tries again.
pub(super) fn load() -> Result<(), Error> {
    static LOADING: Mutex<()> = Mutex::new(());
    if LACKING.get().is_some() {
        return Ok(());
    }
    let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if LACKING.get().is_some() {
        return Ok(());
    }
    let lacking = load_first(&candidates())?;
    LACKING.get_or_init(|| lacking);
    Ok(())
}

/// Whether the loaded LLVM has a function.
pub(super) fn has(function: &str) -> bool {
    LACKING.get().is_some_and(|lacking| !lacking.contains(&function))
}

fn candidates() -> Vec<OsString> {
    match env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => vec![path],
        None => FILES.iter().map(OsString::from).collect(),
    }
}

/// Loads the first library that fits. Gives the functions that it lacks.
fn load_first(files: &[OsString]) -> Result<Vec<&'static str>, Error> {
    let mut problems = Vec::new();
    for file in files {
        match load_file(file) {
            Ok(lacking) => return Ok(lacking),
            // the dynamic linker's message begins with the file, too
            Err(problem) => {
                let start = format!("{}: ", file.display());
                problems.push(format!("{start}{}", problem.strip_prefix(&start).unwrap_or(&problem)));
            }
        }
    }
    let (major, minor) = VERSION;
    Err(Error::NotLoaded { version: format!("{major}.{minor}"), variable: VARIABLE, problems })
}

fn load_file(file: &OsString) -> Result<Vec<&'static str>, String> {
    let library = open(file).map_err(|error| reason(&error))?;
    let address = |name: &str| {
        // SAFETY: an address of any type, which isn't used before the version is known
        let symbol = unsafe { library.get::<unsafe extern "C" fn()>(name) };
        symbol.ok().map(|symbol| *symbol as *mut c_void)
    };
    check_version(&library)?;
    let addresses: Vec<Option<*mut c_void>> = stubs::names().map(address).collect();
    let lacking = stubs::names().zip(&addresses).filter(|(_, address)| address.is_none()).map(|(name, _)| name);
    let lacking: Vec<&str> = lacking.collect();
    let is_of_target =
        |name: &str| name.starts_with("LLVMInitialize") && OF_TARGETS.iter().any(|end| name.ends_with(end));
    if let Some(name) = lacking.iter().find(|name| !is_of_target(name)) {
        return Err(format!("it has no function `{name}`"));
    }
    // SAFETY: the addresses are those of LLVM's functions by their names, of the version that `llvm-sys` declares; the library is never unloaded.
    unsafe { stubs::fill(addresses.into_iter()) };
    std::mem::forget(library);
    Ok(lacking)
}

/// Opens a library, without making its symbols the process's.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn open(file: &OsString) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library as UnixLibrary, RTLD_LAZY, RTLD_LOCAL};

    // A library that has LLVM in it and exports LLVM's C++ symbols, as Triton's does, may have been loaded for the whole process. Then ours has to prefer its
    // own symbols to those. It doesn't always, since it would prefer the C library to a `malloc` that the process has in its place.
    // SAFETY: the symbol is only looked for.
    let is_other_visible = unsafe { UnixLibrary::this().get::<*const ()>("_ZN4llvm2cl6Option11addArgumentEv") }.is_ok();
    let own_first = if is_other_visible { libc::RTLD_DEEPBIND } else { 0 };
    // SAFETY: libLLVM's initialisers set up its own state alone.
    unsafe { UnixLibrary::open(Some(file), RTLD_LAZY | RTLD_LOCAL | own_first) }.map(Library::from)
}

/// Opens a library.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn open(file: &OsString) -> Result<Library, libloading::Error> {
    // SAFETY: libLLVM's initialisers set up its own state alone.
    unsafe { Library::new(file) }
}

/// Checks that a library is LLVM, and of the version whose functions are declared.
fn check_version(library: &Library) -> Result<(), String> {
    type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: `void LLVMGetVersion(unsigned*, unsigned*, unsigned*)` in every version from 16 on, which write all three.
    unsafe {
        let get = library.get::<GetVersion>(c"LLVMGetVersion").map_err(|_| "it is no LLVM".to_owned())?;
        get(&raw mut major, &raw mut minor, &raw mut patch);
    }
    match (major, minor) == VERSION {
        true => Ok(()),
        false => Err(format!("it is LLVM {major}.{minor}.{patch}")),
    }
}

/// The system's words for a failure.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_fit_are_refused_with_their_reasons() {
        let libc = if cfg!(target_os = "linux") { "libc.so.6" } else { "no such library" };
        let files = ["no/such/file.so", libc].map(OsString::from);
        let error = load_first(&files).map_err(|error| error.to_string()).expect_err("neither is LLVM");
        assert!(
            error.contains("LLVM 22.1") && error.contains(VARIABLE) && error.contains("no/such/file.so: "),
            "{error}"
        );
        assert!(!cfg!(target_os = "linux") || error.contains("libc.so.6: it is no LLVM"), "{error}");
    }
}
