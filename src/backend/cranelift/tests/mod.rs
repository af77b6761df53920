#![allow(clippy::unwrap_used, clippy::panic)]

mod add_to;
mod targets;
