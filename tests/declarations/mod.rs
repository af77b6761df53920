//! The declarations of kernels that callers get from signatures. They agree in C, in Cranelift and in LLVM, and kernels
//! written with them run.

mod cranelift;
#[cfg(feature = "_llvm")]
mod llvm;
mod refusals;

use std::collections::BTreeSet;

use tvm_ffi_codegen::lower::flat_signature;
use tvm_ffi_codegen::runtime::abi::TVMFFISafeCallType;
use tvm_ffi_codegen::runtime::{Function, Tensor};
use tvm_ffi_codegen::{Convention, Kernel, KernelReturn, Signature, c_prototype};

use crate::fixtures;
use crate::support::sig;

const RETURNS: [KernelReturn; 3] = [KernelReturn::Nothing, KernelReturn::Status, KernelReturn::Value];

/// A C parameter or result in a backend: the width of an integer, a float or a pointer, and C's extension of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Passed {
    Int(u32, Option<bool>),
    Float(u32),
    Pointer,
}

impl Passed {
    /// The type with this C name. Its sign matters only if it is narrower than a register.
    fn by_c(c_type: &str) -> Self {
        match c_type {
            "int8_t" => Passed::Int(8, Some(true)),
            "uint8_t" => Passed::Int(8, Some(false)),
            "int16_t" => Passed::Int(16, Some(true)),
            "uint16_t" => Passed::Int(16, Some(false)),
            "int32_t" => Passed::Int(32, Some(true)),
            "uint32_t" => Passed::Int(32, Some(false)),
            "DLDataType" => Passed::Int(32, None),
            "int64_t" | "uint64_t" | "size_t" | "DLDevice" => Passed::Int(64, None),
            "float" => Passed::Float(32),
            "double" => Passed::Float(64),
            other => {
                assert!(other.ends_with('*') || other == "TVMFFIObjectHandle", "{other}: what is that?");
                Passed::Pointer
            }
        }
    }
}

/// A C prototype, split into the result and the types and names of the parameters.
fn parts(prototype: &str) -> (Option<Passed>, Vec<(&str, &str)>) {
    let (before, rest) = prototype.split_once('(').unwrap();
    let (params, _) = rest.split_once(')').unwrap();
    let (result, _) = before.rsplit_once(' ').unwrap();
    let result = (result != "void").then(|| Passed::by_c(result));
    let params = params.split(", ").filter(|param| *param != "void");
    (result, params.map(|param| param.rsplit_once(' ').unwrap()).collect())
}

/// Every signature of the fixtures with every kernel, whether the signature allows it or not.
fn all() -> Vec<(Signature, Kernel, Result<String, String>)> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (_, signature, _) in fixtures::signatures() {
        if !seen.insert(signature.to_string()) {
            continue;
        }
        for &convention in Convention::ALL {
            for returns in RETURNS {
                let kernel = Kernel::symbol("kernel").convention(convention).returns(returns);
                let prototype = c_prototype(&signature, "kernel", convention, returns);
                all.push((signature.clone(), kernel, prototype.map_err(|e| e.to_string())));
            }
        }
    }
    assert!(all.len() > 1000, "{}", all.len());
    all
}

#[test]
fn lists_of_parameters_are_those_of_the_prototype() {
    for (signature, kernel, prototype) in all() {
        let (params, result) = (kernel.parameters(&signature), kernel.return_type(&signature));
        let prototype = match prototype {
            Ok(prototype) => prototype,
            Err(why) => {
                assert_eq!(params.unwrap_err().to_string(), why);
                assert_eq!(result.unwrap_err().to_string(), why);
                continue;
            }
        };
        let shown: Vec<String> = params.unwrap().iter().map(ToString::to_string).collect();
        let shown = if shown.is_empty() { "void".to_owned() } else { shown.join(", ") };
        let result = result.unwrap().map_or("void".to_owned(), |ty| ty.to_string());
        assert_eq!(format!("{result} kernel({shown});"), prototype);
    }
}

