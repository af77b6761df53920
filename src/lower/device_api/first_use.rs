//! The first use of a device, and of a kernel on it.

use super::api::Call;
use super::driver::{Driver, NAME, end_claim, record, row};
use super::images::{self, ImageRule, Loaded};
use super::layout::MOST_DEVICES;
use super::outcome::Failed;
use super::params;
use super::steps::Steps;
use crate::ir::{
    BinaryOp, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};
use crate::lower::protocol::Encode;

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

/// A kernel in a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceKernel {
    /// The kernel's handle for each device, 0 before the first use.
    pub cells: DataRef,
    /// `int64_t first_use(int32_t device, void** handle)`: writes the kernel's handle; an outcome.
    pub first_use: FuncRef,
    /// Tells kernels of a module apart.
    number: u32,
}

impl DeviceKernel {
    pub(super) fn declare(module: &mut Module, number: u32) -> Self {
        let cells = module.add_state(format!("__tvm_ffi_codegen_kernel_{number}"), 8 * MOST_DEVICES as usize, 8);
        let name = format!("__tvm_ffi_codegen_first_use_{number}");
        let sig = FuncSig::new([Type::I32, Type::Ptr], Some(Type::I64));
        let first_use = module.declare(name, sig, Linkage::Local);
        module.functions[first_use].cold = true;
        DeviceKernel { cells, first_use, number }
    }
}

/// The first use of a kernel.
pub(super) struct FirstUse<'a> {
    pub driver: &'a Driver,
    /// `int64_t device(int32_t device)`, the first use of a device.
    pub device: FuncRef,
    pub entry: &'a str,
    /// The images, the one that is preferred first.
    pub images: &'a [(ImageRule, Loaded)],
    pub shared: Shared,
    pub non_portable_cluster: bool,
    /// The sizes of the parameters that launches pass, which the driver's are compared with.
    pub params: Vec<&'a [u32]>,
}

/// `int64_t device(int32_t device)`: opens the driver and reads what is to be known of a device; an outcome.
pub(super) fn device(module: &mut Module, driver: &Driver) -> FuncRef {
    let name = format!("__tvm_ffi_codegen_{}_device", driver.api.name);
    if let Some((known, _)) = module.function_named(&name) {
        return known;
    }
    let func = module.declare(name, FuncSig::new([Type::I32], Some(Type::I64)), Linkage::Local);
    module.functions[func].cold = true;
    let mut builder = FunctionBuilder::new(module, func);
    let number = builder.param(0);
    let mut outside = Steps::new(&mut builder);
    let in_range = outside.b.icmp_imm(IntCC::ULt, number, MOST_DEVICES);
    outside.require(in_range, Failed::Number, number);
    outside.require_open(driver);
    let record = driver.record(outside.b, number);
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
    let attributes = &driver.api.attributes;
    let attribute = |steps: &mut Steps<'_, '_>, attribute: u32| {
        let attribute = steps.b.iconst(Type::I32, i64::from(attribute));
        steps.call(driver, Call::Attribute, &[place, attribute, device]);
        steps.b.load(Type::I32, place, 0, MemFlags::ALIGNED)
    };
    let [major, minor] = attributes.capability.map(|number| attribute(&mut steps, number));
    let tens = steps.b.binary_imm(BinaryOp::Mul, major, 10);
    let capability = steps.b.binary(BinaryOp::Add, tens, minor);
    steps.b.store(capability, record, record::CAPABILITY, MemFlags::ALIGNED);
    for (number, at) in attributes.block.into_iter().zip((record::BLOCK..).step_by(4)) {
        let most = attribute(&mut steps, number);
        steps.b.store(most, record, at, MemFlags::ALIGNED);
    }
    let shared = attribute(&mut steps, attributes.shared);
    steps.b.store(shared, record, record::SHARED, MemFlags::ALIGNED);
    if driver.api.has_contexts {
        steps.call(driver, Call::Retain, &[place, device]);
        let context = steps.b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
        steps.b.store(context, record, record::CONTEXT, MemFlags::ALIGNED);
    }
    end_claim(steps.b, record, record);
    steps.finish(|b| {
        let null = b.ptr_const(0);
        end_claim(b, record, null);
    });
    builder.finish()
}

/// Gives up the context of each device that was used.
pub(super) fn release_devices(b: &mut FunctionBuilder<'_>, driver: &Driver) {
    if !driver.api.has_contexts {
        return;
    }
    let (again, look, there, next, done) = (b.block(), b.block(), b.block(), b.block(), b.block());
    let number = b.block_param(again, Type::I32);
    let zero = b.iconst(Type::I32, 0);
    b.jump(again, &[zero]);
    b.switch_to(again);
    let more = b.icmp_imm(IntCC::ULt, number, MOST_DEVICES);
    b.branch(more, look, done, Hint::Likely);
    b.switch_to(look);
    let record = driver.record(b, number);
    let cell = b.load_acquire(record);
    let used = b.icmp_imm(IntCC::UGt, cell, super::driver::CLAIMED as i64);
    b.branch(used, there, next, Hint::None);
    b.switch_to(there);
    let device = b.load(Type::I32, record, record::DEVICE, MemFlags::ALIGNED);
    driver.call(b, Call::Release, &[device]);
    b.jump(next, &[]);
    b.switch_to(next);
    let after = b.binary_imm(BinaryOp::Add, number, 1);
    b.jump(again, &[after]);
    b.switch_to(done);
}

