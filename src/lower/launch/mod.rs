//! Launches: the code that computes a grid from the values of a call, assembles a kernel's parameters, and launches it.
//!
//! Extents are computed in 64 bits. An extent that no device supports is a `ValueError` that names the dimension and
//! its source. A grid with an extent of 0 launches nothing. [`device_api`](super::device_api) is responsible for the
//! driver.

mod attributes;
mod blocks;
mod check;
mod configuration;
mod emitter;
mod extents;
mod globals;
pub(super) mod graph;
mod graph_sequence;
mod params;
mod scratch;
mod sequence;
pub(super) mod shot;
mod spec;
mod tensor_map;

use std::sync::Arc;

use super::abi::fields::pair;
use super::capi;
use super::device_api::{
    Api, Drivers, Failures, ImageHooks, ImageRule, KernelToLaunch, LaunchPlace, Launchable, MOST_BLOCKS, MOST_THREADS,
    Place, Start, Texts, config,
};
use super::launch_description::NotedLaunches;
use super::once::Handles;
use super::protocol::{Piece, helpers};
use super::unit::ModulePool;
use crate::ir::{Block, FunctionBuilder, Hint, Module, StackSlot, Type, Val, Value};
use crate::spec::{KernelArg, Launch, Signature};
use tvm_ffi_runtime::abi::DLDeviceType;

use blocks::Blocks;
pub(crate) use blocks::PARALLEL_FOR;
pub(super) use blocks::{BlockFunction, prototype as block_prototype};
use emitter::{DeviceCode, LaunchEmitter, PreparedCode};
pub(super) use emitter::{Inputs, Prepared};
use sequence::Sequence;
pub(super) use spec::LaunchSpec;
use spec::LaunchedCode;

/// The parts of a module under construction that kernels are added to.
pub(super) struct ModuleParts<'u> {
    pub module: &'u mut Module,
    pub pool: &'u mut ModulePool,
    pub drivers: &'u mut Drivers,
    pub handles: &'u mut Handles,
    /// The prefix of a system library's symbols.
    pub prefix: &'u str,
    /// Records the launches of the function under construction.
    pub launches: &'u mut NotedLaunches,
}

/// Adds a kernel to a module. `called` is the printed signature. `in_graph` tells whether the launch is one of a graph.
pub(super) fn prepare<'a>(
    mut into: ModuleParts<'_>,
    spec: &'a LaunchSpec,
    signature: &'a Signature,
    called: &str,
    in_graph: bool,
) -> Prepared<'a> {
    into.launches.described.push(spec.description());
    if let Some(sequences) = &mut into.launches.sequences {
        sequences.push(Sequence { spec, signature, in_graph }.to_string());
    }
    let text = format!("Cannot launch kernel `{}` when calling: `{called}`", spec.launch.entry());
    let (code, caller) = match &spec.code {
        LaunchedCode::Blocks(function) => {
            let ModuleParts { module, pool, handles, prefix, .. } = &mut into;
            let source = blocks::source(module);
            let threads = handles.state(module, prefix, source, &mut pool.constants, pool.data);
            let called = pool.constants.text(called);
            let blocks = Blocks::new(module, function, &spec.block_params(signature), threads, called);
            (PreparedCode::Blocks(blocks), into.pool.constants.text(&text))
        }
        LaunchedCode::Images(api, _) => {
            let (launchable, texts) = add(&mut into, spec, api, spec.untold_params(signature), &text);
            (PreparedCode::Device(DeviceCode { launchable, form: api.launch, texts }), texts.caller)
        }
    };
    Prepared { launch: &spec.launch, signature, code, caller }
}

/// Adds a kernel to a module, with the strings of its errors. `params` are the sizes in bytes of the parameters that
/// are passed, if they are compared with the driver's.
fn add(
    into: &mut ModuleParts<'_>,
    spec: &LaunchSpec,
    api: &'static Api,
    params: Option<Vec<u32>>,
    text: &str,
) -> (Launchable, Texts) {
    let ModuleParts { module, pool, drivers, .. } = into;
    let (launch, images) = (&spec.launch, spec.device_images());
    let args = launch.stated_args().unwrap_or_default();
    let to_launch = KernelToLaunch {
        api,
        entry: launch.entry(),
        images: &images,
        shared: spec.shared(),
        cooperative: launch.flags().cooperative,
        non_portable_cluster: launch.flags().non_portable_cluster,
        version: attributes::version(launch),
        hooks: hooks_of(launch),
        globals: launch.globals().iter().map(|(name, _)| name.as_str()).collect(),
        params,
        tensor_maps: args.iter().any(|arg| matches!(arg, KernelArg::TensorMap(_))),
    };
    let launchable = drivers.kernel(module, &mut pool.constants, pool.data, &to_launch);
    let targets: Vec<String> = images.iter().map(|image| image.rule.to_string()).collect();
    let (caller, images) = (pool.constants.text(text), pool.constants.text(&targets.join(", ")));
    (launchable, Texts { pool: pool.data, caller, images })
}

