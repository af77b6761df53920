//! The table of device APIs: each API's functions with name and minimum driver version, and how its launches differ.

use crate::image::{Image, ImageKind};
use crate::ir::Type::{self, I32, I64, Ptr};
use crate::ir::{AbiParam, FuncSig};
use tvm_ffi_runtime::abi::DLDeviceType;

/// A device API, which loads and launches kernels.
#[derive(PartialEq, Eq, Debug)]
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
    /// The function that resolves the others by name and version. Without it, they are symbols of the library.
    pub get_proc_address: Option<&'static str>,
    /// The functions that the API has.
    pub functions: &'static [(Call, Function)],
    /// The kinds of images that the API can load.
    pub images: &'static [ImageKind],
    /// The device attributes that are read at a device's first use.
    pub attributes: Attributes,
    /// The kernel attributes for shared memory, for APIs where a kernel has to request its maximum.
    pub kernel_shared: Option<SharedAttributes>,
    /// The kernel's attribute for clusters of more than 8 blocks.
    pub non_portable_cluster: Option<u32>,
    pub helpers: HelperSymbols,
    pub home: KernelHome,
    pub launch: LaunchForm,
}

/// Where loaded images and their kernels belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum KernelHome {
    /// One loaded image serves all devices; a kernel runs in the context of its stream.
    Contexts,
    /// An image is loaded once per device, into the device that is current for the thread at that time.
    CurrentDevice,
}

/// How the driver's launch function takes its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum LaunchForm {
    /// A configuration, `CUlaunchConfig` of cuda.h, with attributes.
    Configuration,
    /// Extents, shared memory and stream are separate arguments. Cooperative launches have their own function.
    Arguments,
}

/// A function of an API.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::lower) struct Function {
    pub name: &'static str,
    /// The minimum driver version that has the function: 12000 for 12.0.
    pub version: u32,
    /// Whether a driver may lack the function.
    pub optional: bool,
    params: &'static [Type],
}

/// The numbers of the kernel attributes for shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) struct SharedAttributes {
    /// The static shared memory.
    pub own: u32,
    /// The max dynamic shared memory per launch.
    pub max: u32,
}

/// The numbers of the device attributes.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::lower) struct Attributes {
    /// The compute capability: major and minor number.
    pub capability: [u32; 2],
    /// The max threads of a block: in total, then in x, y and z.
    pub block: [u32; 4],
    /// The max shared memory of a block, if the kernel requests it.
    pub shared: u32,
}

/// Which APIs have to have a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    /// Every API.
    Always,
    /// APIs whose kernels run in contexts.
    Contexts,
    /// APIs with attributes of kernels.
    KernelAttributes,
    /// None: launches do without the function.
    Never,
    /// None: graphs fall back to launches without the function. Only libraries with graphs look it up.
    Graphs,
}

/// Defines the functions, each with the APIs that have to have it.
macro_rules! calls {
    ($($variant:ident $need:ident;)*) => {
        /// A driver function that generated code calls. The value is its index in the function table.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub(in crate::lower) enum Call {
            $($variant,)*
        }

        impl Call {
            /// All functions, in the order of the table in generated code.
            pub(super) const ALL: &'static [Call] = &[$(Call::$variant),*];

            /// The number of functions that libraries without graphs look up: the first ones.
            pub(super) const COUNT_WITHOUT_GRAPHS: usize = {
                let mut count = 0;
                while count < Call::ALL.len() && !matches!(Call::ALL[count].need(), Need::Graphs) {
                    count += 1;
                }
                count
            };

            const fn need(self) -> Need {
                match self {
                    $(Call::$variant => Need::$need,)*
                }
            }

            /// The message about an API that lacks the function.
            const fn missing(self) -> &'static str {
                match self {
                    $(Call::$variant => concat!("an API lacks the function of `Call::", stringify!($variant), "`"),)*
                }
            }
        }
    };
}

calls! {
    Init Always;
    Device Always;
    Attribute Always;
    Retain Contexts;
    Release Contexts;
    Current Always;
    Enter Always;
    Leave Always;
    Load Always;
    Kernel Always;
    SetAttribute KernelAttributes;
    Launch Always;
    LaunchCooperative Never;
    Unload Always;
    ErrorName Always;
    ErrorText Always;
    TensorMap Never;
    ParamInfo Never;
    GetAttribute KernelAttributes;
    Version Never;
    GetGlobal Always;
    SetWord Always;
    SetByte Always;
    // those of graphs are last
    IsCapturing Graphs;
    GraphCreate Graphs;
    GraphAddKernel Graphs;
    GraphSetAttribute Graphs;
    GraphAddEdges Graphs;
    GraphInstantiate Graphs;
    GraphSetParams Graphs;
    GraphSetEnabled Graphs;
    GraphLaunch Graphs;
    GraphDestroyExec Graphs;
    GraphDestroy Graphs;
}

