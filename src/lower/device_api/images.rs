//! The images of a module: their bytes, selecting one of several, and loading.

use std::sync::Arc;

use super::api::{Api, Call, KernelHome};
use super::driver::{CLAIMED, Driver, end_claim};
use super::layout::MOST_DEVICES;
use super::state::{record, record_of, row};
use super::steps::Steps;
use crate::ir::{
    BinaryOp, ConvertOp, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};
use crate::lower::protocol::launch_table::{IMAGE_ALIGN, ImageRecord, LaunchTable};
use crate::lower::protocol::{DescriptorField, Encode, field};

/// An image of a kernel, and the devices that it is for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::lower) struct DeviceImage {
    pub bytes: Arc<[u8]>,
    pub rule: ImageRule,
}

/// The devices that an image supports, as compute capabilities: ten times the major number, plus the minor one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(in crate::lower) enum ImageRule {
    /// Only this capability: machine code that uses architecture-specific features.
    Exact(u32),
    /// The same major number and at least this minor number: other machine code.
    Family(u32),
    /// Any device: the driver selects the code in the image.
    Any,
    /// At least this capability: PTX, which the driver compiles.
    Least(u32),
}

/// The images of a kernel, in order of preference.
pub(in crate::lower) fn by_preference(images: &[DeviceImage]) -> Vec<&DeviceImage> {
    let mut sorted: Vec<_> = images.iter().collect();
    sorted.sort_by_key(|image| match image.rule {
        ImageRule::Exact(number) => (0, u32::MAX - number),
        ImageRule::Family(number) => (1, u32::MAX - number),
        ImageRule::Any => (2, 0),
        ImageRule::Least(number) => (3, u32::MAX - number),
    });
    sorted
}

impl ImageRule {
    /// The range of compute capabilities that an image supports: the first, and one past the last.
    pub(super) fn capabilities(self) -> [u32; 2] {
        match self {
            ImageRule::Any => [0, ALL],
            ImageRule::Exact(number) => [number, number + 1],
            ImageRule::Least(number) => [number, ALL],
            ImageRule::Family(number) => [number, number / 10 * 10 + 10],
        }
    }
}

/// One past all compute capabilities.
const ALL: u32 = i32::MAX as u32;

/// The number of cells of an image.
pub(super) fn cells(api: &Api) -> u32 {
    if api.home == KernelHome::Contexts { 1 } else { MOST_DEVICES as u32 }
}

/// The address of an image's cell for a device. `device` is an `I32`; `image` is the address of its [`ImageRecord`].
fn cell(b: &mut FunctionBuilder<'_>, api: &Api, image: Value, state: Value, device: Value) -> Value {
    let cells = field_of(b, image, field!(ImageRecord, cells));
    let cells = b.ptr_add(state, cells);
    if api.home == KernelHome::Contexts { cells } else { row(b, cells, device, 8) }
}

