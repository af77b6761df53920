//! The stand-in driver, which runs kernels on the CPU, and images for it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::{Library, Symbol};
use serde_json::json;
use tempfile::TempDir;
use tvm_ffi_codegen::DLDeviceType;
use tvm_ffi_codegen::image::Image;

use super::made;
use crate::support::compiler;

const SOURCES: [(&str, &str); 6] = [
    ("standin.h", include_str!("driver/standin.h")),
    ("system.h", include_str!("driver/system.h")),
    ("cubin.h", include_str!("driver/cubin.h")),
    ("graphs.h", include_str!("driver/graphs.h")),
    ("driver.c", include_str!("driver/driver.c")),
    ("kernels.c", include_str!("driver/kernels.c")),
];

/// The names with which generated code opens the drivers of CUDA and HIP.
#[cfg(not(windows))]
pub const NAMES: [&str; 2] = ["libcuda.so.1", "libamdhip64.so"];
#[cfg(windows)]
pub const NAMES: [&str; 2] = ["nvcuda.dll", "amdhip64_6.dll"];

/// The built shared objects.
struct Built {
    folder: TempDir,
    cuda: Library,
    hip: Library,
}

fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        for (name, text) in SOURCES {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let driver = |name: &str, flags: &[&str]| {
            // a DLL is named after its file
            let soname = format!("-Wl,-soname,{name}");
            let flags = if cfg!(windows) { flags.to_vec() } else { [flags, &[&soname]].concat() };
            compile(folder.path(), "driver.c", name, &flags);
            // SAFETY: the driver's initialisers do nothing. It stays loaded: generated code that opens a library of its
            // name finds it.
            unsafe { Library::new(folder.path().join(name)) }.unwrap()
        };
        let (cuda, hip) = (driver(NAMES[0], &[]), driver(NAMES[1], &["-DHIP"]));
        Built { folder, cuda, hip }
    })
}

fn compile(folder: &Path, source: &str, to: &str, flags: &[&str]) {
    // with GNU's tools, a DLL links their libraries statically
    let system: &[&str] = if cfg!(windows) { &["-static"] } else { &["-fPIC", "-ldl", "-pthread"] };
    let status = compiler::c()
        .current_dir(folder)
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", source, "-o", to])
        .args(flags)
        .args(system)
        .status();
    assert!(status.unwrap().success());
}

/// The kernels of kernels.c as host code that returns the number of its image.
fn host_code(which: u32) -> PathBuf {
    static DONE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let folder = built().folder.path();
    let name = format!("kernels-{which}{}", std::env::consts::DLL_SUFFIX);
    let path = folder.join(&name);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !done.contains(&which) {
        compile(folder, "kernels.c", &name, &[&format!("-DWHICH={which}")]);
        done.push(which);
    }
    path
}

/// The kernels' parameters, as PTX declares them.
const ENTRIES: &[(&str, &str)] = &[
    ("add", ".param .u64 x, .param .u64 y, .param .u64 z, .param .s64 n"),
    ("copy", ".param .u64 .ptr .global .align 4 x, .param .u64 y, .param .s32 m, .param .s32 n, .param .s32 stride"),
    ("matmul", ".param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n, .param .u32 k"),
    ("affine", ".param .u64 x, .param .align 8 .b8 a[24]"),
    ("sum", ".param .u64 x, .param .u64 out, .param .s64 n, .param .u64 scratch, .param .u64 profile"),
    ("tma", ".param .align 64 .b8 map[128], .param .u64 y, .param .s32 m, .param .s32 n"),
    ("affine_globals", ".param .u64 x, .param .u64 tag, .param .s64 n"),
    ("which", ".param .u64 out"),
    ("staged", ".param .u64 out"),
];

/// PTX of the kernels for an architecture. The stand-in runs it.
pub fn ptx(target: &str, which: u32) -> Image {
    let mut text =
        format!("// host: {}\n.version 8.0\n.target {target}\n.address_size 64\n", host_code(which).display());
    for (name, params) in ENTRIES {
        text.push_str(&format!(".visible .entry {name}({params}) {{ ret; }}\n"));
    }
    Image::from_bytes(text.into_bytes()).unwrap()
}

