//! C parameters that a kernel states: the resulting prototype, and errors. The passed values are tested in
//! fixtures/stated_args.txt.

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::diagnostic::Diagnostic;
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::spec::{KernelArg, Launch};
use tvm_ffi_codegen::{ArgProblem, Convention, ConventionProblem, Kernel, KernelReturn, LowerError, ScalarType, dim};

use crate::support::sig;

fn args(text: &str) -> Vec<KernelArg> {
    KernelArg::list(text).unwrap()
}

#[test]
fn prototypes_are_those_of_the_stated_parameters() {
    let signature = sig("f(x: Tensor([n, m], float32), int: int64, t: float64) -> int64");
    let kernel = Kernel::symbol("k")
        .args(args("x, int32(n * m), int32(n), int32(n), int64(x.strides[0]), x.device_id, cast(t, float32), float16(1.5), null, int"))
        .returns(KernelReturn::Status);
    assert_eq!(
        kernel.c_prototype(&signature).unwrap(),
        "int32_t k(float* x, int32_t arg1, int32_t n, int32_t n_, int64_t x_stride0, int32_t x_device_id, float t, uint16_t arg7, \
         void* arg8, int64_t p_int, int64_t* result);"
    );
    assert!(kernel.header(&signature).unwrap().contains("int32_t k(float* x, int32_t arg1"));
    let sources: Vec<_> = kernel.parameters(&signature).unwrap().iter().map(|param| param.source.to_string()).collect();
    let expected = [
        "x.data",
        "int32(n * m)",
        "int32(n)",
        "int32(n)",
        "int64(x.strides[0])",
        "x.device_id",
        "cast(t, float32)",
        "float16(1.5)",
    ];
    assert_eq!(sources[..8], expected);
    let tensors = sig("f(n: int64) -> Tuple[Tensor([n], int8), Tensor([n], float32)]");
    let second = Kernel::symbol("k").args([KernelArg::Param("result[1]".to_owned())]);
    assert_eq!(second.c_prototype(&tensors).unwrap(), "void k(float* result_1);");
    assert_eq!(Kernel::symbol("k").args([]).c_prototype(&tensors).unwrap(), "void k(void);");
}

#[test]
fn arguments_are_read_as_they_are_written() {
    let texts = [
        "x",
        "int32(n + x.shape[1])",
        "int64(x.strides[0])",
        "int64(x.strides[0] * x.ndim)",
        "cast(t, float32)",
        "x.device_id",
        "struct(size=16, align=8, 0: x, 8: int32(n))",
    ];
    for text in texts {
        assert_eq!(text.parse::<KernelArg>().unwrap().to_string(), text);
    }
    let list = KernelArg::list("x, int32(x.shape[0]),").unwrap();
    assert_eq!(list, [KernelArg::Param("x".to_owned()), KernelArg::Int(dim("x.shape[0]"), ScalarType::Int32)]);
    assert_eq!(KernelArg::list("").unwrap(), []);
    let wrong = |text: &str| KernelArg::list(text).unwrap_err().to_string();
    assert!(wrong("x y").contains("found `y`"), "{}", wrong("x y"));
    assert!(wrong("int32(x.shape[-1])").contains("`-1`"), "{}", wrong("int32(x.shape[-1])"));
    assert!("x, y".parse::<KernelArg>().is_err());
}

#[test]
fn structs_are_types_of_the_header() {
    let signature = sig("f(n: int64)");
    let kernel =
        Kernel::symbol("k").args(args("struct(size=8, align=4, 4: int32(n)), int32(n), struct(size=4, align=4)"));
    let prototype = "void k(tvm_ffi_codegen_struct8 arg0, int32_t n, tvm_ffi_codegen_struct4 arg2);";
    assert_eq!(kernel.c_prototype(&signature).unwrap(), prototype);
    let header = kernel.header(&signature).unwrap();
    for expected in ["typedef struct { int32_t words[2]; } tvm_ffi_codegen_struct8;", prototype] {
        assert!(header.contains(expected), "{header}");
    }
    assert!(!Kernel::symbol("k").header(&signature).unwrap().contains("tvm_ffi_codegen_struct"));

    let pair = "struct(size=16, align=8, 8: float64(2.5), 0: float32(1))";
    let text = format!(
        "{pair}, struct(size=40, align=8, 0: {pair}, 16: int64(n), 38: float16(1)), \
         struct(size=16, align=16, 0: struct(size=2, align=1, 1: uint8(n))), {pair}"
    );
    let kernel = Kernel::symbol("k").args(args(&text));
    let types: Vec<_> = kernel.parameters(&signature).unwrap().iter().map(|param| param.c_type.to_string()).collect();
    assert_eq!(types[0], types[3]);
    let header = kernel.header(&signature).unwrap();
    for (ty, definition) in [
        (&types[0], "{ float at0; double at8; }"),
        (&types[1], "{ struct { float at0; double at8; } at0; int64_t at16; uint8_t gap24[14]; uint16_t at38; }"),
        (&types[2], "{ TVM_FFI_CODEGEN_ALIGNAS(16) struct { uint8_t gap0[1]; uint8_t at1; } at0; }"),
    ] {
        let expected = format!("typedef struct {definition} {ty};");
        assert_eq!(header.matches(&expected).count(), 1, "{expected}\n{header}");
    }
    assert!(
        header
            .contains(&format!("void k({} arg0, {} arg1, {} arg2, {} arg3);", types[0], types[1], types[2], types[3])),
        "{header}"
    );
}

