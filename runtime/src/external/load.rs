//! Finds the library that has the C symbols: one already loaded in the process, or else one opened here.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::api::Api;
use crate::process::{self, Runtime};

/// The environment variable that names the library file, for processes that have not loaded one.
const LIBRARY: &str = "TVM_FFI_LIBRARY";

/// Why no external runtime is available.
#[derive(Clone, Debug)]
pub(crate) enum Unavailable {
    /// The process has not loaded one, and none could be opened, for these reasons.
    Missing(Vec<String>),
    /// The process has loaded several, and libraries resolve their symbols to none of them by default.
    Several(Vec<String>),
    /// The library lacks these functions.
    Old { file: String, missing: Vec<&'static str> },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(reasons) => write!(
                f,
                "no TVM FFI runtime: this program was built to use an external one (feature `external` of \
                 `tvm-ffi-runtime`), and the process has none. Load a `libtvm_ffi` first (in Python, `import \
                 tvm_ffi`), or name its file in the environment variable `{LIBRARY}`. Tried to open: {}",
                reasons.join("; ")
            ),
            Self::Several(files) => write!(
                f,
                "this process has several TVM FFI runtimes, and nothing says which one to use: {}. Build what brings \
                 one of them with the feature `external` or `hidden` of `tvm-ffi-runtime`, or load the one to use with \
                 RTLD_GLOBAL",
                files.join(", ")
            ),
            Self::Old { file, missing } => {
                write!(f, "{file} lacks functions of the TVM FFI's C API: {}", missing.join(", "))
            }
        }
    }
}

struct External {
    runtime: Runtime,
    api: Api,
}

/// The functions of the process's runtime. The search is repeated until it succeeds.
///
/// # Errors
/// The reason why no runtime is available.
pub(crate) fn api() -> Result<&'static Api, Unavailable> {
    external().map(|external| &external.api)
}

/// The address of one of the runtime's C symbols; NULL if the runtime lacks it.
///
/// # Errors
/// As [`api`].
pub(crate) fn address(name: &CStr) -> Result<*const c_void, Unavailable> {
    external().map(|external| external.runtime.symbol(name).cast_const())
}

#[inline]
fn external() -> Result<&'static External, Unavailable> {
    static EXTERNAL: OnceLock<External> = OnceLock::new();
    match EXTERNAL.get() {
        Some(external) => Ok(external),
        None => look(&EXTERNAL),
    }
}

#[cold]
fn look(place: &'static OnceLock<External>) -> Result<&'static External, Unavailable> {
    /// The last failure, valid until a library is loaded.
    static FAILED: Mutex<Option<(u64, Unavailable)>> = Mutex::new(None);

    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(external) = place.get() {
        return Ok(external);
    }
    let changes = process::changes();
    if let Some((then, why)) = &*failed
        && changes == Some(*then)
    {
        return Err(why.clone());
    }
    match load() {
        Ok(external) => Ok(place.get_or_init(|| external)),
        Err(why) => {
            // The failed search may have opened libraries too, so the changes are counted after it.
            *failed = process::changes().map(|changes| (changes, why.clone()));
            Err(why)
        }
    }
}

fn load() -> Result<External, Unavailable> {
    let runtime = find()?;
    // SAFETY: a runtime's symbols have the prototypes in the C header.
    let api = unsafe { Api::load(|name| runtime.symbol(name)) };
    match api {
        Ok(api) => Ok(External { runtime, api }),
        Err(missing) => Err(Unavailable::Old { file: runtime.file, missing }),
    }
}

fn find() -> Result<Runtime, Unavailable> {
    if let Some(global) = process::global_runtime() {
        return Ok(global);
    }
    let mut found = process::runtimes();
    if found.len() > 1 {
        return Err(Unavailable::Several(found.into_iter().map(|runtime| runtime.file).collect()));
    }
    found.pop().map_or_else(open, Ok)
}

/// Opens the library that the environment variable names, or else one on the system's library search path.
fn open() -> Result<Runtime, Unavailable> {
    let files = match std::env::var(LIBRARY) {
        Ok(file) if !file.is_empty() => vec![file],
        _ => ["tvm_ffi", "tvm_ffi_runtime"]
            .map(|name| format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
            .to_vec(),
    };
    let mut reasons = Vec::new();
    for file in files {
        match process::open(&file) {
            Ok(runtime) => return Ok(runtime),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(Unavailable::Missing(reasons))
}
