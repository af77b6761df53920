//! What works on any object by the fields and attributes that are registered about its type: texts, copies, comparison, hashes, creation;
//! and the built-in types that have fields.
//! No header section: upstream has these in `extra/dataclass.cc`, `extra/reflection_extra.cc`, `extra/json_*.cc`, `object.cc`.

mod accessors;
mod builtin;
mod children;
mod compare;
mod convert;
mod copy;
mod create;
mod field;
mod globals;
mod hash;
mod init;
mod instance;
mod json;
mod paths;
mod repr;
mod text;
mod types;

pub(crate) use globals::globals;
pub(crate) use types::types;
