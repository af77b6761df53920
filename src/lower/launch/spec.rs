//! A launch with the images that have its kernel, and its mistakes.

use super::super::convention::c_type::abi_param;
use super::super::convention::param::{KernelParam, ParamPart, ParamSource};
use super::super::convention::{Convention, KernelReturn, params, returns_tensors};
use super::super::device_api::{
    Api, CPU, CUDA, DeviceImage, HIP, ImageRule, MOST_BLOCKS, MOST_BLOCKS_OF_CLUSTER, MOST_THREADS,
    MOST_THREADS_OF_BLOCK, PORTABLE_CLUSTER, Shared,
};
use super::super::launch_description::LaunchDescription;
use super::blocks::{BlockFunction, BlockParam};
use super::tensor_map::data_type;
use crate::image::{ArchFeatures, GpuTarget, Image, ImageEntry, ImageKind};
use crate::spec::{
    Dim, Interleave, Launch, LaunchArg, Layout, ParamType, ScalarType, Signature, TensorMap, TensorType,
};

/// A launch with the code of its kernel.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::lower) struct LaunchSpec {
    pub launch: Launch,
    code: LaunchedCode,
}

/// The code of a launched kernel.
#[derive(PartialEq, Eq, Debug)]
enum LaunchedCode {
    /// Images for a device's driver.
    Images(Vec<Image>),
    /// A C function, for the CPU.
    Blocks(BlockFunction),
}

impl LaunchSpec {
    pub(in crate::lower) fn new(launch: Launch, images: Vec<Image>) -> Self {
        LaunchSpec { launch, code: LaunchedCode::Images(images) }
    }

    /// A launch on the CPU.
    pub(in crate::lower) fn on_cpu(launch: Launch, function: BlockFunction) -> Self {
        LaunchSpec { launch, code: LaunchedCode::Blocks(function) }
    }

    /// The stated parameters of a function that is called without a launch.
    pub(in crate::lower) fn called(args: Vec<LaunchArg>) -> Self {
        Self::on_cpu(Launch::new("function").args(args), BlockFunction::Other)
    }

    /// The images; none on the CPU.
    pub(in crate::lower) fn images(&self) -> &[Image] {
        match &self.code {
            LaunchedCode::Images(images) => images,
            LaunchedCode::Blocks(_) => &[],
        }
    }

    /// The function that a launch on the CPU calls.
    pub(in crate::lower) fn block_function(&self) -> Option<&BlockFunction> {
        match &self.code {
            LaunchedCode::Images(_) => None,
            LaunchedCode::Blocks(function) => Some(function),
        }
    }

    /// The parameters of the function that a launch on the CPU calls, before the block's place.
    pub(in crate::lower) fn block_params(&self, signature: &Signature) -> Vec<BlockParam> {
        let flat = params::params(signature, Convention::Flat, KernelReturn::Status);
        let value = |param: &KernelParam| BlockParam::Value(param.c_type.abi());
        let pointer = BlockParam::Value(abi_param(ScalarType::Handle));
        let Some(args) = self.launch.stated_args() else { return flat.iter().map(value).collect() };
        let arg = |arg: &LaunchArg| match arg {
            LaunchArg::Param(name) => flat.iter().find(|param| param.is_value_of(name)).map_or(pointer, value),
            LaunchArg::Cast(_, ty) | LaunchArg::Int(_, ty) | LaunchArg::Float(_, ty) | LaunchArg::Stride(_, _, ty) => {
                BlockParam::Value(abi_param(*ty))
            }
            LaunchArg::DeviceId(_) => BlockParam::Value(abi_param(ScalarType::Int32)),
            LaunchArg::Null | LaunchArg::Scratch { .. } | LaunchArg::TensorMap(_) => pointer,
            LaunchArg::Struct { .. } => BlockParam::Struct,
        };
        args.iter().map(arg).collect()
    }

    /// The images, with the devices that each is for.
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

