//! Checks at the end of the tests that no object is left, except objects that system libraries hold. Those live as long
//! as the process.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use tvm_ffi_runtime::object::{live_objects, live_objects_of_thread};
use tvm_ffi_runtime::registry::{list_global_names, remove_global};
use tvm_ffi_runtime::{Any, Function};

/// True if a test has registered symbols of a system library.
static HAS_SYSTEM_LIBRARIES: AtomicBool = AtomicBool::new(false);

/// An environment variable for a process that only prints how many objects are left.
pub const COUNT_ONLY: &str = "TVM_FFI_RUNTIME_TESTS_COUNT_OBJECTS";

/// Records that a test registers symbols of a system library.
pub fn expect_system_libraries() {
    HAS_SYSTEM_LIBRARIES.store(true, Ordering::Relaxed);
}

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

/// Ends the process with an error if objects are left. All threads of tests have ended by now.
extern "C" fn check() {
    for name in list_global_names() {
        remove_global(&name);
    }
    let Some(live) = live_objects() else { return };
    if std::env::var_os(COUNT_ONLY).is_some() {
        println!("\nlive objects: {live}");
        return;
    }
    let expected = if HAS_SYSTEM_LIBRARIES.load(Ordering::Relaxed) { held_by_system_libraries() } else { Some(0) };
    let Some(expected) = expected else {
        eprintln!(
            "{live} objects are left at the end of the tests: the program could not start again to count those of \
             system libraries"
        );
        return;
    };
    if live > expected {
        eprintln!("{live} objects are left at the end of the tests, of which system libraries hold {expected}");
        // SAFETY: the process ends here, without further handlers.
        unsafe { libc::_exit(99) };
    }
}

/// The number of objects that the tests of system libraries leave, counted in a separate process. `None` if none
/// starts, as on an emulator.
fn held_by_system_libraries() -> Option<usize> {
    let mut tests = Command::new(std::env::current_exe().ok()?);
    let output = tests.args(["system_lib::", "--test-threads=1"]).env(COUNT_ONLY, "1").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find_map(|line| line.strip_prefix("live objects: ")?.parse().ok())
}

#[test]
fn objects_are_counted() {
    if live_objects().is_none() {
        return;
    }
    // Other tests make objects at the same time, but fewer.
    let many: Vec<Function> = (0..100_000).map(|_| Function::from_packed(|_| Ok(Any::none()))).collect();
    assert!(live_objects().is_some_and(|live| live >= many.len()));
}

#[test]
fn a_thread_counts_the_objects_that_it_has_made() {
    let Some(before) = live_objects_of_thread() else { return };
    let made = Function::from_packed(|_| Ok(Any::none()));
    assert_eq!(live_objects_of_thread(), Some(before + 1));
    let others = std::thread::spawn(|| Function::from_packed(|_| Ok(Any::none()))).join().unwrap();
    assert_eq!(live_objects_of_thread(), Some(before + 1));
    std::thread::spawn(move || drop(made)).join().unwrap();
    assert_eq!(live_objects_of_thread(), Some(before));
    drop(others);
    assert_eq!(live_objects_of_thread(), Some(before));
}