/// The functions that a launch states for its images.
fn hooks_of(launch: &Launch) -> Option<ImageHooks> {
    let [on_load, on_unload] = [launch.stated_on_load(), launch.stated_on_unload()].map(|name| name.map(str::to_owned));
    (on_load.is_some() || on_unload.is_some()).then_some(ImageHooks { on_load, on_unload })
}

/// Kernels of a module that a function does the first-use work for.
pub(super) struct FirstUses {
    kernels: Vec<(Launchable, Texts)>,
    api: &'static Api,
    called: String,
}

/// Adds the kernels of launches to a module, for a function that does their first-use work. `specs` has at least one
/// launch; all use one API.
pub(super) fn first_uses(mut into: ModuleParts<'_>, specs: &[Arc<LaunchSpec>], called: &str) -> Option<FirstUses> {
    let api = specs.first()?.api()?;
    let caller =
        |spec: &LaunchSpec| format!("Cannot prepare kernel `{}` when calling: `{called}`", spec.launch.entry());
    let kernels = specs.iter().map(|spec| add(&mut into, spec, api, None, &caller(spec))).collect();
    Some(FirstUses { kernels, api, called: called.to_owned() })
}

/// Emits the first-use work of kernels on a device, passed as the two halves of a `DLDevice`. Returns an error's code
/// or 0.
pub(super) fn emit_first_uses(
    b: &mut FunctionBuilder<'_>,
    pool: &mut ModulePool,
    uses: &FirstUses,
    [kind, number]: [Value; 2],
) -> Value {
    b.structured(|c| {
        let [kind, number] = [kind, number].map(|half| c.val(half));
        let exit = c.block();
        let code = c.block_param(exit, Type::I32);
        let (right, wrong) = (c.block(), c.cold_block());
        c.branch(kind.is(uses.api.device.0), right, wrong, Hint::Likely);
        c.switch_to(wrong);
        let text =
            format!("Cannot prepare kernels when calling: `{}`, expected a device of {}", uses.called, uses.api.shown);
        let template = pool.constants.template("ValueError", &[Piece::Text(&text)]);
        c.jump(exit, &[helpers::raise(c, pool.data, template, None)]);
        c.switch_to(right);
        for (kernel, texts) in &uses.kernels {
            let failures = Failures::new(c);
            kernel.first_use(number, failures);
            kernel.raise(failures, number, *texts, exit);
        }
        c.jump(exit, &[c.i32(0)]);
        c.switch_to(exit);
        code.value()
    })
}

impl std::fmt::Display for ImageRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = |number: u32| format!("{}.{}", number / 10, number % 10);
        match *self {
            ImageRule::Exact(number) => write!(f, "{} alone", parts(number)),
            ImageRule::Family(number) => write!(f, "{} and later ones of {}", parts(number), number / 10),
            ImageRule::Least(number) => write!(f, "{} and later", parts(number)),
            ImageRule::Any => f.write_str("those in a bundle"),
        }
    }
}

/// The error exit of a launch.
pub(super) struct Failure {
    /// The block that the caller continues in. It isn't terminated yet.
    pub block: Block,
    /// The code of the error, in that block.
    pub code: Value,
}

/// Emits a launch; the code continues after it if it succeeds. Fails if a value is missing; the error names it.
pub(super) fn emit(
    b: &mut FunctionBuilder<'_>,
    pool: &mut ModulePool,
    prepared: &Prepared<'_>,
    inputs: &Inputs<'_>,
) -> Result<Failure, String> {
    let (done, failed) = (b.block(), b.cold_block());
    let code = b.block_param(failed, Type::I32);
    let mut emitter = LaunchEmitter::new(b, pool, prepared, inputs, [done, failed]);
    emitter.run();
    let LaunchEmitter { values, memory, .. } = emitter;
    let missing = values.missing;
    b.switch_to(failed);
    scratch::release(b, &memory.owned);
    let block = b.current();
    b.switch_to(done);
    scratch::release(b, &memory.owned);
    missing.map_or(Ok(Failure { block, code }), Err)
}

/// The CPU as one `I64`, the two halves of a `DLDevice`.
pub(super) fn cpu(b: &mut FunctionBuilder<'_>) -> Value {
    let order = b.module().endianness;
    b.i64(pair(order, DLDeviceType::CPU.0 as u32, 0))
}

