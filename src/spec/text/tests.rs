//! Reading the text form.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::spec::{
    CompareOp, DType, Device, DeviceId, Dim, Layout, MAX_DIM_DEPTH, MAX_TYPE_DEPTH, ScalarType, TensorShape, TensorType,
};
use tvm_ffi_runtime::abi::{DLDataType, DLDevice, DLDeviceType};

/// What the text form can say, each as it is shown.
const CANONICAL: [&str; 17] = [
    "add_one(x: Tensor([n], float32), y: Tensor([n], float32))",
    "gemm(a: Tensor([m, k], float16, device=\"cuda\"), b: Tensor([k, n], float16, device=\"cuda\"), \
     c: Tensor([m, n], float32, device=\"cuda\"), alpha: float64 = 1.0, relu: bool = False)",
    "scale(x: Tensor([n, 4 * c], float32, strides=[s, 1], align=16), f: float32) \
     where n % 16 == 0, n <= 65536, s >= 4 * c",
    "view(x: Tensor([...], any, strides=any, device=any))",
    "attn(q: Tensor([b, h, s, d], bfloat16), mask: Optional[Tensor([s, s], bool)], \
     cfg: Tuple[int32, float64, Tuple[bool, handle]])",
    "make(n: int64, d: device, t: dtype) -> Tensor([n], float32)",
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
    // not every NaN has a text of its own
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

/// All dims of two operations, in both groupings, with operands of all kinds.
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
        ("f(x: Tensor([n], f32, device=\"tpu\"))", 30, "\"tpu\" is no kind of device"),
        ("f(x: Tensor([n], f32, device=\"cuda:\"))", 30, "expected a device number, found \"\""),
        ("f(x: Tensor([n], f32, device=\"cuda:+1\"))", 30, "expected a device number, found \"+1\""),
        ("f(x: Tensor([99999999999999999999], f32))", 14, "`99999999999999999999` doesn't fit in 64 bits"),
        ("f() -> Tensor", 14, "expected `(`, found the end"),
        ("f() -> 3", 8, "expected a type, found `3`; types are int8, "),
        ("f() -> int8, int8", 12, "expected `where` or the end, found `,`"),
        ("f() int8", 5, "expected `->`, `where` or the end, found `int8`"),
        ("f(x: int64) -", 13, "expected `->`, `where` or the end, found `-`"),
        ("f(x: Tensr([n], f32))", 6, "expected a type, found `Tensr` (did you mean `Tensor`?); types are int8, "),
        ("f(x: i32)", 6, "expected a type, found `i32` (did you mean `int32`?); types are int8, "),
        ("f(x: Tensor([n], fp16))", 18, "expected a dtype, found `fp16` (did you mean `float16`?): "),
        ("f(x: Tensor([n], f32, device=\"gpu\"))", 30, "\"gpu\" is no kind of device; kinds are cpu, cuda, "),
        ("f(x: device = \"cude\")", 15, "\"cude\" is no kind of device (did you mean `cuda`?); kinds are cpu, "),
        ("f(x: Optional)", 14, "expected `[`, found `)`"),
        ("f(x: Optional[])", 15, "expected a type, found `]`"),
        ("f(x: Array[int8, int8])", 18, "expected `]`, found `int8`"),
        ("f(x: Map[str])", 13, "expected `,`, found `]`"),
        ("f(x: Dict[str, Any, Any])", 21, "expected `]`, found `Any`"),
        ("f(x: Tuple[int8 int8])", 17, "expected `,` or `]`, found `int8`"),
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
        ("f(x: device = \"tpu\")", 15, "\"tpu\" is no kind of device"),
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
        assert!(error.message.starts_with(message), "{text:?}: {}", error.message);
        assert_eq!((error.line, error.column), (1, column), "{text:?}: {error}");
    }
}

#[test]
fn the_caret_is_under_the_mistake() {
    let shown = syntax("f(a: int64,\n\tb int64)").to_string();
    assert_eq!(shown, "expected `:`, found `int64`\n  \tb int64)\n  \t  ^");
    assert_eq!(syntax("f(a: int64,\n\tb int64)").line, 2);
    assert_eq!(syntax("f(\n").to_string(), "expected a parameter's name, `*` or `)`, found the end\n  \n  ^");
}

#[test]
fn mistakes_come_from_the_builder() {
    let text = "f(a.b: int8, x: Tensor([-1], f32, align=3), x: Tensor([n], void, device=\"cuda:-1\"))";
    let Err(ParseError::Mistakes(error)) = text.parse::<Signature>() else { panic!() };
    let paths: Vec<_> = error.mistakes.iter().map(|m| m.path().to_string()).collect();
    let expected = ["params[0].name", "params[2].name", "x.shape[0]", "x.align", "params[2].dtype", "params[2].device"];
    assert_eq!(paths, expected);
}

/// Texts near those that are signatures: each is read to what it shows as, or has an error that can be shown.
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
    let mut read = 0;
    for round in 0..20_000 {
        let mut text: Vec<char> = CANONICAL[round % CANONICAL.len()].chars().collect();
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
        match text.parse::<Signature>() {
            Ok(signature) => {
                read += 1;
                assert_eq!(signature.to_string().parse(), Ok(signature), "{text}");
            }
            Err(ParseError::Syntax(error)) => {
                assert!((1..=text.split('\n').count()).contains(&error.line), "{text}");
                assert!((1..=error.text.chars().count() + 1).contains(&error.column), "{text}");
                assert!(!error.to_string().is_empty());
            }
            Err(ParseError::Mistakes(error)) => assert!(!error.mistakes.is_empty()),
        }
    }
    assert!(read > 100, "{read}");
}
