//! Values that a function checks and takes apart, on the interpreter and on every backend. All must produce the same
//! results.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::RefCell;
use std::ffi::{c_char, c_void};

use super::*;
use crate::backend::{Backend, OptLevel};
use crate::engine::{Jit, NativeHost};
use crate::ir::interp::{Datum, Interpreter};
use crate::ir::{ConvertOp, FuncSig, HOST_ENDIANNESS, Linkage, VerifiedModule, verify};
use crate::lower::binder;
use crate::lower::unit::Unit;
use tvm_ffi_runtime::abi::{DLDataType, DLDevice, DLDeviceType, DLTensor, TVMFFIAny, TVMFFIAnyValue};
use tvm_ffi_runtime::error::take_raised;
use tvm_ffi_runtime::{Any, AnyView, Array, Function, List, Shape, Tensor};

const CALLER: &str = "f(x: Tensor([n, m], float32))";
const ORIGINS: [(&str, i64); 2] = [("n", 3), ("m", 4)];

/// Added to the error code that the function returns when it rejects a value.
const REFUSED: i64 = 100;

/// How to display the words of a value while the function runs.
#[derive(Clone, Copy, Debug)]
enum Look {
    /// Numbers and pointers.
    Word,
    /// The address of characters, and their number.
    Text,
    /// The address of integers, and their number.
    Numbers,
    /// The address of a `TVMFFIAny`.
    Any,
    /// The address of `TVMFFIAny`s, and their number.
    Anys,
    /// A `DLTensor*`: its sizes and strides.
    Descriptor,
    /// The address of a float.
    Data,
}

/// How to display the words of a type.
fn looks(ty: &ParamType) -> Vec<Look> {
    match ty {
        ParamType::Str | ParamType::Bytes => vec![Look::Text],
        ParamType::Shape(_) => vec![Look::Numbers],
        ParamType::Any => vec![Look::Any],
        ParamType::Array(_) => vec![Look::Anys],
        ParamType::Tensor(tensor) if tensor.is_open() => vec![Look::Descriptor],
        ParamType::Tensor(_) => vec![Look::Data],
        ParamType::Tuple(items) => items.iter().flat_map(looks).collect(),
        ParamType::None | ParamType::Int(_) | ParamType::Bool(_) => Vec::new(),
        ParamType::Optional(inner) if crate::lower::convention::has_null(inner) => looks(inner),
        ParamType::Optional(inner) => [vec![Look::Word], looks(inner)].concat(),
        _ => vec![Look::Word],
    }
}

