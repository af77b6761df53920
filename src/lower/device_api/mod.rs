//! The driver of a device API, and the kernels that it has loaded.
//!
//! Generated code locates the driver at its first launch, so libraries don't link against it. All first-use work has
//! one shape. A cell is 0 until the work is done. A thread *claims* the cell to do the work. The *outcome* says what
//! failed, if anything did:
//!
//! | first use of | what is kept | how often |
//! | --- | --- | --- |
//! | the driver | the addresses of its functions | once for the [helpers](helpers), by `TVMFFIHandleInitOnce` |
//! | a device | its context and limits | once per library and device |
//! | an image | what was loaded | once per library (CUDA); for each device (HIP) |
//! | a kernel | its handle, with its attributes set | once per library and device |
//!
//! Only the launch itself is in the wrapper's code. The rest is in helpers. They look up kernels and images in a
//! [table](table) of the module and store their results in its [state](state). Each library has its own copy of the
//! helpers; the engine's modules in one process share a copy.
//!
//! Only `report` raises errors. It turns an outcome into an error that describes the kernel and its launch.

mod api;
mod context;
mod driver;
mod first_use;
mod helpers;
mod images;
mod layout;
mod outcome;
mod params;
mod report;
mod shared;
mod start;
mod state;
mod steps;
mod system;
mod table;
mod tensor_map;

use std::collections::HashMap;
use std::sync::Arc;

use super::constants::ConstantPool;
use super::protocol::launch_table::{IMAGE_ALIGN, ImageRecord};
use crate::ir::{
    BinaryOp, Block, DataRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, SigRef, StackSlot,
    Type, Value,
};

#[cfg(feature = "_engine")]
pub(super) use api::APIS;
pub use api::LAUNCH_SYMBOLS;
pub(super) use api::{Api, Call, KernelHome, LaunchForm};
pub(super) use helpers::export as export_helpers;
use helpers::{Asked, Called, Defined};
pub(super) use images::{DeviceImage, ImageRule, by_preference};
use layout::MOST_DEVICES;
pub(super) use layout::{
    MOST_BLOCKS, MOST_BLOCKS_OF_CLUSTER, MOST_THREADS, MOST_THREADS_OF_BLOCK, PORTABLE_CLUSTER, attribute, config,
};
use outcome::Failed;
use shared::MostShared;
pub(super) use shared::Shared;
#[cfg(feature = "_engine")]
pub(crate) use state::is_state_of_launches;
pub(super) use system::System;
use table::KernelRow;

/// The launches of a module under construction.
#[derive(Debug, Default)]
pub(super) struct Drivers {
    /// The operating system that the drivers run on.
    pub system: System,
    /// Whether the module imports the helpers.
    pub imports_helpers: bool,
    /// The launches, one entry per API.
    launches: Vec<Launches>,
}

/// The launches of a module on the devices of one API.
#[derive(Debug)]
struct Launches {
    api: &'static Api,
    places: Places,
    called: Called,
    /// The helpers, if the module defines them.
    defined: Option<Defined>,
    /// Whether any launch has tensor maps.
    tensor_maps: bool,
    /// The bytes of the images, without duplicates.
    images: Vec<(Arc<[u8]>, ImageRecord)>,
    /// The size of all images in bytes, each aligned.
    image_bytes: usize,
    kernels: Vec<KnownKernel>,
    by_key: HashMap<KernelKey, usize>,
    /// The parameter sizes that launches pass, in bytes, each with the number of its kernel. Only for kernels with
    /// images that don't describe their parameters.
    params: Vec<(usize, Vec<u32>)>,
    /// The size of the state in bytes.
    state_bytes: u32,
}

/// The data of a module for one API.
#[derive(Clone, Copy, Debug)]
struct Places {
    table: DataRef,
    state: DataRef,
    images: DataRef,
}

/// A kernel of a module.
#[derive(Debug)]
struct KnownKernel {
    key: KernelKey,
    launchable: Launchable,
}

