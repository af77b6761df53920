//! The devices that the tests launch on: the stand-in's, whose memory is the host's, or the machine's own.

use std::ffi::c_void;

use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::runtime::abi::DLTensor;
use tvm_ffi_codegen::runtime::{DLDevice, Element, Tensor};
use tvm_ffi_codegen::{DLDeviceType, runtime};

use super::standin::{self, Driver};
use super::{real, rtc};
use crate::support::{allocator, c_api};

/// The CUDA devices, used by one test at a time.
pub struct Devices {
    /// The stand-in, which logs the driver's calls; `None` on real devices.
    pub standin: Option<Driver>,
}

impl Devices {
    pub fn cuda() -> Self {
        Devices { standin: real::driver().is_none().then(Driver::cuda) }
    }

    /// Clears the log of the driver's calls.
    pub fn reset(&self) {
        self.standin.iter().for_each(Driver::reset);
    }

    /// Asserts the driver's calls whose names begin with `name`, if the stand-in logs them.
    pub fn assert_calls_of(&self, name: &str, expected: &[&str]) {
        self.standin.iter().for_each(|driver| assert_eq!(driver.calls_of(name), expected));
    }

    /// Asserts the number of driver calls, if the stand-in counts them.
    pub fn assert_calls(&self, expected: i32) {
        self.standin.iter().for_each(|driver| assert_eq!(driver.calls(), expected, "{}", driver.log()));
    }

    /// Asserts the number of loaded libraries and how often the contexts of two devices are retained, if the stand-in
    /// counts them.
    pub fn assert_held(&self, libraries: i32, contexts: [i32; 2]) {
        self.standin.iter().for_each(|driver| {
            let held = (driver.libraries(), [driver.retained(0), driver.retained(1)]);
            assert_eq!(held, (libraries, contexts), "{}", driver.log());
        });
    }

    /// A device by number. A number beyond the machine's devices wraps around.
    pub fn device(&self, number: i32) -> DLDevice {
        cuda(real::driver().map_or(number, |driver| number % driver.devices()))
    }

    /// Lets the environment allocate device memory for this thread.
    pub fn install_allocator(&self) {
        match real::driver() {
            None => {
                allocator::install();
                allocator::install_for_devices();
            }
            Some(_) => {
                let allocate = Some(real::allocate_tensor as _);
                // SAFETY: the allocator follows DLPack's rules.
                let set = unsafe { c_api::TVMFFIEnvSetDLPackManagedTensorAllocator(allocate, 0, std::ptr::null_mut()) };
                assert_eq!(set, 0);
            }
        }
    }
}

/// The image of the tests' kernels for an architecture. Its kernel `which` returns the given number.
pub fn image(target: &str, which: u32) -> Image {
    match real::driver() {
        None => standin::ptx(target, which),
        Some(_) => {
            let (target, which) = (target.replace("sm_", "compute_"), format!("-DWHICH={which}"));
            let image = rtc::compile(include_str!("kernels.cu"), &target, &[&which]);
            image.expect("TVM_FFI_CODEGEN_NVRTC has to name NVRTC's library")
        }
    }
}

/// A CUDA device.
pub fn cuda(number: i32) -> DLDevice {
    DLDevice::new(DLDeviceType::CUDA, number)
}

/// A tensor on a device: in the device's memory, or in the host's if the device is the stand-in's.
pub fn on<T: Element>(device: DLDevice, elements: Vec<T>, shape: &[i64]) -> Tensor {
    let source = Tensor::from_vec(elements, shape).unwrap();
    match real::driver() {
        None => view(device, &source, shape, None),
        Some(driver) => driver.tensor(&source, device),
    }
}

/// A view of a tensor's memory with strides.
pub fn view(device: DLDevice, source: &Tensor, shape: &[i64], strides: Option<&[i64]>) -> Tensor {
    let mut shape = shape.to_vec();
    let mut compact = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        compact[d - 1] = compact[d] * shape[d];
    }
    let mut strides = strides.map_or(compact, <[i64]>::to_vec);
    let from = source.as_dl_tensor();
    let prototype = DLTensor {
        data: from.data.cast::<c_void>(),
        device,
        ndim: shape.len() as i32,
        dtype: from.dtype,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: from.byte_offset,
    };
    // SAFETY: the memory is the source's, and the lists have that many numbers.
    unsafe { Tensor::create_unsafe_view(source, &prototype) }.unwrap()
}

/// The elements of a contiguous tensor made with [`on`], once all work of its device is done.
pub fn elements<T: runtime::Element + Copy>(tensor: &Tensor) -> Vec<T> {
    let tensor = tensor.as_dl_tensor();
    if let Some(driver) = real::driver() {
        let bytes = driver.bytes(tensor);
        // SAFETY: elements of numbers are read from as many bytes, whatever their alignment.
        return bytes
            .chunks(size_of::<T>())
            .map(|bytes| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
            .collect();
    }
    // SAFETY: `on` made it, with `ndim` sizes and as many elements in memory of the host.
    unsafe {
        let shape = std::slice::from_raw_parts(tensor.shape, tensor.ndim as usize);
        match shape.iter().product::<i64>() as usize {
            // without elements there may be no memory
            0 => Vec::new(),
            count => std::slice::from_raw_parts(tensor.data.cast::<T>(), count).to_vec(),
        }
    }
}
