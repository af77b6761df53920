//! First-use work for a device and for a kernel on that device.

use super::api::{Attributes, Call, KernelHome, SharedAttributes};
use super::driver::{Driver, end_claim};
use super::images::{self, field_of};
use super::launch_hooks::LaunchHooks;
use super::layout::MOST_DEVICES;
use super::outcome::Failed;
use super::shared::WITHOUT_ASKING;
use super::state::{self, InState, record, record_of, row};
use super::steps::Steps;
use crate::ir::{FuncRef, Hint, Module, Type, Val};
use crate::lower::protocol::launch_table::{ASK_DRIVER, ImageChoice, KernelRecord, ParamSizes};
use crate::lower::protocol::{DescriptorField, Encode, field};

/// Defines [the helper](super::helpers::Called) that opens the driver and reads a device's properties.
pub(super) fn define_device(
    module: &mut Module,
    driver: &Driver,
    launch_hooks: Option<LaunchHooks>,
    in_state: &InState,
    func: FuncRef,
) {
    let mut attributes = Vec::new();
    driver.api.attributes.in_order().into_iter().for_each(|number| number.write(module.endianness, &mut attributes));
    let attributes = module.add_data(format!("__tvm_ffi_codegen_{}_attributes", driver.api.name), attributes, 4);
    module.define(func, |c| {
        let [state, number] = c.params();
        let outside = Steps::new(c);
        outside.require(number.ult(MOST_DEVICES), Failed::Number, number);
        outside.require_open(driver);
        let hooks = launch_hooks.map(|hooks| (hooks, hooks.find(c)));
        let record = record_of(state, number);
        driver.claim(record, || outside.finish(|| {}));
        let steps = Steps::new(c);
        let place = steps.place();
        steps.call(driver, Call::Device, &[place, number]);
        let device = place.load(Type::I32, 0);
        record.store(record::DEVICE, device);
        c.repeat(
            c.i64(0),
            |index| index.ult(Attributes::COUNT as i64),
            |index| {
                let attribute = c.data(attributes, 0).element(index, Type::I32).load(Type::I32, 0);
                steps.call(driver, Call::Attribute, &[place, attribute, device]);
                let value = place.load(Type::I32, 0);
                (record + record::ATTRIBUTES).element(index, Type::I32).store(0, value);
                index + 1
            },
        );
        let [major, minor] = [record::MAJOR, record::MINOR].map(|at| record.load(Type::I32, at));
        record.store(record::CAPABILITY, major * 10 + minor);
        match driver.api.home {
            KernelHome::Contexts => {
                steps.call(driver, Call::Retain, &[place, device]);
                record.store(record::CONTEXT, place.load(Type::Ptr, 0));
            }
            KernelHome::CurrentDevice => {}
        }
        fill(driver, in_state, state);
        if let Some((hooks, table)) = hooks {
            hooks.attach(driver, state, table);
        }
        end_claim(record, record);
        steps.finish(|| end_claim(record, c.null()));
    });
}

/// Writes the function addresses that launches call into a state. Concurrent first uses of two devices write the same
/// values.
fn fill(driver: &Driver, in_state: &InState, state: Val<'_>) {
    let c = state.emitter();
    state.store(state::LAUNCH, driver.address(c, Call::Launch));
    let functions = [
        (state::START, Some(in_state.start)),
        (state::START_COOPERATIVE, in_state.start_cooperative),
        (state::TENSOR_MAP, in_state.tensor_map),
        (state::UNLOAD, Some(in_state.unload)),
        (state::LAUNCH_GRAPH, in_state.graphs.map(|graphs| graphs.launch)),
        (state::DESTROY_GRAPHS, in_state.graphs.map(|graphs| graphs.destroy)),
        (state::WRITE_GLOBALS, in_state.write_globals),
    ];
    for (at, function) in functions {
        if let Some(function) = function {
            state.store(at, c.func_addr(function));
        }
    }
}

