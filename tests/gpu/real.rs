//! The driver of the machine, if the tests run on real devices: memory, streams and their capture.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use libloading::Library;
use tvm_ffi_codegen::runtime::abi::{DLManagedTensorVersioned, DLPackSetError, DLPackVersion, DLTensor};
use tvm_ffi_codegen::runtime::{DLDevice, Tensor};

use super::standin;

/// Set by `cargo xtask gpu`: the tests of launches run on the machine's devices.
const REAL: &str = "TVM_FFI_CODEGEN_REAL_DEVICES";

/// The driver, if the tests run on the machine's devices.
pub fn driver() -> Option<&'static RealDriver> {
    static DRIVER: OnceLock<Option<RealDriver>> = OnceLock::new();
    DRIVER.get_or_init(|| std::env::var_os(REAL).map(|_| RealDriver::new())).as_ref()
}

/// The functions of cuda.h that the tests themselves call, and the devices' primary contexts.
pub struct RealDriver {
    library: Library,
    contexts: Vec<usize>,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {$(
        $(#[$doc])*
        fn $name(&self $(, $arg: $ty)*) {
            // SAFETY: cuda.h declares this prototype, and the callers below keep its rules.
            let status = unsafe {
                self.library.get::<unsafe extern "C" fn($($ty),*) -> c_int>($symbol).unwrap()($($arg),*)
            };
            assert_eq!(status, 0, "{}", String::from_utf8_lossy($symbol));
        }
    )*};
}

impl RealDriver {
    fn new() -> Self {
        // SAFETY: the driver's initialisers are the vendor's.
        let library = unsafe { Library::new(standin::NAMES[0]) }.unwrap();
        let mut driver = Self { library, contexts: Vec::new() };
        let mut count = 0;
        driver.init(0);
        driver.device_count(&mut count);
        for number in 0..count {
            let mut context = null_mut();
            driver.retain(&mut context, number);
            driver.contexts.push(context as usize);
        }
        assert!(count > 0, "the machine has no device");
        driver
    }

    functions! {
        init = b"cuInit"(flags: c_uint);
        device_count = b"cuDeviceGetCount"(count: *mut c_int);
        device_attribute = b"cuDeviceGetAttribute"(value: *mut c_int, attribute: c_int, device: c_int);
        retain = b"cuDevicePrimaryCtxRetain"(context: *mut *mut c_void, device: c_int);
        push = b"cuCtxPushCurrent_v2"(context: *mut c_void);
        pop = b"cuCtxPopCurrent_v2"(context: *mut *mut c_void);
        current_context = b"cuCtxGetCurrent"(context: *mut *mut c_void);
        allocate = b"cuMemAlloc_v2"(address: *mut u64, bytes: usize);
        free = b"cuMemFree_v2"(address: u64);
        to_device = b"cuMemcpyHtoD_v2"(to: u64, from: *const c_void, bytes: usize);
        to_host = b"cuMemcpyDtoH_v2"(to: *mut c_void, from: u64, bytes: usize);
        synchronize = b"cuCtxSynchronize"();
        stream_create = b"cuStreamCreate"(stream: *mut *mut c_void, flags: c_uint);
        stream_destroy = b"cuStreamDestroy_v2"(stream: *mut c_void);
        event_create = b"cuEventCreate"(event: *mut *mut c_void, flags: c_uint);
        event_synchronize = b"cuEventSynchronize"(event: *mut c_void);
        event_destroy = b"cuEventDestroy_v2"(event: *mut c_void);
        library_module = b"cuLibraryGetModule"(module: *mut *mut c_void, library: *mut c_void);
        begin_capture = b"cuStreamBeginCapture_v2"(stream: *mut c_void, mode: c_uint);
        end_capture = b"cuStreamEndCapture"(stream: *mut c_void, graph: *mut *mut c_void);
        instantiate = b"cuGraphInstantiateWithFlags"(to: *mut *mut c_void, graph: *mut c_void, flags: u64);
        graph_launch = b"cuGraphLaunch"(graph: *mut c_void, stream: *mut c_void);
        graph_destroy = b"cuGraphDestroy"(graph: *mut c_void);
        instance_destroy = b"cuGraphExecDestroy"(graph: *mut c_void);
        device_name = b"cuDeviceGetName"(name: *mut c_char, length: c_int, device: c_int);
    }

    /// The number of devices.
    pub fn devices(&self) -> i32 {
        self.contexts.len() as i32
    }

    /// The compute capability of a device: 90 for 9.0.
    pub fn capability(&self, device: i32) -> i32 {
        let (mut major, mut minor) = (0, 0);
        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        self.device_attribute(&mut major, 75, device);
        self.device_attribute(&mut minor, 76, device);
        10 * major + minor
    }

    /// The name of a device.
    pub fn name(&self, device: i32) -> String {
        let mut name = [0; 256];
        self.device_name(name.as_mut_ptr(), 256, device);
        // SAFETY: the driver ends the name with a NUL.
        unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned()
    }

    /// The thread's current context.
    pub fn current(&self) -> *mut c_void {
        let mut context = null_mut();
        self.current_context(&mut context);
        context
    }

    /// Runs a function while a device's primary context is current.
    pub fn within<R>(&self, device: i32, run: impl FnOnce() -> R) -> R {
        self.push(self.contexts[device as usize] as *mut c_void);
        let result = run();
        self.pop(&mut null_mut());
        result
    }

