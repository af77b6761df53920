//! First-use work for a device and for a kernel on that device.

use super::api::{Attributes, Call, KernelHome, SharedAttributes};
use super::driver::{Driver, end_claim};
use super::images::{self, field_of};
use super::layout::MOST_DEVICES;
use super::outcome::Failed;
use super::shared::WITHOUT_ASKING;
use super::state::{self, InState, record, record_of, row};
use super::steps::Steps;
use crate::ir::{
    BinaryOp, ConvertOp, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};
use crate::lower::protocol::launch_table::{ASK_DRIVER, ImageChoice, KernelRecord, ParamSizes};
use crate::lower::protocol::{DescriptorField, Encode, field};

/// `int64_t device(void* state, int32_t device)`: opens the driver and reads a device's properties. Returns an outcome.
pub(super) fn device(module: &mut Module, driver: &Driver, in_state: &InState) -> FuncRef {
    let name = format!("__tvm_ffi_codegen_{}_device", driver.api.name);
    let func = module.declare(name, FuncSig::new([Type::Ptr, Type::I32], Some(Type::I64)), Linkage::Local);
    module.functions[func].cold = true;
    let mut attributes = Vec::new();
    driver.api.attributes.in_order().into_iter().for_each(|number| number.write(module.endianness, &mut attributes));
    let attributes = module.add_data(format!("__tvm_ffi_codegen_{}_attributes", driver.api.name), attributes, 4);
    let mut builder = FunctionBuilder::new(module, func);
    let [state, number] = [0, 1].map(|i| builder.param(i));
    let mut outside = Steps::new(&mut builder);
    let in_range = outside.b.icmp_imm(IntCC::ULt, number, MOST_DEVICES);
    outside.require(in_range, Failed::Number, number);
    outside.require_open(driver);
    let record = record_of(outside.b, state, number);
    let (claimed, done) = (outside.b.block(), outside.b.block());
    if let Some(mine) = outside.b.call(driver.claim, &[record]) {
        let mine = outside.b.icmp_imm(IntCC::Ne, mine, 0);
        outside.b.branch(mine, claimed, done, Hint::None);
    }
    outside.b.switch_to(done);
    outside.finish(|_| {});
    builder.switch_to(claimed);
    let mut steps = Steps::new(&mut builder);
    let place = steps.place();
    steps.call(driver, Call::Device, &[place, number]);
    let device = steps.b.load(Type::I32, place, 0, MemFlags::ALIGNED);
    steps.b.store(device, record, record::DEVICE, MemFlags::ALIGNED);
    let (next, one, read) = (steps.b.block(), steps.b.block(), steps.b.block());
    let index = steps.b.block_param(next, Type::I64);
    let zero = steps.b.i64(0);
    steps.b.jump(next, &[zero]);
    steps.b.switch_to(next);
    let more = steps.b.icmp_imm(IntCC::ULt, index, Attributes::COUNT as i64);
    steps.b.branch(more, one, read, Hint::None);
    steps.b.switch_to(one);
    let attributes = steps.b.data_addr(attributes, 0);
    let attribute = steps.b.element(attributes, index, Type::I32);
    let attribute = steps.b.load(Type::I32, attribute, 0, MemFlags::ALIGNED);
    steps.call(driver, Call::Attribute, &[place, attribute, device]);
    let value = steps.b.load(Type::I32, place, 0, MemFlags::ALIGNED);
    let values = steps.b.ptr_add_imm(record, record::ATTRIBUTES);
    let at = steps.b.element(values, index, Type::I32);
    steps.b.store(value, at, 0, MemFlags::ALIGNED);
    let after = steps.b.binary_imm(BinaryOp::Add, index, 1);
    steps.b.jump(next, &[after]);
    steps.b.switch_to(read);
    let [major, minor] =
        [record::MAJOR, record::MINOR].map(|at| steps.b.load(Type::I32, record, at, MemFlags::ALIGNED));
    let tens = steps.b.binary_imm(BinaryOp::Mul, major, 10);
    let capability = steps.b.binary(BinaryOp::Add, tens, minor);
    steps.b.store(capability, record, record::CAPABILITY, MemFlags::ALIGNED);
    if driver.api.home == KernelHome::Contexts {
        steps.call(driver, Call::Retain, &[place, device]);
        let context = steps.b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
        steps.b.store(context, record, record::CONTEXT, MemFlags::ALIGNED);
    }
    fill(steps.b, driver, in_state, state);
    end_claim(steps.b, record, record);
    steps.finish(|b| {
        let null = b.ptr_const(0);
        end_claim(b, record, null);
    });
    builder.finish()
}

