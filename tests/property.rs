//! Random signatures and random calls, right and wrong: all executors agree with each other and with the model of the
//! contract, and a right call succeeds.
//!
//! `PROPTEST_CASES` says how many signatures (each gets several calls), `TVM_FFI_CODEGEN_SEED` repeats a run.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::spec::Layout;
use tvm_ffi_codegen::{DLDataType, DLDeviceType, Device, Dim, Kernel, ParamType, ScalarType, Signature, TensorType};

use crate::support::args::Form;
use crate::support::exec::{Prepared, Program};
use crate::support::model::{self, Prediction};
use crate::support::value::{Call, Data, Strides, TensorSpec, Value};

/// Signatures in a default run.
const SIGNATURES: u32 = 50;
/// Calls of each.
const CALLS: usize = 40;

fn run<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let seed = match std::env::var("TVM_FFI_CODEGEN_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64,
    };
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let stated = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let config = Config {
        cases: stated.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    if let Err(error) = TestRunner::new_with_rng(config, rng).run(strategy, test) {
        panic!("{error}\nTVM_FFI_CODEGEN_SEED={seed} repeats this");
    }
}

fn scalar() -> impl Strategy<Value = ScalarType> {
    proptest::sample::select(ScalarType::ALL.to_vec())
}

fn dim(symbols: &'static [&'static str]) -> impl Strategy<Value = Dim> {
    prop_oneof![
        3 => proptest::sample::select(symbols).prop_map(Dim::from),
        2 => (0i64..5).prop_map(Dim::Const),
    ]
}

fn dtype() -> impl Strategy<Value = DLDataType> {
    let names = [
        "float32",
        "float64",
        "int8",
        "int64",
        "bool",
        "uint16",
        "int8x4",
        "float8_e4m3fn",
        "float4_e2m1fn",
        "bfloat16",
    ];
    proptest::sample::select(names.map(|name| name.parse::<DLDataType>().unwrap()).to_vec())
}

fn device() -> impl Strategy<Value = Device> {
    let kinds = [DLDeviceType::CPU, DLDeviceType::CUDA, DLDeviceType::OPENCL, DLDeviceType::TRN];
    let other = (proptest::sample::select(kinds.to_vec()), proptest::option::of(0i32..3));
    prop_oneof![
        4 => Just(Device::CPU),
        1 => other.prop_map(|(device_type, id)| Device { device_type, id }),
    ]
}

fn tensor() -> impl Strategy<Value = TensorType> {
    let stride = prop_oneof![4 => dim(&["s", "t", "n"]), 1 => (-3i64..0).prop_map(Dim::Const)];
    let dims = vec((dim(&["n", "m", "k", "s"]), stride), 0..4);
    let align = proptest::option::weighted(0.3, proptest::sample::select(vec![1u32, 2, 8, 64]));
    (dims, dtype(), device(), any::<bool>(), align).prop_map(|(dims, dtype, device, strided, align)| {
        let (shape, strides): (Vec<Dim>, Vec<Dim>) = dims.into_iter().unzip();
        let mut tensor = TensorType::new(shape, dtype).on(device);
        if strided {
            tensor.layout = Layout::Strides(strides);
        }
        tensor.align = align;
        tensor
    })
}

fn signature() -> impl Strategy<Value = Signature> {
    let param = prop_oneof![2 => tensor().prop_map(ParamType::from), 1 => scalar().prop_map(ParamType::from)];
    (vec(param, 0..5), any::<bool>()).prop_map(|(params, returns)| {
        let scalars: Vec<ScalarType> =
            params.iter().filter_map(|p| if let ParamType::Scalar(ty) = p { Some(*ty) } else { None }).collect();
        let mut builder = Signature::builder("f");
        for (i, param) in params.into_iter().enumerate() {
            builder = builder.param(format!("p{i}"), param);
        }
        match scalars.first() {
            Some(ty) if returns => builder.returns(*ty).build().unwrap(),
            _ => builder.build().unwrap(),
        }
    })
}

/// The kernel returns the first scalar where the signature returns anything.
fn kernel(signature: &Signature) -> Kernel {
    if signature.ret().is_none() {
        return Kernel::check_only();
    }
    let first = signature.params().iter().find(|p| matches!(p.ty, ParamType::Scalar(_)));
    let name = first.map(|p| p.name.clone()).unwrap_or_default();
    Kernel::body(move |b| b.ret(b.arg(&name)))
}

/// What the symbols of a call stand for.
type Values = [i64; 6];
const SYMBOLS: [&str; 6] = ["n", "m", "k", "s", "t", "u"];

fn size(dim: &Dim, values: &Values) -> i64 {
    match dim {
        Dim::Const(size) => *size,
        Dim::Symbol(name) => SYMBOLS.iter().position(|s| s == name).map_or(0, |i| values[i]),
    }
}

