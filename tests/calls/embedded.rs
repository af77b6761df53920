//! Bodies that make calls, in a module of the caller's.

use cranelift_jit::{JITBuilder, JITModule};
use tvm_ffi_codegen::runtime::abi::{TVMFFIAny, TVMFFISafeCallType, TypeIndex};
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::{Body, Kernel, ParamType, ScalarType, embed};

use crate::support::sig;

/// `(n: int64) -> int64`: twice the number of digits, using a global function and a function of the same module.
fn body(b: &Body<'_>) {
    b.limit_recursion(5);
    let digits = b.call_global("ffi.ReprPrint", (b.arg("n"),)).uncached().returns(ParamType::Str).size();
    b.ret(b.call_symbol("twice", (digits,)).returns(ScalarType::Int64).value());
}

/// Looks up a missing function. (If it were found, the module would keep it forever, because no code runs its
/// destructors.)
fn missing(b: &Body<'_>) {
    b.call_global("calls.nowhere", ()).run();
}

#[test]
fn a_module_of_cranelift_has_bodies_that_call() {
    let mut builder = JITBuilder::new(cranelift_module::default_libcall_names()).unwrap();
    builder.symbols(embed::runtime_symbols());
    let mut module = JITModule::new(builder);
    let [calls, twice, lost] = ["calls(n: int64) -> int64", "twice(n: int64) -> int64", "lost()"].map(sig);
    let doubling = Kernel::body(|b| b.ret(b.arg("n") * 2));
    let wrappers = [(&calls, Kernel::body(body)), (&twice, doubling), (&lost, Kernel::body(missing))];
    let ids = embed::cranelift::add_wrappers(&mut module, wrappers.map(|(sig, kernel)| (sig, kernel.into()))).unwrap();
    module.finalize_definitions().unwrap();
    let call = |index: usize, args: &[TVMFFIAny]| {
        let address = module.get_finalized_function(ids[index]);
        // SAFETY: every wrapper has that type, and the module lives until the end.
        let function = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) };
        let mut result = TVMFFIAny::none();
        // SAFETY: an array of that many arguments, and a result that is None.
        let code = unsafe { function(std::ptr::null_mut(), args.as_ptr(), args.len() as i32, &raw mut result) };
        (code, result.type_index, result.bits(), take_raised().map(|error| error.to_string()))
    };
    for (n, expected) in [(20, 4), (412, 6)] {
        assert_eq!(call(0, &[TVMFFIAny::from_bits(TypeIndex::INT, n)]), (0, TypeIndex::INT.0, expected, None));
    }
    let (code, _, _, error) = call(2, &[]);
    let text = "RuntimeError: global function `calls.nowhere`, which `lost()` calls, is not registered";
    assert_eq!((code, error.as_deref()), (-1, Some(text)));
}

#[test]
fn a_call_that_the_callee_refuses_is_an_error() {
    let mut module = JITModule::new(JITBuilder::new(cranelift_module::default_libcall_names()).unwrap());
    let (calls, twice) = (sig("calls(n: int64)"), sig("twice(s: str)"));
    let calling = Kernel::body(|b| b.call_symbol("twice", (b.arg("n"),)).run());
    let wrappers = [(&calls, calling), (&twice, Kernel::check_only())];
    let refused =
        embed::cranelift::add_wrappers(&mut module, wrappers.map(|(sig, kernel)| (sig, kernel.into()))).unwrap_err();
    let text = "the body of function `calls` has errors:\n  call of `twice`: `twice(s: str)` takes str for s, got int";
    assert_eq!(refused.to_string(), text);
}
