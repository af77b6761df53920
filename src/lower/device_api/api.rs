//! The table of device APIs: their functions, by name and least version, and how a launch differs among them.

use crate::ir::Type::{self, I32, I64, Ptr};
use crate::ir::{AbiParam, FuncSig};
use crate::lower::protocol::helpers::{CUDA_HELPERS, HIP_HELPERS, LaunchHelpers};
use tvm_ffi_runtime::abi::DLDeviceType;

/// A device API, by which kernels are loaded and launched.
#[derive(Debug)]
pub(in crate::lower) struct Api {
    /// The name in symbols.
    pub name: &'static str,
    /// The name in messages.
    pub shown: &'static str,
    /// The kind of the devices.
    pub device: DLDeviceType,
    /// The driver's library.
    pub library: &'static str,
    /// The driver's library on Windows.
    pub library_of_windows: &'static str,
    /// The function that gives the others by name and version; without it they are symbols of the library.
    pub get_proc_address: Option<&'static str>,
    /// The functions, in the order of [`Call`].
    pub functions: &'static [Function],
    /// The attributes of a device that are read at its first use.
    pub attributes: Attributes,
    /// The kernel's attribute for its most dynamic shared memory, and that for clusters of more than 8 blocks.
    pub most_shared: Option<u32>,
    pub non_portable_cluster: Option<u32>,
    /// The symbols of the helpers that wrappers call.
    pub helpers: LaunchHelpers,
    /// One loaded image serves all devices, and kernels run in the context of their stream. Otherwise an image is loaded for each device, which is the
    /// thread's current one then.
    pub has_contexts: bool,
}

/// A function of an API.
#[derive(Debug)]
pub(in crate::lower) struct Function {
    /// The name; empty where the API has no such function.
    pub name: &'static str,
    /// The least version of the driver that has it: 12000 for 12.0.
    pub version: u32,
    /// A driver may do without it.
    pub optional: bool,
    params: &'static [Type],
}

/// The numbers of a device's attributes.
#[derive(Debug)]
pub(in crate::lower) struct Attributes {
    /// The compute capability.
    pub capability: [u32; 2],
    /// The most threads of a block, and the most in x, y and z.
    pub block: [u32; 4],
    /// The most shared memory of a block where the kernel has asked for it.
    pub shared: u32,
}

/// A function that generated code calls, by its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum Call {
    Init,
    Device,
    Attribute,
    Retain,
    Release,
    Current,
    Enter,
    Leave,
    Load,
    Kernel,
    SetAttribute,
    Launch,
    LaunchCooperative,
    Unload,
    ErrorName,
    ErrorText,
    TensorMap,
    ParamInfo,
}

const fn function(name: &'static str, version: u32, params: &'static [Type]) -> Function {
    Function { name, version, optional: false, params }
}

const fn optional(name: &'static str, version: u32, params: &'static [Type]) -> Function {
    Function { optional: true, ..function(name, version, params) }
}

impl Attributes {
    /// How many they are.
    pub(super) const COUNT: usize = 7;

    /// Their numbers, in the order in which a device's record has the values.
    pub(super) fn in_order(&self) -> [u32; Self::COUNT] {
        let ([major, minor], [threads, x, y, z]) = (self.capability, self.block);
        [major, minor, threads, x, y, z, self.shared]
    }
}

impl Api {
    /// The APIs that launches go to by a driver.
    pub(super) fn all() -> [&'static Api; 2] {
        [&CUDA, &HIP]
    }

    /// The API of a kind of device.
    pub(in crate::lower) fn of(device: DLDeviceType) -> Option<&'static Api> {
        Self::all().into_iter().find(|api| api.device == device)
    }

    /// The name of a function, empty where the API has no such function.
    pub(in crate::lower) fn function_name(&self, call: Call) -> &'static str {
        self.function(call).name
    }

    pub(super) fn function(&self, call: Call) -> &Function {
        &self.functions[call as usize]
    }
}

impl Function {
    /// The prototype: each function gives a status.
    pub(super) fn signature(&self) -> FuncSig {
        let ret = Some(AbiParam::signed(Type::I32));
        FuncSig { ret, ..FuncSig::new(self.params.iter().copied(), None) }
    }
}

