//! Points of the contract that fixtures can't express: lifetimes, and the release of memory.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_codegen::engine::KeepAlive;
use tvm_ffi_codegen::runtime::abi::{DLManagedTensor, DLTensor, TVMFFIAny, TVMFFIByteArray, TypeIndex};
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::runtime::{Any, AnyView, Function, Map, ObjectRef, Tensor, capi};
use tvm_ffi_codegen::{DLDataType, Engine, Kernel, Signature};

use crate::support::kernels;
use crate::support::sig;

/// An engine, and a token that the engine and each piece of its code hold once.
fn counting_engine() -> (Engine, Arc<()>) {
    let token = Arc::new(());
    let shared: KeepAlive = token.clone();
    (Engine::builder().keep_alive(shared).build().unwrap(), token)
}

fn compile(engine: &Engine, signature: &str, body: &str) -> Function {
    // SAFETY: the bodies keep to the shapes that their signatures state.
    unsafe { engine.compile(&sig(signature), &kernels::body(body).unwrap()).unwrap() }
}

const ADD_ONE: &str = "add_one(x: Tensor([n], float32), y: Tensor([n], float32))";

#[test]
fn code_is_given_back_with_the_last_function() {
    let (engine, token) = counting_engine();
    let idle = Arc::strong_count(&token);
    for _ in 0..20 {
        let f = compile(&engine, ADD_ONE, "add_one");
        assert_eq!(Arc::strong_count(&token), idle + 1);
        let g = f.clone();
        drop(f);
        assert_eq!(Arc::strong_count(&token), idle + 1);
        assert!(g.call((1,)).is_err());
        drop(g);
        assert_eq!(Arc::strong_count(&token), idle);
    }
    let f = compile(&engine, ADD_ONE, "add_one");
    drop(engine);
    // the function needs its own code, and that of the runtime helper for errors
    assert!(f.call((1, 2)).is_err());
    drop(f);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn functions_of_a_module_live_on_their_own() {
    let (engine, token) = counting_engine();
    let idle = Arc::strong_count(&token);
    let (double, echo) = (sig("ensure(a: int64) -> int64"), sig("echo(a: float64) -> float64"));
    let kernels = (kernels::body("ensure").unwrap(), kernels::body("echo").unwrap());
    // SAFETY: the bodies read no memory.
    let module = unsafe { engine.compile_module([(&double, &kernels.0), (&echo, &kernels.1)]) }.unwrap();
    assert_eq!(module.function_names().unwrap(), ["echo", "ensure"]);
    let f = module.get_function("ensure").unwrap().unwrap();
    let g = module.get_function("echo").unwrap().unwrap();
    assert!(module.get_function("__tvm_ffi_echo").unwrap().is_none());
    drop(module);
    assert_eq!(f.call((4,)).unwrap().cast::<i64>().unwrap(), 8);
    drop(f);
    assert_eq!(Arc::strong_count(&token), idle + 1);
    assert_eq!(g.call((1.5,)).unwrap().cast::<f64>().unwrap(), 1.5);
    drop(g);
    assert_eq!(Arc::strong_count(&token), idle);
}

#[test]
fn an_error_outlives_the_code() {
    let (engine, token) = counting_engine();
    let f = compile(&engine, ADD_ONE, "add_one");
    let raise = compile(&engine, "raise(a: int64)", "raise");
    let wrong = f.call((1, 2)).unwrap_err();
    let own = raise.call((5,)).unwrap_err();
    drop((f, raise, engine));
    assert_eq!(Arc::strong_count(&token), 1);
    assert_eq!(
        wrong.to_string(),
        format!("TypeError: Mismatched type of x on argument #0 when calling: `{ADD_ONE}`, expected Tensor, got int")
    );
    assert_eq!(own.to_string(), "KeyError: no 5 here, nor 6");
}

#[test]
fn a_raised_error_is_in_the_slot_and_the_result_is_not_touched() {
    let engine = Engine::new().unwrap();
    let f = compile(&engine, "ensure(a: int64) -> int64", "ensure");
    let mut result = TVMFFIAny::none();
    result.v.v_uint64 = 77;
    for bad in [Any::from(-1), Any::from("text"), Any::from(2.5)] {
        let mut args = [*bad.as_raw()];
        // SAFETY: the function and its argument are alive; the result is None.
        let code = unsafe { capi::TVMFFIFunctionCall(f.as_raw_handle(), args.as_mut_ptr(), 1, &raw mut result) };
        assert_eq!((code, result.type_index, result.bits()), (-1, TypeIndex::NONE.0, 77));
        assert!(take_raised().is_some());
        assert!(take_raised().is_none());
    }
}

unsafe extern "C" fn count(counter: *mut c_void) {
    // SAFETY: tests pass counters that outlive the objects.
    unsafe { &*counter.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn count_managed(managed: *mut DLManagedTensor) {
    // SAFETY: the runtime calls it once, with what the test gave it.
    unsafe { count((*managed).manager_ctx) };
}

/// An object whose deleter adds one to the counter.
fn opaque(counter: &AtomicUsize) -> ObjectRef {
    let handle = std::ptr::from_ref(counter).cast_mut().cast();
    let mut out = std::ptr::null_mut();
    let index = TypeIndex::OPAQUE_PY_OBJECT.0;
    // SAFETY: the counter outlives the object.
    let code = unsafe { capi::TVMFFIObjectCreateOpaque(handle, index, Some(count), &raw mut out) };
    assert_eq!(code, 0);
    // SAFETY: the reference is handed out.
    unsafe { ObjectRef::from_raw(out.cast()) }.unwrap()
}

#[test]
fn nothing_leaks_and_nothing_is_freed_twice() {
    let engine = Engine::new().unwrap();
    let f = compile(&engine, ADD_ONE, "add_one");
    let deleted = AtomicUsize::new(0);
    let mut data = [1.0f32, 2.0, 3.0];
    let mut shape = [3i64];
    let mut managed = DLManagedTensor {
        dl_tensor: DLTensor {
            data: data.as_mut_ptr().cast(),
            ..*Tensor::from_slice(&[0f32], &[1]).unwrap().as_dl_tensor()
        },
        manager_ctx: std::ptr::from_ref(&deleted).cast_mut().cast(),
        deleter: Some(count_managed),
    };
    managed.dl_tensor.shape = shape.as_mut_ptr();
    managed.dl_tensor.strides = std::ptr::null_mut();
    // SAFETY: all of it outlives the tensor.
    let x = unsafe { Tensor::from_dlpack(&raw mut managed, 0, false) }.unwrap();
    let y = Tensor::from_slice(&[0f32; 3], &[3]).unwrap();
    let object = opaque(&deleted);
    for _ in 0..10 {
        f.call((&x, &y)).unwrap();
        assert!(f.call((&x, &object)).is_err());
        assert!(f.call((&object, &y)).is_err());
        assert!(f.call((&x, "a string that is long enough for the heap")).is_err());
    }
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0]);
    assert_eq!(deleted.load(Ordering::SeqCst), 0);
    assert_eq!(object.strong_count(), 1);
    drop(f);
    drop(object);
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
    drop(x);
    assert_eq!(deleted.load(Ordering::SeqCst), 2);
}

#[test]
fn code_of_failed_compiles_is_not_kept() {
    let (engine, token) = counting_engine();
    let idle = Arc::strong_count(&token);
    for _ in 0..10 {
        let signature: Signature = sig("f(a: int64)");
        assert!(engine.compile_code([(&signature, &Kernel::symbol("nowhere"))]).is_err());
    }
    assert_eq!(Arc::strong_count(&token), idle);
}

#[test]
fn wrappers_of_one_module_share_their_texts() {
    let engine = Engine::new().unwrap();
    let size = |count: usize| {
        let signatures: Vec<Signature> =
            (0..count).map(|i| sig(&format!("f{i}(x: Tensor([n], float32), y: Tensor([n], float32))"))).collect();
        let kernel = Kernel::check_only();
        engine.compile_code(signatures.iter().map(|s| (s, &kernel))).unwrap().data_size()
    };
    let (one, ten) = (size(1), size(10));
    assert!(ten < 10 * one, "{ten} bytes for ten, {one} for one");
}

#[test]
fn a_byte_offset_of_an_ordinary_view_is_honoured() {
    let engine = Engine::new().unwrap();
    let f = compile(&engine, ADD_ONE, "add_one");
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[4]).unwrap();
    let y = Tensor::from_slice(&[0f32; 2], &[2]).unwrap();
    let mut view = *x.as_dl_tensor();
    let mut shape = [2i64];
    view.byte_offset = 8;
    view.shape = shape.as_mut_ptr();
    assert_eq!(view.dtype, DLDataType::FLOAT32);
    // SAFETY: the view describes part of `x`, which lives longer.
    f.call((unsafe { AnyView::from_dl_tensor(&view) }, &y)).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [4.0, 5.0]);
}

