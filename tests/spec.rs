//! Signatures: all errors are reported together, each with its path.

use tvm_ffi_codegen::explain::Stage;
use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::spec::{
    CompareOp, DType, DTypePolicy, DefaultValue, DimOp, MAX_CONTAINER_DEPTH, MAX_TYPE_DEPTH, Part, SourceLocation,
    Step, TensorShape,
};
use tvm_ffi_codegen::{
    Backend, Constraint, Convention, DLDataType, DLDeviceType, Device, Dim, OptLevel, ParamType, ParseError,
    ScalarType, Signature, SignatureError, TensorType, dim,
};

const F32: DLDataType = DLDataType::FLOAT32;

fn errors(error: SignatureError) -> Vec<String> {
    error.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn all_errors_come_at_once_with_their_paths() {
    let error = Signature::builder("1 bad\0name")
        .param("x", TensorType::new([Dim::from(-1), "y".into(), "a b".into()], DLDataType::new(200, 8, 1)))
        .param("y", TensorType::new(["n"], F32).with_align(3).with_strides(["n", "y"]))
        .param("x", ScalarType::Int8)
        .param("", TensorType::new(["n"], F32).with_device(Device::numbered(DLDeviceType(77), -4)))
        .param("\u{e9}", TensorType::new([i64::MAX, 2], F32).with_align(0))
        .build()
        .unwrap_err();
    assert!(error.to_string().starts_with("signature `1 bad\\0name` has 15 errors\n  name: "), "{error}");
    let want = [
        "name: expected a letter or `_`, then letters, digits, `_`, `.` or `$`, got \"1 bad\\0name\"",
        "params[2].name: `x` is already the name of params[0]",
        "params[3].name: expected an identifier, got \"\"",
        "params[4].name: expected an identifier, got \"\u{e9}\"",
        "x.shape[0]: expected a size of at least 0, got -1",
        "x.shape[1]: `y` is a parameter, but not an integer, so it can't be used in a dimension",
        "x.shape[2]: expected a number or an identifier, got \"a b\"",
        "x.dtype: code 200, 8 bits, 1 lanes is not an element type of DLPack 1.x",
        "y.strides: expected one for each of 1 dimensions, got 2",
        "y.strides[1]: `y` is a parameter, but not an integer, so it can't be used in a dimension",
        "y.align: expected a power of two, got 3",
        "params[3].device: 77 is not a device type of DLPack 1.x",
        "params[3].device: expected a device id of at least 0, got -4",
        "params[4].shape: the number of elements overflows 64 bits",
        "params[4].align: expected a power of two, got 0",
    ];
    let got = errors(error);
    assert_eq!(got, want);
}

/// Each error in a source identifies its part by indices, and the bytes of that part.
#[test]
fn errors_of_a_text_tell_their_part_and_its_bytes() {
    use Part::{Constraint, Param, Result, Signature as Whole};
    let text = "bad$name.é(x: int8)";
    let ParseError::Syntax(error) = text.parse::<Signature>().unwrap_err() else { panic!("{text}") };
    assert_eq!(&text[error.span], "é");
    let ParseError::Syntax(error) = "f(x: Tensr([n], int8))".parse::<Signature>().unwrap_err() else { panic!() };
    assert_eq!(error.span, 5..10);
    let ParseError::Syntax(error) = "f(x: int8".parse::<Signature>().unwrap_err() else { panic!() };
    assert_eq!(error.span, 9..9);

    let text = "f(dtype_policy=\"sign\", x: Tensor([n, -1, 2 * q * q], int8, strides=[1, 2], align=3),\n  x: int8 = 300, \
                t: Tuple[int8, Map[Shape([4, -2]), Optional[Any]]] = 1, o: Optional[Tensor([4], any, device=\"cuda:-4\")] = None, \
                u: int8) -> Tuple[int8] where 1 < 2, zz % 2 == 0";
    let ParseError::Signature(error) = text.parse::<Signature>().unwrap_err() else { panic!("{text}") };
    let got: Vec<_> =
        error.errors.iter().map(|m| (m.path().part(), m.path().steps(), &text[m.span().unwrap()])).collect();
    let want: Vec<(Part, &[Step], &str)> = vec![
        (Param(1), &[Step::Name], "x"),
        (Param(0), &[Step::Size(1)], "-1"),
        (Param(0), &[Step::Strides], "[1, 2]"),
        (Param(0), &[Step::Align], "3"),
        (Param(1), &[Step::Default], "300"),
        (Param(2), &[Step::Item(1), Step::Keys, Step::Item(1)], "-2"),
        (Param(2), &[Step::Item(1), Step::Values], "Optional[Any]"),
        (Param(2), &[Step::Default], "1"),
        (Param(3), &[Step::Device], "\"cuda:-4\""),
        // the default is missing, so this is the parameter
        (Param(4), &[Step::Default], "u: int8"),
        (Result, &[], "Tuple[int8]"),
        (Constraint(0), &[], "1 < 2"),
        (Param(0), &[Step::Size(2)], "2 * q * q"),
        (Constraint(1), &[], "zz % 2 == 0"),
    ];
    assert_eq!(got, want);
    let names: Vec<_> = error.errors.iter().take(3).map(|m| m.path().param_name()).collect();
    assert_eq!(names, [None, Some("x"), Some("x")]);

    // the same signature without a source has the same paths, but no bytes
    let built = Signature::builder("f").param("x", ScalarType::Int8).param_or("y", ScalarType::Int8, 300).build();
    let errors = built.unwrap_err().errors;
    assert_eq!((errors[0].path().part(), errors[0].path().steps()), (Param(1), &[Step::Default][..]));
    assert_eq!((errors[0].path().to_string(), errors[0].span()), ("y.default".to_owned(), None));
    let error = Signature::builder("1").build().unwrap_err();
    assert_eq!((error.errors[0].path().part(), error.errors[0].path().steps()), (Whole, &[Step::Name][..]));
}

/// Places are separate from a signature: they affect neither its text form nor its equality.
#[test]
fn locations_are_beside_a_signature() {
    let built = Signature::builder("f")
        .location("model.py", 3, "forward")
        .param("x", TensorType::new(["n"], F32))
        .location("model.py", 4, "forward")
        .param("y", ScalarType::Int8)
        .returns(TensorType::new(["n"], F32))
        .location("other.py", 6, "<lambda>")
        .constraint(dim("n"), CompareOp::Lt, 9)
        .location("model.py", 5, "forward")
        .build()
        .unwrap();
    let line = |part| built.location(part).map(|place| (place.file.as_str(), place.line));
    assert_eq!(line(Part::Signature), Some(("model.py", 3)));
    assert_eq!(line(Part::Param(0)), Some(("model.py", 4)));
    assert_eq!(line(Part::Param(1)), Some(("model.py", 3)));
    assert_eq!(line(Part::Result), Some(("other.py", 6)));
    assert_eq!(line(Part::Constraint(0)), Some(("model.py", 5)));
    assert_eq!(line(Part::Constraint(1)), Some(("model.py", 3)));
    let text = "f(x: Tensor([n], float32), y: int8) -> Tensor([n], float32) where n < 9";
    let plain: Signature = text.parse().unwrap();
    assert_eq!((built.to_string().as_str(), &built), (text, &plain));
    assert_eq!(plain.location(Part::Signature), None);

    let placed = plain.clone().with_location(Part::Constraint(0), SourceLocation::new("a.py", 1, "f")).unwrap();
    assert_eq!(placed.location(Part::Constraint(0)).unwrap().to_string(), "File \"a.py\", line 1, in f");
    assert_eq!(placed.location(Part::Param(0)), None);
    let problem = "the file or function is empty, or has a quote, a line's end or a NUL in it";
    let refused = plain.with_location(Part::Param(1), SourceLocation::new("a\n.py", 1, "f")).unwrap_err();
    assert_eq!(errors(refused), [format!("y.location: {problem}")]);
    let refused = Signature::builder("f").location("a.py", 1, "").build().unwrap_err();
    assert_eq!(errors(refused), [format!("location: {problem}")]);
}

#[test]
fn names_that_are_no_names() {
    for name in ["", " ", "1", "a b", "a-b", "a\0", "\0", "\u{e9}", "a\n", ".a", "$", "a,b", "f()"] {
        assert!(Signature::builder(name).build().is_err(), "{name:?}");
        assert!(Signature::builder("f").param(name, ScalarType::Int8).build().is_err(), "{name:?}");
        assert!(Signature::builder("f").param("x", TensorType::new([name], F32)).build().is_err(), "{name:?}");
    }
    for name in ["a", "_", "a1", "Tensor", "int8", "ns.f", "f$1", &"long".repeat(1000)] {
        let signature = Signature::builder(name).build().unwrap();
        assert_eq!(signature.symbol(), format!("__tvm_ffi_{name}"));
        assert_eq!(signature.to_string().parse::<Signature>(), Ok(signature));
    }
}

#[test]
fn limits() {
    let wide = |rank: usize| Signature::builder("f").param("x", TensorType::new(vec!["n"; rank], F32)).build();
    assert!(wide(64).is_ok());
    assert_eq!(errors(wide(65).unwrap_err()), ["x.shape: expected at most 64 dimensions, got 65"]);
    let many = |count: usize| {
        (0..count).fold(Signature::builder("f"), |b, i| b.param(format!("p{i}"), ScalarType::Int64)).build()
    };
    assert!(many(4096).is_ok());
    assert_eq!(errors(many(4097).unwrap_err()), ["params: expected at most 4096 parameters, got 4097"]);
}

#[test]
fn products_of_constants() {
    let build = |shape: &[i64]| Signature::builder("f").param("x", TensorType::new(shape.to_vec(), F32)).build();
    assert!(build(&[i64::MAX, 1]).is_ok());
    assert!(build(&[i64::MAX, i64::MAX, 0]).is_ok());
    assert!(build(&[1 << 32, 1 << 31]).is_err());
    assert!(build(&[1 << 32, 1 << 32]).is_err());
    assert!(build(&[i64::MIN]).is_err());
}

#[test]
fn dtypes_without_a_name_are_errors() {
    for (code, bits, lanes) in [(5, 0, 1), (2, 0, 1), (2, 32, 0), (3, 32, 1), (3, 0, 0), (129, 8, 1), (2, 32, 65535)] {
        let dtype = DLDataType::new(code, bits, lanes);
        let result = Signature::builder("f").param("x", TensorType::new(["n"], dtype)).build();
        assert!(result.is_err(), "{dtype:?}");
    }
}

/// The errors in a source that follows the grammar.
fn errors_of(text: &str) -> Vec<String> {
    match text.parse::<Signature>() {
        Err(ParseError::Signature(error)) => errors(error),
        other => panic!("{text}: {other:?}"),
    }
}

fn check_each(cases: &[(&str, &[&str])]) {
    for (text, want) in cases {
        assert_eq!(errors_of(text), *want, "{text}");
    }
}

#[test]
fn defaults_fit_their_types_and_come_last() {
    check_each(&[
        ("f(x: int8 = 128)", &["x.default: 128 can't be a default of int8"]),
        ("f(x: uint8 = -1)", &["x.default: -1 can't be a default of uint8"]),
        ("f(x: int64 = 1.0)", &["x.default: 1.0 can't be a default of int64"]),
        ("f(x: int64 = True)", &["x.default: True can't be a default of int64"]),
        ("f(x: bool = 1)", &["x.default: 1 can't be a default of bool"]),
        ("f(x: float32 = None)", &["x.default: None can't be a default of float32"]),
        ("f(x: handle = 0)", &["x.default: 0 can't be a default of handle"]),
        ("f(x: str = None)", &["x.default: None can't be a default of str"]),
        ("f(x: dtype = \"f33x0\")", &["x.default: \"f33x0\" can't be a default of dtype"]),
        ("f(x: device = \"cuda:-1\")", &["x.default: \"cuda:-1\" can't be a default of device"]),
        ("f(x: Int(3) = 4)", &["x.default: 4 can't be a default of Int(3)"]),
        ("f(x: Bool(True) = False)", &["x.default: False can't be a default of Bool(True)"]),
        ("f(x: Tensor([n], int8) = None)", &["x.default: None can't be a default of Tensor([n], int8)"]),
        ("f(x: Optional[int8] = 300)", &["x.default: 300 can't be a default of int8"]),
        ("f(x: Array[Any] = 1)", &["x.default: 1 can't be a default of Array[Any]"]),
        (
            "f(a: int8 = 1, b: int8, c: int8)",
            &[
                "b.default: expected a default, as `a` before it has one",
                "c.default: expected a default, as `a` before it has one",
            ],
        ),
    ]);
    let quoted = Signature::builder("f").param_or("x", ParamType::Str, "a\"b\\\n").build().unwrap();
    assert_eq!(quoted.to_string(), r#"f(x: str = "a\"b\\\n")"#);
    assert_eq!(quoted.to_string().parse(), Ok(quoted));
    let nul = Signature::builder("f").param_or("x", ParamType::Str, "a\0").build();
    assert_eq!(errors(nul.unwrap_err()), ["x.default: \"a\0\" can't be a default of str"]);
    let error = r#"f(x: str = "a\x")"#.parse::<Signature>().unwrap_err();
    let ParseError::Syntax(error) = error else { panic!("{error}") };
    assert_eq!((error.column, error.span), (14, 13..14));
    assert!(error.message.starts_with("expected an escape, "), "{}", error.message);

    let text = "f(x: Tensor([n], int8, device=\"cuda\"), a: float32 = 1, s: EnvStream, b: Any = None)";
    let signature: Signature = text.parse().unwrap();
    assert_eq!(signature.arity(), (1, 3));
    assert_eq!(signature.params()[1].default, Some(DefaultValue::Float(1.0)));
    let built = Signature::builder("f")
        .param_or("a", ParamType::DType, "f32")
        .param_or("b", ParamType::Device, DLDevice::CPU)
        .build()
        .unwrap();
    assert_eq!(built.to_string(), "f(a: dtype = \"float32\", b: device = \"cpu:0\")");
}

#[test]
fn a_stream_is_that_of_a_tensor_on_a_device() {
    let none = "s: expected a tensor on a device among the parameters, whose stream it is";
    let nested = "expected a type that is passed, got EnvStream: it stands only for a whole parameter";
    check_each(&[
        ("f(s: EnvStream)", &[none]),
        ("f(x: Tensor([n], int8), s: EnvStream)", &[none]),
        ("f(x: Array[Tensor([n], int8, device=\"cuda\")], s: EnvStream)", &[none]),
        ("f(x: Optional[EnvStream])", &[&format!("x: {nested}")]),
        ("f(x: Tuple[int8, EnvStream])", &[&format!("x[1]: {nested}")]),
        ("f(x: Map[str, EnvStream])", &[&format!("x[...]: {nested}")]),
        ("f(s: Stream)", &[none]),
        (
            "f(x: Tensor([n], int8, device=\"cuda\"), s: Optional[Stream])",
            &["s: expected a type of values, got Stream: it stands only for a whole parameter"],
        ),
        ("f(x: Tensor([n], int8, device=\"cuda\"), s: Stream = 0)", &["s.default: 0 can't be a default of Stream"]),
    ]);
    for tensor in ["Tensor([n], int8, device=\"cuda\")", "Tensor([n], int8, device=any)"] {
        for ty in [tensor.to_owned(), format!("Optional[{tensor}]"), format!("Tuple[int8, {tensor}]")] {
            assert!(format!("f(s: EnvStream, x: {ty})").parse::<Signature>().is_ok(), "{ty}");
        }
    }
}

#[test]
fn a_state_is_that_of_a_global_function() {
    let nested = "expected a type that is passed, got EnvState(\"g\"): it stands only for a whole parameter";
    let name = "expected the name of a global function, without `\"` and `\\`, got";
    check_each(&[
        ("f(s: EnvState(\"\"))", &[&format!("s: {name} \"\"")]),
        ("f(x: Optional[EnvState(\"g\")])", &[&format!("x: {nested}")]),
        ("f(x: Tuple[int8, EnvState(\"g\")])", &[&format!("x[1]: {nested}")]),
        ("f(x: Array[EnvState(\"g\")])", &[&format!("x[...]: {nested}")]),
        ("f(s: EnvState(\"g\") = 1)", &["s.default: 1 can't be a default of EnvState(\"g\")"]),
        (
            "f() -> EnvState(\"g\")",
            &[
                "result: EnvState(\"g\") can't be returned: expected a scalar, str, bytes, dtype, device, Any, Function, \
               Module, Shape, Object, a container of Any, Tensor, or a Tuple of Tensors",
            ],
        ),
    ]);
    let quote = Signature::builder("f").param("s", ParamType::env_state("a\"b")).build().unwrap_err();
    assert_eq!(errors(quote), [format!("s: {name} \"a\\\"b\"")]);
    let text = "f(a: int8 = 1, s: EnvState(\"my lang.state\"), b: int8 = 2)";
    let signature: Signature = text.parse().unwrap();
    assert_eq!((signature.to_string().as_str(), signature.arity()), (text, (0, 2)));
    assert_eq!(signature.params()[1].ty, ParamType::env_state("my lang.state"));
    let refused = "f(s: EnvState(g))".parse::<Signature>().unwrap_err().to_string();
    let expected = "expected the name of a global function in quotes, such as `\"mylang.get_global_state\"`, found `g`";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn every_dimension_variable_is_determined() {
    let of = |path: &str, name: &str| {
        format!(
            "{path}: nothing says the value of `{name}`: expected a dimension that is it alone, or that can be solved for it"
        )
    };
    check_each(&[
        ("f() where n > 0", &[&of("where[0]", "n")]),
        ("f(x: Tensor([k], int8)) where k > 0, 3 < 2 * n", &[&of("where[1]", "n")]),
        ("f() -> Tensor([n], int8)", &[&of("result.shape[0]", "n")]),
        ("f(x: Tensor([m + n], int8))", &[&of("x.shape[0]", "m"), &of("x.shape[0]", "n")]),
        ("f(x: Tensor([4, n + n], int8))", &[&of("x.shape[1]", "n")]),
        ("f(x: Tensor([n // 2, n % 2], int8))", &[&of("x.shape[0]", "n")]),
        ("f(x: Tensor([4], int8, strides=[n * n]))", &[&of("x.strides[0]", "n")]),
        ("f(t: Tuple[int8, Array[Shape([n * n])]])", &[&of("t[1][...][0]", "n")]),
        ("f(m: Map[Shape([n * n]), Tensor([k * k], int8)])", &[&of("m.keys()[0]", "n"), &of("m[...].shape[0]", "k")]),
    ]);
    for text in [
        "f(x: Tensor([m + n, n], int8))",
        "f(x: Tensor([a + b, b + c, c - 3, 2 * d - a], int8))",
        "f(x: Tensor([n // 2], int8), y: Tensor([n], int8))",
        "f(x: Tensor([8], int8, strides=[s]), y: Array[Shape([n])]) where s > n",
        "f(n: int32, x: Tensor([n + n], int8)) -> Tensor([n // 2], int8)",
    ] {
        assert!(text.parse::<Signature>().is_ok(), "{text}");
    }
    check_each(&[
        (
            "f(x: Tensor([x], int8))",
            &["x.shape[0]: `x` is a parameter, but not an integer, so it can't be used in a dimension"],
        ),
        (
            "f(x: float32) where 2 * x > 3",
            &["where[0]: `x` is a parameter, but not an integer, so it can't be used in a dimension"],
        ),
        ("f(n: int32) where n // 1 == 1 // 0", &["where[0]: 1 // 0 has no value in 64 bits"]),
        ("f() where 1 < 2", &["where[0]: expected a dimension variable in `1 < 2`, which no call can change"]),
        ("f() where a.b == 1", &["where[0]: expected a number or an identifier, got \"a.b\""]),
    ]);
}

#[test]
fn types_inside_types() {
    let takes_none = |ty: &str| format!("x: {ty} already accepts None; remove the Optional");
    check_each(&[
        ("f(x: Optional[Any])", &[&takes_none("Any")]),
        ("f(x: Optional[None])", &[&takes_none("None")]),
        ("f(x: Optional[handle])", &[&takes_none("handle")]),
        ("f(x: Optional[Optional[int8]])", &[&takes_none("Optional[int8]")]),
        (
            "f(x: Tuple[int8, Array[Tensor([-1], int8)]])",
            &["x[1][...].shape[0]: expected a size of at least 0, got -1"],
        ),
        ("f(x: Shape([-1]))", &["x[0]: expected a size of at least 0, got -1"]),
        ("f(x: Object(\"\"))", &["x: expected a type key without `\"` and `\\`, got \"\""]),
    ]);
    let nested = |depth: usize, of: fn(ParamType) -> ParamType| {
        Signature::builder("f").param("x", (0..depth).fold(ParamType::Str, |ty, _| of(ty))).build()
    };
    assert!(nested(MAX_CONTAINER_DEPTH, ParamType::array).is_ok());
    let error = nested(MAX_CONTAINER_DEPTH + 1, ParamType::array).unwrap_err();
    assert_eq!(errors(error), ["x[...][...][...][...]: expected at most 4 containers inside each other"]);
    let tuple = |ty| ParamType::tuple([ty]);
    assert!(nested(MAX_TYPE_DEPTH, tuple).is_ok());
    let error = nested(MAX_TYPE_DEPTH + 1, tuple).unwrap_err();
    assert_eq!(errors(error), [format!("x{}: expected at most 16 types inside each other", "[0]".repeat(17))]);
    let deep = (0..17).fold(Dim::from("n"), |dim, _| dim + 1);
    let error = Signature::builder("f").param("x", TensorType::new([Dim::from("n"), deep], F32)).build().unwrap_err();
    assert_eq!(errors(error), ["x.shape[1]: expected at most 16 operations inside each other"]);
}

#[test]
fn records() {
    let field = "expected no Record in a container, which isn't converted; pass it as a parameter";
    let no_result = "can't be returned: expected a scalar, str, bytes, dtype, device, Any, Function, Module, Shape, \
                     Object, a container of Any, Tensor, or a Tuple of Tensors";
    let stream = "expected a type of values, got Stream: it stands only for a whole parameter";
    check_each(&[
        ("f(c: Record(\"C\"))", &["c: expected at least one field of the Record"]),
        ("f(c: Record(\"C\", a: int8, b: int8, a: str))", &["c.a.name: `a` is already the name of fields[0]"]),
        ("f(c: Record(\"C\", a.b: int8))", &["c.fields[0].name: expected an identifier, got \"a.b\""]),
        ("f(c: Record(\"\", a: int8))", &["c.name: expected a name of the Record without `\"` and `\\`, got \"\""]),
        ("f(c: Record(\"C\", a: Tensor([-1], int8)))", &["c.a.shape[0]: expected a size of at least 0, got -1"]),
        (
            "f(c: Record(\"C\", a: Record(\"D\", b: Tensor([n * n], int8))))",
            &["c.a.b.shape[0]: nothing says the value \
            of `n`: expected a dimension that is it alone, or that can be solved for it"],
        ),
        ("f(c: Array[Record(\"C\", a: int8)])", &[&format!("c[...]: {field}")]),
        ("f(c: Map[str, Tuple[Record(\"C\", a: int8)]])", &[&format!("c[...][0]: {field}")]),
        ("f(c: Record(\"C\", s: Stream), x: Tensor([n], int8, device=\"cuda\"))", &[&format!("c.s: {stream}")]),
        ("f() -> Record(\"C\", a: int8)", &[&format!("result: Record(\"C\", a: int8) {no_result}")]),
        ("f(c: Record(\"C\", a: int8) = 1)", &["c.default: 1 can't be a default of Record(\"C\", a: int8)"]),
        ("f(c: Record(\"C\", a: int8) = None)", &["c.default: None can't be a default of Record(\"C\", a: int8)"]),
        // paths in dimensions
        (
            "f(c: Record(\"C\", a: float32), x: Tensor([c.a], int8))",
            &["x.shape[0]: `c.a` is no integer inside a parameter, so \
            it can't be used in a dimension"],
        ),
        (
            "f(c: Optional[Record(\"C\", a: int8)], x: Tensor([c.a], int8))",
            &["x.shape[0]: `c.a` is no integer \
             inside a parameter, so it can't be used in a dimension"],
        ),
        ("f(x: Tensor([c.a], int8))", &["x.shape[0]: expected a number or an identifier, got \"c.a\""]),
        (
            "f(c: Record(\"C\", t: Tuple[int8])) where c.t[1] > 0",
            &["where[0]: `c.t[1]` is no integer inside a parameter, so it \
            can't be used in a dimension"],
        ),
    ]);
    let fields = [("n", ScalarType::Int64.into()), ("t", ParamType::tuple([ScalarType::Int8.into()]))];
    let built = Signature::builder("f").param("c", ParamType::record("my.C", fields)).param_or(
        "o",
        ParamType::record("C", [("x", TensorType::new([dim("c.t[0]")], F32).into())]).optional(),
        DefaultValue::None,
    );
    let built = built.constraint("c.n", CompareOp::Gt, 0).build().unwrap();
    let text = "f(c: Record(\"my.C\", n: int64, t: Tuple[int8]), o: Optional[Record(\"C\", x: Tensor([c.t[0]], \
                float32))] = None) where c.n > 0";
    assert_eq!(built.to_string(), text);
    assert_eq!(text.parse(), Ok(built.clone()));
    assert_eq!((built.dim_vars(), built.names_in_dims()), (vec![], vec!["c.t[0]", "c.n"]));
}

#[test]
fn open_tensors() {
    let any_rank = TensorType::new(TensorShape::Any, DType::Any);
    let build = |ty: TensorType| Signature::builder("f").param("x", ty).build();
    assert!(build(any_rank.clone().with_device(Device::Any).with_any_strides()).is_ok());
    check_each(&[(
        "f(x: Tensor([...], any, strides=[1]))",
        &["x.strides: expected `any`, or none, for a tensor of any rank"],
    )]);
    let only_result = "expected `any` or a type, got `t`: only a result may refer to a parameter";
    let referring = TensorType::new(["n"], DType::Param("t".to_owned())).with_device(Device::Param("t".to_owned()));
    assert_eq!(
        errors(build(referring).unwrap_err()),
        [format!("x.dtype: {only_result}"), format!("x.device: {only_result}")]
    );
}

#[test]
fn results() {
    let no_result = |ty: &str| {
        format!(
            "result: {ty} can't be returned: expected a scalar, str, bytes, dtype, device, Any, Function, Module, \
             Shape, Object, a container of Any, Tensor, or a Tuple of Tensors"
        )
    };
    for ty in ["Optional[int8]", "Tuple[]", "Array[int8]", "Map[str, Any]", "Int(3)", "Shape([4])", "EnvStream"] {
        assert_eq!(errors_of(&format!("f() -> {ty}")), [no_result(ty)]);
    }
    for ty in
        ["handle", "bytes", "Module", "Shape", "Object(\"o\")", "List[Any]", "Dict[Any, Any]", "Tensor([4], any1)"]
    {
        let text = format!("f(any1: dtype) -> {ty}");
        assert_eq!(text.parse::<Signature>().unwrap().to_string(), text);
    }
    check_each(&[
        (
            "f() -> Tensor([...], int8)",
            &["result.shape: expected sizes, as the tensor is allocated before the kernel runs"],
        ),
        (
            "f() -> Tensor([4], any, device=any)",
            &[
                "result.dtype: expected a dtype, or the name of a dtype parameter",
                "result.device: expected a device, or the name of a device parameter",
            ],
        ),
        (
            "f(d: int8) -> Tensor([4], t, device=d)",
            &[
                "result.dtype: expected a dtype, or the name of a dtype parameter, got `t`",
                "result.device: expected a device, or the name of a device parameter, got `d`",
            ],
        ),
        ("f() -> Tensor([4], int8, strides=[1])", &["result.strides: expected none: what is allocated is contiguous"]),
        (
            "f() -> Tensor([4], int8, align=64)",
            &["result: expected neither `align` nor `noalias`: the allocator decides"],
        ),
        (
            "f() -> Tensor([4], int8, out=True)",
            &["result.access: expected none: the function writes all of its result"],
        ),
    ]);
    // names that the text form would parse as something else
    let refer = |dtype: &str, device: &str| {
        let ty = TensorType::new([4], DType::Param(dtype.to_owned())).with_device(Device::Param(device.to_owned()));
        let builder = Signature::builder("f").param(dtype, ParamType::DType).param(device, ParamType::Device);
        builder.returns(ty).build()
    };
    assert!(refer("t", "d").is_ok());
    for (dtype, device) in [("any", "d"), ("int8", "d"), ("f32", "d"), ("t", "any")] {
        assert_eq!(refer(dtype, device).unwrap_err().errors.len(), 1, "{dtype}, {device}");
    }
}

#[test]
fn a_builder_says_what_a_text_says() {
    let text = "f(x: Tensor([n, 4 * c], float32), n0: int64, dtype_policy=\"sign+fp8\") where n % 16 == 0, c < n0";
    let built = Signature::builder("f")
        .param("x", TensorType::new([Dim::from("n"), Dim::from(4) * "c"], F32))
        .param("n0", ScalarType::Int64)
        .dtype_policy(DTypePolicy::FP8 | DTypePolicy::SIGN)
        .constraint(Dim::from("n") % 16, CompareOp::Eq, 0)
        .constraint("c", CompareOp::Lt, "n0")
        .build()
        .unwrap();
    assert_eq!(text.parse(), Ok(built.clone()));
    assert_eq!(built.to_string(), text);
    assert_eq!(built.names_in_dims(), ["n", "c", "n0"]);
    assert_eq!(built.dim_vars(), ["n", "c"]);
}

#[test]
fn symbols_come_in_order_of_first_appearance() {
    let signature: Signature =
        "f(x: Tensor([b, a], int8, strides=[s, 1]), y: Tensor([a, c], int8), z: Tensor([s, t, b], int8))"
            .parse()
            .unwrap();
    assert_eq!(signature.dim_vars(), ["b", "a", "s", "c", "t"]);
}

#[test]
fn a_text_says_what_is_wrong_with_it() {
    let error = "add_one(x: Tensor([n], float32), y Tensor([n], float32))".parse::<Signature>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected `:`, found `Tensor`\n  \
         add_one(x: Tensor([n], float32), y Tensor([n], float32))\n  \
         \u{20}                                  ^"
    );
    let error = "f(x: int8, x: int8)".parse::<Signature>().unwrap_err();
    let ParseError::Signature(error) = error else { panic!("{error}") };
    assert_eq!(errors(error), ["params[1].name: `x` is already the name of params[0]"]);
}

#[test]
fn dimensions_compute_with_numbers_and_names_on_both_sides() {
    let (n, owned) = (dim("n"), "m".to_owned());
    let cases = [
        (2 * dim("n"), "2 * n"),
        (2 * dim("n") + 1, "2 * n + 1"),
        (&n * 2, "n * 2"),
        (2_i64 * &n, "2 * n"),
        (dim(2_usize) * dim("n"), "2 * n"),
        (dim(2_u64) * "n", "2 * n"),
        (dim("n") * 4_usize, "n * 4"),
        (dim("n") * 4_u32, "n * 4"),
        ("m" * dim("n"), "m * n"),
        (&n + "m", "n + m"),
        (&n + &owned, "n + m"),
        (owned.as_str() + &n, "m + n"),
        (&n + &n, "n + n"),
        (n.clone() - &n, "n - n"),
        (7 - dim("n"), "7 - n"),
        ((dim("n") + 127) / 128, "(n + 127) // 128"),
        (&n / "m", "n // m"),
        (100 / dim("n"), "100 // n"),
        (dim("n") % 16, "n % 16"),
        (5 % dim("n"), "5 % n"),
        ((dim("h") + 2 * dim("pad") - "k") / "s" + 1, "(h + 2 * pad - k) // s + 1"),
    ];
    for (dim, text) in cases {
        assert_eq!(dim.to_string(), text);
        assert_eq!(text.parse(), Ok(dim));
    }
    // the same results as in Python, for all signs
    for (x, y, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)] {
        assert_eq!((dim(x) / y).eval(&|_| None), Some(quotient), "{x} / {y}");
        assert_eq!((x % dim(y)).eval(&|_| None), Some(rest), "{x} % {y}");
    }
    assert_eq!((dim(1) / 0).eval(&|_| None), None);
    // a number on the left needs no type annotation, even with a method call on the expression
    assert_eq!((2 * dim("n") + 1).floor_div(2).depth(), 3);
    let operations = [DimOp::Add, DimOp::Sub, DimOp::Mul, DimOp::FloorDiv, DimOp::Mod];
    assert_eq!(operations.map(|op| op.to_string()), ["+", "-", "*", "//", "%"]);
}

#[test]
fn sizes_come_from_usize_and_none_wraps() {
    assert_eq!(Dim::from(3_usize), Dim::Const(3));
    assert_eq!(Dim::from(i64::MAX as u64), Dim::Const(i64::MAX));
    let shape = [2_usize, 3].map(Dim::from);
    let signature = Signature::builder("f").param("x", TensorType::new(shape, F32)).build().unwrap();
    assert_eq!(signature.to_string(), "f(x: Tensor([2, 3], float32))");
    for (size, text) in [(1_u64 << 63, "4611686018427387904 * 2 + 0"), (u64::MAX, "9223372036854775807 * 2 + 1")] {
        let error = Signature::builder("f").param("x", TensorType::new([size], F32)).build().unwrap_err();
        assert_eq!(errors(error), [format!("x.shape[0]: {text} has no value in 64 bits")]);
    }
}

#[test]
fn pieces_of_a_signature_are_read_alone() {
    fn reads<T: std::str::FromStr<Err: std::error::Error> + std::fmt::Display>(texts: &[&str]) {
        for text in texts {
            match text.parse::<T>() {
                Ok(read) => assert_eq!(read.to_string(), *text),
                Err(error) => panic!("{text}: {error}"),
            }
        }
    }
    reads::<Dim>(&["0", "-3", "n", "n - -1", "(a + b) * c", "a - (b - c)", "(n + 127) // 128 % 4"]);
    reads::<Constraint>(&["n % 16 == 0", "n <= 65536", "2 * a != b - 1"]);
    reads::<ScalarType>(&ScalarType::ALL.iter().map(|ty| ty.name()).collect::<Vec<_>>());
    reads::<DTypePolicy>(&["exact", "sign", "sign+bool", "fp8+storage"]);
    reads::<Device>(&["cpu", "cuda", "cuda:1", "opencl:any", "any"]);
    reads::<TensorType>(&[
        "Tensor([], int8)",
        "Tensor([...], any, device=any)",
        "Tensor([n, 4 * c], float32, strides=[s, 1], device=\"cuda:any\", align=16, noalias=True)",
        // the dtype and the device of a result can be parameters
        "Tensor([n], t, device=d)",
    ]);
    reads::<ParamType>(&[
        "int64",
        "Tensor([n], float32)",
        "Shape",
        "Shape([n, 4])",
        "Int(-3)",
        "Bool(True)",
        "Object(\"my.Type\")",
        "Optional[Tuple[str, Array[Map[Any, bytes]]]]",
        "EnvStream",
        "Stream",
        "EnvState(\"mylang.get_global_state\")",
    ]);
    reads::<Convention>(&Convention::ALL.iter().map(|convention| convention.name()).collect::<Vec<_>>());
    reads::<Backend>(&Backend::ALL.iter().map(|backend| backend.name()).collect::<Vec<_>>());
    reads::<OptLevel>(&["none", "speed", "full"]);
    reads::<Stage>(&["header", "ir", "clif", "llvm", "asm"]);
    // whitespace is free, as in a signature
    assert_eq!(" 2*( n ) ".parse(), Ok(2 * dim("n")));
}

#[test]
fn pieces_that_are_none_say_what_was_expected() {
    fn error<T: std::str::FromStr<Err: std::error::Error> + std::fmt::Debug>(text: &str) -> String {
        text.parse::<T>().unwrap_err().to_string()
    }
    assert_eq!(error::<Dim>("n +"), "expected an integer, a name or `(`, found the end\n  n +\n     ^");
    assert_eq!(error::<Dim>("n m"), "expected the end, found `m`\n  n m\n    ^");
    assert_eq!(error::<Dim>("-n"), "expected an integer after `-`, found `n`\n  -n\n   ^");
    assert_eq!(error::<Dim>(""), "expected an integer, a name or `(`, found the end\n  \n  ^");
    let deep = format!("{}n{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(error::<Dim>(&deep).starts_with("expected at most 16 parentheses inside each other"));
    assert_eq!(
        error::<Constraint>("n % 16"),
        "expected `==`, `!=`, `<`, `<=`, `>` or `>=`, found the end\n  n % 16\n        ^"
    );
    assert!(error::<TensorType>("int8").starts_with("expected `Tensor`, found `int8`"));
    assert!(error::<TensorType>("Tensor([n], float32, align=3, align=4)").starts_with("`align` is given twice"));
    assert!(error::<ParamType>("Tensr([n], float32)").starts_with("expected a type, found `Tensr`"));
    assert!(error::<ParamType>("int8, int8").starts_with("expected the end, found `,`"));
    assert!(error::<Device>("gpu").starts_with("unknown device \"gpu\"; known devices: cpu, cuda, "));
    assert!(error::<Device>("cuda:x").starts_with("expected a device number, found \"x\""));
    assert_eq!(
        error::<ScalarType>("int"),
        "expected int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, bool or handle, got `int`"
    );
    assert_eq!(error::<Convention>("c"), "expected flat, dltensor, memref or packed, got `c`");
    let policy = "expected exact, or some of sign, bool, fp8, storage joined by `+`, got `sign+`";
    assert_eq!(error::<DTypePolicy>("sign+"), policy);
    // only in a result, a parameter's name can be a dtype
    let tensor: TensorType = "Tensor([n], t)".parse().unwrap();
    let refused = Signature::builder("f").param("x", tensor).build().unwrap_err();
    assert_eq!(errors(refused), ["x.dtype: expected `any` or a type, got `t`: only a result may refer to a parameter"]);
}

/// All grammar errors are reported together, those of a signature and those of its launch, as an error and as a
/// diagnostic.
#[test]
fn all_errors_of_grammar_come_at_once() {
    use tvm_ffi_codegen::diagnostic::Diagnostic;
    use tvm_ffi_codegen::spec::{Launch, LaunchedSignature};

    // line, column, and the token there
    type Place = (usize, usize, &'static str);
    let cases: &[(&str, &[Place])] = &[
        ("f(x: fp16)", &[(1, 6, "`fp16`")]),
        ("f(x: fp16,\n  y int8, z: int8)", &[(1, 6, "`fp16`"), (2, 5, "`int8`")]),
        ("f(x: fp16) -> int8 where n = 1, m > 0, 0 < k < 2", &[(1, 6, "`fp16`"), (1, 28, "`=`"), (1, 46, "`<`")]),
        (
            "f(x: fp16)\n  @ launch k\n  grid=+ args=[x y,\n  x, int32()]",
            &[(1, 6, "`fp16`"), (3, 8, "`+`"), (3, 18, "`y`"), (4, 12, "`)`")],
        ),
        // it is unknown where the first parameter ends
        ("f(x: Tensor([n, float33, y int8)", &[(1, 28, "`int8`")]),
        ("f(x: Tensor [n], float32, align=16)", &[(1, 13, "`[`")]),
        ("f(x: @ int8) @ launch k grid=+", &[(1, 6, "`@`")]),
    ];
    for (text, want) in cases {
        let error = match text.contains('@') {
            true => text.parse::<LaunchedSignature>().unwrap_err(),
            false => text.parse::<Signature>().unwrap_err(),
        };
        let ParseError::Syntax(syntax) = &error else { panic!("{text}: {error}") };
        let all: Vec<_> = [syntax].into_iter().chain(syntax.more()).collect();
        let found: Vec<_> = all.iter().map(|one| (one.line, one.column, one.got().unwrap())).collect();
        assert_eq!(found, *want, "{text}");
        assert!(syntax.more().iter().all(|one| one.more().is_empty()), "{text}");

        let carets = error.to_string().lines().filter(|line| line.trim() == "^").count();
        assert_eq!(carets, want.len(), "{error}");
        let diagnostic = Diagnostic::of(&error);
        assert_eq!(diagnostic.message, error.to_string());
        let told: Vec<_> = diagnostic.errors.iter().map(|one| (one.line, one.column, one.got.as_deref())).collect();
        let want: Vec<_> = want.iter().map(|(line, column, got)| (Some(*line), Some(*column), Some(*got))).collect();
        assert_eq!(told, want, "{text}");
        let messages = diagnostic.errors.iter().map(|one| one.message.as_str());
        assert!(messages.eq(all.iter().map(|one| one.message.as_str())), "{text}");
    }
    let error = "launch k grid=+ block=(1, *) cluster=2".parse::<Launch>().unwrap_err();
    assert_eq!((error.span.clone(), error.more().len(), error.more()[0].span.clone()), (14..15, 1, 26..27));
}

#[test]
fn launches_have_a_text_form() {
    use tvm_ffi_codegen::spec::{FloatBits, KernelArg, Launch, LaunchedSignature, Swizzle};

    let signature =
        "f(x: Tensor([m, n], float32, strides=[s, 1], device=\"cuda\"), a: float64, k: int32) where n % 4 == 0";
    let launch = "launch gemm$1.x grid=(ceil_div(n, 128), m // 2 + 1) block=(128, 2) cluster=2 preferred_cluster=(4, 1, 1) shared_memory=4 * n \
                  args=[x, float32(a), cast(k, int64), int32(n - 1), int64(x.strides[0]), float64(-0.5), float32(inf), null, param(null), \
                  struct(size=16, align=8, 0: x, 8: int32(m), 12: struct(size=4, align=4, 0: uint32(7))), scratch(m * 4, align=128), \
                  tensor_map(x, box=(64, 32), element_strides=(1, 2), interleave=16, swizzle=128, l2_promotion=256, fill=nan)] \
                  stream=x priority=-3 cluster_scheduling=spread memory_sync_domain=remote shared_memory_carveout=40 completion_event=k \
                  on_load=pkg.load on_unload=\"un load\" \
                  globals=[scale=cast(a, float32), \"a-b\"=struct(size=4, align=4, 0: int32(n))] \
                  cooperative programmatic_dependent_launch non_portable_cluster";
    let text = format!("{signature} @ {launch}");
    let read: LaunchedSignature = text.parse().unwrap();
    let canonical = text.replace("float32(a)", "cast(a, float32)");
    assert_eq!(read.to_string(), canonical);
    assert_eq!(canonical.parse(), Ok(read.clone()));
    assert_eq!(launch.parse(), Ok(read.launch.clone()));
    let args = read.launch.stated_args().unwrap();
    assert_eq!(args[1], KernelArg::Cast("a".to_owned(), ScalarType::Float32));
    assert_eq!(args[4], KernelArg::Stride("x".to_owned(), 0, ScalarType::Int64));
    assert_eq!(args[5], KernelArg::Float(FloatBits::new(-0.5), ScalarType::Float64));
    assert!(matches!(&args[11], KernelArg::TensorMap(map) if map.swizzle == Swizzle::Bytes128 && map.nan_fill));

    // an extent may begin with a parenthesis, and a list may have a single extent
    let grid = |text: &str| format!("launch k grid={text}").parse::<Launch>().unwrap().grid_extents().to_vec();
    assert_eq!(grid("((n + 1023) // 1024)"), [(dim("n") + 1023) / 1024]);
    assert_eq!(grid("(n + 1) // 2"), [(dim("n") + 1) / 2]);
    assert_eq!(grid("(n,)"), [dim("n")]);
    assert_eq!(grid("((n + 1) // 2, m)"), [(dim("n") + 1) / 2, dim("m")]);
    assert_eq!("launch \"a-b\"".parse::<Launch>().unwrap().to_string(), "launch \"a-b\"");

    for (text, expected) in [
        ("f() @ symbol", "expected `launch`, found `symbol`"),
        ("f() @ launch", "expected the name of the kernel's entry, found the end"),
        ("f() @ launch k grid=1 grid=2", "`grid` is given twice"),
        ("f() @ launch k size=1", "found `size`"),
        ("f() @ launch k grid=", "expected an integer, a name or `(`, found the end"),
        ("f() @ launch k args=[x y]", "found `y`"),
        ("f() @ launch k args=[int33(x)]", "expected `,` or `]`, found `(`"),
        ("f() @ launch k args=[cast(x, int33)]", "expected a scalar type, found `int33`"),
        ("f() @ launch k args=[struct(size=8)]", "expected `,`, found `)`"),
        ("f() @ launch k args=[tensor_map(x)]", "expected `,` and a `box`, found `)`"),
        (
            "f() @ launch k args=[tensor_map(x, box=8, swizzle=48)]",
            "expected one of `0`, `32`, `64`, `128`, found `48`",
        ),
        ("f() @ launch k args=[struct(size=-8, align=1)]", "`-8` is out of the range of a number of bytes"),
        ("f() @ launch k priority=3000000000", "is out of the range of a priority"),
        ("f() @ launch k cluster_scheduling=all", "expected `spread` or `load_balancing`, found `all`"),
        ("f() @ launch k memory_sync_domain=1", "expected `default` or `remote`, found `1`"),
        ("f() @ launch k shared_memory_carveout=-1", "`-1` is out of the range of a percentage"),
        ("f() @ launch k globals=[1=x]", "expected the name of a global variable or `]`, found `1`"),
        ("f() @ launch k globals=[a x]", "expected `=`, found `x`"),
        ("f() @ launch k globals=[a=x b=x]", "expected `,` or `]`, found `b`"),
        ("f() @ launch k on_load=1", "expected the name of a global function, found `1`"),
        ("f() @ launch k completion_event=1", "expected the name of an event, found `1`"),
        ("f()", "expected `@`, found the end"),
        ("f(x: int8, x: int8) @ launch k", "x"),
    ] {
        let error = text.parse::<LaunchedSignature>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let deep = format!("launch k args=[{}", "struct(size=8, align=8, 0: ".repeat(100_000));
    assert!(deep.parse::<Launch>().unwrap_err().message.contains("at most 16 structs inside each other"));
}

/// A scalar type's name is also the name of a tensor's dtype, with the same meaning.
#[test]
fn scalars_and_tensors_share_their_names() {
    use tvm_ffi_codegen::spec::Launch;

    let short =
        ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "bool8", "handle64"];
    let long = ScalarType::ALL.iter().map(|ty| ty.name());
    let mut count = 0;
    for name in long.chain(short) {
        let scalar: ScalarType = name.parse().unwrap();
        assert_eq!(format!("f(x: {name})").parse::<Signature>().unwrap().to_string(), format!("f(x: {scalar})"));
        let tensor: TensorType = format!("Tensor([n], {name})").parse().unwrap();
        assert_eq!(tensor.to_string(), format!("Tensor([n], {scalar})"));
        let cast = format!("launch k grid=1 block=1 args=[cast(x, {name}), {name}(x)]").parse::<Launch>().unwrap();
        let [stated, short] = [format!("cast(x, {scalar})"), format!("{scalar}(x)")];
        let second = if scalar.is_float() { &stated } else { &short };
        assert!(cast.to_string().contains(&format!("args=[{stated}, {second}]")), "{cast}");
        count += 1;
    }
    assert_eq!(count, 28);
    // upstream's `float` has 32 bits, and Python's has 64
    for (name, meant) in [("float", "float32"), ("int", "int32"), ("uint", "uint32"), ("bfloat", "bfloat16")] {
        for text in
            [format!("f(x: {name})"), format!("f(x: Tensor([n], {name}))"), format!("f() -> Tensor([4], {name})")]
        {
            let error = text.parse::<Signature>().unwrap_err().to_string();
            assert!(error.contains(&format!("found `{name}` (did you mean `{meant}` or ")), "{error}");
        }
        assert!(name.parse::<ScalarType>().is_err());
    }
    // each suggestion is given only once
    let error = "f(x: float, y: float, z: Tensor([n], fp32), w: Tensor([n], fp32))".parse::<Signature>().unwrap_err();
    let tensors = error.to_string();
    assert_eq!(tensors.matches("did you mean").count(), 2, "{tensors}");
    assert_eq!(tensors.matches("expected a type, found `float`").count(), 2, "{tensors}");
    assert_eq!(tensors.matches("types are int8").count(), 1, "{tensors}");
}

#[test]
fn signatures_are_strings_for_serde() {
    use tvm_ffi_codegen::spec::LaunchedSignature;

    let text = "f(x: Tensor([n, 2 * k], float32, align=16), s: str = \"a \\\"b\\\"\") -> int64 where n % 16 == 0";
    let signature: Signature = text.parse().unwrap();
    let json = serde_json::to_string(&signature).unwrap();
    assert_eq!(json, serde_json::to_string(&signature.to_string()).unwrap());
    assert_eq!(serde_json::from_str::<Signature>(&json).unwrap(), signature);
    // serde may pass an owned string, as from a reader or a value
    assert_eq!(serde_json::from_reader::<_, Signature>(json.as_bytes()).unwrap(), signature);
    assert_eq!(serde_json::from_value::<Signature>(serde_json::to_value(&signature).unwrap()).unwrap(), signature);

    let launched = "\"g(x: Tensor([n], float32)) @ launch k grid=n block=128 args=[x, int32(n)]\"";
    let read: LaunchedSignature = serde_json::from_str(launched).unwrap();
    let again: LaunchedSignature = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
    assert_eq!(read.to_string(), again.to_string());

    let error = serde_json::from_str::<Signature>("\"f(x: fp16)\"").unwrap_err().to_string();
    let own = "f(x: fp16)".parse::<Signature>().unwrap_err().to_string();
    assert!(error.starts_with(&own), "{error}\n{own}");
    let error = serde_json::from_str::<ScalarType>("3").unwrap_err().to_string();
    assert!(error.contains("invalid type: integer `3`, expected the text form of a scalar type"), "{error}");
}