fn right_value(ty: &ParamType, values: &Values, id: i32, number: i64) -> Value {
    let tensor = match ty {
        ParamType::Scalar(ty) => {
            return match ty {
                ScalarType::Handle if number % 2 == 0 => Value::Raw(0, 0),
                ScalarType::Handle => Value::Raw(4, number as u64),
                ScalarType::Float32 | ScalarType::Float64 if number % 3 != 0 => Value::Float(number as f64 / 4.0),
                _ if number % 5 == 0 => Value::Raw(2, number as u64 & 1),
                _ => Value::int(number & 0x7f),
            };
        }
        ParamType::Tensor(tensor) => tensor,
    };
    let shape = tensor.shape.iter().map(|d| size(d, values)).collect();
    let mut spec = TensorSpec::new(tensor.dtype, shape);
    spec.device = DLDevice::new(tensor.device.device_type, tensor.device.id.unwrap_or(id));
    if let Layout::Strides(strides) = &tensor.layout {
        spec.strides = Strides::Given(strides.iter().map(|d| size(d, values)).collect());
    }
    Value::Tensor(spec)
}

/// A change to a right call: what, where, and a number.
type Change = (u8, usize, i64);

fn evil(which: i64) -> Value {
    match which.rem_euclid(16) {
        0 => Value::Raw(0, which as u64),
        1 => Value::int(which),
        2 => Value::Float(which as f64 / 3.0),
        3 => Value::Raw(2, which as u64),
        4 => Value::Raw(4, which as u64),
        5 => Value::DType(DLDataType::FLOAT16),
        6 => Value::Device(DLDevice::cuda(1)),
        7 => Value::Str("short".to_owned()),
        8 => Value::Str("long enough for the heap".to_owned()),
        9 => Value::RawStr("c".to_owned()),
        10 => Value::ByteArray("b".to_owned()),
        11 => Value::Function,
        12 => Value::Shape(vec![1, 2]),
        13 => Value::Object,
        14 => Value::Raw(which as i32 | 1, 0),
        _ => Value::Tensor(TensorSpec::new(DLDataType::FLOAT32, vec![which.rem_euclid(4)])),
    }
}

fn apply(call: &mut Call, (kind, place, number): Change) {
    let count = call.args.len();
    match kind {
        0 => drop(call.args.pop()),
        1 => call.args.push((None, evil(number))),
        2 => call.num_args = Some(number as i32 & !0xff | -1),
        3 => call.null_array = true,
        _ if count == 0 => {}
        4..=6 => call.args[place % count].1 = evil(number),
        _ => {
            if let Value::Tensor(tensor) = &mut call.args[place % count].1 {
                change_tensor(tensor, kind, place / count, number);
            } else {
                call.args[place % count].1 = Value::int(number);
            }
        }
    }
}

fn change_tensor(tensor: &mut TensorSpec, kind: u8, place: usize, number: i64) {
    let rank = tensor.shape.len();
    let huge = [i64::MIN, -1, 0, 1, 1 << 31, 1 << 32, 1 << 62, i64::MAX];
    let near = number.rem_euclid(7) - 2;
    match kind {
        7 => {
            tensor.ndim =
                Some([-1, 0, 1, 2, 3, 1_000_000, i32::MIN][number.rem_euclid(7) as usize].min(rank as i32 - 1))
        }
        8 => tensor.ndim = Some(rank as i32 + 1 + (number.rem_euclid(5) as i32)),
        9 => tensor.dtype = DLDataType { bits: number as u8, ..tensor.dtype },
        10 => tensor.dtype = DLDataType { code: number as u8, lanes: (number >> 8) as u16, ..tensor.dtype },
        11 => tensor.device = DLDevice::new(DLDeviceType(near as i32), (number >> 3) as i32 & 3),
        12 => tensor.device.device_id = near as i32,
        13 | 14 if rank > 0 => tensor.shape[place % rank] = near,
        15 if rank > 0 => tensor.shape[place % rank] = huge[number.rem_euclid(8) as usize],
        16 => tensor.strides = Strides::Null,
        17 | 18 => {
            let last = |d: usize| tensor.shape[d + 1..].iter().fold(1i64, |p, s| p.wrapping_mul(*s));
            let mut strides: Vec<i64> = match &tensor.strides {
                Strides::Given(strides) => strides.clone(),
                Strides::Default | Strides::Null => (0..rank).map(last).collect(),
            };
            if rank > 0 {
                strides[place % rank] = if kind == 17 { near } else { huge[number.rem_euclid(8) as usize] };
            }
            tensor.strides = Strides::Given(strides);
        }
        19 => tensor.data = Data::Address(0),
        20 => tensor.data = Data::Address(number as u64),
        21 => tensor.byte_offset = (near + 2) as u64,
        22 => tensor.byte_offset = number as u64,
        23 => tensor.shift = (near + 2) as usize,
        24 => tensor.null = true,
        25 if number % 2 == 0 => tensor.null_shape = true,
        _ => {}
    }
}

