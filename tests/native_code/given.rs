//! Symbols and objects that are passed with a kernel, and that its code refers to.

use std::ffi::c_long;
use std::sync::Arc;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::{EngineError, Kernel};

use super::{compile, engines, int, object, refusals};
use crate::support::sig;

const SIGNATURE: &str = "f(n: int64) -> int64";
const SOURCE: &str = "extern long table[2]; long twice(long); long f(long n) { return twice(n) + table[1]; }";

extern "C" fn twice(n: c_long) -> c_long {
    2 * n
}

extern "C" fn thrice(n: c_long) -> c_long {
    3 * n
}

static TABLE: [c_long; 2] = [1, 40];

fn kernel() -> Kernel {
    Kernel::object(object(SOURCE), "f")
}

#[test]
fn addresses_stand_for_symbols_of_a_kernels_code() {
    for engine in engines() {
        let given = kernel().with_symbol("twice", twice as *const u8).with_symbol("table", (&raw const TABLE).cast());
        assert_eq!(int(&compile(&engine, SIGNATURE, &given).unwrap(), &[1]), 42);
        // another compilation can define other symbols
        let other = given.clone().with_symbol("unused", std::ptr::null());
        assert_eq!(int(&compile(&engine, SIGNATURE, &other).unwrap(), &[2]), 44);
        let threefold =
            kernel().with_symbol("twice", thrice as *const u8).with_symbol("table", (&raw const TABLE).cast());
        assert_eq!(int(&compile(&engine, SIGNATURE, &threefold).unwrap(), &[2]), 46);
        // the kernel's own symbol, without an object
        let itself = Kernel::symbol("nowhere").with_symbol("nowhere", thrice as *const u8);
        assert_eq!(int(&compile(&engine, SIGNATURE, &itself).unwrap(), &[5]), 15);
        // the code's own definitions take precedence
        let defined = Kernel::object(object("long g(void) { return 1; } long f(long n) { return n + g(); }"), "f");
        let defined = defined.with_symbol("g", std::ptr::without_provenance(8));
        assert_eq!(int(&compile(&engine, SIGNATURE, &defined).unwrap(), &[1]), 2);
    }
}

#[test]
fn symbols_that_are_still_missing_are_named() {
    for engine in engines() {
        let error = compile(&engine, SIGNATURE, &kernel().with_symbol("twice", twice as *const u8)).unwrap_err();
        let EngineError::Unresolved { names, .. } = &error else { panic!("{error}") };
        assert_eq!(names, &["table"]);
    }
}

#[test]
fn two_addresses_of_one_name_are_an_error() {
    let both = kernel()
        .with_symbol("twice", std::ptr::without_provenance(16))
        .with_symbol("table", std::ptr::without_provenance(32))
        .with_symbol("twice", std::ptr::without_provenance(48));
    for error in refusals(SIGNATURE, &both) {
        assert!(error.starts_with("`twice` is defined twice: by the address 0x10, and by the address 0x30"), "{error}");
    }
}

#[test]
fn objects_beside_a_kernels_are_linked_with_it() {
    let table = object("long table[2] = {1, 40};");
    let function = object("extern long table[]; long twice(long n) { return table[0] * 2 * n; }");
    for engine in engines() {
        let beside = kernel().beside(table.clone()).beside(function.clone());
        assert_eq!(int(&compile(&engine, SIGNATURE, &beside).unwrap(), &[1]), 42);
    }
    for error in refusals(SIGNATURE, &kernel().beside(b"no object".to_vec())) {
        assert!(error.starts_with("can't load the object beside the kernels' code: "), "{error}");
    }
}

/// A TVM FFI function in C, which returns twice its argument and an element of the table.
const CALLED: &str = "
    struct any { int type_index, padding; long value; };
    extern long table[2];
    int __tvm_ffi_called(void *self, const struct any *args, int count, struct any *result) {
        result->type_index = 1;
        result->value = 2 * args[0].value + table[1];
        return 0;
    }";

#[test]
fn bodies_call_functions_of_objects_beside_them() {
    let text = "{ let m = call symbol called(n) -> int64; return m; }";
    let kernel = Kernel::text(text, [] as [(&str, Image); 0]).unwrap();
    let table = object("long table[2] = {1, 40};");
    let beside = kernel.clone().beside(object(CALLED)).beside(table.clone());
    for engine in engines() {
        assert_eq!(int(&compile(&engine, SIGNATURE, &beside).unwrap(), &[1]), 42);
        // an object beside a symbol may define it
        let symbol = Kernel::symbol("twice").beside(object("long twice(long n) { return 2 * n; }"));
        assert_eq!(int(&compile(&engine, SIGNATURE, &symbol).unwrap(), &[4]), 8);
    }
    for error in refusals(SIGNATURE, &kernel.clone().beside(table)) {
        assert!(error.contains("`__tvm_ffi_called`"), "{error}");
    }
    let error = LibraryBuilder::new().function(&sig(SIGNATURE), &beside).emit().unwrap_err().to_string();
    assert_eq!(
        error,
        "the kernel of function `f` comes with objects, which are linked into a running process alone; leave them out, \
         and give them to the linker"
    );
}

#[test]
fn files_take_no_addresses() {
    let given = Kernel::symbol("f").with_symbol("twice", twice as *const u8).keep_alive(Arc::new(3));
    let error = LibraryBuilder::new().function(&sig(SIGNATURE), &given).emit().unwrap_err().to_string();
    assert_eq!(
        error,
        "the kernel of function `f` comes with an address of `twice` in this process, which means nothing in a file; leave it out, and \
         link what defines the symbol"
    );
}
