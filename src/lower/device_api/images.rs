//! The images of a module: their bytes, selecting one of several, and loading.

use std::sync::Arc;

use super::api::{Api, Call, KernelHome};
use super::driver::{Driver, end_claim};
use super::layout::MOST_DEVICES;
use super::state::row;
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, Module, Type, Val};
use crate::lower::protocol::launch_table::{IMAGE_ALIGN, ImageRecord};
use crate::lower::protocol::{DescriptorField, field};

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
    match api.home {
        KernelHome::Contexts => 1,
        KernelHome::CurrentDevice => MOST_DEVICES as u32,
    }
}

/// The address of an image's cell for a device. `device` is an `I32`; `image` is the address of its [`ImageRecord`].
pub(super) fn cell<'c>(api: &Api, image: Val<'c>, state: Val<'c>, device: Val<'c>) -> Val<'c> {
    let cells = state + field_of(image, field!(ImageRecord, cells));
    match api.home {
        KernelHome::Contexts => cells,
        KernelHome::CurrentDevice => row(cells, device, 8),
    }
}

/// `int64_t load(const void* image, void* state, const void* images, int32_t device, void** handle)`: loads an image,
/// given its record, unless it is loaded. Writes its handle and returns an outcome.
pub(super) fn load(module: &mut Module, driver: &Driver) -> FuncRef {
    let name = format!("__tvm_ffi_codegen_{}_load", driver.api.name);
    let sig = FuncSig::new([Type::Ptr, Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], Some(Type::I64));
    module.cold_local(name, sig, |c| {
        let [image, state, images, device, handle] = c.params();
        let cell = cell(driver.api, image, state, device);
        driver.claim(cell, || {
            let (loaded, zero) = (cell.load_acquire(), c.i64(0));
            handle.store(0, loaded);
            c.ret(zero);
        });
        let steps = Steps::new(c);
        let place = steps.place();
        let bytes = images + field_of(image, field!(ImageRecord, bytes)) * IMAGE_ALIGN as i64;
        match driver.api.home {
            KernelHome::Contexts => {
                let (null, none) = (c.null(), c.i32(0));
                steps.call(driver, Call::Load, &[place, bytes, null, null, none, null, null, none]);
            }
            KernelHome::CurrentDevice => {
                // a module is loaded into the thread's current device
                let before = steps.place();
                steps.call(driver, Call::Current, &[before]);
                let before = before.load(Type::I32, 0);
                steps.call(driver, Call::Enter, &[device]);
                let status = driver.call(c, Call::Load, &[place, bytes]);
                let left = driver.call(c, Call::Leave, &[before]);
                steps.require_success(Call::Load, status);
                steps.require_success(Call::Leave, left);
            }
        }
        let loaded = place.load(Type::Ptr, 0);
        end_claim(cell, loaded);
        handle.store(0, loaded);
        steps.finish(|| end_claim(cell, c.null()));
    })
}

/// Reads a field of a table record, an unsigned word, as an `I64`.
pub(super) fn field_of(record: Val<'_>, field: DescriptorField) -> Val<'_> {
    record.load(field.ty, field.offset).zext()
}
