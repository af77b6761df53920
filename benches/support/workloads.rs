//! The four signatures for comparing generators of wrappers. Bodies are empty, so only the wrapper counts.

use tvm_ffi_codegen::spec::ParseError;
use tvm_ffi_codegen::{Kernel, ScalarType, Signature};

/// One of the signatures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Workload {
    /// Two vectors.
    AddOne,
    /// Three matrices and two scalars.
    GemmSig,
    /// Four scalars, and a result.
    Scalars,
    /// Sixteen tensors of four dimensions, all of the same shape.
    Wide,
}

impl Workload {
    /// The signature, parsed from its text.
    pub fn signature(self) -> Result<Signature, ParseError> {
        match self {
            Workload::AddOne => "add_one(x: Tensor([n], float32), y: Tensor([n], float32))".parse(),
            Workload::GemmSig => "gemm_sig(A: Tensor([m, k], float32), B: Tensor([k, n], float32), \
                                  C: Tensor([m, n], float32), alpha: float64, flag: bool)"
                .parse(),
            Workload::Scalars => "scalars(a: int64, b: float64, c: bool, h: handle) -> int64".parse(),
            Workload::Wide => {
                let tensors: Vec<String> = (0..16).map(|i| format!("t{i}: Tensor([a, b, c, d], float32)")).collect();
                format!("wide({})", tensors.join(", ")).parse()
            }
        }
    }

    /// An empty body, or `a + int64(b) + c`.
    pub fn kernel(self) -> Kernel {
        match self {
            Workload::Scalars => Kernel::body(|b| {
                let int = |name: &str| b.arg(name).cast(ScalarType::Int64);
                b.ret(int("a") + int("b") + int("c"));
            }),
            _ => Kernel::body(|_| {}),
        }
    }
}
