//! What is made for other programs: object files.

mod many;
mod memory;
mod objects;
mod targets;
