//! Tests of parsing the text form.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::spec::{
    CompareOp, DType, DefaultValue, Device, DeviceId, Dim, DimOp, Launch, LaunchedSignature, Layout, MAX_DIM_DEPTH,
    MAX_TYPE_DEPTH, ScalarType, TensorShape, TensorType,
};
use tvm_ffi_runtime::abi::{DLDataType, DLDevice, DLDeviceType};

/// Everything that the text form can express, as `Display` writes it.
const CANONICAL: [&str; 18] = [
    "add_one(x: Tensor([n], float32), y: Tensor([n], float32))",
    "gemm(a: Tensor([m, k], float16, device=\"cuda\"), b: Tensor([k, n], float16, device=\"cuda\"), \
     c: Tensor([m, n], float32, device=\"cuda\"), alpha: float64 = 1.0, relu: bool = False)",
    "scale(x: Tensor([n, 4 * c], float32, strides=[s, 1], align=16), f: float32) \
     where n % 16 == 0, n <= 65536, s >= 4 * c",
    "view(x: Tensor([...], any, strides=any, device=any))",
    "attn(q: Tensor([b, h, s, d], bfloat16), mask: Optional[Tensor([s, s], bool)], \
     cfg: Tuple[int32, float64, Tuple[bool, handle]])",
    "make(n: int64, d: device, t: dtype) -> Tensor([n], float32)",
    "f(cfg: Record(\"my.Config\", alpha: float32, shape: Tuple[int64, int64], x: Optional[Tensor([n], int8)]), \
     y: Tensor([cfg.shape[1] * n], int8), n: int64, t: Tuple[int8, Record(\"R\", k: Tuple[int64])]) \
     where cfg.shape[0] % 2 == 0, t[1].k[0] > t[0]",
    "name(s: str, b: bytes, any: Any) -> str",
    "apply(f: Function, xs: Array[Tensor([n], float32)], m: Map[str, int64], o: Object(\"my.Type\"))",
    "launch(x: Tensor([n], float32, device=\"cuda\"), s: EnvStream)",
    "launch(s: EnvState(\"mylang.get_global_state\"), x: Tensor([n], float32))",
    "version(mode: Int(3), fast: Bool(True), none: None, shape: Shape([n, 4])) -> int64",
    "fp8(x: Tensor([n, k], float8_e4m3fn), w: Tensor([k, n], float4_e2m1fn), dtype_policy=\"storage\")",
    "make(n: int64, d: device, t: dtype) -> Tensor([n + 1, 2], t, device=d)",
    "f(x: Tensor([n], float32, device=\"cuda:any\"), y: Tensor([n], any, device=\"rocm:1\"), m: Module, s: Shape, \
     l: List[Dict[str, Array[Any]]], t: Tuple[], i: Int(-9223372036854775808), b: Bool(False), \
     dtype_policy=\"sign+bool+fp8\")",
    "f(any: Tensor([where, None], any), where: int64, dtype_policy: int32, device: device) -> Array[Any] \
     where where > 0, None != where, dtype_policy // 2 < 3",
    "f(a: int8 = -2, b: float32 = 1.5, c: float64 = 1e-5, d: float64 = inf, e: float64 = -inf, g: float64 = nan, \
     h: bool = True, i: Optional[int64] = None, j: str = \"text\", k: dtype = \"float32\", l: device = \"cuda:1\", \
     m: Any = \"cuda:1\", n: bytes = \"\", o: Optional[device] = \"cpu:0\", p: float64 = -0.0, q: float64 = 1e300, \
     r: Any = 1.0, s: Any = 1, t: Int(-3) = -3, u: handle = None)",
    "f(x: Tensor([a, b, a * -3 + b, a - -3, -3 * a, (a + b) * 2, a - (b - 1), a - b - 1, a // (b * 2), a // b % 2, \
     a * b + 1 - a % b], int8, strides=[-1, -9223372036854775808, a, b, 1, 1, 1, 1, 1, 1, 1]))",
];

fn round_trip(text: &str) {
    assert_eq!(text.parse::<Signature>().unwrap().to_string(), text);
}

fn shown(text: &str) -> String {
    let signature = text.parse::<Signature>().unwrap();
    assert_eq!(signature.to_string().parse(), Ok(signature.clone()), "{text}");
    signature.to_string()
}

