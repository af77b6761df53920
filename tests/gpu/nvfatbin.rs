//! CUDA's fatbin packer (nvFatbin), which runs without a device.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use libloading::Library;
use tvm_ffi_codegen::image::{Image, ImageKind};

use super::brought;

/// Packs cubins and PTX into a fatbin. `None` if the machine has no nvFatbin.
pub fn pack(images: &[&Image], options: &[&str]) -> Option<Image> {
    let path = brought("TVM_FFI_CODEGEN_NVFATBIN")?;
    // SAFETY: the library is NVIDIA's, and the prototypes are those of nvFatbin.h.
    unsafe {
        let library = Library::new(path).unwrap();
        type Create = unsafe extern "C" fn(*mut *mut c_void, *const *const c_char, usize) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
        type AddCubin = unsafe extern "C" fn(*mut c_void, *const u8, usize, *const c_char, *const c_char) -> c_int;
        type AddPtx =
            unsafe extern "C" fn(*mut c_void, *const u8, usize, *const c_char, *const c_char, *const c_char) -> c_int;
        type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
        type Get = unsafe extern "C" fn(*mut c_void, *mut u8) -> c_int;
        let options: Vec<CString> = options.iter().map(|option| CString::new(*option).unwrap()).collect();
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut fatbin = null_mut();
        let create = library.get::<Create>(b"nvFatbinCreate").unwrap();
        assert_eq!(create(&mut fatbin, pointers.as_ptr(), pointers.len()), 0);
        for image in images {
            let name = image.targets()[0].to_string();
            let (_, architecture) = name.split_once('_').unwrap();
            let (architecture, bytes) = (CString::new(architecture).unwrap(), image.bytes());
            let added = match image.kind() {
                ImageKind::Cubin => {
                    let add = library.get::<AddCubin>(b"nvFatbinAddCubin").unwrap();
                    add(fatbin, bytes.as_ptr(), bytes.len(), architecture.as_ptr(), c"k".as_ptr())
                }
                _ => {
                    let add = library.get::<AddPtx>(b"nvFatbinAddPTX").unwrap();
                    add(fatbin, bytes.as_ptr(), bytes.len(), architecture.as_ptr(), c"k".as_ptr(), null())
                }
            };
            assert_eq!(added, 0, "{name}");
        }
        let mut count = 0;
        assert_eq!(library.get::<Size>(b"nvFatbinSize").unwrap()(fatbin, &mut count), 0);
        let mut bytes = vec![0; count];
        assert_eq!(library.get::<Get>(b"nvFatbinGet").unwrap()(fatbin, bytes.as_mut_ptr()), 0);
        library.get::<Destroy>(b"nvFatbinDestroy").unwrap()(&mut fatbin);
        Some(Image::from_bytes(bytes).unwrap())
    }
}