/// The type index of the result that the slow path passes when it calls a wrapper again with converted arguments.
const MARKED: i32 = i32::MIN;

#[test]
fn arguments_that_were_made_and_refused_end_in_an_error() {
    for signature in ["f(x: float64)", "f(x: float64) -> float64"] {
        // SAFETY: nothing is called, and the body reads no memory.
        let f = unsafe {
            let kernel =
                if signature.ends_with(')') { Kernel::check_only() } else { Kernel::body(|b| b.ret(b.arg("x"))) };
            Engine::new().unwrap().compile(&sig(signature), &kernel).unwrap()
        };
        let call = |index: i32, payload: TVMFFIAny| {
            let mut result = TVMFFIAny::none();
            result.type_index = index;
            result.v.v_uint64 = 77;
            // SAFETY: one argument.
            let code = unsafe { (f.as_safe_call())(std::ptr::null_mut(), &raw const payload, 1, &raw mut result) };
            (code, take_raised().map(|e| e.to_string()), result.type_index)
        };
        let (int, str) = (TVMFFIAny::from_bits(TypeIndex::INT, 3), TVMFFIAny::from_bits(TypeIndex::SMALL_STR, 3));
        let written = if signature.ends_with(')') { TypeIndex::NONE.0 } else { TypeIndex::FLOAT.0 };
        assert_eq!(call(TypeIndex::NONE.0, int), (0, None, written));
        // a rejected call leaves the result unchanged
        let (code, error, index) = call(TypeIndex::NONE.0, str);
        assert!(error.is_some_and(|error| error.ends_with("expected float64, got str")));
        assert_eq!((code, index), (-1, TypeIndex::NONE.0));
        // no caller passes a result with this type index
        let error =
            format!("TypeError: Mismatched number of arguments when calling: `{signature}`, expected 1, got -1");
        assert_eq!(call(MARKED, int), (-1, Some(error), MARKED));
    }
}