/// The parameters of a kernel in each convention, with their sources.
#[test]
fn parameters_tell_their_sources() {
    let text = "f(x: Tensor([2 * n, n], float32), s: str, k: Optional[int32], pair: Tuple[device, Tensor([m], int8)], o: Any, \
                e: EnvStream, q: EnvState(\"a.b\"), c: Tensor([m], int8, device=\"opencl\"), d: Shape([p])) -> float64";
    let signature = sig(text);
    let table = |kernel: &Kernel| {
        let params = kernel.parameters(&signature).unwrap();
        params.iter().map(|p| format!("{p}: {}", p.source)).collect::<Vec<_>>()
    };
    let flat = [
        "float* x: x.data",
        "const char* s: s.data",
        "size_t s_size: s.size",
        "uint8_t k_given: whether k is given",
        "int32_t k: k",
        "DLDevice pair_0: pair[0]",
        "int8_t* pair_1: pair[1].data",
        "const TVMFFIAny* o: o",
        "void* e: e",
        "void* q: q",
        "void* c: c.data",
        "uint64_t c_byte_offset: c.byte_offset",
        "const int64_t* d: d.data",
        "size_t d_size: d.size",
        "int64_t n: n, from x.shape[1]",
        "int64_t m: m, from pair[1].shape[0]",
        "int64_t p: p, from d[0]",
        "double* result: result",
    ];
    assert_eq!(table(&Kernel::symbol("k").returns(KernelReturn::Status)), flat);
    assert_eq!(table(&Kernel::symbol("k")), flat[..flat.len() - 1]);
    let descriptors = table(&Kernel::symbol("k").convention(Convention::DlTensor));
    assert_eq!(descriptors[0], "DLTensor* x: x");
    assert_eq!(descriptors.last().unwrap(), "size_t d_size: d.size");
    let packed = [
        "void* handle: handle",
        "const TVMFFIAny* args: args",
        "int32_t num_args: num_args",
        "TVMFFIAny* result: result",
    ];
    assert_eq!(table(&Kernel::symbol("k").convention(Convention::Packed)), packed);

    let memref = Kernel::symbol("k").convention(Convention::MemRef);
    let params = memref.parameters(&sig("f(a: Tensor([n, 3], float32)) -> Tensor([n], int64)")).unwrap();
    let shown: Vec<String> = params.iter().map(|p| format!("{p}: {}", p.source)).collect();
    assert_eq!(
        shown,
        [
            "float* a_allocated: a.data",
            "float* a_aligned: a.data",
            "int64_t a_offset: a.offset",
            "int64_t a_size0: a.shape[0]",
            "int64_t a_size1: a.shape[1]",
            "int64_t a_stride0: a.strides[0]",
            "int64_t a_stride1: a.strides[1]",
            "int64_t* result_allocated: result.data",
            "int64_t* result_aligned: result.data",
            "int64_t result_offset: result.offset",
            "int64_t result_size0: result.shape[0]",
            "int64_t result_stride0: result.strides[0]",
        ]
    );
}

#[test]
fn a_flat_signature_that_would_be_wrong_is_an_error() {
    let (nothing, scalar, text) = (sig("f(x: int32)"), sig("f(x: int32) -> float64"), sig("f(x: int32) -> str"));
    let shown =
        |signature, returns| flat_signature(signature, returns).map(|sig| sig.to_string()).map_err(|e| e.to_string());
    assert_eq!(shown(&nothing, KernelReturn::Nothing).as_deref(), Ok("(i32 sext)"));
    assert_eq!(shown(&nothing, KernelReturn::Status).as_deref(), Ok("(i32 sext) -> i32 sext"));
    assert_eq!(shown(&scalar, KernelReturn::Value).as_deref(), Ok("(i32 sext) -> f64"));
    assert_eq!(shown(&scalar, KernelReturn::Status).as_deref(), Ok("(i32 sext, ptr) -> i32 sext"));
    assert_eq!(shown(&text, KernelReturn::Status).as_deref(), Ok("(i32 sext, ptr) -> i32 sext"));
    let wrong = [(&nothing, KernelReturn::Value), (&scalar, KernelReturn::Nothing), (&text, KernelReturn::Value)];
    for ((signature, returns), why) in wrong.into_iter().zip([
        "returns a value, and the signature returns nothing",
        "has to return float64, as the signature does, or a status and write it",
        "has to return a status, as it writes its str",
    ]) {
        assert_eq!(shown(signature, returns).unwrap_err(), format!("the kernel of function `f` {why}"));
    }
}

/// The function that a small compiler generates for both backends.
fn scale() -> Signature {
    sig("scale(x: Tensor([n], float32), f: float64)")
}

/// Checks that a wrapper of [`scale`] works.
fn check_scale(wrapper: TVMFFISafeCallType) {
    // SAFETY: `embed` has added the wrapper, and its module lives until the caller returns.
    let function = unsafe { Function::from_code(wrapper, ()) };
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
    function.call((&x, 2.5)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [2.5, 5.0, 7.5]);
    let error = function.call((1, 2.5)).unwrap_err();
    assert!(error.to_string().contains("expected Tensor, got int"), "{error}");
}
