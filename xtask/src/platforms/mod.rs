//! Tests on other systems and machines than this one.

#[cfg(test)]
mod held;
mod windows;

pub use windows::windows;
