//! The C symbols of a runtime that is not this crate's: found once, at run time, so that nothing has to be linked against it.
//! Header: all of `c_api.h` and `extra/c_env_api.h` that safe Rust code needs. Feature `external`.

mod api;
mod load;
mod order;
mod types;

pub(crate) use api::Api;
pub(crate) use load::{Unavailable, address, api};
pub(crate) use order::in_turn;
pub(crate) use types::{registered_type_info, type_info};
