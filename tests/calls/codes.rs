//! The codes that callees return.

use tvm_ffi_codegen::runtime::Any;
use tvm_ffi_codegen::{Kernel, ParamType, ScalarType};

use super::callees::{self, take_raised_by_code};
use super::is_same;
use crate::support::library::{Library, Prepared};
use crate::support::sig;

/// Checks that a function passes on a callee's code unchanged, and the error if the callee raises one.
fn come_back(library: &Library, name: &str, codes: &[i64]) {
    let mut prepared = Prepared::new(library).unwrap();
    for &code in codes {
        let code_and_error = prepared.run(|loaded| {
            let reply = loaded.call(name, &[Any::from(code)]);
            loaded.unload();
            let raised = take_raised_by_code();
            let same = matches!((&reply.error, &raised), (Some(error), Some(raised)) if is_same(error, raised));
            (reply.code, same, reply.value.is_none())
        });
        assert_eq!(code_and_error, Ok((Ok(code as i32), true, true)), "{name}, code {code}");
    }
}

const CODES: &[i64] = &[-1, -2, 7, i32::MIN as i64, i32::MAX as i64];

#[test]
fn codes_and_error_objects_of_callees_come_back() {
    callees::register();
    let library = Library::new(vec![
        (
            sig("global(code: int64) -> int64"),
            Kernel::body(|b| {
                b.call_global("calls.text", ()).returns(ParamType::Str);
                b.call_global("calls.code", (b.arg("code"),)).run();
                b.ret(0);
            }),
        ),
        (
            sig("symbol(code: int64) -> int64"),
            Kernel::body(|b| {
                let n = b.call_symbol("global", (b.arg("code"),)).returns(ScalarType::Int64);
                b.ret(n.value());
            }),
        ),
        (
            sig("value(code: int64) -> int64"),
            Kernel::body(|b| {
                let text = b.call_global("calls.text", ()).returns(ParamType::Str);
                let function = b.call_global("calls.get", ("calls.code",)).returns(ParamType::Function);
                b.call(function, (b.arg("code"), text)).run();
                b.ret(0);
            }),
        ),
        (
            sig("tried(code: int64) -> int64"),
            Kernel::body(|b| {
                b.try_(|| b.call_symbol("symbol", (b.arg("code"),)).run(), |error| error.raise_again());
                b.ret(0);
            }),
        ),
    ]);
    let library = library.unwrap();
    for name in ["global", "symbol", "value", "tried"] {
        come_back(&library, name, CODES);
    }
}

#[test]
fn a_code_without_an_error_comes_back() {
    callees::register();
    let library = Library::of("silent(code: int64) -> int64", |b| {
        b.call_global("calls.text", ()).returns(ParamType::Str);
        // there is no error to catch
        b.try_(|| b.call_global("calls.silent", (b.arg("code"),)).run(), |_| b.ret(1));
        b.ret(0);
    });
    let mut prepared = Prepared::new(&library).unwrap();
    for &code in CODES {
        let reply = prepared.run(|loaded| {
            let reply = loaded.call("silent", &[Any::from(code)]);
            loaded.unload();
            (reply.code, reply.error.is_none())
        });
        assert_eq!(reply, Ok((Ok(code as i32), true)), "code {code}");
    }
}
