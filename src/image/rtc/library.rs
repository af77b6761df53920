//! The libraries NVRTC (nvrtc.h) and hiprtc (hip/hiprtc.h): their functions, and programs that they compile.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use libloading::Library;

use super::RtcError;

/// `nvrtcResult` and `hiprtcResult`: the source or an option is wrong.
const COMPILATION: c_int = 6;
/// A stated kernel isn't one of the source.
const NAME_EXPRESSION_NOT_VALID: c_int = 10;
/// An option is unknown or its value is wrong.
const INVALID_OPTION: c_int = 5;

type Status = c_int;
/// `nvrtcProgram`, `hiprtcProgram`.
type Handle = *mut c_void;
type Strings = *const *const c_char;

type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status;
type Count = unsafe extern "C" fn(*mut c_int) -> Status;
type ErrorString = unsafe extern "C" fn(Status) -> *const c_char;
type Create = unsafe extern "C" fn(*mut Handle, *const c_char, *const c_char, c_int, Strings, Strings) -> Status;
type Destroy = unsafe extern "C" fn(*mut Handle) -> Status;
type AddName = unsafe extern "C" fn(Handle, *const c_char) -> Status;
type LoweredName = unsafe extern "C" fn(Handle, *const c_char, *mut *const c_char) -> Status;
type Compile = unsafe extern "C" fn(Handle, c_int, Strings) -> Status;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> Status;
type Write = unsafe extern "C" fn(Handle, *mut u8) -> Status;

/// A compiler's library: nvrtc.h and hip/hiprtc.h declare the same functions with other names.
#[derive(Debug)]
pub(super) struct Api {
    /// The compiler's name in messages.
    pub name: &'static str,
    /// The prefix of its functions' names.
    prefix: &'static str,
    /// The oldest version that has all functions.
    since: &'static str,
    /// The functions that write the code: of virtual architectures, and of real ones.
    code: [&'static str; 2],
    /// It lists the architectures that it knows.
    lists_architectures: bool,
    /// The environment variable that names its file.
    variable: &'static str,
    /// The names of its files.
    files: &'static [&'static str],
    /// The environment variables that name the toolkit's directory.
    homes: [&'static str; 2],
    /// The usual directory of the toolkit.
    usual: &'static str,
    /// The libraries' directory in the toolkit's.
    folder: &'static str,
}

pub(super) static NVRTC: Api = Api {
    name: "NVRTC",
    prefix: "nvrtc",
    since: "12.0",
    code: ["PTX", "CUBIN"],
    lists_architectures: true,
    variable: "TVM_FFI_CODEGEN_NVRTC",
    files: if cfg!(windows) {
        &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
    } else {
        &["libnvrtc.so.13", "libnvrtc.so.12"]
    },
    homes: ["CUDA_HOME", "CUDA_PATH"],
    usual: "/usr/local/cuda",
    folder: if cfg!(windows) { "bin" } else { "lib64" },
};

/// Debian has hiprtc's functions in the library of HIP.
pub(super) static HIPRTC: Api = Api {
    name: "hiprtc",
    prefix: "hiprtc",
    since: "5.2",
    code: ["Code", "Code"],
    lists_architectures: false,
    variable: "TVM_FFI_CODEGEN_HIPRTC",
    files: if cfg!(windows) {
        &[]
    } else {
        &["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.6", "libamdhip64.so.5"]
    },
    homes: ["ROCM_PATH", "HIP_PATH"],
    usual: "/opt/rocm",
    folder: "lib",
};

impl Api {
    /// The files that may be the machine's library, in order of preference.
    pub(super) fn candidates(&self) -> Vec<PathBuf> {
        if let Some(file) = std::env::var_os(self.variable) {
            return vec![file.into()];
        }
        let homes = self.homes.into_iter().filter_map(std::env::var_os).map(PathBuf::from);
        let usual = cfg!(unix).then(|| PathBuf::from(self.usual));
        let folders = homes.chain(usual).map(|home| home.join(self.folder));
        let inside = folders.flat_map(|folder| self.files.iter().map(move |name| folder.join(name)));
        self.files.iter().map(PathBuf::from).chain(inside).collect()
    }

