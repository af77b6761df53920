//! Where loaded code is registered: the settings, and the result for a module.

use crate::engine::error::EngineError;
use crate::ir::{DataKind, Module};
use crate::lower::is_state_of_launches;

/// The file that describes loaded code to Linux's profiler `perf`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Perf {
    /// `/tmp/perf-PID.map`: function names. `perf report` reads it directly.
    Map,
    /// `jit-PID.dump`, in the directory of `JITDUMPDIR` or in that for temporary files: names, lines and the code
    /// itself. Run `perf record -k 1`, then `perf inject --jit`, and then `perf report` or `perf annotate`.
    JitDump,
}

impl Perf {
    /// The value of the environment variable `TVM_FFI_CODEGEN_PERF`: `map` or `jitdump`.
    fn of_environment() -> Result<Option<Self>, EngineError> {
        match std::env::var("TVM_FFI_CODEGEN_PERF") {
            Ok(text) => match &*text {
                "" => Ok(None),
                "map" => Ok(Some(Perf::Map)),
                "jitdump" => Ok(Some(Perf::JitDump)),
                _ => Err(EngineError::Environment {
                    name: "TVM_FFI_CODEGEN_PERF",
                    value: text,
                    expected: "`map` or `jitdump`",
                }),
            },
            Err(_) => Ok(None),
        }
    }
}

/// The settings.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Debugging {
    /// Whether modules are registered with debuggers; by default only those with source locations.
    pub(in crate::engine) info: Option<bool>,
    pub(in crate::engine) perf: Option<Perf>,
}

impl Debugging {
    /// The settings, completed with those from the environment.
    pub(in crate::engine) fn or_environment(mut self) -> Result<Self, EngineError> {
        if self.perf.is_none() {
            self.perf = Perf::of_environment()?;
        }
        Ok(self)
    }

    /// Where to register a module.
    pub(in crate::engine) fn of(self, module: &Module) -> Wanted {
        let calls_out = || module.data.values().any(|data| data.kind == DataKind::State && !is_state_of_launches(data));
        let located = !module.locations.is_empty();
        let info = self.info.unwrap_or(located);
        // code that calls other code, which requires state, may be in the middle of a stack that is unwound
        Wanted { info, frames: info || (self.info.is_none() && calls_out()), perf: self.perf }
    }
}

/// Where to register a module.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Wanted {
    /// With debuggers.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(in crate::engine) info: bool,
    /// With the unwinder and backtraces.
    pub(in crate::engine) frames: bool,
    pub(in crate::engine) perf: Option<Perf>,
}

impl Wanted {
    /// Whether it is registered anywhere.
    pub(in crate::engine) fn any(self) -> bool {
        self.frames || self.perf.is_some()
    }
}
