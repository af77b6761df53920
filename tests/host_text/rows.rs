//! The operations of bodies in Rust print as their rows of the table in `docs/reference/host-text.md`.

use tvm_ffi_codegen::lower::LaunchValue;
use tvm_ffi_codegen::runtime::DLDevice;
use tvm_ffi_codegen::spec::Launch;
use tvm_ffi_codegen::{
    Body, CallArg, DLDataType, DLDeviceType, HostProgram, Kernel, MatchKey, MatchPattern, MatchRow, MatchValue,
    Operand, ParamType, ScalarType, TensorFact, dim,
};

use crate::support::sig;
use crate::support::text::reads_back;

/// Compares the text of a body in Rust, without the line of the signature, and reads it back.
#[track_caller]
fn prints(signature: &str, build: impl Fn(&Body<'_>) + Send + Sync + 'static, expected: &str) {
    let (signature, kernel) = (sig(signature), Kernel::body(build));
    let printed = HostProgram::of([(&signature, &kernel)]).unwrap_or_else(|error| panic!("{error}")).to_string();
    let block: Vec<&str> = printed.lines().skip(1).collect();
    let block = block[..block.len() - 1].iter().map(|line| line.strip_prefix("  ").unwrap_or(line));
    assert_eq!(block.collect::<Vec<_>>().join("\n"), expected.trim(), "{printed}");
    reads_back(&[(signature, kernel)]);
}

#[test]
fn values_and_arithmetic() {
    prints(
        "f(n: int64, v: float64, k: Optional[int32], s: str, cfg: Tuple[int64, bool], if: int8) -> int64",
        |b| {
            let (n, v) = (b.arg("n"), b.arg("v"));
            let i = (n + 1) * n - (n & 3 | n ^ 5) - (n << 2 >> 1) + -n + !n;
            let j = n / 2 + n % 3 + n.floor_div(4) + n.floor_rem(5) + n.ceil_div(6);
            let w = v / 2.0 + v % 1.5;
            let c = w.lt(1) & i.eq(j) | !n.ge(i);
            let k = c.select(n, 7) + b.arg("k").cast(ScalarType::Int64) + b.param(3).size();
            let l = b.param(4).item(0).value() + b.arg("if").cast(ScalarType::Int64) + b.dim("n");
            b.if_(b.is_given("k"), || b.ret(k));
            b.ret(l + v.bitcast(ScalarType::Int64).mul_hi(n));
        },
        "
let v0 = (n + 1) * n - (n & 3 | n ^ 5) - (n << 2 >> 1);
let v1 = v0 + -n + ~n;
let v2 = div(n, 2) + rem(n, 3) + n // 4 + n % 5 + ceil_div(n, 6);
let v3 = select((v / 2.0 + rem(v, 1.5) < 1.0) & (v1 == v2) | (not n >= v1), n, 7);
let v4 = v3 + int64(k) + s.size;
let v5 = cfg[0] + int64(param(if)) + n;
if k.given {
  return v4;
}
return v5 + mul_hi(bitcast(v, int64), n);
",
    );
    prints(
        "f(v: float32, w: float32) -> float32",
        |b| {
            let (v, w) = (b.arg("v"), b.arg("w"));
            let all = [
                v.abs().floor().ceil().trunc().round().round_ties_even(),
                v.sqrt().cbrt().exp().exp2().expm1(),
                v.log().log2().log10().log1p().erf().erfc(),
                v.sin().cos().tan().asin().acos().atan(),
                v.sinh().cosh().tanh().asinh().acosh().atanh(),
                v.min(w).max(1).pow(w).hypot(2.5).atan2(w).fma(w, 0.1),
            ];
            b.ret(all.into_iter().reduce(|sum, value| sum + value).unwrap());
        },
        "
let v0 = round_ties_even(round(trunc(ceil(floor(abs(v))))));
let v1 = expm1(exp2(exp(cbrt(sqrt(v)))));
let v2 = erfc(erf(log1p(log10(log2(log(v))))));
let v3 = atan(acos(asin(tan(cos(sin(v))))));
let v4 = atanh(acosh(asinh(tanh(cosh(sinh(v))))));
let v5 = fma(atan2(hypot(pow(max(min(v, w), 1.0), w), 2.5), w), w, 0.1);
return v0 + v1 + v2 + v3 + v4 + v5;
",
    );
}

#[test]
fn constants() {
    prints(
        "f(g: Function)",
        |b| {
            let quiet = f32::from_bits(0x7fc0_0001);
            let numbers = [
                b.int(ScalarType::UInt64, u64::MAX),
                b.int(ScalarType::Int8, -128),
                b.i64(i64::MIN),
                b.bool(true),
                b.f32(0.1),
                b.f32(-0.0),
                b.f64(1e300),
                b.f64(f64::NEG_INFINITY),
                b.f32(f32::NAN),
                b.f32(quiet),
                b.f64(-f64::NAN),
            ];
            let args: Vec<CallArg<'_>> = numbers.into_iter().map(Into::into).collect();
            b.call(b.param(0), args).run();
        },
        "
let v0 = uint64(18446744073709551615);
let v1 = int8(-128);
let v2 = int64(-9223372036854775808);
let v3 = bool(True);
call g(v0, v1, v2, v3, float32(0.1), float32(-0.0), float64(1e300), float64(-inf), float32(nan), \
bitcast(2143289345, float32), bitcast(18444492273895866368, float64));
",
    );
}

#[test]
fn tensors_and_memory() {
    prints(
        "f(x: Tensor([n, k], float32), y: Tensor([m], int64, strides=[s]), p: handle) -> Tensor([n], float32)",
        |b| {
            let (x, y, p) = (b.tensor("x"), b.tensor("y"), b.arg("p"));
            let own = b.alloc_tensor([b.dim("n").into(), Operand::from(4)], DLDataType::INT8, x);
            let strided = b.alloc_strided([2], [3], DLDataType::FLOAT32, DLDevice::CPU);
            let view = x.slice(0, 1, b.dim("n") - 1).transpose([1, 0]);
            let flat = x.reshape([x.size(0) * x.size(1)]);
            b.result().store([0], view.load([0, 1]) + flat.load([2]));
            strided.store([y.stride(0)], b.load(ScalarType::Float32, x.element_ptr([0, 1])));
            b.store(b.offset(p, ScalarType::Int64, 2), y.load([0]) + own.size(1));
            let memory = b.scratch(64, 16);
            b.store(memory, x.ptr().cast(ScalarType::Int64));
            b.store_as(ScalarType::Float16, memory, x.load([0, 0]));
            b.store_as(ScalarType::BFloat16, memory, 0.5);
        },
        "
let v0 = alloc([n, 4], int8, like=x);
let v1 = alloc([2], float32, strides=[3], device=\"cpu:0\");
let v2 = transpose(slice(x, 0, 1, n - 1), [1, 0]);
let v3 = reshape(x, [n * x.shape[1]]);
result[0] = v2[0, 1] + v3[2];
v1[y.strides[0]] = load(float32, address(x[0, 1]));
store(offset(p, int64, 2), y[0] + v0.shape[1]);
let v4 = scratch(64, align=16);
store(v4, int64(x.data));
store(v4, x[0, 0], dtype=float16);
store(v4, 0.5, dtype=bfloat16);
",
    );
}

#[test]
fn questions_about_devices() {
    prints(
        "f(x: Tensor([n], float32, device=any), d: device) -> int64",
        |b| {
            let (x, d, stated) = (b.tensor("x"), b.param(1), DLDevice::new(DLDeviceType::CUDA, 1));
            let on_cuda = b.is_device_kind(x, DLDeviceType::CUDA) & b.is_device_kind(stated, DLDeviceType::CUDA);
            b.if_(on_cuda & b.is_device_kind(d, DLDeviceType::ROCM), || {
                let x = x.assume(TensorFact::DeviceKind(DLDeviceType::CUDA));
                b.ret(b.device_capability(x) + b.device_capability(stated));
            });
            b.ret(b.device_id(x) + b.device_id(d) + b.device_id(stated));
        },
        "
if (x.device.kind == \"cuda\") & (device(\"cuda:1\").kind == \"cuda\") & (d.kind == \"rocm\") {
  return assume(x, device=\"cuda\").device.capability + device(\"cuda:1\").capability;
}
return x.device.id + d.id + device(\"cuda:1\").id;
",
    );
}

#[test]
fn control_and_errors() {
    prints(
        "f(n: int64, g: Function) -> int64",
        |b| {
            let n = b.arg("n");
            b.check_signals_every(100);
            b.limit_recursion(1000);
            b.set_location("model.py", 3, "forward");
            b.clear_location();
            b.for_range(0, n, |i| b.if_else(i.gt(3), || b.break_(), || b.if_(i.gt(2), || b.continue_())));
            let sum = b.fold_step(0, n, 2, b.i64(0), |i, sum| {
                b.if_(sum.gt(9), || b.continue_with([sum]));
                sum + i
            });
            let half = || n.gt(2) & sum.lt(n);
            b.while_(half, || b.ensure(n.gt(0), "ValueError", "{} of {}", [n, sum]));
            let [low, _] = b.while_loop([n, sum], |[low, high]| low.lt(high), |[low, high]| [low + 1, high]);
            b.try_(
                || b.call(b.param(1), ()).run(),
                |error| {
                    b.if_(error.is_kind("KeyError"), || error.raise_again());
                    b.if_(n.gt(1), || b.raise("a.Error", "{} {}", ("text", error.error())));
                    error.raise_from("OtherError", "from {}", [n]);
                },
            );
            b.if_(n.eq(0), || b.raise("ZeroError", "none", ()));
            b.ret(b.if_else_value(n.gt(5), || low, || b.env_state("mylang.state").cast(ScalarType::Int64)));
        },
        "
check_signals_every(100);
limit_recursion(1000);
@ \"model.py\":3 \"forward\";
@ none;
for v0 in range(0, n) {
  if v0 > 3 {
    break;
  } else if v0 > 2 {
    continue;
  }
}
for v1 in range(0, n, 2) with v2 = int64(0) {
  if v2 > 9 {
    continue v2;
  }
  continue v2 + v1;
}
while (n > 2) & (v2 < n) {
  ensure n > 0, ValueError(\"{} of {}\", n, v2);
}
while v3 < v4 with v3 = n, v4 = v2 {
  continue v3 + 1, v4;
}
try {
  call g();
} catch v5 {
  if v5.kind == \"KeyError\" {
    raise v5;
  }
  if n > 1 {
    raise a.Error(\"{} {}\", \"text\", v5);
  }
  raise OtherError(\"from {}\", n) from v5;
}
if n == 0 {
  raise ZeroError(\"none\");
}
return if n > 5 { v3 } else { int64(env_state(\"mylang.state\")) };
",
    );
}

#[test]
fn matches() {
    prints(
        "f(x: Tensor([n], any), t: dtype, d: device, s: str, k: Optional[int32], yes: bool) -> Any",
        |b| {
            let (x, n) = (b.tensor("x"), b.dim("n"));
            let keys = [
                MatchKey::new("x.dtype", x),
                MatchKey::new("of 16", n.floor_rem(16).eq(0)),
                MatchKey::new("kind", MatchValue::DeviceKind(b.param(2).into())),
                MatchKey::new("k", b.arg("k") + 1),
            ];
            let any = || MatchPattern::Any;
            b.match_(
                keys,
                [
                    MatchRow::new([DLDataType::FLOAT16.into(), true.into(), any(), 128.into()], || {
                        b.call_symbol("f16", (n * 2,)).forward();
                    }),
                    MatchRow::new([any(), false.into(), DLDeviceType::CUDA.into(), (-5..9).into()], || {
                        b.if_(n.gt(3), || b.ret_value(n));
                    }),
                ],
            );
            let keys = [
                MatchKey::new("t", b.param(1)),
                MatchKey::new("d", b.param(2)),
                MatchKey::new("s", b.param(3)),
                MatchKey::new("yes", b.arg("yes")),
            ];
            let row = [DLDataType::INT8.into(), DLDevice::CPU.into(), "a\n".into(), (..).into()];
            b.match_else(keys, [MatchRow::new(row, || {})], || b.raise("KeyError", "none", ()));
            b.ret_value(b.param(3));
        },
        "
match x.dtype = x.dtype, \"of 16\" = n % 16 == 0, kind = d.kind, k = k + 1 {
  float16, True, _, 128 => forward symbol f16(n * 2);
  _, False, \"cuda\", range(-5, 9) => {
    if n > 3 {
      return n;
    }
  }
}
match t = t, d = d, s = s, yes = yes {
  int8, \"cpu:0\", \"a\\n\", _ => {}
  else => raise KeyError(\"none\");
}
return s;
",
    );
}

#[test]
fn calls_and_owned_values() {
    prints(
        "f(x: Tensor([n], float32), g: Function, t: dtype) -> Any",
        |b| {
            let pair = b.call_global("host.pair", (b.dim("n"), ())).uncached();
            let pair = pair.returns(ParamType::Tuple(vec![ScalarType::Int64.into(), ParamType::Str]));
            b.call_symbol("h", (pair.item(0).value(), pair.item(1), b.param(2))).run();
            b.call_import("lib.k", (DLDataType::INT8, DLDevice::CPU, "a\n", 1.5, true)).run();
            let arg = CallArg::array((CallArg::shape([b.dim("n")]), CallArg::bytes(*b"\xff\0")));
            b.call(b.param(1), (arg,)).kwarg("key", pair.owned()).run();
            let variable = b.variable();
            variable.set(pair.by_move());
            let read = variable.cast(ParamType::Str);
            let captures = [(b.dim("n").into(), ParamType::from(ScalarType::Int64))];
            let made = b.closure(&sig("inner(m: int64) -> int64"), captures, |b| {
                b.ret(b.captured(0).value() + b.arg("m"));
            });
            b.call(made, (read.size(), variable.get())).run();
            b.if_(b.dim("n").gt(1), || b.ret_value(made.by_move()));
            b.if_(b.dim("n").eq(0), || b.call_symbol("h", (b.dim("n") * 2, "key")).forward());
            b.if_(b.dim("n").lt(0), || b.call(b.param(1), ()).forward());
            b.ret_value(b.alloc_tensor([1], DLDataType::INT8, b.tensor("x")).owned().by_move());
        },
        "
let v0 = call global uncached host.pair(n, None) -> Tuple[int64, str];
call symbol h(v0[0], v0[1], t);
call import lib.k(dtype(int8), device(\"cpu:0\"), \"a\\n\", 1.5, True);
call g(array(shape([n]), bytes(\"\\xff\\x00\")), key=v0);
var v1;
v1 = move(v0);
let v2 = v1 as str;
let v3 = closure [_: int64 = n] inner(m: int64) -> int64 {
  return captured(0) + m;
};
call v3(v2.size, v1);
if n > 1 {
  return move(v3);
}
if n == 0 {
  forward symbol h(n * 2, \"key\");
}
if n < 0 {
  forward g();
}
return move(alloc([1], int8, like=x));
",
    );
}

#[test]
fn launches_without_images_are_errors() {
    let signature = sig("f(x: Tensor([n], float32, device=\"cuda\"))");
    // lowering reports that there is no image, so the text is that of a kernel
    let launch = Launch::new("rows").grid([dim("n")]).block([128]);
    let kernel = Kernel::launch(launch.clone(), []);
    assert!(HostProgram::of([(&signature, &kernel)]).is_err());
    let kernel = Kernel::body(move |b| {
        let half = b.dim("n").floor_div(2);
        b.launch_with(launch.clone(), [], [("half", LaunchValue::from(half))]);
    });
    assert!(HostProgram::of([(&signature, &kernel)]).is_err());
}