    /// The functions of the first file that can be loaded.
    ///
    /// # Safety
    /// A file that can be loaded is this compiler's library, of version [`since`](Self::since) or later.
    pub(super) unsafe fn first(&'static self, files: Vec<PathBuf>) -> Result<Functions, RtcError> {
        let mut problems = Vec::new();
        for file in files {
            // SAFETY: the caller guarantees that this is the compiler, which can be loaded in any process.
            match unsafe { Library::new(&file) } {
                Ok(library) => {
                    // SAFETY: the caller guarantees that this is the compiler. It is never unloaded, since its threads
                    // run its code.
                    let functions = unsafe { Functions::of(self, &library, &file) };
                    std::mem::forget(library);
                    return functions;
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
        Err(RtcError::NotFound { compiler: self.name, problems })
    }
}

/// The functions of a loaded compiler.
#[derive(Debug)]
pub(super) struct Functions {
    pub api: &'static Api,
    version: Version,
    architectures: Option<(Count, Count)>,
    error_string: ErrorString,
    create: Create,
    destroy: Destroy,
    add_name: AddName,
    lowered_name: LoweredName,
    compile: Compile,
    log: (Size, Write),
    /// In the order of [`Api::code`].
    code: [(Size, Write); 2],
}

impl Functions {
    /// Finds the functions in a library.
    ///
    /// # Safety
    /// The library is the compiler's, and stays loaded.
    unsafe fn of(api: &'static Api, library: &Library, file: &Path) -> Result<Self, RtcError> {
        let find = Find { api, library, file };
        // SAFETY: the caller guarantees that the library is the compiler's. Its headers declare these prototypes.
        unsafe {
            let bytes = |what: &str| Ok((find.of(&format!("Get{what}Size"))?, find.of(&format!("Get{what}"))?));
            Ok(Functions {
                api,
                version: find.of("Version")?,
                architectures: match api.lists_architectures {
                    true => Some((find.of("GetNumSupportedArchs")?, find.of("GetSupportedArchs")?)),
                    false => None,
                },
                error_string: find.of("GetErrorString")?,
                create: find.of("CreateProgram")?,
                destroy: find.of("DestroyProgram")?,
                add_name: find.of("AddNameExpression")?,
                lowered_name: find.of("GetLoweredName")?,
                compile: find.of("CompileProgram")?,
                log: bytes("ProgramLog")?,
                code: [bytes(api.code[0])?, bytes(api.code[1])?],
            })
        }
    }
}

/// A look-up of functions in a library.
struct Find<'l> {
    api: &'static Api,
    library: &'l Library,
    file: &'l Path,
}

impl Find<'_> {
    /// A function by its name without the prefix.
    ///
    /// # Safety
    /// The function has this type.
    unsafe fn of<F: Copy>(&self, name: &str) -> Result<F, RtcError> {
        let function = format!("{}{name}", self.api.prefix);
        // SAFETY: the caller guarantees the type.
        match unsafe { self.library.get::<F>(function.as_bytes()) } {
            Ok(found) => Ok(*found),
            Err(_) => {
                let file = self.file.display().to_string();
                Err(RtcError::Function { file, function, compiler: self.api.name, since: self.api.since })
            }
        }
    }
}

/// A C string.
pub(super) fn c_string(text: &str, what: &'static str) -> Result<CString, RtcError> {
    CString::new(text).map_err(|_| RtcError::Nul { what })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

impl Functions {
    fn failed(&self, function: &str, status: Status) -> RtcError {
        // SAFETY: the function takes any status, and returns a static string.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) }.to_string_lossy().into_owned();
        RtcError::Call { function: format!("{}{function}", self.api.prefix), status, text }
    }

    fn require(&self, function: &str, status: Status) -> Result<(), RtcError> {
        if status == 0 { Ok(()) } else { Err(self.failed(function, status)) }
    }

    pub(super) fn version(&self) -> Result<(u32, u32), RtcError> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both addresses are those of integers.
        self.require("Version", unsafe { (self.version)(&mut major, &mut minor) })?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    /// The numbers of the architectures that the compiler knows, in ascending order. Empty if it doesn't list them.
    pub(super) fn capabilities(&self) -> Result<Vec<u32>, RtcError> {
        let Some((count_all, write)) = self.architectures else { return Ok(Vec::new()) };
        let mut count = 0;
        // SAFETY: the address is that of an integer.
        self.require("GetNumSupportedArchs", unsafe { count_all(&mut count) })?;
        let mut archs = vec![0; count.unsigned_abs() as usize];
        // SAFETY: the function writes as many integers as the other one has counted.
        self.require("GetSupportedArchs", unsafe { write(archs.as_mut_ptr()) })?;
        Ok(archs.into_iter().map(c_int::unsigned_abs).collect())
    }

    /// A program, with its headers' names and texts.
    pub(super) fn program(
        &self,
        text: &CStr,
        file: &CStr,
        names: &[CString],
        texts: &[CString],
    ) -> Result<Program<'_>, RtcError> {
        let count = names.len() as c_int;
        let (names, texts) = (pointers(names), pointers(texts));
        let mut handle = null_mut();
        // SAFETY: all strings end with NUL, and both lists have `count` of them. They live until the function returns,
        // which copies them.
        let status = unsafe {
            let (text, file) = (text.as_ptr(), file.as_ptr());
            (self.create)(&mut handle, text, file, count, texts.as_ptr(), names.as_ptr())
        };
        self.require("CreateProgram", status)?;
        Ok(Program { functions: self, handle })
    }
}

/// A program of the compiler.
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
    pub(super) fn state(&self, kernel: &str) -> Result<(), RtcError> {
        let name = c_string(kernel, "the name of a kernel")?;
        // SAFETY: the handle is a program's, and the string lives until the function returns, which copies it.
        self.functions.require("AddNameExpression", unsafe { (self.functions.add_name)(self.handle, name.as_ptr()) })
    }

