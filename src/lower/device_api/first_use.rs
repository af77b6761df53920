//! The first use of a device, and of a kernel on it.

use super::api::{Attributes, Call};
use super::driver::{Driver, end_claim};
use super::images::{self, field_of};
use super::layout::MOST_DEVICES;
use super::outcome::Failed;
use super::state::{self, InState, record, record_of, row};
use super::steps::Steps;
use crate::ir::{
    BinaryOp, ConvertOp, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};
use crate::lower::protocol::launch_table::{ImageChoice, KernelRecord, ParamSizes, SharedKind};
use crate::lower::protocol::{DescriptorField, Encode, field};

/// The most dynamic shared memory that a kernel has without asking, in bytes (CUDA C++ Programming Guide, compute capabilities).
const SHARED_WITHOUT_ASKING: i64 = 48 * 1024;

/// The shared memory of a kernel's launches, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::lower) enum Shared {
    /// Always so much.
    Fixed(i64),
    /// It differs from launch to launch. The kernel has so much of its own besides.
    Differs { fixed: u32 },
}

impl Shared {
    /// The most dynamic shared memory that the kernel asks for at its first use; `None` where it has enough without.
    pub(in crate::lower) fn asked(self) -> Option<MostShared> {
        match self {
            Shared::Fixed(bytes) if bytes <= SHARED_WITHOUT_ASKING => None,
            Shared::Fixed(bytes) => Some(MostShared::Bytes(bytes)),
            Shared::Differs { fixed } => Some(MostShared::AllBut(fixed)),
        }
    }
}

/// The most dynamic shared memory that a kernel asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum MostShared {
    /// So many bytes.
    Bytes(i64),
    /// All that a block of the device may have but so many bytes.
    AllBut(u32),
}

impl std::fmt::Display for MostShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MostShared::Bytes(bytes) => write!(f, "{bytes} bytes"),
            MostShared::AllBut(0) => f.write_str("all that a block may have"),
            MostShared::AllBut(bytes) => write!(f, "all that a block may have but {bytes} bytes"),
        }
    }
}

/// `int64_t device(void* state, int32_t device)`: opens the driver and reads what is to be known of a device; an outcome.
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
    if driver.api.has_contexts {
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

/// Writes the functions into a state that launches call. First uses of two devices at once write the same.
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

/// Defines [the helper](super::helpers::Called) that does the first use of a kernel. `device` does that of a device; `compare` compares a kernel's parameters,
/// where that is asked for.
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

/// The first use of a kernel, under construction.
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

    /// The address of what a field of the kernel's record leads to.
    fn address(&mut self, field: DescriptorField) -> Value {
        let offset = self.field(field);
        self.steps.b.ptr_add(self.table, offset)
    }

    /// The record of the first image that is for the device.
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

    /// Compares the kernel's parameters with those that launches pass, where they are stated.
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

    /// Sets the attributes of the kernel on the device that its record asks for.
    fn set_attributes(&mut self, loaded: Value) {
        let record = record_of(self.steps.b, self.state, self.device);
        let device = self.steps.b.load(Type::I32, record, record::DEVICE, MemFlags::ALIGNED);
        let (kind, bytes) = (self.field(field!(KernelRecord, shared)), self.field(field!(KernelRecord, shared_bytes)));
        if let Some(attribute) = self.driver.api.most_shared {
            let b = &mut *self.steps.b;
            let asks = b.icmp_imm(IntCC::Ne, kind, SharedKind::None as i64);
            let bytes = b.convert(ConvertOp::Truncate, Type::I32, bytes);
            let most = b.load(Type::I32, record, record::SHARED, MemFlags::ALIGNED);
            let rest = b.binary(BinaryOp::Sub, most, bytes);
            let all_but = b.icmp_imm(IntCC::Eq, kind, SharedKind::AllBut as i64);
            let most = b.select(all_but, rest, bytes);
            self.set_attribute(asks, attribute, most, loaded, device);
        }
        if let Some(attribute) = self.driver.api.non_portable_cluster {
            let non_portable = self.field(field!(KernelRecord, non_portable));
            let asks = self.steps.b.icmp_imm(IntCC::Ne, non_portable, 0);
            let one = self.steps.b.iconst(Type::I32, 1);
            self.set_attribute(asks, attribute, one, loaded, device);
        }
    }

    /// Sets an attribute of the kernel where a condition holds.
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
