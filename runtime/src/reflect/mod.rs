//! Operations on any object, using the fields and attributes registered for its type: string forms, copies, comparison,
//! hashes, creation. Also the built-in types with fields.
//! No header section: upstream has these in `extra/dataclass.cc`, `extra/reflection_extra.cc`, `extra/json_*.cc`,
//! `object.cc`.

mod accessors;
pub(crate) mod big_int;
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
