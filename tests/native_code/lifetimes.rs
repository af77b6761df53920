//! Kernel and wrapper have the same lifetime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_codegen::{Engine, Kernel};

use super::{compile, engines, int, is_mapped, object};

/// Functions that return the addresses of code and of data.
const SELF: &str =
    "static char data[8192]; long code(void) { return (long)code; } long where(void) { return (long)data; }";

/// Another test may map the kernel's old address meanwhile, so one undisturbed round is enough.
fn is_unmapped_after(mut round: impl FnMut() -> usize) -> bool {
    (0..20).any(|_| !is_mapped(round()))
}

#[test]
fn the_last_function_gives_the_memory_back() {
    let object: Arc<[u8]> = object(SELF).into();
    for engine in engines() {
        for symbol in ["code", "where"] {
            let kernel = Kernel::object(Arc::clone(&object), symbol);
            assert!(is_unmapped_after(|| {
                let function = compile(&engine, "f() -> int64", &kernel).unwrap();
                let other = function.clone();
                let address = int(&function, &[]) as usize;
                drop(function);
                assert!(is_mapped(address));
                assert_eq!(int(&other, &[]) as usize, address);
                drop(other);
                address
            }));
        }
    }
}

/// Code isn't writable, and data isn't executable.
#[test]
fn code_and_data_have_pages_of_their_own() {
    let object: Arc<[u8]> = object(SELF).into();
    for engine in engines() {
        for (symbol, expected) in [("code", "r-x"), ("where", "rw-")] {
            let function = compile(&engine, "f() -> int64", &Kernel::object(Arc::clone(&object), symbol)).unwrap();
            let address = int(&function, &[]) as usize;
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let line = maps.lines().find(|line| {
                let (start, rest) = line.split_once('-').unwrap();
                let end = rest.split(' ').next().unwrap();
                let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
                (start..end).contains(&address)
            });
            assert!(line.unwrap().contains(&format!(" {expected}")), "{line:?}");
        }
    }
}

struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

extern "C" fn nothing() {}

/// Owners belong to a compilation, not to the engine.
#[test]
fn owners_go_with_the_last_function_of_their_compilation() {
    let gone = Arc::new(AtomicUsize::new(0));
    let dropped = || gone.load(Ordering::SeqCst);
    for engine in engines() {
        gone.store(0, Ordering::SeqCst);
        let owned = |kernel: Kernel| kernel.keep_alive(Arc::new(Owner(Arc::clone(&gone))));
        let plain = compile(&engine, "f()", &Kernel::address(nothing as *const u8)).unwrap();
        let kernels = [
            owned(Kernel::address(nothing as *const u8)),
            owned(Kernel::object(object("void nothing(void) {}"), "nothing")),
            owned(Kernel::body(|_| {})),
            owned(Kernel::check_only()),
        ];
        for (number, kernel) in kernels.into_iter().enumerate() {
            let function = compile(&engine, "f()", &kernel).unwrap();
            drop(kernel);
            let clone = function.clone();
            drop(function);
            clone.call(()).unwrap();
            assert_eq!(dropped(), number);
            drop(clone);
            assert_eq!(dropped(), number + 1);
        }
        plain.call(()).unwrap();
        // two owners of one kernel, and a failing compilation
        let kernel = owned(owned(Kernel::object(object("void missing(void); void f(void) { missing(); }"), "f")));
        assert!(compile(&engine, "f()", &kernel).is_err());
        drop(kernel);
        assert_eq!(dropped(), 6);
    }
}

/// The number of mappings stays the same, however many kernels are compiled and dropped.
#[test]
fn kernels_come_and_go() {
    let object: Arc<[u8]> = object(SELF).into();
    let mappings = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    for engine in engines() {
        let cycle = |engine: &Engine| {
            for _ in 0..25 {
                let kernel = Kernel::object(Arc::clone(&object), "code");
                int(&compile(engine, "f() -> int64", &kernel).unwrap(), &[]);
            }
        };
        cycle(&engine);
        let grown = (0..5).map(|_| {
            let before = mappings();
            cycle(&engine);
            mappings().saturating_sub(before)
        });
        assert!(grown.into_iter().any(|grown| grown < 12));
    }
}
