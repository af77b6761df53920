//! Shots and records: their layouts, and what all functions of graphs do with them.

use super::super::driver::Driver;
use super::super::layout::{MOST_DEVICES, config, node_params};
use crate::ir::{Emitter, FuncSig, Type, Val};

/// A launch that a body has noted for a graph, in the body's frame.
pub(in crate::lower::device_api) mod shot {
    pub(in crate::lower::device_api) const SIZE: u32 = 48;
    /// The kernel's handle; NULL unless the launch has happened.
    pub(in crate::lower::device_api) const KERNEL: i32 = 0;
    /// The addresses of its [configuration](config), and of the array of parameter addresses.
    pub(in crate::lower::device_api) const CONFIG: i32 = 8;
    pub(in crate::lower::device_api) const PARAMS: i32 = 16;
    /// The function that launches it singly: `start` of the state.
    pub(in crate::lower::device_api) const START: i32 = 24;
    /// `Cannot launch kernel ...`, a C string.
    pub(in crate::lower::device_api) const CALLER: i32 = 32;
    /// The number of its device.
    pub(in crate::lower::device_api) const DEVICE: i32 = 40;
}

/// The layout of the record of a graph on a device.
pub(super) mod record {
    /// 0, or 1 while a thread uses the record.
    pub(in crate::lower::device_api) const LOCK: i32 = 0;
    /// The driver's graph and executable graph; NULL until they are built.
    pub(in crate::lower::device_api) const GRAPH: i32 = 8;
    pub(in crate::lower::device_api) const EXECUTABLE: i32 = 16;
    /// The first of the nodes, one per shot.
    pub(in crate::lower::device_api) const NODES: i64 = 24;
}

/// A node of a record: its handle in the driver's graph, NULL if the shot has never happened.
pub(super) mod node {
    pub(in crate::lower::device_api) const SIZE: i64 = 16;
    /// Whether it is enabled in the executable graph, an `I32`.
    pub(in crate::lower::device_api) const ENABLED: i32 = 8;
}

/// The outcome of a replay that launched nothing, because the shots have to be launched singly. The upper half of a
/// failure's outcome isn't 0.
pub(super) const SINGLY: i64 = 1;

/// The size of the records of a graph with `count` shots, in bytes.
pub(in crate::lower::device_api) fn bytes_of_records(count: u32) -> u32 {
    (bytes_of_record(count.into()) * MOST_DEVICES) as u32
}

pub(super) fn bytes_of_record(count: i64) -> i64 {
    record::NODES + node::SIZE * count
}

/// The record of a device. `count` is the number of shots, an `I64`, and `device` an `I32`.
pub(super) fn record_of<'c>(records: Val<'c>, count: Val<'c>, device: Val<'c>) -> Val<'c> {
    records + device.zext() * (count * node::SIZE + record::NODES)
}

/// The node of a shot in a record.
pub(super) fn node_of<'c>(record: Val<'c>, index: Val<'c>) -> Val<'c> {
    record + record::NODES + index * node::SIZE
}

/// The shot with that index.
pub(super) fn shot_of<'c>(shots: Val<'c>, index: Val<'c>) -> Val<'c> {
    shots + index * i64::from(shot::SIZE)
}

/// Whether a shot has happened.
pub(super) fn has_happened(shot: Val<'_>) -> Val<'_> {
    shot.load(Type::Ptr, shot::KERNEL).is_not(0)
}

/// The prototype of the functions that work on a record: `int64_t (void* record, const void* shots, int64_t count,
/// void* context, void* stream, void** failed)`. They return an outcome. After a failure, `failed` is the shot that it
/// is about, or NULL.
pub(super) fn on_record() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::Ptr, Type::I64, Type::Ptr, Type::Ptr, Type::Ptr], Some(Type::I64))
}

/// The name of a function of graphs.
pub(super) fn name(driver: &Driver, what: &str) -> String {
    format!("__tvm_ffi_codegen_{}_{what}", driver.api.name)
}

/// Writes the parameters of a shot's node, in the form of the driver.
pub(super) fn write_params<'c>(params: Val<'c>, shot: Val<'c>, context: Val<'c>) {
    let c = params.emitter();
    let config = shot.load(Type::Ptr, shot::CONFIG);
    let extents = [(node_params::GRID, config::GRID), (node_params::BLOCK, config::BLOCK)];
    let words = extents.into_iter().flat_map(|(to, from)| (0..3).map(move |i| (to + 4 * i, from + 4 * i)));
    for (to, from) in words.chain([(node_params::SHARED, config::SHARED)]) {
        params.store(to, config.load(Type::I32, from));
    }
    // the driver takes the kernel and its context where no function is given
    params.store(node_params::FUNCTION, c.null());
    params.store(node_params::PARAMS, shot.load(Type::Ptr, shot::PARAMS));
    params.store(node_params::EXTRA, c.null());
    params.store(node_params::KERNEL, shot.load(Type::Ptr, shot::KERNEL));
    params.store(node_params::CONTEXT, context);
}

/// Memory for the parameters of a node.
pub(super) fn params_slot(c: Emitter<'_>) -> Val<'_> {
    c.slot(node_params::SIZE)
}
