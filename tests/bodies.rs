//! Bodies against plain Rust, on every executor.

use tvm_ffi_codegen::{Body, DLDataType, Kernel, Operand, ScalarType};

use crate::support::element::Show;
use crate::support::exec::{Prepared, Program, Returned};
use crate::support::half;
use crate::support::kernels;
use crate::support::sig;
use crate::support::value::{Call, Data, Number, Strides, TensorSpec, Value};

const F32: DLDataType = DLDataType::FLOAT32;
const F64: DLDataType = DLDataType::FLOAT64;

fn program(signature: &str, build: impl Fn(&Body<'_>) + Send + Sync + 'static) -> Program {
    Program::new(sig(signature), Kernel::body(build)).unwrap_or_else(|e| panic!("{signature}: {e}"))
}

/// Numbers from -1 to 1, the same on each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        // SplitMix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as i64 as f64 / i64::MAX as f64
    }

    fn many(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next() as f32).collect()
    }
}

fn floats(values: &[f32]) -> impl Iterator<Item = Number> {
    values.iter().map(|v| Number::Float(f64::from(*v)))
}

fn parse(list: &str) -> Vec<f64> {
    let inside = list.trim_matches(['[', ']']);
    inside.split(", ").filter(|v| !v.is_empty()).map(|v| v.parse().unwrap()).collect()
}

fn assert_close(got: &str, want: &[f64], tolerance: f64, what: &str) {
    let got = parse(got);
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{what}: element {i} is {got}, not {want}");
    }
}

fn show<T: Show>(values: &[T]) -> String {
    format!("[{}]", values.iter().map(|v| v.show()).collect::<Vec<_>>().join(", "))
}

#[test]
fn softmax() {
    let mut random = Random(1);
    for (dtype, tolerance) in [(F32, 1e-6), (F64, 1e-15)] {
        let signature = format!("softmax(x: Tensor([m, n], {dtype}), y: Tensor([m, n], {dtype}))");
        let program = program(&signature, kernels::softmax);
        let mut prepared = Prepared::new(&program).unwrap();
        for m in [0, 1, 2, 5] {
            for n in [0, 1, 2, 3, 17] {
                let x: Vec<f32> = random.many(m * n).iter().map(|v| v * 20.0).collect();
                let mut want = vec![0.0; m * n];
                for (x, want) in x.chunks(n.max(1)).zip(want.chunks_mut(n.max(1))) {
                    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    let e: Vec<f64> = x.iter().map(|v| (f64::from(*v) - f64::from(max)).exp()).collect();
                    let sum: f64 = e.iter().sum();
                    want.iter_mut().zip(e).for_each(|(w, e)| *w = e / sum);
                }
                let shape = vec![m as i64, n as i64];
                let x = TensorSpec::new(dtype, shape.clone()).with(floats(&x));
                let call = Call::new([x.into(), TensorSpec::new(dtype, shape).into()]);
                assert_close(&prepared.elements(&call)[1], &want, tolerance, &format!("{dtype} [{m}, {n}]"));
            }
        }
    }
}

#[test]
fn matmul() {
    let mut random = Random(2);
    let signature = "matmul(a: Tensor([m, k], float32), b: Tensor([k, n], float32), c: Tensor([m, n], float32))";
    let program = program(signature, kernels::matmul);
    let mut prepared = Prepared::new(&program).unwrap();
    const SIZES: [usize; 5] = [0, 1, 2, 3, 8];
    for (m, k, n) in SIZES.iter().flat_map(|m| SIZES.map(|k| (*m, k))).flat_map(|(m, k)| SIZES.map(|n| (m, k, n))) {
        let (a, b) = (random.many(m * k), random.many(k * n));
        let mut want = Vec::new();
        for i in 0..m {
            for j in 0..n {
                want.push((0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum::<f64>());
            }
        }
        let tensor = |m: usize, n: usize| TensorSpec::new(F32, vec![m as i64, n as i64]);
        let call = Call::new([
            tensor(m, k).with(floats(&a)).into(),
            tensor(k, n).with(floats(&b)).into(),
            tensor(m, n).into(),
        ]);
        assert_close(&prepared.elements(&call)[2], &want, 1e-6, &format!("[{m}, {k}] x [{k}, {n}]"));
    }
}

#[test]
fn saxpy_and_add_one() {
    let mut random = Random(3);
    let build = |name: &str| kernels::BODIES.iter().find(|(known, _)| *known == name).unwrap().1;
    let saxpy = program("saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))", build("saxpy"));
    let add_one = program("add_one(x: Tensor([n], float32), y: Tensor([n], float32))", build("add_one"));
    let (mut saxpy, mut add_one) = (Prepared::new(&saxpy).unwrap(), Prepared::new(&add_one).unwrap());
    for n in [0usize, 1, 2, 15, 16, 17, 100] {
        let (a, x, y) = (random.next() as f32, random.many(n), random.many(n));
        let tensor = |v: &[f32]| Value::from(TensorSpec::new(F32, vec![n as i64]).with(floats(v)));
        let got = saxpy.elements(&Call::new([Value::Float(f64::from(a)), tensor(&x), tensor(&y)]));
        let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a * x + y).collect();
        assert_eq!(got[1], show(&want));
        let got = add_one.elements(&Call::new([tensor(&x), tensor(&y)]));
        assert_eq!(got[1], show(&x.iter().map(|x| x + 1.0).collect::<Vec<_>>()));
    }
}

#[test]
fn strided_tensors() {
    let signature = "t(x: Tensor([m, n], int16, strides=[a, b]), y: Tensor([m, n], int16, strides=[c, d]))";
    let program = program(signature, |b| {
        let (x, y) = (b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("m"), |i| {
            b.for_range(0, b.dim("n"), |j| {
                let same = x.load([i, j]).eq(b.load(ScalarType::Int16, x.element_ptr([i, j])));
                b.ensure(same, "ValueError", "{} {}", [i, j]);
                y.store([i, j], x.load([i, j]) * 2);
            });
        });
    });
    let mut prepared = Prepared::new(&program).unwrap();
    let strides = [[4, 1], [1, 3], [-4, -1], [-1, 7], [8, 2], [0, 1], [0, 0]];
    for x_strides in strides {
        for y_strides in &strides[..5] {
            let spec = |strides: [i64; 2]| TensorSpec {
                strides: Strides::Given(strides.to_vec()),
                ..TensorSpec::new(DLDataType::INT16, vec![3, 4])
            };
            // elements that share memory because of a stride of 0 get equal values
            let value = |i: i128, j: i128| {
                let used = |s: i64| i128::from(s != 0);
                Number::Int(i * 10 * used(x_strides[0]) + j * used(x_strides[1]) + 1)
            };
            let values: Vec<Number> = (0..3).flat_map(|i| (0..4).map(move |j| value(i, j))).collect();
            let doubled: Vec<i16> = values
                .iter()
                .map(|v| match v {
                    Number::Int(v) => *v as i16 * 2,
                    Number::Float(_) => 0,
                })
                .collect();
            // skip outputs that overlap
            if *y_strides == [1, 3] || *y_strides == [-1, 7] || y_strides[0].abs() >= 4 {
                let x = TensorSpec { data: Data::Values(values), ..spec(x_strides) };
                let got = prepared.elements(&Call::new([x.into(), spec(*y_strides).into()]));
                assert_eq!(got[1], show(&doubled), "{x_strides:?} to {y_strides:?}");
            }
        }
    }
}

