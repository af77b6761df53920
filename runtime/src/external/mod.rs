//! The C symbols of an external runtime. They are found once, at run time, so nothing has to be linked against it.
//! Header: everything in `c_api.h` and `extra/c_env_api.h` that safe Rust code needs. Feature `external`.

mod api;
mod hooks;
mod load;
mod order;
mod types;

pub(crate) use api::Api;
pub(crate) use hooks::{IS_USED, allocator, set_allocator, set_raised, take_raised};
pub(crate) use load::{Unavailable, address, api};
pub(crate) use order::in_turn;
pub(crate) use types::{registered_type_info, type_info};