/// The parts of a kernel's first-use work.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    /// The function that does the work for a device.
    pub device: FuncRef,
    /// The process's hooks, if they see launches.
    pub launch_hooks: Option<LaunchHooks>,
    /// The function that compares a kernel's parameters, if requested.
    pub compare: Option<FuncRef>,
    /// Whether kernels need a version of the driver.
    pub version: bool,
    /// The function that finds a kernel's global variables, if launches write some.
    pub find_globals: Option<FuncRef>,
    /// The function that calls the functions of a loaded image, if launches state some.
    pub loaded: Option<FuncRef>,
}

/// Defines [the helper](super::helpers::Called) that does a kernel's first-use work.
pub(super) fn define(module: &mut Module, driver: &Driver, parts: Parts, func: FuncRef) {
    let Parts { device, launch_hooks, compare, version, find_globals, loaded: call_loaded } = parts;
    let load = images::load(module, driver);
    module.define(func, |c| {
        let [table, kernel, state, images, number, handle] = c.params();
        let outside = Steps::new(c);
        let kernel = table + kernel.zext();
        outside.require_outcome(c.result(device, &[state, number]));
        let cells = state + field_of(kernel, field!(KernelRecord, cells));
        let cell = row(cells, number, 8);
        driver.claim(cell, || {
            handle.store(0, cell.load_acquire());
            outside.finish(|| {});
        });
        let steps = Steps::new(c);
        let first_use = FirstUse { steps, driver, table, kernel, state, device: number };
        let choice = first_use.choose();
        let image = table + field_of(choice, field!(ImageChoice, image));
        let place = steps.place();
        steps.require_outcome(c.result(load, &[image, state, images, number, place]));
        if version && driver.api.function(Call::Version).is_some() {
            first_use.require_version();
        }
        let library = place.load(Type::Ptr, 0);
        let entry = first_use.address(field!(KernelRecord, entry));
        if let Some(loaded) = call_loaded {
            let hook = field_of(choice, field!(ImageChoice, hook));
            c.pass_unless(hook.is_not(0), || {
                steps.require_outcome(c.result(loaded, &[table, table + hook, library, state, number]));
            });
        }
        steps.call(driver, Call::Kernel, &[place, library, entry]);
        let loaded = place.load(Type::Ptr, 0);
        if let Some(compare) = compare {
            first_use.compare(compare, loaded);
        }
        first_use.set_attributes(loaded);
        if let Some(find) = find_globals {
            c.pass_unless(first_use.field(field!(KernelRecord, globals)).is_not(0), || {
                steps.require_outcome(c.result(find, &[table, kernel, library, state, number]));
            });
        }
        if let Some(hooks) = launch_hooks {
            hooks.note(state, loaded, entry);
        }
        end_claim(cell, loaded);
        handle.store(0, loaded);
        steps.finish(|| end_claim(cell, c.null()));
    });
}

/// The first-use function of a kernel, under construction.
#[derive(Clone, Copy)]
struct FirstUse<'c, 'f> {
    steps: Steps<'c>,
    driver: &'f Driver,
    table: Val<'c>,
    /// The address of the kernel's record.
    kernel: Val<'c>,
    state: Val<'c>,
    /// The number of the device, an `I32`.
    device: Val<'c>,
}

