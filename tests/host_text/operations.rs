//! Each operation of a body has its text, with the same meaning.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::spec::Launch;
use tvm_ffi_codegen::{
    Body, DLDataType, DLDeviceType, DTypeValue, DeviceValue, Kernel, ParamType, ScalarType, TensorFact, ValueKind, dim,
};

use super::NO_IMAGES;
use crate::support::sig;
use crate::support::text::reads_back;

/// The names of public functions in a source file.
fn public_functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub fn ")?;
        rest.split(['(', '<']).next().filter(|name| !name.starts_with('$'))
    })
}

#[test]
fn every_operation_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let doc = fs::read_to_string(root.join("docs/reference/host-text.md")).unwrap();
    let table = doc.split("## Each operation and its text").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.split(" | ").next());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = rows.flat_map(|row| row.split(|c| !is_name(c))).collect();
    let mut found = 0;
    let files = fs::read_dir(root.join("src/lower/body")).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|file| file.is_file()) {
        let text = fs::read_to_string(file).unwrap();
        for name in public_functions(&text) {
            found += 1;
            assert!(words.contains(name), "docs/reference/host-text.md has no row for `{name}`");
        }
    }
    assert!(found > 90, "{found}");
}

/// A text and the body in Rust that means the same.
#[track_caller]
fn same(signature: &str, text: &str, build: impl Fn(&Body<'_>) + Send + Sync + 'static) {
    let signature = sig(signature);
    let listing = |kernel: &Kernel| lower(&signature, kernel, RuntimeHelpers::Import).map(|module| module.to_string());
    let of_text = listing(&Kernel::text(text, NO_IMAGES).unwrap()).unwrap_or_else(|e| panic!("{e}"));
    let kernel = Kernel::body(build);
    assert_eq!(of_text, listing(&kernel).unwrap(), "{text}");
    reads_back(&[(signature, kernel)]);
}

#[test]
fn texts_lower_to_the_code_of_bodies_in_rust() {
    same(
        "f(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))",
        "{ for i in range(0, n) { y[i] = a * x[i] + y[i]; } }",
        |b| {
            let (a, x, y) = (b.arg("a"), b.tensor("x"), b.tensor("y"));
            b.for_range(0, b.dim("n"), |i| y.store([i], a * x.load([i]) + y.load([i])));
        },
    );
    same(
        "f(a: int64, b: int64) -> int64",
        "{ while d != 0 with c = a, d = b { continue d, rem(c, d); } return c; }",
        |b| {
            let [c, _] = b.while_loop([b.arg("a"), b.arg("b")], |[_, d]| d.ne(0), |[c, d]| [d, c % d]);
            b.ret(c);
        },
    );
    same(
        "f(n: int64) -> float64",
        "{ for i in range(0, n, 2) with s = float64(0) { continue s + float64(i); } return s; }",
        |b| {
            let s = b.fold_step(0, b.arg("n"), 2, b.f64(0.0), |i, s| s + i.cast(ScalarType::Float64));
            b.ret(s);
        },
    );
    same("f(n: int32) -> bool", "{ return n > 3 and n < 7 or not (n & 1 == 0); }", |b| {
        let n = b.arg("n");
        let both = b.if_else_value(n.gt(3), || n.lt(7), || b.bool(false));
        let either = b.if_else_value(both, || b.bool(true), || !(n & 1).eq(0));
        b.ret(either);
    });
    same(
        "f(x: Tensor([m, k], float32)) -> float32",
        "{ let y = slice(transpose(x, [1, 0]), 0, 1, k - 1); return y[0, 1]; }",
        |b| {
            let y = b.tensor("x").transpose([1, 0]).slice(0, 1, b.dim("k") - 1);
            b.ret(y.load([0, 1]));
        },
    );
    same(
        "f(x: Tensor([n], float32), g: Function) -> Any",
        "{ let y = alloc([n, 2], int8, like=x); call g(y, None, \"t\", shape([n, 1]), k=1.5); return call g(3) -> Any; }",
        |b| {
            let y =
                b.alloc_tensor([b.dim("n").into(), tvm_ffi_codegen::Operand::from(2)], DLDataType::INT8, b.tensor("x"));
            let sizes = tvm_ffi_codegen::CallArg::shape([b.dim("n").into(), tvm_ffi_codegen::Operand::from(1)]);
            b.call(b.param(1), (y, (), "t", sizes)).kwarg("k", 1.5).run();
            b.ret_value(b.call(b.param(1), (3,)).returns(ParamType::Any));
        },
    );
    same("f(v: float64, w: float64) -> float64", "{ return fma(sqrt(v), min(v, 1), pow(2, w) / abs(-w)); }", |b| {
        let (v, w) = (b.arg("v"), b.arg("w"));
        let (root, least) = (v.sqrt(), v.min(1));
        let two = b.f64(2.0);
        b.ret(root.fma(least, two.pow(w) / (-w).abs()));
    });
    same(
        "f(p: handle) -> int64",
        "{ store(offset(p, int32, 2), load(int32, p)); return int64(bitcast(scratch(8), int64)) + 0; }"
            .replace("int64(bitcast(scratch(8), int64)) + 0", "int64(scratch(8))")
            .as_str(),
        |b| {
            let p = b.arg("p");
            let to = b.offset(p, ScalarType::Int32, 2);
            b.store(to, b.load(ScalarType::Int32, p));
            b.ret(b.scratch(8, 16).cast(ScalarType::Int64));
        },
    );
    same(
        "f(p: handle, v: float32)",
        "{ store(p, v, dtype=float16); store(offset(p, bfloat16, 1), 1, dtype=bfloat16); }",
        |b| {
            let (p, v) = (b.arg("p"), b.arg("v"));
            b.store_as(ScalarType::Float16, p, v);
            b.store_as(ScalarType::BFloat16, b.offset(p, ScalarType::BFloat16, 1), 1);
        },
    );
    same(
        "f(x: Tensor([n], float32, device=any)) -> int64",
        "{ if x.device.kind == \"cuda\" and x.device.capability >= 90 { return x.device.capability; } return 0; }",
        |b| {
            let x = b.tensor("x");
            let more = || {
                let x = x.assume(TensorFact::DeviceKind(DLDeviceType::CUDA));
                b.device_capability(x).ge(90)
            };
            let both = b.if_else_value(b.is_device_kind(x, DLDeviceType::CUDA), more, || b.bool(false));
            b.if_(both, || {
                let x = x.assume(TensorFact::DeviceKind(DLDeviceType::CUDA));
                b.ret(b.device_capability(x));
            });
            b.ret(0);
        },
    );
}

#[test]
fn questions_narrow_as_facts_do() {
    same(
        "f(x: Tensor([n], any)) -> float64",
        "{ if x.dtype == float16 and n > 0 { return float64(x[0]); } return 0; }",
        |b| {
            let x = b.tensor("x");
            let half = b.same_dtype(x, DLDataType::FLOAT16);
            let more = || {
                let _ = x.assume(TensorFact::DType(DLDataType::FLOAT16));
                b.dim("n").gt(0)
            };
            let both = b.if_else_value(half, more, || b.bool(false));
            b.if_(both, || {
                let x = x.assume(TensorFact::DType(DLDataType::FLOAT16));
                b.ret(x.load([0]).cast(ScalarType::Float64));
            });
            b.ret(0);
        },
    );
    same(
        "f(x: Tensor([...], float32, strides=any, device=any)) -> int64",
        "{ ensure x.ndim == 2, ValueError(\"{}\", x.device); let y = assume(assume(x, device=\"cpu\"), align=16);
           if is_contiguous(y) { let z = reshape(y, [x.shape[0] * x.shape[1]]); return z.shape[0]; }
           return y.strides[0] + y.device.id; }",
        |b| {
            let x = b.tensor("x");
            b.ensure(x.ndim().eq(2), "ValueError", "{}", (DeviceValue::Of(x),));
            let x = x.assume(TensorFact::Rank(2));
            let y = x.assume(TensorFact::DeviceKind(DLDeviceType::CPU)).assume(TensorFact::Aligned(16));
            b.if_(y.is_contiguous(), || {
                let y = y.assume(TensorFact::Contiguous);
                let z = y.reshape([x.size(0) * x.size(1)]);
                b.ret(z.size(0));
            });
            b.ret(y.stride(0) + b.device_id(y));
        },
    );
    same(
        "f(v: Any, t: dtype, d: device, x: Tensor([n], any)) -> dtype",
        "{ ensure v is str or is_object(v, \"a.B\"), TypeError(\"{}\", v);
           let s = v as str; ensure d.kind == \"cuda\" and d == x.device, ValueError(\"{}\", s.size);
           if t == x.dtype { return x.dtype; } return t; }",
        |b| {
            let (v, t, d, x) = (b.param(0), b.param(1), b.param(2), b.tensor("x"));
            let known = b.if_else_value(v.is_kind(ValueKind::Str), || b.bool(true), || v.is_object("a.B"));
            b.ensure(known, "TypeError", "{}", (v,));
            let s = v.cast(ParamType::Str);
            let cuda = b.is_device_kind(d, DLDeviceType::CUDA);
            let same = b.if_else_value(cuda, || b.same_device(d, x), || b.bool(false));
            b.ensure(same, "ValueError", "{}", (s.size(),));
            b.if_(b.same_dtype(t, x), || b.ret_value(DTypeValue::Of(x)));
            b.ret_value(t);
        },
    );
}

#[test]
fn launches_take_local_values() {
    let text = "{ let half = n // 2; launch rows grid=half block=128 args=[x, int32(half)]; }";
    let signature = sig("f(x: Tensor([n], float32, device=\"cuda\"))");
    // without an image both have the same error
    let of_text = lower(&signature, &Kernel::text(text, NO_IMAGES).unwrap(), RuntimeHelpers::Import).unwrap_err();
    let in_rust = Kernel::body(|b| {
        let half = b.dim("n").floor_div(2);
        let args = "x, int32(half)";
        let launch = Launch::new("rows").grid([dim("half")]).block([128]);
        let launch = launch.args(tvm_ffi_codegen::spec::KernelArg::list(args).unwrap());
        b.launch_with(launch, [], [("half", half)]);
    });
    let in_rust = lower(&signature, &in_rust, RuntimeHelpers::Import).unwrap_err().to_string();
    let first = |text: &str| text.lines().nth(1).unwrap_or_default().to_owned();
    let of_text = of_text.to_string();
    assert_eq!(first(&of_text).replace("line 1: ", ""), first(&in_rust), "{of_text}\n{in_rust}");
}
