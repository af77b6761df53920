//! The driver calls of a launch, printed for people.

use std::fmt::{self, Display, Formatter};

use super::super::convention::{Convention, KernelReturn, params};
use super::super::device_api::{
    Api, Call, KernelHome, MOST_BLOCKS, MOST_THREADS, MOST_THREADS_OF_BLOCK, by_preference,
};
use super::attributes::{self, Attribute, AttributeValue};
use super::blocks::{PARALLEL_FOR, prototype as block_prototype};
use super::spec::LaunchSpec;
use crate::spec::{Dim, KernelArg, Signature};

/// A launch with the signature of its function. `Display` prints the sequence of driver calls.
pub(in crate::lower) struct Sequence<'a> {
    pub spec: &'a LaunchSpec,
    pub signature: &'a Signature,
    /// Whether the launch is one of a graph.
    pub in_graph: bool,
}

impl Display for Sequence<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Sequence { spec, signature, .. } = self;
        writeln!(f, "{signature} @ {}", spec.launch)?;
        let Some(api) = spec.api() else {
            writeln!(f, "\nonce for each library, at its first launch:")?;
            writeln!(f, "  {PARALLEL_FOR}: the threads' parallel-for, or a loop if none is registered")?;
            writeln!(f, "\neach call:")?;
            self.extents_and_params(f, None)?;
            let prototype = block_prototype(&spec.block_params(signature));
            return writeln!(f, "  the parallel-for, with {} for each block: {prototype}", spec.launch.entry());
        };
        writeln!(f, "\nonce for each library, at its first launch:")?;
        match api.get_proc_address {
            Some(get) => writeln!(f, "  dlopen {}, {get} for the functions below", api.library)?,
            None => writeln!(f, "  dlopen {}, dlsym for the functions below", api.library)?,
        }
        writeln!(f, "  {}", api.function_name(Call::Init))?;
        self.device(f, api)?;
        self.images(f, api)?;
        self.hooks(f, api)?;
        self.kernel(f, api)?;
        self.each_call(f, api)
    }
}

