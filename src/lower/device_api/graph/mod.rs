//! Graphs of a body's launches.
//!
//! A body notes each launch of a graph as a *shot* in its frame. At the end of the graph it passes all shots to one
//! function, which launches them in one of two ways:
//!
//! - As the driver's graph: a chain of kernel nodes in the order of the shots. The function [builds](build) it the
//!   first time, and adds a node when a shot first happens on the device. Then it [replays](replay) the graph: updates
//!   the parameters, enables the nodes of the shots that have happened, and launches the executable graph.
//! - [Singly](launch), with the same results: while the stream is captured, while another thread launches the same
//!   graph, for shots on two streams or devices, and with drivers without graphs.
//!
//! A module has a [record](shots::record) for each graph and device, in its [state](super::state). The record's lock
//! gives the graph to one thread at a time, because the driver's graphs aren't thread-safe.

mod build;
mod launch;
mod replay;
mod shots;

use super::api::Call;
use super::driver::Driver;
use super::layout::MOST_DEVICES;
use super::state::{self, GraphFunctions};
use crate::ir::{Block, DataRef, FuncRef, FuncSig, Module, Type, Val};

pub(super) use shots::{bytes_of_records, shot};
use shots::{name, node_of, record, record_of};

/// The size of a shot in bytes.
pub(in crate::lower) const BYTES_OF_SHOT: u32 = shot::SIZE;

/// Marks a shot as one that hasn't happened.
pub(in crate::lower) fn clear_shot(shot: Val<'_>) {
    shot.store(shot::KERNEL, shot.emitter().null());
}

/// A graph of a module's launches.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Graph {
    pub(super) state: DataRef,
    /// The offset of its records in the state.
    pub(super) records: u32,
    /// The number of its shots.
    pub(super) count: u32,
}

impl Graph {
    /// Launches those of the shots at an address that have happened. If that fails, raises an error and jumps to `exit`
    /// with its code. The C string at `caller` begins the message of errors that aren't about one launch.
    pub(in crate::lower) fn launch(self, shots: Val<'_>, caller: (DataRef, u32), exit: Block) {
        let c = shots.emitter();
        let launch = c.data(self.state, state::LAUNCH_GRAPH as u32).load(Type::Ptr, 0);
        // the first use of a device writes the address, so without it no launch has happened
        c.pass_unless(launch.is_not(0), || {
            let (caller, records) = (c.data(caller.0, caller.1), c.data(self.state, self.records));
            let args = [caller, records, shots, c.i64(self.count.into()), c.data(self.state, 0)];
            let code = c.indirect_result(launch::signature(), launch, &args);
            c.or_fail(code.is(0), exit, &[code]);
        });
    }

    /// Destroys the graph on all devices. `state` is the state, in which a device is in use.
    pub(super) fn destroy(self, state: Val<'_>) {
        let c = state.emitter();
        let destroy = state.load(Type::Ptr, state::DESTROY_GRAPHS);
        let args = [state + i64::from(self.records), c.i64(self.count.into())];
        c.call_indirect(destroy_signature(), destroy, &args);
    }
}

/// Defines the functions of graphs. `report` is the helper that raises errors.
pub(super) fn define(module: &mut Module, driver: &Driver, report: FuncRef) -> GraphFunctions {
    let destroy = if driver.api.has_graphs() { Some(destroy_one(module, driver)) } else { None };
    let replay = destroy.map(|destroy| {
        let build = build::define(module, driver, destroy);
        replay::define(module, driver, build)
    });
    GraphFunctions {
        launch: launch::define(module, driver, replay, report),
        destroy: destroy_all(module, driver, destroy),
    }
}

/// `void destroy(void* record, int64_t count)`: destroys the driver's graph of a record, and empties the record.
/// Statuses are ignored: it runs after another failure, or when the library is unloaded. The driver lets launches that
/// are under way finish.
fn destroy_one(module: &mut Module, driver: &Driver) -> FuncRef {
    module.cold_local(name(driver, "destroy_graph"), FuncSig::new([Type::Ptr, Type::I64], None), |c| {
        let [record, count] = c.params();
        let null = c.null();
        for (at, call) in [(record::EXECUTABLE, Call::GraphDestroyExec), (record::GRAPH, Call::GraphDestroy)] {
            let handle = record.load(Type::Ptr, at);
            c.pass_unless(handle.is_not(0), || {
                record.store(at, null);
                driver.call(c, call, &[handle]);
            });
        }
        c.for_up(count, |index| node_of(record, index).store(0, null));
        c.ret(None);
    })
}

/// The prototype of `void destroy_all(void* records, int64_t count)`.
fn destroy_signature() -> FuncSig {
    FuncSig::c([Type::Ptr, Type::I64], None)
}

/// A function that destroys a graph on all devices.
fn destroy_all(module: &mut Module, driver: &Driver, destroy: Option<FuncRef>) -> FuncRef {
    module.cold_local(name(driver, "destroy_graphs"), destroy_signature(), |c| {
        let [records, count] = c.params();
        if let Some(destroy) = destroy {
            c.for_up(c.i64(MOST_DEVICES), |device| {
                c.call(destroy, &[record_of(records, count, device.truncate()), count]);
            });
        }
        c.ret(None);
    })
}
