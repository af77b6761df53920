//! When the tests have ended, no object of the runtime is left.

use tvm_ffi_codegen::runtime::object::live_objects;
use tvm_ffi_codegen::runtime::registry::{list_global_names, remove_global};

/// Runs before `main`, and lets `check` run after it.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn before_main() {
        // SAFETY: the function may run at any time.
        assert_eq!(unsafe { libc::atexit(check) }, 0);
    }
    before_main
};

/// Ends the process with an error where objects are left. All threads of tests have ended by now.
extern "C" fn check() {
    for name in list_global_names() {
        remove_global(&name);
    }
    if let Some(live @ 1..) = live_objects() {
        eprintln!("{live} objects are left at the end of the tests");
        // SAFETY: the process ends here, without further handlers.
        unsafe { libc::_exit(99) };
    }
}