    /// Compiles; returns `false` if the source or an option is wrong. The log then says why.
    pub(super) fn compile(&self, options: &[String]) -> Result<bool, RtcError> {
        let options = options.iter().map(|option| c_string(option, "an option")).collect::<Result<Vec<_>, _>>()?;
        let pointers = pointers(&options);
        // SAFETY: the handle is a program's. The list has as many strings as stated, which live until the function
        // returns.
        match unsafe { (self.functions.compile)(self.handle, pointers.len() as c_int, pointers.as_ptr()) } {
            COMPILATION | INVALID_OPTION => Ok(false),
            status => self.functions.require("CompileProgram", status).map(|()| true),
        }
    }

    /// The compiler's log.
    pub(super) fn log(&self) -> Result<String, RtcError> {
        let bytes = self.bytes("ProgramLog", self.functions.log)?;
        // a warning may quote source that isn't UTF-8
        Ok(String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(&bytes)).into_owned())
    }

    /// The compiled code, of a virtual architecture or a real one.
    pub(super) fn code(&self, is_virtual: bool) -> Result<Vec<u8>, RtcError> {
        let number = usize::from(!is_virtual);
        self.bytes(self.functions.api.code[number], self.functions.code[number])
    }

    /// Bytes that one function counts, and another one writes.
    fn bytes(&self, what: &str, (count, write): (Size, Write)) -> Result<Vec<u8>, RtcError> {
        let mut size = 0;
        // SAFETY: the handle is a program's, and the address is that of an integer.
        self.functions.require(&format!("Get{what}Size"), unsafe { count(self.handle, &mut size) })?;
        let mut bytes = vec![0; size];
        // SAFETY: the handle is a program's, and the other function has counted the bytes that this one writes.
        self.functions.require(&format!("Get{what}"), unsafe { write(self.handle, bytes.as_mut_ptr()) })?;
        Ok(bytes)
    }

    /// The name in the image of a kernel that was [stated](Self::state).
    pub(super) fn lowered_name(&self, kernel: &str) -> Result<String, RtcError> {
        let stated = c_string(kernel, "the name of a kernel")?;
        let mut name = null();
        // SAFETY: the handle is a program's, which is compiled. The string ends with NUL, and the address is that of a
        // pointer.
        let status = unsafe { (self.functions.lowered_name)(self.handle, stated.as_ptr(), &mut name) };
        if status == NAME_EXPRESSION_NOT_VALID {
            return Err(RtcError::Kernel { kernel: kernel.to_owned() });
        }
        self.functions.require("GetLoweredName", status)?;
        // SAFETY: after success it is a string of the program's.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}