impl LaunchEmitter<'_, '_> {
    fn run(&mut self) {
        let launch = self.prepared.launch;
        let grid = self.extents("grid", launch.grid_extents());
        // an empty grid is valid, like an empty tensor
        self.leave_if_empty(&grid);
        self.limit("grid", &grid, launch.grid_extents(), 0, &MOST_BLOCKS);
        self.memory.blocks.clone_from(&grid);
        let block = self.extents("block", launch.block_extents());
        self.limit("block", &block, launch.block_extents(), 1, &MOST_THREADS);
        self.limit_threads(&block);
        let cluster = self.extents("cluster", launch.cluster_extents());
        self.limit("cluster", &cluster, launch.cluster_extents(), 1, &MOST_BLOCKS);
        self.cluster_divides(&grid, &cluster);
        let preferred = self.extents("preferred_cluster", launch.preferred_cluster_extents());
        self.limit("preferred_cluster", &preferred, launch.preferred_cluster_extents(), 1, &MOST_BLOCKS);
        let shared = self.extents("shared_memory", std::slice::from_ref(launch.shared_memory_bytes()));
        self.limit(
            "shared_memory",
            &shared,
            std::slice::from_ref(launch.shared_memory_bytes()),
            0,
            &[i64::from(i32::MAX)],
        );
        match self.prepared.code {
            PreparedCode::Device(code) => self.launch_on_device(code, [&grid, &block, &cluster, &preferred, &shared]),
            PreparedCode::Blocks(blocks) => {
                let params = self.params();
                let config = self.config([&grid, &block, &cluster, &preferred, &shared]);
                let null = self.values.b.ptr_const(0);
                self.set_stream(config, null);
                let (config, params) = (self.values.b.stack_addr(config), self.values.b.stack_addr(params));
                let (done, failed) = (self.done, self.values.failed);
                blocks.launch(self.values.b, self.values.pool.data, [config, params], done, failed);
            }
        }
    }

    /// Launches a kernel of a device. It writes everything known by then to the stack before it queries the environment
    /// for the stream. So hardly any value is live across that call.
    fn launch_on_device(&mut self, code: DeviceCode, extents: [&[Value]; 5]) {
        let DeviceCode { launchable, texts, .. } = code;
        let device = self.inputs.number;
        let [.., shared] = extents;
        let limits_shared = self.values.b.as_int_const(shared[0]).is_none();
        if !(limits_shared
            || self.needs_driver()
            || !self.prepared.launch.globals().is_empty()
            || self.inputs.shot.is_some())
        {
            let params = self.params();
            let config = self.config(extents);
            let stream = self.stream();
            self.set_stream(config, stream);
            return self.start(code, None, [config, params], stream);
        }
        let failures = self.values.b.structured(Failures::new);
        self.failures = Some(failures);
        let early = (!self.needs_driver()).then(|| self.params());
        let config = self.config(extents);
        let stream = self.stream();
        self.set_stream(config, stream);
        let [handle, stream] = self.values.b.structured(|c| {
            let reload = || c.stack_addr(config).load(Type::Ptr, config::STREAM);
            launchable.handle(c.val(device), (c.val(stream), reload), failures).map(Val::value)
        });
        if limits_shared {
            let max = self.values.b.structured(|c| launchable.max_shared_memory(c.val(device)).value());
            self.refuse_unless_at_most(shared[0], max);
        }
        let params = early.unwrap_or_else(|| self.params());
        self.write_globals(launchable, stream);
        self.start(code, Some(handle), [config, params], stream);
        let failed = self.values.failed;
        self.values.b.structured(|c| launchable.raise(failures, c.val(device), texts, failed));
    }

    /// Launches the kernel, or notes the launch in a graph. Without a `handle` it does the first-use work if necessary.
    fn start(&mut self, code: DeviceCode, handle: Option<Value>, [config, params]: [StackSlot; 2], stream: Value) {
        let DeviceCode { launchable, texts, .. } = code;
        let (device, exits) = (self.inputs.number, [self.done, self.values.failed]);
        let record = self.values.pool.constants.record(&launchable.launch_record(texts));
        let place = LaunchPlace { pool: texts.pool, record };
        let shot = self.inputs.shot.map(|shot| shot.address(self.values.b));
        self.values.b.structured(|c| {
            let [stream, device] = [stream, device].map(|value| c.val(value));
            let start = Start { config: Place::Slot(config), params: Place::Slot(params), stream, device };
            let handle = handle.map(|handle| c.val(handle));
            match (shot, handle) {
                (Some(shot), Some(handle)) => launchable.note(handle, &start, c.val(shot), texts, exits[0]),
                _ => launchable.launch(handle, &start, place, exits),
            }
        });
    }

    /// Whether the driver or the allocator creates parameters, after the first use of the device.
    fn needs_driver(&self) -> bool {
        let args = self.prepared.launch.stated_args().unwrap_or_default();
        args.iter().any(|arg| matches!(arg, KernelArg::TensorMap(_) | KernelArg::Scratch { .. }))
    }

    /// The stream that the launch states, or the environment's for the device.
    fn stream(&mut self) -> Value {
        if let Some(name) = self.prepared.launch.stated_stream() {
            let named = self.values.named(name).map(|(_, stream)| stream);
            return named.unwrap_or_else(|| self.values.missing_value(format!("the stream {name}"), Type::Ptr));
        }
        let null = self.values.b.ptr_const(0);
        let Some(kind) = self.inputs.kind else { return null };
        let get = capi::import(self.values.b.module(), capi::ENV_GET_STREAM);
        self.values.b.call(get, &[kind, self.inputs.number]).unwrap_or(null)
    }
}
