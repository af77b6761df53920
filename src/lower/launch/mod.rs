//! Launches: the code that computes a grid from the values of a call, puts a kernel's parameters together, and launches it.
//!
//! Extents are computed in 64 bits. Those that a device can't have are a `ValueError`, which names the dimension and where it came from, and a grid with an
//! extent of 0 launches nothing. What goes on with the driver is [`device_api`](super::device_api)'s.

mod blocks;
mod called;
mod configuration;
mod emitter;
mod extents;
mod params;
mod pool;
mod scratch;
mod sequence;
mod spec;
mod tensor_map;

use std::sync::Arc;

use super::abi::fields::pair;
use super::capi;
use super::device_api::{
    Api, CPU, Drivers, Failures, ImageRule, KernelToLaunch, Launchable, MOST_BLOCKS, MOST_THREADS, Start, Texts, config,
};
use super::launch_description::NotedLaunches;
use super::protocol::{Piece, helpers};
use super::unit::Pool;
use crate::ir::{Block, FunctionBuilder, Hint, IntCC, MemFlags, Module, Type, Value};
use crate::spec::{LaunchArg, Signature};

use blocks::Blocks;
pub(super) use blocks::{BlockFunction, prototype as block_prototype};
pub(super) use called::{Arguments, arguments, is_written, prepare as prepare_call};
use emitter::{DeviceCode, Emitter, Exits, PreparedCode};
pub(super) use emitter::{Inputs, Prepared};
pub(super) use pool::define as define_threads;
use sequence::Sequence;
pub(super) use spec::LaunchSpec;

/// The parts of a module under construction that kernels are added to.
pub(super) struct Into<'u> {
    pub module: &'u mut Module,
    pub pool: &'u mut Pool,
    pub drivers: &'u mut Drivers,
    /// The launches that code of the function under construction makes.
    pub launches: &'u mut NotedLaunches,
}

/// Adds a kernel to a module. `called` is the text of the signature.
pub(super) fn prepare<'a>(
    mut into: Into<'_>,
    spec: &'a LaunchSpec,
    signature: &'a Signature,
    called: &str,
) -> Prepared<'a> {
    into.launches.described.push(spec.description());
    if let Some(sequences) = &mut into.launches.sequences {
        sequences.push(Sequence { spec, signature }.to_string());
    }
    let text = format!("Cannot launch kernel `{}` when calling: `{called}`", spec.launch.entry());
    let (code, caller) = match spec.block_function() {
        Some(function) => {
            let blocks = Blocks::new(into.module, function, &spec.block_params(signature));
            (PreparedCode::Blocks(blocks), into.pool.constants.text(&text))
        }
        None => {
            let (launchable, texts) = add(&mut into, spec, spec.untold_params(signature), &text);
            let has_contexts = spec.api().has_contexts;
            (PreparedCode::Device(DeviceCode { launchable, has_contexts, texts }), texts.caller)
        }
    };
    Prepared { launch: &spec.launch, signature, code, caller }
}

/// Adds a kernel to a module, with the texts of its errors. `params` are the sizes of the parameters that are passed, where they are compared with the
/// driver's.
fn add(into: &mut Into<'_>, spec: &LaunchSpec, params: Option<Vec<u32>>, text: &str) -> (Launchable, Texts) {
    let Into { module, pool, drivers, .. } = into;
    let (launch, images) = (&spec.launch, spec.device_images());
    let args = launch.stated_args().unwrap_or_default();
    let to_launch = KernelToLaunch {
        api: spec.api(),
        entry: launch.entry(),
        images: &images,
        shared: spec.shared(),
        cooperative: launch.flags().cooperative,
        non_portable_cluster: launch.flags().non_portable_cluster,
        params,
        tensor_maps: args.iter().any(|arg| matches!(arg, LaunchArg::TensorMap(_))),
    };
    let launchable = drivers.kernel(module, &mut pool.constants, pool.data, &to_launch);
    let targets: Vec<String> = images.iter().map(|image| image.rule.to_string()).collect();
    let (caller, images) = (pool.constants.text(text), pool.constants.text(&targets.join(", ")));
    (launchable, Texts { pool: pool.data, caller, images })
}

