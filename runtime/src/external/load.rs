//! Which library has the C symbols: the one that the process has, or else one that is opened.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::api::Api;
use crate::process::{self, Runtime};

/// Names the file of the library, where the process has none yet.
const LIBRARY: &str = "TVM_FFI_LIBRARY";

/// Why there is no external runtime.
#[derive(Clone, Debug)]
pub(crate) enum Unavailable {
    /// The process has none, and none could be opened, for these reasons.
    Missing(Vec<String>),
    /// The process has several, none of which libraries find by themselves.
    Several(Vec<String>),
    /// A library lacks functions.
    Old { file: String, missing: Vec<&'static str> },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(reasons) => write!(
                f,
                "no TVM FFI runtime: this program was built to use an external one (feature `external` of `tvm-ffi-runtime`), and the \
                 process has none. Load a `libtvm_ffi` first (in Python, `import tvm_ffi`), or name its file in the environment variable \
                 `{LIBRARY}`. Tried to open: {}",
                reasons.join("; ")
            ),
            Self::Several(files) => write!(
                f,
                "this process has several TVM FFI runtimes, and nothing says which one to use: {}. Build what brings one of them with the \
                 feature `external` or `hidden` of `tvm-ffi-runtime`, or load the one to use with RTLD_GLOBAL",
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

/// The functions of the process's runtime, looked for until they are found.
///
/// # Errors
/// Why there are none.
pub(crate) fn api() -> Result<&'static Api, Unavailable> {
    external().map(|external| &external.api)
}

/// The address of one of the runtime's C symbols; NULL where it lacks that symbol.
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
    /// The last failure, good until a library is loaded.
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
            // What was opened in vain counts, too.
            *failed = process::changes().map(|changes| (changes, why.clone()));
            Err(why)
        }
    }
}

fn load() -> Result<External, Unavailable> {
    let runtime = find()?;
    // SAFETY: the symbols of a runtime are of the prototypes that the C header gives them.
    let api = unsafe { Api::load(|name| runtime.symbol(name)) };
    match api {
        Ok(api) => Ok(External { runtime, api }),
        Err(missing) => Err(Unavailable::Old { file: runtime.file, missing }),
    }
}

fn find() -> Result<Runtime, Unavailable> {
    let mut found = process::runtimes();
    if let Some(global) = found.iter().position(|runtime| runtime.is_global) {
        return Ok(found.swap_remove(global));
    }
    if found.len() > 1 {
        return Err(Unavailable::Several(found.into_iter().map(|runtime| runtime.file).collect()));
    }
    found.pop().map_or_else(open, Ok)
}

/// Opens the library that the environment names, or else one where the system looks for libraries.
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
