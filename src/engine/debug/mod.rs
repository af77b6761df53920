//! What unwinders, debuggers, profilers and backtraces are told of loaded code.

#[cfg(target_os = "linux")]
mod elf;
mod frames;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64", target_arch = "s390x")
))]
mod gdb;
#[cfg(all(target_os = "linux", feature = "_llvm"))]
pub(super) mod object;
#[cfg(target_os = "linux")]
mod perf;

use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use tvm_ffi_runtime::code_map::{CodeFunction, CodeLine, KnownCode, name_code};

use super::error::EngineError;
use crate::backend::Lines;
use crate::ir::{DataKind, LocationRef, Module, SourceLocation};
use crate::lower::is_state_of_launches;

pub(super) use frames::Frames;

pub(super) type Locations = PrimaryMap<LocationRef, SourceLocation>;

/// The file that Linux' profiler `perf` learns of loaded code from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Perf {
    /// `/tmp/perf-PID.map`: names of functions. `perf report` reads it as it is.
    Map,
    /// `jit-PID.dump`, in the folder that `JITDUMPDIR` names or that of temporary files: names, lines and the code itself. `perf record -k 1`,
    /// then `perf inject --jit`, and then `perf report` or `perf annotate`.
    JitDump,
}

impl Perf {
    /// What the environment variable `TVM_FFI_CODEGEN_PERF` asks for: `map` or `jitdump`.
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
pub(super) struct Debugging {
    /// Whether modules are made known; by default those with source locations.
    pub(super) info: Option<bool>,
    pub(super) perf: Option<Perf>,
}

impl Debugging {
    /// The settings, with what the environment says where nothing is set.
    pub(super) fn or_environment(mut self) -> Result<Self, EngineError> {
        if self.perf.is_none() {
            self.perf = Perf::of_environment()?;
        }
        Ok(self)
    }

    /// Who is to be told of a module.
    pub(super) fn of(self, module: &Module) -> Wanted {
        let calls_out = || module.data.values().any(|data| data.kind == DataKind::State && !is_state_of_launches(data));
        let located = !module.locations.is_empty();
        let info = self.info.unwrap_or(located);
        // code that calls out, which needs state, may be in the middle of a stack that somebody looks at
        Wanted { info, frames: info || (self.info.is_none() && calls_out()), perf: self.perf }
    }
}

/// Who is to be told of a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Debuggers.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) info: bool,
    /// The unwinder, and backtraces.
    pub(super) frames: bool,
    pub(super) perf: Option<Perf>,
}

impl Wanted {
    /// Whether anybody is.
    pub(super) fn any(self) -> bool {
        self.frames || self.perf.is_some()
    }
}

/// A loaded function.
#[derive(Clone, Debug)]
pub(super) struct Described {
    /// The symbol.
    pub(super) name: String,
    pub(super) address: usize,
    pub(super) size: usize,
    /// The source location that comes first in it.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) first: Option<LocationRef>,
    /// Its lines, in the order of addresses.
    pub(super) lines: Vec<Lines>,
}

impl Described {
    #[cfg(target_os = "linux")]
    fn pointer(&self) -> *const u8 {
        std::ptr::with_exposed_provenance(self.address)
    }
}

/// What was told of a module; dropping it takes it back. The module's code lives longer.
#[derive(Default)]
pub(super) struct Told {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64", target_arch = "s390x")
    ))]
    _image: Option<gdb::Image>,
    _frames: Option<Frames>,
    _names: Option<KnownCode>,
}

impl Told {
    /// Tells of functions that are loaded. `image` makes an object file for a debugger, whose sections are at the addresses that `place` says;
    /// `frames` are registered already.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    pub(super) fn new(
        wanted: Wanted,
        functions: &[Described],
        locations: &Locations,
        image: impl FnOnce() -> Result<Vec<u8>, EngineError>,
        frames: Option<Frames>,
    ) -> Result<Self, EngineError> {
        #[cfg(target_os = "linux")]
        if let Some(perf) = wanted.perf {
            perf::write(perf, functions, locations).map_err(|(path, source)| EngineError::File { path, source })?;
        }
        Ok(Told {
            #[cfg(all(
                target_os = "linux",
                any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64", target_arch = "s390x")
            ))]
            _image: match wanted.info {
                true => Some(gdb::Image::register(image()?)),
                false => None,
            },
            _frames: frames,
            _names: wanted.frames.then(|| name_code(named(functions, locations))),
        })
    }
}

/// Functions as the runtime's backtraces name them.
fn named(functions: &[Described], locations: &Locations) -> impl Iterator<Item = CodeFunction> {
    let places: PrimaryMap<LocationRef, (Arc<str>, u32, Arc<str>)> =
        locations.values().map(|at| (Arc::from(&*at.file), at.line, Arc::from(&*at.function))).collect();
    functions.iter().map(move |function| {
        let line = |lines: &Lines| {
            let (file, line, function) = places[lines.location].clone();
            CodeLine { start: lines.start as usize, end: lines.end as usize, file, line, function }
        };
        let lines = function.lines.iter().map(line).collect();
        CodeFunction { name: function.name.clone(), start: function.address, size: function.size, lines }
    })
}

/// An object file for a debugger, with the addresses of its sections, and whether each is loaded there.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub(super) fn placed(image: Vec<u8>, of: impl Fn(&str) -> Option<(usize, bool)>) -> Result<Vec<u8>, EngineError> {
    #[cfg(target_os = "linux")]
    let image = {
        let mut image = image;
        elf::place(&mut image, of)?;
        image
    };
    Ok(image)
}
