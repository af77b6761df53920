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
//! A [question](questions) about a device does the device's first-use work. [Graphs](graph) of a body's launches are
//! built at their first use and replayed afterwards.
//!
//! Only `report` raises errors. It turns an outcome into an error that describes the kernel and its launch.

mod api;
mod context;
mod driver;
mod first_use;
mod globals;
mod graph;
mod helpers;
mod image_hooks;
mod images;
mod launch;
mod launch_hooks;
mod layout;
mod outcome;
mod params;
mod questions;
mod report;
mod shared;
mod start;
mod state;
mod steps;
mod system;
mod table;
mod tensor_map;
mod unload;

use std::collections::HashMap;
use std::sync::Arc;

use super::constants::ConstantPool;
use super::protocol::launch_table::{IMAGE_ALIGN, ImageRecord, LaunchRecord};
use crate::ir::{Block, DataRef, Emitter, FuncSig, Hint, Linkage, Module, Type, Val, Value};

pub use api::LAUNCH_SYMBOLS;
pub(super) use api::{APIS, Api, Call, KernelHome, LaunchForm};
pub(super) use globals::VALUE as VALUE_OF_GLOBAL;
use graph::shot;
pub(super) use graph::{BYTES_OF_SHOT, Graph, clear_shot};
pub(super) use helpers::export as export_helpers;
use helpers::{Asked, Called, Defined, import_device};
pub(super) use image_hooks::ImageHooks;
pub(super) use images::{DeviceImage, ImageRule, by_preference};
pub(crate) use launch_hooks::LAUNCH_HOOKS;
use layout::MOST_DEVICES;
pub(super) use layout::{
    MOST_BLOCKS, MOST_BLOCKS_OF_CLUSTER, MOST_THREADS, MOST_THREADS_OF_BLOCK, PORTABLE_CLUSTER, attribute, config,
};

pub(super) use questions::DeviceQuestions;
use shared::MostShared;
pub(super) use shared::Shared;
pub(super) use start::{Place, Start};
#[cfg(feature = "_engine")]
pub(crate) use state::is_state_of_launches;
pub(super) use system::System;
use table::{HookRow, KernelRow};

/// The launches of a module under construction.
#[derive(Debug, Default)]
pub(super) struct Drivers {
    /// The operating system that the drivers run on.
    pub system: System,
    /// Whether the module imports the helpers.
    pub imports_helpers: bool,
    /// Whether hooks see the launches. The module's destructors have to run then.
    pub has_hooks: bool,
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
    /// The functions of images, each with the number of the image and the offset of its cells in the state.
    hooks: Vec<(ImageHooks, usize, u32)>,
    kernels: Vec<KnownKernel>,
    by_key: HashMap<KernelKey, usize>,
    /// The parameter sizes that launches pass, in bytes, each with the number of its kernel. Only for kernels with
    /// images that don't describe their parameters.
    params: Vec<(usize, Vec<u32>)>,
    graphs: Vec<Graph>,
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
    /// The global variables, each with the offset of its cells in the state.
    globals: Vec<(String, u32)>,
    /// The number of the functions of each image, if the launch states any.
    hooks: Vec<usize>,
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
    /// The min driver version that has the launch's attributes: 12050 for 12.5; 0 if all supported drivers have them.
    pub version: u32,
    /// The names of the global variables that the launch writes.
    pub globals: Vec<&'a str>,
    /// The functions that the launch states for its images.
    pub hooks: Option<ImageHooks>,
    /// The parameter sizes in bytes, if the images don't describe them.
    pub params: Option<Vec<u32>>,
    /// Whether a parameter is a tensor map.
    pub tensor_maps: bool,
}