/// Libraries without graphs leave out the functions of graphs, so no other function may follow them.
const _: () = {
    let mut number = Call::COUNT_WITHOUT_GRAPHS;
    while number < Call::ALL.len() {
        assert!(matches!(Call::ALL[number].need(), Need::Graphs));
        number += 1;
    }
};

/// Generated code would call NULL for a function that an API lacks, so such a table doesn't compile.
const _: () = {
    let mut number = 0;
    while number < APIS.len() {
        if let Some(call) = APIS[number].lacking() {
            panic!("{}", call.missing());
        }
        number += 1;
    }
};

const fn function(name: &'static str, version: u32, params: &'static [Type]) -> Function {
    Function { name, version, optional: false, params }
}

const fn optional(name: &'static str, version: u32, params: &'static [Type]) -> Function {
    Function { optional: true, ..function(name, version, params) }
}

impl Attributes {
    /// The number of attributes.
    pub(super) const COUNT: usize = 7;

    /// The attribute numbers, in the order of the values in a device's record.
    pub(super) fn in_order(&self) -> [u32; Self::COUNT] {
        let ([major, minor], [threads, x, y, z]) = (self.capability, self.block);
        [major, minor, threads, x, y, z, self.shared]
    }
}

/// The symbols of the helpers that wrappers call, in the order of [`Symbol`].
pub(in crate::lower) type HelperSymbols = [&'static str; 4];

/// A helper's place among the symbols of an API.
#[derive(Clone, Copy)]
pub(super) enum Symbol {
    /// Does a kernel's first-use work.
    FirstUse,
    /// Raises the error of a failure.
    Report,
    /// Does a device's first-use work.
    Device,
    /// Launches a kernel that isn't loaded yet, or raises the error of a failed launch.
    Launch,
}

/// The symbols of an API's helpers.
macro_rules! helpers {
    ($name:literal) => {
        [
            concat!("__tvm_ffi_codegen_", $name, "_first_use"),
            concat!("__tvm_ffi_codegen_", $name, "_report"),
            concat!("__tvm_ffi_codegen_", $name, "_device"),
            concat!("__tvm_ffi_codegen_", $name, "_launch"),
        ]
    };
}

/// All APIs that launch with a driver. Everything that depends on the set of APIs is derived from this list.
pub(in crate::lower) static APIS: [&Api; 2] = [&CUDA, &HIP];

/// The symbols of the launch helpers, for wrappers that import them. Each API has four: one does a kernel's first-use
/// work, one raises errors, one does a device's first-use work, and one does both for a launch.
pub const LAUNCH_SYMBOLS: [[&str; 4]; APIS.len()] = {
    let mut symbols = [[""; 4]; APIS.len()];
    let mut number = 0;
    while number < APIS.len() {
        symbols[number] = APIS[number].helpers;
        number += 1;
    }
    symbols
};

impl Api {
    /// The API of a kind of device.
    pub(in crate::lower) fn of(device: DLDeviceType) -> Option<&'static Api> {
        APIS.into_iter().find(|api| api.device == device)
    }

    /// The last API that can load one of the images, or the first API if none can.
    pub(in crate::lower) fn of_images(images: &[Image]) -> &'static Api {
        let loads = |api: &&&Api| images.iter().any(|image| api.images.contains(&image.kind()));
        APIS.iter().rev().find(loads).unwrap_or(&APIS[0])
    }

    /// The symbol of a helper.
    pub(super) fn symbol(&self, helper: Symbol) -> &'static str {
        self.helpers[helper as usize]
    }

    /// The first function that the API has to have, and lacks.
    const fn lacking(&self) -> Option<Call> {
        let mut number = 0;
        while number < Call::ALL.len() {
            let call = Call::ALL[number];
            let is_needed = match call.need() {
                Need::Always => true,
                Need::Contexts => matches!(self.home, KernelHome::Contexts),
                Need::KernelAttributes => self.kernel_shared.is_some() || self.non_portable_cluster.is_some(),
                Need::Never | Need::Graphs => false,
            };
            if is_needed && !self.has(call) {
                return Some(call);
            }
            number += 1;
        }
        None
    }

    /// Whether the API has graphs.
    pub(in crate::lower) const fn has_graphs(&self) -> bool {
        self.has(Call::GraphLaunch)
    }

    const fn has(&self, call: Call) -> bool {
        let mut number = 0;
        while number < self.functions.len() {
            if self.functions[number].0 as u32 == call as u32 {
                return true;
            }
            number += 1;
        }
        false
    }

    /// The entry of a function, if the API has it.
    pub(in crate::lower) fn function(&self, call: Call) -> Option<&Function> {
        self.functions.iter().find(|(known, _)| *known == call).map(|(_, function)| function)
    }

    /// The name of a function, or an empty string if the API lacks it.
    pub(in crate::lower) fn function_name(&self, call: Call) -> &'static str {
        self.function(call).map_or("", |function| function.name)
    }

    /// The prototype of a function; the return value is its status.
    pub(super) fn signature(&self, call: Call) -> FuncSig {
        let params = self.function(call).map_or(&[][..], |function| function.params);
        FuncSig { ret: Some(AbiParam::signed(Type::I32)), ..FuncSig::new(params.iter().copied(), None) }
    }
}

