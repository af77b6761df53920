//! The state of a module's launches on the devices of one API, in the module's memory. It has the functions that
//! launches call, one record per device, and then the cells of images and kernels.
//!
//! Everything is zero until the first use of a device. The [helpers](super::helpers) write it.

#[cfg(feature = "_engine")]
use super::api::APIS;
use super::layout::MOST_DEVICES;
#[cfg(feature = "_engine")]
use crate::ir::Data;
use crate::ir::{FuncRef, Val};

/// The offset of the driver's function that launches a kernel.
pub(super) const LAUNCH: i32 = 0;
/// The offsets of the functions that launch in a device's context (`start`): for ordinary and for cooperative launches.
pub(super) const START: i32 = 8;
pub(super) const START_COOPERATIVE: i32 = 16;
/// The offset of the function that encodes tensor maps (`tensor_map`).
pub(super) const TENSOR_MAP: i32 = 24;
/// The offset of `void unload(const void* table, void* state)`, which is set once a device is in use.
pub(super) const UNLOAD: i32 = 32;
/// The offset of the address of the process's table of [hooks](super::launch_hooks), or NULL. The process may replace
/// the first three functions.
pub(super) const HOOKS: i32 = 40;
/// The offsets of the functions that launch a graph and that destroy graphs (`graph`), which only modules with graphs
/// have.
pub(super) const LAUNCH_GRAPH: i32 = 48;
pub(super) const DESTROY_GRAPHS: i32 = 56;

/// The offset of the function that writes global variables (`globals`), which only modules with such launches have.
pub(super) const WRITE_GLOBALS: i32 = 64;

/// The functions with addresses in the state. An API may lack one.
pub(super) struct InState {
    pub start: FuncRef,
    pub start_cooperative: Option<FuncRef>,
    pub tensor_map: Option<FuncRef>,
    pub unload: FuncRef,
    pub write_globals: Option<FuncRef>,
    pub graphs: Option<GraphFunctions>,
}

/// The functions of graphs.
#[derive(Clone, Copy)]
pub(super) struct GraphFunctions {
    pub launch: FuncRef,
    pub destroy: FuncRef,
}

/// The offset of the records.
const RECORDS: i64 = 72;

/// The layout of the record of a device.
pub(super) mod record {
    pub(in crate::lower::device_api) const SIZE: i64 = 64;
    // Offset 0 is the cell: 0 when empty, 1 while claimed, otherwise its own address.
    /// The primary context.
    pub(in crate::lower::device_api) const CONTEXT: i32 = 8;
    /// The driver's number of the device.
    pub(in crate::lower::device_api) const DEVICE: i32 = 16;
    /// Ten times the major compute capability, plus the minor one.
    pub(in crate::lower::device_api) const CAPABILITY: i32 = 20;
    /// The device's attributes, in the order of [`Attributes::in_order`](super::super::api::Attributes::in_order).
    pub(in crate::lower::device_api) const ATTRIBUTES: i64 = 24;
    pub(in crate::lower::device_api) const MAJOR: i32 = 24;
    pub(in crate::lower::device_api) const MINOR: i32 = 28;
    pub(in crate::lower::device_api) const SHARED: i32 = 48;
}

/// The size of the part before the cells, in bytes.
pub(super) const FIXED: u32 = (RECORDS + MOST_DEVICES * record::SIZE) as u32;

/// The name of an API's state; `api` is the API's name in symbols.
pub(super) fn name(api: &str) -> String {
    format!("__tvm_ffi_codegen_{api}_state")
}

/// Whether a data object of a module is the state of its launches.
#[cfg(feature = "_engine")]
pub(crate) fn is_state_of_launches(data: &Data) -> bool {
    APIS.into_iter().any(|api| data.name == name(api.name))
}

/// The per-device record in the state; `device` is an `I32`.
pub(super) fn record_of<'c>(state: Val<'c>, device: Val<'c>) -> Val<'c> {
    row(state + RECORDS, device, record::SIZE)
}

/// The address of a row in a table; `number` is an `I32`.
pub(super) fn row<'c>(rows: Val<'c>, number: Val<'c>, bytes: i64) -> Val<'c> {
    rows + number.zext() * bytes
}