#[test]
fn parts_that_a_tensor_lacks_are_errors() {
    let signature =
        sig("f(x: Tensor([n, 2], float32), y: Tensor([...], float32), z: Tensor([n], int8, device=\"metal\"))");
    let prototype = |text: &str| Kernel::symbol("k").args(args(text)).c_prototype(&signature);
    let known = prototype("int32(x.shape[1]), int32(y.ndim), uint64(z.byte_offset)").unwrap();
    assert_eq!(known, "void k(int32_t x_shape_1, int32_t y_ndim, uint64_t z_byte_offset);");
    for unknown in ["x.shape[2]", "y.shape[0]", "x.byte_offset", "n.ndim", "x.shape"] {
        let told = prototype(&format!("int32({unknown})")).unwrap_err().to_string();
        assert!(told.contains(&format!("`{unknown}` isn't a dimension variable or an integer parameter")), "{told}");
    }
}

#[test]
fn only_integers_are_names_of_expressions() {
    let signature = sig("f(n: uint8, b: bool, v: float32, k: float16, h: handle)");
    let prototype = |text: &str| Kernel::symbol("k").args(args(text)).c_prototype(&signature);
    assert_eq!(prototype("int32(n)").unwrap(), "void k(int32_t n);");
    for other in ["b", "v", "k", "h"] {
        let told = prototype(&format!("int32({other})")).unwrap_err().to_string();
        assert!(told.contains(&format!("`{other}` isn't a dimension variable or an integer parameter")), "{told}");
    }
}

#[test]
fn errors_are_told_all_at_once() {
    let signature = sig("f(x: Tensor([n], float32), s: str, h: handle)");
    let refusal = |kernel: Kernel| LibraryBuilder::new().function(&signature, &kernel).emit().unwrap_err().to_string();
    let all = args(
        "z, int32(q), cast(h, int32), y.device_id, int32(x.strides[1]), scratch(8), tensor_map(x, box=8), struct(size=16, align=4, 0: h, 8: int32(1)), struct(size=24, align=8, 4: h), struct(size=8, align=8, 0: struct(size=4, align=2, 0: float32(1)))",
    );
    let kernel = Kernel::symbol("k").args(all);
    let told = refusal(kernel.clone());
    for expected in [
        "has z among its args, but this isn't a tensor or scalar parameter of the function",
        "`q` isn't a dimension variable or an integer parameter",
        "has int32(h), but h can't be converted to int32",
        "has y among its args, but this isn't a tensor parameter of the function",
        "has x.strides[1], but the signature doesn't state it",
        "has scratch memory among its args, but only launches pass it",
        "has a tensor map among its args",
        "has struct(size=16, align=4, 0: h, 8: int32(1)) among its args, with an alignment below that of a field; calls pass no packed structs",
        "has a struct of 24 bytes whose field at 4 takes 8: fields are aligned, apart, and inside",
        "has struct(size=8, align=8, 0: struct(size=4, align=2, 0: float32(1.0))) among its args, with an alignment below",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    // each is a value, and one of the error's errors
    let error = lower(&signature, &kernel, RuntimeHelpers::Import).unwrap_err();
    let LowerError::Convention { problem: ConventionProblem::Args(problems), .. } = &error else { panic!("{error}") };
    assert_eq!(problems[0], ArgProblem::UnknownParam { name: "z".to_owned() });
    let texts: Vec<String> = problems.iter().map(ArgProblem::to_string).collect();
    assert_eq!(texts.len(), 10, "{texts:#?}");
    let parts = Diagnostic::of(&error).errors;
    assert!(parts.iter().map(|part| &part.message).eq(&texts), "{parts:#?}");
    assert!(parts.iter().all(|part| part.path.as_deref() == Some("f")), "{parts:#?}");
    let other = refusal(Kernel::symbol("k").convention(Convention::DlTensor).args(args("x")));
    assert!(other.contains("states its args, but only a kernel of convention flat can"), "{other}");
    let body = refusal(Kernel::body(|_| ()).args(args("x")));
    assert!(body.contains("args"), "{body}");
    let launched = refusal(Kernel::launch_on_cpu(Launch::new("k"), Kernel::symbol("k").args(args("x"))));
    assert!(launched.contains("needs a native kernel of convention"), "{launched}");
}
