//! The operating system interface that launches need: generated code opens a driver's library, resolves its functions,
//! and waits. It calls the functions of `dlfcn.h` and `time.h`, or those of Windows' `kernel32`.

use target_lexicon::{BinaryFormat, Triple};

use super::api::Api;
use crate::ir::{DataRef, FuncSig, FunctionBuilder, Module, Type, Value};

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
    pub(super) fn open(self, b: &mut FunctionBuilder<'_>, name: Value) -> Value {
        match self {
            System::Posix => {
                // RTLD_NOW | RTLD_LOCAL; only RTLD_LOCAL differs among systems, and it is the default
                let flags = b.iconst(Type::I32, RTLD_NOW);
                call(b, "dlopen", &[Type::Ptr, Type::I32], Some(Type::Ptr), &[name, flags])
            }
            System::Windows => call(b, "LoadLibraryA", &[Type::Ptr], Some(Type::Ptr), &[name]),
        }
    }

    /// The address of a library's function, or NULL.
    pub(super) fn find(self, b: &mut FunctionBuilder<'_>, library: Value, name: Value) -> Value {
        let function = match self {
            System::Posix => "dlsym",
            System::Windows => "GetProcAddress",
        };
        call(b, function, &[Type::Ptr, Type::Ptr], Some(Type::Ptr), &[library, name])
    }

    /// The message of this thread's last failed `open`, or NULL. NULL on Windows, which has only an error number that
    /// later calls overwrite.
    pub(super) fn failure(self, b: &mut FunctionBuilder<'_>) -> Value {
        match self {
            System::Posix => call(b, "dlerror", &[], Some(Type::Ptr), &[]),
            System::Windows => b.ptr_const(0),
        }
    }

    /// Lets other threads run for a moment.
    pub(super) fn pause(self, b: &mut FunctionBuilder<'_>) {
        match self {
            System::Posix => {
                let time = moment(b.module());
                let (time, null) = (b.data_addr(time, 0), b.ptr_const(0));
                call(b, "nanosleep", &[Type::Ptr, Type::Ptr], Some(Type::I32), &[time, null]);
            }
            System::Windows => {
                let millisecond = b.iconst(Type::I32, 1);
                call(b, "Sleep", &[Type::I32], None, &[millisecond]);
            }
        }
    }
}

/// Calls a system function; returns NULL if it has no result.
fn call(b: &mut FunctionBuilder<'_>, name: &str, params: &[Type], ret: Option<Type>, args: &[Value]) -> Value {
    let function = b.module().import(name, FuncSig::c(params.iter().copied(), ret));
    match b.call(function, args) {
        Some(result) => result,
        None => b.ptr_const(0),
    }
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