/// A fatbin with PTX for these architectures, which the stand-in runs. With `compressed` it claims to be compressed,
/// although it isn't, so its kernels are unknown.
pub fn fatbin(targets: &[(&str, u32)], compressed: bool) -> Image {
    let mut contents = Vec::new();
    for (target, which) in targets {
        let ptx = ptx(target, *which);
        let capability = ptx.targets()[0].cuda().unwrap().capability;
        let mut payload = ptx.bytes().to_vec();
        payload.resize(payload.len().next_multiple_of(8), 0);
        let mut header = [0; 64];
        let flags: u64 = if compressed { 0x2011 } else { 0x11 };
        let fields: [(usize, &[u8]); 5] = [
            (0, &1_u16.to_le_bytes()),
            (4, &64_u32.to_le_bytes()),
            (8, &(payload.len() as u64).to_le_bytes()),
            (28, &capability.to_le_bytes()),
            (40, &flags.to_le_bytes()),
        ];
        fields.iter().for_each(|(at, bytes)| header[*at..*at + bytes.len()].copy_from_slice(bytes));
        contents.extend_from_slice(&header);
        contents.extend_from_slice(&payload);
    }
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend_from_slice(&(contents.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&contents);
    Image::from_bytes(bytes).unwrap()
}

/// A bundle with an AMD code object that describes the kernels. The host's code is the text that the stand-in looks
/// for.
pub fn bundle() -> Image {
    let host = format!("// host: {}\n", host_code(942).display());
    let kernels = ptx("sm_80", 942);
    let kernels = kernels.entries().unwrap().iter().map(|entry| {
        let params = entry.params.iter().flatten();
        let args =
            params.map(|param| json!({ ".offset": param.offset, ".size": param.size, ".value_kind": "by_value" }));
        json!({ ".name": entry.name, ".args": args.collect::<Vec<_>>(), ".group_segment_fixed_size": 0 })
    });
    let kernels: Vec<_> = kernels.collect();
    let code = made::code_object(&json!({ "amdhsa.target": "amdgcn-amd-amdhsa--gfx942", "amdhsa.kernels": kernels }));
    let entries = [("host-x86_64-unknown-linux-gnu", host.as_bytes()), ("hipv4-amdgcn-amd-amdhsa--gfx942", &code)];
    Image::from_bytes(made::bundle(&entries)).unwrap()
}

/// The file of the CUDA stand-in, for other processes.
pub fn path_of_cuda() -> PathBuf {
    built().folder.path().join(NAMES[0])
}

/// The device that is current on this thread, for code that has no [`Driver`]; -1 for none.
pub fn current_device(kind: DLDeviceType) -> i32 {
    let (library, symbol): (_, &[u8]) = match kind {
        DLDeviceType::ROCM => (&built().hip, b"standin_hip_device"),
        _ => (&built().cuda, b"standin_current"),
    };
    // SAFETY: the stand-in has a function of this prototype.
    unsafe { library.get::<unsafe extern "C" fn() -> c_int>(symbol).unwrap()() }
}

/// The stand-in driver, used by one test at a time.
pub struct Driver {
    library: &'static Library,
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

macro_rules! control {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: the stand-in has a function of this prototype.
            unsafe {
                let function = self.library.get::<unsafe extern "C" fn($($ty),*) $(-> $ret)?>($symbol.as_bytes()).unwrap();
                function($($arg),*)
            }
        }
    )*};
}

impl Driver {
    fn new(library: &'static Library) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let driver = Driver { library, _turn: turn };
        driver.reset();
        driver.make_current(-1);
        driver
    }

    /// The CUDA stand-in, with all of its libraries unloaded.
    pub fn cuda() -> Self {
        Self::new(&built().cuda)
    }

    /// The HIP stand-in.
    pub fn hip() -> Self {
        Self::new(&built().hip)
    }

    control! {
        reset = "standin_reset"();
        calls = "standin_calls"() -> c_int;
        /// Makes the call with this number, counted from now on, fail.
        fail = "standin_fail"(number: c_int, with: c_int);
        version = "standin_version"(version: c_int);
        capability = "standin_capability"(device: c_int, capability: c_int);
        deinitialise = "standin_deinitialise"(on: c_int);
        capture = "standin_capture"(on: c_int);
        libraries = "standin_libraries"() -> c_int;
        /// The graphs that aren't destroyed, executable ones included.
        graphs = "standin_graphs"() -> c_int;
        /// Captures the launches on a stream, which don't run.
        begin_capture = "standin_begin_capture"(stream: *mut c_void);
        /// Ends the capture; returns the number of captured launches.
        end_capture = "standin_end_capture"() -> c_int;
        /// Runs the captured launches.
        replay = "standin_replay"();
        retained = "standin_retained"(device: c_int) -> c_int;
        depth = "standin_depth"() -> c_int;
        unbalanced = "standin_unbalanced"() -> c_int;
        make_current = "standin_make_current"(device: c_int);
        current = "standin_current"() -> c_int;
        hip_device = "standin_hip_device"() -> c_int;
        /// The stream of the last launch.
        stream = "standin_stream"() -> usize;
    }

    /// Makes calls of a function fail.
    pub fn fail_name(&self, name: &str, with: c_int) {
        let name = CString::new(name).unwrap();
        // SAFETY: the stand-in has a function of this prototype, which copies the name.
        unsafe {
            let function: Symbol<unsafe extern "C" fn(*const c_char, c_int)> =
                self.library.get(b"standin_fail_name").unwrap();
            function(name.as_ptr(), with);
        }
    }

    /// Makes a function one that the driver lacks.
    pub fn lacks(&self, name: &str) {
        let name = CString::new(name).unwrap();
        // SAFETY: the stand-in has a function of this prototype, which copies the name.
        unsafe {
            let function: Symbol<unsafe extern "C" fn(*const c_char)> = self.library.get(b"standin_lacks").unwrap();
            function(name.as_ptr());
        }
    }

    /// The calls so far, one per line.
    pub fn log(&self) -> String {
        // SAFETY: the stand-in has a function of this prototype, whose text ends with a NUL.
        unsafe {
            let function: Symbol<unsafe extern "C" fn() -> *const c_char> = self.library.get(b"standin_log").unwrap();
            CStr::from_ptr(function()).to_str().unwrap().to_owned()
        }
    }

    /// The calls whose names begin with `name`, one per line.
    pub fn calls_of(&self, name: &str) -> Vec<String> {
        self.log().lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    }
}