fn change() -> impl Strategy<Value = Change> {
    let number =
        prop_oneof![3 => -300i64..300, 1 => any::<i64>(), 1 => proptest::sample::select(vec![i64::MIN, i64::MAX])];
    (0u8..26, 0usize..16, number)
}

/// Values of the symbols, a device number, a number for scalars, changes.
type Plan = (Values, i32, i64, Vec<Change>);

fn plan() -> impl Strategy<Value = Plan> {
    let size = || 0i64..4;
    let values = [size().boxed(), size().boxed(), size().boxed(), size().boxed(), (-2i64..4).boxed(), size().boxed()];
    (values, 0i32..3, 0i64..1000, prop_oneof![1 => Just(Vec::new()), 3 => vec(change(), 1..3)])
}

/// Whether tensors without a device number can all have `id`, as stated ones of their kind do.
fn ids_agree(signature: &Signature, id: i32) -> bool {
    let devices: Vec<Device> = signature
        .params()
        .iter()
        .filter_map(|p| if let ParamType::Tensor(t) = &p.ty { Some(t.device) } else { None })
        .collect();
    devices.iter().all(|d| {
        let shared = devices.iter().any(|other| other.device_type == d.device_type && other.id.is_none());
        !shared || d.id.is_none_or(|stated| stated == id)
    })
}

/// Whether no tensor with elements has an address that leads nowhere.
fn elements_are_there(call: &Call) -> bool {
    call.args.iter().all(|(_, value)| match value {
        Value::Tensor(TensorSpec { data: Data::Address(_), shape, .. }) => shape.contains(&0),
        _ => true,
    })
}

#[test]
fn executors_and_the_model_agree_on_random_calls() {
    let strategy = (signature(), vec(plan(), CALLS));
    let (accepted, refused, untrusted) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let kinds = RefCell::new(HashSet::new());
    run(SIGNATURES, &strategy, |(signature, plans)| {
        let program = Program::new(signature.clone(), kernel(&signature)).map_err(TestCaseError::fail)?;
        let mut prepared = Prepared::new(&program).map_err(TestCaseError::fail)?;
        for (values, id, number, changes) in plans {
            let arg = |(p, i): (&tvm_ffi_codegen::Param, i64)| right_value(&p.ty, &values, id, number + i);
            let mut call = Call::new(signature.params().iter().zip(0i64..).map(arg));
            let right = changes.is_empty() && ids_agree(&signature, id);
            changes.into_iter().for_each(|change| apply(&mut call, change));
            let predicted = model::predict(&signature, &call, Form::DlTensor).filter(|predicted| {
                // a body is told that elements are there
                signature.ret().is_none() || matches!(predicted, Prediction::Refused(_)) || elements_are_there(&call)
            });
            let Some(predicted) = predicted else {
                untrusted.set(untrusted.get() + 1);
                continue;
            };
            let outcome =
                prepared.run(&call).map_err(|e| TestCaseError::fail(format!("{signature}\n{call:?}\n{e}")))?;
            let told = match outcome.code {
                Ok(0) => {
                    outcome.error.is_none()
                        && outcome.result.1 == if signature.ret().is_some() { 0 } else { 0xa5a5_a5a5 }
                }
                // an InternalError is the good path and the exact routine at odds
                Ok(-1) => {
                    outcome.error.as_ref().is_some_and(|(kind, _)| kind != "InternalError")
                        && outcome.result == crate::support::exec::BEFORE
                }
                _ => false,
            };
            prop_assert!(told, "{signature}\n{call:?}\n{outcome:?}");
            if let Err(difference) = outcome.follows_contract(&signature, &call) {
                return Err(TestCaseError::fail(format!("{signature}\n{call:?}\n{difference}")));
            }
            if let Prediction::Accepted(model::Accepted { first_scalar: Some(scalar), .. }) = predicted
                && signature.ret().is_some()
            {
                prop_assert!(
                    model::same_result(scalar, outcome.result),
                    "{signature}\n{call:?}\n{scalar:?} {outcome:?}"
                );
            }
            match &outcome.error {
                None => accepted.set(accepted.get() + 1),
                Some((_, message)) => {
                    refused.set(refused.get() + 1);
                    kinds.borrow_mut().insert(kind_of(message));
                }
            }
            prop_assert!(!right || outcome.code == Ok(0), "a right call fails: {signature}\n{call:?}\n{outcome:?}");
        }
        Ok(())
    });
    let (accepted, refused, untrusted) = (accepted.get(), refused.get(), untrusted.get());
    println!("{accepted} calls accepted, {refused} refused, {untrusted} not made; refused for {:?}", kinds.borrow());
}