/// Edge values of a type, as fixtures write them.
fn edges(ty: ScalarType) -> Vec<Number> {
    if ty.is_float() {
        let all = [
            0.0,
            -0.0,
            0.5,
            -0.5,
            0.75,
            1.0,
            -1.0,
            1.5,
            2.5,
            -2.5,
            127.0,
            127.9,
            128.0,
            -128.9,
            -129.0,
            255.5,
            256.0,
            32767.5,
            65536.0,
            2147483520.0,
            2147483648.0,
            -2147483648.0,
            4294967296.0,
            9.3e18,
            -9.3e18,
            1.9e19,
            1e30,
            -1e30,
            1e-40,
            3.0e38,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        return all.map(Number::Float).to_vec();
    }
    let bits = ty.bits();
    let (min, greatest) = match ty.is_signed_int() {
        _ if ty == ScalarType::Bool => (0, 1),
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let all =
        [min, min + 1, -1, 0, 1, 2, 3, 7, 8, 31, 63, 100, 127, 128, 255, greatest / 2 + 1, greatest - 1, greatest];
    let mut all: Vec<i128> = all.into_iter().filter(|v| (min..=greatest).contains(v)).collect();
    all.dedup();
    all.into_iter().map(Number::Int).collect()
}

const NUMERIC: [ScalarType; 11] = [
    ScalarType::Int8,
    ScalarType::Int16,
    ScalarType::Int32,
    ScalarType::Int64,
    ScalarType::UInt8,
    ScalarType::UInt16,
    ScalarType::UInt32,
    ScalarType::UInt64,
    ScalarType::Float32,
    ScalarType::Float64,
    ScalarType::Bool,
];

fn dtype(ty: ScalarType) -> DLDataType {
    ty.name().parse().unwrap()
}

/// Casts a value of one type to another with Rust's `as`; returns it as text.
macro_rules! cast_by_rust {
    ($number:expr, $from:ty, $to:expr) => {{
        let v = match $number {
            Number::Int(v) => v as $from,
            Number::Float(v) => v as $from,
        };
        match $to {
            ScalarType::Int8 => (v as i8).show(),
            ScalarType::Int16 => (v as i16).show(),
            ScalarType::Int32 => (v as i32).show(),
            ScalarType::Int64 => (v as i64).show(),
            ScalarType::UInt8 => (v as u8).show(),
            ScalarType::UInt16 => (v as u16).show(),
            ScalarType::UInt32 => (v as u32).show(),
            ScalarType::UInt64 => (v as u64).show(),
            ScalarType::Float32 => (v as f32).show(),
            ScalarType::Float64 => (v as f64).show(),
            ScalarType::Bool => (v != (0 as $from)).show(),
            _ => String::new(),
        }
    }};
}

#[test]
fn casts_are_those_of_rust() {
    for from in NUMERIC {
        let outputs: Vec<String> = NUMERIC.iter().map(|to| format!("y_{to}: Tensor([n], {to})")).collect();
        let program = program(&format!("cast(x: Tensor([n], {from}), {})", outputs.join(", ")), |b| {
            let x = b.tensor("x");
            b.for_range(0, b.dim("n"), |i| {
                for to in NUMERIC {
                    b.tensor(&format!("y_{to}")).store([i], x.load([i]).cast(to));
                }
            });
        });
        let edges = edges(from);
        let shape = vec![edges.len() as i64];
        let mut args = vec![Value::from(TensorSpec::new(dtype(from), shape.clone()).with(edges.clone()))];
        args.extend(NUMERIC.iter().map(|to| TensorSpec::new(dtype(*to), shape.clone()).into()));
        let got = Prepared::new(&program).unwrap().elements(&Call::new(args));
        for (to, got) in NUMERIC.iter().zip(&got[1..]) {
            let want = edges.iter().map(|number| match from {
                ScalarType::Int8 => cast_by_rust!(*number, i8, to),
                ScalarType::Int16 => cast_by_rust!(*number, i16, to),
                ScalarType::Int32 => cast_by_rust!(*number, i32, to),
                ScalarType::Int64 => cast_by_rust!(*number, i64, to),
                ScalarType::UInt8 | ScalarType::Bool => cast_by_rust!(*number, u8, to),
                ScalarType::UInt16 => cast_by_rust!(*number, u16, to),
                ScalarType::UInt32 => cast_by_rust!(*number, u32, to),
                ScalarType::UInt64 => cast_by_rust!(*number, u64, to),
                ScalarType::Float32 => cast_by_rust!(*number, f32, to),
                _ => cast_by_rust!(*number, f64, to),
            });
            assert_eq!(*got, format!("[{}]", want.collect::<Vec<_>>().join(", ")), "{from} to {to}");
        }
    }
}

/// Binary operations on all pairs of edge values. The outputs are `r0..` of the type and `c0..` of type bool.
fn binary_table(
    ty: ScalarType,
    results: usize,
    comparisons: usize,
    build: impl Fn(&Body<'_>) + Send + Sync + 'static,
) -> (Vec<Number>, Vec<String>) {
    let mut signature = format!("f(a: Tensor([n], {ty}), b: Tensor([n], {ty})");
    (0..results).for_each(|i| signature += &format!(", r{i}: Tensor([n, n], {ty})"));
    (0..comparisons).for_each(|i| signature += &format!(", c{i}: Tensor([n, n], bool)"));
    signature.push(')');
    let program = program(&signature, build);
    let edges = edges(ty);
    let n = edges.len() as i64;
    let input = Value::from(TensorSpec::new(dtype(ty), vec![n]).with(edges.clone()));
    let mut args = vec![input.clone(), input];
    args.extend((0..results).map(|_| TensorSpec::new(dtype(ty), vec![n, n]).into()));
    args.extend((0..comparisons).map(|_| TensorSpec::new(DLDataType::BOOL, vec![n, n]).into()));
    (edges, Prepared::new(&program).unwrap().elements(&Call::new(args)).split_off(2))
}

/// The quotient rounded down, its remainder, and the quotient rounded up.
fn rounded(x: i128, y: i128) -> [i128; 3] {
    let towards_zero = x / y;
    let exact = x % y == 0;
    let positive = (x < 0) == (y < 0);
    let down = towards_zero - i128::from(!exact && !positive);
    [down, x - y * down, down + i128::from(!exact)]
}

macro_rules! int_operations {
    ($($ty:ident: $rust:ty;)*) => {$(
        {
            let (edges, got) = binary_table(ScalarType::$ty, 17, 6, |body| {
                let (a, b) = (body.tensor("a"), body.tensor("b"));
                let n = body.dim("n");
                body.for_range(0, n, |i| body.for_range(0, n, |j| {
                    let (x, y) = (a.load([i]), b.load([j]));
                    let nonzero = y.eq(0).select(body.int(ScalarType::$ty, 1), y);
                    let shift = y & i64::from(<$rust>::BITS - 1);
                    let results = [
                        x + y, x - y, x * y, x / nonzero, x % nonzero, x & y, x | y, x ^ y,
                        x << shift, x >> shift, x.min(y), x.max(y), -x, !x,
                        x.floor_div(nonzero), x.floor_rem(nonzero), x.ceil_div(nonzero),
                    ];
                    for (k, value) in results.into_iter().enumerate() {
                        body.tensor(&format!("r{k}")).store([i, j], value);
                    }
                    for (k, value) in [x.eq(y), x.ne(y), x.lt(y), x.le(y), x.gt(y), x.ge(y)].into_iter().enumerate() {
                        body.tensor(&format!("c{k}")).store([i, j], value);
                    }
                }));
            });
            let values: Vec<$rust> = edges.iter().map(|v| match v {
                Number::Int(v) => *v as $rust,
                Number::Float(_) => 0,
            }).collect();
            let pairs: Vec<($rust, $rust)> = values.iter().flat_map(|x| values.iter().map(|y| (*x, *y))).collect();
            let nonzero = |y: $rust| if y == 0 { 1 } else { y };
            let operations: [fn($rust, $rust) -> $rust; 17] = [
                |x, y| x.wrapping_add(y), |x, y| x.wrapping_sub(y), |x, y| x.wrapping_mul(y),
                |x, y| x.wrapping_div(y), |x, y| x.wrapping_rem(y), |x, y| x & y, |x, y| x | y, |x, y| x ^ y,
                |x, y| x.wrapping_shl(y as u32), |x, y| x.wrapping_shr(y as u32),
                |x, y| x.min(y), |x, y| x.max(y), |x, _| x.wrapping_neg(), |x, _| !x,
                |x, y| rounded(i128::from(x), i128::from(y))[0] as $rust,
                |x, y| rounded(i128::from(x), i128::from(y))[1] as $rust,
                |x, y| rounded(i128::from(x), i128::from(y))[2] as $rust,
            ];
            for (k, operation) in operations.into_iter().enumerate() {
                let divides = k == 3 || k == 4 || k >= 14;
                let want: Vec<$rust> =
                    pairs.iter().map(|(x, y)| operation(*x, if divides { nonzero(*y) } else { *y })).collect();
                assert_eq!(got[k], show(&want), "operation {k} on {}", ScalarType::$ty);
            }
            let comparisons: [fn(&$rust, &$rust) -> bool; 6] =
                [|x, y| x == y, |x, y| x != y, |x, y| x < y, |x, y| x <= y, |x, y| x > y, |x, y| x >= y];
            for (k, compare) in comparisons.into_iter().enumerate() {
                let want: Vec<bool> = pairs.iter().map(|(x, y)| compare(x, y)).collect();
                assert_eq!(got[17 + k], show(&want), "comparison {k} on {}", ScalarType::$ty);
            }
        }
    )*};
}

#[test]
fn integers_are_those_of_rust() {
    int_operations! {
        Int8: i8;
        Int16: i16;
        Int32: i32;
        Int64: i64;
        UInt8: u8;
        UInt16: u16;
        UInt32: u32;
        UInt64: u64;
    }
}

macro_rules! constant_divisors {
    ($($ty:ident: $rust:ty;)*) => {$(
        {
            // the last three are negative in signed types
            const DIVISORS: [$rust; 9] =
                [1, 2, 3, 7, 64, <$rust>::MAX, !0, !2, <$rust>::MIN | 1];
            let (edges, got) = binary_table(ScalarType::$ty, 3 * DIVISORS.len(), 0, |body| {
                let (a, n) = (body.tensor("a"), body.dim("n"));
                body.for_range(0, n, |i| body.for_range(0, n, |j| {
                    let x = a.load([i]);
                    for (k, divisor) in DIVISORS.into_iter().enumerate() {
                        let results = [x.floor_div(divisor), x.floor_rem(divisor), x.ceil_div(divisor)];
                        for (part, value) in results.into_iter().enumerate() {
                            body.tensor(&format!("r{}", 3 * k + part)).store([i, j], value);
                        }
                    }
                }));
            });
            let values: Vec<i128> = edges.iter().map(|v| match v {
                Number::Int(v) => *v,
                Number::Float(_) => 0,
            }).collect();
            for (k, divisor) in DIVISORS.into_iter().enumerate() {
                for part in 0..3 {
                    let result = |x: &i128| rounded(*x, i128::from(divisor))[part] as $rust;
                    let want: Vec<$rust> =
                        values.iter().flat_map(|x| std::iter::repeat_n(result(x), values.len())).collect();
                    assert_eq!(got[3 * k + part], show(&want), "part {part} by {divisor} on {}", ScalarType::$ty);
                }
            }
        }
    )*};
}

#[test]
fn division_by_constants_rounds() {
    constant_divisors! {
        Int8: i8;
        Int32: i32;
        Int64: i64;
        UInt8: u8;
        UInt64: u64;
    }
}

unsafe extern "C" {
    fn erf(x: f64) -> f64;
    fn erff(x: f32) -> f32;
}

macro_rules! float_operations {
    ($($ty:ident: $rust:ident, $erf:ident;)*) => {$(
        {
            let (edges, got) = binary_table(ScalarType::$ty, 17, 6, |body| {
                let (a, b) = (body.tensor("a"), body.tensor("b"));
                let n = body.dim("n");
                body.for_range(0, n, |i| body.for_range(0, n, |j| {
                    let (x, y) = (a.load([i]), b.load([j]));
                    let results = [
                        x + y, x - y, x * y, x / y, x.min(y), x.max(y), x.pow(y), -x, x.abs(), x.floor(), x.ceil(),
                        x.sqrt(), x.exp(), x.log(), x.tanh(), x.erf(), x.lt(y).select(x, y),
                    ];
                    for (k, value) in results.into_iter().enumerate() {
                        body.tensor(&format!("r{k}")).store([i, j], value);
                    }
                    for (k, value) in [x.eq(y), x.ne(y), x.lt(y), x.le(y), x.gt(y), x.ge(y)].into_iter().enumerate() {
                        body.tensor(&format!("c{k}")).store([i, j], value);
                    }
                }));
            });
            let values: Vec<$rust> = edges.iter().map(|v| match v {
                Number::Float(v) => *v as $rust,
                Number::Int(_) => 0.0,
            }).collect();
            let pairs: Vec<($rust, $rust)> = values.iter().flat_map(|x| values.iter().map(|y| (*x, *y))).collect();
            let operations: [fn($rust, $rust) -> $rust; 17] = [
                |x, y| x + y, |x, y| x - y, |x, y| x * y, |x, y| x / y,
                |x, y| if x.is_nan() || y.is_nan() { $rust::NAN }
                    else if x == y { if x.is_sign_negative() { x } else { y } }
                    else { x.min(y) },
                |x, y| if x.is_nan() || y.is_nan() { $rust::NAN }
                    else if x == y { if x.is_sign_negative() { y } else { x } }
                    else { x.max(y) },
                |x, y| x.powf(y), |x, _| -x, |x, _| x.abs(), |x, _| x.floor(), |x, _| x.ceil(),
                |x, _| x.sqrt(), |x, _| x.exp(), |x, _| x.ln(), |x, _| x.tanh(),
                // SAFETY: a function of libm.
                |x, _| unsafe { $erf(x) },
                |x, y| if x < y { x } else { y },
            ];
            for (k, operation) in operations.into_iter().enumerate() {
                let want: Vec<$rust> = pairs.iter().map(|(x, y)| operation(*x, *y)).collect();
                assert_eq!(got[k], show(&want), "operation {k} on {}", ScalarType::$ty);
            }
            let comparisons: [fn(&$rust, &$rust) -> bool; 6] =
                [|x, y| x == y, |x, y| x != y, |x, y| x < y, |x, y| x <= y, |x, y| x > y, |x, y| x >= y];
            for (k, compare) in comparisons.into_iter().enumerate() {
                let want: Vec<bool> = pairs.iter().map(|(x, y)| compare(x, y)).collect();
                assert_eq!(got[17 + k], show(&want), "comparison {k} on {}", ScalarType::$ty);
            }
        }
    )*};
}

#[test]
fn floats_are_those_of_rust() {
    float_operations! {
        Float32: f32, erff;
        Float64: f64, erf;
    }
}

/// The result of a call with `int64` arguments.
fn int_result(prepared: &mut Prepared<'_>, args: &[i64]) -> i64 {
    let outcome = prepared.run(&Call::new(args.iter().map(|v| Value::int(*v)))).unwrap();
    assert_eq!((outcome.code, outcome.error), (Ok(0), None), "{args:?}");
    let Returned::Plain(_, _, result) = outcome.result else { panic!("{args:?}: no result") };
    result as i64
}

#[test]
fn nested_conditionals() {
    let program = program("f(a: int64, b: int64) -> int64", |body| {
        let (a, b) = (body.arg("a"), body.arg("b"));
        let inner = body.if_else_value(
            a.gt(0),
            || body.if_else_value(b.gt(0), || a + b, || body.if_else_value(b.eq(0), || a, || a - b)),
            || {
                body.if_else(b.lt(-5), || body.ret(-1), || body.if_(a.eq(-7), || body.ret(-2)));
                a * b
            },
        );
        body.ret(inner + 1);
    });
    let mut prepared = Prepared::new(&program).unwrap();
    for a in [-8, -7, -1, 0, 1, 9] {
        for b in [-9, -6, -5, -1, 0, 1, 4] {
            let want = match (a > 0, b) {
                (true, 1..) => a + b + 1,
                (true, 0) => a + 1,
                (true, _) => a - b + 1,
                (false, ..-5) => -1,
                (false, _) if a == -7 => -2,
                (false, _) => a * b + 1,
            };
            assert_eq!(int_result(&mut prepared, &[a, b]), want, "{a} {b}");
        }
    }
}

#[test]
fn returning_out_of_nested_loops() {
    let program = program("f(product: int64, most: int64) -> int64", |b| {
        let (product, max) = (b.arg("product"), b.arg("most"));
        b.for_range(2, max, |i| {
            b.for_range(2, max, |j| {
                b.if_((i * j).eq(product), || {
                    b.if_(i.gt(j), || b.raise("ValueError", "{} > {}", [i, j]));
                    b.ret(i * 100 + j);
                });
            });
        });
        b.ret(0);
    });
    let mut prepared = Prepared::new(&program).unwrap();
    for (product, max, want) in [(6, 10, 203), (49, 10, 707), (49, 7, 0), (47, 10, 0), (4, -3, 0), (4, i64::MIN, 0)] {
        assert_eq!(int_result(&mut prepared, &[product, max]), want, "{product} {max}");
    }
}

/// Kinds and messages may begin with any character, including those that templates use for other purposes.
#[test]
fn errors_of_any_characters() {
    let cases = [
        ("É", "{}", "7"),
        ("ValueError", "\u{1}{}", "\u{1}7"),
        ("\u{7f}x", "ü{}\u{b0}", "ü7\u{b0}"),
        ("E", "\u{20}{}\n", " 7\n"),
        ("E", "", ""),
        ("ValueError", "Mismatched {}, got \u{10ffff}", "Mismatched 7, got \u{10ffff}"),
    ];
    for (kind, message, want) in cases {
        let program =
            program("f(a: int64)", move |b| b.raise(kind, message, &[b.arg("a")][..message.matches("{}").count()]));
        let outcome = Prepared::new(&program).unwrap().run(&Call::new([Value::int(7)])).unwrap();
        assert_eq!(outcome.error, Some((kind.to_owned(), want.to_owned())), "{message:?}");
    }
}

#[test]
fn folds_with_several_values() {
    let program = program("f(start: int64, end: int64) -> int64", |b| {
        // Fibonacci numbers in a and c, and the number of turns
        let [a, c, turns] =
            b.fold_n(b.arg("start"), b.arg("end"), [b.i64(0), b.i64(1), b.i64(0)], |i, [a, c, turns]| {
                // swapped on purpose: every value of a turn is that of the previous turn
                let odd = b.fold(0, i, b.i64(0), |k, n| n + (k % 2));
                b.ensure(odd.eq(i / 2), "ValueError", "{} is not {}", [odd, i / 2]);
                [c, a + c, turns + 1]
            });
        b.ret(a * 1_000_000 + c * 1000 + turns);
    });
    let mut prepared = Prepared::new(&program).unwrap();
    for (start, end) in [(0, 0), (0, 1), (0, 2), (0, 10), (3, 10), (10, 3), (i64::MAX, i64::MIN), (1, 14)] {
        let (mut a, mut c, mut turns) = (0, 1, 0);
        for _ in start..end {
            (a, c, turns) = (c, a + c, turns + 1);
        }
        assert_eq!(int_result(&mut prepared, &[start, end]), a * 1_000_000 + c * 1000 + turns, "{start}..{end}");
    }
}

#[test]
fn pointers() {
    let program = program("f(x: Tensor([n], int32), y: Tensor([n], int32)) -> handle", |b| {
        let (x, y) = (b.tensor("x").ptr(), b.tensor("y").ptr());
        b.for_range(0, b.dim("n"), |i| {
            let value = b.load(ScalarType::Int32, b.offset(x, ScalarType::Int32, i));
            b.store(b.offset(y, ScalarType::Int32, b.dim("n") - 1 - i), value);
        });
        b.ret((x.cast(ScalarType::Int64) - x.cast(ScalarType::Int64)).cast(ScalarType::Handle));
    });
    let mut prepared = Prepared::new(&program).unwrap();
    let tensor = || TensorSpec::new(DLDataType::INT32, vec![3]);
    let call = Call::new([tensor().with([1, 2, 3].map(Number::Int)).into(), tensor().into()]);
    assert_eq!(prepared.elements(&call)[1], "[3, 2, 1]");
}

/// Constant sizes, strides, alignment and `noalias` are facts that the body is compiled with.
#[test]
fn sizes_and_strides_of_the_signature() {
    let signature = "f(x: Tensor([3, n], float32, strides=[s, 1], noalias=True), y: Tensor([n, 3], float32, align=4, \
                     noalias=True), z: Tensor([2], int64, noalias=True)) -> int64";
    let program = program(signature, |b| {
        let (x, y, z) = (b.tensor("x"), b.tensor("y"), b.tensor("z"));
        b.for_range(0, x.size(0), |i| {
            b.for_range(0, y.size(0), |j| y.store([j, i], x.load([i, j])));
        });
        z.store([0], x.stride(0));
        z.store([1], z.size(0));
        b.ret(b.dim("n") * 10 + x.size(0));
    });
    let mut prepared = Prepared::new(&program).unwrap();
    let values: Vec<f32> = (0..15).map(|v| v as f32).collect();
    for n in 0..=5 {
        let x = TensorSpec::new(F32, vec![3, n]).with(floats(&values[..3 * n as usize]));
        let z = TensorSpec::new(DLDataType::INT64, vec![2]);
        let got = prepared.elements(&Call::new([x.into(), TensorSpec::new(F32, vec![n, 3]).into(), z.into()]));
        let n = n as usize;
        let want: Vec<f32> = (0..n).flat_map(|j| [values[j], values[n + j], values[2 * n + j]]).collect();
        assert_close(&got[1], &want.iter().map(|v| f64::from(*v)).collect::<Vec<_>>(), 0.0, &format!("{n}"));
        assert_eq!(got[2], format!("[{n}, 2]"));
    }
}

macro_rules! left_int_operations {
    ($($ty:ident: $rust:ty;)*) => {$(
        {
            let (edges, got) = binary_table(ScalarType::$ty, 13, 0, |body| {
                let a = body.tensor("a");
                let n = body.dim("n");
                body.for_range(0, n, |i| body.for_range(0, n, |j| {
                    let x = a.load([i]);
                    let nonzero = x.eq(0).select(body.int(ScalarType::$ty, 1), x);
                    let shift = x & i64::from(<$rust>::BITS - 1);
                    let results = [
                        100 + x, 100 - x, 3 * x, 100 / nonzero, 100 % nonzero, 85 & x, 85 | x, 85 ^ x,
                        5 << shift, 100 >> shift,
                        Operand::from(<$rust>::MAX) - x, Operand::from(100_usize) + x, (2 * x).max(7),
                    ];
                    for (k, value) in results.into_iter().enumerate() {
                        body.tensor(&format!("r{k}")).store([i, j], value);
                    }
                }));
            });
            let operations: [fn($rust) -> $rust; 13] = [
                |x| <$rust>::wrapping_add(100, x), |x| <$rust>::wrapping_sub(100, x), |x| <$rust>::wrapping_mul(3, x),
                |x| 100 / if x == 0 { 1 } else { x }, |x| 100 % if x == 0 { 1 } else { x },
                |x| 85 & x, |x| 85 | x, |x| 85 ^ x,
                |x| <$rust>::wrapping_shl(5, x as u32), |x| <$rust>::wrapping_shr(100, x as u32),
                |x| <$rust>::MAX.wrapping_sub(x), |x| <$rust>::wrapping_add(100, x),
                |x| <$rust>::wrapping_mul(2, x).max(7),
            ];
            let values = edges.iter().map(|v| match v {
                Number::Int(v) => *v as $rust,
                Number::Float(_) => 0,
            });
            let values: Vec<$rust> = values.flat_map(|v| std::iter::repeat_n(v, edges.len())).collect();
            for (k, operation) in operations.into_iter().enumerate() {
                let want: Vec<$rust> = values.iter().map(|x| operation(*x)).collect();
                assert_eq!(got[k], show(&want), "operation {k} on {}", ScalarType::$ty);
            }
        }
    )*};
}

#[test]
fn constants_on_the_left_of_integers() {
    left_int_operations! {
        Int8: i8;
        Int16: i16;
        Int32: i32;
        Int64: i64;
        UInt8: u8;
        UInt16: u16;
        UInt32: u32;
        UInt64: u64;
    }
}

/// The C library, where the code of bodies finds its functions.
mod libm {
    macro_rules! functions {
        ($($name:ident: fn($($arg:ident),*);)*) => {$(
            pub mod $name {
                unsafe extern "C" {
                    #[link_name = stringify!($name)]
                    fn double($($arg: f64),*) -> f64;
                    #[link_name = concat!(stringify!($name), "f")]
                    fn float($($arg: f32),*) -> f32;
                }
                pub fn f64($($arg: f64),*) -> f64 {
                    // SAFETY: that is the prototype.
                    unsafe { double($($arg),*) }
                }
                pub fn f32($($arg: f32),*) -> f32 {
                    // SAFETY: that is the prototype.
                    unsafe { float($($arg),*) }
                }
            }
        )*};
    }
    functions! {
        exp2: fn(x);
        expm1: fn(x);
        log2: fn(x);
        log10: fn(x);
        log1p: fn(x);
        cbrt: fn(x);
        sin: fn(x);
        cos: fn(x);
        tan: fn(x);
        asin: fn(x);
        acos: fn(x);
        atan: fn(x);
        sinh: fn(x);
        cosh: fn(x);
        asinh: fn(x);
        acosh: fn(x);
        atanh: fn(x);
        erfc: fn(x);
        round: fn(x);
        trunc: fn(x);
        rint: fn(x);
        atan2: fn(y, x);
        hypot: fn(x, y);
        fmod: fn(x, y);
        fma: fn(x, y, z);
    }
}

macro_rules! mathematics {
    ($($ty:ident: $rust:ident;)*) => {$(
        {
            let (edges, got) = binary_table(ScalarType::$ty, 31, 0, |body| {
                let (a, b) = (body.tensor("a"), body.tensor("b"));
                let n = body.dim("n");
                body.for_range(0, n, |i| body.for_range(0, n, |j| {
                    let (x, y) = (a.load([i]), b.load([j]));
                    let results = [
                        x.exp2(), x.expm1(), x.log2(), x.log10(), x.log1p(), x.cbrt(), x.sin(), x.cos(), x.tan(),
                        x.asin(), x.acos(), x.atan(), x.sinh(), x.cosh(), x.asinh(), x.acosh(), x.atanh(), x.erfc(),
                        x.round(), x.trunc(), x.round_ties_even(), x.atan2(y), x.hypot(y), x % y, x.fma(y, 0.5),
                        2.0 * x, 1.0 - x, (1.0 + x.abs()).log2(), 10.5 % x, Operand::from(1.5_f32) / x, 3 * x,
                    ];
                    for (k, value) in results.into_iter().enumerate() {
                        body.tensor(&format!("r{k}")).store([i, j], value);
                    }
                }));
            });
            let operations: [fn($rust, $rust) -> $rust; 31] = [
                |x, _| libm::exp2::$rust(x), |x, _| libm::expm1::$rust(x), |x, _| libm::log2::$rust(x),
                |x, _| libm::log10::$rust(x), |x, _| libm::log1p::$rust(x), |x, _| libm::cbrt::$rust(x),
                |x, _| libm::sin::$rust(x), |x, _| libm::cos::$rust(x), |x, _| libm::tan::$rust(x),
                |x, _| libm::asin::$rust(x), |x, _| libm::acos::$rust(x), |x, _| libm::atan::$rust(x),
                |x, _| libm::sinh::$rust(x), |x, _| libm::cosh::$rust(x), |x, _| libm::asinh::$rust(x),
                |x, _| libm::acosh::$rust(x), |x, _| libm::atanh::$rust(x), |x, _| libm::erfc::$rust(x),
                |x, _| libm::round::$rust(x), |x, _| libm::trunc::$rust(x), |x, _| libm::rint::$rust(x),
                libm::atan2::$rust, libm::hypot::$rust, libm::fmod::$rust, |x, y| libm::fma::$rust(x, y, 0.5),
                |x, _| 2.0 * x, |x, _| 1.0 - x, |x, _| libm::log2::$rust(1.0 + x.abs()),
                |x, _| libm::fmod::$rust(10.5, x), |x, _| 1.5 / x, |x, _| 3.0 * x,
            ];
            let values: Vec<$rust> = edges.iter().map(|v| match v {
                Number::Float(v) => *v as $rust,
                Number::Int(_) => 0.0,
            }).collect();
            let pairs: Vec<($rust, $rust)> = values.iter().flat_map(|x| values.iter().map(|y| (*x, *y))).collect();
            for (k, operation) in operations.into_iter().enumerate() {
                let want: Vec<$rust> = pairs.iter().map(|(x, y)| operation(*x, *y)).collect();
                assert_eq!(got[k], show(&want), "operation {k} on {}", ScalarType::$ty);
            }
        }
    )*};
}

#[test]
fn mathematics_is_that_of_libm() {
    mathematics! {
        Float32: f32;
        Float64: f64;
    }
}

/// Tests how `round` differs from truncation: at numbers next to halves, and next to the largest numbers with a
/// fraction.
#[test]
fn rounding_goes_away_from_zero() {
    let mut numbers = vec![0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 2.5, 1e15, 4503599627370495.5, 4503599627370496.0, 1e300];
    numbers.extend(numbers.clone().into_iter().flat_map(|v: f64| [v.next_down(), v.next_up()]));
    numbers.extend(numbers.clone().into_iter().map(|v| -v));
    let program = program("f(x: Tensor([n], float64), y: Tensor([n], float64), z: Tensor([n], int64))", |b| {
        let (x, y, z) = (b.tensor("x"), b.tensor("y"), b.tensor("z"));
        b.for_range(0, b.dim("n"), |i| {
            let rounded = x.load([i]).round();
            y.store([i], rounded);
            // this shows the sign of a zero too
            z.store([i], rounded.bitcast(ScalarType::Int64));
        });
    });
    let shape = vec![numbers.len() as i64];
    let x = TensorSpec::new(F64, shape.clone()).with(numbers.iter().copied().map(Number::Float));
    let (y, z) = (TensorSpec::new(F64, shape.clone()), TensorSpec::new(DLDataType::INT64, shape));
    let got = Prepared::new(&program).unwrap().elements(&Call::new([x.into(), y.into(), z.into()]));
    // not `f64::round`, which calls the C library: mingw's rounds the number just below a half up to 1
    let round = |v: &f64| if v.fract().abs() < 0.5 { v.trunc() } else { v.trunc() + v.signum() };
    let want: Vec<f64> = numbers.iter().map(round).collect();
    assert_eq!(got[1], show(&want));
    assert_eq!(got[2], show(&want.iter().map(|v| v.to_bits() as i64).collect::<Vec<_>>()));
}

#[test]
fn bits_and_upper_halves() {
    let signature = "f(a: int64, b: int64, r: Tensor([8], int64))";
    let program = program(signature, |body| {
        let (a, b, r) = (body.arg("a"), body.arg("b"), body.tensor("r"));
        let (x, y) = (a.cast(ScalarType::UInt64), b.cast(ScalarType::UInt64));
        r.store([0], a.mul_hi(b));
        r.store([1], x.mul_hi(y).cast(ScalarType::Int64));
        r.store([2], a.bitcast(ScalarType::Float64).bitcast(ScalarType::UInt64).bitcast(ScalarType::Int64));
        r.store([3], a.cast(ScalarType::Float64).bitcast(ScalarType::Int64));
        r.store([4], a.cast(ScalarType::Float32).bitcast(ScalarType::UInt32).cast(ScalarType::Int64));
        r.store(
            [5],
            a.cast(ScalarType::Int32).bitcast(ScalarType::Float32).bitcast(ScalarType::Int32).cast(ScalarType::Int64),
        );
        // values that only an unsigned 64-bit integer can hold
        r.store([6], (x ^ u64::MAX).cast(ScalarType::Int64));
        r.store([7], body.int(ScalarType::UInt64, u64::MAX - 5).min(x).cast(ScalarType::Int64));
    });
    let mut prepared = Prepared::new(&program).unwrap();
    for a in [0, 1, -1, 1 << 40, i64::MAX, i64::MIN, 0x0123_4567_89ab_cdef] {
        for b in [0, 3, -3, 1 << 30, i64::MAX, i64::MIN] {
            let r = TensorSpec::new(DLDataType::INT64, vec![8]);
            let got = prepared.elements(&Call::new([Value::int(a), Value::int(b), r.into()]));
            let want = [
                ((i128::from(a) * i128::from(b)) >> 64) as i64,
                ((u128::from(a as u64) * u128::from(b as u64)) >> 64) as i64,
                a,
                (a as f64).to_bits() as i64,
                i64::from((a as f32).to_bits()),
                i64::from(a as i32),
                !a,
                (u64::MAX - 5).min(a as u64) as i64,
            ];
            assert_eq!(got[0], show(&want), "{a} {b}");
        }
    }
}

#[test]
fn while_loops() {
    let collatz = program("f(n: int64, most: int64) -> int64", |b| {
        let [n, turns] = b.while_loop(
            [b.arg("n"), b.i64(0)],
            // a condition with several blocks, which may end the function
            |[n, turns]| {
                b.ensure(turns.lt(b.arg("most")), "RuntimeError", "{} after {} turns", [n, turns]);
                b.if_else_value(n.lt(0), || b.bool(false), || n.ne(1))
            },
            |[n, turns]| {
                let next = b.if_else_value((n % 2).eq(0), || n / 2, || 3 * n + 1);
                [next, turns + 1]
            },
        );
        b.ret(n.lt(0).select(b.i64(-1), turns));
    });
    let mut prepared = Prepared::new(&collatz).unwrap();
    for (n, want) in [(1, 0), (2, 1), (7, 16), (27, 111), (-5, -1)] {
        assert_eq!(int_result(&mut prepared, &[n, 1000]), want, "{n}");
    }
    let outcome = prepared.run(&Call::new([Value::int(27), Value::int(3)])).unwrap();
    assert_eq!(outcome.error, Some(("RuntimeError".to_owned(), "124 after 3 turns".to_owned())));

    // the state is in memory, and a turn may return from the function
    let count_down = program("f(x: Tensor([1], int64), stop: int64) -> int64", |b| {
        let x = b.tensor("x");
        b.while_(
            || x.load([0]).gt(0),
            || {
                b.if_(x.load([0]).eq(b.arg("stop")), || b.ret(x.load([0])));
                x.store([0], x.load([0]) - 3);
            },
        );
        b.ret(-1);
    });
    let mut prepared = Prepared::new(&count_down).unwrap();
    for (start, stop, left, result) in [(10, 4, 4, 4), (10, 5, -2, -1), (0, 0, 0, -1), (3, 3, 3, 3)] {
        let x = TensorSpec::new(DLDataType::INT64, vec![1]).with([Number::Int(start)]);
        let outcome = prepared.run(&Call::new([x.into(), Value::int(stop)])).unwrap();
        assert_eq!(outcome.elements[0].1, format!("[{left}]"), "{start} {stop}");
        let Returned::Plain(_, _, got) = outcome.result else { panic!("{start} {stop}: no result") };
        assert_eq!(got as i64, result, "{start} {stop}");
    }
}

/// `continue_` and `continue_with` in every kind of loop, next to `break_`.
#[test]
fn turns_that_end_early() {
    // adds what isn't a multiple of 3; the other loops leave their turns, too
    let program = program("f(end: int64, step: int64, x: Tensor([1], int64)) -> int64", |b| {
        let (end, step, x) = (b.arg("end"), b.arg("step"), b.tensor("x"));
        let sum = b.fold(0, end, b.i64(0), |i, sum| {
            b.if_(i.floor_rem(3).eq(0), || b.continue_());
            sum + i
        });
        let [stepped, left] = b.fold_step_n(0, end, step, [b.i64(0), b.i64(0)], |i, [stepped, left]| {
            b.if_(i.floor_rem(2).eq(0), || b.continue_with([stepped, left + 1]));
            b.if_(i.gt(20), || b.break_());
            [stepped + i, left]
        });
        let [_, odd] = b.while_loop(
            [end, b.i64(0)],
            |[n, _]| n.gt(0),
            |[n, odd]| {
                b.for_range_step(0, 4, 2, |k| {
                    x.store([0], x.load([0]) + 1);
                    b.if_(k.eq(0), || b.continue_());
                    // only the inner loop's turn ends
                    x.store([0], x.load([0]) + 10);
                });
                b.if_else((n & 1).eq(0), || b.continue_with([n - 1, odd]), || b.continue_with([n - 1, odd + 1]));
                // this is never reached
                [n, odd]
            },
        );
        b.while_(
            || x.load([0]).gt(5),
            || {
                x.store([0], x.load([0]) - 2);
                b.if_(x.load([0]).gt(8), || b.continue_());
                x.store([0], x.load([0]) - 100);
            },
        );
        b.ret(((sum * 1000 + stepped) * 1000 + left) * 1000 + odd);
    });
    let mut prepared = Prepared::new(&program).unwrap();
    for (end, step) in [(0, 1), (1, 1), (2, 5), (7, 1), (10, 3), (30, 1), (30, 3), (41, 40)] {
        let sum: i64 = (0..end).filter(|i| i % 3 != 0).sum();
        let (mut stepped, mut left) = (0, 0);
        for i in (0..end).step_by(step as usize) {
            if i % 2 == 0 {
                left += 1;
                continue;
            }
            if i > 20 {
                break;
            }
            stepped += i;
        }
        let mut in_memory = 12 * end;
        while in_memory > 5 {
            in_memory -= 2;
            if in_memory > 8 {
                continue;
            }
            in_memory -= 100;
        }
        let x = TensorSpec::new(DLDataType::INT64, vec![1]).with([Number::Int(0)]);
        let outcome = prepared.run(&Call::new([Value::int(end), Value::int(step), x.into()])).unwrap();
        let Returned::Plain(_, _, got) = outcome.result else { panic!("{end} {step}: no result") };
        let want = ((sum * 1000 + stepped) * 1000 + left) * 1000 + (end + 1) / 2;
        assert_eq!(got as i64, want, "{end} {step}");
        // elements are reported only if the call changes them
        let changed = outcome.elements.first().map_or("[0]", |(_, elements)| elements);
        assert_eq!(changed, format!("[{in_memory}]"), "{end} {step}");
    }
}

/// A condition that goes on to the next turn is computed again, with the values of that turn.
#[test]
fn a_condition_that_ends_its_turn_is_computed_again() {
    let program = program("f(n: int64) -> int64", |b| {
        let [last, turns] = b.while_loop(
            [b.arg("n"), b.i64(0)],
            |[n, turns]| {
                b.if_(n.floor_rem(5).ne(0), || b.continue_with([n - 1, turns]));
                n.gt(0)
            },
            |[n, turns]| [n - 1, turns + 1],
        );
        b.ret(last * 100 + turns);
    });
    let mut prepared = Prepared::new(&program).unwrap();
    for (n, want) in [(0, 0), (4, 0), (5, 1), (23, 4), (-3, -500)] {
        assert_eq!(int_result(&mut prepared, &[n]), want, "{n}");
    }
}

/// The sum and the number of the indices of a loop, computed in Rust.
fn stepped(start: i64, end: i64, step: i64) -> (i64, i64) {
    let indices = (i128::from(start)..i128::from(end)).step_by(step as usize);
    indices.fold((0, 0), |(sum, count), i| (i64::wrapping_add(sum, i as i64), count + 1))
}

#[test]
fn loops_with_steps() {
    const MAX: i64 = i64::MAX;
    const MIN: i64 = i64::MIN;
    let ranges =
        [(0, 10), (0, 9), (0, 0), (5, 3), (-7, 8), (3, 4), (MAX - 10, MAX), (MIN, MIN + 9), (MAX, MIN), (-3, -2)];
    let computed = program("f(start: int64, end: int64, step: int64, r: Tensor([2], int64))", |b| {
        let (start, end, step, r) = (b.arg("start"), b.arg("end"), b.arg("step"), b.tensor("r"));
        let [sum, count] =
            b.fold_step_n(start, end, step, [b.i64(0), b.i64(0)], |i, [sum, count]| [sum + i, count + 1]);
        r.store([0], sum);
        r.store([1], count);
    });
    let mut computed = Prepared::new(&computed).unwrap();
    for (start, end) in ranges {
        for step in [1, 2, 3, 7, 1 << 40, MAX] {
            let r = TensorSpec::new(DLDataType::INT64, vec![2]);
            let call = Call::new([Value::int(start), Value::int(end), Value::int(step), r.into()]);
            let (sum, count) = stepped(start, end, step);
            assert_eq!(computed.elements(&call)[0], format!("[{sum}, {count}]"), "{start}..{end} by {step}");
        }
    }
    // the distance between the two numbers doesn't fit in an int64
    let r = || TensorSpec::new(DLDataType::INT64, vec![2]).into();
    let call = Call::new([Value::int(MIN), Value::int(MAX), Value::int(1 << 62), r()]);
    assert_eq!(computed.elements(&call)[0], format!("[{MIN}, 4]"));
    for step in [0, -1, MIN] {
        let outcome = computed.run(&Call::new([Value::int(0), Value::int(3), Value::int(step), r()])).unwrap();
        let text = format!("expected a loop step of at least 1, got {step}");
        assert_eq!(outcome.error, Some(("ValueError".to_owned(), text)));
    }

    for step in [1_usize, 2, 5, 1 << 40] {
        let constant = program("f(start: int64, end: int64, r: Tensor([2], int64))", move |b| {
            let (start, end, r) = (b.arg("start"), b.arg("end"), b.tensor("r"));
            b.for_range_step(start, end, step, |i| r.store([0], r.load([0]) + i));
            r.store([1], b.fold_step(start, end, step, b.i64(0), |_, count| count + 1));
        });
        let mut constant = Prepared::new(&constant).unwrap();
        for (start, end) in ranges {
            let r = TensorSpec::new(DLDataType::INT64, vec![2]).with([0, 0].map(Number::Int));
            let call = Call::new([Value::int(start), Value::int(end), r.into()]);
            let (sum, count) = stepped(start, end, step as i64);
            assert_eq!(constant.elements(&call)[0], format!("[{sum}, {count}]"), "{start}..{end} by {step}");
        }
    }
}

#[test]
fn errors_print_many_values() {
    for count in [2, 3, 4, 14, Body::MAX_MESSAGE_VALUES] {
        let program = program("f(a: int64, b: uint8, c: bool)", move |b| {
            let message = format!("values: {}", vec!["{}"; count].join(" and "));
            let values = [b.arg("a"), b.arg("b").cast(ScalarType::Int64), b.arg("c").cast(ScalarType::Int64)];
            // test both ways to raise, with few values in the message and with many
            b.if_(b.arg("c"), || b.raise("KeyError", &message, [values[0]].repeat(count)));
            b.ensure(b.arg("b").ne(7), "IndexError", "{} {}", &values[..2]);
            let values: Vec<_> = (0..count).map(|i| values[i % 3] + i).collect();
            b.ensure(b.arg("a").eq(0), "ValueError", &message, &values);
        });
        let mut prepared = Prepared::new(&program).unwrap();
        let mut raised = |a: i64, b: i64, c: bool| {
            let call = Call::new([Value::int(a), Value::int(b), Value::bool(c)]);
            prepared.run(&call).unwrap().error
        };
        let text = |values: Vec<i64>| {
            let values: Vec<_> = values.into_iter().map(|v| v.to_string()).collect();
            format!("values: {}", values.join(" and "))
        };
        assert_eq!(raised(0, 0, false), None);
        assert_eq!(raised(i64::MIN, 1, true), Some(("KeyError".to_owned(), text(vec![i64::MIN; count]))));
        assert_eq!(raised(5, 7, false), Some(("IndexError".to_owned(), "5 7".to_owned())));
        let values = (0..count).map(|i| [-100, 255, 0][i % 3] + i as i64).collect();
        assert_eq!(raised(-100, 255, false), Some(("ValueError".to_owned(), text(values))));
    }
}

#[test]
fn parameters_by_number() {
    let signature = "f(a: int32, t: Tuple[float64, Tuple[Tensor([n], int64), Optional[int64]]], s: str, \
                     o: Optional[Tuple[bool, int16]]) -> int64";
    let program = program(signature, |b| {
        let (a, t, s, o) = (b.param(0), b.param(1), b.param(2), b.param(3));
        assert_eq!(b.params().map(|p| p.path().to_owned()).collect::<Vec<_>>(), ["a", "t", "s", "o"]);
        assert_eq!((t.item(1).item(0).path(), o.item(1).path()), ("t[1][0]", "o[1]"));
        assert_eq!(format!("{:?} {:?}", a, t.item(1).item(1)), "ParamRef(a: int32) ParamRef(t[1][1]: Optional[int64])");
        assert_eq!((a.items().len(), t.items().len(), o.items().len()), (0, 2, 2));
        assert!(matches!(s.ty(), Some(tvm_ffi_codegen::ParamType::Str)));
        let (x, last) = (t.item(1).item(0).tensor(), t.item(1).item(1));
        let sum = b.fold(0, x.size(0), a.value().cast(ScalarType::Int64), |i, sum| sum + x.load([i]));
        let sum = sum + t.item(0).value().cast(ScalarType::Int64) * 1000 + s.size() * 10_000;
        let sum = last.is_given().select(sum + last.value(), sum);
        let both = o.is_given() & o.item(0).value();
        b.ret(both.select(sum + o.item(1).value().cast(ScalarType::Int64) * 100_000, sum));
    });
    let mut prepared = Prepared::new(&program).unwrap();
    let x = || Value::from(TensorSpec::new(DLDataType::INT64, vec![2]).with([10, 20].map(Number::Int)));
    let pair = |items: [Value; 2]| Value::Array(items.to_vec());
    let cases = [
        (pair([Value::Float(3.0), pair([x(), Value::Raw(0, 0)])]), Value::Raw(0, 0), 23_031),
        (pair([Value::Float(0.0), pair([x(), Value::int(100)])]), pair([Value::bool(true), Value::int(4)]), 420_131),
        (pair([Value::Float(0.0), pair([x(), Value::int(100)])]), pair([Value::bool(false), Value::int(4)]), 20_131),
    ];
    for (t, o, want) in cases {
        let outcome = prepared.run(&Call::new([Value::int(1), t, Value::Str("ab".into()), o])).unwrap();
        assert_eq!((outcome.code, outcome.error), (Ok(0), None));
        let Returned::Plain(_, _, got) = outcome.result else { panic!("no result") };
        assert_eq!(got, want);
    }
}

#[test]
fn elements_of_half_types_are_those_of_the_model() {
    for ty in [ScalarType::Float16, ScalarType::BFloat16] {
        let signature = format!("wide(x: Tensor([n], {ty}), y: Tensor([n], float32))");
        let wide = program(&signature, |b| {
            let (x, y) = (b.tensor("x"), b.tensor("y"));
            b.for_range(0, b.dim("n"), |i| y.store([i], x.load([i])));
        });
        let tensor = |dtype: DLDataType, count: usize| TensorSpec::new(dtype, vec![count as i64]);
        // a buffer of these tests has at most 64 KiB
        const MOST: usize = 8192;
        let mut prepared = Prepared::new(&wide).unwrap();
        // all bit patterns; one NaN stands for the others
        let values: Vec<f64> = (0..=u16::MAX).map(|bits| half::value(ty, bits)).collect();
        for values in values.chunks(MOST) {
            let x = tensor(dtype(ty), values.len()).with(values.iter().map(|value| Number::Float(*value)));
            let got = prepared.elements(&Call::new([x.into(), tensor(F32, values.len()).into()]));
            assert_eq!(got[1], show(&values.iter().map(|value| *value as f32).collect::<Vec<_>>()), "{ty}");
        }

        let narrow = program(&signature.replace("wide", "narrow"), |b| {
            let (x, y) = (b.tensor("x"), b.tensor("y"));
            b.for_range(0, b.dim("n"), |i| x.store([i], y.load([i])));
        });
        // each value, the middle between it and the next one, and its neighbours
        let middles = (0..0x7f80u16).step_by(17).flat_map(|bits| {
            let middle = (half::value(ty, bits) + half::value(ty, bits + 1)) as f32 / 2.0;
            [middle, f32::from_bits(middle.to_bits() + 1), f32::from_bits(middle.to_bits().saturating_sub(1)), -middle]
        });
        let numbers: Vec<f32> = middles.filter(|middle| !middle.is_nan()).chain([f32::MAX, f32::INFINITY]).collect();
        let mut prepared = Prepared::new(&narrow).unwrap();
        for numbers in numbers.chunks(MOST) {
            let y = tensor(F32, numbers.len()).with(floats(numbers));
            let got = prepared.elements(&Call::new([tensor(dtype(ty), numbers.len()).into(), y.into()]));
            let want = numbers.iter().map(|number| half::value(ty, half::nearest(ty, f64::from(*number))) as f32);
            assert_eq!(got[0], show(&want.collect::<Vec<_>>()), "{ty}");
        }
    }
}
