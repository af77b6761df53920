//! The text of the IR: modules survive printing and reading, mistakes have their places, and the fixtures in
//! `fixtures/ir` run on every executor.

mod corpus;
mod files;
mod mistakes;
mod same;
