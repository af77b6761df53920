//! Outcomes: the `I64` result of first-use work and launches. 0 means success.
//!
//! The upper half says what failed; the lower half is the related status or number. Outcomes are never negative,
//! because an engine reserves a negative one.

use super::api::Call;
use crate::ir::{BinaryOp, ConvertOp, FunctionBuilder, Type, Value};

/// The work that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failed {
    /// A call of the driver; the number is its status.
    Call(Call),
    /// The driver's library can't be opened.
    Library,
    /// The driver lacks this function. The number is its index in the table.
    Function,
    /// No image supports the device. The number is its compute capability.
    Image,
    /// The kernel has fewer parameters than are passed. The number is the kernel's count.
    FewerParams,
    /// The kernel has more parameters than are passed. The number is the passed count.
    MoreParams,
    /// A kernel parameter has another size. The number's upper half is the parameter's index, its lower half the size
    /// in bytes.
    ParamSize,
    /// A device's number is beyond those that a library serves.
    Number,
}

impl Failed {
    /// The upper half of the outcome.
    pub(super) const fn code(self) -> i64 {
        match self {
            Failed::Call(call) => 1 + call as i64,
            Failed::Library => 64,
            Failed::Function => 65,
            Failed::Image => 66,
            Failed::Number => 67,
            Failed::FewerParams => 68,
            Failed::MoreParams => 69,
            Failed::ParamSize => 70,
        }
    }

    /// The outcome with a number, an `I32`.
    pub(super) fn with(self, b: &mut FunctionBuilder<'_>, number: Value) -> Value {
        let number = b.convert(ConvertOp::ZExt, Type::I64, number);
        let code = b.i64(self.code() << 32);
        b.binary(BinaryOp::Or, code, number)
    }
}

/// The base of an initialiser's codes for outcomes; a code is an `I32`. Statuses are below 4,096.
const CODES: i64 = 0x5400_0000;

/// Encodes an outcome as an initialiser's code.
pub(super) fn to_code(b: &mut FunctionBuilder<'_>, outcome: Value) -> Value {
    let kind = b.binary_imm(BinaryOp::LShr, outcome, 20);
    let number = b.binary_imm(BinaryOp::And, outcome, 0xfff);
    let code = b.binary(BinaryOp::Or, kind, number);
    let code = b.binary_imm(BinaryOp::Or, code, CODES);
    b.convert(ConvertOp::Truncate, Type::I32, code)
}

/// Decodes the outcome from an initialiser's code.
pub(super) fn of_code(b: &mut FunctionBuilder<'_>, code: Value) -> Value {
    let code = b.convert(ConvertOp::ZExt, Type::I64, code);
    let number = b.binary_imm(BinaryOp::And, code, 0xfff);
    let kind = b.binary_imm(BinaryOp::And, code, 0x000f_f000);
    let kind = b.binary_imm(BinaryOp::Shl, kind, 20);
    b.binary(BinaryOp::Or, kind, number)
}

/// The two halves of an outcome: what failed, and the number.
pub(super) fn halves(b: &mut FunctionBuilder<'_>, outcome: Value) -> [Value; 2] {
    let kind = b.binary_imm(BinaryOp::LShr, outcome, 32);
    [kind, b.binary_imm(BinaryOp::And, outcome, 0xffff_ffff)]
}