    /// Runs a function with a new stream of a device that doesn't wait for the default one. Then waits for all of the
    /// device's work.
    pub fn with_new_stream<R>(&self, device: i32, run: impl FnOnce(*mut c_void) -> R) -> R {
        let mut stream = null_mut();
        // CU_STREAM_NON_BLOCKING
        self.within(device, || self.stream_create(&mut stream, 1));
        let result = run(stream);
        self.within(device, || {
            self.synchronize();
            self.stream_destroy(stream);
        });
        result
    }

    /// Runs a function with a new event without times of device 0. Then waits for the event.
    pub fn with_new_event<R>(&self, run: impl FnOnce(*mut c_void) -> R) -> R {
        let mut event = null_mut();
        // CU_EVENT_DISABLE_TIMING
        self.within(0, || self.event_create(&mut event, 2));
        let result = run(event);
        self.within(0, || {
            self.event_synchronize(event);
            self.event_destroy(event);
        });
        result
    }

    /// The module of a library in the current context.
    pub fn module_of(&self, library: *mut c_void) -> *mut c_void {
        let mut module = null_mut();
        self.library_module(&mut module, library);
        module
    }

    /// Captures the work on a stream as a graph, then launches the graph `times` times.
    pub fn captured(&self, device: i32, stream: *mut c_void, times: u32, run: impl FnOnce()) {
        let (mut graph, mut instance) = (null_mut(), null_mut());
        // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: the other threads' tests allocate memory
        self.within(device, || self.begin_capture(stream, 1));
        run();
        self.within(device, || {
            self.end_capture(stream, &mut graph);
            self.instantiate(&mut instance, graph, 0);
            (0..times).for_each(|_| self.graph_launch(instance, stream));
            self.synchronize();
            self.instance_destroy(instance);
            self.graph_destroy(graph);
        });
    }

    /// A tensor on a device with the elements of another one.
    pub fn tensor(&self, source: &Tensor, device: DLDevice) -> Tensor {
        let from = source.as_dl_tensor();
        let bytes = bytes_of(from);
        let prototype = DLTensor { device, ..*from };
        let mut managed = null_mut();
        // SAFETY: the prototype is that of a tensor; the new memory holds as many bytes as the source's.
        unsafe {
            assert_eq!(allocate_tensor(&raw const prototype as *mut DLTensor, &mut managed, null_mut(), None), 0);
            let to = (*managed).dl_tensor.data as u64;
            self.within(device.device_id, || self.to_device(to, from.data, bytes));
            Tensor::from_dlpack_versioned(managed, 0, true).unwrap()
        }
    }

    /// The bytes of a contiguous tensor, once all of its device's work is done.
    pub fn bytes(&self, tensor: &DLTensor) -> Vec<u8> {
        let mut bytes = vec![0; bytes_of(tensor)];
        self.within(tensor.device.device_id, || {
            self.synchronize();
            self.to_host(bytes.as_mut_ptr().cast(), tensor.data as u64 + tensor.byte_offset, bytes.len());
        });
        bytes
    }
}

/// The number of bytes of a contiguous tensor's elements.
fn bytes_of(tensor: &DLTensor) -> usize {
    // SAFETY: a tensor has as many sizes.
    let shape = unsafe { std::slice::from_raw_parts(tensor.shape, tensor.ndim as usize) };
    shape.iter().product::<i64>() as usize * usize::from(tensor.dtype.bits) / 8
}

/// DLPack's description of a tensor, followed by its sizes and strides.
#[repr(C)]
struct Memory {
    managed: DLManagedTensorVersioned,
    dims: Vec<i64>,
}

/// The environment's allocator for memory of real devices.
pub unsafe extern "C" fn allocate_tensor(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    _: *mut c_void,
    _: Option<DLPackSetError>,
) -> c_int {
    // SAFETY: a prototype has its sizes, and the result has a place.
    unsafe {
        let prototype = &*prototype;
        let shape = std::slice::from_raw_parts(prototype.shape, prototype.ndim as usize);
        let strides = (0..shape.len()).map(|i| shape[i + 1..].iter().product());
        let mut dims: Vec<i64> = shape.iter().copied().chain(strides).collect();
        let mut data = 0;
        let driver = driver().unwrap();
        // the driver doesn't allocate 0 bytes
        driver.within(prototype.device.device_id, || driver.allocate(&mut data, bytes_of(prototype).max(1)));
        let dl_tensor = DLTensor {
            data: data as *mut c_void,
            shape: dims.as_mut_ptr(),
            strides: dims.as_mut_ptr().add(shape.len()),
            byte_offset: 0,
            ..*prototype
        };
        let version = DLPackVersion { major: 1, minor: 1 };
        let (manager_ctx, deleter) = (null_mut(), Some(delete_tensor as unsafe extern "C" fn(_)));
        let managed = DLManagedTensorVersioned { version, manager_ctx, deleter, flags: 0, dl_tensor };
        out.write(Box::into_raw(Box::new(Memory { managed, dims })).cast());
    }
    0
}

unsafe extern "C" fn delete_tensor(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: it is the beginning of one of `allocate_tensor`.
    let Memory { managed, dims } = *unsafe { Box::from_raw(tensor.cast::<Memory>()) };
    let driver = driver().unwrap();
    driver.within(managed.dl_tensor.device.device_id, || driver.free(managed.dl_tensor.data as u64));
    drop(dims);
}