/// `int64_t load(const void* image, void* state, const void* images, int32_t device, void** handle)`: loads an image,
/// given its record, unless it is loaded. Writes its handle and returns an outcome.
pub(super) fn load(module: &mut Module, driver: &Driver) -> FuncRef {
    let name = format!("__tvm_ffi_codegen_{}_load", driver.api.name);
    let sig = FuncSig::new([Type::Ptr, Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], Some(Type::I64));
    let func = module.declare(name, sig, Linkage::Local);
    module.functions[func].cold = true;
    let mut builder = FunctionBuilder::new(module, func);
    let b = &mut builder;
    let [image, state, images, device, handle] = [0, 1, 2, 3, 4].map(|i| b.param(i));
    let cell = cell(b, driver.api, image, state, device);
    let (claimed, done) = (b.block(), b.block());
    if let Some(mine) = b.call(driver.claim, &[cell]) {
        let mine = b.icmp_imm(IntCC::Ne, mine, 0);
        b.branch(mine, claimed, done, Hint::None);
    }
    b.switch_to(done);
    let (loaded, zero) = (b.load_acquire(cell), b.i64(0));
    b.store(loaded, handle, 0, MemFlags::ALIGNED);
    b.ret(Some(zero));
    b.switch_to(claimed);
    let mut steps = Steps::new(b);
    let place = steps.place();
    let offset = field_of(steps.b, image, field!(ImageRecord, bytes));
    let offset = steps.b.binary_imm(BinaryOp::Mul, offset, IMAGE_ALIGN as i64);
    let bytes = steps.b.ptr_add(images, offset);
    if driver.api.home == KernelHome::Contexts {
        let (null, none) = (steps.b.ptr_const(0), steps.b.iconst(Type::I32, 0));
        steps.call(driver, Call::Load, &[place, bytes, null, null, none, null, null, none]);
    } else {
        // a module is loaded into the thread's current device
        let before = steps.place();
        steps.call(driver, Call::Current, &[before]);
        let before = steps.b.load(Type::I32, before, 0, MemFlags::ALIGNED);
        steps.call(driver, Call::Enter, &[device]);
        let status = driver.call(steps.b, Call::Load, &[place, bytes]);
        let left = driver.call(steps.b, Call::Leave, &[before]);
        steps.require_success(Call::Load, status);
        steps.require_success(Call::Leave, left);
    }
    let loaded = steps.b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
    end_claim(steps.b, cell, loaded);
    steps.b.store(loaded, handle, 0, MemFlags::ALIGNED);
    steps.finish(|b| {
        let null = b.ptr_const(0);
        end_claim(b, cell, null);
    });
    builder.finish()
}

/// `void unload(const void* table, void* state)`: unloads all loaded images and releases the contexts of all used
/// devices. A driver that has shut down has already unloaded its images.
pub(super) fn unload(module: &mut Module, driver: &Driver) -> FuncRef {
    let name = format!("__tvm_ffi_codegen_{}_unload", driver.api.name);
    let func = module.declare(name, FuncSig::c([Type::Ptr, Type::Ptr], None), Linkage::Local);
    module.functions[func].cold = true;
    let mut builder = FunctionBuilder::new(module, func);
    let b = &mut builder;
    let [table, state] = [0, 1].map(|i| b.param(i));
    let count = field_of(b, table, field!(LaunchTable, images));
    let first = field_of(b, table, field!(LaunchTable, first_image));
    let first = b.ptr_add(table, first);
    b.for_each_below(count, |b, number| {
        let offset = b.binary_imm(BinaryOp::Mul, number, ImageRecord::SIZE as i64);
        let image = b.ptr_add(first, offset);
        let devices = b.i64(cells(driver.api).into());
        b.for_each_below(devices, |b, device| {
            let device = b.convert(ConvertOp::Truncate, Type::I32, device);
            let cell = cell(b, driver.api, image, state, device);
            let handle = b.load_acquire(cell);
            when_filled(b, handle, |b| {
                // the destructor can't report a failure
                driver.call(b, Call::Unload, &[handle]);
            });
        });
    });
    if driver.api.home == KernelHome::Contexts {
        let devices = b.i64(MOST_DEVICES);
        b.for_each_below(devices, |b, device| {
            let device = b.convert(ConvertOp::Truncate, Type::I32, device);
            let record = record_of(b, state, device);
            let used = b.load_acquire(record);
            when_filled(b, used, |b| {
                let device = b.load(Type::I32, record, record::DEVICE, MemFlags::ALIGNED);
                driver.call(b, Call::Release, &[device]);
            });
        });
    }
    b.ret(None);
    builder.finish()
}

/// Emits code that runs only if a cell with these contents is filled.
fn when_filled(b: &mut FunctionBuilder<'_>, contents: Value, then: impl FnOnce(&mut FunctionBuilder<'_>)) {
    let (there, next) = (b.block(), b.block());
    let filled = b.icmp_imm(IntCC::UGt, contents, CLAIMED as i64);
    b.branch(filled, there, next, Hint::None);
    b.switch_to(there);
    then(b);
    b.jump(next, &[]);
    b.switch_to(next);
}

/// Reads a field of a table record, an unsigned word, as an `I64`.
pub(super) fn field_of(b: &mut FunctionBuilder<'_>, record: Value, field: DescriptorField) -> Value {
    let word = b.load(field.ty, record, field.offset, MemFlags::ALIGNED);
    b.convert(ConvertOp::ZExt, Type::I64, word)
}
