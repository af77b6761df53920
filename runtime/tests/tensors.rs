use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::error::take_raised;
use tvm_ffi_runtime::{AsObject, Error, Function, Tensor, TensorView};

use crate::faults::with_ever_more_allocations;
use crate::support::*;

#[test]
fn new_tensors_are_zero_contiguous_and_aligned() {
    let tensor = Tensor::empty(&[2, 3], DLDataType::FLOAT32, DLDevice::CPU).unwrap();
    assert_eq!((tensor.shape(), tensor.strides()), (&[2, 3][..], &[3, 1][..]));
    assert_eq!((tensor.ndim(), tensor.numel(), tensor.nbytes()), (2, 6, 24));
    assert!(tensor.is_contiguous() && tensor.is_aligned(256));
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [0.0; 6]);
    let scalar = Tensor::from_slice(&[7i64], &[]).unwrap();
    assert_eq!((scalar.ndim(), scalar.numel()), (0, 1));
    assert_eq!(scalar.to_vec::<i64>().unwrap(), [7]);
    let nothing = Tensor::empty(&[0, 4], DLDataType::INT8, DLDevice::CPU).unwrap();
    assert!(nothing.data_ptr().is_null());
    assert!(nothing.to_vec::<i8>().unwrap().is_empty());
}

#[test]
fn bad_sizes_and_devices_are_errors() {
    let make = |shape: &[i64], device| Tensor::empty(shape, DLDataType::FLOAT64, device);
    assert_eq!(make(&[-1], DLDevice::CPU).unwrap_err().kind(), "ValueError");
    assert_eq!(make(&[i64::MAX, 3], DLDevice::CPU).unwrap_err().kind(), "ValueError");
    assert_eq!(make(&[i64::MAX], DLDevice::CPU).unwrap_err().kind(), "ValueError");
    assert_eq!(make(&[1], DLDevice::cuda(0)).unwrap_err().kind(), "ValueError");
    assert!(Tensor::from_slice(&[1i32, 2], &[3]).is_err());
}

#[test]
#[cfg_attr(miri, ignore = "a failed allocation ends Miri")]
fn missing_memory_is_an_error() {
    // More memory than any machine has. The allocation fails, but doesn't end the process.
    let huge = Tensor::empty(&[1 << 56], DLDataType::UINT8, DLDevice::CPU);
    assert_eq!(huge.unwrap_err().kind(), "MemoryError");
}

#[test]
fn writing_needs_the_only_reference() {
    let mut tensor = Tensor::from_slice(&[1i32, 2, 3], &[3]).unwrap();
    tensor.as_mut_slice::<i32>().unwrap()[1] = 20;
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [1, 20, 3]);
    let other = tensor.clone();
    assert_eq!(tensor.as_mut_slice::<i32>().unwrap_err().kind(), "RuntimeError");
    drop(other);
    assert!(tensor.as_mut_slice::<i32>().is_ok());
    assert_eq!(tensor.to_vec::<f32>().unwrap_err().kind(), "TypeError");
}

#[test]
fn foreign_booleans_are_checked() {
    let bytes = Tensor::from_slice(&[0u8, 1, 2], &[3]).unwrap();
    let prototype = DLTensor { dtype: DLDataType::BOOL, ..*bytes.as_dl_tensor() };
    // SAFETY: the prototype is the source's own, except for another type of the same size.
    let bools = unsafe { Tensor::create_unsafe_view(&bytes, &prototype) }.unwrap();
    assert_eq!(bools.to_vec::<bool>().unwrap_err().kind(), "ValueError");
}

#[test]
fn slices_are_passed_as_views() {
    let add_one = Function::from_packed(|args| {
        let tensor: *mut DLTensor = args[0].cast()?;
        // SAFETY: the caller passes a view of four floats to write.
        unsafe {
            let tensor = &*tensor;
            assert_eq!((tensor.ndim, *tensor.shape, *tensor.strides), (2, 2, 2));
            for i in 0..4 {
                *tensor.data.cast::<f32>().add(i) += 1.0;
            }
        }
        Ok(().into())
    });
    let mut data = [1.0f32, 2.0, 3.0, 4.0];
    let view = TensorView::from_mut_slice(&mut data, &[2, 2]).unwrap();
    let moved = Box::new(view);
    add_one.call((&*moved,)).unwrap();
    drop(moved);
    assert_eq!(data, [2.0, 3.0, 4.0, 5.0]);
    let tensor = Tensor::from_slice(&data, &[2, 2]).unwrap();
    add_one.call((&tensor,)).unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [3.0, 4.0, 5.0, 6.0]);
    assert!(TensorView::from_mut_slice(&mut data, &[5]).is_err());
}

struct Source {
    data: [f32; 6],
    shape: [i64; 2],
    deleted: AtomicUsize,
}

impl Source {
    fn new() -> Self {
        Self { data: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape: [2, 3], deleted: AtomicUsize::new(0) }
    }