thread_local! {
    static LOOKS: RefCell<Vec<Look>> = const { RefCell::new(Vec::new()) };
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Reads words that the function has written; words after those of the values are the variables that it bound.
extern "C" fn see(words: *const u64, count: i64) {
    // SAFETY: the function has written `count` words at `words`.
    let mut words = unsafe { std::slice::from_raw_parts(words, count as usize) }.iter().copied();
    let mut next = || words.next();
    let pointer = |word: u64| std::ptr::with_exposed_provenance::<c_void>(word as usize);
    let mut seen = Vec::new();
    let show = |any: *const TVMFFIAny| {
        // SAFETY: the value is alive while the function runs.
        let view = unsafe { AnyView::from_raw(*any) };
        format!("{view:?}")
    };
    for look in LOOKS.take() {
        let first = next().unwrap();
        if first == 0 && !matches!(look, Look::Word) {
            seen.push("nothing".to_owned());
            if matches!(look, Look::Text | Look::Numbers | Look::Anys) {
                assert_eq!(next(), Some(0));
            }
            continue;
        }
        // SAFETY: (all below) the checks guarantee that the words match the type.
        seen.push(unsafe {
            match look {
                Look::Word => format!("{:#x}", first),
                Look::Text => {
                    let text = std::slice::from_raw_parts(pointer(first).cast::<u8>(), next().unwrap() as usize);
                    format!("{:?}", String::from_utf8_lossy(text))
                }
                Look::Numbers => {
                    let size = next().unwrap() as usize;
                    format!("{:?}", std::slice::from_raw_parts(pointer(first).cast::<i64>(), size))
                }
                Look::Any => show(pointer(first).cast()),
                Look::Anys => {
                    let size = next().unwrap() as usize;
                    let all: Vec<_> = (0..size).map(|i| show(pointer(first).cast::<TVMFFIAny>().add(i))).collect();
                    format!("[{}]", all.join(", "))
                }
                Look::Descriptor => {
                    let tensor = &*pointer(first).cast::<DLTensor>();
                    let part = |of: *mut i64| std::slice::from_raw_parts(of, tensor.ndim as usize);
                    format!("{:?} {:?} {}", part(tensor.shape), part(tensor.strides), *tensor.data.cast::<f32>())
                }
                Look::Data => (*pointer(first).cast::<f32>()).to_string(),
            }
        });
    }
    let vars: Vec<_> = std::iter::from_fn(next).map(|var| var as i64).collect();
    if !vars.is_empty() {
        seen.push(format!("dimension variables {vars:?}"));
    }
    SEEN.set(seen);
}

/// Parses the types of a row, separated by semicolons: `int64; str`.
fn types(text: &str) -> Vec<ParamType> {
    text.split("; ").map(|ty| ty.parse().unwrap()).collect()
}

/// Names a single value as a call's result, and several values as captured values.
fn expected(types: Vec<ParamType>) -> Expected<'static> {
    let (place, name): (_, fn(usize) -> String) = match types.len() {
        1 => ("called by", |_| "result of `callee`".to_owned()),
        _ => ("of", |number| format!("captured value #{number}")),
    };
    let values = types.into_iter().enumerate().map(|(number, ty)| (name(number), ty));
    Expected {
        values: values.collect(),
        place: format!("{place} `{CALLER}`"),
        dtype_policy: DTypePolicy::EXACT,
        known: Vec::new(),
    }
}

/// `int32_t f(const TVMFFIAny* values)`: checks the values, and calls `see` with their contents.
fn module(types: &[ParamType]) -> Result<VerifiedModule, String> {
    let mut unit = Unit::new(HOST_ENDIANNESS);
    let Unit { module, pool, .. } = &mut unit;
    let f = module.declare("f", FuncSig::new([Type::Ptr], Some(Type::I32)), Linkage::Export);
    let see = module.import("see", FuncSig::c([Type::Ptr, Type::I64], None));
    let mut b = FunctionBuilder::new(module, f);
    let caller: Signature = CALLER.parse().unwrap();
    let origins = ORIGINS.map(|(name, _)| origin(&caller, name));
    let known: Vec<_> = ORIGINS
        .iter()
        .zip(&origins)
        .map(|((name, value), origin)| Known { name, origin, value: b.i64(*value) })
        .collect();
    let expected = expected(types.to_vec()).knowing(known);
    let values = b.param(0);
    let mut checks = ValueChecks::default();
    let taken = checks.check(&mut b, pool, &expected, values, |b, code, _| {
        let refused = b.iconst(Type::I32, REFUSED);
        let code = b.binary(crate::ir::BinaryOp::Add, code, refused);
        b.ret(Some(code));
    })?;
    let all: Vec<_> = taken.flat().copied().chain(taken.vars.iter().map(|bound| bound.value)).collect();
    let words = b.slot(8 * all.len().max(1) as u32, 8);
    let words = b.stack_addr(words);
    for (i, value) in (0..).zip(&all) {
        let value = match b.type_of(*value) {
            Type::Ptr => b.convert(ConvertOp::PtrToInt, Type::I64, *value),
            Type::F64 => b.convert(ConvertOp::Bitcast, Type::I64, *value),
            Type::F32 => {
                let bits = b.convert(ConvertOp::Bitcast, Type::I32, *value);
                b.convert(ConvertOp::ZExt, Type::I64, bits)
            }
            Type::I64 => *value,
            _ => b.convert(ConvertOp::ZExt, Type::I64, *value),
        };
        b.store(value, words, 8 * i, MemFlags::ALIGNED);
    }
    let count = b.i64(all.len() as i64);
    b.call(see, &[words, count]);
    let done = b.iconst(Type::I32, 0);
    b.ret(Some(done));
    b.finish();
    binder::define(&mut unit.module, Linkage::Local, unit.pool.data, &mut unit.pool.constants);
    verify(unit.finish()).map_err(|e| e.to_string())
}

