//! What is made for other programs: object files.

mod memory;
mod objects;
mod targets;