/// Writes the function addresses that launches call into a state. Concurrent first uses of two devices write the same
/// values.
fn fill(b: &mut FunctionBuilder<'_>, driver: &Driver, in_state: &InState, state: Value) {
    let launch = driver.address(b, Call::Launch);
    b.store(launch, state, state::LAUNCH, MemFlags::ALIGNED);
    let functions = [
        (state::START, Some(in_state.start)),
        (state::START_COOPERATIVE, in_state.start_cooperative),
        (state::TENSOR_MAP, in_state.tensor_map),
        (state::UNLOAD, Some(in_state.unload)),
    ];
    for (at, function) in functions {
        if let Some(function) = function {
            let address = b.func_addr(function);
            b.store(address, state, at, MemFlags::ALIGNED);
        }
    }
}

/// Defines [the helper](super::helpers::Called) that does a kernel's first-use work. `device` does the work for a
/// device. `compare` compares a kernel's parameters, if requested.
pub(super) fn define(module: &mut Module, driver: &Driver, device: FuncRef, compare: Option<FuncRef>, func: FuncRef) {
    let load = images::load(module, driver);
    let of_device = device;
    let mut builder = FunctionBuilder::new(module, func);
    let [table, kernel, state, images, device, handle] = [0, 1, 2, 3, 4, 5].map(|i| builder.param(i));
    let mut outside = Steps::new(&mut builder);
    let offset = outside.b.convert(ConvertOp::ZExt, Type::I64, kernel);
    let kernel = outside.b.ptr_add(table, offset);
    if let Some(outcome) = outside.b.call(of_device, &[state, device]) {
        outside.require_outcome(outcome);
    }
    let cells = field_of(outside.b, kernel, field!(KernelRecord, cells));
    let cells = outside.b.ptr_add(state, cells);
    let cell = row(outside.b, cells, device, 8);
    let (claimed, done) = (outside.b.block(), outside.b.block());
    if let Some(mine) = outside.b.call(driver.claim, &[cell]) {
        let mine = outside.b.icmp_imm(IntCC::Ne, mine, 0);
        outside.b.branch(mine, claimed, done, Hint::None);
    }
    outside.b.switch_to(done);
    let known = outside.b.load_acquire(cell);
    outside.b.store(known, handle, 0, MemFlags::ALIGNED);
    outside.finish(|_| {});
    builder.switch_to(claimed);
    let steps = Steps::new(&mut builder);
    let mut first_use = FirstUse { steps, driver, table, kernel, state, device };
    let image = first_use.choose();
    let place = first_use.steps.place();
    if let Some(outcome) = first_use.steps.b.call(load, &[image, state, images, device, place]) {
        first_use.steps.require_outcome(outcome);
    }
    let library = first_use.steps.b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
    let entry = first_use.address(field!(KernelRecord, entry));
    first_use.steps.call(driver, Call::Kernel, &[place, library, entry]);
    let loaded = first_use.steps.b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
    if let Some(compare) = compare {
        first_use.compare(compare, loaded);
    }
    first_use.set_attributes(loaded);
    let steps = first_use.steps;
    end_claim(steps.b, cell, loaded);
    steps.b.store(loaded, handle, 0, MemFlags::ALIGNED);
    steps.finish(|b| {
        let null = b.ptr_const(0);
        end_claim(b, cell, null);
    });
    builder.finish();
}

