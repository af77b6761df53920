//! The driver behind a device API, and kernels that it has loaded.
//!
//! Generated code finds the driver at its first launch, as no library that it is in needs it. Work of a first use has one shape: a cell that is 0 until
//! the work is done, a *claim* by the thread that does it, and an *outcome*, which says what failed where something did:
//!
//! | first use of | what is kept | how often |
//! | --- | --- | --- |
//! | the driver | the addresses of its functions | once per library, by `TVMFFIHandleInitOnce` |
//! | a device | its context and limits | once per library and device |
//! | an image | what was loaded | once per library (CUDA); for each device (HIP) |
//! | a kernel | its handle, with its attributes set | once per library and device |
//!
//! Nothing raises an error but `report`, which makes one of an outcome, with the kernel and the launch that it belongs to.

mod api;
mod context;
mod driver;
mod first_use;
mod images;
mod layout;
mod outcome;
mod params;
mod report;
mod start;
mod steps;
mod system;
mod tensor_map;

use std::collections::HashMap;
use std::sync::Arc;

use super::constants::ConstantPool;
use crate::ir::{
    Block, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};

pub(super) use api::{Api, CPU, CUDA, Call, HIP};
use driver::Driver;
pub(super) use first_use::Shared;
use first_use::{DeviceKernel, FirstUse};
use images::Loaded;
pub(super) use images::{DeviceImage, ImageRule, by_preference};
use layout::MOST_DEVICES;
pub(super) use layout::{
    MOST_BLOCKS, MOST_BLOCKS_OF_CLUSTER, MOST_THREADS, MOST_THREADS_OF_BLOCK, PORTABLE_CLUSTER, attribute, config,
};
use outcome::Failed;
pub(super) use system::System;

/// The drivers of a module under construction, and their images.
#[derive(Debug, Default)]
pub(super) struct Drivers {
    /// The system that the drivers are on.
    pub system: System,
    /// By the names of their APIs.
    known: HashMap<&'static str, Known>,
    /// By the names of their APIs and their bytes.
    images: HashMap<(&'static str, Arc<[u8]>), Loaded>,
    /// The images in order.
    order: Vec<(&'static str, Loaded)>,
    kernels: HashMap<KernelKey, KnownKernel>,
    /// The number of kernels and images so far, which have numbers in their names.
    numbered: u32,
}

/// A driver, and the functions that all kernels share.
#[derive(Clone, Copy, Debug)]
struct Known {
    driver: Driver,
    device: FuncRef,
    report: FuncRef,
}

/// A kernel, whose first use is defined once all launches of the module are known.
#[derive(Clone, Debug)]
struct KnownKernel {
    launchable: Launchable,
    /// The first use of the kernel's device.
    device: FuncRef,
    /// The images, the one that is preferred first.
    images: Vec<(ImageRule, Loaded)>,
    /// The sizes of the parameters that launches pass, where the images don't tell those of the kernel. Behind each stands the number of functions that the
    /// module had by then.
    params: Vec<(Vec<u32>, usize)>,
}

/// The description of a kernel, for the code that launches it.
pub(super) struct KernelToLaunch<'a> {
    pub api: &'static Api,
    pub entry: &'a str,
    pub images: &'a [DeviceImage],
    pub shared: Shared,
    pub cooperative: bool,
    pub non_portable_cluster: bool,
    /// The sizes of the parameters in bytes, where the images don't tell them.
    pub params: Option<Vec<u32>>,
}

/// The key of a kernel in a module: API, name, images, shared memory, and the two flags.
type KernelKey = (&'static str, String, Vec<DeviceImage>, Shared, bool, bool);

/// A kernel of a module, which code launches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launchable {
    driver: Driver,
    kernel: DeviceKernel,
    /// `int64_t start(config, kernel, params, device)`, in the context of the device.
    start: FuncRef,
    /// `int32_t report(caller, images, outcome, config, device)`.
    report: FuncRef,
}

impl Drivers {
    /// Adds a kernel to a module, if it isn't there yet: the code of its first use, and what it needs.
    pub(super) fn kernel(
        &mut self,
        module: &mut Module,
        constants: &mut ConstantPool,
        pool: DataRef,
        kernel: &KernelToLaunch<'_>,
    ) -> Launchable {
        let api = kernel.api;
        let (images, flags) = (kernel.images.to_vec(), (kernel.cooperative, kernel.non_portable_cluster));
        let key = (api.name, kernel.entry.to_owned(), images, kernel.shared, flags.0, flags.1);
        if let Some(known) = self.kernels.get_mut(&key) {
            known.note_params(kernel, module.functions.len());
            return known.launchable;
        }
        let known = *self.known.entry(api.name).or_insert_with(|| {
            let driver = Driver::new(module, api, self.system);
            let device = first_use::device(module, &driver);
            Known { driver, device, report: report::report(module, &driver, constants, pool) }
        });
        let driver = known.driver;
        let mut images = Vec::new();
        for image in by_preference(kernel.images) {
            let number = self.number();
            let loaded = self.images.entry((api.name, image.bytes.clone())).or_insert_with(|| {
                let loaded = Loaded::new(module, &driver, &image.bytes, number);
                self.order.push((api.name, loaded));
                loaded
            });
            images.push((image.rule, *loaded));
        }
        let number = self.number();
        let start = start::start(module, &driver, kernel.cooperative);
        let declared = DeviceKernel::declare(module, number);
        let launchable = Launchable { driver, kernel: declared, start, report: known.report };
        let mut known = KnownKernel { launchable, device: known.device, images, params: Vec::new() };
        known.note_params(kernel, module.functions.len());
        self.kernels.insert(key, known);
        launchable
    }

