//! LLVM that is located at run time: `llvm-sys` declares its functions, `stubs` defines them, and [`load`] finds a
//! libLLVM that provides them.

mod initialize;
mod slots;
mod stubs;

use std::env;
use std::error::Error as _;
use std::ffi::{OsString, c_uint, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use super::error::{Error, FileProblem, UnusableFile};

/// The environment variable that names libLLVM's file. If it is set, no other file is tried.
const VARIABLE: &str = "TVM_FFI_CODEGEN_LIBLLVM";

/// The version whose C API `llvm-sys` declares.
const VERSION: (c_uint, c_uint) = (22, 1);

/// Names of LLVM's library for the dynamic linker, then paths: Debian and apt.llvm.org, Arch and Alpine, Fedora.
#[cfg(not(any(target_vendor = "apple", windows)))]
const FILES: &[&str] = &[
    "libLLVM.so.22.1",
    "libLLVM-22.so",
    "/usr/lib/llvm-22/lib/libLLVM.so.22.1",
    "/usr/lib/llvm22/lib/libLLVM.so.22.1",
    "/usr/lib64/llvm22/lib64/libLLVM.so.22.1",
];

/// Paths of LLVM's library: Homebrew's on both architectures, of this version or the newest.
#[cfg(target_vendor = "apple")]
const FILES: &[&str] = &[
    "libLLVM.dylib",
    "/opt/homebrew/opt/llvm@22/lib/libLLVM.dylib",
    "/opt/homebrew/opt/llvm/lib/libLLVM.dylib",
    "/usr/local/opt/llvm@22/lib/libLLVM.dylib",
    "/usr/local/opt/llvm/lib/libLLVM.dylib",
];

/// The name of LLVM's library with the C API.
#[cfg(windows)]
const FILES: &[&str] = &["LLVM-C.dll"];

/// Suffixes of functions that a libLLVM may lack, because it was built without the code generator.
const OF_TARGETS: [&str; 6] = ["Target", "TargetInfo", "TargetMC", "AsmPrinter", "AsmParser", "Disassembler"];

/// The functions that the loaded LLVM lacks; set when it is loaded.
static LACKING: OnceLock<Vec<&'static str>> = OnceLock::new();

/// Loads LLVM unless it is loaded already. It is never unloaded, since it has global state. After an error the next
/// call tries again.
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

/// Loads the first library that fits, and returns the functions that it lacks.
fn load_first(files: &[OsString]) -> Result<Vec<&'static str>, Error> {
    let mut unusable = Vec::new();
    for file in files {
        match load_file(file) {
            Ok(lacking) => return Ok(lacking),
            Err(problem) => unusable.push(UnusableFile { file: file.into(), problem }),
        }
    }
    let (major, minor) = VERSION;
    Err(Error::NotLoaded { version: format!("{major}.{minor}"), variable: VARIABLE, files: unusable })
}

fn load_file(file: &OsString) -> Result<Vec<&'static str>, FileProblem> {
    let library = open(file).map_err(|error| not_loadable(file, &error))?;
    let address = |name: &str| {
        // SAFETY: only the address is taken; it isn't called before the version is known
        let symbol = unsafe { library.get::<unsafe extern "C" fn()>(name) };
        symbol.ok().map(|symbol| *symbol as *mut c_void)
    };
    check_version(&library)?;
    let addresses: Vec<Option<*mut c_void>> = slots::names().map(address).collect();
    let lacking = slots::names().zip(&addresses).filter(|(_, address)| address.is_none()).map(|(name, _)| name);
    let lacking: Vec<&str> = lacking.collect();
    let is_of_target =
        |name: &str| name.starts_with("LLVMInitialize") && OF_TARGETS.iter().any(|end| name.ends_with(end));
    if let Some(&name) = lacking.iter().find(|name| !is_of_target(name)) {
        return Err(FileProblem::NoFunction { name });
    }
    // SAFETY: each address is that of the LLVM function of this name, of the version that `llvm-sys` declares, and the
    // library is never unloaded.
    unsafe { slots::fill(addresses.into_iter()) };
    std::mem::forget(library);
    Ok(lacking)
}

/// Opens a library without adding its symbols to the global scope.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn open(file: &OsString) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library as UnixLibrary, RTLD_LAZY, RTLD_LOCAL};

    // The process may have globally loaded a library that contains LLVM and exports its C++ symbols, as Triton's does.
    // Then libLLVM must prefer its own symbols (`RTLD_DEEPBIND`). It doesn't always do so, because it would then also
    // prefer the C library's `malloc` to a replacement in the process.
    // SAFETY: the process itself is already open, so no initialisers run.
    let process = unsafe { UnixLibrary::open(None::<&str>, RTLD_LAZY | RTLD_LOCAL) };
    let is_other_visible = process.is_ok_and(|process| {
        // SAFETY: the symbol is only looked for.
        unsafe { process.get::<*const ()>("_ZN4llvm2cl6Option11addArgumentEv") }.is_ok()
    });
    let own_first = if is_other_visible { libc::RTLD_DEEPBIND } else { 0 };
    // SAFETY: libLLVM's initialisers only set up its own state.
    unsafe { UnixLibrary::open(Some(file), RTLD_LAZY | RTLD_LOCAL | own_first) }.map(Library::from)
}

/// Opens a library.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn open(file: &OsString) -> Result<Library, libloading::Error> {
    // SAFETY: libLLVM's initialisers only set up its own state.
    unsafe { Library::new(file) }
}

/// Checks that a library is LLVM of the version whose functions are declared.
fn check_version(library: &Library) -> Result<(), FileProblem> {
    type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: it is `void LLVMGetVersion(unsigned*, unsigned*, unsigned*)` in every version from 16 on, and writes to
    // all three pointers.
    unsafe {
        let get = library.get::<GetVersion>(c"LLVMGetVersion").map_err(|_| FileProblem::NotLlvm)?;
        get(&raw mut major, &raw mut minor, &raw mut patch);
    }
    match (major, minor) == VERSION {
        true => Ok(()),
        false => Err(FileProblem::OtherVersion { major, minor, patch }),
    }
}

/// The problem of a file that the dynamic linker can't load.
fn not_loadable(file: &OsString, error: &libloading::Error) -> FileProblem {
    let message = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    // the dynamic linker's message may begin with the file name too
    let start = format!("{}: ", file.display());
    FileProblem::NotLoadable { message: message.strip_prefix(&start).unwrap_or(&message).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_fit_are_refused_with_their_reasons() {
        let libc = if cfg!(target_os = "linux") { "libc.so.6" } else { "no such library" };
        let files = ["no/such/file.so", libc].map(OsString::from);
        let error = load_first(&files).expect_err("neither is LLVM");
        let Error::NotLoaded { files: unusable, .. } = &error else { panic!("{error}") };
        assert!(unusable.iter().map(|unusable| unusable.file.as_os_str()).eq(&files), "{unusable:?}");
        assert!(matches!(unusable[0].problem, FileProblem::NotLoadable { .. }), "{unusable:?}");
        assert!(!cfg!(target_os = "linux") || unusable[1].problem == FileProblem::NotLlvm, "{unusable:?}");
        let error = error.to_string();
        assert!(
            error.contains("LLVM 22.1") && error.contains(VARIABLE) && error.contains("no/such/file.so: "),
            "{error}"
        );
        assert!(!cfg!(target_os = "linux") || error.contains("libc.so.6: it is not LLVM"), "{error}");
    }
}