    fn tensor(&mut self) -> DLTensor {
        DLTensor {
            data: self.data.as_mut_ptr().cast(),
            device: DLDevice::CPU,
            ndim: 2,
            dtype: DLDataType::FLOAT32,
            shape: self.shape.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }
    }

    fn versioned(&mut self) -> *mut DLManagedTensorVersioned {
        Box::into_raw(Box::new(DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            dl_tensor: self.tensor(),
            manager_ctx: counter_ptr(&self.deleted),
            deleter: Some(delete_versioned),
            flags: 0,
        }))
    }
}

unsafe extern "C" fn delete_legacy(managed: *mut DLManagedTensor) {
    // SAFETY: a box of these tests made it, and the context is a counter.
    unsafe { count_up(Box::from_raw(managed).manager_ctx) };
}

unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: as above.
    unsafe { count_up(Box::from_raw(managed).manager_ctx) };
}

#[test]
fn legacy_import_fills_strides_and_deletes_once() {
    let mut source = Source::new();
    let managed = Box::into_raw(Box::new(DLManagedTensor {
        dl_tensor: source.tensor(),
        manager_ctx: counter_ptr(&source.deleted),
        deleter: Some(delete_legacy),
    }));
    let mut out = std::ptr::null_mut();
    // SAFETY: the structure is filled.
    let got = unsafe { TVMFFITensorFromDLPack(managed, 4, 1, &mut out) };
    assert_eq!(got, 0);
    let mut tensor: Tensor = own(out);
    assert_eq!(tensor.strides(), [3, 1]);
    assert_eq!(tensor.to_vec::<f32>().unwrap()[5], 6.0);
    assert!(tensor.as_mut_slice::<f32>().is_err());
    let clone = tensor.clone();
    drop(tensor);
    assert_eq!(source.deleted.load(Ordering::SeqCst), 0);
    drop(clone);
    assert_eq!(source.deleted.load(Ordering::SeqCst), 1);
}

#[test]
fn refused_imports_stay_the_callers() {
    let mut source = Source::new();
    let managed = source.versioned();
    let mut out = std::ptr::null_mut();
    let mut strides = [1i64, 2];
    // SAFETY: the structure is filled, and stays this test's on errors.
    unsafe {
        (*managed).dl_tensor.byte_offset = 2;
        raised(TVMFFITensorFromDLPackVersioned(managed, 4, 0, &mut out));
        (*managed).dl_tensor.byte_offset = 0;
        (*managed).dl_tensor.strides = strides.as_mut_ptr();
        let code = TVMFFITensorFromDLPackVersioned(managed, 0, 1, &mut out);
        assert!(raised(code).message().contains("not contiguous"));
        (*managed).flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
        raised(TVMFFITensorFromDLPackVersioned(managed, 0, 0, &mut out));
        (*managed).flags = 0;
        (*managed).version.major = 2;
        raised(TVMFFITensorFromDLPackVersioned(managed, 0, 0, &mut out));
        assert_eq!(source.deleted.load(Ordering::SeqCst), 0);
        (*managed).version.major = 1;
        assert_eq!(TVMFFITensorFromDLPackVersioned(managed, 0, 0, &mut out), 0);
    }
    let tensor: Tensor = own(out);
    assert_eq!(tensor.strides(), [1, 2]);
    assert!(tensor.to_vec::<f32>().is_err());
    drop(tensor);
    assert_eq!(source.deleted.load(Ordering::SeqCst), 1);
}

#[test]
fn exports_hold_a_reference() {
    let tensor = Tensor::from_slice(&[1u8, 2, 3], &[3]).unwrap();
    let handle = tensor.as_object().as_ptr().cast::<c_void>();
    let (mut legacy, mut versioned) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the tensor is alive; each deleter is called once.
    unsafe {
        assert_eq!(TVMFFITensorToDLPack(handle, &mut legacy), 0);
        assert_eq!(TVMFFITensorToDLPackVersioned(handle, &mut versioned), 0);
        assert_eq!(tensor.as_object().strong_count(), 3);
        assert_eq!((*versioned).version.major, DLPACK_MAJOR_VERSION);
        assert_eq!((*legacy).dl_tensor.data, tensor.data_ptr());
        (*legacy).deleter.unwrap()(legacy);
        assert_eq!(tensor.as_object().strong_count(), 2);
        let again = Tensor::from_dlpack_versioned(versioned, 256, true).unwrap();
        assert_eq!(again.to_vec::<u8>().unwrap(), [1, 2, 3]);
        drop(again);
    }
    assert_eq!(tensor.as_object().strong_count(), 1);
}

#[test]
fn views_keep_their_source() {
    let tensor = Tensor::from_slice(&[1i16, 2, 3, 4], &[4]).unwrap();
    let (mut shape, mut strides) = ([2i64], [1i64]);
    let prototype = DLTensor {
        ndim: 1,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 4,
        ..*tensor.as_dl_tensor()
    };
    let mut out = std::ptr::null_mut();
    let handle = tensor.as_object().as_ptr().cast();
    // SAFETY: the prototype describes part of the source.
    let got = unsafe { TVMFFITensorCreateUnsafeView(handle, &prototype, &mut out) };
    assert_eq!(got, 0);
    drop(tensor);
    let view: Tensor = own(out);
    // The lists were copied.
    assert_ne!(view.shape().as_ptr(), shape.as_ptr());
    assert_eq!(view.shape(), [2]);
    assert_eq!(view.to_vec::<i16>().unwrap(), [3, 4]);
}