    /// The shared memory of the kernel's launches. Of the kernel's own, it is the most of what the images tell.
    pub(super) fn shared(&self) -> Shared {
        match self.launch.shared_bytes().eval(&|_| None) {
            Some(bytes) => Shared::Fixed(bytes),
            None => {
                Shared::Differs { fixed: self.entries().map(|(_, _, entry)| entry.static_shared).max().unwrap_or(0) }
            }
        }
    }

    /// The device API that loads the images.
    pub(in crate::lower) fn api(&self) -> &'static Api {
        if self.block_function().is_some() {
            return &CPU;
        }
        let is_amd = self.images().iter().any(|image| image.kind() == ImageKind::CodeObject);
        if is_amd { &HIP } else { &CUDA }
    }

    /// The launch as metadata tells it.
    pub(super) fn description(&self) -> LaunchDescription {
        LaunchDescription::new(&self.launch, self.api().shown, self.images())
    }

    /// The sizes in bytes of the parameters that the launch passes, where an image doesn't tell the kernel's.
    pub(super) fn untold_params(&self, signature: &Signature) -> Option<Vec<u32>> {
        let told = self.images().iter().all(|image| image.tells_params_of(self.launch.entry()));
        if told { None } else { Check::new(self, signature).params() }
    }

    /// The images' kernels of the launch's name, each with its architecture where the image tells it.
    fn entries(&self) -> impl Iterator<Item = (&Image, Option<GpuTarget>, &ImageEntry)> {
        self.images().iter().flat_map(|image| {
            let entries = image.entries_with_targets_of(self.launch.entry());
            entries.map(move |(target, entry)| (image, target, entry))
        })
    }

    /// All mistakes of the launch, by the signature and the images.
    pub(in crate::lower) fn problems(&self, signature: &Signature) -> Vec<String> {
        let mut check = Check::new(self, signature);
        let api = self.api();
        check.device(api);
        match &self.code {
            LaunchedCode::Images(images) => check.images(images, api),
            LaunchedCode::Blocks(function) => check.on_cpu(function),
        }
        if let Some(ret) = signature.ret().filter(|ret| !returns_tensors(ret) && **ret != ParamType::None) {
            check.problem(format!(
                "gives nothing, and the function returns {ret}; only tensors can be a kernel's output"
            ));
        }
        check.extents();
        let sizes = check.params();
        for (image, target, entry) in self.entries() {
            check.entry(image, target, entry, sizes.as_deref());
        }
        check.problems
    }
}

/// The mistakes of a launch.
pub(super) struct Check<'a> {
    signature: &'a Signature,
    launch: &'a Launch,
    /// The kernel sees the host's memory.
    is_on_host: bool,
    problems: Vec<String>,
}

impl<'a> Check<'a> {
    pub(super) fn new(spec: &'a LaunchSpec, signature: &'a Signature) -> Self {
        let is_on_host = spec.block_function().is_some();
        Check { signature, launch: &spec.launch, is_on_host, problems: Vec::new() }
    }

    /// Whether a parameter is in memory that the kernel doesn't see.
    fn is_out_of_reach(&self, param: &KernelParam) -> bool {
        !self.is_on_host && is_host_memory(self.signature, param)
    }

    pub(super) fn into_problems(self) -> Vec<String> {
        self.problems
    }