impl Sequence<'_> {
    fn device(&self, f: &mut Formatter<'_>, api: &Api) -> fmt::Result {
        writeln!(f, "\nonce for each device:")?;
        writeln!(f, "  {}", api.function_name(Call::Device))?;
        let name = api.function_name(Call::Attribute);
        let [major, minor] = api.attributes.capability;
        writeln!(f, "  {name} {major} and {minor}: the compute capability")?;
        let [threads, x, y, z] = api.attributes.block;
        writeln!(f, "  {name} {threads}, {x}, {y} and {z}: the most threads of a block, and in x, y and z")?;
        writeln!(f, "  {name} {}: the most shared memory of a block", api.attributes.shared)?;
        match api.function(Call::Retain) {
            Some(retain) => writeln!(f, "  {}", retain.name),
            None => Ok(()),
        }
    }

    fn images(&self, f: &mut Formatter<'_>, api: &Api) -> fmt::Result {
        let loaded = match api.home {
            KernelHome::Contexts => "library",
            KernelHome::CurrentDevice => "device",
        };
        writeln!(f, "\nonce for each {loaded}, the first image that is for the device:")?;
        let images = self.spec.device_images();
        for image in by_preference(&images) {
            let load = api.function_name(Call::Load);
            writeln!(f, "  for {}: {load} of {} bytes", image.rule, image.bytes.len())?;
        }
        match api.home {
            KernelHome::Contexts => Ok(()),
            KernelHome::CurrentDevice => {
                let [current, enter, leave] = around(api);
                writeln!(f, "    {current} and {enter} before it, and {leave} behind it")
            }
        }
    }

    /// The functions of an image.
    fn hooks(&self, f: &mut Formatter<'_>, api: &Api) -> fmt::Result {
        let launch = &self.spec.launch;
        let (on_load, on_unload) = (launch.stated_on_load(), launch.stated_on_unload());
        if on_load.is_some() || on_unload.is_some() {
            writeln!(f, "\nonce for each image and device:")?;
        }
        if let Some(name) = on_load {
            writeln!(f, "  the global function `{name}`")?;
            writeln!(f, "    {}", around_them(api))?;
        }
        match on_unload {
            Some(name) => writeln!(f, "  before the image is unloaded: the global function `{name}`"),
            None => Ok(()),
        }
    }

    fn kernel(&self, f: &mut Formatter<'_>, api: &Api) -> fmt::Result {
        let launch = &self.spec.launch;
        writeln!(f, "\nonce for each device and kernel:")?;
        let attributes = attributes::stated(launch);
        if let (Some(function), Some(newest)) =
            (api.function(Call::Version), attributes.iter().max_by_key(|attribute| attribute.version))
            && newest.version > 0
        {
            let (major, minor) = (newest.version / 1000, newest.version % 1000 / 10);
            writeln!(f, "  {}: {} needs version {major}.{minor} or later", function.name, newest.name)?;
        }
        writeln!(f, "  {} \"{}\"", api.function_name(Call::Kernel), launch.entry())?;
        if let (Some(info), Some(sizes)) = (api.function(Call::ParamInfo), self.spec.untold_params(self.signature)) {
            let info = info.name;
            writeln!(f, "  {info}, where the driver has it: parameters of {sizes:?} bytes, and no more")?;
            writeln!(f, "    {}", around_them(api))?;
        }
        let [get, set] = [Call::GetAttribute, Call::SetAttribute].map(|call| api.function_name(call));
        if let (Some(attributes), Some(max)) = (api.kernel_shared, self.spec.shared().asked()) {
            if max.own.is_none() {
                writeln!(f, "  {get} {}: the kernel's own shared memory", attributes.own)?;
            }
            writeln!(f, "  {set} {}: {max}", attributes.max)?;
        }
        if let Some(attribute) = api.non_portable_cluster.filter(|_| launch.flags().non_portable_cluster) {
            writeln!(f, "  {set} {attribute}: clusters of more than 8 blocks")?;
        }
        if launch.globals().is_empty() {
            return Ok(());
        }
        let names: Vec<String> = launch.globals().iter().map(|(name, _)| format!("\"{name}\"")).collect();
        writeln!(f, "  {} {}", api.function_name(Call::GetGlobal), names.join(", "))?;
        writeln!(f, "    {}", around_them(api))
    }

    /// The global variables that a call writes.
    fn globals(&self, f: &mut Formatter<'_>, api: &Api) -> fmt::Result {
        let globals = self.spec.launch.globals();
        if globals.is_empty() {
            return Ok(());
        }
        writeln!(f, "  the global variables, on the stream:")?;
        for (name, value) in globals {
            let bytes = self.spec.bytes_of(value, self.signature).unwrap_or(0);
            let [word, byte] = [Call::SetWord, Call::SetByte].map(|call| api.function_name(call));
            let parts = [(word, bytes / 4 * 4), (byte, bytes % 4)];
            let parts = parts.iter().filter(|(_, bytes)| *bytes > 0);
            let parts: Vec<String> = parts.map(|(name, bytes)| format!("{name} for {bytes} bytes")).collect();
            writeln!(f, "    {name}={value}: {}", parts.join(", "))?;
        }
        writeln!(f, "      {}", around_them(api))
    }

    fn each_call(&self, f: &mut Formatter<'_>, api: &Api) -> fmt::Result {
        let launch = &self.spec.launch;
        writeln!(f, "\neach call:")?;
        self.extents_and_params(f, Some(api))?;
        match launch.stated_stream() {
            Some(name) => writeln!(f, "  the stream: {name}")?,
            None => writeln!(f, "  the stream: TVMFFIEnvGetStream for the tensors' device")?,
        }
        let stated = attributes::stated(launch);
        let without_extents = |attribute: &&Attribute<'_>| !matches!(attribute.value, AttributeValue::Extents(_));
        let attributes: String = stated.iter().filter(without_extents).map(|stated| format!(", {stated}")).collect();
        if self.in_graph {
            return writeln!(f, "  noted for the graph below{attributes}");
        }
        self.globals(f, api)?;
        let cooperative = api.function(Call::LaunchCooperative).filter(|_| launch.flags().cooperative);
        let function = cooperative.map_or_else(|| api.function_name(Call::Launch), |function| function.name);
        writeln!(f, "  {function}{attributes}")?;
        let [current, enter, leave] = around(api);
        match api.home {
            KernelHome::Contexts => writeln!(
                f,
                "    on a stream that is NULL or belongs to the thread: {current}, and {enter} and {leave} around the \
                 launch where another context than the device's is current"
            ),
            KernelHome::CurrentDevice => writeln!(
                f,
                "    {current} before, and {enter} before and {leave} behind the launch where another device is current"
            ),
        }
    }

    fn extents_and_params(&self, f: &mut Formatter<'_>, api: Option<&Api>) -> fmt::Result {
        let launch = &self.spec.launch;
        extents(f, "grid", launch.grid_extents(), 0, Some(MOST_BLOCKS))?;
        writeln!(f, "    where one is 0, nothing more")?;
        extents(f, "block", launch.block_extents(), 1, Some(MOST_THREADS))?;
        writeln!(f, "    together at most {MOST_THREADS_OF_BLOCK} threads")?;
        if !launch.cluster_extents().is_empty() {
            extents(f, "cluster", launch.cluster_extents(), 1, None)?;
            writeln!(f, "    each divides that of the grid")?;
        }
        extents(f, "preferred_cluster", launch.preferred_cluster_extents(), 1, None)?;
        if *launch.shared_memory_bytes() != Dim::Const(0) {
            writeln!(f, "  shared_memory = {} bytes of dynamic shared memory", launch.shared_memory_bytes())?;
        }
        self.params(f, api)
    }

    fn params(&self, f: &mut Formatter<'_>, api: Option<&Api>) -> fmt::Result {
        writeln!(f, "  the kernel's parameters:")?;
        match self.spec.launch.stated_args() {
            None => {
                let flat = params::params(self.signature, Convention::Flat, KernelReturn::Status);
                flat.iter().try_for_each(|param| writeln!(f, "    {param}: {}", param.source))
            }
            Some(args) => args.iter().try_for_each(|arg| match arg {
                KernelArg::TensorMap(_) => {
                    let Some(api) = api else { return writeln!(f, "    {arg}") };
                    let [current, enter, leave] = around(api);
                    writeln!(f, "    {arg}: {}", api.function_name(Call::TensorMap))?;
                    writeln!(
                        f,
                        "      {current}, and {enter} and {leave} around it where another context than the device's is \
                         current"
                    )
                }
                KernelArg::Scratch { .. } => {
                    writeln!(f, "    {arg}: TVMFFIEnvTensorAlloc on the tensors' device, given up behind the launch")
                }
                _ => writeln!(f, "    {arg}"),
            }),
        }
    }
}

/// The functions that tell what is current on the thread, make the device current, and undo that.
pub(super) fn around(api: &Api) -> [&'static str; 3] {
    [Call::Current, Call::Enter, Call::Leave].map(|call| api.function_name(call))
}

/// The calls around several others that need the device to be current.
fn around_them(api: &Api) -> String {
    let [current, enter, leave] = around(api);
    let another = match api.home {
        KernelHome::Contexts => "context than the device's",
        KernelHome::CurrentDevice => "device",
    };
    format!("{current} before them, and {enter} before and {leave} behind them where another {another} is current")
}

/// Prints extents with their limits. The device limits those of clusters.
fn extents(f: &mut Formatter<'_>, name: &str, extents: &[Dim], min: i64, max: Option<[i64; 3]>) -> fmt::Result {
    for (number, extent) in extents.iter().enumerate() {
        write!(f, "  {name}[{number}] = {extent}")?;
        match (extent, max.and_then(|max| max.get(number).copied())) {
            (Dim::Const(_), _) | (_, None) => writeln!(f)?,
            (_, Some(max)) => writeln!(f, ", {min} to {max}")?,
        }
    }
    Ok(())
}