unsafe extern "C" fn allocate(
    _prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> i32 {
    if out.is_null() {
        return -1;
    }
    // SAFETY: the callback takes NUL-terminated strings.
    unsafe { set_error.unwrap()(error_ctx, c"MemoryError".as_ptr(), c"none left".as_ptr()) };
    -1
}

#[test]
fn environment_allocates_and_keeps_streams() {
    // On a separate thread: allocator and streams belong to threads.
    std::thread::spawn(|| {
        let mut shape = [2i64, 2];
        assert!(TVMFFIEnvGetDLPackManagedTensorAllocator().is_none());
        let mut prototype = DLTensor {
            data: std::ptr::null_mut(),
            device: DLDevice::CPU,
            ndim: 2,
            dtype: DLDataType::INT32,
            shape: shape.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let mut out = std::ptr::null_mut();
        // SAFETY: all arguments are valid.
        unsafe {
            assert_eq!(TVMFFIEnvTensorAlloc(&mut prototype, &mut out), 0);
            assert_eq!(own::<Tensor>(out).shape(), [2, 2]);
            prototype.device = DLDevice { device_type: DLDeviceType::CUDA, device_id: 1 };
            let error = raised(TVMFFIEnvTensorAlloc(&mut prototype, &mut out));
            assert_eq!(error.kind(), "RuntimeError");
            assert!(error.message().contains("no allocator for tensors on cuda:1"), "{error}");
            prototype.device = DLDevice::CPU;
            let none = std::ptr::null_mut();
            assert_eq!(TVMFFIEnvSetDLPackManagedTensorAllocator(Some(allocate), 0, none), 0);
            assert!(TVMFFIEnvGetDLPackManagedTensorAllocator().is_some());
            let error = raised(TVMFFIEnvTensorAlloc(&mut prototype, &mut out));
            assert_eq!(error.to_string(), "MemoryError: none left");

            let stream = std::ptr::without_provenance_mut(16);
            let mut old = stream;
            assert_eq!(TVMFFIEnvSetStream(2, 0, stream, &mut old), 0);
            assert!(old.is_null());
            assert_eq!(TVMFFIEnvGetStream(2, 0), stream);
            assert!(TVMFFIEnvGetStream(2, 1).is_null());
            raised(TVMFFIEnvSetStream(-1, 0, stream, std::ptr::null_mut()));
        }
        assert_eq!(TVMFFIEnvCheckSignals(), 0);
    })
    .join()
    .unwrap();
}

#[test]
#[cfg(not(miri))]
fn tensors_without_memory_are_errors() {
    let status = alone("tensors::tensors_without_memory_are_errors", || {
        let is_memory_error = |error: Error| assert_eq!(error.kind(), "MemoryError", "{error}");
        drop(Error::new("ValueError", "first"));
        let (elements, shape) = ([1f32; 6], [2i64, 3]);
        let tensor = Tensor::from_slice(&elements, &shape).unwrap();
        let mut prototype = *tensor.as_dl_tensor();
        let mut made = 0;
        made += with_ever_more_allocations(|| drop(Tensor::from_slice(&elements, &shape).map_err(is_memory_error)));
        made += with_ever_more_allocations(|| {
            // SAFETY: the prototype is the tensor's own.
            drop(unsafe { Tensor::create_unsafe_view(&tensor, &prototype) }.map_err(is_memory_error));
        });
        let mut allocate = || {
            let mut out = std::ptr::null_mut();
            // SAFETY: the prototype is filled, and the place writable.
            match unsafe { TVMFFIEnvTensorAlloc(&mut prototype, &mut out) } {
                0 => drop(own::<Tensor>(out)),
                _ => is_memory_error(take_raised().unwrap()),
            }
        };
        made += with_ever_more_allocations(&mut allocate);
        // With the crate's own allocator of DLPack. Its structures are imported.
        tvm_ffi_runtime::install_cpu_allocator().unwrap();
        made += with_ever_more_allocations(&mut allocate);
        made += with_ever_more_allocations(|| {
            let mut out = std::ptr::null_mut();
            // SAFETY: the tensor is alive, and the place writable; the structure's deleter is called once.
            unsafe {
                match TVMFFITensorToDLPackVersioned(tensor.as_object().as_ptr().cast(), &mut out) {
                    0 => (*out).deleter.unwrap()(out),
                    _ => is_memory_error(take_raised().unwrap()),
                }
            }
        });
        assert!(made >= 10, "{made}");
        assert_eq!(tensor.as_object().strong_count(), 1);
    });
    assert!(status.success(), "{status}");
}
