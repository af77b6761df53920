//! C parameters that a kernel states: the prototype that follows, and mistakes. What is passed is in fixtures/stated_args.txt.

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::spec::{Launch, LaunchArg};
use tvm_ffi_codegen::{Convention, Kernel, KernelReturn};

use crate::support::sig;

fn args(text: &str) -> Vec<LaunchArg> {
    let launch: Launch = format!("launch kernel args=[{text}]").parse().unwrap();
    launch.stated_args().unwrap().to_vec()
}

#[test]
fn prototypes_are_those_of_the_stated_parameters() {
    let signature = sig("f(x: Tensor([n, m], float32), int: int64, t: float64) -> int64");
    let kernel = Kernel::symbol("k")
        .args(args("x, int32(n * m), int32(n), int32(n), int64(x.strides[0]), x.device_id, cast(t, float32), float16(1.5), null, int"))
        .returning(KernelReturn::Status);
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
    let second = Kernel::symbol("k").args([LaunchArg::Param("result[1]".to_owned())]);
    assert_eq!(second.c_prototype(&tensors).unwrap(), "void k(float* result_1);");
    assert_eq!(Kernel::symbol("k").args([]).c_prototype(&tensors).unwrap(), "void k(void);");
}

#[test]
fn mistakes_are_told_all_at_once() {
    let signature = sig("f(x: Tensor([n], float32), s: str, h: handle)");
    let refusal = |kernel: Kernel| LibraryBuilder::new().function(&signature, &kernel).emit().unwrap_err().to_string();
    let all = args(
        "z, int32(q), cast(h, int32), y.device_id, int32(x.strides[1]), scratch(8), tensor_map(x, box=8), struct(size=8, align=8)",
    );
    let told = refusal(Kernel::symbol("k").args(all));
    for expected in [
        "has z among its args, which is no tensor or scalar parameter of the function",
        "`q` is no symbol or integer parameter",
        "has int32(h), and h is no number that becomes a int32",
        "has y among its args, which is no tensor parameter of the function",
        "has scratch memory among its args, which launches alone pass",
        "has a tensor map among its args",
        "has a struct among its args",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let other = refusal(Kernel::symbol("k").convention(Convention::DlTensor).args(args("x")));
    assert!(other.contains("states its args, which take the place of convention flat's"), "{other}");
    let body = refusal(Kernel::body(|_| ()).args(args("x")));
    assert!(body.contains("args"), "{body}");
    let launched = refusal(Kernel::launch_on_cpu(Launch::new("k"), Kernel::symbol("k").args(args("x"))));
    assert!(launched.contains("is of a kernel that is no C function"), "{launched}");
}