/// CUDA's driver API (cuda.h).
pub(in crate::lower) static CUDA: Api = Api {
    name: "cuda",
    shown: "CUDA",
    device: DLDeviceType::CUDA,
    library: "libcuda.so.1",
    library_of_windows: "nvcuda.dll",
    get_proc_address: Some("cuGetProcAddress_v2"),
    functions: &[
        (Call::Init, function("cuInit", 2000, &[I32])),
        (Call::Device, function("cuDeviceGet", 2000, &[Ptr, I32])),
        (Call::Attribute, function("cuDeviceGetAttribute", 2000, &[Ptr, I32, I32])),
        (Call::Retain, function("cuDevicePrimaryCtxRetain", 7000, &[Ptr, I32])),
        (Call::Release, function("cuDevicePrimaryCtxRelease", 11000, &[I32])),
        (Call::Current, function("cuCtxGetCurrent", 4000, &[Ptr])),
        (Call::Enter, function("cuCtxPushCurrent", 4000, &[Ptr])),
        (Call::Leave, function("cuCtxPopCurrent", 4000, &[Ptr])),
        (Call::Load, function("cuLibraryLoadData", 12000, &[Ptr, Ptr, Ptr, Ptr, I32, Ptr, Ptr, I32])),
        (Call::Kernel, function("cuLibraryGetKernel", 12000, &[Ptr, Ptr, Ptr])),
        (Call::SetAttribute, function("cuKernelSetAttribute", 12000, &[I32, I32, Ptr, I32])),
        (Call::Launch, function("cuLaunchKernelEx", 11060, &[Ptr, Ptr, Ptr, Ptr])),
        (Call::Unload, function("cuLibraryUnload", 12000, &[Ptr])),
        (Call::ErrorName, function("cuGetErrorName", 6000, &[I32, Ptr])),
        (Call::ErrorText, function("cuGetErrorString", 6000, &[I32, Ptr])),
        (
            Call::TensorMap,
            function("cuTensorMapEncodeTiled", 12000, &[Ptr, I32, I32, Ptr, Ptr, Ptr, Ptr, Ptr, I32, I32, I32, I32]),
        ),
        (Call::ParamInfo, optional("cuKernelGetParamInfo", 12040, &[Ptr, I64, Ptr, Ptr])),
        (Call::GetAttribute, function("cuKernelGetAttribute", 12000, &[Ptr, I32, Ptr, I32])),
        (Call::Version, function("cuDriverGetVersion", 2020, &[Ptr])),
        (Call::GetGlobal, function("cuLibraryGetGlobal", 12000, &[Ptr, Ptr, Ptr, Ptr])),
        (Call::SetWord, function("cuMemsetD32Async", 3020, &[I64, I32, I64, Ptr])),
        (Call::SetByte, function("cuMemsetD8Async", 3020, &[I64, I32, I64, Ptr])),
        (Call::IsCapturing, optional("cuStreamIsCapturing", 10000, &[Ptr, Ptr])),
        (Call::GraphCreate, optional("cuGraphCreate", 10000, &[Ptr, I32])),
        (Call::GraphAddKernel, optional("cuGraphAddKernelNode", 12000, &[Ptr, Ptr, Ptr, I64, Ptr])),
        (Call::GraphSetAttribute, optional("cuGraphKernelNodeSetAttribute", 11000, &[Ptr, I32, Ptr])),
        // from version 12.3 on there is a form with data of edges
        (Call::GraphAddEdges, optional("cuGraphAddDependencies", 10000, &[Ptr, Ptr, Ptr, I64])),
        (Call::GraphInstantiate, optional("cuGraphInstantiateWithFlags", 11040, &[Ptr, Ptr, I64])),
        (Call::GraphSetParams, optional("cuGraphExecKernelNodeSetParams", 12000, &[Ptr, Ptr, Ptr])),
        (Call::GraphSetEnabled, optional("cuGraphNodeSetEnabled", 11060, &[Ptr, Ptr, I32])),
        (Call::GraphLaunch, optional("cuGraphLaunch", 10000, &[Ptr, Ptr])),
        (Call::GraphDestroyExec, optional("cuGraphExecDestroy", 10000, &[Ptr])),
        (Call::GraphDestroy, optional("cuGraphDestroy", 10000, &[Ptr])),
    ],
    attributes: Attributes { capability: [75, 76], block: [1, 2, 3, 4], shared: 97 },
    kernel_shared: Some(SharedAttributes { own: 1, max: 8 }),
    non_portable_cluster: Some(14),
    images: &[ImageKind::Cubin, ImageKind::Fatbin, ImageKind::Ptx],
    helpers: helpers!("cuda"),
    home: KernelHome::Contexts,
    launch: LaunchForm::Configuration,
};