/// The identity of a kernel among those of one API.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct KernelKey {
    entry: String,
    /// The image numbers, in order of preference.
    images: Vec<(ImageRule, usize)>,
    shared: Shared,
    cooperative: bool,
    non_portable_cluster: bool,
    version: u32,
    globals: Vec<String>,
    hooks: Option<ImageHooks>,
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
    /// Whether failures may name something of the table.
    has_names: bool,
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
        let at = self.launches_of(module, constants, pool, kernel.api);
        self.launches[at].kernel(kernel)
    }

    /// The questions that a module can ask about devices of an API.
    pub(super) fn questions(
        &mut self,
        module: &mut Module,
        constants: &mut ConstantPool,
        pool: DataRef,
        api: &'static Api,
    ) -> DeviceQuestions {
        let at = self.launches_of(module, constants, pool, api);
        self.launches[at].questions(module)
    }

    /// Adds a graph of `count` launches of an API to a module.
    pub(super) fn graph(
        &mut self,
        module: &mut Module,
        constants: &mut ConstantPool,
        pool: DataRef,
        (api, count): (&'static Api, u32),
    ) -> Graph {
        let at = self.launches_of(module, constants, pool, api);
        self.launches[at].graph(count)
    }

    /// The index of the launches of an API, which are added if the module has none.
    fn launches_of(
        &mut self,
        module: &mut Module,
        constants: &mut ConstantPool,
        pool: DataRef,
        api: &'static Api,
    ) -> usize {
        let known = self.launches.iter().position(|launches| std::ptr::eq(launches.api, api));
        known.unwrap_or_else(|| {
            let defined = (!self.imports_helpers)
                .then(|| Defined::new(module, api, self.system, self.has_hooks, Linkage::Local, constants, pool));
            let called = defined.map_or_else(|| Called::import(module, api), |defined| defined.called);
            self.launches.push(Launches::new(module, api, called, defined));
            self.launches.len() - 1
        })
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
            hooks: Vec::new(),
            kernels: Vec::new(),
            by_key: HashMap::new(),
            params: Vec::new(),
            graphs: Vec::new(),
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
            version: kernel.version,
            globals: kernel.globals.iter().map(|name| (*name).to_owned()).collect(),
            hooks: kernel.hooks.clone(),
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

    fn questions(&mut self, module: &mut Module) -> DeviceQuestions {
        let device = match &mut self.defined {
            Some(defined) => defined.device(module),
            None => import_device(module, self.api),
        };
        DeviceQuestions { state: self.places.state, device, report: self.called.report }
    }

    fn graph(&mut self, count: u32) -> Graph {
        let graph = Graph { state: self.places.state, records: self.cells(graph::bytes_of_records(count) / 8), count };
        self.graphs.push(graph);
        graph
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
            has_names: !key.globals.is_empty() || key.hooks.is_some(),
        };
        let cells = globals::words(MOST_DEVICES as u32);
        let globals = key.globals.iter().map(|name| (name.clone(), self.cells(cells))).collect();
        let of_image = key.hooks.as_ref().map(|hooks| key.images.iter().map(|(_, image)| self.hook(hooks, *image)));
        let hooks = of_image.map(Iterator::collect).unwrap_or_default();
        self.by_key.insert(key.clone(), number);
        self.kernels.push(KnownKernel { key, globals, hooks, launchable });
        number
    }

    /// The number of the functions of an image, which are added if they are new.
    fn hook(&mut self, hooks: &ImageHooks, image: usize) -> usize {
        if let Some(known) = self.hooks.iter().position(|(known, of, _)| known == hooks && *of == image) {
            return known;
        }
        let cells = self.cells(MOST_DEVICES as u32);
        self.hooks.push((hooks.clone(), image, cells));
        self.hooks.len() - 1
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
            version: known.key.version,
            globals: &known.globals,
            hooks: &known.hooks,
            params: params(number).map(|(_, sizes)| sizes.as_slice()).collect(),
        });
        let records: Vec<_> = self.images.iter().map(|(_, record)| *record).collect();
        let hooks = self.hooks.iter().map(|(hooks, image, cells)| HookRow { hooks, image: *image, cells: *cells });
        let (rows, hooks): (Vec<_>, Vec<_>) = (rows.collect(), hooks.collect());
        module.data[table].bytes = table::encode(module.endianness, &rows, &records, &hooks);
        module.data[state].bytes = vec![0; self.state_bytes as usize];
        let mut all = Vec::with_capacity(self.image_bytes);
        for (bytes, record) in &self.images {
            all.extend_from_slice(bytes);
            all.resize(end_of_image(bytes, record), 0);
        }
        module.data[images].bytes = all;
        if let Some(helpers) = &self.defined {
            let any = |holds: fn(&KernelKey) -> bool| self.kernels.iter().any(|known| holds(&known.key));
            let asked = Asked {
                tensor_maps: self.tensor_maps,
                params: !self.params.is_empty(),
                version: any(|key| key.version > 0),
                globals: any(|key| !key.globals.is_empty()),
                graphs: !self.graphs.is_empty(),
                image_hooks: !self.hooks.is_empty(),
            };
            helpers.finish(module, asked);
        }

        let symbol = format!("__tvm_ffi_codegen_{}_unload_all", self.api.name);
        let func = module.cold_local(symbol, FuncSig::default(), |c| {
            let (table, state) = (c.data(table, 0), c.data(state, 0));
            let unload = state.load(Type::Ptr, state::UNLOAD);
            c.pass_unless(unload.is_not(0), || {
                // a graph refers to kernels of images
                self.graphs.iter().for_each(|graph| graph.destroy(state));
                c.call_indirect(FuncSig::c([Type::Ptr, Type::Ptr], None), unload, &[table, state]);
            });
            c.ret(None);
        });
        module.destructors.push(func);
    }
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

