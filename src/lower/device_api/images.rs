//! The images of a module: their bytes, the choice among several, and how they are loaded.

use std::sync::Arc;

use super::api::{Api, Call};
use super::driver::{Driver, end_claim, row};
use super::layout::MOST_DEVICES;
use super::outcome::Failed;
use super::steps::Steps;
use crate::ir::{
    BinaryOp, Block, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};

/// An image of a kernel, and the devices that it is for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::lower) struct DeviceImage {
    pub bytes: Arc<[u8]>,
    pub rule: ImageRule,
}

/// The devices that an image is for, by their compute capability: ten times the major number, and the minor one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(in crate::lower) enum ImageRule {
    /// This one alone: machine code with features of an architecture.
    Exact(u32),
    /// The same major number, and at least the minor one: other machine code.
    Family(u32),
    /// Whatever the driver finds in it.
    Any,
    /// At least this one: PTX, which the driver compiles.
    Least(u32),
}

/// The images of a kernel, the one that is preferred first.
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
    /// Whether an image is for a device, whose compute capability an `I32` is; `None` where it always is.
    fn holds(self, b: &mut FunctionBuilder<'_>, capability: Value) -> Option<Value> {
        match self {
            ImageRule::Any => None,
            ImageRule::Exact(number) => Some(b.icmp_imm(IntCC::Eq, capability, i64::from(number))),
            ImageRule::Least(number) => Some(b.icmp_imm(IntCC::SGe, capability, i64::from(number))),
            ImageRule::Family(number) => {
                let least = b.icmp_imm(IntCC::SGe, capability, i64::from(number));
                let below = b.icmp_imm(IntCC::SLt, capability, i64::from(number / 10 * 10 + 10));
                Some(b.binary(BinaryOp::And, least, below))
            }
        }
    }
}

/// An image in a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub api: &'static Api,
    /// The handles of the loaded image: one cell, or one for each device.
    cells: DataRef,
    /// `int64_t load(int32_t device)`, an outcome.
    pub load: FuncRef,
}

impl Loaded {
    pub(super) fn new(module: &mut Module, driver: &Driver, image: &[u8], number: u32) -> Self {
        // a parser of PTX wants a NUL behind it, and one behind other images does no harm
        let mut bytes = image.to_vec();
        bytes.push(0);
        let data = module.add_data(format!("__tvm_ffi_codegen_image_{number}"), bytes, 64);
        let count = if driver.api.has_contexts { 1 } else { MOST_DEVICES as usize };
        let cells = module.add_state(format!("__tvm_ffi_codegen_loaded_{number}"), 8 * count, 8);
        let name = format!("__tvm_ffi_codegen_load_image_{number}");
        let load = module.declare(name, FuncSig::new([Type::I32], Some(Type::I64)), Linkage::Local);
        module.functions[load].cold = true;
        let loaded = Loaded { api: driver.api, cells, load };
        let mut b = FunctionBuilder::new(module, load);
        loaded.define(&mut b, driver, data);
        b.finish();
        loaded
    }

    /// The number of cells.
    fn count(self) -> i64 {
        if self.api.has_contexts { 1 } else { MOST_DEVICES }
    }

    /// The cell for a device, whose number an `I32` is.
    fn cell(self, b: &mut FunctionBuilder<'_>, device: Value) -> Value {
        if self.api.has_contexts { b.data_addr(self.cells, 0) } else { row(b, self.cells, device, 8) }
    }

    /// The handle of the image on a device.
    pub(super) fn handle(self, b: &mut FunctionBuilder<'_>, device: Value) -> Value {
        let cell = self.cell(b, device);
        b.load_acquire(cell)
    }

    fn define(self, b: &mut FunctionBuilder<'_>, driver: &Driver, data: DataRef) {
        let device = b.param(0);
        let cell = self.cell(b, device);
        let (claimed, done) = (b.block(), b.block());
        if let Some(mine) = b.call(driver.claim, &[cell]) {
            let mine = b.icmp_imm(IntCC::Ne, mine, 0);
            b.branch(mine, claimed, done, Hint::None);
        }
        b.switch_to(done);
        let zero = b.i64(0);
        b.ret(Some(zero));
        b.switch_to(claimed);
        let mut steps = Steps::new(b);
        let place = steps.place();
        let image = steps.b.data_addr(data, 0);
        if driver.api.has_contexts {
            let (null, none) = (steps.b.ptr_const(0), steps.b.iconst(Type::I32, 0));
            steps.call(driver, Call::Load, &[place, image, null, null, none, null, null, none]);
        } else {
            // a module belongs to the device that is the thread's
            let before = steps.place();
            steps.call(driver, Call::Current, &[before]);
            let before = steps.b.load(Type::I32, before, 0, MemFlags::ALIGNED);
            steps.call(driver, Call::Enter, &[device]);
            let status = driver.call(steps.b, Call::Load, &[place, image]);
            let left = driver.call(steps.b, Call::Leave, &[before]);
            steps.require_success(Call::Load, status);
            steps.require_success(Call::Leave, left);
        }
        let handle = steps.b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
        end_claim(steps.b, cell, handle);
        steps.finish(|b| {
            let null = b.ptr_const(0);
            end_claim(b, cell, null);
        });
    }

    /// Unloads whatever was loaded. A driver that has shut down has unloaded it before.
    pub(super) fn unload(self, b: &mut FunctionBuilder<'_>, driver: &Driver) {
        for number in 0..self.count() {
            let cell = b.data_addr(self.cells, 8 * number as u32);
            let handle = b.load_acquire(cell);
            let (there, next) = (b.block(), b.block());
            let loaded = b.icmp_imm(IntCC::UGt, handle, super::driver::CLAIMED as i64);
            b.branch(loaded, there, next, Hint::None);
            b.switch_to(there);
            // nobody is there to be told of a failure
            driver.call(b, Call::Unload, &[handle]);
            b.jump(next, &[]);
            b.switch_to(next);
        }
    }
}

/// Chooses an image for a device by its compute capability: each image has a block, in which the code that `each` emits goes on to `found`.
pub(super) fn choose(
    steps: &mut Steps<'_, '_>,
    images: &[(ImageRule, Loaded)],
    capability: Value,
    mut each: impl FnMut(&mut Steps<'_, '_>, Loaded) -> Value,
) -> Value {
    let found: Block = steps.b.block();
    let handle = steps.b.block_param(found, Type::Ptr);
    for (rule, loaded) in images {
        let next = rule.holds(steps.b, capability).map(|holds| {
            let (here, next) = (steps.b.block(), steps.b.block());
            steps.b.branch(holds, here, next, Hint::None);
            steps.b.switch_to(here);
            next
        });
        let value = each(steps, *loaded);
        steps.b.jump(found, &[value]);
        match next {
            Some(next) => steps.b.switch_to(next),
            None => {
                steps.b.switch_to(found);
                return handle;
            }
        }
    }
    let never = steps.b.bconst(false);
    steps.require(never, Failed::Image, capability);
    let null = steps.b.ptr_const(0);
    steps.b.jump(found, &[null]);
    steps.b.switch_to(found);
    handle
}
