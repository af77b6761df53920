//! Strings of descriptors for messages.

use crate::lower::constants::ConstantPool;
use crate::lower::protocol::{MOST_NAMES, Piece};
use crate::spec::{ParamType, Signature};

/// The max length of a signature that messages show in full, in bytes. It is two and a half lines of an 80-column
/// terminal, short enough to find a parameter at a glance.
const LONG: usize = 200;

/// The subject of a message about a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Subject {
    /// The call itself.
    Call,
    /// The parameter of this number.
    Param(usize),
    /// The constraint of this number.
    Constraint(usize),
    Result,
}

/// A string of a long signature, and the subject of the messages that show it; `None` if all messages do.
type Part = (Option<Subject>, String);

/// The strings of a long signature: names, and each subject as stated. Subjects are in the order of their numbers in
/// `bind`, except for the call itself.
fn parts(signature: &Signature) -> Vec<Part> {
    let mut parts = vec![(None, format!("{}(", signature.name()))];
    for (number, param) in signature.params().iter().enumerate() {
        let (text, name) = (param.to_string(), param.name.as_str());
        let of_all = if number == 0 { name.to_owned() } else { format!(", {name}") };
        let stated = match number < MOST_NAMES {
            true => {
                parts.push((None, of_all));
                text[name.len()..].to_owned()
            }
            false => format!(", ..., {text}"),
        };
        parts.push((Some(Subject::Param(number)), stated));
    }
    let left_out = if signature.params().len() > MOST_NAMES { ", ...)" } else { ")" };
    parts.push((None, left_out.to_owned()));
    parts.extend((0..signature.constraints().len()).map(|number| (Some(Subject::Constraint(number)), String::new())));
    parts.extend(signature.ret().map(|ret| (Some(Subject::Result), format!(" -> {ret}"))));
    parts
}

/// The form of a signature in messages: in full, or the subject as stated and the other parameters by name.
pub(in crate::lower) fn shown(signature: &Signature, subject: Subject) -> String {
    let full = signature.to_string();
    if full.len() <= LONG {
        return full;
    }
    let parts = parts(signature).into_iter();
    parts.filter(|(of, _)| of.is_none_or(|of| of == subject)).map(|(_, text)| text).collect()
}

/// The offset of the string between the subject of a message and the expected value. For a long signature, the offset
/// of its template.
pub(super) fn calling(pool: &mut ConstantPool, signature: &Signature) -> u32 {
    let full = signature.to_string();
    if full.len() <= LONG {
        return pool.text(&format!(" when calling: `{full}`, expected "));
    }
    let parts = parts(signature);
    let mut pieces = vec![Piece::Stated(""), Piece::Text(" when calling: `")];
    for (subject, text) in &parts {
        match subject {
            // the wrapper itself raises errors about it
            Some(Subject::Param(number)) if !signature.params()[*number].is_passed() => {}
            Some(_) => pieces.push(Piece::Stated(text)),
            None => pieces.push(Piece::Text(text)),
        }
    }
    pieces.push(Piece::Text("`, expected "));
    pool.calling_template(&pieces)
}

/// The name of the expected type in the error about an argument of another type.
pub(super) fn expected(ty: &ParamType) -> String {
    match ty {
        ParamType::Tensor(_) => "Tensor".to_owned(),
        ParamType::Shape(_) => "Shape".to_owned(),
        ParamType::Tuple(_) => "Tuple".to_owned(),
        ParamType::Record { name, .. } => format!("Record(\"{name}\")"),
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

    /// At the limit a signature is shown in full; with one more byte, in part.
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
        assert_eq!(shown(&signature, Subject::Call), format!("{name}(x, y)"), "{text}");
        assert_eq!(shown(&signature, Subject::Constraint(0)), format!("{name}(x, y)"));
        assert_eq!(shown(&signature, Subject::Param(1)), format!("{name}(x, y: Tensor([n], float32))"));
        assert_eq!(shown(&signature, Subject::Result), format!("{name}(x, y) -> float32"));
    }

    /// The template of a long signature is hardly longer than its printed form: each name and type is stored once.
    #[test]
    fn a_long_signature_takes_the_room_of_its_text() {
        for params in [20, MOST_NAMES, 1000] {
            let params: Vec<String> = (0..params).map(|i| format!("p{i}: Tensor([n, {i}], float32)")).collect();
            let text = format!("f({}) where n > 0", params.join(", "));
            let mut pool = ConstantPool::new(Endianness::Little);
            calling(&mut pool, &text.parse().expect("a signature"));
            let bytes = pool.into_bytes().len();
            assert!(bytes < text.len() + 8 * params.len() + 100, "{bytes} bytes for {}", text.len());
        }
    }
}