/// A str of any bytes; up to 7 of them are stored in the value.
fn str_of(bytes: &[u8]) -> Any {
    let array = TVMFFIByteArray::from_slice(bytes);
    let mut any = TVMFFIAny::none();
    // SAFETY: the array is alive, and the result is None.
    let code = unsafe { capi::TVMFFIStringFromByteArray(&raw const array, &raw mut any) };
    assert_eq!(code, 0);
    // SAFETY: the result is handed out.
    unsafe { Any::from_raw(any) }
}

#[test]
fn messages_are_utf_8_whatever_texts_came() {
    let engine = Engine::new().unwrap();
    let compile = |signature: &str| {
        // SAFETY: nothing is called.
        unsafe { engine.compile(&sig(signature), &Kernel::check_only()) }.unwrap()
    };
    let (dtype, map) = (compile("f(t: dtype)"), compile("f(m: Map[str, int64])"));
    let long = |text: &str| [&[b'x'; 157][..], text.as_bytes(), b"and more"].concat();
    let cut = "x".repeat(157);
    let many = [b"\xf0\x9f\x98\x80".repeat(50), b"\xff".to_vec()].concat();
    for (bytes, shown) in [
        (&b"flo\0t"[..], "flo?t".to_owned()),
        (b"\0", "?".to_owned()),
        (b"float32\0 is long enough for the heap\0", "float32? is long enough for the heap?".to_owned()),
        (
            "gr\u{fc}\u{df}e, \u{20ac}, \u{1f600}, \u{d7ff}\u{e000}\u{10ffff}\u{80}\u{800}\u{10000}".as_bytes(),
            String::new(),
        ),
        (b"\x80", "?".to_owned()),
        (b"a\xffb", "a?b".to_owned()),
        (b"a\xc3", "a?".to_owned()),
        (b"\xc3(", "?(".to_owned()),
        (b"\xe2\x82", "??".to_owned()),
        (b"\xe2\x82(", "??(".to_owned()),
        (b"\xf0\x9f\x98", "???".to_owned()),
        // overlong encodings, surrogates, and code points beyond the last
        (b"\xc0\x80 \xc1\xbf", "?? ??".to_owned()),
        (b"\xe0\x80\x80 \xe0\x9f\xbf", "??? ???".to_owned()),
        (b"\xf0\x80\x80\x80 \xf0\x8f\xbf\xbf", "???? ????".to_owned()),
        (b"\xed\xa0\x80 \xed\xbf\xbf", "??? ???".to_owned()),
        (b"\xf4\x90\x80\x80 \xf5\x80\x80\x80 \xfe", "???? ???? ?".to_owned()),
        // 159 bytes, minus a character that would be truncated
        (&long("\u{fc}"), format!("{cut}\u{fc}")),
        (&long("y\u{fc}"), format!("{cut}y")),
        (&long("\u{20ac}"), cut.clone()),
        (&long("\0\0\0"), format!("{cut}??")),
        (&many, "\u{1f600}".repeat(39)),
    ] {
        let shown = if shown.is_empty() { String::from_utf8(bytes.to_vec()).unwrap() } else { shown };
        let error = dtype.call((str_of(bytes),)).unwrap_err().to_string();
        assert!(error.ends_with(&format!(", expected the name of a dtype, got \"{shown}\"")), "{bytes:x?}: {error}");
        let entries = Map::try_from_entries(vec![(str_of(bytes), Any::from("no int"))]).unwrap();
        let error = map.call((entries,)).unwrap_err().to_string();
        let path = format!("Mismatched type of m[\"{shown}\"] on argument #0");
        assert!(error.contains(&path), "{bytes:x?}: {error}");
        if !bytes.contains(&0) {
            let text = [bytes, b"\0"].concat();
            let arg = TVMFFIAny::from_bits(TypeIndex::RAW_STR, text.as_ptr() as u64);
            let mut result = TVMFFIAny::none();
            // SAFETY: one argument, a C string that is alive.
            let code = unsafe { (dtype.as_safe_call())(std::ptr::null_mut(), &raw const arg, 1, &raw mut result) };
            let error = take_raised().unwrap().to_string();
            assert!(code == -1 && error.ends_with(&format!("got \"{shown}\"")), "{bytes:x?}: {error}");
        }
    }
}