fn jits() -> Vec<Jit> {
    let runtime = tvm_ffi_runtime::capi::symbols();
    let mut jits = Vec::new();
    for backend in Backend::ALL {
        for level in [OptLevel::None, OptLevel::Full] {
            let symbols = runtime.iter().map(|(name, address)| (*name, address.as_ptr().cast()));
            let builder = Jit::builder().backend(*backend).opt_level(level).symbols(symbols);
            jits.push(builder.symbol("see", see as *const u8).build().unwrap());
        }
    }
    jits
}

/// The outcome of a call: the text that `see` has displayed, or the error.
fn outcome(code: i32) -> Result<String, String> {
    match (code, take_raised()) {
        (0, None) => Ok(SEEN.take().join("; ")),
        (code, Some(error)) => {
            assert_eq!(i64::from(code), REFUSED - 1);
            Err(format!("{}: {}", error.kind(), error.message()))
        }
        (code, None) => panic!("{code} without an error"),
    }
}

/// Runs on the interpreter and every backend, and returns the common outcome.
fn run(text: &str, values: &[TVMFFIAny]) -> Result<String, String> {
    let types = types(text);
    let module = module(&types).unwrap();
    let looks: Vec<_> = types.iter().flat_map(looks).collect();
    let jits = jits();
    LOOKS.set(looks.clone());
    let mut interpreter = Interpreter::new(&module, NativeHost::new(jits[0].clone())).unwrap();
    let args = [Datum::Ptr(values.as_ptr().expose_provenance() as u64)];
    // SAFETY: there is one value for each type.
    let code = unsafe { interpreter.run("f", &args) }.unwrap();
    let Some(Datum::I32(code)) = code else { panic!("{code:?}") };
    let first = outcome(code as i32);
    for jit in jits {
        LOOKS.set(looks.clone());
        let code = jit.load(&module).unwrap();
        // SAFETY: this is the function's type.
        let f: extern "C" fn(*const TVMFFIAny) -> i32 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
        assert_eq!(outcome(f(values.as_ptr())), first, "{text} on {:?}", jit.backend());
    }
    first
}

/// Runs with values that stay alive during the call.
fn check(text: &str, values: &[Any], expected: Result<&str, &str>) {
    // SAFETY: an `Any` is a `TVMFFIAny`; these are borrowed.
    let raw: Vec<TVMFFIAny> = values.iter().map(|value| unsafe { std::mem::transmute_copy(value) }).collect();
    let found = run(text, &raw);
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
}

fn tensor(shape: &[i64]) -> Any {
    let elements: Vec<f32> = (0..shape.iter().product()).map(|i| i as f32 + 0.5).collect();
    Tensor::from_vec(elements, shape).unwrap().into()
}

#[test]
fn plain_values_are_taken_as_they_are() {
    check("int64", &[7i64.into()], Ok("0x7"));
    check("int8", &[(-1i64).into()], Ok("0xff"));
    check("float64", &[1.0f64.into()], Ok("0x3ff0000000000000"));
    check("bool", &[true.into()], Ok("0x1"));
    check("None", &[().into()], Ok(""));
    check("Any", &["a text that is too long".into()], Ok("\"a text that is too long\""));
    check("str", &["short".into()], Ok("\"short\""));
    check("str", &["a text that is too long".into()], Ok("\"a text that is too long\""));
    let function = Any::from(Function::from_packed(|_| Ok(Any::from(1i64))));
    let address = format!("{function:?}").replace("ffi.Function(", "").replace(')', "");
    check("Function", &[function], Ok(&address));
}

/// The rules are those for arguments (contract C8).
#[test]
fn values_are_converted_as_arguments_are() {
    check("float64", &[1i64.into()], Ok("0x3ff0000000000000"));
    check("float32", &[2i64.into()], Ok("0x40000000"));
    check("int64", &[true.into()], Ok("0x1"));
    check("bool", &[2i64.into()], Ok("0x1"));
    check("handle", &[().into()], Ok("0x0"));
    check("dtype", &["float16".into()], Ok("0x11002"));
    // a mismatch of one value converts that value and keeps the others
    check(
        "float64; str; Any",
        &[1i64.into(), "abc".into(), "defg".into()],
        Ok("0x3ff0000000000000; \"abc\"; \"defg\""),
    );
}

