//! CUDA's run-time compiler (NVRTC), which runs without a device.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use libloading::Library;
use tvm_ffi_codegen::image::Image;

use super::brought;

/// Compiles an image for an architecture: a cubin for `sm_80`, PTX for `compute_80`. `None` if the machine has no
/// NVRTC.
pub fn compile(source: &str, architecture: &str, options: &[&str]) -> Option<Image> {
    let path = brought("TVM_FFI_CODEGEN_NVRTC")?;
    // SAFETY: the library is NVIDIA's, and the prototypes are those of nvrtc.h.
    unsafe {
        let library = Library::new(path).unwrap();
        type Create = unsafe extern "C" fn(
            *mut *mut c_void,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int;
        type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
        type Get = unsafe extern "C" fn(*mut c_void, *mut u8) -> c_int;
        let (source, name) = (CString::new(source).unwrap(), c"kernels.cu");
        let mut program = null_mut();
        let create = library.get::<Create>(b"nvrtcCreateProgram").unwrap();
        assert_eq!(create(&mut program, source.as_ptr(), name.as_ptr(), 0, null(), null()), 0);
        let architecture_option = format!("--gpu-architecture={architecture}");
        let options: Vec<CString> = options
            .iter()
            .chain([&architecture_option.as_str()])
            .map(|option| CString::new(*option).unwrap())
            .collect();
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let compile = library.get::<Compile>(b"nvrtcCompileProgram").unwrap();
        let status = compile(program, pointers.len() as c_int, pointers.as_ptr());
        let bytes = |size: &[u8], get: &[u8]| {
            let mut count = 0;
            assert_eq!(library.get::<Size>(size).unwrap()(program, &mut count), 0);
            let mut bytes = vec![0; count];
            assert_eq!(library.get::<Get>(get).unwrap()(program, bytes.as_mut_ptr()), 0);
            bytes
        };
        if status != 0 {
            let log = bytes(b"nvrtcGetProgramLogSize", b"nvrtcGetProgramLog");
            panic!("{:?}", CStr::from_bytes_until_nul(&log));
        }
        let image = match architecture.starts_with("sm_") {
            true => bytes(b"nvrtcGetCUBINSize", b"nvrtcGetCUBIN"),
            false => bytes(b"nvrtcGetPTXSize", b"nvrtcGetPTX"),
        };
        // the compiler's threads outlive the test, so its code must too
        std::mem::forget(library);
        Some(Image::from_bytes(image).unwrap())
    }
}
