//! Texts of descriptors, which messages show.

use crate::spec::{ParamType, Signature};

/// The text between the subject of a message and the expected value.
pub(super) fn calling(signature: &Signature) -> String {
    format!(" when calling: `{signature}`, expected ")
}

/// The name of a type where an argument of another type came.
pub(super) fn expected(ty: &ParamType) -> String {
    match ty {
        ParamType::Tensor(_) => "Tensor".to_owned(),
        ParamType::Shape(_) => "Shape".to_owned(),
        ParamType::Tuple(_) => "Tuple".to_owned(),
        ParamType::Array(_) => "Array".to_owned(),
        ParamType::List(_) => "List".to_owned(),
        ParamType::Map(..) => "Map".to_owned(),
        ParamType::Dict(..) => "Dict".to_owned(),
        ParamType::Optional(inner) => format!("{} or None", expected(inner)),
        _ => ty.to_string(),
    }
}
