//! Launches a kernel at its first use, and raises the errors of launches: everything of a launch that is rare.

use super::api::Api;
use super::images::field_of;
use super::layout::config;
use super::outcome;
use super::start::{Place, Start};
use crate::ir::{FuncRef, FuncSig, Hint, Module, Type};
use crate::lower::protocol::field;
use crate::lower::protocol::launch_table::LaunchRecord;

/// `int32_t launch(const void* pool, uint32_t launch, const void* table, void* state, const void* images, const
/// CUlaunchConfig* config, void** params, int64_t failed)`: launches a kernel after its first-use work. `launch` is the
/// offset of its [`LaunchRecord`] in the pool. The configuration has the number of the device. If `failed` isn't 0 the
/// launch has failed with this result of [`Start::launch`]. Returns an error's code or 0.
pub(super) fn signature() -> FuncSig {
    use Type::{I32, I64, Ptr};
    FuncSig::new([Ptr, I32, Ptr, Ptr, Ptr, Ptr, Ptr, I64], Some(I32))
}

/// Defines the helper of this signature, `func`, which calls two other helpers.
pub(super) fn define(module: &mut Module, api: &Api, [first_use, report_error]: [FuncRef; 2], func: FuncRef) {
    module.define(func, |c| {
        let [pool, launch, table, state, images, config, params, failed] = c.params();
        let launch = pool + launch.zext();
        let device = config.load(Type::I32, config::DEVICE);
        let stream = config.load(Type::Ptr, config::STREAM);
        let start = Start { config: Place::Address(config), params: Place::Address(params), stream, device };
        let [begin, ready, done, report, raise] = c.blocks();
        let result = c.block_param(report, Type::I64);
        let (outcome, launched) = (c.block_param(raise, Type::I64), c.block_param(raise, Type::Ptr));
        c.branch_with(failed.is(0), (begin, &[]), (report, &[failed]), Hint::None);

        c.switch_to(begin);
        let place = c.slot(8);
        let kernel = launch.load(Type::I32, field!(LaunchRecord, kernel).offset);
        let found = c.result(first_use, &[table, kernel, state, images, device, place]);
        c.branch_with(found.is(0), (ready, &[]), (raise, &[found, c.null()]), Hint::Likely);
        c.switch_to(ready);
        let own = field_of(launch, field!(LaunchRecord, start));
        start.launch(api, place.load(Type::Ptr, 0), (state, own), (done, report));
        c.switch_to(done);
        c.ret(c.i32(0));

        c.switch_to(report);
        c.jump(raise, &[start.outcome(api, result), config]);
        c.switch_to(raise);
        let [caller, targets] = [field!(LaunchRecord, caller), field!(LaunchRecord, images)];
        let (caller, targets) = (pool + field_of(launch, caller), pool + field_of(launch, targets));
        let text = outcome::text(outcome, table, targets);
        c.ret(c.result(report_error, &[caller, text, outcome, launched, device]));
    });
}
