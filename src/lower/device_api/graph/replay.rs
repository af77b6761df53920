//! Replays the graph of a record with the parameters of new shots.

use super::super::api::Call;
use super::super::driver::Driver;
use super::super::steps::Steps;
use super::shots::{SINGLY, has_happened, name, node, node_of, on_record, params_slot, record, shot_of, write_params};
use crate::ir::{BinaryOp, FuncRef, Hint, Linkage, Module, Type, Val};

/// `CU_STREAM_CAPTURE_STATUS_NONE` (cuda.h).
const NOT_CAPTURED: i64 = 0;

/// The driver's functions that graphs need.
const NEEDED: [Call; 11] = [
    Call::IsCapturing,
    Call::GraphCreate,
    Call::GraphAddKernel,
    Call::GraphSetAttribute,
    Call::GraphAddEdges,
    Call::GraphInstantiate,
    Call::GraphSetParams,
    Call::GraphSetEnabled,
    Call::GraphLaunch,
    Call::GraphDestroyExec,
    Call::GraphDestroy,
];

/// Defines the function that launches a record's graph on a stream, with the parameters of the shots that have
/// happened. It builds the graph first where that is needed. Returns [`SINGLY`] if the stream is captured, or if the
/// driver lacks a function.
pub(super) fn define(module: &mut Module, driver: &Driver, build: FuncRef) -> FuncRef {
    let func = module.declare(name(driver, "replay_graph"), on_record(), Linkage::Local);
    module.define(func, |c| {
        let [record, shots, count, context, stream, failed] = c.params();
        let steps = Steps::new(c);
        let [unbuilt, ask, singly, free] = c.blocks();
        c.branch(record.load(Type::Ptr, record::EXECUTABLE).is(0), unbuilt, ask, Hint::Unlikely);
        c.switch_to(unbuilt);
        let has_all = NEEDED.into_iter().fold(c.bool(true), |all, call| all & driver.has(c, call));
        c.branch(has_all, ask, singly, Hint::Likely);
        c.switch_to(singly);
        c.ret(c.i64(SINGLY));

        c.switch_to(ask);
        let place = steps.place();
        steps.call(driver, Call::IsCapturing, &[stream, place]);
        c.branch(place.load(Type::I32, 0).is(NOT_CAPTURED), free, singly, Hint::Likely);
        c.switch_to(free);
        c.pass_unless(lacks_a_node(record, shots, count), || {
            let args = [record, shots, count, context, stream, failed];
            steps.require_outcome(c.result(build, &args));
        });
        let executable = record.load(Type::Ptr, record::EXECUTABLE);
        let params = params_slot(c);
        c.for_up(count, |index| {
            let (node, shot) = (node_of(record, index), shot_of(shots, index));
            let handle = node.load(Type::Ptr, 0);
            let [there, update, enable, change, next] = c.blocks();
            // without a node, the shot has never happened
            c.branch(handle.is_not(0), there, next, Hint::Likely);
            c.switch_to(there);
            let happened = has_happened(shot);
            // a shot that hasn't happened has no text
            failed.store(0, happened.select(shot, c.null()));
            c.branch(happened, update, enable, Hint::Likely);
            c.switch_to(update);
            write_params(params, shot, context);
            steps.call(driver, Call::GraphSetParams, &[executable, handle, params]);
            c.jump(enable, &[]);
            c.switch_to(enable);
            let wanted = happened.zext().truncate();
            c.branch(node.load(Type::I32, node::ENABLED).is(wanted), next, change, Hint::Likely);
            c.switch_to(change);
            steps.call(driver, Call::GraphSetEnabled, &[executable, handle, wanted]);
            node.store(node::ENABLED, wanted);
            c.jump(next, &[]);
            c.switch_to(next);
        });
        failed.store(0, c.null());
        steps.call(driver, Call::GraphLaunch, &[executable, stream]);
        steps.finish(|| {});
    });
    func
}

/// Whether a shot has happened that the graph has no node for, a `Bool`.
fn lacks_a_node<'c>(record: Val<'c>, shots: Val<'c>, count: Val<'c>) -> Val<'c> {
    let c = record.emitter();
    let lacks = c.var(Type::I64);
    lacks.set(c.i64(0));
    c.for_up(count, |index| {
        let lacking = node_of(record, index).load(Type::Ptr, 0).is(0) & has_happened(shot_of(shots, index));
        lacks.set(lacks.get().binary(BinaryOp::Or, lacking.zext()));
    });
    lacks.get().is_not(0)
}
