//! Texts of descriptors, which messages show.

use crate::lower::constants::ConstantPool;
use crate::spec::{Param, ParamType, Signature};

/// The longest signature, in bytes, that messages show in full: two and a half lines of a terminal of 80 columns, in which a parameter is found at
/// a glance.
const LONG: usize = 200;
/// How many names of parameters a message about another parameter of a long signature shows before it, and how many behind it. So the texts of
/// all parameters take room in proportion to their number.
const NEIGHBOURS: usize = 8;

/// What a message about a call is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Subject {
    /// The call as such, or a constraint.
    Whole,
    /// The parameter of this number.
    Param(usize),
    Result,
}

/// A signature as messages show it: in full, or the subject as stated and the other parameters by name.
pub(in crate::lower) fn shown(signature: &Signature, subject: Subject) -> String {
    let full = signature.to_string();
    if full.len() <= LONG {
        return full;
    }
    let params = signature.params();
    let name = |param: &Param| param.name.clone();
    let params: Vec<String> = match subject {
        Subject::Param(number) if number < params.len() => {
            let (first, last) = (number.saturating_sub(NEIGHBOURS), number.saturating_add(NEIGHBOURS + 1));
            let near = params.iter().enumerate().take(last).skip(first);
            let near = near.map(|(i, param)| if i == number { param.to_string() } else { name(param) });
            let left_out = |is: bool| is.then(|| "...".to_owned());
            left_out(first > 0).into_iter().chain(near).chain(left_out(last < params.len())).collect()
        }
        _ => params.iter().map(name).collect(),
    };
    let result = signature.ret().filter(|_| subject == Subject::Result).map(|ret| format!(" -> {ret}"));
    format!("{}({}){}", signature.name(), params.join(", "), result.unwrap_or_default())
}

/// The text between the subject of a message and the expected value.
pub(super) fn calling(signature: &Signature, subject: Subject) -> String {
    format!(" when calling: `{}`, expected ", shown(signature, subject))
}

/// Of a long signature, that text for each parameter that is passed, and then for the result; nothing for any other.
pub(super) fn callings(pool: &mut ConstantPool, signature: &Signature) -> Vec<u32> {
    if signature.to_string().len() <= LONG {
        return Vec::new();
    }
    let passed = signature.params().iter().enumerate().filter(|(_, param)| param.is_passed());
    let subjects = passed.map(|(number, _)| Subject::Param(number)).chain([Subject::Result]);
    subjects.map(|subject| pool.text(&calling(signature, subject))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use target_lexicon::Endianness;

    /// Bytes of the texts of a signature of so many parameters.
    fn bytes(params: usize) -> usize {
        let params: Vec<String> = (0..params).map(|i| format!("p{i:04}: Tensor([n, {i}], float32)")).collect();
        let signature: Signature = format!("f({})", params.join(", ")).parse().expect("a signature");
        let mut pool = ConstantPool::new(Endianness::Little);
        assert_eq!(callings(&mut pool, &signature).len(), params.len() + 1);
        pool.into_bytes().len()
    }

    /// Texts that name parameters take room in proportion to the parameters' number.
    #[test]
    fn texts_of_long_signatures_grow_with_the_parameters() {
        let [few, many] = [100, 400].map(bytes);
        assert!(many < 4 * few + few / 2, "{few} {many}");
    }

    /// The limit itself: a signature is shown in full, and one of a byte more in part.
    #[test]
    fn a_long_signature_is_shown_in_part() {
        let named = |len: usize| {
            let signature =
                format!("{}(x: int8, y: Tensor([n], float32)) -> float32 where n > 1", "f".repeat(len - 57));
            (signature.parse::<Signature>().expect("a signature"), signature)
        };
        let (signature, text) = named(LONG);
        assert_eq!(text.len(), LONG);
        assert_eq!(shown(&signature, Subject::Param(0)), text);
        let (signature, text) = named(LONG + 1);
        let name = signature.name();
        assert_eq!(shown(&signature, Subject::Whole), format!("{name}(x, y)"), "{text}");
        assert_eq!(shown(&signature, Subject::Param(1)), format!("{name}(x, y: Tensor([n], float32))"));
        assert_eq!(shown(&signature, Subject::Result), format!("{name}(x, y) -> float32"));
    }
}
