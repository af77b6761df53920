//! Operations on any object, using the fields and attributes registered for its type: string forms, copies, comparison,
//! hashes, creation. Also the built-in types with fields.
//! No header section: upstream has these in `extra/dataclass.cc`, `extra/reflection_extra.cc`, `extra/json_*.cc`,
//! `object.cc`.

pub(crate) mod accessors;
pub(crate) mod big_int;
pub(crate) mod builtin;
pub(crate) mod children;
mod compare;
mod convert;
mod copy;
pub(crate) mod create;
pub(crate) mod field;
mod globals;
mod hash;
mod init;
mod instance;
pub(crate) mod json;
pub(crate) mod native;
mod repr;
mod text;
pub(crate) mod types;

pub(crate) use globals::globals;
pub(crate) use types::types;
