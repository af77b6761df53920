//! Registers loaded code with unwinders, debuggers, profilers and backtraces.

mod described;
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
mod wanted;

use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use tvm_ffi_runtime::unstable::code_map::{CodeFunction, CodeLine, KnownCode, name_code};

use super::error::EngineError;
use crate::backend::Lines;
use crate::ir::LocationRef;

pub(super) use described::{Described, Locations};
pub(super) use frames::Frames;
pub use wanted::Perf;
pub(super) use wanted::{Debugging, Wanted};

/// The registrations of a module; dropping it removes them. The module's code lives longer.
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
    /// Registers loaded functions. `image` builds an object file for a debugger. `frames` are already registered.
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

/// Functions with the names that the runtime's backtraces show.
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

/// Sets the addresses of sections in a debugger's object file, and whether each is loaded.
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
