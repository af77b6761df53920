//! The operating system interface that launches need: generated code opens a driver's library, resolves its functions,
//! and waits. It calls the functions of `dlfcn.h` and `time.h`, or those of Windows' `kernel32`.

use target_lexicon::{BinaryFormat, Triple};

use super::api::Api;
use crate::ir::{DataRef, Emitter, FuncSig, Module, Type, Val};

/// The operating system that provides the functions generated code calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum System {
    /// POSIX: `dlopen`, `dlsym`, `dlerror`, `nanosleep`.
    Posix,
    /// Windows: `LoadLibraryA`, `GetProcAddress`, `Sleep`.
    Windows,
}

impl Default for System {
    /// The operating system of this machine.
    fn default() -> Self {
        if cfg!(windows) { System::Windows } else { System::Posix }
    }
}

/// `RTLD_NOW` of dlfcn.h. Linux, macOS and the BSDs define the same value.
const RTLD_NOW: i64 = 2;

impl System {
    /// The operating system of a target.
    pub(in crate::lower) fn of(target: &Triple) -> Self {
        if target.binary_format == BinaryFormat::Coff { System::Windows } else { System::Posix }
    }

    /// The file name of an API's driver.
    pub(super) fn library(self, api: &Api) -> &'static str {
        match self {
            System::Posix => api.library,
            System::Windows => api.library_of_windows,
        }
    }

    /// Opens a library by name; returns its handle, or NULL.
    pub(super) fn open(self, name: Val<'_>) -> Val<'_> {
        let c = name.emitter();
        match self {
            // RTLD_NOW | RTLD_LOCAL; only RTLD_LOCAL differs among systems, and it is the default
            System::Posix => call(c, "dlopen", &[Type::Ptr, Type::I32], Some(Type::Ptr), &[name, c.i32(RTLD_NOW)]),
            System::Windows => call(c, "LoadLibraryA", &[Type::Ptr], Some(Type::Ptr), &[name]),
        }
    }

    /// The address of a library's function, or NULL.
    pub(super) fn find<'c>(self, library: Val<'c>, name: Val<'c>) -> Val<'c> {
        let function = match self {
            System::Posix => "dlsym",
            System::Windows => "GetProcAddress",
        };
        call(name.emitter(), function, &[Type::Ptr, Type::Ptr], Some(Type::Ptr), &[library, name])
    }

    /// The message of this thread's last failed `open`, or NULL. NULL on Windows, which has only an error number that
    /// later calls overwrite.
    pub(super) fn failure(self, c: Emitter<'_>) -> Val<'_> {
        match self {
            System::Posix => call(c, "dlerror", &[], Some(Type::Ptr), &[]),
            System::Windows => c.null(),
        }
    }

    /// Lets other threads run for a moment.
    pub(super) fn pause(self, c: Emitter<'_>) {
        match self {
            System::Posix => {
                let time = c.value(|b| {
                    let time = moment(b.module());
                    b.data_addr(time, 0)
                });
                call(c, "nanosleep", &[Type::Ptr, Type::Ptr], Some(Type::I32), &[time, c.null()]);
            }
            System::Windows => {
                call(c, "Sleep", &[Type::I32], None, &[c.i32(1)]);
            }
        }
    }
}

/// Calls a system function; returns NULL if it has no result.
fn call<'c>(c: Emitter<'c>, name: &str, params: &[Type], ret: Option<Type>, args: &[Val<'c>]) -> Val<'c> {
    let function = c.func(|module| module.import(name, FuncSig::c(params.iter().copied(), ret)));
    c.call(function, args).unwrap_or_else(|| c.null())
}

/// A `struct timespec` of 50 microseconds.
fn moment(module: &mut Module) -> DataRef {
    let mut time = vec![0; 16];
    let nanoseconds = 50_000_i64;
    time[8..].copy_from_slice(&match module.endianness {
        target_lexicon::Endianness::Little => nanoseconds.to_le_bytes(),
        target_lexicon::Endianness::Big => nanoseconds.to_be_bytes(),
    });
    module.add_data("__tvm_ffi_codegen_moment", time, 8)
}