/// The description of a kernel, for the code that launches it.
pub(super) struct KernelToLaunch<'a> {
    pub api: &'static Api,
    pub entry: &'a str,
    pub images: &'a [DeviceImage],
    pub shared: Shared,
    pub cooperative: bool,
    pub non_portable_cluster: bool,
    /// The parameter sizes in bytes, if the images don't describe them.
    pub params: Option<Vec<u32>>,
    /// Whether a parameter is a tensor map.
    pub tensor_maps: bool,
}

/// What identifies a kernel among those of one API.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct KernelKey {
    entry: String,
    /// The image numbers, in order of preference.
    images: Vec<(ImageRule, usize)>,
    shared: Shared,
    cooperative: bool,
    non_portable_cluster: bool,
}

/// A kernel of a module that code can launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launchable {
    api: &'static Api,
    places: Places,
    called: Called,
    /// The offset of the kernel's record in the table.
    record: u32,
    /// The offset of the kernel's cells in the state.
    cells: u32,
    /// The static shared memory in bytes; 0 if no image states it.
    own_shared: u32,
    /// Whether to use the API's function for cooperative launches, if it has one.
    cooperative: bool,
}

impl Drivers {
    /// Adds a kernel to a module unless it is already present.
    pub(super) fn kernel(
        &mut self,
        module: &mut Module,
        constants: &mut ConstantPool,
        pool: DataRef,
        kernel: &KernelToLaunch<'_>,
    ) -> Launchable {
        let api = kernel.api;
        let known = self.launches.iter().position(|launches| std::ptr::eq(launches.api, api));
        let at = known.unwrap_or_else(|| {
            let defined = (!self.imports_helpers)
                .then(|| Defined::new(module, api, self.system, Linkage::Local, constants, pool));
            let called = defined.map_or_else(|| Called::import(module, api), |defined| defined.called);
            self.launches.push(Launches::new(module, api, called, defined));
            self.launches.len() - 1
        });
        self.launches[at].kernel(kernel)
    }

    /// Writes the tables, and defines the destructors that unload images and release contexts, if they are needed.
    pub(super) fn finish(&self, module: &mut Module) {
        self.launches.iter().for_each(|launches| launches.finish(module));
    }
}

/// The aligned offset after the end of an image.
fn end_of_image(bytes: &[u8], record: &ImageRecord) -> usize {
    // the PTX parser needs a NUL after the source; it is harmless after other images
    (record.bytes as usize * IMAGE_ALIGN + bytes.len() + 1).next_multiple_of(IMAGE_ALIGN)
}

impl Launches {
    fn new(module: &mut Module, api: &'static Api, called: Called, defined: Option<Defined>) -> Self {
        let name = |what: &str| format!("__tvm_ffi_codegen_{}_{what}", api.name);
        let places = Places {
            table: module.add_data(name("table"), Vec::new(), 4),
            state: module.add_state(state::name(api.name), 0, 8),
            images: module.add_data(name("images"), Vec::new(), IMAGE_ALIGN as u32),
        };
        Launches {
            api,
            places,
            called,
            defined,
            tensor_maps: false,
            images: Vec::new(),
            image_bytes: 0,
            kernels: Vec::new(),
            by_key: HashMap::new(),
            params: Vec::new(),
            state_bytes: state::FIXED,
        }
    }

    fn kernel(&mut self, kernel: &KernelToLaunch<'_>) -> Launchable {
        let images = by_preference(kernel.images).into_iter().map(|image| (image.rule, self.image(&image.bytes)));
        let key = KernelKey {
            entry: kernel.entry.to_owned(),
            images: images.collect(),
            shared: kernel.shared,
            cooperative: kernel.cooperative,
            non_portable_cluster: kernel.non_portable_cluster,
        };
        let number = self.by_key.get(&key).copied().unwrap_or_else(|| self.add(key));
        self.tensor_maps |= kernel.tensor_maps;
        if let Some(sizes) = &kernel.params
            && self.api.function(Call::ParamInfo).is_some()
            && !self.params.iter().any(|(of, known)| *of == number && known == sizes)
        {
            self.params.push((number, sizes.clone()));
        }
        self.kernels[number].launchable
    }

