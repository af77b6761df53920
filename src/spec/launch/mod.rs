//! Launches: a compiler's description of a kernel that runs on a grid, in addition to the function's signature.

mod attributes;
mod display;

pub use attributes::{ClusterScheduling, MemorySyncDomain};

use super::dim::Dim;
use super::kernel_arg::KernelArg;
use super::signature::Signature;

/// The launch of a kernel on a grid of a device. It states the entry of an image, the extents of the grid and its
/// blocks, and the kernel's parameters.
///
/// The extents and the shared memory are [dimensions](Dim) over the variables and integer parameters of the function's
/// [signature](super::Signature).
///
/// ```
/// use tvm_ffi_codegen::dim;
/// use tvm_ffi_codegen::spec::Launch;
///
/// let launch = Launch::new("add_kernel").grid([(dim("n") + 1023) / 1024]).block([128]);
/// assert_eq!(launch.entry(), "add_kernel");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[must_use]
pub struct Launch {
    entry: String,
    grid: Vec<Dim>,
    block: Vec<Dim>,
    cluster: Vec<Dim>,
    preferred_cluster: Vec<Dim>,
    shared: Dim,
    args: Option<Vec<KernelArg>>,
    stream: Option<String>,
    priority: Option<i32>,
    cluster_scheduling: Option<ClusterScheduling>,
    memory_sync_domain: Option<MemorySyncDomain>,
    carveout: Option<u32>,
    completion_event: Option<String>,
    globals: Vec<(String, KernelArg)>,
    on_load: Option<String>,
    on_unload: Option<String>,
    flags: LaunchFlags,
}

/// A signature and the launch of the function's kernel, as parsed from one string.
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
    /// All blocks run at the same time, so they may wait for each other (`CU_LAUNCH_ATTRIBUTE_COOPERATIVE`).
    pub cooperative: bool,
    /// The kernel may begin before the preceding kernel on the stream has ended
    /// (`CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`).
    pub programmatic_dependent_launch: bool,
    /// The kernel may have clusters of more than 8 blocks (`CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`).
    pub non_portable_cluster: bool,
}

impl Launch {
    /// Creates the launch of an image's entry with one block of one thread.
    pub fn new(entry: impl Into<String>) -> Self {
        Launch {
            entry: entry.into(),
            grid: vec![Dim::Const(1)],
            block: vec![Dim::Const(1)],
            cluster: Vec::new(),
            preferred_cluster: Vec::new(),
            shared: Dim::Const(0),
            args: None,
            stream: None,
            priority: None,
            cluster_scheduling: None,
            memory_sync_domain: None,
            carveout: None,
            completion_event: None,
            globals: Vec::new(),
            on_load: None,
            on_unload: None,
            flags: LaunchFlags::default(),
        }
    }

