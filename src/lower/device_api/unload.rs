//! Unloading: the destructor of a module with launches.

use super::api::{Call, KernelHome};
use super::driver::{CLAIMED, Driver};
use super::image_hooks::HookFunctions;
use super::images::{cell, cells, field_of};
use super::launch_hooks::LaunchHooks;
use super::layout::MOST_DEVICES;
use super::state::{record, record_of};
use crate::ir::{FuncRef, FuncSig, Module, Type};
use crate::lower::protocol::launch_table::{ImageRecord, LaunchTable};
use crate::lower::protocol::{Encode, field};

/// `void unload(const void* table, void* state)`: unloads all loaded images and releases the contexts of all used
/// devices. A driver that has shut down has already unloaded its images.
pub(super) fn unload(
    module: &mut Module,
    driver: &Driver,
    launch_hooks: Option<LaunchHooks>,
    image_hooks: Option<HookFunctions>,
) -> FuncRef {
    let name = format!("__tvm_ffi_codegen_{}_unload", driver.api.name);
    module.cold_local(name, FuncSig::c([Type::Ptr, Type::Ptr], None), |c| {
        let [table, state] = c.params();
        if let Some(hooks) = launch_hooks {
            hooks.detach(state);
        }
        if let Some(hooks) = image_hooks {
            hooks.unload(driver, table, state);
        }
        let count = field_of(table, field!(LaunchTable, images));
        let first = table + field_of(table, field!(LaunchTable, first_image));
        c.for_up(count, |number| {
            let image = first + number * ImageRecord::SIZE as i64;
            c.for_up(c.i64(cells(driver.api).into()), |device| {
                let handle = cell(driver.api, image, state, device.truncate()).load_acquire();
                c.pass_unless(handle.ugt(CLAIMED as i64), || {
                    // the destructor can't report a failure
                    driver.call(c, Call::Unload, &[handle]);
                });
            });
        });
        match driver.api.home {
            KernelHome::Contexts => c.for_up(c.i64(MOST_DEVICES), |device| {
                let record = record_of(state, device.truncate());
                c.pass_unless(record.load_acquire().ugt(CLAIMED as i64), || {
                    driver.call(c, Call::Release, &[record.load(Type::I32, record::DEVICE)]);
                });
            }),
            KernelHome::CurrentDevice => {}
        }
        c.ret(None);
    })
}
