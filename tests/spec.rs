//! Signatures: every mistake at once, each with its path.

use tvm_ffi_codegen::spec::ParseError;
use tvm_ffi_codegen::{DLDataType, DLDeviceType, Device, Dim, ScalarType, Signature, SignatureError, TensorType};

const F32: DLDataType = DLDataType::FLOAT32;

fn mistakes(error: SignatureError) -> Vec<String> {
    error.mistakes.iter().map(ToString::to_string).collect()
}

#[test]
fn all_mistakes_come_at_once_with_their_paths() {
    let error = Signature::builder("1 bad\0name")
        .param("x", TensorType::new([Dim::from(-1), "y".into(), "a b".into()], DLDataType::new(200, 8, 1)))
        .param("y", TensorType::new(["n"], F32).aligned(3).with_strides(["n", "y"]))
        .param("x", ScalarType::Int8)
        .param("", TensorType::new(["n"], F32).on(Device { device_type: DLDeviceType(77), id: Some(-4) }))
        .param("\u{e9}", TensorType::new([i64::MAX, 2], F32).aligned(0))
        .build()
        .unwrap_err();
    assert!(error.to_string().starts_with("signature `1 bad\\0name` has 15 mistakes\n  name: "), "{error}");
    let want = [
        "name: expected a letter or `_`, then letters, digits, `_`, `.` or `$`, got \"1 bad\\0name\"",
        "params[2].name: `x` is already the name of params[0]",
        "params[3].name: expected an identifier, got \"\"",
        "params[4].name: expected an identifier, got \"\u{e9}\"",
        "x.shape[0]: expected a size of at least 0, got -1",
        "x.shape[1]: `y` is already the name of a parameter",
        "x.shape[2]: expected a number or an identifier, got \"a b\"",
        "x.dtype: code 200, 8 bits, 1 lanes is not an element type of DLPack 1.x",
        "y.strides: expected one for each of 1 dimensions, got 2",
        "y.strides[1]: `y` is already the name of a parameter",
        "y.align: expected a power of two, got 3",
        "params[3].device: 77 is not a device type of DLPack 1.x",
        "params[3].device: expected a device id of at least 0, got -4",
        "params[4].shape: the number of elements overflows 64 bits",
        "params[4].align: expected a power of two, got 0",
    ];
    let got = mistakes(error);
    assert_eq!(got, want);
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
    assert_eq!(mistakes(wide(65).unwrap_err()), ["x.shape: expected at most 64 dimensions, got 65"]);
    let many = |count: usize| {
        (0..count).fold(Signature::builder("f"), |b, i| b.param(format!("p{i}"), ScalarType::Int64)).build()
    };
    assert!(many(4096).is_ok());
    assert_eq!(mistakes(many(4097).unwrap_err()), ["params: expected at most 4096 parameters, got 4097"]);
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
fn dtypes_without_a_name_are_mistakes() {
    for (code, bits, lanes) in [(5, 64, 1), (2, 0, 1), (2, 32, 0), (3, 32, 1), (3, 0, 0), (129, 8, 1), (2, 32, 65535)] {
        let dtype = DLDataType::new(code, bits, lanes);
        let result = Signature::builder("f").param("x", TensorType::new(["n"], dtype)).build();
        assert!(result.is_err(), "{dtype:?}");
    }
}

#[test]
fn symbols_come_in_order_of_first_appearance() {
    let signature: Signature =
        "f(x: Tensor([b, a], int8, strides=[s, 1]), y: Tensor([a, c], int8), z: Tensor([s, t, b], int8))"
            .parse()
            .unwrap();
    assert_eq!(signature.symbols(), ["b", "a", "s", "c", "t"]);
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
    let ParseError::Mistakes(error) = error else { panic!("{error}") };
    assert_eq!(mistakes(error), ["params[1].name: `x` is already the name of params[0]"]);
}
