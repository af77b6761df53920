//! Object files, and the reader of object files and libraries.

mod cache;
mod hostile;
mod many;
mod memory;
mod objects;
mod targets;