#[test]
fn refused_values_tell_who_called_whom() {
    let wrong =
        |what: &str| format!("TypeError: Mismatched type of result of `callee` called by `{CALLER}`, expected {what}");
    check("Tensor([n], float32)", &[1i64.into()], Err(&wrong("Tensor, got int")));
    check("int64", &["x".into()], Err(&wrong("int64, got str")));
    check("Optional[Function]", &[1i64.into()], Err(&wrong("Function or None, got int")));
    check("Array[int64]", &[().into()], Err(&wrong("Array, got None")));
    let value = format!("ValueError: Mismatched value of result of `callee` called by `{CALLER}`, expected ");
    check("int8", &[300i64.into()], Err(&format!("{value}int8 (-128 to 127), got 300")));
    let part = |part: &str, what: &str| {
        format!("ValueError: Mismatched result of `callee`{part} called by `{CALLER}`, expected {what}")
    };
    check("Tensor([n], float32)", &[tensor(&[5])], Err(&part(".shape[0]", "3 (n, from x.shape[0]), got 5")));
    check("Tensor([n, m], float32)", &[tensor(&[3, 5])], Err(&part(".shape[1]", "4 (m, from x.shape[1]), got 5")));
    check("Tensor([n, m], float64)", &[tensor(&[3, 4])], Err(&part(".dtype", "float64, got float32")));
    check(
        "Tensor([n + m], float32)",
        &[tensor(&[5])],
        Err(&part(".shape[0]", "7 (n + m, n = 3 from x.shape[0], m = 4 from x.shape[1]), got 5")),
    );
    check(
        "Tensor([k, k], float32)",
        &[tensor(&[5, 6])],
        Err(&part(".shape[1]", "5 (k, from result of `callee`.shape[0]), got 6")),
    );
    let element: Any = <Array>::from_iter([Any::from(1i64), "x".into()]).into();
    check(
        "Array[int64]",
        &[element],
        Err(&format!(
            "TypeError: Mismatched type of result of `callee`[1] called by `{CALLER}`, expected int64, got str"
        )),
    );
}

#[test]
fn captured_values_are_numbered() {
    let of = format!("of `{CALLER}`, expected");
    check(
        "int64; str",
        &[1i64.into(), 2i64.into()],
        Err(&format!("TypeError: Mismatched type of captured value #1 {of} str, got int")),
    );
    check(
        "Tensor([k], float32); Tensor([k], float32)",
        &[tensor(&[2]), tensor(&[3])],
        Err(&format!(
            "ValueError: Mismatched captured value #1.shape[0] {of} 2 (k, from captured value #0.shape[0]), got 3"
        )),
    );
}

#[test]
fn structures_are_taken_apart() {
    check("Tensor([n, m], float32)", &[tensor(&[3, 4])], Ok("0.5"));
    check("Tensor([n, k], float32)", &[tensor(&[3, 9])], Ok("0.5; dimension variables [9]"));
    check("Tensor([2 * k, j], float32)", &[tensor(&[6, 2])], Ok("0.5; dimension variables [3, 2]"));
    check("Tensor([...], float32)", &[tensor(&[2, 3])], Ok("[2, 3] [3, 1] 0.5"));
    check("Optional[Tensor([k], float32)]", &[().into()], Ok("nothing; dimension variables [0]"));
    check("Optional[Tensor([k], float32)]", &[tensor(&[2])], Ok("0.5; dimension variables [2]"));
    check("Optional[int64]", &[().into()], Ok("0x0; 0x0"));
    check("Optional[int64]", &[5i64.into()], Ok("0x1; 0x5"));
    check("Shape", &[Shape::new(&[2, 3]).into()], Ok("[2, 3]"));
    let list: Any = <List>::from_iter([2i64, 3]).into();
    check("Shape([2, k])", &[list], Ok("[2, 3]; dimension variables [3]"));
    let tuple: Any = <Array>::from_iter([Any::from(1i64), "abc".into(), tensor(&[3])]).into();
    check("Tuple[float64, str, Tensor([n], float32)]", &[tuple], Ok("0x3ff0000000000000; \"abc\"; 0.5"));
    let array: Any = <Array>::from_iter([1i64, 2]).into();
    check("Array[int64]", &[array], Ok("[1, 2]"));
    check(
        "int64; Tensor([k], float32); str",
        &[1i64.into(), tensor(&[2]), "x".into()],
        Ok("0x1; 0.5; \"x\"; dimension variables [2]"),
    );
}

