//! Global functions that are called for each image and device: after the image is loaded, and before it is unloaded.

use super::driver::{CLAIMED, Driver, end_claim};
use super::images::{cell as cell_of_image, field_of};
use super::layout::MOST_DEVICES;
use super::outcome::Failed;
use super::state::row;
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, Module, Type, Val};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX, byte_array, store_any, store_index};
use crate::lower::protocol::launch_table::{HookRecord, LaunchTable};
use crate::lower::protocol::{Encode, field};
use crate::lower::{capi, ffi_call};
use tvm_ffi_runtime::abi::TypeIndex;

/// The names of the functions that a launch states for its images.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::lower) struct ImageHooks {
    pub on_load: Option<String>,
    pub on_unload: Option<String>,
}

/// The functions of a module that call hooks.
#[derive(Clone, Copy, Debug)]
pub(super) struct HookFunctions {
    /// `int64_t loaded(const void* table, const void* hook, void* image, void* state, int32_t device)`: calls the
    /// function for a loaded image, unless it has been called; returns an outcome.
    pub loaded: FuncRef,
    /// `int64_t call(void* function, void* image, void* state, int32_t device)`: calls a function in the device's
    /// context; returns an outcome.
    call: FuncRef,
}

/// The contents of a hook's cell for a device after its work, without a function to call later. Otherwise the cell owns
/// that function.
const DONE: u64 = CLAIMED + 1;

impl HookFunctions {
    pub(super) fn define(module: &mut Module, driver: &Driver) -> Self {
        let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::Ptr, Type::I32], Some(Type::I64));
        let call = driver.in_context(module, "call_hook", (sig, [2, 3]), |module, name, sig| {
            module.cold_local(name, sig, |c| {
                let [function, image, _, device] = c.params();
                let steps = Steps::new(c);
                let (args, result) = (c.slot(2 * size_of::<tvm_ffi_runtime::abi::TVMFFIAny>()), ffi_call::any_slot(c));
                let second = args + size_of::<tvm_ffi_runtime::abi::TVMFFIAny>() as i64;
                c.with(|b| {
                    store_any(b, args.value(), TypeIndex::OPAQUE_PTR, image.value());
                    store_index(b, second.value(), TypeIndex::DEVICE);
                });
                second.store(PAYLOAD, c.i32(i64::from(driver.api.device.0)));
                second.store(PAYLOAD + 4, device);
                let code = ffi_call::call(c, function, args, 2, result);
                steps.require(code.is(0), Failed::Hook, code);
                let is_object = result.load(Type::I32, TYPE_INDEX).ge(i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
                c.pass_unless(is_object, || ffi_call::release(c, result.load(Type::Ptr, PAYLOAD)));
                steps.finish(|| {});
            })
        });
        HookFunctions { loaded: loaded(module, driver, call), call }
    }

    /// Emits the calls for all loaded images of a module, before they are unloaded. Their failures can't be reported. A
    /// driver that has shut down has no context to call them in.
    pub(super) fn unload(self, driver: &Driver, table: Val<'_>, state: Val<'_>) {
        let c = table.emitter();
        let count = field_of(table, field!(LaunchTable, hooks));
        let first = table + field_of(table, field!(LaunchTable, first_hook));
        c.for_up(count, |number| {
            let hook = first + number * HookRecord::SIZE as i64;
            let image = table + field_of(hook, field!(HookRecord, image));
            let cells = state + field_of(hook, field!(HookRecord, cells));
            c.for_up(c.i64(MOST_DEVICES), |device| {
                let device = device.truncate();
                let cell = row(cells, device, 8);
                let function = cell.load_acquire();
                c.pass_unless(function.ugt(DONE as i64), || {
                    cell.store(0, c.null());
                    let image = cell_of_image(driver.api, image, state, device).load_acquire();
                    let outcome = c.result(self.call, &[function, image, state, device]);
                    c.pass_unless(outcome.is_not(0), || ffi_call::drop_raised(c));
                    ffi_call::release(c, function);
                });
            });
        });
    }
}

/// `int64_t find(const char* name, int64_t bytes, int32_t offset, void** function)`: finds a global function by its
/// name, and returns an outcome. `offset` is that of the name in the table.
fn find(module: &mut Module, driver: &Driver) -> FuncRef {
    let name = format!("__tvm_ffi_codegen_{}_find_hook", driver.api.name);
    module.cold_local(name, FuncSig::c([Type::Ptr, Type::I64, Type::I32, Type::Ptr], Some(Type::I64)), |c| {
        let [name, bytes, offset, function] = c.params();
        let steps = Steps::new(c);
        let code = capi::result(c, capi::FUNCTION_GET_GLOBAL, &[byte_array(c, name, bytes), function]);
        steps.require(code.is(0), Failed::Hook, code);
        steps.require(function.load(Type::Ptr, 0).is_not(0), Failed::NoFunction, offset);
        steps.finish(|| {});
    })
}

fn loaded(module: &mut Module, driver: &Driver, call: FuncRef) -> FuncRef {
    let find = find(module, driver);
    let name = format!("__tvm_ffi_codegen_{}_loaded", driver.api.name);
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::Ptr, Type::Ptr, Type::I32], Some(Type::I64));
    module.cold_local(name, sig, |c| {
        let [table, hook, image, state, device] = c.params();
        let cell = row(state + field_of(hook, field!(HookRecord, cells)), device, 8);
        let zero = c.i64(0);
        driver.claim(cell, || c.ret(zero));
        let steps = Steps::new(c);
        // both are released after a failure
        let (later, now) = (steps.place(), steps.place());
        let look_up = |[name, bytes]: [Val<'_>; 2], place| {
            c.pass_unless(bytes.is_not(0), || {
                steps.require_outcome(c.result(find, &[table + name, bytes, name.truncate(), place]));
            });
        };
        let of_load = [field!(HookRecord, on_load), field!(HookRecord, on_load_bytes)].map(|at| field_of(hook, at));
        look_up(
            [field!(HookRecord, on_unload), field!(HookRecord, on_unload_bytes)].map(|at| field_of(hook, at)),
            later,
        );
        look_up(of_load, now);
        let function = now.load(Type::Ptr, 0);
        c.pass_unless(function.is_not(0), || {
            steps.require_outcome(c.result(call, &[function, image, state, device]));
            ffi_call::release(c, function);
        });
        let kept = later.load(Type::Ptr, 0);
        end_claim(cell, kept.is_not(0).select(kept, c.ptr(DONE)));
        steps.finish(|| {
            for place in [later, now] {
                let function = place.load(Type::Ptr, 0);
                c.pass_unless(function.is_not(0), || ffi_call::release(c, function));
            }
            end_claim(cell, c.null());
        });
    })
}