impl<'c> FirstUse<'c, '_> {
    /// A field of the kernel's record, an `I64`.
    fn field(self, field: DescriptorField) -> Val<'c> {
        field_of(self.kernel, field)
    }

    /// The address of the data at the offset in a field of the kernel's record.
    fn address(self, field: DescriptorField) -> Val<'c> {
        self.table + self.field(field)
    }

    /// Continues if the driver has the version that the kernel's record requests.
    fn require_version(self) {
        let (steps, c, needed) = (self.steps, self.steps.c, self.field(field!(KernelRecord, version)));
        c.pass_unless(needed.is_not(0), || {
            let place = steps.place();
            steps.call(self.driver, Call::Version, &[place]);
            let found = place.load(Type::I32, 0).zext();
            steps.require(found.uge(needed), Failed::Version, needed.truncate());
        });
    }

    /// The choice of the first image that suits the device.
    fn choose(self) -> Val<'c> {
        let (c, record) = (self.steps.c, record_of(self.state, self.device));
        let capability = record.load(Type::I32, record::CAPABILITY);
        let wide = capability.zext();
        let (count, first) =
            (self.field(field!(KernelRecord, choices)), self.address(field!(KernelRecord, first_choice)));
        let [next, look, found] = c.blocks();
        let number = c.block_param(next, Type::I64);
        c.jump(next, &[c.i64(0)]);
        c.switch_to(next);
        self.steps.require(number.ult(count), Failed::Image, capability);
        let choice = first + number * ImageChoice::SIZE as i64;
        let min = field_of(choice, field!(ImageChoice, min));
        let end = field_of(choice, field!(ImageChoice, end));
        c.branch(wide.uge(min) & wide.ult(end), found, look, Hint::None);
        c.switch_to(look);
        c.jump(next, &[number + 1]);
        c.switch_to(found);
        choice
    }

    /// Compares the kernel's parameters with those that launches pass, if the record states them.
    fn compare(self, compare: FuncRef, loaded: Val<'c>) {
        let (count, first) =
            (self.field(field!(KernelRecord, params)), self.address(field!(KernelRecord, first_params)));
        let c = self.steps.c;
        c.repeat(
            c.i64(0),
            |number| number.ult(count),
            |number| {
                let list = first + number * ParamSizes::SIZE as i64;
                let passed = list.load(Type::I32, field!(ParamSizes, count).offset);
                let sizes = self.table + field_of(list, field!(ParamSizes, first));
                let args = [loaded, sizes, passed, self.state, self.device];
                self.steps.require_outcome(c.result(compare, &args));
                number + 1
            },
        );
    }

    /// Sets the kernel attributes on the device that the kernel's record requests.
    fn set_attributes(self, loaded: Val<'c>) {
        let record = record_of(self.state, self.device);
        let device = record.load(Type::I32, record::DEVICE);
        if let Some(attributes) = self.driver.api.kernel_shared {
            let max = record.load(Type::I32, record::SHARED).sext();
            self.ask_for_shared(attributes, max, loaded, device);
        }
        if let Some(attribute) = self.driver.api.non_portable_cluster {
            let asks = self.field(field!(KernelRecord, non_portable)).is_not(0);
            self.set_attribute(asks, attribute, self.steps.c.i32(1), loaded, device);
        }
    }

    /// Allows launches the dynamic shared memory that the kernel's record states. The limit is the device's `most`
    /// bytes per block, minus the kernel's static shared memory. Launches of one kernel share its attribute, so each
    /// requests what the largest launch needs.
    fn ask_for_shared(self, attributes: SharedAttributes, max: Val<'c>, loaded: Val<'c>, device: Val<'c>) {
        let (bytes, told) = (self.field(field!(KernelRecord, shared)), self.field(field!(KernelRecord, own_shared)));
        let (steps, c) = (self.steps, self.steps.c);
        let [asks, unknown, known, done] = c.blocks();
        let own = c.block_param(known, Type::I64);
        c.branch(bytes.is_not(0), asks, done, Hint::None);
        c.switch_to(asks);
        c.branch_with(told.is_not(i64::from(ASK_DRIVER)), (known, &[told]), (unknown, &[]), Hint::None);
        c.switch_to(unknown);
        let (place, attribute) = (steps.place(), c.i32(i64::from(attributes.own)));
        steps.call(self.driver, Call::GetAttribute, &[place, attribute, loaded, device]);
        c.jump(known, &[place.load(Type::I32, 0).sext()]);
        c.switch_to(known);
        let more = (own + bytes).gt(WITHOUT_ASKING);
        let rest = max - own;
        let value = bytes.lt(rest).select(bytes, rest).truncate();
        self.set_attribute(more, attributes.max, value, loaded, device);
        c.jump(done, &[]);
        c.switch_to(done);
    }

    /// Sets an attribute of the kernel if a condition holds.
    fn set_attribute(self, asks: Val<'c>, attribute: u32, value: Val<'c>, loaded: Val<'c>, device: Val<'c>) {
        let (steps, c) = (self.steps, self.steps.c);
        c.pass_unless(asks, || {
            let attribute = c.i32(i64::from(attribute));
            steps.call(self.driver, Call::SetAttribute, &[attribute, value, loaded, device]);
        });
    }
}