    fn number(&mut self) -> u32 {
        self.numbered += 1;
        self.numbered
    }

    /// Forgets what has functions after the first `count`, which are taken back.
    pub(super) fn truncate(&mut self, count: usize) {
        let stays = |func: FuncRef| (func.as_u32() as usize) < count;
        self.known.retain(|_, known| stays(known.report));
        self.kernels.retain(|_, kernel| stays(kernel.launchable.kernel.first_use) && stays(kernel.launchable.start));
        self.kernels.values_mut().for_each(|kernel| kernel.params.retain(|(_, functions)| *functions <= count));
        self.images.retain(|_, loaded| stays(loaded.load));
        self.order.retain(|(_, loaded)| stays(loaded.load));
    }

    /// Defines the first uses of kernels, and the destructor that unloads images and gives up contexts, if there are any.
    pub(super) fn finish(&self, module: &mut Module) {
        let mut kernels: Vec<_> = self.kernels.iter().collect();
        kernels.sort_by_key(|(_, kernel)| kernel.launchable.kernel.first_use);
        for ((_, entry, _, shared, _, non_portable_cluster), kernel) in kernels {
            let first_use = FirstUse {
                driver: &kernel.launchable.driver,
                device: kernel.device,
                entry,
                images: &kernel.images,
                shared: *shared,
                non_portable_cluster: *non_portable_cluster,
                params: kernel.params.iter().map(|(sizes, _)| sizes.as_slice()).collect(),
            };
            first_use.define(module, kernel.launchable.kernel);
        }
        let mut apis: Vec<_> = self.known.iter().collect();
        apis.sort_by_key(|(name, _)| **name);
        for (name, known) in apis {
            let symbol = format!("__tvm_ffi_codegen_{name}_unload");
            let func = module.declare(symbol, FuncSig::default(), Linkage::Local);
            module.functions[func].cold = true;
            let mut b = FunctionBuilder::new(module, func);
            let (open, done) = (b.block(), b.block());
            let is_open = known.driver.is_open(&mut b);
            b.branch(is_open, open, done, Hint::None);
            b.switch_to(open);
            for (_, loaded) in self.order.iter().filter(|(of, _)| of == name) {
                loaded.unload(&mut b, &known.driver);
            }
            first_use::release_devices(&mut b, &known.driver);
            b.jump(done, &[]);
            b.switch_to(done);
            b.ret(None);
            b.finish();
            module.destructors.push(func);
        }
    }
}

impl KnownKernel {
    /// Notes the parameters that a launch passes. `functions` is the number of functions that the module has.
    fn note_params(&mut self, kernel: &KernelToLaunch<'_>, functions: usize) {
        let params = kernel.params.iter().filter(|_| !kernel.api.function_name(Call::ParamInfo).is_empty());
        for sizes in params {
            if !self.params.iter().any(|(known, _)| known == sizes) {
                self.params.push((sizes.clone(), functions));
            }
        }
    }
}

/// The greatest of the streams that are no addresses: NULL, `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` (cuda.h).
const LAST_SPECIAL_STREAM: i64 = 2;

/// The values of a launch, once they are computed.
pub(super) struct Start {
    /// The address of a [`config`].
    pub config: Value,
    /// The address of the parameters' addresses.
    pub params: Value,
    /// The stream.
    pub stream: Value,
    /// The number of the device, an `I32`.
    pub device: Value,
    pub texts: Texts,
}

/// The texts of a kernel's errors, C strings of the constant pool. Their addresses are taken where an error is raised, off the fast path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Texts {
    /// The pool.
    pub pool: DataRef,
    /// The offset of `Cannot launch kernel ...`.
    pub caller: u32,
    /// The offset of the devices that there are images for.
    pub images: u32,
}