/// Kernels of a module whose first use a function does.
pub(super) struct FirstUses {
    kernels: Vec<(Launchable, Texts)>,
    api: &'static Api,
    called: String,
}

/// Adds the kernels of launches to a module, for a function that does their first use. There is one at least, and all are of one API.
pub(super) fn first_uses(mut into: Into<'_>, specs: &[Arc<LaunchSpec>], called: &str) -> Option<FirstUses> {
    let api = specs.first()?.api();
    let caller =
        |spec: &LaunchSpec| format!("Cannot prepare kernel `{}` when calling: `{called}`", spec.launch.entry());
    let kernels = specs.iter().map(|spec| add(&mut into, spec, None, &caller(spec))).collect();
    Some(FirstUses { kernels, api, called: called.to_owned() })
}

/// Emits the first use of kernels on a device, the two halves of a `DLDevice`; gives the code of an error, or 0.
pub(super) fn emit_first_uses(
    b: &mut FunctionBuilder<'_>,
    pool: &mut Pool,
    uses: &FirstUses,
    [kind, number]: [Value; 2],
) -> Value {
    let exit = b.block();
    let code = b.block_param(exit, Type::I32);
    let (right, wrong) = (b.block(), b.cold_block());
    let is = b.icmp_imm(IntCC::Eq, kind, i64::from(uses.api.device.0));
    b.branch(is, right, wrong, Hint::Likely);
    b.switch_to(wrong);
    let text =
        format!("Cannot prepare kernels when calling: `{}`, expected a device of {}", uses.called, uses.api.shown);
    let template = pool.constants.template("ValueError", &[Piece::Text(&text)]);
    let (table, template) = (b.data_addr(pool.data, 0), b.iconst(Type::I32, i64::from(template)));
    let report = helpers::report(b.module());
    let none = b.iconst(Type::I32, -1);
    // the template takes nothing from a context
    let refused = b.call(report, &[table, template, table]).unwrap_or(none);
    b.jump(exit, &[refused]);
    b.switch_to(right);
    for (kernel, texts) in &uses.kernels {
        let failures = Failures::new(b);
        kernel.first_use(b, number, failures);
        let here = b.current();
        kernel.raise(b, failures, (None, number), *texts, exit);
        b.switch_to(here);
    }
    let fine = b.iconst(Type::I32, 0);
    b.jump(exit, &[fine]);
    b.switch_to(exit);
    code
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

/// The end of a launch that has failed.
pub(super) struct Failure {
    /// The block that the caller goes on in. It has no end yet.
    pub block: Block,
    /// The code of the error, in that block.
    pub code: Value,
}

/// Emits a launch, after which the code goes on where it has succeeded. Fails where a value isn't there, which it names.
pub(super) fn emit(
    b: &mut FunctionBuilder<'_>,
    pool: &mut Pool,
    prepared: &Prepared<'_>,
    inputs: &Inputs<'_>,
) -> Result<Failure, String> {
    let exits = Exits { done: b.block(), failed: b.cold_block() };
    let code = b.block_param(exits.failed, Type::I32);
    let mut emitter = Emitter::new(b, pool, prepared, inputs, exits);
    emitter.run();
    let Emitter { owned, missing, .. } = emitter;
    b.switch_to(exits.failed);
    scratch::release(b, &owned);
    let block = b.current();
    b.switch_to(exits.done);
    scratch::release(b, &owned);
    missing.map_or(Ok(Failure { block, code }), Err)
}

/// The CPU, the two halves of a `DLDevice` as one `I64`.
pub(super) fn cpu(b: &mut FunctionBuilder<'_>) -> Value {
    let order = b.module().endianness;
    b.i64(pair(order, CPU.device.0 as u32, 0))
}

impl Emitter<'_, '_> {
    fn run(&mut self) {
        let launch = self.prepared.launch;
        let grid = self.extents("grid", launch.grid_extents());
        // a grid of nothing is fine, as empty tensors are
        self.leave_if_empty(&grid);
        self.limit("grid", &grid, launch.grid_extents(), 0, &MOST_BLOCKS);
        self.blocks.clone_from(&grid);
        let block = self.extents("block", launch.block_extents());
        self.limit("block", &block, launch.block_extents(), 1, &MOST_THREADS);
        self.limit_threads(&block);
        let cluster = self.extents("cluster", launch.cluster_extents());
        self.limit("cluster", &cluster, launch.cluster_extents(), 1, &MOST_BLOCKS);
        self.cluster_divides(&grid, &cluster);
        let preferred = self.extents("preferred_cluster", launch.preferred_cluster_extents());
        self.limit("preferred_cluster", &preferred, launch.preferred_cluster_extents(), 1, &MOST_BLOCKS);
        let shared = self.extents("shared", std::slice::from_ref(launch.shared_bytes()));
        self.limit("shared", &shared, std::slice::from_ref(launch.shared_bytes()), 0, &[i64::from(i32::MAX)]);
        match self.prepared.code {
            PreparedCode::Device(code) => self.launch_on_device(code, [&grid, &block, &cluster, &preferred, &shared]),
            PreparedCode::Blocks(blocks) => {
                let params = self.params();
                let config = self.config([&grid, &block, &cluster, &preferred, &shared]);
                let null = self.b.ptr_const(0);
                self.set_stream(config, null);
                let (config, params) = (self.b.stack_addr(config), self.b.stack_addr(params));
                blocks.launch(self.b, config, params);
                self.b.jump(self.exits.done, &[]);
            }
            // there is nothing to launch, and `arguments` makes its values
            PreparedCode::Called => self.b.jump(self.exits.done, &[]),
        }
    }

    /// Launches a kernel of a device. All that is known by then is written into the frame before the environment is asked for the stream, so that hardly a
    /// value has to outlive that call.
    fn launch_on_device(&mut self, code: DeviceCode, extents: [&[Value]; 5]) {
        let DeviceCode { launchable, texts, .. } = code;
        let device = self.inputs.number;
        let failures = Failures::new(self.b);
        self.failures = Some(failures);
        let early = (!self.needs_driver()).then(|| self.params());
        let config = self.config(extents);
        let stream = self.stream();
        self.set_stream(config, stream);
        let reload = |b: &mut FunctionBuilder<'_>| {
            let config = b.stack_addr(config);
            b.load(Type::Ptr, config, config::STREAM, MemFlags::ALIGNED)
        };
        let [handle, stream] = launchable.handle(self.b, device, (stream, reload), failures);
        let [.., shared] = extents;
        if let (Some(bytes), None) = (shared.first(), self.b.as_int_const(shared[0])) {
            let most = launchable.most_shared(self.b, device);
            self.refuse_unless_at_most(*bytes, most);
        }
        let params = early.unwrap_or_else(|| self.params());
        let place = config;
        let (config, params) = (self.b.stack_addr(config), self.b.stack_addr(params));
        let start = Start { config, params, stream, device };
        launchable.launch(self.b, handle, &start, self.exits.done, failures);
        launchable.raise(self.b, failures, (Some(place), device), texts, self.exits.failed);
    }

    /// Whether parameters are made by the driver or the allocator, after the first use of the device.
    fn needs_driver(&self) -> bool {
        let args = self.prepared.launch.stated_args().unwrap_or_default();
        args.iter().any(|arg| matches!(arg, LaunchArg::TensorMap(_) | LaunchArg::Scratch { .. }))
    }

    /// The stream of the environment for the device.
    fn stream(&mut self) -> Value {
        let null = self.b.ptr_const(0);
        let Some(kind) = self.inputs.kind else { return null };
        let get = capi::import(self.b.module(), capi::ENV_GET_STREAM);
        self.b.call(get, &[kind, self.inputs.number]).unwrap_or(null)
    }
}
