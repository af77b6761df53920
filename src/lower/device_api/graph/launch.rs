//! Launches the shots of a graph: as a graph, or singly.

use super::super::driver::Driver;
use super::super::layout::config;
use super::super::start;
use super::super::state::{self, record as device_record};
use super::super::steps::Steps;
use super::shots::{SINGLY, has_happened, name, on_record, record, record_of, shot, shot_of};
use crate::ir::{Block, Emitter, FuncRef, FuncSig, Hint, Linkage, Module, Type, Val};

/// The prototype of `int32_t launch(const char* caller, void* records, const void* shots, int64_t count, void* state)`:
/// launches the shots that have happened. Raises the error of a failure, and returns its code, otherwise 0. `caller`
/// begins the message of errors that aren't about one shot.
pub(super) fn signature() -> FuncSig {
    FuncSig::c([Type::Ptr, Type::Ptr, Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32))
}

/// Defines that function. `replay` launches a graph, if the API has graphs.
pub(super) fn define(module: &mut Module, driver: &Driver, replay: Option<FuncRef>, report: FuncRef) -> FuncRef {
    let in_context = replay.map(|replay| in_context(module, driver, replay));
    let func = module.declare(name(driver, "launch_graph"), signature(), Linkage::Local);
    module.define(func, |c| {
        let [caller, records, shots, count, state] = c.params();
        let singly = c.block();
        if let Some(in_context) = in_context {
            let shots = Shots { shots, count, report };
            shots.launch_graph(in_context, (caller, records, state), singly);
        }
        c.jump(singly, &[]);
        c.switch_to(singly);
        Shots { shots, count, report }.launch_singly(state);
        c.ret(c.i32(0));
    });
    func
}

/// The shots of a call.
#[derive(Clone, Copy)]
struct Shots<'c> {
    shots: Val<'c>,
    /// Their number, an `I64`.
    count: Val<'c>,
    /// The helper that raises errors.
    report: FuncRef,
}

impl<'c> Shots<'c> {
    fn emitter(self) -> Emitter<'c> {
        self.shots.emitter()
    }

    /// Runs `each` for each shot that has happened.
    fn for_each(self, each: impl FnOnce(Val<'c>)) {
        let c = self.emitter();
        c.for_up(self.count, |index| {
            let shot = shot_of(self.shots, index);
            c.pass_unless(has_happened(shot), || each(shot));
        });
    }

    /// Launches the shots as a graph and returns, or jumps to `singly` if that isn't possible.
    fn launch_graph(self, in_context: FuncRef, (caller, records, state): (Val<'c>, Val<'c>, Val<'c>), singly: Block) {
        let c = self.emitter();
        let first = self.first();
        let device = first.load(Type::I32, shot::DEVICE);
        let stream = stream_of(first);
        self.for_each(|shot| {
            let same = shot.load(Type::I32, shot::DEVICE).is(device) & stream_of(shot).is(stream);
            c.or_leave(same, singly);
        });
        let lock = record_of(records, self.count, device) + i64::from(record::LOCK);
        // another thread that launches the graph isn't waited for
        c.or_leave(lock.compare_exchange(c.null(), c.ptr(1)).is(0), singly);
        let failed = c.slot(8);
        failed.store(0, c.null());
        let outcome = c.result(in_context, &[records, self.shots, self.count, state, first, failed]);
        lock.compare_exchange(c.ptr(1), c.null());
        let [launched, other] = c.blocks();
        let error = c.cold_block();
        c.branch(outcome.is(0), launched, other, Hint::Likely);
        c.switch_to(launched);
        c.ret(c.i32(0));
        c.switch_to(other);
        c.branch(outcome.is(SINGLY), singly, error, Hint::Likely);
        c.switch_to(error);
        let [of_shot, raise] = c.blocks();
        let text = c.block_param(raise, Type::Ptr);
        let about = failed.load(Type::Ptr, 0);
        c.branch_with(about.is(0), (raise, &[caller]), (of_shot, &[]), Hint::None);
        c.switch_to(of_shot);
        c.jump(raise, &[about.load(Type::Ptr, shot::CALLER)]);
        c.switch_to(raise);
        // the driver has launched nothing, so the error tells no configuration
        let null = c.null();
        c.ret(c.result(self.report, &[text, null, outcome, null, device]));
    }

    /// The first shot that has happened. If there is none, the function returns.
    fn first(self) -> Val<'c> {
        let c = self.emitter();
        let [none, look, next, found] = c.blocks();
        let index = c.block_param(next, Type::I64);
        c.jump(next, &[c.i64(0)]);
        c.switch_to(next);
        c.branch(index.lt(self.count), look, none, Hint::Likely);
        c.switch_to(none);
        c.ret(c.i32(0));
        c.switch_to(look);
        let shot = shot_of(self.shots, index);
        let again = c.block();
        c.branch(has_happened(shot), found, again, Hint::Likely);
        c.switch_to(again);
        c.jump(next, &[index + 1]);
        c.switch_to(found);
        shot
    }

    /// Launches the shots one by one.
    fn launch_singly(self, state: Val<'c>) {
        let c = self.emitter();
        self.for_each(|shot| {
            let [config, kernel, params, start, caller] =
                [shot::CONFIG, shot::KERNEL, shot::PARAMS, shot::START, shot::CALLER]
                    .map(|at| shot.load(Type::Ptr, at));
            let device = shot.load(Type::I32, shot::DEVICE);
            let outcome = c.indirect_result(start::signature(), start, &[config, kernel, params, state, device]);
            c.require(outcome.is(0), || c.ret(c.result(self.report, &[caller, c.null(), outcome, config, device])));
        });
    }
}

/// The stream of a shot.
fn stream_of(shot: Val<'_>) -> Val<'_> {
    shot.load(Type::Ptr, shot::CONFIG).load(Type::Ptr, config::STREAM)
}

/// A function that calls `replay` in the context of the device: `int64_t (void* records, const void* shots, int64_t
/// count, void* state, const void* first, void** failed)`. `first` is a shot on the device.
fn in_context(module: &mut Module, driver: &Driver, replay: FuncRef) -> FuncRef {
    let func = module.declare(name(driver, "launch_graph_in_context"), on_record(), Linkage::Local);
    module.define(func, |c| {
        let [records, shots, count, state, first, failed] = c.params();
        let device = first.load(Type::I32, shot::DEVICE);
        let steps = Steps::new(c);
        let result = steps.place();
        let call = || {
            let context = state::record_of(state, device).load(Type::Ptr, device_record::CONTEXT);
            let record = record_of(records, count, device);
            c.result(replay, &[record, shots, count, context, stream_of(first), failed])
        };
        // launching the shots singly isn't a failure
        let require = |outcome: Val<'_>| {
            let singly = outcome.is(SINGLY);
            result.store(0, singly.zext());
            steps.require_outcome(singly.select(c.i64(0), outcome));
        };
        steps.in_context(driver, (state, device), call, require);
        let singly = result.load(Type::I64, 0);
        c.pass_unless(singly.is_not(0), || c.ret(c.i64(SINGLY)));
        steps.finish(|| {});
    });
    func
}