impl Launchable {
    /// The kernel's handle on a device, an `I32`, and a value that is at hand. Where the first use fails, the code of its error goes to the block `exit`. The
    /// value is read again behind a first use by `reload`, so that no register has to keep it for that.
    pub(super) fn handle(
        &self,
        b: &mut FunctionBuilder<'_>,
        device: Value,
        (kept, reload): (Value, impl FnOnce(&mut FunctionBuilder<'_>) -> Value),
        texts: Texts,
        exit: Block,
    ) -> [Value; 2] {
        let (look, empty, ready) = (b.block(), b.cold_block(), b.block());
        let handle = b.block_param(ready, Type::Ptr);
        let ty = b.type_of(kept);
        let value = b.block_param(ready, ty);
        let in_range = b.icmp_imm(IntCC::ULt, device, MOST_DEVICES);
        b.branch(in_range, look, empty, Hint::Likely);
        b.switch_to(look);
        let cell = driver::row(b, self.kernel.cells, device, 8);
        let known = b.load_acquire(cell);
        let filled = b.icmp_imm(IntCC::UGt, known, driver::CLAIMED as i64);
        b.branch_with(filled, (ready, &[known, kept]), (empty, &[]), Hint::Likely);
        b.switch_to(empty);
        let known = self.first_use(b, device, texts, exit);
        let again = reload(b);
        b.jump(ready, &[known, again]);
        b.switch_to(ready);
        [handle, value]
    }

    /// Does the first use of the kernel on a device, an `I32`, if it isn't done; gives the kernel's handle. Where it fails, the code of its error goes to the
    /// block `exit`.
    pub(super) fn first_use(&self, b: &mut FunctionBuilder<'_>, device: Value, texts: Texts, exit: Block) -> Value {
        let slot = b.slot(8, 8);
        let (place, zero) = (b.stack_addr(slot), b.i64(0));
        let outcome = b.call(self.kernel.first_use, &[device, place]).unwrap_or(zero);
        let (done, failed) = (b.cold_block(), b.cold_block());
        let fine = b.icmp_imm(IntCC::Eq, outcome, 0);
        b.branch(fine, done, failed, Hint::Likely);
        b.switch_to(failed);
        let null = b.ptr_const(0);
        self.fail(b, texts, [outcome, null, device], exit);
        b.switch_to(done);
        let place = b.stack_addr(slot);
        b.load(Type::Ptr, place, 0, MemFlags::ALIGNED)
    }

    /// Launches the kernel, and goes on to `done`, or to `exit` with the code of the error.
    pub(super) fn launch(&self, b: &mut FunctionBuilder<'_>, handle: Value, start: &Start, done: Block, exit: Block) {
        let failed = b.cold_block();
        let outcome = b.block_param(failed, Type::I64);
        if self.driver.api.has_contexts {
            // A kernel runs in the context of its stream, whichever is the thread's. The streams that are numbers and not addresses are those of the
            // current context.
            let (direct, in_context, refused) = (b.block(), b.block(), b.cold_block());
            let streamed = b.icmp_imm(IntCC::UGt, start.stream, LAST_SPECIAL_STREAM);
            b.branch(streamed, direct, in_context, Hint::None);
            b.switch_to(direct);
            let null = b.ptr_const(0);
            let status = self.driver.call(b, Call::Launch, &[start.config, handle, start.params, null]);
            let launched = b.icmp_imm(IntCC::Eq, status, 0);
            b.branch(launched, done, refused, Hint::Likely);
            b.switch_to(refused);
            let outcome = Failed::Call(Call::Launch).with(b, status);
            b.jump(failed, &[outcome]);
            b.switch_to(in_context);
        }
        let zero = b.i64(0);
        let args = [start.config, handle, start.params, start.device];
        let started = b.call(self.start, &args).unwrap_or(zero);
        let launched = b.icmp_imm(IntCC::Eq, started, 0);
        b.branch_with(launched, (done, &[]), (failed, &[started]), Hint::Likely);
        b.switch_to(failed);
        self.fail(b, start.texts, [outcome, start.config, start.device], exit);
    }

    /// The function of the kernel's module that encodes tensor maps.
    pub(super) fn encoder(&self, module: &mut Module) -> FuncRef {
        tensor_map::encode(module, &self.driver)
    }

    /// Encodes a tensor map for a device that is in use, by the module's [`encoder`](Self::encoder); `args` are those of `cuTensorMapEncodeTiled`. Where
    /// that fails, the code of its error goes to the block `exit`.
    pub(super) fn encode_tensor_map(
        &self,
        b: &mut FunctionBuilder<'_>,
        encoder: FuncRef,
        args: &[Value],
        texts: Texts,
        device: Value,
        exit: Block,
    ) {
        let zero = b.i64(0);
        let outcome = b.call(encoder, &[args, &[device]].concat()).unwrap_or(zero);
        let (next, failed) = (b.block(), b.cold_block());
        let fine = b.icmp_imm(IntCC::Eq, outcome, 0);
        b.branch(fine, next, failed, Hint::Likely);
        b.switch_to(failed);
        let null = b.ptr_const(0);
        self.fail(b, texts, [outcome, null, device], exit);
        b.switch_to(next);
    }

    fn fail(&self, b: &mut FunctionBuilder<'_>, texts: Texts, args: [Value; 3], exit: Block) {
        let none = b.iconst(Type::I32, -1);
        let texts = [texts.caller, texts.images].map(|at| b.data_addr(texts.pool, at));
        let code = b.call(self.report, &[&texts[..], &args].concat()).unwrap_or(none);
        b.jump(exit, &[code]);
    }

    /// The most shared memory of a block on a device that is in use, in bytes, an `I64`.
    pub(super) fn most_shared(&self, b: &mut FunctionBuilder<'_>, device: Value) -> Value {
        let record = self.driver.record(b, device);
        let most = b.load(Type::I32, record, driver::record::SHARED, MemFlags::ALIGNED);
        b.convert(crate::ir::ConvertOp::SExt, Type::I64, most)
    }
}
