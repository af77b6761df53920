//! Source locations of the IR, as tools see them: in objects, and in running code.

mod objects;
mod perf;
mod program;
mod running;
