//! Problems of launches.

use std::fmt::{self, Display, Formatter};

use super::arg::ArgProblem;
use super::parts::{Mismatch, diagnostic_of, mismatch};
use crate::diagnostic::{Diagnose, Diagnostic};
use crate::image::{GpuTarget, Image, ImageKind, MismatchedParams};
use crate::spec::{Dim, KernelArg, ParamType};

/// A problem of a launch, given the signature and the images. The launch is the subject of the message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchProblem {
    /// No parameter determines the device.
    #[error("needs a tensor parameter on a {device} device that isn't optional")]
    NoDevice {
        /// The kind of device: `CUDA`, `HIP` or `CPU`.
        device: &'static str,
    },
    /// The kernel of a launch on the CPU can't be called for a block.
    #[error("needs a native kernel of convention `flat` that returns void")]
    NotABlockFunction,
    /// The launch states something that launches on the CPU don't support.
    #[error("states {part}, but launches on the CPU don't support it")]
    NotOnCpu {
        /// The part of the launch: `cluster`, `shared_memory`.
        part: &'static str,
    },
    /// The launch states an attribute that the device API's launches don't support.
    #[error("states {part}, but {api} doesn't support it")]
    NotOnDevice {
        /// The attribute: `cluster`, `completion_event`.
        part: &'static str,
        /// The device API: `HIP`.
        api: &'static str,
    },
    /// Launches on the CPU don't pass tensor maps.
    #[error("passes a tensor map, but launches on the CPU don't support it")]
    TensorMapOnCpu,
    /// The launch has no image.
    #[error("has no image")]
    NoImage,
    /// The driver doesn't load such images.
    #[error("has a {kind} for an image, but {api} doesn't load it")]
    ImageKind {
        /// The kind of the image.
        kind: ImageKind,
        /// The device API: `CUDA` or `HIP`.
        api: &'static str,
    },
    /// An image doesn't have the kernel.
    #[error("is `{entry}`, and {image} has {}", kernels(.known))]
    NoEntry {
        /// The kernel's name.
        entry: String,
        /// The image.
        image: ImageName,
        /// The names of the image's kernels, sorted.
        known: Vec<String>,
    },
    /// Kernels on devices return nothing but tensors.
    #[error("gives nothing, and the function returns {ty}; only tensors can be a kernel's output")]
    Returns {
        /// The signature's result.
        ty: Box<ParamType>,
    },
    /// A part has too many extents or none.
    #[error("has a {part} of {count} extents, expected 1 to 3")]
    ExtentCount {
        /// The part: `grid`, `block`, `cluster` or `preferred_cluster`.
        part: &'static str,
        /// The number of extents.
        count: usize,
    },
    /// A constant extent is out of range.
    #[error("has {part}[{number}] = {value}, expected {min} to {max}")]
    Extent {
        /// The part: `grid`, `block`, `cluster` or `preferred_cluster`.
        part: &'static str,
        /// The dimension.
        number: usize,
        /// The extent.
        value: i64,
        /// The smallest valid extent.
        min: i64,
        /// The largest valid extent.
        max: i64,
    },
    /// A block has too many threads.
    #[error("has blocks of {threads} threads, expected at most {max}")]
    BlockThreads {
        /// The number of threads.
        threads: i64,
        /// The limit.
        max: i64,
    },
    /// A cluster has too many blocks.
    #[error("has clusters of {blocks} blocks, expected at most {max}{}", larger_clusters(.allowed))]
    ClusterBlocks {
        /// The number of blocks.
        blocks: i64,
        /// The limit.
        max: i64,
        /// The limit that `non_portable_cluster` would set, if the launch doesn't state that.
        allowed: Option<i64>,
    },
    /// An extent of the grid isn't a multiple of the cluster's.
    #[error("has grid[{number}] = {grid}, but cluster[{number}] = {cluster} doesn't divide it")]
    Indivisible {
        /// The dimension.
        number: usize,
        /// The extent of the grid.
        grid: i64,
        /// The extent of the cluster.
        cluster: i64,
    },
    /// The size of the dynamic shared memory is out of range.
    #[error("has shared_memory = {bytes}, expected 0 to {max} bytes")]
    Shared {
        /// The size in bytes.
        bytes: i64,
        /// The limit in bytes.
        max: i64,
    },
    /// The stated stream isn't a parameter that can have one.
    #[error("has stream={name}, and the function has no parameter {name} of type Stream, EnvStream or handle")]
    NotAStream {
        /// The stated name.
        name: String,
    },
    /// The stated event isn't a parameter that can be one.
    #[error(
        "has completion_event={name}, and the function has no parameter {name} of type handle, int64, uint64 or an \
         Optional of these integers"
    )]
    NotAnEvent {
        /// The stated name.
        name: String,
    },
    /// A global function has an impossible name.
    #[error("states {part}={name:?}, but this isn't the name of a global function")]
    FunctionName {
        /// The part: `on_load` or `on_unload`.
        part: &'static str,
        /// The stated name.
        name: String,
    },
    /// A global variable has no name that an image can have.
    #[error("has a global variable with the name {name:?}")]
    GlobalName {
        /// The stated name.
        name: String,
    },
    /// A global variable is written twice.
    #[error("writes the global variable `{name}` twice")]
    SameGlobal {
        /// The variable.
        name: String,
    },
    /// A global variable can't have such a value.
    #[error(
        "writes {value} to the global variable `{name}`, but a global variable takes neither scratch memory nor tensor maps"
    )]
    GlobalValue {
        /// The variable.
        name: String,
        /// The value.
        value: Box<KernelArg>,
    },
    /// The part of shared memory is out of range.
    #[error("has shared_memory_carveout={percent}, expected 0 to 100 percent")]
    Carveout {
        /// The stated part in percent.
        percent: u32,
    },
    /// The launch states how clusters are scheduled, and neither it nor the kernel states clusters.
    #[error("states cluster_scheduling, and neither the launch nor its kernel has clusters")]
    NoClusters,
    /// The passed parameters aren't the kernel's.
    #[error("doesn't fit: in {image}, {params}")]
    Params {
        /// The image.
        image: ImageName,
        /// The parameters.
        params: MismatchedParams,
    },
    /// The kernel requires blocks of another size.
    #[error("is made for blocks of {required:?} threads in {image}, got {block:?}")]
    RequiredBlock {
        /// The image.
        image: ImageName,
        /// The extents that the kernel requires.
        required: [u32; 3],
        /// The launch's extents.
        block: [u32; 3],
    },
    /// The kernel supports fewer threads per block.
    #[error("is made for at most {max} threads a block in {image}, got {threads}")]
    KernelThreads {
        /// The image.
        image: ImageName,
        /// The kernel's limit.
        max: u32,
        /// The number of threads.
        threads: u64,
    },
    /// The kernel requires clusters of another size.
    #[error("is made for clusters of {required:?} blocks in {image}, got {cluster:?}")]
    RequiredCluster {
        /// The image.
        image: ImageName,
        /// The extents that the kernel requires.
        required: [u32; 3],
        /// The launch's extents.
        cluster: [u32; 3],
    },
    /// The architecture has less shared memory than the kernel and the launch take together.
    #[error(
        "takes {total} bytes of shared memory in {image} ({own} static, {dynamic} dynamic), and the architecture has \
         {max}"
    )]
    SharedMemory {
        /// The image.
        image: ImageName,
        /// Both together, in bytes.
        total: i64,
        /// The kernel's static shared memory in bytes.
        own: u32,
        /// The launch's dynamic shared memory in bytes.
        dynamic: i64,
        /// The limit in bytes.
        max: u32,
    },
    /// The launch of a tile kernel states a block other than 1.
    #[error(
        "is of a tile kernel in {image}, whose block the driver sets: expected block=1, got {}",
        tile_block(.block)
    )]
    TileBlock {
        /// The image.
        image: ImageName,
        /// The launch's extents, if they are constant.
        block: Option<[u32; 3]>,
    },
    /// The launch of a tile kernel states shared memory.
    #[error(
        "is of a tile kernel in {image}, whose shared memory the driver sets: expected shared_memory=0, got {shared}"
    )]
    TileShared {
        /// The image.
        image: ImageName,
        /// The launch's shared memory.
        shared: Dim,
    },
    /// The function would do the first-use work of no kernel.
    #[error("prepares no kernel that is launched")]
    PreparesNothing,
    /// The function would do the first-use work of kernels with different device APIs.
    #[error("prepares kernels of two kinds of devices; make a function for each")]
    PreparesTwoApis,
    /// A function that does first-use work has another signature.
    #[error("prepares kernels for a device: it takes one parameter, a Device, and returns nothing")]
    PrepareSignature,
    /// An argument of the kernel can't be passed, or an expression can't be computed.
    #[error(transparent)]
    Arg(#[from] ArgProblem),
}