impl FirstUse<'_> {
    /// Defines the first use of a kernel that was [declared](DeviceKernel::declare).
    pub(super) fn define(&self, module: &mut Module, DeviceKernel { cells, first_use, number }: DeviceKernel) {
        let driver = self.driver;
        let mut entry = self.entry.as_bytes().to_vec();
        entry.push(0);
        let entry = module.add_data(format!("__tvm_ffi_codegen_entry_{number}"), entry, 1);
        let compare = (!self.params.is_empty()).then(|| params::compare(module, driver));
        let sizes: Vec<_> = self
            .params
            .iter()
            .zip(0..)
            .map(|(sizes, i)| {
                let mut bytes = Vec::new();
                sizes.iter().for_each(|size| size.write(module.endianness, &mut bytes));
                (module.add_data(format!("__tvm_ffi_codegen_sizes_{number}_{i}"), bytes, 4), sizes.len())
            })
            .collect();
        let mut builder = FunctionBuilder::new(module, first_use);
        let [device, handle] = [0, 1].map(|i| builder.param(i));
        let mut outside = Steps::new(&mut builder);
        if let Some(outcome) = outside.b.call(self.device, &[device]) {
            outside.require_outcome(outcome);
        }
        let cell = row(outside.b, cells, device, 8);
        let (claimed, done) = (outside.b.block(), outside.b.block());
        if let Some(mine) = outside.b.call(driver.claim, &[cell]) {
            let mine = outside.b.icmp_imm(IntCC::Ne, mine, 0);
            outside.b.branch(mine, claimed, done, Hint::None);
        }
        outside.b.switch_to(done);
        let kernel = outside.b.load_acquire(cell);
        outside.b.store(kernel, handle, 0, MemFlags::ALIGNED);
        outside.finish(|_| {});
        builder.switch_to(claimed);
        let mut steps = Steps::new(&mut builder);
        let record = driver.record(steps.b, device);
        let capability = steps.b.load(Type::I32, record, record::CAPABILITY, MemFlags::ALIGNED);
        let library = images::choose(&mut steps, self.images, capability, |steps, image| {
            if let Some(outcome) = steps.b.call(image.load, &[device]) {
                steps.require_outcome(outcome);
            }
            image.handle(steps.b, device)
        });
        let place = steps.place();
        let entry = steps.b.data_addr(entry, 0);
        steps.call(driver, Call::Kernel, &[place, library, entry]);
        let kernel = steps.b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
        for (sizes, count) in sizes {
            let (sizes, count) = (steps.b.data_addr(sizes, 0), steps.b.iconst(Type::I32, count as i64));
            let outcome = compare.and_then(|compare| steps.b.call(compare, &[kernel, sizes, count]));
            outcome.into_iter().for_each(|outcome| steps.require_outcome(outcome));
        }
        self.set_attributes(&mut steps, record, kernel);
        end_claim(steps.b, cell, kernel);
        steps.b.store(kernel, handle, 0, MemFlags::ALIGNED);
        steps.finish(|b| {
            let null = b.ptr_const(0);
            end_claim(b, cell, null);
        });
        builder.finish();
    }

    fn set_attributes(&self, steps: &mut Steps<'_, '_>, record: Value, kernel: Value) {
        let driver = self.driver;
        let b = &mut *steps.b;
        let device = b.load(Type::I32, record, record::DEVICE, MemFlags::ALIGNED);
        let most = self.shared.asked().map(|most| match most {
            MostShared::Bytes(bytes) => b.iconst(Type::I32, bytes),
            MostShared::AllBut(bytes) => {
                let most = b.load(Type::I32, record, record::SHARED, MemFlags::ALIGNED);
                b.binary_imm(BinaryOp::Sub, most, i64::from(bytes))
            }
        });
        if let (Some(attribute), Some(most)) = (driver.api.most_shared, most) {
            let attribute = steps.b.iconst(Type::I32, i64::from(attribute));
            steps.call(driver, Call::SetAttribute, &[attribute, most, kernel, device]);
        }
        if let Some(attribute) = driver.api.non_portable_cluster.filter(|_| self.non_portable_cluster) {
            let (attribute, one) = (steps.b.iconst(Type::I32, i64::from(attribute)), steps.b.iconst(Type::I32, 1));
            steps.call(driver, Call::SetAttribute, &[attribute, one, kernel, device]);
        }
    }
}

/// The name of a function of the driver, a C string; its place in the table an `I64` is.
pub(super) fn name_of(b: &mut FunctionBuilder<'_>, driver: &Driver, place: Value) -> Value {
    let offset = b.binary_imm(BinaryOp::Mul, place, NAME);
    let names = b.data_addr(driver.names, 0);
    b.ptr_add(names, offset)
}