/// What was wrong, without names: `shape`, `type of`, ...
fn kind_of(message: &str) -> String {
    let what = message.split(" on argument").next().unwrap_or_default();
    what.chars().filter(|c| !c.is_ascii_digit()).take(40).collect()
}

/// Signatures that need not be useful, with everything that the text form can say.
fn wide_signature() -> impl Strategy<Value = Signature> {
    let dim =
        || prop_oneof![any::<u32>().prop_map(|v| Dim::Const(v.into())), "[a-z_][a-z0-9_]{0,6}".prop_map(Dim::Symbol)];
    let stride = prop_oneof![any::<i64>().prop_map(Dim::Const), dim()];
    let device = (1i32..19, proptest::option::of(0..i32::MAX))
        .prop_map(|(kind, id)| Device { device_type: DLDeviceType(kind), id });
    let dims = vec((dim(), stride), 0..5);
    let dtype = (0u8..18, any::<u8>(), any::<u16>()).prop_map(|(code, bits, lanes)| DLDataType::new(code, bits, lanes));
    let align = proptest::option::of((0u32..32).prop_map(|bit| 1 << bit));
    let flags = (any::<bool>(), any::<bool>());
    let tensor = (dims, dtype, device, flags, align).prop_map(|(dims, dtype, device, (strided, noalias), align)| {
        let (shape, strides): (Vec<Dim>, Vec<Dim>) = dims.into_iter().unzip();
        let layout = if strided { Layout::Strides(strides) } else { Layout::Contiguous };
        TensorType { shape, dtype, device, layout, align, noalias }
    });
    let param = prop_oneof![tensor.prop_map(ParamType::from), scalar().prop_map(ParamType::from)];
    let named = ("[A-Z][a-zA-Z0-9_]{0,6}", param);
    let parts = ("[a-z_][a-zA-Z0-9_.$]{0,9}", vec(named, 0..6), proptest::option::of(scalar()));
    parts.prop_filter_map("the builder finds mistakes", |(name, params, ret)| {
        let builder = params.into_iter().fold(Signature::builder(name), |b, (name, ty)| b.param(name, ty));
        let builder = ret.into_iter().fold(builder, |b, ty| b.returns(ty));
        builder.build().ok()
    })
}

#[test]
fn what_a_signature_shows_is_read_back() {
    run(500, &wide_signature(), |signature| {
        let text = signature.to_string();
        prop_assert_eq!(text.parse::<Signature>(), Ok(signature), "{}", text);
        Ok(())
    });
}

/// Any text may be parsed, and an error can be shown, with its caret inside of the line.
fn parses(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<Signature>() {
        Ok(signature) => prop_assert_eq!(signature.to_string().parse::<Signature>(), Ok(signature)),
        Err(tvm_ffi_codegen::spec::ParseError::Syntax(error)) => {
            prop_assert!(!error.to_string().is_empty());
            prop_assert!(error.line >= 1 && error.column >= 1, "{error:?}");
            prop_assert!(error.line <= text.split('\n').count(), "{error:?}");
            let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
            prop_assert!(error.column <= line.chars().count() + 1, "{error:?}");
        }
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

#[test]
fn any_text_is_a_signature_or_an_error() {
    run(2000, &any::<String>(), |text| parses(&text));
    let pieces = [
        "f",
        "(",
        ")",
        "x",
        ":",
        "int64",
        "Tensor",
        "[",
        "]",
        ",",
        "n",
        "4",
        "-1",
        "float32",
        "strides",
        "=",
        "device",
        "\"cuda:1\"",
        "align",
        "->",
        "None",
        " ",
        "\n",
        "\"",
        "-",
        "99999999999999999999",
        "\u{e9}",
        "\0",
        "float8_",
        "x:Tensor([n],f32)",
    ];
    run(2000, &vec(proptest::sample::select(pieces.to_vec()), 0..20), |text| parses(&text.concat()));
}

#[test]
fn a_text_with_one_mistake_is_an_error_or_another_signature() {
    let strategy = (wide_signature(), any::<prop::sample::Index>(), any::<char>(), any::<bool>());
    run(500, &strategy, |(signature, at, c, insert)| {
        let mut chars: Vec<char> = signature.to_string().chars().collect();
        let at = at.index(chars.len());
        if insert {
            chars.insert(at, c);
        } else {
            chars.remove(at);
        }
        parses(&chars.into_iter().collect::<String>())
    });
}
