//! Graphs of objects as JSON: `ffi.ToJSONGraph`, `ffi.FromJSONGraph`. Each value is a node `{"type": ..., "data": ...}`
//! of the list `nodes`, where values that contain others have the numbers of their nodes. An object that is reached
//! twice is one node. Neither direction recurses with the depth of a graph.
//! No header section: upstream's `extra/serialization.cc`.

mod enums;
mod member;
mod read;
mod write;

pub(super) use read::from_json;
pub(super) use write::to_json;