/// The record of a launch in the constant pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchPlace {
    pub pool: DataRef,
    pub record: u32,
}

/// The block that every failure before a launch goes to.
#[derive(Clone, Copy)]
pub(super) struct Failures {
    block: Block,
    /// The outcome, a parameter of that block.
    outcome: Value,
}

impl Failures {
    pub(super) fn new(c: Emitter<'_>) -> Self {
        let block = c.cold_block();
        Failures { block, outcome: c.block_param(block, Type::I64).value() }
    }
}

impl Launchable {
    /// Returns the kernel's handle on a device (an `I32`), and a value that the caller has computed. `reload`
    /// recomputes the value after first-use work, so no register has to hold it across that call.
    pub(super) fn handle<'c>(
        &self,
        device: Val<'c>,
        (kept, reload): (Val<'c>, impl FnOnce() -> Val<'c>),
        failures: Failures,
    ) -> [Val<'c>; 2] {
        let c = device.emitter();
        let (look, empty, ready) = (c.block(), c.cold_block(), c.block());
        let (handle, value) = (c.block_param(ready, Type::Ptr), c.block_param(ready, kept.ty()));
        c.branch(device.ult(MOST_DEVICES), look, empty, Hint::Likely);
        c.switch_to(look);
        let known = self.known(device);
        let filled = known.ugt(driver::CLAIMED as i64);
        c.branch_with(filled, (ready, &[known, kept]), (empty, &[]), Hint::Likely);
        c.switch_to(empty);
        let known = self.first_use(device, failures);
        c.jump(ready, &[known, reload()]);
        c.switch_to(ready);
        [handle, value]
    }

    /// Does the kernel's first-use work on a device (an `I32`) unless it is done; returns the kernel's handle.
    pub(super) fn first_use<'c>(&self, device: Val<'c>, failures: Failures) -> Val<'c> {
        let c = device.emitter();
        let slot = c.reserve(8);
        let place = c.stack_addr(slot);
        let [table, state, images] =
            [self.places.table, self.places.state, self.places.images].map(|data| c.data(data, 0));
        let args = [table, c.i32(self.record.into()), state, images, device, place];
        let outcome = c.result(self.called.first_use, &args);
        let done = c.cold_block();
        c.branch_with(outcome.is(0), (done, &[]), (failures.block, &[outcome]), Hint::Likely);
        c.switch_to(done);
        c.stack_addr(slot).load(Type::Ptr, 0)
    }

    /// Launches the kernel, then jumps to `done`, or after an error to `failed` with its code. Without a `handle` it
    /// does the kernel's first-use work if necessary.
    pub(super) fn launch<'c>(
        &self,
        handle: Option<Val<'c>>,
        start: &Start<'c>,
        launch: LaunchPlace,
        [done, failed]: [Block; 2],
    ) {
        let c = start.device.emitter();
        let rare = c.cold_block();
        let failed_result = c.block_param(rare, Type::I64);
        let handle = handle.unwrap_or_else(|| {
            let (look, empty, ready) = (c.block(), c.cold_block(), c.block());
            c.branch(start.device.ult(MOST_DEVICES), look, empty, Hint::Likely);
            c.switch_to(empty);
            c.jump(rare, &[c.i64(0)]);
            c.switch_to(look);
            let known = self.known(start.device);
            c.branch(known.ugt(driver::CLAIMED as i64), ready, empty, Hint::Likely);
            c.switch_to(ready);
            known
        });
        let (state, own) = (c.data(self.places.state, 0), c.i64(self.start().into()));
        start.launch(self.api, handle, (state, own), (done, rare));

        c.switch_to(rare);
        let [table, state, images] =
            [self.places.table, self.places.state, self.places.images].map(|data| c.data(data, 0));
        let (pool, record) = (c.data(launch.pool, 0), c.i32(launch.record.into()));
        let [config, params] = [start.config, start.params].map(|place| place.address(c));
        let args = [pool, record, table, state, images, config, params, failed_result];
        let code = c.result(self.called.launch, &args);
        c.branch_with(code.is(0), (done, &[]), (failed, &[code]), Hint::None);
    }

    /// Loads the kernel's cell for a device: its handle, once its first-use work is done.
    fn known<'c>(&self, device: Val<'c>) -> Val<'c> {
        state::row(device.emitter().data(self.places.state, self.cells), device, 8).load_acquire()
    }

    /// Notes the launch in a shot of a graph, instead of launching the kernel, and jumps to `done`. The C string at
    /// `caller` begins the messages of its errors.
    pub(super) fn note<'c>(&self, handle: Val<'c>, start: &Start<'c>, shot: Val<'c>, texts: Texts, done: Block) {
        let c = handle.emitter();
        let alone = c.data(self.places.state, self.start()).load(Type::Ptr, 0);
        shot.store(shot::KERNEL, handle);
        shot.store(shot::CONFIG, start.config.address(c));
        shot.store(shot::PARAMS, start.params.address(c));
        shot.store(shot::START, alone);
        shot.store(shot::CALLER, c.data(texts.pool, texts.caller));
        shot.store(shot::DEVICE, start.device);
        c.jump(done, &[]);
    }

    /// The record of a launch whose errors have these strings.
    pub(super) fn launch_record(&self, texts: Texts) -> LaunchRecord {
        LaunchRecord { kernel: self.record, start: self.start(), caller: texts.caller, images: texts.images }
    }

    /// The offset of the function that launches the kernel in its device's context.
    fn start(&self) -> u32 {
        let own_function = self.cooperative && self.api.function(Call::LaunchCooperative).is_some();
        (if own_function { state::START_COOPERATIVE } else { state::START }) as u32
    }

    /// Calls a function through its address in the state. The device must be in use.
    fn call<'c>(&self, c: Emitter<'c>, sig: FuncSig, at: i32, args: &[Val<'c>]) -> Val<'c> {
        let callee = c.data(self.places.state, at as u32).load(Type::Ptr, 0);
        c.indirect_result(sig, callee, args)
    }

    /// Writes the kernel's global variables on a stream. `values` is the address of [their values](globals::VALUE).
    pub(super) fn write_globals<'c>(&self, values: Val<'c>, stream: Val<'c>, device: Val<'c>, failures: Failures) {
        let c = device.emitter();
        let [table, state] = [self.places.table, self.places.state].map(|data| c.data(data, 0));
        let args = [table, c.i32(self.record.into()), state, device, values, stream];
        let outcome = self.call(c, globals::signature(), state::WRITE_GLOBALS, &args);
        c.or_fail(outcome.is(0), failures.block, &[outcome]);
    }

    /// Encodes a tensor map for a device in use. `args` are those of `cuTensorMapEncodeTiled`.
    pub(super) fn encode_tensor_map<'c>(&self, args: &[Val<'c>], device: Val<'c>, failures: Failures) {
        let c = device.emitter();
        let args = [&[c.data(self.places.state, 0)], args, &[device]].concat();
        let outcome = self.call(c, tensor_map::signature(), state::TENSOR_MAP, &args);
        c.or_fail(outcome.is(0), failures.block, &[outcome]);
    }

    /// Writes the block of failures, which raises the error and jumps to `exit` with its code.
    pub(super) fn raise(&self, failures: Failures, device: Val<'_>, texts: Texts, exit: Block) {
        let c = device.emitter();
        c.aside(failures.block, || {
            let [caller, images] = [texts.caller, texts.images].map(|at| c.data(texts.pool, at));
            let outcome = c.val(failures.outcome);
            let text = match self.has_names {
                true => outcome::text(outcome, c.data(self.places.table, 0), images),
                false => images,
            };
            let args = [caller, text, outcome, c.null(), device];
            c.jump(exit, &[c.result(self.called.report, &args)]);
        });
    }

    /// The max dynamic shared memory of a block in bytes, an `I64`. The device must be in use.
    pub(super) fn max_shared_memory<'c>(&self, device: Val<'c>) -> Val<'c> {
        let state = device.emitter().data(self.places.state, 0);
        let max = state::record_of(state, device).load(Type::I32, state::record::SHARED).sext();
        if self.own_shared == 0 { max } else { max - self.own_shared }
    }
}