/// An image as messages name it: `the cubin of sm_90a`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ImageName {
    /// The kind.
    pub kind: ImageKind,
    /// The architectures, if the image states them.
    pub targets: Vec<GpuTarget>,
}

impl ImageName {
    pub(in crate::lower) fn of(image: &Image) -> Self {
        ImageName { kind: image.kind(), targets: image.targets().to_vec() }
    }
}

impl Display for ImageName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "the {}", self.kind)?;
        for (number, target) in self.targets.iter().enumerate() {
            write!(f, "{}{target}", if number == 0 { " of " } else { ", " })?;
        }
        Ok(())
    }
}

fn kernels(names: &[String]) -> String {
    match names {
        [] => "no kernels".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

fn larger_clusters(allowed: &Option<i64>) -> String {
    allowed.map_or_else(String::new, |blocks| format!("; non_portable_cluster allows {blocks}"))
}

fn tile_block(block: &Option<[u32; 3]>) -> String {
    block.map_or_else(|| "one that differs from call to call".to_owned(), |block| format!("{block:?}"))
}

impl LaunchProblem {
    fn mismatch(&self) -> Option<Mismatch> {
        let extents = |expected: &[u32; 3], got: &[u32; 3]| mismatch(format!("{expected:?}"), format!("{got:?}"));
        Some(match self {
            LaunchProblem::NoEntry { entry, known, .. } => mismatch(kernels(known), format_args!("`{entry}`")),
            LaunchProblem::ExtentCount { count, .. } => mismatch("1 to 3", count),
            LaunchProblem::Extent { value, min, max, .. } => mismatch(format_args!("{min} to {max}"), value),
            LaunchProblem::BlockThreads { threads: got, max }
            | LaunchProblem::ClusterBlocks { blocks: got, max, .. } => mismatch(format_args!("at most {max}"), got),
            LaunchProblem::Carveout { percent } => mismatch("0 to 100 percent", percent),
            LaunchProblem::Shared { bytes, max } => mismatch(format_args!("0 to {max} bytes"), bytes),
            LaunchProblem::Params { params, .. } => {
                mismatch(format!("{:?}", params.takes), format!("{:?}", params.passed))
            }
            LaunchProblem::RequiredBlock { required, block: got, .. }
            | LaunchProblem::RequiredCluster { required, cluster: got, .. } => extents(required, got),
            LaunchProblem::KernelThreads { max, threads, .. } => mismatch(format_args!("at most {max}"), threads),
            LaunchProblem::SharedMemory { max, total, .. } => mismatch(format_args!("at most {max} bytes"), total),
            LaunchProblem::TileBlock { block, .. } => mismatch("block=1", tile_block(block)),
            LaunchProblem::TileShared { shared, .. } => mismatch("shared_memory=0", shared),
            LaunchProblem::Arg(problem) => return problem.mismatch(),
            _ => return None,
        })
    }
}

impl Diagnose for LaunchProblem {
    fn diagnostic(&self) -> Diagnostic {
        diagnostic_of(self, self.mismatch())
    }
}