    fn add(&mut self, key: KernelKey) -> usize {
        let number = self.kernels.len();
        let launchable = Launchable {
            api: self.api,
            places: self.places,
            called: self.called,
            record: table::offset_of_kernel(number),
            cells: self.cells(MOST_DEVICES as u32),
            own_shared: key.shared.own.unwrap_or(0),
            cooperative: key.cooperative,
        };
        self.by_key.insert(key.clone(), number);
        self.kernels.push(KnownKernel { key, launchable });
        number
    }

    /// The number of an image, which is added if it is new.
    fn image(&mut self, bytes: &Arc<[u8]>) -> usize {
        if let Some(known) = self.images.iter().position(|(known, _)| known == bytes) {
            return known;
        }
        let record =
            ImageRecord { bytes: (self.image_bytes / IMAGE_ALIGN) as u32, cells: self.cells(images::cells(self.api)) };
        self.image_bytes = end_of_image(bytes, &record);
        self.images.push((Arc::clone(bytes), record));
        self.images.len() - 1
    }

    /// The dynamic shared memory that a kernel has to request, if any. The value suits all launches of the same driver
    /// kernel, because kernels of the module can share one.
    fn asked(&self, key: &KernelKey) -> Option<MostShared> {
        let is_same = |other: &&KnownKernel| {
            other.key.entry == key.entry && other.key.images.iter().any(|image| key.images.contains(image))
        };
        let others = self.kernels.iter().filter(is_same).filter_map(|other| other.key.shared.asked());
        key.shared.asked().map(|mine| others.fold(mine, MostShared::and))
    }

    /// Reserves cells in the state; returns their offset.
    fn cells(&mut self, count: u32) -> u32 {
        let at = self.state_bytes;
        self.state_bytes += 8 * count;
        at
    }

    fn finish(&self, module: &mut Module) {
        let Places { table, state, images } = self.places;
        let params = |number: usize| self.params.iter().filter(move |(of, _)| *of == number);
        let rows = self.kernels.iter().enumerate().map(|(number, known)| KernelRow {
            entry: &known.key.entry,
            cells: known.launchable.cells,
            images: &known.key.images,
            shared: self.asked(&known.key),
            non_portable_cluster: known.key.non_portable_cluster,
            params: params(number).map(|(_, sizes)| sizes.as_slice()).collect(),
        });
        let records: Vec<_> = self.images.iter().map(|(_, record)| *record).collect();
        module.data[table].bytes = table::encode(module.endianness, &rows.collect::<Vec<_>>(), &records);
        module.data[state].bytes = vec![0; self.state_bytes as usize];
        let mut all = Vec::with_capacity(self.image_bytes);
        for (bytes, record) in &self.images {
            all.extend_from_slice(bytes);
            all.resize(end_of_image(bytes, record), 0);
        }
        module.data[images].bytes = all;
        if let Some(helpers) = &self.defined {
            helpers.finish(module, Asked { tensor_maps: self.tensor_maps, params: !self.params.is_empty() });
        }

        let symbol = format!("__tvm_ffi_codegen_{}_unload_all", self.api.name);
        let func = module.declare(symbol, FuncSig::default(), Linkage::Local);
        module.functions[func].cold = true;
        let mut b = FunctionBuilder::new(module, func);
        let (used, done) = (b.block(), b.block());
        let (table, state) = (b.data_addr(table, 0), b.data_addr(state, 0));
        let unload = b.load(Type::Ptr, state, state::UNLOAD, MemFlags::ALIGNED);
        let there = b.icmp_imm(IntCC::Ne, unload, 0);
        b.branch(there, used, done, Hint::None);
        b.switch_to(used);
        let sig = b.signature(FuncSig::c([Type::Ptr, Type::Ptr], None));
        b.call_indirect(sig, unload, &[table, state]);
        b.jump(done, &[]);
        b.switch_to(done);
        b.ret(None);
        b.finish();
        module.destructors.push(func);
    }
}

/// The greatest stream value that is not an address: NULL, `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` (cuda.h).
const LAST_SPECIAL_STREAM: i64 = 2;