/// The binder's conversions are stored in the function's frame.
#[test]
fn borrowed_forms_are_taken_too() {
    let any = |index: TypeIndex, address: u64| TVMFFIAny {
        type_index: index.0,
        zero_padding: 0,
        v: TVMFFIAnyValue { v_int64: address as i64 },
    };
    let text: *const c_char = c"a borrowed text".as_ptr();
    let raw = [any(TypeIndex::RAW_STR, text.expose_provenance() as u64)];
    assert_eq!(run("str", &raw).as_deref(), Ok("\"a borrowed text\""));
    let (mut shape, mut data) = ([2i64, 1], [4.5f32, 5.5]);
    let tensor = DLTensor {
        data: data.as_mut_ptr().cast(),
        device: DLDevice { device_type: DLDeviceType::CPU, device_id: 0 },
        ndim: 2,
        dtype: DLDataType::FLOAT32,
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let raw = [any(TypeIndex::DL_TENSOR_PTR, (&raw const tensor).expose_provenance() as u64)];
    assert_eq!(run("Tensor([...], float32)", &raw).as_deref(), Ok("[2, 1] [1, 1] 4.5"));
    assert_eq!(run("Tensor([k, 1], float32)", &raw).as_deref(), Ok("4.5; dimension variables [2]"));
}

/// These errors are reported as errors in a body.
#[test]
fn types_that_no_value_has_are_refused() {
    for (text, problem) in [
        ("EnvStream", "result of `callee`: a value can't have type EnvStream; only a parameter can"),
        (
            "Tensor([i * k], float32)",
            "result of `callee`.shape[0]: nothing says the value of `i`: expected a dimension that is it alone, or \
             that can be solved for it; result of `callee`.shape[0]: nothing says the value of `k`: expected a \
             dimension that is it alone, or that can be solved for it",
        ),
        (
            "Tensor([4], float32, noalias=True)",
            "result of `callee`: expected no `noalias`: other pointers may lead to the value",
        ),
    ] {
        assert_eq!(module(&types(text)).err().as_deref(), Some(problem), "{text}");
    }
}

/// Checks whose results don't point into scratch memory share it, up to the maximum for a function.
#[test]
fn scratch_memory_is_shared_where_it_can_be() {
    let bytes = |text: &str, times: usize| {
        let mut unit = Unit::new(HOST_ENDIANNESS);
        let f = unit.module.declare("f", FuncSig::new([Type::Ptr], Some(Type::I32)), Linkage::Export);
        let mut b = FunctionBuilder::new(&mut unit.module, f);
        let (values, expected) = (b.param(0), expected(types(text)));
        let mut checks = ValueChecks::default();
        for _ in 0..times {
            checks.check(&mut b, &mut unit.pool, &expected, values, |b, code, _| b.ret(Some(code)))?;
        }
        let zero = b.iconst(Type::I32, 0);
        b.ret(Some(zero));
        b.finish();
        let slots = &unit.module.functions[f].body.as_ref().unwrap().slots;
        Ok::<u32, String>(slots.values().map(|slot| slot.size).sum())
    };
    assert_eq!(bytes("Tensor([4], float32)", 1000), bytes("Tensor([4], float32)", 1));
    assert_eq!(bytes("str", 3).unwrap(), 3 * bytes("str", 1).unwrap());
    let error = bytes("str", 1000).unwrap_err();
    assert!(error.starts_with("the checks of values need 1") && error.ends_with("and may use 131072"), "{error}");
}