#[test]
fn a_caller_may_pass_any_handle() {
    // SAFETY: nothing is called.
    let f = unsafe { Engine::new().unwrap().compile(&sig("f(x: float64)"), &Kernel::check_only()).unwrap() };
    let mut arg = TVMFFIAny::from_bits(TypeIndex::INT, 3);
    let call = |handle: *mut c_void, args: *const TVMFFIAny| {
        let mut result = TVMFFIAny::none();
        // SAFETY: one argument, as stated, or none, which is rejected. Only the wrapper looks at the handle.
        let code = unsafe { (f.as_safe_call())(handle, args, 1, &raw mut result) };
        (code, take_raised().map(|e| e.to_string()))
    };
    // an int is converted to a float
    assert_eq!(call(f.as_raw_handle(), &raw const arg), (0, None));
    // the handle isn't accessed, so any value works
    let address = (&raw mut arg).cast::<c_void>();
    for handle in [0, 1, 8, 16, usize::MAX]
        .map(|bytes| address.wrapping_byte_add(bytes))
        .into_iter()
        .chain([std::ptr::null_mut(), std::ptr::without_provenance_mut(1)])
    {
        assert_eq!(call(handle, &raw const arg), (0, None));
    }
    // neither does a result that is not there, of a function without one
    // SAFETY: as above.
    assert_eq!(unsafe { (f.as_safe_call())(address, &raw const arg, 1, std::ptr::null_mut()) }, 0);
    // a call with a NULL argument array has its own message
    let error = call(std::ptr::null_mut(), std::ptr::null()).1.unwrap();
    assert!(error.contains("Mismatched argument array"), "{error}");
}