/// The CPU, whose launches need no driver.
pub(in crate::lower) static CPU: Api = Api {
    name: "cpu",
    shown: "CPU",
    device: DLDeviceType::CPU,
    library: "",
    library_of_windows: "",
    get_proc_address: None,
    functions: &[],
    attributes: Attributes { capability: [0; 2], block: [0; 4], shared: 0 },
    most_shared: None,
    non_portable_cluster: None,
    helpers: LaunchHelpers { first_use: "", report: "" },
    has_contexts: false,
};

/// CUDA's driver API (cuda.h).
pub(in crate::lower) static CUDA: Api = Api {
    name: "cuda",
    shown: "CUDA",
    device: DLDeviceType::CUDA,
    library: "libcuda.so.1",
    library_of_windows: "nvcuda.dll",
    get_proc_address: Some("cuGetProcAddress_v2"),
    functions: &[
        function("cuInit", 2000, &[I32]),
        function("cuDeviceGet", 2000, &[Ptr, I32]),
        function("cuDeviceGetAttribute", 2000, &[Ptr, I32, I32]),
        function("cuDevicePrimaryCtxRetain", 7000, &[Ptr, I32]),
        function("cuDevicePrimaryCtxRelease", 11000, &[I32]),
        function("cuCtxGetCurrent", 4000, &[Ptr]),
        function("cuCtxPushCurrent", 4000, &[Ptr]),
        function("cuCtxPopCurrent", 4000, &[Ptr]),
        function("cuLibraryLoadData", 12000, &[Ptr, Ptr, Ptr, Ptr, I32, Ptr, Ptr, I32]),
        function("cuLibraryGetKernel", 12000, &[Ptr, Ptr, Ptr]),
        function("cuKernelSetAttribute", 12000, &[I32, I32, Ptr, I32]),
        function("cuLaunchKernelEx", 11060, &[Ptr, Ptr, Ptr, Ptr]),
        function("", 0, &[]),
        function("cuLibraryUnload", 12000, &[Ptr]),
        function("cuGetErrorName", 6000, &[I32, Ptr]),
        function("cuGetErrorString", 6000, &[I32, Ptr]),
        function("cuTensorMapEncodeTiled", 12000, &[Ptr, I32, I32, Ptr, Ptr, Ptr, Ptr, Ptr, I32, I32, I32, I32]),
        optional("cuKernelGetParamInfo", 12040, &[Ptr, I64, Ptr, Ptr]),
    ],
    attributes: Attributes { capability: [75, 76], block: [1, 2, 3, 4], shared: 97 },
    most_shared: Some(8),
    non_portable_cluster: Some(14),
    helpers: CUDA_HELPERS,
    has_contexts: true,
};

/// HIP's runtime API (hip_runtime_api.h), as far as it launches modules.
pub(in crate::lower) static HIP: Api = Api {
    name: "hip",
    shown: "HIP",
    device: DLDeviceType::ROCM,
    library: "libamdhip64.so",
    library_of_windows: "amdhip64_6.dll",
    get_proc_address: None,
    functions: &[
        function("hipInit", 0, &[I32]),
        function("hipDeviceGet", 0, &[Ptr, I32]),
        function("hipDeviceGetAttribute", 0, &[Ptr, I32, I32]),
        function("", 0, &[]),
        function("", 0, &[]),
        function("hipGetDevice", 0, &[Ptr]),
        function("hipSetDevice", 0, &[I32]),
        function("hipSetDevice", 0, &[I32]),
        function("hipModuleLoadData", 0, &[Ptr, Ptr]),
        function("hipModuleGetFunction", 0, &[Ptr, Ptr, Ptr]),
        function("", 0, &[]),
        function("hipModuleLaunchKernel", 0, &[Ptr, I32, I32, I32, I32, I32, I32, I32, Ptr, Ptr, Ptr]),
        function("hipModuleLaunchCooperativeKernel", 0, &[Ptr, I32, I32, I32, I32, I32, I32, I32, Ptr, Ptr]),
        function("hipModuleUnload", 0, &[Ptr]),
        function("hipDrvGetErrorName", 0, &[I32, Ptr]),
        function("hipDrvGetErrorString", 0, &[I32, Ptr]),
        function("", 0, &[]),
        function("", 0, &[]),
    ],
    // hipDeviceAttribute_t: ComputeCapabilityMajor and Minor, MaxThreadsPerBlock, MaxBlockDimX to Z, MaxSharedMemoryPerBlock
    attributes: Attributes { capability: [23, 61], block: [56, 26, 27, 28], shared: 74 },
    most_shared: None,
    non_portable_cluster: None,
    helpers: HIP_HELPERS,
    has_contexts: false,
};
