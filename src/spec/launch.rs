//! Launches: what a compiler states of a kernel that runs on a grid, beside the function's signature.

mod display;

use super::dim::Dim;
use super::scalar::ScalarType;
use super::signature::Signature;

/// The launch of a kernel on a grid of a device: the entry of an image, the extents of the grid and of its blocks, and the kernel's parameters.
///
/// The extents and the shared memory are [dimensions](Dim) over the symbols and integer parameters of the function's [signature](super::Signature).
///
/// ```
/// use tvm_ffi_codegen::dim;
/// use tvm_ffi_codegen::spec::Launch;
///
/// let launch = Launch::new("add_kernel").grid([(dim("n") + 1023) / 1024]).block([128]);
/// assert_eq!(launch.entry(), "add_kernel");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Launch {
    entry: String,
    grid: Vec<Dim>,
    block: Vec<Dim>,
    cluster: Vec<Dim>,
    preferred_cluster: Vec<Dim>,
    shared: Dim,
    args: Option<Vec<LaunchArg>>,
    priority: Option<i32>,
    flags: LaunchFlags,
}

/// A signature with the launch that is the function's kernel, as a text has both.
///
/// ```
/// use tvm_ffi_codegen::spec::LaunchedSignature;
///
/// let text = "add(x: Tensor([n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\")) \
///             @ launch add_kernel grid=ceil_div(n, 128) block=128 args=[x, y, int32(n)]";
/// let function: LaunchedSignature = text.parse()?;
/// assert_eq!(function.launch.entry(), "add_kernel");
/// assert_eq!(function.to_string(), text);
/// # Ok::<(), tvm_ffi_codegen::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchedSignature {
    /// The function's signature.
    pub signature: Signature,
    /// The launch of its kernel.
    pub launch: Launch,
}

/// The flags of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct LaunchFlags {
    /// All blocks run at once, so that they may wait for each other (`CU_LAUNCH_ATTRIBUTE_COOPERATIVE`).
    pub cooperative: bool,
    /// The kernel may begin before the kernel before it on the stream has ended (`CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`).
    pub programmatic: bool,
    /// The kernel may have clusters of more than 8 blocks (`CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`).
    pub non_portable_cluster: bool,
}

/// A parameter of a kernel that is launched.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LaunchArg {
    /// A parameter of the signature as convention `flat` passes it, where that is one value: the address of a tensor's first element, with the byte offset
    /// added; a scalar at its declared width; a stream.
    Param(String),
    /// A scalar parameter of the signature at another width.
    Cast(String, ScalarType),
    /// An integer expression. A value that the type doesn't have is a `ValueError`.
    Int(Dim, ScalarType),
    /// A floating-point number, by the bits of its `f64`.
    Float(FloatBits, ScalarType),
    /// A stride of a tensor parameter, in elements; by its number.
    Stride(String, usize, ScalarType),
    /// The number of the device that a tensor parameter is on, an `int32`.
    DeviceId(String),
    /// A null pointer.
    Null,
    /// A struct by value: its size and alignment in bytes, and its fields, each with its offset in bytes.
    Struct {
        /// The size in bytes.
        size: u32,
        /// The alignment in bytes, a power of two.
        align: u32,
        /// The fields, each with its offset.
        fields: Vec<(u32, LaunchArg)>,
    },
    /// A pointer to memory of the device that the environment's allocator gives for the launch: so many bytes for each block of the grid.
    Scratch {
        /// Bytes for each block.
        bytes: Dim,
        /// The alignment in bytes, a power of two; at most 256.
        align: u32,
    },
    /// A `CUtensorMap` of a tensor parameter, by value.
    TensorMap(TensorMap),
}

/// The bits of an `f64`, which can be compared and hashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FloatBits(pub u64);

impl FloatBits {
    /// Those of a number.
    pub fn new(value: f64) -> Self {
        FloatBits(value.to_bits())
    }

    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// A TMA descriptor: how the device copies boxes of a tensor (`cuTensorMapEncodeTiled` of cuda.h). Lists are in the order of the tensor's own
/// dimensions, the slowest first; the driver gets them reversed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorMap {
    /// The tensor parameter.
    pub tensor: String,
    /// The sizes of a box, in elements: 1 to 256 each.
    pub box_dims: Vec<Dim>,
    /// The steps between elements of a box: 1 to 8 each; each 1 where it is empty.
    pub element_strides: Vec<u32>,
    /// The interleaving of the innermost dimension.
    pub interleave: Interleave,
    /// The swizzling of shared memory.
    pub swizzle: Swizzle,
    /// The size in which the L2 cache is filled.
    pub l2_promotion: L2Promotion,
    /// Elements out of bounds are NaN, not 0.
    pub nan_fill: bool,
}