/// The part of HIP's runtime API (hip_runtime_api.h) that launches kernels of modules.
pub(in crate::lower) static HIP: Api = Api {
    name: "hip",
    shown: "HIP",
    device: DLDeviceType::ROCM,
    library: "libamdhip64.so",
    library_of_windows: "amdhip64_6.dll",
    get_proc_address: None,
    functions: &[
        (Call::Init, function("hipInit", 0, &[I32])),
        (Call::Device, function("hipDeviceGet", 0, &[Ptr, I32])),
        (Call::Attribute, function("hipDeviceGetAttribute", 0, &[Ptr, I32, I32])),
        (Call::Current, function("hipGetDevice", 0, &[Ptr])),
        (Call::Enter, function("hipSetDevice", 0, &[I32])),
        (Call::Leave, function("hipSetDevice", 0, &[I32])),
        (Call::Load, function("hipModuleLoadData", 0, &[Ptr, Ptr])),
        (Call::Kernel, function("hipModuleGetFunction", 0, &[Ptr, Ptr, Ptr])),
        (Call::Launch, function("hipModuleLaunchKernel", 0, &[Ptr, I32, I32, I32, I32, I32, I32, I32, Ptr, Ptr, Ptr])),
        (
            Call::LaunchCooperative,
            function("hipModuleLaunchCooperativeKernel", 0, &[Ptr, I32, I32, I32, I32, I32, I32, I32, Ptr, Ptr]),
        ),
        (Call::Unload, function("hipModuleUnload", 0, &[Ptr])),
        (Call::ErrorName, function("hipDrvGetErrorName", 0, &[I32, Ptr])),
        (Call::ErrorText, function("hipDrvGetErrorString", 0, &[I32, Ptr])),
        (Call::GetGlobal, function("hipModuleGetGlobal", 0, &[Ptr, Ptr, Ptr, Ptr])),
        (Call::SetWord, function("hipMemsetD32Async", 0, &[I64, I32, I64, Ptr])),
        (Call::SetByte, function("hipMemsetD8Async", 0, &[I64, I32, I64, Ptr])),
    ],
    // hipDeviceAttribute_t: ComputeCapabilityMajor and Minor, MaxThreadsPerBlock, MaxBlockDimX to Z,
    // MaxSharedMemoryPerBlock
    attributes: Attributes { capability: [23, 61], block: [56, 26, 27, 28], shared: 74 },
    // The runtime checks a launch only against the device's limits. Its function for this attribute accepts kernels of
    // the program, not kernels of modules.
    kernel_shared: None,
    non_portable_cluster: None,
    images: &[ImageKind::CodeObject],
    helpers: helpers!("hip"),
    home: KernelHome::CurrentDevice,
    launch: LaunchForm::Arguments,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// HIP's table without one function.
    fn without(call: Call) -> Api {
        let functions = HIP.functions.iter().filter(|(known, _)| *known != call);
        let functions: Vec<(Call, Function)> = functions.map(|(call, f)| (*call, Function { ..*f })).collect();
        Api { functions: functions.leak(), attributes: Attributes { ..HIP.attributes }, ..HIP }
    }

    #[test]
    fn a_lacking_function_is_found() {
        for api in APIS {
            assert_eq!(api.lacking(), None, "{}", api.name);
        }
        for (call, _) in HIP.functions {
            let lacking = Some(*call).filter(|call| *call != Call::LaunchCooperative);
            assert_eq!(without(*call).lacking(), lacking);
        }
        assert_eq!(Call::Launch.missing(), "an API lacks the function of `Call::Launch`");
        // HIP has neither contexts nor attributes of kernels
        let contexts = Api { home: KernelHome::Contexts, ..without(Call::LaunchCooperative) };
        assert_eq!(contexts.lacking(), Some(Call::Retain));
        let shared = Some(SharedAttributes { own: 1, max: 8 });
        let attributes = Api { kernel_shared: shared, ..without(Call::LaunchCooperative) };
        assert_eq!(attributes.lacking(), Some(Call::SetAttribute));
    }
}
