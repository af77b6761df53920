//! The words of a listing, for the printer and the reader.

use crate::ir::inst::{BinaryOp, ConvertOp, FloatCC, Hint, IntCC, UnaryOp};
use crate::ir::module::Linkage;
use crate::ir::types::Type;

macro_rules! words {
    ($($ty:ident { $($variant:ident $word:literal)* })*) => {$(
        impl $ty {
            /// The word in a listing.
            pub(in crate::ir) const fn word(self) -> &'static str {
                match self {
                    $($ty::$variant => $word,)*
                }
            }

            /// The meaning of a word of a listing.
            pub(in crate::ir) fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($ty::$variant),)*
                    _ => None,
                }
            }
        }
    )*};
}

words! {
    Type { Bool "bool" I8 "i8" I16 "i16" I32 "i32" I64 "i64" F32 "f32" F64 "f64" Ptr "ptr" }
    Linkage { Import "import" Local "local" Export "export" }
    UnaryOp {
        Neg "neg" Not "not" FNeg "fneg" FAbs "fabs" Sqrt "sqrt" Floor "floor" Ceil "ceil" Trunc "trunc"
        Nearest "nearest"
    }
    BinaryOp {
        Add "add" Sub "sub" Mul "mul" SMulHi "smulhi" UMulHi "umulhi" SDiv "sdiv" UDiv "udiv" SRem "srem" URem "urem"
        And "and" Or "or" Xor "xor" Shl "shl" LShr "lshr" AShr "ashr" SMin "smin" SMax "smax" UMin "umin" UMax "umax"
        FAdd "fadd" FSub "fsub" FMul "fmul" FDiv "fdiv" FMin "fmin" FMax "fmax"
    }
    IntCC {
        Eq "eq" Ne "ne" SLt "slt" SLe "sle" SGt "sgt" SGe "sge" ULt "ult" ULe "ule" UGt "ugt" UGe "uge"
    }
    FloatCC { Eq "eq" Ne "ne" Lt "lt" Le "le" Gt "gt" Ge "ge" }
    ConvertOp {
        SExt "sext" ZExt "zext" Truncate "truncate" SIntToFloat "sint_to_float" UIntToFloat "uint_to_float"
        FloatToSInt "float_to_sint" FloatToUInt "float_to_uint" FPromote "fpromote" FDemote "fdemote"
        Bitcast "bitcast" PtrToInt "ptr_to_int" IntToPtr "int_to_ptr"
    }
    Hint { None "br" Likely "br_likely" Unlikely "br_unlikely" }
}
