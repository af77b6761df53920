//! Ranges for profilers: each launch is a range with the kernel's name, of NVTX or of rocTX.

use std::ffi::{CString, c_int};
use std::sync::{Arc, LazyLock};

use super::launch::{Hook, Launch};
use super::nvtx;
use super::profiler::{Ranges, open, text_of};

/// The environment variable that names the kind of ranges.
const VARIABLE: &str = "TVM_FFI_CODEGEN_LAUNCH_RANGES";
/// The libraries that have rocTX, the newest first.
const ROCTX: [&str; 3] = ["librocprofiler-sdk-roctx.so.1", "libroctx64.so.4", "libroctx64.so"];

/// The hook, if the environment asks for it and there is a profiler.
pub(super) fn hook() -> Option<Arc<dyn Hook>> {
    static RANGES: LazyLock<Option<Ranges>> = LazyLock::new(|| {
        let kind = std::env::var_os(VARIABLE)?;
        let found = match kind.to_str() {
            Some("nvtx") => nvtx::ranges(),
            Some("roctx") => roctx(),
            Some("") => Ok(None),
            _ => Err(format!("expected nvtx or roctx, got {}", kind.display())),
        };
        found.unwrap_or_else(|problem| {
            eprintln!("tvm_ffi_codegen: {VARIABLE}: {problem}");
            None
        })
    });
    (*RANGES).map(|ranges| Arc::new(ranges) as Arc<dyn Hook>)
}

/// The functions of rocTX.
fn roctx() -> Result<Option<Ranges>, String> {
    let mut problems = Vec::new();
    for name in ROCTX {
        match functions_of(name) {
            Ok(ranges) => return Ok(Some(ranges)),
            Err(problem) => problems.push(problem),
        }
    }
    Err(problems.join("; "))
}

/// The functions of a library that has rocTX.
fn functions_of(name: &str) -> Result<Ranges, String> {
    let library = open(name.as_ref())?;
    // SAFETY: the functions have these prototypes (roctx.h).
    let functions = unsafe { (library.get(b"roctxRangePushA"), library.get(b"roctxRangePop")) };
    match functions {
        (Ok(push), Ok(pop)) => Ok(Ranges { push: *push, pop: *pop }),
        (Err(error), _) | (_, Err(error)) => Err(text_of(&error)),
    }
}

impl Hook for Ranges {
    fn enter(&self, launch: &Launch<'_>) -> Result<(), c_int> {
        // a name of an image has no NUL
        let name = CString::new(&*launch.name).unwrap_or_default();
        // SAFETY: the function takes a C string, and copies it. Its result is the depth of the range.
        unsafe { (self.push)(name.as_ptr()) };
        Ok(())
    }

    fn exit(&self, _: &Launch<'_>) -> Result<(), c_int> {
        // SAFETY: the range that this ends was begun on this thread.
        unsafe { (self.pop)() };
        Ok(())
    }
}
