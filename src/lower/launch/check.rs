//! Finds the errors of a launch, given the signature and the images.

use super::super::args;
use super::super::device_api::{
    Api, LaunchForm, MOST_BLOCKS, MOST_BLOCKS_OF_CLUSTER, MOST_THREADS, MOST_THREADS_OF_BLOCK, PORTABLE_CLUSTER,
    attribute,
};
use super::super::problem::{ImageName, LaunchProblem};
use super::attributes;
use super::blocks::BlockFunction;
use crate::image::{GpuTarget, Image, ImageEntry};
use crate::spec::{Dim, KernelArg, Launch, ParamType, ScalarType};
use tvm_ffi_runtime::abi::DLDeviceType;

/// Collects the errors of a launch.
pub(super) struct Check<'a> {
    pub launch: &'a Launch,
    pub args: args::Check<'a, LaunchProblem>,
}

impl Check<'_> {
    pub(super) fn problem(&mut self, problem: LaunchProblem) {
        self.args.problem(problem);
    }

    /// Requires a tensor that is always given, to determine the device, and tensors on devices of one kind.
    pub(super) fn device(&mut self, (device, shown): (DLDeviceType, &'static str)) {
        let mut kinds = Vec::new();
        self.args.signature.params().iter().for_each(|param| given_kinds(&param.ty, &mut kinds));
        if !kinds.contains(&device) {
            self.problem(LaunchProblem::NoDevice { device: shown });
        }
    }

    /// Reports parts of a launch that the CPU doesn't support. Threads per block are accepted: blocks are called one by
    /// one, and the function handles its threads. Hints for a device are accepted, and so is the overlap of launches.
    pub(super) fn on_cpu(&mut self, function: &BlockFunction) {
        let launch = self.launch;
        if *function == BlockFunction::Other {
            self.problem(LaunchProblem::NotABlockFunction);
        }
        let flags = launch.flags();
        let stated = [
            (!launch.cluster_extents().is_empty(), "cluster"),
            (!launch.preferred_cluster_extents().is_empty(), "preferred_cluster"),
            (flags.cooperative, "cooperative"),
            (*launch.shared_memory_bytes() != Dim::Const(0), "shared_memory"),
            (launch.stated_stream().is_some(), "stream"),
            (launch.stated_cluster_scheduling().is_some(), "cluster_scheduling"),
            (launch.stated_completion_event().is_some(), "completion_event"),
            (!launch.globals().is_empty(), "globals"),
            (launch.stated_on_load().is_some(), "on_load"),
            (launch.stated_on_unload().is_some(), "on_unload"),
        ];
        for (_, part) in stated.into_iter().filter(|(is, _)| *is) {
            self.problem(LaunchProblem::NotOnCpu { part });
        }
        if launch.stated_args().iter().any(|args| args.iter().any(|arg| matches!(arg, KernelArg::TensorMap(_)))) {
            self.problem(LaunchProblem::TensorMapOnCpu);
        }
    }

    pub(super) fn images(&mut self, images: &[Image], api: &Api) {
        if images.is_empty() {
            self.problem(LaunchProblem::NoImage);
        }
        if api.launch == LaunchForm::Arguments {
            let ignored = [attribute::COOPERATIVE, attribute::PROGRAMMATIC, attribute::PRIORITY];
            for stated in attributes::stated(self.launch).iter().filter(|stated| !ignored.contains(&stated.id)) {
                self.problem(LaunchProblem::NotOnDevice { part: stated.name, api: api.shown });
            }
        }
        for image in images {
            if !api.images.contains(&image.kind()) {
                self.problem(LaunchProblem::ImageKind { kind: image.kind(), api: api.shown });
            }
            let (Some(entries), None) = (image.entries(), image.entry(self.launch.entry())) else { continue };
            let mut known: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
            known.sort();
            known.dedup();
            let (entry, image) = (self.launch.entry().to_owned(), ImageName::of(image));
            self.problem(LaunchProblem::NoEntry { entry, image, known });
        }
    }

    /// Requires the stated stream to be a parameter that has one.
    pub(super) fn stream(&mut self) {
        let Some(name) = self.launch.stated_stream() else { return };
        let is_stream = |ty: &ParamType| ty.is_stream() || *ty == ParamType::Scalar(ScalarType::Handle);
        if !self.args.signature.params().iter().any(|param| param.name == name && is_stream(&param.ty)) {
            self.problem(LaunchProblem::NotAStream { name: name.to_owned() });
        }
    }

    /// Requires the stated event to be a parameter that can be one.
    pub(super) fn event(&mut self) {
        let Some(name) = self.launch.stated_completion_event() else { return };
        let is_event = |ty: &ParamType| {
            let ty = if let ParamType::Optional(inner) = ty { inner } else { ty };
            matches!(ty, ParamType::Scalar(ScalarType::Handle | ScalarType::Int64 | ScalarType::UInt64))
        };
        if !self.args.signature.params().iter().any(|param| param.name == name && is_event(&param.ty)) {
            self.problem(LaunchProblem::NotAnEvent { name: name.to_owned() });
        }
    }

    /// Checks the names of global functions.
    pub(super) fn hooks(&mut self) {
        for (part, name) in [("on_load", self.launch.stated_on_load()), ("on_unload", self.launch.stated_on_unload())] {
            if let Some(name) = name.filter(|name| name.is_empty() || name.contains('\0')) {
                self.problem(LaunchProblem::FunctionName { part, name: name.to_owned() });
            }
        }
    }

    /// Checks the global variables and their values.
    pub(super) fn globals(&mut self) {
        let globals = self.launch.globals();
        for (number, (name, value)) in globals.iter().enumerate() {
            if name.is_empty() || name.contains('\0') {
                self.problem(LaunchProblem::GlobalName { name: name.clone() });
            }
            if globals[..number].iter().any(|(before, _)| before == name) {
                self.problem(LaunchProblem::SameGlobal { name: name.clone() });
            }
            if is_made_for_the_launch(value) {
                let (name, value) = (name.clone(), value.clone());
                self.problem(LaunchProblem::GlobalValue { name, value: Box::new(value) });
            } else {
                self.args.sizes(Some(std::slice::from_ref(value)));
            }
        }
    }

    /// Checks attributes of the launch.
    pub(super) fn attributes(&mut self, images: &[Image]) {
        let launch = self.launch;
        if let Some(percent) = launch.stated_shared_memory_carveout().filter(|percent| *percent > 100) {
            self.problem(LaunchProblem::Carveout { percent });
        }
        // an image that doesn't describe all of its kernels may have one with clusters
        let alone = |image: &Image| {
            let mut entries = image.entries_with_targets_of(launch.entry());
            image.tells_params_of(launch.entry()) && entries.all(|(_, entry)| entry.cluster.is_none())
        };
        if launch.stated_cluster_scheduling().is_some()
            && launch.cluster_extents().is_empty()
            && !images.is_empty()
            && images.iter().all(alone)
        {
            self.problem(LaunchProblem::NoClusters);
        }
    }

    /// Checks the number of extents, and the limits of constant ones.
    pub(super) fn extents(&mut self) {
        let launch = self.launch;
        let cluster_most = if launch.flags().non_portable_cluster { MOST_BLOCKS_OF_CLUSTER } else { PORTABLE_CLUSTER };
        let all: [(&'static str, &[Dim], i64, [i64; 3]); 4] = [
            ("grid", launch.grid_extents(), 0, MOST_BLOCKS),
            ("block", launch.block_extents(), 1, MOST_THREADS),
            ("cluster", launch.cluster_extents(), 1, [cluster_most; 3]),
            ("preferred_cluster", launch.preferred_cluster_extents(), 1, [MOST_BLOCKS_OF_CLUSTER; 3]),
        ];
        for (part, extents, min, max) in all {
            let optional = part.ends_with("cluster");
            if extents.len() > 3 || (extents.is_empty() && !optional) {
                self.problem(LaunchProblem::ExtentCount { part, count: extents.len() });
            }
            for (number, (extent, max)) in extents.iter().zip(max).enumerate() {
                self.args.vars(&format!("{part}[{number}]"), extent);
                match extent.eval(&|_| None) {
                    Some(value) if !(min..=max).contains(&value) => {
                        self.problem(LaunchProblem::Extent { part, number, value, min, max });
                    }
                    _ => {}
                }
            }
        }
        let product = |extents: &[Dim]| {
            extents.iter().map(|extent| extent.eval(&|_| None)).try_fold(1_i64, |x, y| x.checked_mul(y?))
        };
        if let Some(threads) = product(launch.block_extents()).filter(|threads| *threads > MOST_THREADS_OF_BLOCK) {
            self.problem(LaunchProblem::BlockThreads { threads, max: MOST_THREADS_OF_BLOCK });
        }
        if let Some(blocks) = product(launch.cluster_extents()).filter(|blocks| *blocks > cluster_most) {
            let allowed = (!launch.flags().non_portable_cluster).then_some(MOST_BLOCKS_OF_CLUSTER);
            self.problem(LaunchProblem::ClusterBlocks { blocks, max: cluster_most, allowed });
        }
        for (number, (grid, cluster)) in launch.grid_extents().iter().zip(launch.cluster_extents()).enumerate() {
            if let (Some(grid), Some(cluster @ 1..)) = (grid.eval(&|_| None), cluster.eval(&|_| None))
                && grid % cluster != 0
            {
                self.problem(LaunchProblem::Indivisible { number, grid, cluster });
            }
        }
        self.args.vars("shared_memory", launch.shared_memory_bytes());
        let max = 1 << 20;
        if let Some(bytes) = launch.shared_memory_bytes().eval(&|_| None).filter(|bytes| !(0..=max).contains(bytes)) {
            self.problem(LaunchProblem::Shared { bytes, max });
        }
    }

    /// Compares the launch with an image's description of its kernel.
    pub(super) fn entry(
        &mut self,
        image: &Image,
        target: Option<GpuTarget>,
        entry: &ImageEntry,
        sizes: Option<&[u32]>,
    ) {
        let image = || ImageName::of(image);
        if let Some(sizes) = sizes
            && let Err(params) = entry.check_params(sizes)
        {
            self.problem(LaunchProblem::Params { image: image(), params });
        }
        let launch = self.launch;
        let constant = |dims: &[Dim]| -> Option<[u32; 3]> {
            let mut extents = [1; 3];
            for (extent, dim) in extents.iter_mut().zip(dims) {
                *extent = u32::try_from(dim.eval(&|_| None)?).ok()?;
            }
            Some(extents)
        };
        let block = constant(launch.block_extents());
        if entry.is_tile {
            self.tile(image, block);
        } else if let (Some(required), Some(block)) = (entry.required_block, block)
            && required != block
        {
            self.problem(LaunchProblem::RequiredBlock { image: image(), required, block });
        }
        if let (Some(max), Some(block)) = (entry.max_threads.filter(|_| !entry.is_tile), block) {
            let threads = block.into_iter().map(u64::from).fold(1, u64::saturating_mul);
            if threads > u64::from(max) {
                self.problem(LaunchProblem::KernelThreads { image: image(), max, threads });
            }
        }
        if let (Some(required), Some(cluster)) = (entry.cluster, constant(launch.cluster_extents()))
            && !launch.cluster_extents().is_empty()
            && required != cluster
        {
            self.problem(LaunchProblem::RequiredCluster { image: image(), required, cluster });
        }
        let max = target.and_then(GpuTarget::max_shared_memory);
        if let (Some(max), Some(dynamic)) = (max, launch.shared_memory_bytes().eval(&|_| None)) {
            let own = entry.static_shared;
            let total = i64::from(own).saturating_add(dynamic);
            if total > i64::from(max) {
                self.problem(LaunchProblem::SharedMemory { image: image(), total, own, dynamic, max });
            }
        }
    }

    /// Compares the launch with the requirements of NVIDIA's own launcher for tile kernels.
    fn tile(&mut self, image: impl Fn() -> ImageName, block: Option<[u32; 3]>) {
        if block != Some([1, 1, 1]) {
            self.problem(LaunchProblem::TileBlock { image: image(), block });
        }
        let shared = self.launch.shared_memory_bytes();
        if *shared != Dim::Const(0) {
            self.problem(LaunchProblem::TileShared { image: image(), shared: shared.clone() });
        }
    }
}

/// Whether a value or a part of it exists only for the time of the launch, or is an address of the host.
fn is_made_for_the_launch(value: &KernelArg) -> bool {
    match value {
        KernelArg::Scratch { .. } | KernelArg::TensorMap(_) => true,
        KernelArg::Struct { fields, .. } => fields.iter().any(|(_, field)| is_made_for_the_launch(field)),
        _ => false,
    }
}

/// The kinds of devices of the tensors that a call always gives for a parameter.
fn given_kinds(ty: &ParamType, kinds: &mut Vec<DLDeviceType>) {
    match ty {
        ParamType::Tensor(tensor) => kinds.extend(tensor.device.kind()),
        _ if ty.has_members() => ty.inner().into_iter().for_each(|member| given_kinds(member, kinds)),
        _ => {}
    }
}