    pub(super) fn problem(&mut self, problem: impl Into<String>) {
        let problem = problem.into();
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The device is that of a tensor which is always given, and all tensors are on devices of one kind.
    fn device(&mut self, api: &Api) {
        let kinds: Vec<_> = self
            .signature
            .params()
            .iter()
            .filter_map(|param| match &param.ty {
                ParamType::Tensor(tensor) => tensor.device.kind(),
                _ => None,
            })
            .collect();
        if !kinds.contains(&api.device) {
            self.problem(format!(
                "needs a tensor parameter that is on a {} device and isn't optional, which tells the device",
                api.shown
            ));
        }
    }

    /// The parts of a launch that the CPU has no counterpart of, which are mistakes there. Blocks are called one by one, so that the number of their threads, priorities and the overlap of launches are left
    /// to the function.
    fn on_cpu(&mut self, function: &BlockFunction) {
        let launch = self.launch;
        if *function == BlockFunction::Other {
            self.problem("is of a kernel that is no C function which returns nothing, by convention flat");
        }
        let flags = launch.flags();
        let stated = [
            (!launch.cluster_extents().is_empty(), "cluster"),
            (!launch.preferred_cluster_extents().is_empty(), "preferred_cluster"),
            (flags.cooperative, "cooperative"),
            (*launch.shared_bytes() != Dim::Const(0), "shared"),
        ];
        for (_, name) in stated.into_iter().filter(|(is, _)| *is) {
            self.problem(format!("states {name}, which launches on the CPU don't have"));
        }
        if launch.stated_args().iter().any(|args| args.iter().any(|arg| matches!(arg, LaunchArg::TensorMap(_)))) {
            self.problem("passes a tensor map, which launches on the CPU don't have");
        }
    }

    fn images(&mut self, images: &[Image], api: &Api) {
        if images.is_empty() {
            self.problem("has no image");
        }
        for image in images {
            let fits = (image.kind() == ImageKind::CodeObject) != api.has_contexts;
            if !fits {
                self.problem(format!("has a {} for an image, which {} doesn't load", image.kind(), api.shown));
            }
            let (Some(entries), None) = (image.entries(), image.entry(self.launch.entry())) else { continue };
            let mut names: Vec<_> = entries.iter().map(|entry| format!("`{}`", entry.name)).collect();
            names.sort();
            names.dedup();
            let has = if names.is_empty() { "no kernels".to_owned() } else { names.join(", ") };
            self.problem(format!("is `{}`, and {} has {has}", self.launch.entry(), shown(image)));
        }
    }

    /// The number of extents, and the limits of those that are constant.
    fn extents(&mut self) {
        let launch = self.launch;
        let cluster_most = if launch.flags().non_portable_cluster { MOST_BLOCKS_OF_CLUSTER } else { PORTABLE_CLUSTER };
        let all: [(&str, &[Dim], i64, [i64; 3]); 4] = [
            ("grid", launch.grid_extents(), 0, MOST_BLOCKS),
            ("block", launch.block_extents(), 1, MOST_THREADS),
            ("cluster", launch.cluster_extents(), 1, [cluster_most; 3]),
            ("preferred_cluster", launch.preferred_cluster_extents(), 1, [MOST_BLOCKS_OF_CLUSTER; 3]),
        ];
        for (what, extents, least, most) in all {
            let optional = what.ends_with("cluster");
            if extents.len() > 3 || (extents.is_empty() && !optional) {
                self.problem(format!("has a {what} of {} extents, expected 1 to 3", extents.len()));
            }
            for (number, (extent, most)) in extents.iter().zip(most).enumerate() {
                self.symbols(&format!("{what}[{number}]"), extent);
                match extent.eval(&|_| None) {
                    Some(value) if !(least..=most).contains(&value) => {
                        self.problem(format!("has {what}[{number}] = {value}, expected {least} to {most}"));
                    }
                    _ => {}
                }
            }
        }
        let product = |extents: &[Dim]| {
            extents.iter().map(|extent| extent.eval(&|_| None)).try_fold(1_i64, |x, y| x.checked_mul(y?))
        };
        if let Some(threads) = product(launch.block_extents()).filter(|threads| *threads > MOST_THREADS_OF_BLOCK) {
            self.problem(format!("has blocks of {threads} threads, expected at most {MOST_THREADS_OF_BLOCK}"));
        }
        if let Some(blocks) = product(launch.cluster_extents()).filter(|blocks| *blocks > cluster_most) {
            let hint = if cluster_most == PORTABLE_CLUSTER { "; non_portable_cluster allows 16" } else { "" };
            self.problem(format!("has clusters of {blocks} blocks, expected at most {cluster_most}{hint}"));
        }
        for (number, (grid, cluster)) in launch.grid_extents().iter().zip(launch.cluster_extents()).enumerate() {
            if let (Some(grid), Some(cluster @ 1..)) = (grid.eval(&|_| None), cluster.eval(&|_| None))
                && grid % cluster != 0
            {
                self.problem(format!(
                    "has grid[{number}] = {grid}, which cluster[{number}] = {cluster} doesn't divide"
                ));
            }
        }
        self.symbols("shared", launch.shared_bytes());
        if let Some(bytes) = launch.shared_bytes().eval(&|_| None).filter(|bytes| *bytes < 0 || *bytes > 1 << 20) {
            self.problem(format!("has shared = {bytes}, expected 0 to {} bytes", 1 << 20));
        }
    }

    /// Whether all names of an expression have values.
    fn symbols(&mut self, what: &str, dim: &Dim) {
        dim.for_each_symbol(&mut |name| {
            let symbol = self.signature.symbols().contains(&name);
            let integer = self.signature.params().iter().any(|param| {
                param.name == name
                    && param
                        .ty
                        .as_scalar()
                        .is_some_and(|ty| !ty.is_float() && ty.bits() > 1 && ty != ScalarType::Handle)
            });
            if !symbol && !integer {
                self.problem(format!(
                    "has {what} = {dim}, and `{name}` is no symbol or integer parameter of the function"
                ));
            }
        });
    }

    /// The sizes of the parameters that are passed, in bytes; `None` where one is a mistake.
    pub(super) fn params(&mut self) -> Option<Vec<u32>> {
        let flat = params::params(self.signature, Convention::Flat, KernelReturn::Status);
        match self.launch.stated_args() {
            None => {
                let passed = flat.iter().map(|param| param.c_type.abi().ty.bytes());
                if let Some(param) = flat.iter().find(|param| self.is_out_of_reach(param)) {
                    self.problem(format!("gets {param}, which is in the memory of the host; state the kernel's args"));
                }
                Some(passed.collect())
            }
            Some(args) => {
                let sizes: Vec<_> = args.iter().map(|arg| self.arg(&flat, arg, false)).collect();
                sizes.into_iter().collect()
            }
        }
    }

    /// The size of a parameter in bytes.
    fn arg(&mut self, flat: &[KernelParam], arg: &LaunchArg, inside: bool) -> Option<u32> {
        match arg {
            LaunchArg::Param(name) => {
                let param = self.named(flat, name)?;
                Some(param.c_type.abi().ty.bytes())
            }
            LaunchArg::Cast(name, ty) => {
                self.named(flat, name)?;
                let from = self.signature.params().iter().find(|param| param.name == *name)?.ty.as_scalar();
                let fits = from.is_some_and(|from| {
                    from != ScalarType::Handle && *ty != ScalarType::Handle && (!from.is_float() || ty.is_float())
                });
                if !fits {
                    self.problem(format!("has {ty}({name}), and {name} is no number that becomes a {ty}"));
                    return None;
                }
                Some(bytes(*ty))
            }
            LaunchArg::Int(dim, ty) => {
                self.symbols(&format!("{ty}({dim})"), dim);
                self.integer_type(*ty)
            }
            LaunchArg::Float(_, ty) if ty.is_float() => Some(bytes(*ty)),
            LaunchArg::Float(_, ty) => {
                self.problem(format!("has a floating-point number of type {ty}"));
                None
            }
            LaunchArg::Stride(name, number, ty) => {
                let tensor = self.tensor(name)?;
                let there = match &tensor.layout {
                    Layout::Strides(strides) => *number < strides.len(),
                    Layout::Contiguous => tensor.shape.dims().is_some_and(|dims| *number < dims.len()),
                    _ => false,
                };
                if !there {
                    self.problem(format!("has {name}.strides[{number}], which the signature doesn't state"));
                    return None;
                }
                self.integer_type(*ty)
            }
            LaunchArg::DeviceId(name) => self.tensor(name).map(|_| 4),
            LaunchArg::Null => Some(8),
            LaunchArg::Struct { size, align, fields } => {
                if !align.is_power_of_two() || *align > 16 || *size == 0 || *size > 4096 || size % align != 0 {
                    self.problem(format!("has a struct of {size} bytes, aligned to {align}; expected a size of at most 4096 that is a multiple of an alignment of 1 to 16"));
                    return None;
                }
                let mut covered: Vec<(u32, u32)> = Vec::new();
                for (offset, field) in fields {
                    let bytes = self.arg(flat, field, true)?;
                    let end = offset.saturating_add(bytes);
                    if end > *size
                        || offset % bytes.clamp(1, 8) != 0
                        || covered.iter().any(|(from, to)| *offset < *to && *from < end)
                    {
                        self.problem(format!("has a struct of {size} bytes whose field at {offset} takes {bytes}: fields are aligned, apart, and inside"));
                    }
                    covered.push((*offset, end));
                }
                Some(*size)
            }
            LaunchArg::Scratch { bytes, align } => {
                self.symbols("scratch", bytes);
                if !align.is_power_of_two() || *align > 256 {
                    self.problem(format!("has scratch memory aligned to {align}, expected a power of two up to 256"));
                }
                Some(8)
            }
            LaunchArg::TensorMap(_) if inside => {
                self.problem("has a tensor map inside a struct, where it isn't aligned to 64 bytes");
                None
            }
            LaunchArg::TensorMap(map) => {
                self.tensor_map(map);
                Some(128)
            }
        }
    }

    /// A parameter of the signature that is one value for the device.
    fn named<'p>(&mut self, flat: &'p [KernelParam], name: &str) -> Option<&'p KernelParam> {
        let found = flat.iter().find(|param| param.is_value_of(name)).filter(|param| !self.is_out_of_reach(param));
        if found.is_none() {
            self.problem(format!("has {name} among its args, which is no tensor or scalar parameter of the function"));
        }
        found
    }

    fn tensor(&mut self, name: &str) -> Option<&TensorType> {
        let found = self.signature.params().iter().find_map(|param| match &param.ty {
            ParamType::Tensor(tensor) if param.name == name => Some(tensor),
            _ => None,
        });
        if found.is_none() {
            self.problem(format!("has {name} among its args, which is no tensor parameter of the function"));
        }
        found
    }

    fn integer_type(&mut self, ty: ScalarType) -> Option<u32> {
        if ty.is_float() || matches!(ty, ScalarType::Bool | ScalarType::Handle) {
            self.problem(format!("passes an integer as a {ty}"));
            return None;
        }
        Some(bytes(ty))
    }

    fn tensor_map(&mut self, map: &TensorMap) {
        let name = &map.tensor;
        let Some(tensor) = self.tensor(name) else { return };
        let rank = tensor.shape.rank();
        let dtype = tensor.exact_dtype();
        let known = !matches!(tensor.layout, Layout::Any);
        let mut problems = Vec::new();
        match rank {
            Some(rank @ 1..=5) => {
                if map.box_dims.len() != rank {
                    problems.push(format!("has a box of {} dimensions, and {name} has {rank}", map.box_dims.len()));
                }
                if !map.element_strides.is_empty() && map.element_strides.len() != rank {
                    let count = map.element_strides.len();
                    problems.push(format!("has {count} element strides, and {name} has {rank} dimensions"));
                }
                if map.interleave != Interleave::None && rank < 3 {
                    problems.push(format!("is interleaved, and {name} has less than 3 dimensions"));
                }
            }
            _ => problems.push(format!("is of {name}, whose rank isn't one of 1 to 5")),
        }
        if dtype.and_then(data_type).is_none() {
            problems.push(format!("is of {name}, whose dtype isn't one that tensor maps have"));
        }
        if !known {
            problems.push(format!("is of {name}, whose strides the signature doesn't state"));
        }
        if map.element_strides.iter().any(|step| !(1..=8).contains(step)) {
            problems.push("has element strides that are not 1 to 8".to_owned());
        }
        for (number, size) in map.box_dims.iter().enumerate() {
            self.symbols(&format!("box[{number}] of {name}"), size);
            if let Some(value) = size.eval(&|_| None).filter(|value| !(1..=256).contains(value)) {
                problems.push(format!("has box[{number}] = {value}, expected 1 to 256"));
            }
        }
        problems.into_iter().for_each(|problem| self.problem(format!("has a tensor map that {problem}")));
    }

    /// Compares the launch with what an image tells of its kernel.
    fn entry(&mut self, image: &Image, target: Option<GpuTarget>, entry: &ImageEntry, sizes: Option<&[u32]>) {
        if let Some(sizes) = sizes
            && let Err(mismatch) = entry.check_params(sizes)
        {
            self.problem(format!("doesn't fit: in {}, {mismatch}", shown(image)));
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
        if let (Some(required), Some(block)) = (entry.required_block, block)
            && required != block
        {
            self.problem(format!("is made for blocks of {required:?} threads in {}, got {block:?}", shown(image)));
        }
        if let (Some(most), Some([x, y, z])) = (entry.max_threads, block)
            && x.saturating_mul(y).saturating_mul(z) > most
        {
            self.problem(format!("is made for at most {most} threads a block in {}, got {}", shown(image), x * y * z));
        }
        if let (Some(required), Some(cluster)) = (entry.cluster, constant(launch.cluster_extents()))
            && !launch.cluster_extents().is_empty()
            && required != cluster
        {
            self.problem(format!("is made for clusters of {required:?} blocks in {}, got {cluster:?}", shown(image)));
        }
        let most = target.and_then(GpuTarget::most_shared);
        if let (Some(most), Some(dynamic)) = (most, launch.shared_bytes().eval(&|_| None)) {
            let total = i64::from(entry.static_shared).saturating_add(dynamic);
            if total > i64::from(most) {
                self.problem(format!(
                    "takes {total} bytes of shared memory in {} ({} static, {dynamic} dynamic), and the architecture has {most}",
                    shown(image),
                    entry.static_shared
                ));
            }
        }
    }
}