/// The interleaving of a TMA descriptor (`CUtensorMapInterleave`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)] // the names are the header's
pub enum Interleave {
    #[default]
    None,
    Bytes16,
    Bytes32,
}

/// The swizzling of a TMA descriptor (`CUtensorMapSwizzle`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)] // the names are the header's
pub enum Swizzle {
    #[default]
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

/// The L2 promotion of a TMA descriptor (`CUtensorMapL2promotion`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)] // the names are the header's
pub enum L2Promotion {
    #[default]
    None,
    Bytes64,
    Bytes128,
    Bytes256,
}

impl TensorMap {
    /// The descriptor of boxes of a tensor parameter, without interleaving, swizzling and promotion.
    pub fn new<D: Into<Dim>>(tensor: impl Into<String>, box_dims: impl IntoIterator<Item = D>) -> Self {
        TensorMap {
            tensor: tensor.into(),
            box_dims: box_dims.into_iter().map(Into::into).collect(),
            element_strides: Vec::new(),
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            l2_promotion: L2Promotion::None,
            nan_fill: false,
        }
    }
}

impl Launch {
    /// The launch of an image's entry, by one block of one thread.
    pub fn new(entry: impl Into<String>) -> Self {
        Launch {
            entry: entry.into(),
            grid: vec![Dim::Const(1)],
            block: vec![Dim::Const(1)],
            cluster: Vec::new(),
            preferred_cluster: Vec::new(),
            shared: Dim::Const(0),
            args: None,
            priority: None,
            flags: LaunchFlags::default(),
        }
    }

    /// States the grid in blocks: one to three extents, x first. A grid with an extent of 0 launches nothing.
    pub fn grid<D: Into<Dim>>(mut self, extents: impl IntoIterator<Item = D>) -> Self {
        self.grid = extents.into_iter().map(Into::into).collect();
        self
    }

    /// States a block in threads: one to three extents, x first.
    pub fn block<D: Into<Dim>>(mut self, extents: impl IntoIterator<Item = D>) -> Self {
        self.block = extents.into_iter().map(Into::into).collect();
        self
    }

    /// States a cluster in blocks: one to three extents, x first.
    pub fn cluster<D: Into<Dim>>(mut self, extents: impl IntoIterator<Item = D>) -> Self {
        self.cluster = extents.into_iter().map(Into::into).collect();
        self
    }

    /// States the cluster that is preferred where the device has room, a multiple of the [cluster](Self::cluster).
    pub fn preferred_cluster<D: Into<Dim>>(mut self, extents: impl IntoIterator<Item = D>) -> Self {
        self.preferred_cluster = extents.into_iter().map(Into::into).collect();
        self
    }

    /// States the dynamic shared memory of a block, in bytes.
    pub fn shared(mut self, bytes: impl Into<Dim>) -> Self {
        self.shared = bytes.into();
        self
    }

    /// States the kernel's parameters in order; unless stated they are those of convention `flat`.
    pub fn args(mut self, args: impl IntoIterator<Item = LaunchArg>) -> Self {
        self.args = Some(args.into_iter().collect());
        self
    }

    /// Makes the launch cooperative.
    pub fn cooperative(mut self) -> Self {
        self.flags.cooperative = true;
        self
    }

    /// Lets the kernel begin before the one before it on the stream has ended.
    pub fn programmatic(mut self) -> Self {
        self.flags.programmatic = true;
        self
    }

    /// Allows clusters of more than 8 blocks.
    pub fn non_portable_cluster(mut self) -> Self {
        self.flags.non_portable_cluster = true;
        self
    }

    /// States the priority of the launch, as `cuStreamCreateWithPriority` has it.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The name of the kernel in its image.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// The extents of the grid, in blocks, x first.
    pub fn grid_extents(&self) -> &[Dim] {
        &self.grid
    }

    /// The extents of a block, in threads, x first.
    pub fn block_extents(&self) -> &[Dim] {
        &self.block
    }

    /// The extents of a cluster, in blocks, x first; empty where there is none.
    pub fn cluster_extents(&self) -> &[Dim] {
        &self.cluster
    }

    /// The extents of the preferred cluster; empty where there is none.
    pub fn preferred_cluster_extents(&self) -> &[Dim] {
        &self.preferred_cluster
    }

    /// The dynamic shared memory of a block, in bytes.
    pub fn shared_bytes(&self) -> &Dim {
        &self.shared
    }

    /// The kernel's parameters, where they are stated.
    pub fn stated_args(&self) -> Option<&[LaunchArg]> {
        self.args.as_deref()
    }

    /// The flags.
    pub fn flags(&self) -> LaunchFlags {
        self.flags
    }

    /// The priority, where it is stated.
    pub fn stated_priority(&self) -> Option<i32> {
        self.priority
    }
}