/// The first-use function of a kernel, under construction.
struct FirstUse<'f, 'b, 'm> {
    steps: Steps<'b, 'm>,
    driver: &'f Driver,
    table: Value,
    /// The address of the kernel's record.
    kernel: Value,
    state: Value,
    /// The number of the device, an `I32`.
    device: Value,
}

impl FirstUse<'_, '_, '_> {
    /// A field of the kernel's record, an `I64`.
    fn field(&mut self, field: DescriptorField) -> Value {
        field_of(self.steps.b, self.kernel, field)
    }

    /// The address of the data at the offset in a field of the kernel's record.
    fn address(&mut self, field: DescriptorField) -> Value {
        let offset = self.field(field);
        self.steps.b.ptr_add(self.table, offset)
    }

    /// The record of the first image that suits the device.
    fn choose(&mut self) -> Value {
        let record = record_of(self.steps.b, self.state, self.device);
        let capability = self.steps.b.load(Type::I32, record, record::CAPABILITY, MemFlags::ALIGNED);
        let wide = self.steps.b.convert(ConvertOp::ZExt, Type::I64, capability);
        let (count, first) =
            (self.field(field!(KernelRecord, choices)), self.address(field!(KernelRecord, first_choice)));
        let steps = &mut self.steps;
        let (next, look, found) = (steps.b.block(), steps.b.block(), steps.b.block());
        let number = steps.b.block_param(next, Type::I64);
        let zero = steps.b.i64(0);
        steps.b.jump(next, &[zero]);
        steps.b.switch_to(next);
        let more = steps.b.icmp(IntCC::ULt, number, count);
        steps.require(more, Failed::Image, capability);
        let offset = steps.b.binary_imm(BinaryOp::Mul, number, ImageChoice::SIZE as i64);
        let choice = steps.b.ptr_add(first, offset);
        let least = field_of(steps.b, choice, field!(ImageChoice, least));
        let end = field_of(steps.b, choice, field!(ImageChoice, end));
        let (above, below) = (steps.b.icmp(IntCC::UGe, wide, least), steps.b.icmp(IntCC::ULt, wide, end));
        let fits = steps.b.binary(BinaryOp::And, above, below);
        steps.b.branch(fits, found, look, Hint::None);
        steps.b.switch_to(look);
        let after = steps.b.binary_imm(BinaryOp::Add, number, 1);
        steps.b.jump(next, &[after]);
        steps.b.switch_to(found);
        let image = field_of(steps.b, choice, field!(ImageChoice, image));
        steps.b.ptr_add(self.table, image)
    }

    /// Compares the kernel's parameters with those that launches pass, if the record states them.
    fn compare(&mut self, compare: FuncRef, loaded: Value) {
        let (count, first) =
            (self.field(field!(KernelRecord, params)), self.address(field!(KernelRecord, first_params)));
        let table = self.table;
        let steps = &mut self.steps;
        let (next, one, done) = (steps.b.block(), steps.b.block(), steps.b.block());
        let number = steps.b.block_param(next, Type::I64);
        let zero = steps.b.i64(0);
        steps.b.jump(next, &[zero]);
        steps.b.switch_to(next);
        let more = steps.b.icmp(IntCC::ULt, number, count);
        steps.b.branch(more, one, done, Hint::None);
        steps.b.switch_to(one);
        let offset = steps.b.binary_imm(BinaryOp::Mul, number, ParamSizes::SIZE as i64);
        let list = steps.b.ptr_add(first, offset);
        let passed = steps.b.load(Type::I32, list, field!(ParamSizes, count).offset, MemFlags::ALIGNED);
        let sizes = field_of(steps.b, list, field!(ParamSizes, first));
        let sizes = steps.b.ptr_add(table, sizes);
        if let Some(outcome) = steps.b.call(compare, &[loaded, sizes, passed]) {
            steps.require_outcome(outcome);
        }
        let after = steps.b.binary_imm(BinaryOp::Add, number, 1);
        steps.b.jump(next, &[after]);
        steps.b.switch_to(done);
    }

    /// Sets the kernel attributes on the device that the kernel's record requests.
    fn set_attributes(&mut self, loaded: Value) {
        let record = record_of(self.steps.b, self.state, self.device);
        let device = self.steps.b.load(Type::I32, record, record::DEVICE, MemFlags::ALIGNED);
        if let Some(attributes) = self.driver.api.kernel_shared {
            let most = self.steps.b.load(Type::I32, record, record::SHARED, MemFlags::ALIGNED);
            let most = self.steps.b.convert(ConvertOp::SExt, Type::I64, most);
            self.ask_for_shared(attributes, most, loaded, device);
        }
        if let Some(attribute) = self.driver.api.non_portable_cluster {
            let non_portable = self.field(field!(KernelRecord, non_portable));
            let asks = self.steps.b.icmp_imm(IntCC::Ne, non_portable, 0);
            let one = self.steps.b.iconst(Type::I32, 1);
            self.set_attribute(asks, attribute, one, loaded, device);
        }
    }

    /// Allows launches the dynamic shared memory that the kernel's record states. The limit is the device's `most`
    /// bytes per block, minus the kernel's static shared memory. Launches of one kernel share its attribute, so each
    /// requests what the largest launch needs.
    fn ask_for_shared(&mut self, attributes: SharedAttributes, most: Value, loaded: Value, device: Value) {
        let (bytes, told) = (self.field(field!(KernelRecord, shared)), self.field(field!(KernelRecord, own_shared)));
        let steps = &mut self.steps;
        let (asks, unknown, known, done) = (steps.b.block(), steps.b.block(), steps.b.block(), steps.b.block());
        let own = steps.b.block_param(known, Type::I64);
        let any = steps.b.icmp_imm(IntCC::Ne, bytes, 0);
        steps.b.branch(any, asks, done, Hint::None);
        steps.b.switch_to(asks);
        let is_told = steps.b.icmp_imm(IntCC::Ne, told, i64::from(ASK_DRIVER));
        steps.b.branch_with(is_told, (known, &[told]), (unknown, &[]), Hint::None);
        steps.b.switch_to(unknown);
        let (place, attribute) = (steps.place(), steps.b.iconst(Type::I32, i64::from(attributes.own)));
        steps.call(self.driver, Call::GetAttribute, &[place, attribute, loaded, device]);
        let driver_told = steps.b.load(Type::I32, place, 0, MemFlags::ALIGNED);
        let driver_told = steps.b.convert(ConvertOp::SExt, Type::I64, driver_told);
        steps.b.jump(known, &[driver_told]);
        steps.b.switch_to(known);
        let all = steps.b.binary(BinaryOp::Add, own, bytes);
        let more = steps.b.icmp_imm(IntCC::SGt, all, WITHOUT_ASKING);
        let rest = steps.b.binary(BinaryOp::Sub, most, own);
        let fits = steps.b.icmp(IntCC::SLt, bytes, rest);
        let value = steps.b.select(fits, bytes, rest);
        let value = steps.b.convert(ConvertOp::Truncate, Type::I32, value);
        self.set_attribute(more, attributes.most, value, loaded, device);
        self.steps.b.jump(done, &[]);
        self.steps.b.switch_to(done);
    }

    /// Sets an attribute of the kernel if a condition holds.
    fn set_attribute(&mut self, asks: Value, attribute: u32, value: Value, loaded: Value, device: Value) {
        let (set, done) = (self.steps.b.block(), self.steps.b.block());
        self.steps.b.branch(asks, set, done, Hint::None);
        self.steps.b.switch_to(set);
        let attribute = self.steps.b.iconst(Type::I32, i64::from(attribute));
        self.steps.call(self.driver, Call::SetAttribute, &[attribute, value, loaded, device]);
        self.steps.b.jump(done, &[]);
        self.steps.b.switch_to(done);
    }
}