fn syntax(text: &str) -> SyntaxError {
    match text.parse::<Signature>() {
        Err(ParseError::Syntax(error)) => error,
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn what_is_shown_is_read() {
    CANONICAL.into_iter().for_each(round_trip);
    round_trip("f()");
    round_trip("f() -> float64");
    round_trip("ns.f$1(x: int64) -> handle");
    round_trip("add_one(x: Tensor([n], float32), y: Tensor([n], float32))");
    round_trip(
        "add_one(x: Tensor([n], float32), y: Tensor([n, 4], int8x4, strides=[s, 1], device=\"cuda:1\", align=16), \
         a: int64, h: handle) -> float64",
    );
    round_trip("f(x: Tensor([], float8_e4m3fn), y: Tensor([0], float4_e2m1fnx2, strides=[-1]))");
    round_trip("f(x: Tensor([9223372036854775807], int8xvscalex4, device=\"cpu:0\"))");
    round_trip("f(x: Tensor([n], float32), *, y: Tensor([n], float32, align=16, out=True), k: int64 = 1)");
    round_trip("f(*, x: Tensor([n], float32, noalias=True, inout=True), dtype_policy=\"sign\")");
    round_trip("f(x: Tensor([n], float32, align=16, noalias=True), y: Tensor([n], float32, noalias=True))");
    for &ty in ScalarType::ALL {
        round_trip(&format!("f(a: {ty}) -> {ty}"));
    }
}

#[test]
fn whitespace_order_and_trailing_commas_are_free() {
    let text = " f\t(x:Tensor([n,],f32,align=8,device=\"cuda\",strides=[ 1 ],),\n a :\r\n int8 , )->None ";
    let want = "f(x: Tensor([n], float32, strides=[1], device=\"cuda\", align=8), a: int8)";
    assert_eq!(text.parse::<Signature>().unwrap().to_string(), want);
    let text = "f(t:Tuple[int8,],o:Optional[ str, ],m:Map[str,Any,],n:Shape([a,]),x:Tensor([a*2],f32),\
                dtype_policy=\"sign\",)\n where a>=-1";
    let want = "f(t: Tuple[int8], o: Optional[str], m: Map[str, Any], n: Shape([a]), x: Tensor([a * 2], float32), \
                dtype_policy=\"sign\") where a >= -1";
    assert_eq!(shown(text), want);
    assert_eq!("f()->bool".parse::<Signature>().unwrap().ret(), Some(&ScalarType::Bool.into()));
}

#[test]
fn types_mean_what_they_say() {
    let signature: Signature = CANONICAL[3].parse().unwrap();
    let open = TensorType { shape: TensorShape::Any, ..TensorType::new([0; 0], DType::Any) };
    assert_eq!(signature.params()[0].ty, open.with_device(Device::Any).with_any_strides().into());

    let text = "f(o: Optional[Array[Map[str, int64]]], l: List[Dict[bytes, Any]], s: Shape([n]), i: Int(-3), \
                k: Object(\"k\"))";
    let signature: Signature = text.parse().unwrap();
    let types: Vec<_> = signature.params().iter().map(|param| param.ty.clone()).collect();
    let map = ParamType::map(ParamType::Str, ScalarType::Int64);
    let want = [
        ParamType::array(map).optional(),
        ParamType::list(ParamType::dict(ParamType::Bytes, ParamType::Any)),
        ParamType::Shape(Some(vec!["n".into()])),
        ParamType::Int(-3),
        ParamType::object("k"),
    ];
    assert_eq!(types, want);

    let text = "f(n: int64, d: device, t: dtype) -> Tensor([n], t, device=d)";
    let signature: Signature = text.parse().unwrap();
    let want = TensorType::new(["n"], DType::Param("t".to_owned())).with_device(Device::Param("d".to_owned()));
    assert_eq!(signature.ret(), Some(&want.into()));
    assert_eq!("f() -> None".parse::<Signature>().unwrap().ret(), None);

    let device = |text: &str| {
        let signature: Signature = format!("f(x: Tensor([n], any, strides=[any], device={text}))").parse().unwrap();
        let ParamType::Tensor(tensor) = &signature.params()[0].ty else { panic!() };
        assert_eq!(tensor.layout, Layout::Strides(vec!["any".into()]));
        tensor.device.clone()
    };
    assert_eq!(device("\"cuda\""), Device::CUDA);
    assert_eq!(device("\"cuda:2\""), Device::numbered(DLDeviceType::CUDA, 2));
    assert_eq!(device("\"cuda:any\""), Device::Kind(DLDeviceType::CUDA, DeviceId::Any));
    assert_eq!(device("any"), Device::Any);
}

#[test]
fn defaults_have_their_parameters_types() {
    let default = |text: &str| {
        let signature = format!("f(x: {text})").parse::<Signature>().unwrap_or_else(|e| panic!("{text}: {e}"));
        let default = signature.params()[0].default.clone().unwrap();
        assert_eq!(signature.to_string().parse(), Ok(signature), "{text}");
        default
    };
    assert_eq!(default("int8 = -2"), DefaultValue::Int(-2));
    assert_eq!(default("int64=-9223372036854775808"), DefaultValue::Int(i64::MIN));
    assert_eq!(default("float32 = 1"), DefaultValue::Float(1.0));
    assert_eq!(default("Any = 1"), DefaultValue::Int(1));
    assert_eq!(default("Any = 1.0"), DefaultValue::Float(1.0));
    assert_eq!(default("float64 = -0.0"), DefaultValue::Float(-0.0));
    assert_eq!(default("float64 = -1E+2"), DefaultValue::Float(-100.0));
    assert_eq!(default("float64 = -inf"), DefaultValue::Float(f64::NEG_INFINITY));
    assert_eq!(default("float64 = nan"), DefaultValue::Float(f64::NAN));
    assert_eq!(default("Optional[float64] = 2"), DefaultValue::Float(2.0));
    assert_eq!(default("Optional[str] = None"), DefaultValue::None);
    assert_eq!(default("Any = \"cpu\""), DefaultValue::Str("cpu".to_owned()));
    assert_eq!(default("dtype = \"f16\""), DefaultValue::DType(DLDataType::FLOAT16));
    assert_eq!(default("device = \"cpu\""), DefaultValue::Device(DLDevice::CPU));
    assert_eq!(default("Optional[device] = \"cuda:1\""), DefaultValue::Device(DLDevice::cuda(1)));
    for value in [1e300, 1e-7, 0.1, 5e-324, f64::MAX, 1e15, 1e16, 123_456_789.0, -1e-300, f64::MIN_POSITIVE] {
        assert_eq!(default(&format!("float64 = {value:?}")), DefaultValue::Float(value));
    }
    // not every NaN has its own text form
    let signature = Signature::builder("f").param_or("x", ParamType::Any, -f64::NAN).build().unwrap();
    assert_eq!(signature.to_string().parse(), Ok(signature));
}

#[test]
fn operations_bind_as_in_python() {
    let dim = |text: &str| {
        let signature: Signature = format!("f(a: int64, b: int64) where {text} == a").parse().unwrap();
        assert_eq!(signature.to_string().parse(), Ok(signature.clone()), "{text}");
        signature.constraints()[0].left.clone()
    };
    let (a, b) = (|| Dim::from("a"), || Dim::from("b"));
    assert_eq!(dim("a-1"), a() - 1);
    assert_eq!(dim("a - -1"), a() - -1);
    assert_eq!(dim("a--1"), a() - -1);
    assert_eq!(dim("a*-1+b"), a() * -1 + b());
    assert_eq!(dim("1-1"), Dim::from(1) - 1);
    assert_eq!(dim("a - b - 1"), (a() - b()) - 1);
    assert_eq!(dim("a - (b - 1)"), a() - (b() - 1));
    assert_eq!(dim("a + b * 2"), a() + b() * 2);
    assert_eq!(dim("(a + b) * 2"), (a() + b()) * 2);
    assert_eq!(dim("a // b % 2 * 3"), (a().floor_div(b()) % 2) * 3);
    assert_eq!(dim("((a))"), a());
    assert_eq!(dim("-3 // 2").eval(&|_| None), Some(-2));
    assert_eq!(dim("-3 % 4 - -2 * (1 + 2)").eval(&|_| None), Some(7));
}

/// All dimensions with two operations, in both groupings, with operands of all kinds.
#[test]
fn each_grouping_of_operations_is_read_back() {
    let ops = [DimOp::Add, DimOp::Sub, DimOp::Mul, DimOp::FloorDiv, DimOp::Mod];
    let operands = || [Dim::from("a"), Dim::from(3), Dim::from(-3), Dim::from(i64::MIN), Dim::from(i64::MAX)];
    for x in operands() {
        for y in operands() {
            let mut builder = Signature::builder("f").param("a", ScalarType::Int64);
            for op in ops {
                for inner in ops {
                    let left = Dim::binary(op, Dim::binary(inner, x.clone(), y.clone()), "a");
                    let right = Dim::binary(op, "a", Dim::binary(inner, x.clone(), y.clone()));
                    builder = builder.constraint(left, CompareOp::Ne, right);
                }
            }
            let signature = builder.build().unwrap();
            assert_eq!(signature.to_string().parse(), Ok(signature));
        }
    }
}

#[test]
fn nesting_is_bounded_where_it_goes_too_deep() {
    let types = |depth: usize| format!("f(x: {}int8{})", "Optional[Tuple[".repeat(depth / 2), "]]".repeat(depth / 2));
    round_trip(&types(MAX_TYPE_DEPTH));
    let error = syntax(&types(MAX_TYPE_DEPTH + 2));
    assert_eq!(error.message, "expected at most 16 types inside each other");
    assert_eq!(error.column, 6 + 8 * ("Optional[".len() + "Tuple[".len()) + "Optional[".len());

    let sum = |terms: usize| format!("f(n: int64) where {} > 0", vec!["n"; terms].join(" + "));
    round_trip(&sum(MAX_DIM_DEPTH + 1));
    let error = syntax(&sum(MAX_DIM_DEPTH + 2));
    assert_eq!(error.message, "expected at most 16 operations inside each other");
    assert_eq!(error.column, sum(MAX_DIM_DEPTH + 2).rfind('+').unwrap() + 1);

    let right = |depth: usize| format!("f(n: int64) where {}n{} > 0", "n - (".repeat(depth), ")".repeat(depth));
    round_trip(&right(MAX_DIM_DEPTH - 1).replace("(n)", "n"));
    assert_eq!(shown(&right(MAX_DIM_DEPTH)), right(MAX_DIM_DEPTH).replace("(n)", "n"));
    let error = syntax(&right(MAX_DIM_DEPTH + 1));
    assert_eq!(error.message, "expected at most 16 parentheses inside each other");
    assert_eq!(error.column, 19 + 5 * MAX_DIM_DEPTH + 4);

    for (start, again) in [
        ("f(x: ", "Optional["),
        ("f(x: ", "Tuple["),
        ("f(x: ", "Record(\"C\", a: "),
        ("f(x: ", "Map[str, "),
        ("f() -> ", "Array["),
        ("f(x: Tensor([", "("),
        ("f(x: Tensor([", "n+"),
        ("f(x: Tensor([", "n*(1-"),
        ("f(x: Tensor([", "-"),
        ("f(x: Tensor([n", "//n"),
        ("f() where ", "("),
        ("f() where ", "n%"),
    ] {
        syntax(&format!("{start}{}", again.repeat(100_000)));
    }
}

#[test]
fn errors_say_what_was_expected_and_found() {
    let cases = [
        ("", 1, "expected the function's name, found the end"),
        ("3()", 1, "expected the function's name, found `3`"),
        ("f", 2, "expected `(`, found the end"),
        ("f(", 3, "expected a parameter's name, `*` or `)`, found the end"),
        ("f(,)", 3, "expected a parameter's name, `*` or `)`, found `,`"),
        ("f(*)", 4, "expected `,`, found `)`"),
        ("f(*,)", 5, "expected a parameter's name, found `)`"),
        ("f(*, x: int8, *, y: int8)", 15, "`*` is given twice"),
        ("f(*, x: int8, ,)", 15, "expected a parameter's name or `)`, found `,`"),
        ("f(x)", 4, "expected `:`, found `)`"),
        ("f(x: int64 y: int64)", 12, "expected `,` or `)`, found `y`"),
        ("f(x: Tensor)", 12, "expected `(`, found `)`"),
        ("f(x: Tensor(n, f32))", 13, "expected a list of sizes, such as `[n, 4]`, found `n`"),
        ("f(x: Tensor([n, f32))", 20, "expected `,` or `]`, found `)`"),
        ("f(x: Tensor([\"n\"], f32))", 14, "expected an integer, a name, `(` or `]`, found \"n\""),
        ("f(x: Tensor([n]))", 16, "expected `,`, found `)`"),
        ("f(x: Tensor([n], 32))", 18, "expected a dtype, found `32`"),
        ("f(x: Tensor([n], f33x0))", 18, "expected a dtype, found `f33x0`: Invalid lanes"),
        (
            "f(x: Tensor([n], f32, size=3))",
            23,
            "expected `strides`, `device`, `align`, `noalias`, `out` or `inout`, found `size`",
        ),
        ("f(x: Tensor([n], f32, out=True, inout=True))", 33, "expected `out` or `inout`, not both"),
        ("f(x: Tensor([n], f32, out=1))", 27, "expected `True` or `False`, found `1`"),
        ("f(x: Tensor([n], f32, align=3, align=3))", 32, "`align` is given twice"),
        ("f(x: Tensor([n], f32, align=-1))", 29, "expected a number of bytes, found `-`"),
        ("f(x: Tensor([n], f32, align=n))", 29, "expected a number of bytes, found `n`"),
        ("f(x: Tensor([n], f32, noalias))", 30, "expected `=`, found `)`"),
        ("f(x: Tensor([n], f32, noalias=1))", 31, "expected `True` or `False`, found `1`"),
        (
            "f(x: Tensor([n], f32, device=cuda))",
            30,
            "expected a device in quotes, such as `\"cuda:1\"`, or `any`, found `cuda`",
        ),
        ("f(x: Tensor([n], f32, device=\"tpu\"))", 30, "unknown device \"tpu\""),
        ("f(x: Tensor([n], f32, device=\"cuda:\"))", 30, "expected a device number, found \"\""),
        ("f(x: Tensor([n], f32, device=\"cuda:+1\"))", 30, "expected a device number, found \"+1\""),
        ("f(x: Tensor([99999999999999999999], f32))", 14, "`99999999999999999999` doesn't fit in 64 bits"),
        ("f() -> Tensor", 14, "expected `(`, found the end"),
        ("f() -> 3", 8, "expected a type, found `3`; types are int8, "),
        ("f() -> int8, int8", 12, "expected `where` or the end, found `,`"),
        ("f() int8", 5, "expected `->`, `where` or the end, found `int8`"),
        ("f(x: int64) -", 13, "expected `->`, `where` or the end, found `-`"),
        ("f(x: Tensr([n], f32))", 6, "expected a type, found `Tensr` (did you mean `Tensor`?); types are int8, "),
        ("f(x: fp32)", 6, "expected a type, found `fp32` (did you mean `float32`?); types are int8, "),
        ("f(x: float)", 6, "expected a type, found `float` (did you mean `float32` or `float64`?); types are int8, "),
        ("f(x: int)", 6, "expected a type, found `int` (did you mean `int32` or `int64`?); types are int8, "),
        (
            "f(x: Tensor([n], float))",
            18,
            "expected a dtype, found `float` (did you mean `float32` or `float64`?): `float` states no number of bits",
        ),
        (
            "f() -> Tensor([4], intx4)",
            20,
            "expected a dtype, found `intx4` (did you mean `int32` or `int64`?): `intx4` states no",
        ),
        ("f(x: Tensor([n], fp16))", 18, "expected a dtype, found `fp16` (did you mean `float16`?): "),
        ("f(x: Tensor([n], f32, device=\"gpu\"))", 30, "unknown device \"gpu\"; known devices: cpu, cuda, "),
        ("f(x: device = \"cude\")", 15, "unknown device \"cude\" (did you mean `cuda`?); known devices: cpu, "),
        ("f(x: Optional)", 14, "expected `[`, found `)`"),
        ("f(x: Optional[])", 15, "expected a type, found `]`"),
        ("f(x: Array[int8, int8])", 18, "expected `]`, found `int8`"),
        ("f(x: Map[str])", 13, "expected `,`, found `]`"),
        ("f(x: Dict[str, Any, Any])", 21, "expected `]`, found `Any`"),
        ("f(x: Tuple[int8 int8])", 17, "expected `,` or `]`, found `int8`"),
        ("f(x: Record)", 12, "expected `(`, found `)`"),
        ("f(x: Record(C, a: int8))", 13, "expected the name of the Record in quotes, such as `\"Config\"`, found `C`"),
        ("f(x: Record(\"C\" a: int8))", 17, "expected `,` or `)`, found `a`"),
        ("f(x: Record(\"C\", int8))", 22, "expected `:`, found `)`"),
        ("f(x: Record(\"C\", 1: int8))", 18, "expected a field's name or `)`, found `1`"),
        ("f(x: Record(\"C\", a: int9))", 21, "expected a type, found `int9`"),
        ("f(x: Int)", 9, "expected `(`, found `)`"),
        ("f(x: Int(n))", 10, "expected an integer, found `n`"),
        ("f(x: Int(-n))", 11, "expected an integer after `-`, found `n`"),
        ("f(x: Int(-9223372036854775809))", 10, "`-9223372036854775809` doesn't fit in 64 bits"),
        ("f(x: Bool(1))", 11, "expected `True` or `False`, found `1`"),
        ("f(x: Object(k))", 13, "expected a type key in quotes, such as `\"ffi.Module\"`, found `k`"),
        ("f(x: Shape(n))", 12, "expected a list of sizes, such as `[n, 4]`, found `n`"),
        ("f(x: Shape([...]))", 13, "expected an integer, a name, `(` or `]`, found `...`"),
        ("f(x: Tensor([..., n], any))", 17, "expected `]`, found `,`"),
        ("f(x: Tensor([n, ...], any))", 17, "expected an integer, a name, `(` or `]`, found `...`"),
        ("f(x: Tensor([n], any, strides=n))", 31, "expected a list of strides, such as `[s, 1]`, or `any`, found `n`"),
        ("f(x: Tensor([1.5], any))", 14, "expected an integer, a name, `(` or `]`, found `1.5`"),
        ("f(x: Tensor([n +], any))", 17, "expected an integer, a name or `(`, found `]`"),
        ("f(x: Tensor([n -], any))", 17, "expected an integer, a name or `(`, found `]`"),
        ("f(x: Tensor([-n], any))", 15, "expected an integer after `-`, found `n`"),
        ("f(x: Tensor([(n], any))", 16, "expected `)`, found `]`"),
        ("f(x: Tensor([n m], any))", 16, "expected `,` or `]`, found `m`"),
        ("f(x: Tensor([n / 2], any))", 16, "expected `//`, found `/`"),
        ("f(x: Tensor([n ** 2], any))", 17, "expected an integer, a name or `(`, found `*`"),
        ("f(x: Tensor([n], any, device=\"cuda:all\"))", 30, "expected a device number, found \"all\""),
        ("f(x: int8 =)", 12, "expected a number, `True`, `False`, `None` or a text in quotes, found `)`"),
        ("f(x: int8 = true)", 13, "expected a number, `True`, `False`, `None` or a text in quotes, found `true`"),
        ("f(x: int8 = -True)", 14, "expected a number, found `True`"),
        ("f(x: float32 = -nan)", 17, "expected a number, found `nan`"),
        ("f(x: float32 = 1e999)", 16, "`1e999` doesn't fit in 64 bits"),
        ("f(x: float32 = 1e)", 16, "`1e` is neither a number nor a name"),
        ("f(x: int64 = 9223372036854775808)", 14, "`9223372036854775808` doesn't fit in 64 bits"),
        ("f(x: int64 = 1 + 1)", 16, "expected `,` or `)`, found `+`"),
        ("f(x: device = \"tpu\")", 15, "unknown device \"tpu\""),
        ("f(x: Optional[device] = \"cuda:any\")", 25, "expected one device, such as `\"cuda:1\"`, found any"),
        ("f(x = 1)", 5, "expected `:`, found `=`"),
        ("f(dtype_policy)", 15, "expected `:`, found `)`"),
        ("f(dtype_policy=sign)", 16, "expected policies in quotes, such as `\"sign+bool\"`"),
        ("f(dtype_policy=\"sign+\")", 16, "expected policies in quotes, such as `\"sign+bool\"`"),
        ("f(dtype_policy=\"sign\", dtype_policy=\"sign\")", 24, "`dtype_policy` is given twice"),
        ("f() where", 10, "expected an integer, a name or `(`, found the end"),
        ("f() where n", 12, "expected `==`, `!=`, `<`, `<=`, `>` or `>=`, found the end"),
        ("f() where n = 1", 13, "expected `==`, `!=`, `<`, `<=`, `>` or `>=`, found `=`"),
        ("f() where 0 < n < 4", 17, "expected `,` or the end, found `<`"),
        ("f() where n > 0,", 17, "expected an integer, a name or `(`, found the end"),
        ("f() where n ! 0", 13, "expected `!=`, found `!`"),
        ("f() where n > 0 -> int8", 17, "expected `,` or the end, found `->`"),
        ("f(x: 1n)", 6, "`1n` is neither a number nor a name"),
        ("f(x: \"abc", 6, "a text that doesn't end"),
        ("f(\u{e9}\u{e8}: int64)", 3, "unexpected character '\u{e9}'"),
        ("f(\0)", 3, "unexpected character '\\0'"),
    ];
    for (text, column, message) in cases {
        let error = syntax(text);
        assert!(error.more().is_empty(), "{text:?}: {error}");
        assert!(error.message.starts_with(message), "{text:?}: {}", error.message);
        assert_eq!((error.line, error.column), (1, column), "{text:?}: {error}");
    }
}

/// All errors of a source: the bytes of each in angle quotes, after what is expected there.
fn all(error: &SyntaxError, text: &str) -> Vec<String> {
    let shown = |error: &SyntaxError| {
        let what = error.expected().unwrap_or(&error.message);
        format!("{} {what}: \u{ab}{}\u{bb}", error.span.start, &text[error.span.clone()])
    };
    [error].into_iter().chain(error.more()).map(shown).collect()
}

/// The errors of a source. A source that begins with `launch` is parsed as a launch, one that contains `@` as a
/// signature with a launch, and any other as a signature.
fn found(text: &str) -> Vec<String> {
    let error = match (text.starts_with("launch"), text.contains('@')) {
        (true, _) => text.parse::<Launch>().unwrap_err(),
        (_, true) => match text.parse::<LaunchedSignature>() {
            Err(ParseError::Syntax(error)) => error,
            other => panic!("{text:?}: {other:?}"),
        },
        _ => syntax(text),
    };
    all(&error, text)
}

const NAME: &str = "a parameter's name, `*` or `)`";
const ARG: &str =
    "a parameter's name, a type such as `int32`, `cast`, `null`, `struct`, `scratch`, `tensor_map` or `]`";
const ITEM: &str = "`grid`, `block`, `cluster`, `preferred_cluster`, `shared_memory`, `args`, `stream`, `priority`, \
    `cluster_scheduling`, `memory_sync_domain`, `shared_memory_carveout`, `completion_event`, `globals`, `on_load`, `on_unload`, `cooperative`, `programmatic_dependent_launch`, `non_portable_cluster` or the end";
const COMPARISON: &str = "`==`, `!=`, `<`, `<=`, `>` or `>=`";

#[test]
fn all_errors_come_at_once() {
    let cases: &[(&str, &[&str])] = &[
        ("f(x: fp16, y: int8, z: k32)", &["5 a type: \u{ab}fp16\u{bb}", "23 a type: \u{ab}k32\u{bb}"]),
        (
            "f(x int8, y Tensor([n], f32), z, w: int8)",
            &["4 `:`: \u{ab}int8\u{bb}", "12 `:`: \u{ab}Tensor\u{bb}", "31 `:`: \u{ab},\u{bb}"],
        ),
        // inside brackets, and after a missing comma
        (
            "f(x: Tensor([n +], f32), y: Tensor([n], f32, align=n), z: Map[str], a: int8 b: int8, c: Int(n))",
            &[
                "16 an integer, a name or `(`: \u{ab}]\u{bb}",
                "51 a number of bytes: \u{ab}n\u{bb}",
                "65 `,`: \u{ab}]\u{bb}",
                "76 `,` or `)`: \u{ab}b\u{bb}",
                "92 an integer: \u{ab}n\u{bb}",
            ],
        ),
        (
            "f(x: int8 = 1 + 1, y: bool = yes)",
            &[
                "14 `,` or `)`: \u{ab}+\u{bb}",
                "29 a number, `True`, `False`, `None` or a text in quotes: \u{ab}yes\u{bb}",
            ],
        ),
        ("f(x=1, y=2, z: k32)", &["3 `:`: \u{ab}=\u{bb}", "15 a type: \u{ab}k32\u{bb}"]),
        (
            "f(*, x: k32, *, y: int8, *)",
            &[
                "8 a type: \u{ab}k32\u{bb}",
                "13 `*` is given twice: \u{ab}*\u{bb}",
                "25 `*` is given twice: \u{ab}*\u{bb}",
            ],
        ),
        (
            "f(dtype_policy=1, x: k32, dtype_policy=\"sign\")",
            &[
                "15 policies in quotes, such as `\"sign+bool\"` (they are sign, bool, fp8, storage; or exact): \
                 \u{ab}1\u{bb}",
                "21 a type: \u{ab}k32\u{bb}",
                "26 `dtype_policy` is given twice: \u{ab}dtype_policy\u{bb}",
            ],
        ),
        // an error followed by a comma that could belong to it
        (
            "f(x: Map str, int8, y: k32, z)",
            &["9 `[`: \u{ab}str\u{bb}", "23 a type: \u{ab}k32\u{bb}", "29 `:`: \u{ab})\u{bb}"],
        ),
        ("f(x: Map<str, int8>, y: k32)", &["8 `[`: \u{ab}<\u{bb}", "24 a type: \u{ab}k32\u{bb}"]),
        ("f(x: Optional, y: k32)", &["13 `[`: \u{ab},\u{bb}", "18 a type: \u{ab}k32\u{bb}"]),
        ("f(x: int8,, y: k32,)", &[&format!("10 {NAME}: \u{ab},\u{bb}"), "15 a type: \u{ab}k32\u{bb}"]),
        // after the parameters
        (
            "f(x: k32) -> Tensr([n], f32) where n = 1, m > 0, 2 k < 1",
            &[
                "5 a type: \u{ab}k32\u{bb}",
                "13 a type: \u{ab}Tensr\u{bb}",
                &format!("37 {COMPARISON}: \u{ab}=\u{bb}"),
                &format!("51 {COMPARISON}: \u{ab}k\u{bb}"),
            ],
        ),
        (
            "f() int8 where 0 < n < 4, m = 1",
            &[
                "4 `->`, `where` or the end: \u{ab}int8\u{bb}",
                "21 `,` or the end: \u{ab}<\u{bb}",
                &format!("28 {COMPARISON}: \u{ab}=\u{bb}"),
            ],
        ),
        ("f() -> where n = 1", &["7 a type: \u{ab}where\u{bb}", &format!("15 {COMPARISON}: \u{ab}=\u{bb}")]),
        ("f(x: k32) -> float", &["5 a type: \u{ab}k32\u{bb}", "13 a type: \u{ab}float\u{bb}"]),
        // launches
        (
            "launch k gird=1 blokc=2",
            &[&format!("9 {ITEM}: \u{ab}gird\u{bb}"), &format!("16 {ITEM}: \u{ab}blokc\u{bb}")],
        ),
        // a misspelt item in place of a value
        (
            "launch k priority=blokc=2 stream=1",
            &["18 a priority: \u{ab}blokc\u{bb}", "33 the name of a stream: \u{ab}1\u{bb}"],
        ),
        ("launch k grid=+ block=(1, 2] cluster=2", &["14 an integer, a name or `(`: \u{ab}+\u{bb}"]),
        (
            "launch k grid=+ block=(1, -n) grid=1 cooperative programmatic_dependent_launch=1 priority=5000000000",
            &[
                "14 an integer, a name or `(`: \u{ab}+\u{bb}",
                "27 an integer after `-`: \u{ab}n\u{bb}",
                "30 `grid` is given twice: \u{ab}grid\u{bb}",
                "78 the end: \u{ab}=\u{bb}",
                "90 `5000000000` is out of the range of a priority: \u{ab}5000000000\u{bb}",
            ],
        ),
        (
            "launch k grid=1, cooperative size=1",
            &["15 the end: \u{ab},\u{bb}", &format!("29 {ITEM}: \u{ab}size\u{bb}")],
        ),
        (
            "launch k args=[x y, int32(), 3 * n, z w, int33(x)] shared_memory=1 grid block=+",
            &[
                "17 `,` or `]`: \u{ab}y\u{bb}",
                "26 an integer, a name or `(`: \u{ab})\u{bb}",
                &format!("29 {ARG}: \u{ab}3\u{bb}"),
                "38 `,` or `]`: \u{ab}w\u{bb}",
                "46 `,` or `]`: \u{ab}(\u{bb}",
                "72 `=`: \u{ab}block\u{bb}",
                "78 an integer, a name or `(`: \u{ab}+\u{bb}",
            ],
        ),
        (
            "launch k args=[struct(size=8), struct(size=4, align=4, 0: int32(*)), n + 1, tensor_map(x)]",
            &[
                "28 `,`: \u{ab})\u{bb}",
                "64 an integer, a name or `(`: \u{ab}*\u{bb}",
                "71 `,` or `]`: \u{ab}+\u{bb}",
                "88 `,` and a `box`: \u{ab})\u{bb}",
            ],
        ),
        // both parts
        (
            "f(x: k32) where n = 1 @ launch k grid=+ args=[x y]",
            &[
                "5 a type: \u{ab}k32\u{bb}",
                &format!("18 {COMPARISON}: \u{ab}=\u{bb}"),
                "38 an integer, a name or `(`: \u{ab}+\u{bb}",
                "48 `,` or `]`: \u{ab}y\u{bb}",
            ],
        ),
        (
            "f(x: Tensor([n, y: int8) @ launch k grid=+",
            &["17 `,` or `]`: \u{ab}:\u{bb}", "41 an integer, a name or `(`: \u{ab}+\u{bb}"],
        ),
        (
            "f(x: k32) int8 @ launch k grid=+ args=[(]",
            &["5 a type: \u{ab}k32\u{bb}", "31 an integer, a name or `(`: \u{ab}+\u{bb}"],
        ),
        ("f(x: k32) @ launch", &["5 a type: \u{ab}k32\u{bb}", "18 the name of the kernel's entry: \u{ab}\u{bb}"]),
    ];
    for (text, want) in cases {
        assert_eq!(found(text), *want, "{text}");
    }
}

/// Text after an error may look like another error without being one.
#[test]
fn a_error_has_no_bogus_ones_behind_it() {
    let texts = [
        // missing, superfluous or different brackets
        "f(x: Tensor([n], f32, y: k32, z)",
        "f(x: Tensor([n], f32, y: int8) where n % 2 == 0, m",
        "f(x: Tensor([n, f32), y: k32)",
        "f(x: Tensor[n], f32), y: k32)",
        "f(x: Tensor [n], f32, align=16, out=True)",
        "f(x: Tensor [n], f32, y: int8)",
        "f(x: Tensr [n], f32, align=16)",
        "f(x: Tensor, [n], float32)",
        "f(x: Tensor([n]), f32)",
        "f(x: Map str, int8)",
        "f(x: mapp str, int8)",
        "f(x: Map<str, int8>)",
        "f(x: dict<k: str, v: int>)",
        "f(x: map<string, vector<int, 3>>)",
        "f(x: Tensor<[n], f32, y: k32)",
        "f(x: Tuple int8, int8)",
        "f(x: Record C, a: int8, b: int8)",
        "f(x: Record(a: int8, b: int8), y: int8)",
        "f(s: Shape n, 4)",
        "f(s: Shape [n, 4], y: int8)",
        "f(x: int8",
        "f(x: k32",
        "f(x: k32, y: k32",
        "f(x: k32] , y: k32)",
        // commas instead of other characters
        "f(x:, int8, y: int8)",
        "f(x, int8, y: int8)",
        "f(x,: int8)",
        "f(x: int8 =, 3)",
        "f(,,)",
        "f(,)",
        "f(x y z, )",
        "f(*)",
        "f(* x: int8)",
        "f(x: int64 y: int64)",
        // after the parameters
        "f() -> int8, int8",
        "f() -> Tensor [n], f32",
        "f() -> Tensor[n], f32 where n > 0",
        "f() int8 where n > 0",
        "f() where n in 1, 2, 3",
        "f() where n, m > 0",
        "f() where n == , 2",
        "f() where n = 1, 2",
        "f() where n > 0,",
        "f() where n = 0,",
        "f() where ceil_div n, 2 == 0",
        "f() where n > 0 -> Tuple[int8, int8], m",
        "f() where n > 0 where m > 0",
        "f() where (n > 0, m = 2",
        // launches
        "launch k grid= block=2",
        "launch k grid block=2",
        "launch k grid=(1, 2 block=+",
        "launch k grid=n, m block=2",
        "launch k grid=[n, m] block=2",
        "launch k grid=x=1 y=2",
        "launch k dims x=1 y=2",
        "launch k size=1 size=2",
        "launch k grid=2 ** cooperative cooperative",
        "launch k grid=+ cooperative + 1",
        "launch k args=x, y, z grid=1",
        "launch k args=tensor_map(x, box=8) grid=1",
        "launch k args=[tensor_map x, box=8, swizzle=128, fill=nan]",
        "launch k args=[tensormap x, box=8]",
        "launch k args=[struct size=16, align=8, 0: x, 8: int32(m)]",
        "launch k args=[cast x, int32]",
        "launch k args=[scratch n, align=4]",
        "launch k args=[min n, max(m, 2)]",
        "launch k args=[min n, m + 2]",
        "launch k args=[ceil_div(n, 2), x]",
        "launch k args=[x, , 3]",
        "launch k args=[x, y",
        "launch k args=[x, y) grid=+",
        "launch grid=1 block=2",
        "launch 3 grid=1",
        "launch = grid=+",
        // both parts
        "f(x: @ int8) @ launch k",
        "f(x: @ int8)",
        "f(x: k32) @ symbol",
        "f() where n @ 4 == 0",
        "f() where , % 16 == 0",
        "f() -> where int8",
        "f() -> where Tensor([n], f32, device=d)",
        "f() where n > 0, launch k grid=1 @",
        "f() where n > 0, launch k grid=1",
        "launch k grid grid=1",
        "launch k args=[x y] z",
        "f(x: ) int8",
        "f(x: int8 -> ) int8",
        "f(x: k32) int8",
        "f() where n == , 0 m > 0",
        "f() -> where Array[Any] where n > 0",
        "f(where: int64) -> int8, where > 0, 1 < where",
        "f(x: Tensor([n], f32), align=16, out=True)",
        "f(x: Tensor([n], f32 @ launch k grid=1",
        "f() where n = 1 @ launch k grid=1",
        "f() launch k grid=1 @",
        "f() @ symbol args=[x y]",
        "f() @ launch k @ launch k grid=+",
        "f() int8 @ launch k",
    ];
    for text in texts {
        let found = found(text);
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
    }
    // an invalid character ends the tokens
    assert_eq!(found("f(x: k32, y: $, z: k32)").len(), 1);
}

const LAUNCHED: [&str; 2] = [
    "f(x: Tensor([m, n], float32, strides=[s, 1], device=\"cuda\"), a: float64, k: int32) where n % 4 == 0 \
     @ launch gemm grid=(ceil_div(n, 128), m // 2 + 1) block=(128, 2) cluster=2 preferred_cluster=(4, 1, 1) \
     shared_memory=4 * n args=[x, cast(k, int64), int32(n - 1), int64(x.strides[0]), float64(-0.5), float32(inf), null, param(null), \
     struct(size=16, align=8, 0: x, 8: int32(m), 12: struct(size=4, align=4, 0: uint32(7))), scratch(m * 4, align=128), \
     tensor_map(x, box=(64, 32), element_strides=(1, 2), interleave=16, swizzle=128, l2_promotion=256, fill=nan)] \
     stream=x priority=-3 cluster_scheduling=load_balancing memory_sync_domain=default shared_memory_carveout=40 \
     completion_event=k on_load=a.load on_unload=\"a unload\" globals=[scale=int32(n), \"a b\"=x] cooperative programmatic_dependent_launch non_portable_cluster",
    "f(x: Tensor([n], float32, device=\"cuda\")) -> Tensor([n], float32, device=\"cuda\") @ launch k args=[x, \
     x.device_id]",
];

/// The tokens of a source, as written.
fn words(text: &str) -> Vec<&str> {
    let mut tokens = Tokens::new(text).unwrap();
    let mut words = Vec::new();
    while let (pos, token) = tokens.peek()
        && token != Token::End
    {
        words.push(&text[pos.offset()..][..tokens.len_at(pos)]);
        tokens.next();
    }
    words
}

/// The index of the bracket that closes the one at `open`.
fn closing(words: &[&str], open: usize) -> usize {
    let mut depth = 0;
    let close = words.iter().skip(open).position(|word| {
        depth += i32::from(matches!(*word, "(" | "[")) - i32::from(matches!(*word, ")" | "]"));
        depth == 0
    });
    open + close.unwrap()
}

/// One typo gives at most one error: a missing, replaced, duplicated or extra token, two tokens swapped, or brackets
/// missing or replaced.
#[test]
fn a_slip_of_the_hand_is_one_error() {
    const OTHERS: [&str; 19] = [
        "(", ")", "[", "]", ",", ":", "=", "->", "*", "+", "<", "==", "@", "7", "n", "where", "Tensor", "int8",
        "\"cpu\"",
    ];
    let (mut wrong, mut bogus) = (0, Vec::new());
    for text in CANONICAL.into_iter().chain(LAUNCHED) {
        let words = words(text);
        let mut check = |at: std::ops::Range<usize>, instead: &[&str]| {
            let text = [&words[..at.start], instead, &words[at.end..]].concat().join(" ");
            let error = match text.contains("launch ") {
                true => text.parse::<LaunchedSignature>().err(),
                false => text.parse::<Signature>().err(),
            };
            if let Some(ParseError::Syntax(error)) = error {
                wrong += 1;
                if !error.more().is_empty() {
                    bogus.push(format!("{text}\n{:#?}", all(&error, &text)));
                }
            }
        };
        for (at, word) in words.iter().enumerate() {
            check(at..at + 1, &[]);
            check(at..at, &[word]);
            for other in OTHERS {
                check(at..at + 1, &[other]);
                check(at..at, &[other]);
            }
            if let Some(next) = words.get(at + 1) {
                check(at..at + 2, &[next, word]);
                check(at..at + 2, &[]);
            }
            if matches!(*word, "(" | "[") {
                let close = closing(&words, at);
                let inside = &words[at + 1..close];
                check(at..close + 1, inside);
                check(at..close + 1, &[]);
                for (open, close) in [("(", ")"), ("[", "]"), ("<", ">")] {
                    check(at..at + inside.len() + 2, &[&[open], inside, &[close]].concat());
                }
            }
        }
    }
    assert!(bogus.is_empty(), "{} of {wrong}:\n{}", bogus.len(), bogus.join("\n"));
    assert!(wrong > 10_000, "{wrong}");
}

/// The number of errors per source is bounded, as each has a copy of its line.
#[test]
fn errors_of_a_text_are_not_endless() {
    let error = syntax(&format!("f({})", "x: k32, ".repeat(20_000)));
    assert_eq!(error.more().len(), 31);
    let launched = format!("f({}) @ launch k grid=+ block=+", "x: k32, ".repeat(40));
    assert_eq!(found(&launched).len(), 32);
    let nested = "x: Tuple[(".repeat(20_000);
    syntax(&format!("f(x: k32, {nested}"));
}

#[test]
fn several_errors_are_shown_one_behind_the_other() {
    let error = syntax("f(a: int64,\n\tb int64, c: int8,\n  d e)");
    let second = "expected `:`, found `e`\n    d e)\n      ^";
    assert_eq!(error.to_string(), format!("expected `:`, found `int64`\n  \tb int64, c: int8,\n  \t  ^\n{second}"));
    let [more] = error.more() else { panic!("{error}") };
    assert_eq!((more.to_string().as_str(), more.line, more.column), (second, 3, 5));
    assert!(more.more().is_empty());
}

#[test]
fn the_caret_is_under_the_error() {
    let shown = syntax("f(a: int64,\n\tb int64)").to_string();
    assert_eq!(shown, "expected `:`, found `int64`\n  \tb int64)\n  \t  ^");
    assert_eq!(syntax("f(a: int64,\n\tb int64)").line, 2);
    assert_eq!(syntax("f(\n").to_string(), "expected a parameter's name, `*` or `)`, found the end\n  \n  ^");
}

#[test]
fn errors_come_from_the_builder() {
    let text = "f(a.b: int8, x: Tensor([-1], f32, align=3), x: Tensor([n], void, device=\"cuda:-1\"))";
    let Err(ParseError::Signature(error)) = text.parse::<Signature>() else { panic!() };
    let paths: Vec<_> = error.errors.iter().map(|m| m.path().to_string()).collect();
    let expected = ["params[0].name", "params[2].name", "x.shape[0]", "x.align", "params[2].dtype", "params[2].device"];
    assert_eq!(paths, expected);
}

/// Mutated signatures: each either parses to what `Display` writes, or has an error that can be shown.
#[test]
fn no_text_panics() {
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let pieces = [
        "(",
        ")",
        "[",
        "]",
        ",",
        ":",
        "=",
        "\"",
        "->",
        "...",
        "-",
        "+",
        "*",
        "//",
        "%",
        "<",
        ">=",
        "!=",
        "/",
        "!",
        ".",
        " ",
        "\n",
        "\0",
        "\u{e9}",
        "n",
        "any",
        "where",
        "None",
        "Tensor",
        "Optional[",
        "Tuple[",
        "Int(",
        "device",
        "9223372036854775808",
        "1e",
        "1.5",
        "0",
        "inf",
        "nan",
        "dtype_policy=",
        "$",
        "_",
    ];
    let (mut read, mut several) = (0, 0);
    for round in 0..20_000 {
        let texts = CANONICAL.len() + LAUNCHED.len();
        let is_launched = round % texts >= CANONICAL.len();
        let mut text: Vec<char> = CANONICAL.into_iter().chain(LAUNCHED).nth(round % texts).unwrap().chars().collect();
        for _ in 0..=random(3) {
            let at = random(text.len() + 1);
            let end = (at + random(8)).min(text.len());
            match random(4) {
                0 => drop(text.drain(at..end)),
                1 => drop(text.splice(at..at, pieces[random(pieces.len())].chars())),
                2 => drop(text.splice(at..end, pieces[random(pieces.len())].chars())),
                _ => {
                    let copied = text[at..end].to_vec();
                    let to = random(text.len() + 1);
                    drop(text.splice(to..to, copied));
                }
            }
        }
        let text: String = text.into_iter().collect();
        let error = match is_launched {
            true => {
                text.parse::<LaunchedSignature>().map(|both| assert_eq!(both.to_string().parse(), Ok(both), "{text}"))
            }
            false => text.parse::<Signature>().map(|one| assert_eq!(one.to_string().parse(), Ok(one), "{text}")),
        };
        match error {
            Ok(()) => read += 1,
            Err(ParseError::Syntax(error)) => {
                several += usize::from(!error.more().is_empty());
                let errors: Vec<_> = [&error].into_iter().chain(error.more()).collect();
                for error in &errors {
                    assert!((1..=text.split('\n').count()).contains(&error.line), "{text}");
                    assert!((1..=error.text.chars().count() + 1).contains(&error.column), "{text}");
                    assert!(text.get(error.span.clone()).is_some(), "{text}");
                    assert!(error.to_string().contains(&error.message), "{text}");
                }
                assert!(errors.is_sorted_by(|one, next| one.span.end <= next.span.start), "{text}");
            }
            Err(ParseError::Signature(error)) => assert!(!error.errors.is_empty()),
        }
    }
    assert!(read > 100 && several > 100, "{read} {several}");
}