/// The computed values of a launch.
pub(super) struct Start {
    /// The address of a [`config`].
    pub config: Value,
    /// The address of the array of parameter addresses.
    pub params: Value,
    /// The stream.
    pub stream: Value,
    /// The number of the device, an `I32`.
    pub device: Value,
}

/// The strings of a kernel's errors, C strings of the constant pool. Only the error path takes their addresses, to keep
/// the fast path short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Texts {
    /// The pool.
    pub pool: DataRef,
    /// The offset of `Cannot launch kernel ...`.
    pub caller: u32,
    /// The offset of the list of devices that have images.
    pub images: u32,
}

/// The block that every failure of a launch goes to.
#[derive(Clone, Copy)]
pub(super) struct Failures {
    block: Block,
    /// The outcome, a parameter of that block.
    outcome: Value,
    /// Whether the launch itself has failed, a `Bool`.
    launched: Value,
}

impl Failures {
    pub(super) fn new(b: &mut FunctionBuilder<'_>) -> Self {
        let block = b.cold_block();
        Failures { block, outcome: b.block_param(block, Type::I64), launched: b.block_param(block, Type::Bool) }
    }
}

impl Launchable {
    /// Returns the kernel's handle on a device (an `I32`), and a value that the caller has computed. `reload`
    /// recomputes the value after first-use work, so no register has to hold it across that call.
    pub(super) fn handle(
        &self,
        b: &mut FunctionBuilder<'_>,
        device: Value,
        (kept, reload): (Value, impl FnOnce(&mut FunctionBuilder<'_>) -> Value),
        failures: Failures,
    ) -> [Value; 2] {
        let (look, empty, ready) = (b.block(), b.cold_block(), b.block());
        let handle = b.block_param(ready, Type::Ptr);
        let ty = b.type_of(kept);
        let value = b.block_param(ready, ty);
        let in_range = b.icmp_imm(IntCC::ULt, device, MOST_DEVICES);
        b.branch(in_range, look, empty, Hint::Likely);
        b.switch_to(look);
        let cells = b.data_addr(self.places.state, self.cells);
        let cell = state::row(b, cells, device, 8);
        let known = b.load_acquire(cell);
        let filled = b.icmp_imm(IntCC::UGt, known, driver::CLAIMED as i64);
        b.branch_with(filled, (ready, &[known, kept]), (empty, &[]), Hint::Likely);
        b.switch_to(empty);
        let known = self.first_use(b, device, failures);
        let again = reload(b);
        b.jump(ready, &[known, again]);
        b.switch_to(ready);
        [handle, value]
    }

    /// Does the kernel's first-use work on a device (an `I32`) unless it is done; returns the kernel's handle.
    pub(super) fn first_use(&self, b: &mut FunctionBuilder<'_>, device: Value, failures: Failures) -> Value {
        let slot = b.slot(8, 8);
        let (place, zero) = (b.stack_addr(slot), b.i64(0));
        let [table, state, images] =
            [self.places.table, self.places.state, self.places.images].map(|data| b.data_addr(data, 0));
        let record = b.iconst(Type::I32, self.record.into());
        let args = [table, record, state, images, device, place];
        let outcome = b.call(self.called.first_use, &args).unwrap_or(zero);
        let (done, no) = (b.cold_block(), b.bconst(false));
        let fine = b.icmp_imm(IntCC::Eq, outcome, 0);
        b.branch_with(fine, (done, &[]), (failures.block, &[outcome, no]), Hint::Likely);
        b.switch_to(done);
        let place = b.stack_addr(slot);
        b.load(Type::Ptr, place, 0, MemFlags::ALIGNED)
    }

    /// Launches the kernel, then jumps to `done`.
    pub(super) fn launch(
        &self,
        b: &mut FunctionBuilder<'_>,
        handle: Value,
        start: &Start,
        done: Block,
        failures: Failures,
    ) {
        if (self.api.home, self.api.launch) == (KernelHome::Contexts, LaunchForm::Configuration) {
            // A kernel runs in the context of its stream, whatever the thread's current context is. Streams that are
            // numbers instead of addresses belong to the current context.
            let (direct, in_context, refused) = (b.block(), b.block(), b.cold_block());
            let streamed = b.icmp_imm(IntCC::UGt, start.stream, LAST_SPECIAL_STREAM);
            b.branch(streamed, direct, in_context, Hint::None);
            b.switch_to(direct);
            let null = b.ptr_const(0);
            let launch = b.signature(self.api.signature(Call::Launch));
            let args = [start.config, handle, start.params, null];
            let zero = b.iconst(Type::I32, 0);
            let status = self.call(b, launch, state::LAUNCH, &args).unwrap_or(zero);
            let launched = b.icmp_imm(IntCC::Eq, status, 0);
            b.branch(launched, done, refused, Hint::Likely);
            b.switch_to(refused);
            let outcome = Failed::Call(Call::Launch).with(b, status);
            let yes = b.bconst(true);
            b.jump(failures.block, &[outcome, yes]);
            b.switch_to(in_context);
        }
        let zero = b.i64(0);
        let own_function = self.cooperative && self.api.function(Call::LaunchCooperative).is_some();
        let at = if own_function { state::START_COOPERATIVE } else { state::START };
        let (sig, state) = (b.signature(start::signature()), b.data_addr(self.places.state, 0));
        let args = [start.config, handle, start.params, state, start.device];
        let started = self.call(b, sig, at, &args).unwrap_or(zero);
        let launched = b.icmp_imm(IntCC::Eq, started, 0);
        let yes = b.bconst(true);
        b.branch_with(launched, (done, &[]), (failures.block, &[started, yes]), Hint::Likely);
    }

    /// Calls a function through its address in the state. The device must be in use.
    fn call(&self, b: &mut FunctionBuilder<'_>, sig: SigRef, at: i32, args: &[Value]) -> Option<Value> {
        let place = b.data_addr(self.places.state, at as u32);
        let callee = b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
        b.call_indirect(sig, callee, args)
    }

    /// Encodes a tensor map for a device in use. `args` are those of `cuTensorMapEncodeTiled`.
    pub(super) fn encode_tensor_map(
        &self,
        b: &mut FunctionBuilder<'_>,
        args: &[Value],
        device: Value,
        failures: Failures,
    ) {
        let zero = b.i64(0);
        let (sig, state) = (b.signature(tensor_map::signature()), b.data_addr(self.places.state, 0));
        let args = [&[state], args, &[device]].concat();
        let outcome = self.call(b, sig, state::TENSOR_MAP, &args).unwrap_or(zero);
        let (next, no) = (b.block(), b.bconst(false));
        let fine = b.icmp_imm(IntCC::Eq, outcome, 0);
        b.branch_with(fine, (next, &[]), (failures.block, &[outcome, no]), Hint::Likely);
        b.switch_to(next);
    }

    /// Raises the error of a failure and jumps to `exit` with its code. `config` is the address of the launch
    /// configuration.
    pub(super) fn raise(
        &self,
        b: &mut FunctionBuilder<'_>,
        failures: Failures,
        (config, device): (Option<StackSlot>, Value),
        texts: Texts,
        exit: Block,
    ) {
        b.switch_to(failures.block);
        let null = b.ptr_const(0);
        let config = config.map_or(null, |slot| {
            let address = b.stack_addr(slot);
            b.select(failures.launched, address, null)
        });
        let none = b.iconst(Type::I32, -1);
        let [caller, images] = [texts.caller, texts.images].map(|at| b.data_addr(texts.pool, at));
        let args = [caller, images, failures.outcome, config, device];
        let code = b.call(self.called.report, &args).unwrap_or(none);
        b.jump(exit, &[code]);
    }

    /// The max dynamic shared memory of a block in bytes, an `I64`. The device must be in use.
    pub(super) fn max_shared_memory(&self, b: &mut FunctionBuilder<'_>, device: Value) -> Value {
        let state = b.data_addr(self.places.state, 0);
        let record = state::record_of(b, state, device);
        let most = b.load(Type::I32, record, state::record::SHARED, MemFlags::ALIGNED);
        let most = b.convert(crate::ir::ConvertOp::SExt, Type::I64, most);
        if self.own_shared == 0 { most } else { b.binary_imm(BinaryOp::Sub, most, i64::from(self.own_shared)) }
    }
}
