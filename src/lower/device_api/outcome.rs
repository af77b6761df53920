//! Outcomes: the `I64` result of first-use work and launches. 0 means success.
//!
//! The upper half says what failed; the lower half is the related status or number. Outcomes are never negative,
//! because an engine reserves a negative one.

use super::api::Call;
use crate::ir::Val;

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
    /// The driver lacks an attribute of the kernel's launches. The number is the min version that has it.
    Version,
    /// The image has no global variable of a name. The number is the name's offset in the table.
    NoGlobal,
    /// A global variable has another size than its value. The number is the name's offset in the table.
    GlobalSize,
    /// A global function isn't registered. The number is the name's offset in the table.
    NoFunction,
    /// A function of the image has raised an error. The number is its code.
    Hook,
}

impl Failed {
    /// The first code of failures that have the offset of a name as their number. All later ones are such failures.
    pub(super) const FIRST_NAMED: i64 = 72;

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
            Failed::Version => 71,
            Failed::NoGlobal => Failed::FIRST_NAMED,
            Failed::GlobalSize => 73,
            Failed::NoFunction => 74,
            Failed::Hook => 63,
        }
    }

    /// The outcome with a number, an `I32`.
    pub(super) fn with(self, number: Val<'_>) -> Val<'_> {
        let number = number.zext();
        number.emitter().i64(self.code() << 32) | number
    }
}

/// The base of an initialiser's codes for outcomes; a code is an `I32`. Statuses are below 4,096.
const CODES: i64 = 0x5400_0000;

/// Encodes an outcome as an initialiser's code.
pub(super) fn to_code(outcome: Val<'_>) -> Val<'_> {
    let (kind, number) = (outcome >> 20, outcome & 0xfff);
    (kind | number | CODES).truncate()
}

/// Decodes the outcome from an initialiser's code.
pub(super) fn of_code(code: Val<'_>) -> Val<'_> {
    let code = code.zext();
    let (number, kind) = (code & 0xfff, (code & 0x000f_f000) << 20);
    kind | number
}

/// The string that describes a failure to `report`: a name of the table for failures of something with a name,
/// otherwise the list of devices that have images.
pub(super) fn text<'c>(outcome: Val<'c>, table: Val<'c>, images: Val<'c>) -> Val<'c> {
    let [kind, number] = halves(outcome);
    kind.uge(Failed::FIRST_NAMED).select(table + number, images)
}

/// The two halves of an outcome: the step that failed, and the number.
pub(super) fn halves(outcome: Val<'_>) -> [Val<'_>; 2] {
    [outcome >> 32, outcome & 0xffff_ffff_i64]
}
