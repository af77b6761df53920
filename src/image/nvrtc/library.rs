//! The library NVRTC: its functions (nvrtc.h), and programs that it compiles.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use libloading::Library;

use super::NvrtcError;

/// `nvrtcResult` (nvrtc.h): the source or an option is wrong.
const COMPILATION: c_int = 6;
/// A stated kernel isn't one of the source.
const NAME_EXPRESSION_NOT_VALID: c_int = 10;
/// An option is unknown or its value is wrong.
const INVALID_OPTION: c_int = 5;

type Status = c_int;
/// `nvrtcProgram`.
type Handle = *mut c_void;
type Strings = *const *const c_char;

/// Declares the functions that are loaded, with their prototypes in nvrtc.h.
macro_rules! functions {
    ($($field:ident = $name:literal: fn($($param:ty),*) -> $result:ty;)*) => {
        /// The functions of a loaded NVRTC.
        #[derive(Debug)]
        pub(super) struct Functions {
            $($field: unsafe extern "C" fn($($param),*) -> $result,)*
        }

        impl Functions {
            /// Finds the functions in a library.
            ///
            /// # Safety
            /// The library is NVRTC, and stays loaded.
            unsafe fn of(library: &Library, file: &Path) -> Result<Self, NvrtcError> {
                let lacks = |function| NvrtcError::Function { file: file.display().to_string(), function };
                Ok(Functions {
                    // SAFETY: the function has this prototype, as the caller guarantees that the library is NVRTC.
                    $($field: *unsafe { library.get(concat!($name, "\0").as_bytes()) }.map_err(|_| lacks($name))?,)*
                })
            }
        }
    };
}

functions! {
    version = "nvrtcVersion": fn(*mut c_int, *mut c_int) -> Status;
    count_archs = "nvrtcGetNumSupportedArchs": fn(*mut c_int) -> Status;
    archs = "nvrtcGetSupportedArchs": fn(*mut c_int) -> Status;
    error_string = "nvrtcGetErrorString": fn(Status) -> *const c_char;
    create = "nvrtcCreateProgram": fn(*mut Handle, *const c_char, *const c_char, c_int, Strings, Strings) -> Status;
    destroy = "nvrtcDestroyProgram": fn(*mut Handle) -> Status;
    add_name = "nvrtcAddNameExpression": fn(Handle, *const c_char) -> Status;
    lowered_name = "nvrtcGetLoweredName": fn(Handle, *const c_char, *mut *const c_char) -> Status;
    compile = "nvrtcCompileProgram": fn(Handle, c_int, Strings) -> Status;
    log_size = "nvrtcGetProgramLogSize": fn(Handle, *mut usize) -> Status;
    log = "nvrtcGetProgramLog": fn(Handle, *mut u8) -> Status;
    cubin_size = "nvrtcGetCUBINSize": fn(Handle, *mut usize) -> Status;
    cubin = "nvrtcGetCUBIN": fn(Handle, *mut u8) -> Status;
    ptx_size = "nvrtcGetPTXSize": fn(Handle, *mut usize) -> Status;
    ptx = "nvrtcGetPTX": fn(Handle, *mut u8) -> Status;
}

/// The files that may be the machine's NVRTC, in order of preference.
pub(super) fn candidates() -> Vec<PathBuf> {
    if let Some(file) = std::env::var_os("TVM_FFI_CODEGEN_NVRTC") {
        return vec![file.into()];
    }
    let (names, folder) = match cfg!(windows) {
        true => (["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"], "bin"),
        false => (["libnvrtc.so.13", "libnvrtc.so.12"], "lib64"),
    };
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = cfg!(unix).then(|| PathBuf::from("/usr/local/cuda"));
    let folders = homes.chain(usual).map(|home| home.join(folder));
    let inside = folders.flat_map(|folder| names.map(|name| folder.join(name)));
    names.map(PathBuf::from).into_iter().chain(inside).collect()
}

