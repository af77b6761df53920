//! A launch with the images that have its kernel.

use super::super::args::{self, Receiver};
use super::super::convention::{Convention, KernelReturn, params, returns_tensors};
use super::super::device_api::{Api, DeviceImage, ImageRule, Shared};
use super::super::launch_description::LaunchDescription;
use super::super::problem::LaunchProblem;
use super::blocks::{BlockFunction, BlockParam};
use super::check::Check;
use crate::image::{ArchFeatures, GpuTarget, Image, ImageEntry, ImageKind};
use crate::spec::{KernelArg, Launch, ParamType, Signature};
use tvm_ffi_runtime::abi::DLDeviceType;

/// A launch with the code of its kernel.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::lower) struct LaunchSpec {
    pub launch: Launch,
    pub(super) code: LaunchedCode,
}

/// The code of a launched kernel.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum LaunchedCode {
    /// Images for a device's driver, with the API that loads them.
    Images(&'static Api, Vec<Image>),
    /// A C function, for the CPU.
    Blocks(BlockFunction),
}

impl LaunchSpec {
    pub(in crate::lower) fn new(launch: Launch, images: Vec<Image>) -> Self {
        let api = Api::of_images(&images);
        LaunchSpec { launch, code: LaunchedCode::Images(api, images) }
    }

    /// A launch on the CPU.
    pub(in crate::lower) fn on_cpu(launch: Launch, function: BlockFunction) -> Self {
        LaunchSpec { launch, code: LaunchedCode::Blocks(function) }
    }

    /// The images; none on the CPU.
    pub(in crate::lower) fn images(&self) -> &[Image] {
        match &self.code {
            LaunchedCode::Images(_, images) => images,
            LaunchedCode::Blocks(_) => &[],
        }
    }

    /// The function that a launch on the CPU calls.
    pub(in crate::lower) fn block_function(&self) -> Option<&BlockFunction> {
        match &self.code {
            LaunchedCode::Images(..) => None,
            LaunchedCode::Blocks(function) => Some(function),
        }
    }

    /// The parameters of the function that a launch on the CPU calls, without the block's position.
    pub(in crate::lower) fn block_params(&self, signature: &Signature) -> Vec<BlockParam> {
        let flat = params::params(signature, Convention::Flat, KernelReturn::Status);
        let Some(args) = self.launch.stated_args() else {
            return flat.iter().map(|param| BlockParam::Value(param.c_type.abi())).collect();
        };
        let arg = |arg: &KernelArg| match arg {
            KernelArg::Struct { .. } => BlockParam::Struct,
            _ => BlockParam::Value(args::c_type(arg, &flat).abi()),
        };
        args.iter().map(arg).collect()
    }

    /// The images, each with the devices that it supports.
    pub(in crate::lower) fn device_images(&self) -> Vec<DeviceImage> {
        let rule = |image: &Image| match (image.kind(), image.targets()) {
            (ImageKind::Cubin, [GpuTarget::Cuda(target)]) if target.features == ArchFeatures::Architecture => {
                ImageRule::Exact(target.capability)
            }
            (ImageKind::Cubin, [GpuTarget::Cuda(target)]) => ImageRule::Family(target.capability),
            (ImageKind::Ptx, [GpuTarget::Cuda(target)]) => match target.features {
                ArchFeatures::Architecture => ImageRule::Exact(target.capability),
                ArchFeatures::Family => ImageRule::Family(target.capability),
                ArchFeatures::Portable => ImageRule::Least(target.capability),
            },
            _ => ImageRule::Any,
        };
        self.images().iter().map(|image| DeviceImage { bytes: image.bytes().clone(), rule: rule(image) }).collect()
    }

    /// The shared memory of the kernel's launches. The static part is known if all images state the same.
    pub(super) fn shared(&self) -> Shared {
        let bytes = self.launch.shared_memory_bytes().eval(&|_| None);
        let mut told = self.images().iter().map(|image| image.static_shared_of(self.launch.entry()));
        let first = told.next().flatten();
        Shared {
            // a negative or too large number of bytes is reported as an error of the launch
            dynamic: bytes.map(|bytes| u32::try_from(bytes).unwrap_or(0)),
            own: first.filter(|_| told.all(|other| other == first)),
        }
    }

    /// The device API that loads the images; `None` on the CPU.
    pub(in crate::lower) fn api(&self) -> Option<&'static Api> {
        match &self.code {
            LaunchedCode::Images(api, _) => Some(api),
            LaunchedCode::Blocks(_) => None,
        }
    }

    /// The kind of the devices that run the launch, and its name.
    pub(in crate::lower) fn device(&self) -> (DLDeviceType, &'static str) {
        self.api().map_or((DLDeviceType::CPU, "CPU"), |api| (api.device, api.shown))
    }

    /// The launch as metadata describes it.
    pub(super) fn description(&self) -> LaunchDescription {
        LaunchDescription::new(&self.launch, self.device().1, self.images())
    }

    /// The sizes in bytes of the parameters that the launch passes, if an image doesn't state the kernel's.
    pub(super) fn untold_params(&self, signature: &Signature) -> Option<Vec<u32>> {
        let told = self.images().iter().all(|image| image.tells_params_of(self.launch.entry()));
        if told { None } else { self.args_check(signature).sizes(self.launch.stated_args()) }
    }

    /// The size of a parameter or value in bytes; `None` if it has an error.
    pub(super) fn bytes_of(&self, value: &KernelArg, signature: &Signature) -> Option<u32> {
        self.args_check(signature).sizes(Some(std::slice::from_ref(value)))?.first().copied()
    }

    /// The entries of the images with the launch's kernel name, each with its architecture if the image states it.
    fn entries(&self) -> impl Iterator<Item = (&Image, Option<GpuTarget>, &ImageEntry)> {
        self.images().iter().flat_map(|image| {
            let entries = image.entries_with_targets_of(self.launch.entry());
            entries.map(move |(target, entry)| (image, target, entry))
        })
    }

    /// Checks the kernel's arguments.
    fn args_check<'a>(&self, signature: &'a Signature) -> args::Check<'a, LaunchProblem> {
        args::Check::new(signature, if self.block_function().is_some() { Receiver::Blocks } else { Receiver::Device })
    }

    /// All errors of the launch, given the signature and the images.
    pub(in crate::lower) fn problems(&self, signature: &Signature) -> Vec<LaunchProblem> {
        let mut check = Check { launch: &self.launch, args: self.args_check(signature) };
        check.device(self.device());
        match &self.code {
            LaunchedCode::Images(api, images) => check.images(images, api),
            LaunchedCode::Blocks(function) => check.on_cpu(function),
        }
        if let Some(ret) = signature.ret().filter(|ret| !returns_tensors(ret) && **ret != ParamType::None) {
            check.problem(LaunchProblem::Returns { ty: Box::new(ret.clone()) });
        }
        check.extents();
        check.stream();
        check.event();
        check.globals();
        check.hooks();
        check.attributes(self.images());
        let sizes = check.args.sizes(self.launch.stated_args());
        for (image, target, entry) in self.entries() {
            check.entry(image, target, entry, sizes.as_deref());
        }
        check.args.problems
    }
}
