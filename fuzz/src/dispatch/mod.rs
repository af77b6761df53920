//! Tables of functions by keys: an input calls a table and changes it, on one thread or on two.

mod alone;
mod keys;
mod together;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arbitrary::Unstructured;
use tvm_ffi_codegen::runtime::object::live_objects_of_thread;
use tvm_ffi_codegen::runtime::{AnyView, Function};

/// The maximum number of steps of an input.
const LONGEST: usize = 200;

/// Runs an input's steps: on one thread unless the first byte says otherwise.
///
/// # Panics
/// A table differs from its model, or functions are left.
pub fn run(input: &[u8]) {
    let Some((first, steps)) = input.split_first() else { return };
    let before = live_objects_of_thread();
    match first % 8 {
        // threads take a hundred times as long
        7 => together::run(steps),
        _ => alone::run(&mut Unstructured::new(steps)),
    }
    assert_eq!(live_objects_of_thread(), before, "objects are left");
}

/// Functions that return a number and count themselves.
#[derive(Clone, Default)]
struct Functions(Arc<AtomicI64>);

impl Functions {
    /// A function that returns a number. Its first argument, if there is one, has to be `argument`.
    fn of(&self, number: i64, argument: i64) -> Function {
        let live = Live(Arc::clone(&self.0));
        live.0.fetch_add(1, Ordering::SeqCst);
        Function::from_packed(move |args: &[AnyView<'_>]| {
            assert!(live.0.load(Ordering::SeqCst) > 0, "a dropped function runs");
            if let [first, ..] = args {
                assert_eq!(first.cast::<i64>()?, argument, "another argument than the call's");
            }
            Ok(number.into())
        })
    }

    fn live(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Counts a function until it is dropped.
struct Live(Arc<AtomicI64>);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
