//! Tests of the whole: signatures and kernels on every executor, from the outside.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod bodies;
mod fixtures;
mod lower_errors;
mod support;