/// The functions of the first file that can be loaded.
///
/// # Safety
/// A file that can be loaded is NVIDIA's NVRTC, of version 12.0 or later.
pub(super) unsafe fn first(files: Vec<PathBuf>) -> Result<Functions, NvrtcError> {
    let mut problems = Vec::new();
    for file in files {
        // SAFETY: the caller guarantees that this is NVRTC, which can be loaded in any process.
        match unsafe { Library::new(&file) } {
            Ok(library) => {
                // SAFETY: the caller guarantees that this is NVRTC, and it is never unloaded: its threads run its code.
                let functions = unsafe { Functions::of(&library, &file) };
                std::mem::forget(library);
                return functions;
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    Err(NvrtcError::NotFound { problems })
}

/// A C string.
pub(super) fn c_string(text: &str, what: &'static str) -> Result<CString, NvrtcError> {
    CString::new(text).map_err(|_| NvrtcError::Nul { what })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

impl Functions {
    fn failed(&self, function: &'static str, status: Status) -> NvrtcError {
        // SAFETY: the function takes any status, and returns a static string.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) }.to_string_lossy().into_owned();
        NvrtcError::Call { function, status, text }
    }

    fn require(&self, function: &'static str, status: Status) -> Result<(), NvrtcError> {
        if status == 0 { Ok(()) } else { Err(self.failed(function, status)) }
    }

    pub(super) fn version(&self) -> Result<(u32, u32), NvrtcError> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both addresses are those of integers.
        self.require("nvrtcVersion", unsafe { (self.version)(&mut major, &mut minor) })?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    pub(super) fn capabilities(&self) -> Result<Vec<u32>, NvrtcError> {
        let mut count = 0;
        // SAFETY: the address is that of an integer.
        self.require("nvrtcGetNumSupportedArchs", unsafe { (self.count_archs)(&mut count) })?;
        let mut archs = vec![0; count.unsigned_abs() as usize];
        // SAFETY: the function writes as many integers as it has counted.
        self.require("nvrtcGetSupportedArchs", unsafe { (self.archs)(archs.as_mut_ptr()) })?;
        Ok(archs.into_iter().map(c_int::unsigned_abs).collect())
    }

    /// A program, with its headers' names and texts.
    pub(super) fn program(
        &self,
        text: &CStr,
        file: &CStr,
        names: &[CString],
        texts: &[CString],
    ) -> Result<Program<'_>, NvrtcError> {
        let count = names.len() as c_int;
        let (names, texts) = (pointers(names), pointers(texts));
        let mut handle = null_mut();
        // SAFETY: all strings end with NUL, and both lists have `count` of them. They live until the function returns,
        // which copies them.
        let status = unsafe {
            let (text, file) = (text.as_ptr(), file.as_ptr());
            (self.create)(&mut handle, text, file, count, texts.as_ptr(), names.as_ptr())
        };
        self.require("nvrtcCreateProgram", status)?;
        Ok(Program { functions: self, handle })
    }
}

/// A program of NVRTC.
pub(super) struct Program<'f> {
    functions: &'f Functions,
    handle: Handle,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is a program's, and nothing uses it afterwards.
        let _ = unsafe { (self.functions.destroy)(&mut self.handle) };
    }
}

impl Program<'_> {
    /// States a kernel, before the program is compiled.
    pub(super) fn state(&self, kernel: &str) -> Result<(), NvrtcError> {
        let name = c_string(kernel, "the name of a kernel")?;
        // SAFETY: the handle is a program's, and the string lives until the function returns, which copies it.
        self.functions
            .require("nvrtcAddNameExpression", unsafe { (self.functions.add_name)(self.handle, name.as_ptr()) })
    }

    /// Compiles; returns `false` if the source or an option is wrong. The log then says why.
    pub(super) fn compile(&self, options: &[String]) -> Result<bool, NvrtcError> {
        let options = options.iter().map(|option| c_string(option, "an option")).collect::<Result<Vec<_>, _>>()?;
        let pointers = pointers(&options);
        // SAFETY: the handle is a program's. The list has as many strings as stated, which live until the function
        // returns.
        match unsafe { (self.functions.compile)(self.handle, pointers.len() as c_int, pointers.as_ptr()) } {
            COMPILATION | INVALID_OPTION => Ok(false),
            status => self.functions.require("nvrtcCompileProgram", status).map(|()| true),
        }
    }

    /// The compiler's log.
    pub(super) fn log(&self) -> Result<String, NvrtcError> {
        let Functions { log_size, log, .. } = self.functions;
        let bytes = self.bytes(("nvrtcGetProgramLogSize", *log_size), ("nvrtcGetProgramLog", *log))?;
        // a warning may quote source that isn't UTF-8
        Ok(String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(&bytes)).into_owned())
    }

    /// The compiled code: PTX or a cubin.
    pub(super) fn code(&self, is_virtual: bool) -> Result<Vec<u8>, NvrtcError> {
        let Functions { ptx_size, ptx, cubin_size, cubin, .. } = self.functions;
        match is_virtual {
            true => self.bytes(("nvrtcGetPTXSize", *ptx_size), ("nvrtcGetPTX", *ptx)),
            false => self.bytes(("nvrtcGetCUBINSize", *cubin_size), ("nvrtcGetCUBIN", *cubin)),
        }
    }

    /// Bytes that one function counts, and another one writes.
    fn bytes(
        &self,
        (counts, count): Named<*mut usize>,
        (writes, write): Named<*mut u8>,
    ) -> Result<Vec<u8>, NvrtcError> {
        let mut size = 0;
        // SAFETY: the handle is a program's, and the address is that of an integer.
        self.functions.require(counts, unsafe { count(self.handle, &mut size) })?;
        let mut bytes = vec![0; size];
        // SAFETY: the handle is a program's, and the other function has counted the bytes that this one writes.
        self.functions.require(writes, unsafe { write(self.handle, bytes.as_mut_ptr()) })?;
        Ok(bytes)
    }

    /// The name in the image of a kernel that was [stated](Self::state).
    pub(super) fn lowered_name(&self, kernel: &str) -> Result<String, NvrtcError> {
        let stated = c_string(kernel, "the name of a kernel")?;
        let mut name = null();
        // SAFETY: the handle is a program's, which is compiled. The string ends with NUL, and the address is that of a
        // pointer.
        let status = unsafe { (self.functions.lowered_name)(self.handle, stated.as_ptr(), &mut name) };
        if status == NAME_EXPRESSION_NOT_VALID {
            return Err(NvrtcError::Kernel { kernel: kernel.to_owned() });
        }
        self.functions.require("nvrtcGetLoweredName", status)?;
        // SAFETY: after success it is a string of the program's.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

/// A function of a program, with its name.
type Named<T> = (&'static str, unsafe extern "C" fn(Handle, T) -> Status);