    /// Sets the grid in blocks: one to three extents, x first. A grid with an extent of 0 launches nothing.
    pub fn grid<D: Into<Dim>>(mut self, extents: impl IntoIterator<Item = D>) -> Self {
        self.grid = extents.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the block in threads: one to three extents, x first.
    pub fn block<D: Into<Dim>>(mut self, extents: impl IntoIterator<Item = D>) -> Self {
        self.block = extents.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the cluster in blocks: one to three extents, x first.
    pub fn cluster<D: Into<Dim>>(mut self, extents: impl IntoIterator<Item = D>) -> Self {
        self.cluster = extents.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the cluster to use where the device has room, a multiple of the [cluster](Self::cluster).
    pub fn preferred_cluster<D: Into<Dim>>(mut self, extents: impl IntoIterator<Item = D>) -> Self {
        self.preferred_cluster = extents.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the dynamic shared memory of a block, in bytes.
    pub fn shared_memory(mut self, bytes: impl Into<Dim>) -> Self {
        self.shared = bytes.into();
        self
    }

    /// Sets the kernel's parameters in order. The default is those of convention `flat`.
    pub fn args(mut self, args: impl IntoIterator<Item = KernelArg>) -> Self {
        self.args = Some(args.into_iter().collect());
        self
    }

    /// Launches on the stream that a parameter of type [`Stream`](super::ParamType::Stream), `EnvStream` or `handle`
    /// has. The default is the environment's stream for the device.
    ///
    /// ```
    /// use tvm_ffi_codegen::dim;
    /// use tvm_ffi_codegen::spec::{Launch, LaunchedSignature};
    ///
    /// let text = "f(x: Tensor([n], float32, device=\"cuda\"), stream: Stream = None) @ launch f grid=n args=[x] stream=stream";
    /// let function: LaunchedSignature = text.parse()?;
    /// assert_eq!(function.launch.stated_stream(), Some("stream"));
    /// assert_eq!(Launch::new("f").grid([dim("n")]).stream("stream").to_string(), "launch f grid=n stream=stream");
    /// # Ok::<(), tvm_ffi_codegen::ParseError>(())
    /// ```
    pub fn stream(mut self, name: impl Into<String>) -> Self {
        self.stream = Some(name.into());
        self
    }

    /// Makes the launch cooperative.
    pub fn cooperative(mut self) -> Self {
        self.flags.cooperative = true;
        self
    }

    /// Lets the kernel begin before the preceding one on the stream has ended.
    pub fn programmatic_dependent_launch(mut self) -> Self {
        self.flags.programmatic_dependent_launch = true;
        self
    }

    /// Allows clusters of more than 8 blocks.
    pub fn non_portable_cluster(mut self) -> Self {
        self.flags.non_portable_cluster = true;
        self
    }

    /// Sets the priority of the launch, with the meaning of `cuStreamCreateWithPriority`.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets how the driver distributes the blocks of clusters, for a kernel with clusters.
    pub fn cluster_scheduling(mut self, policy: ClusterScheduling) -> Self {
        self.cluster_scheduling = Some(policy);
        self
    }

    /// Sets the memory synchronisation domain. The default is the stream's.
    pub fn memory_sync_domain(mut self, domain: MemorySyncDomain) -> Self {
        self.memory_sync_domain = Some(domain);
        self
    }

    /// Sets the preferred part of a multiprocessor's memory that is shared memory instead of cache, in percent: 0 to
    /// 100. This is a hint for the driver, which has it from version 12.5 on.
    pub fn shared_memory_carveout(mut self, percent: u32) -> Self {
        self.carveout = Some(percent);
        self
    }

    /// Records an event once all blocks of the kernel have begun, as far as the device can tell. `name` is a parameter
    /// of type `handle`, `int64`, `uint64` or an `Optional` of these integers, with a `CUevent` without timing. NULL, 0
    /// and None record nothing. The driver has this from version 12.3 on.
    ///
    /// ```
    /// use tvm_ffi_codegen::spec::LaunchedSignature;
    ///
    /// let text = "f(x: Tensor([n], float32, device=\"cuda\"), begun: handle) @ launch f grid=n args=[x] completion_event=begun";
    /// let function: LaunchedSignature = text.parse()?;
    /// assert_eq!(function.launch.stated_completion_event(), Some("begun"));
    /// # Ok::<(), tvm_ffi_codegen::ParseError>(())
    /// ```
    pub fn completion_event(mut self, name: impl Into<String>) -> Self {
        self.completion_event = Some(name.into());
        self
    }

    /// Writes a value to a global variable of the image before the kernel runs, on the launch's stream: a
    /// `__constant__` or `__device__` variable, by its name in the image. The value has the variable's size. It is
    /// stated like a parameter of the kernel; scratch memory and tensor maps can't be written.
    ///
    /// ```
    /// use tvm_ffi_codegen::spec::{KernelArg, Launch};
    ///
    /// let launch = Launch::new("scale").global("factor", "float32(alpha)".parse::<KernelArg>()?);
    /// assert_eq!(launch.to_string(), "launch scale globals=[factor=cast(alpha, float32)]");
    /// # Ok::<(), tvm_ffi_codegen::SyntaxError>(())
    /// ```
    pub fn global(mut self, name: impl Into<String>, value: KernelArg) -> Self {
        self.globals.push((name.into(), value));
        self
    }

    /// Calls the global function `name` after an image is loaded for a device, before the first launch there. It gets
    /// the image's handle (`CUlibrary` or `hipModule_t`) as an opaque pointer, and the device.
    pub fn on_load(mut self, name: impl Into<String>) -> Self {
        self.on_load = Some(name.into());
        self
    }

    /// Calls the global function `name` before an image is unloaded, for each device that it was loaded for, with the
    /// same arguments as [`on_load`](Self::on_load).
    pub fn on_unload(mut self, name: impl Into<String>) -> Self {
        self.on_unload = Some(name.into());
        self
    }

    /// Changes the kernel. `entry` is its name in the image.
    pub fn with_entry(mut self, entry: impl Into<String>) -> Self {
        self.entry = entry.into();
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

    /// The extents of a cluster, in blocks, x first; empty without clusters.
    pub fn cluster_extents(&self) -> &[Dim] {
        &self.cluster
    }

    /// The extents of the preferred cluster; empty if there is none.
    pub fn preferred_cluster_extents(&self) -> &[Dim] {
        &self.preferred_cluster
    }

    /// The dynamic shared memory of a block, in bytes.
    pub fn shared_memory_bytes(&self) -> &Dim {
        &self.shared
    }

    /// The kernel's parameters, if they are stated.
    pub fn stated_args(&self) -> Option<&[KernelArg]> {
        self.args.as_deref()
    }

    /// The name of the parameter with the stream, if it is stated.
    pub fn stated_stream(&self) -> Option<&str> {
        self.stream.as_deref()
    }

    /// The flags.
    pub fn flags(&self) -> LaunchFlags {
        self.flags
    }

    /// The priority, if it is stated.
    pub fn stated_priority(&self) -> Option<i32> {
        self.priority
    }

    /// How the driver distributes the blocks of clusters, if it is stated.
    pub fn stated_cluster_scheduling(&self) -> Option<ClusterScheduling> {
        self.cluster_scheduling
    }

    /// The memory synchronisation domain, if it is stated.
    pub fn stated_memory_sync_domain(&self) -> Option<MemorySyncDomain> {
        self.memory_sync_domain
    }

    /// The preferred part of shared memory in percent, if it is stated.
    pub fn stated_shared_memory_carveout(&self) -> Option<u32> {
        self.carveout
    }

    /// The global variables that the launch writes, with their values.
    pub fn globals(&self) -> &[(String, KernelArg)] {
        &self.globals
    }

    /// The global function to call after an image is loaded, if it is stated.
    pub fn stated_on_load(&self) -> Option<&str> {
        self.on_load.as_deref()
    }

    /// The global function to call before an image is unloaded, if it is stated.
    pub fn stated_on_unload(&self) -> Option<&str> {
        self.on_unload.as_deref()
    }

    /// The name of the parameter with the event to record, if it is stated.
    pub fn stated_completion_event(&self) -> Option<&str> {
        self.completion_event.as_deref()
    }
}
