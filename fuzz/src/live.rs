//! Objects that an input leaves.

use tvm_ffi_codegen::runtime::object::live_objects_of_thread;

/// Runs something that leaves no objects, except those that stay until the process ends and are made once.
///
/// # Panics
/// Objects are left.
pub fn leaves_none(run: impl Fn()) {
    let before = live_objects_of_thread();
    run();
    let after = live_objects_of_thread();
    if after != before {
        run();
        assert_eq!(live_objects_of_thread(), after, "objects are left");
    }
}
