//! Source locations of the IR, as tools report them in objects and in running code.

mod objects;
mod perf;
mod program;
mod running;
