//! Helpers for the other test modules.

use std::ffi::c_void;
use std::process::{Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::error::take_raised;
use tvm_ffi_runtime::{Any, Error, ObjectRef};

/// The number of repetitions of a test: fewer under Miri, which is a thousand times slower.
pub const fn rounds(count: usize) -> usize {
    if cfg!(miri) { count.div_ceil(1000) } else { count }
}

/// Nested values and chains of this length, dropped and walked on [`on_a_small_stack`], leave 26 bytes of stack to a
/// level: too few for a recursion.
pub const DEEP: usize = rounds(10_000);

/// Runs a test on a stack of 256 KiB.
pub fn on_a_small_stack(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, test).unwrap().join().unwrap();
    });
}

struct Kept(#[expect(dead_code, reason = "is kept and never read")] *const c_void);

// SAFETY: the address is never used.
unsafe impl Send for Kept {}

/// Keeps a value forever, in a place where leak checkers find it.
pub fn leak<T: ?Sized + 'static>(value: Box<T>) -> &'static T {
    static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    let value: &'static T = Box::leak(value);
    KEPT.lock().unwrap().push(Kept(std::ptr::from_ref(value).cast()));
    value
}

pub fn bytes(text: &str) -> TVMFFIByteArray {
    TVMFFIByteArray::from_slice(text.as_bytes())
}

/// The error behind a C function's -1.
pub fn raised(code: i32) -> Error {
    assert_eq!(code, -1);
    take_raised().unwrap()
}

/// A deleter that increments the counter that its handle points at.
pub unsafe extern "C" fn count_up(counter: *mut c_void) {
    // SAFETY: tests pass a pointer to a counter that they keep alive.
    unsafe { &*counter.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

pub fn counter_ptr(counter: &AtomicUsize) -> *mut c_void {
    std::ptr::from_ref(counter).cast_mut().cast()
}

/// Takes ownership of the object of a handle from C.
pub fn own<T: TryFrom<Any>>(handle: *mut c_void) -> T {
    // SAFETY: tests pass handles whose reference they own.
    let object = unsafe { ObjectRef::from_raw(handle.cast()) }.unwrap();
    T::try_from(Any::from(object)).ok().unwrap()
}

/// Runs `body` in a separate process, as the test called `test`, and returns its exit status. Use it for code that ends
/// the process, changes it for all tests, or may wait forever.
pub fn alone(test: &str, body: impl FnOnce()) -> ExitStatus {
    const NAME: &str = "TVM_FFI_RUNTIME_TEST_ALONE";
    if std::env::var(NAME).is_ok_and(|name| name == test) {
        body();
        std::process::exit(0);
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(NAME, test)
        // Capturing a stack for each of many errors takes longer than the test itself.
        .env("TVM_FFI_BACKTRACE", "0")
        .spawn()
        .unwrap();
    // ThreadSanitizer on a busy machine needs more than a minute for some of the tests
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(300) {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().and_then(|()| child.wait()).unwrap();
    panic!("{test} waits for ever");
}

/// A field of 8 bytes at offset 24, without accessors, with a default value.
pub fn field_with_default(name: &'static str, default: TVMFFIAny, ty: TypeIndex) -> TVMFFIFieldInfo {
    TVMFFIFieldInfo {
        name: bytes(name),
        doc: TVMFFIByteArray::EMPTY,
        metadata: TVMFFIByteArray::EMPTY,
        flags: kTVMFFIFieldFlagBitMaskHasDefault,
        size: 8,
        alignment: 8,
        offset: 24,
        getter: None,
        setter: std::ptr::null_mut(),
        default_value_or_factory: default,
        field_static_type_index: ty.0,
    }
}