fn bytes(ty: ScalarType) -> u32 {
    ty.bits().div_ceil(8)
}

/// An image in messages: `the cubin of sm_90a`.
fn shown(image: &Image) -> String {
    let targets: Vec<_> = image.targets().iter().map(ToString::to_string).collect();
    match targets.is_empty() {
        true => format!("the {}", image.kind()),
        false => format!("the {} of {}", image.kind(), targets.join(", ")),
    }
}

/// Whether a parameter of convention `flat` is memory of the host, which a device doesn't see.
fn is_host_memory(signature: &Signature, param: &KernelParam) -> bool {
    let ParamSource::Argument(path, part) = &param.source else { return false };
    let ty = signature.params().iter().find(|param| param.name == *path).map(|param| &param.ty);
    let ty = match ty {
        Some(ParamType::Optional(inner)) => inner,
        Some(ty) => ty,
        // an item of a tuple
        None => return matches!(part, ParamPart::Descriptor),
    };
    match ty {
        ParamType::Tensor(tensor) => tensor.device.kind().is_none_or(|kind| Api::of(kind).is_none()),
        ParamType::Scalar(_) | ParamType::Int(_) | ParamType::Bool(_) | ParamType::DType | ParamType::Device => false,
        ParamType::EnvStream | ParamType::EnvState(_) => false,
        _ => true,
    }
}
