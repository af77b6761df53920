//! Tests on other systems and machines than this one.

mod windows;

pub use windows::windows;
