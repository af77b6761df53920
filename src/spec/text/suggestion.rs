//! Suggests the intended name for a misspelt name or a name from another language.

use crate::spec::element;

/// Names from other languages and packages, with the names used here.
const OTHERS: &[(&str, &str)] = &[
    ("callable", "Function"),
    ("double", "float64"),
    ("float", "float64"),
    ("half", "float16"),
    ("int", "int64"),
    ("integer", "int64"),
    ("long", "int64"),
    ("ndarray", "Tensor"),
    ("pointer", "handle"),
    ("ptr", "handle"),
    ("string", "str"),
];

/// Short forms of numeric types, as in `f32`.
const SHORT: &[(&str, &str)] = &[("bf", "bfloat"), ("fp", "float"), ("f", "float"), ("i", "int"), ("u", "uint")];

/// The name that was most likely meant, out of `names`.
pub(crate) fn suggestion<'n>(found: &str, names: &[&'n str]) -> Option<&'n str> {
    let named = |name: &str| names.iter().copied().find(|known| *known == name);
    let lower = found.to_ascii_lowercase();
    if let Some(known) = names.iter().copied().find(|known| known.eq_ignore_ascii_case(found)) {
        return Some(known);
    }
    if let Some(known) = OTHERS.iter().find(|(other, _)| *other == lower).and_then(|(_, name)| named(name)) {
        return Some(known);
    }
    let long = SHORT.iter().find_map(|(short, long)| {
        let bits = lower.strip_prefix(short).filter(|bits| bits.starts_with(|c: char| c.is_ascii_digit()))?;
        named(&format!("{long}{bits}"))
    });
    // a word of three letters is one edit away from many others
    let allowed = match found.chars().count() {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    };
    let distances = names.iter().map(|name| (strsim::osa_distance(found, name), *name));
    let nearest = || distances.min_by_key(|(distance, _)| *distance).filter(|(distance, _)| *distance <= allowed);
    long.or_else(|| nearest().map(|(_, name)| name))
}

/// The suggestion to append to the name that was found.
pub(crate) fn did_you_mean(found: &str, names: &[&str]) -> String {
    match element::without_bits(found) {
        Some([one, other]) => format!(" (did you mean `{one}` or `{other}`?)"),
        None => suggestion(found, names).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_languages_and_misspelt_ones() {
        let names = ["int32", "int64", "float16", "bfloat16", "float64", "Tensor", "Optional", "str", "bool"];
        for (found, expected) in [
            ("fp16", Some("float16")),
            ("half", Some("float16")),
            ("bf16", Some("bfloat16")),
            ("i32", Some("int32")),
            ("int", Some("int64")),
            ("double", Some("float64")),
            ("tensor", Some("Tensor")),
            ("Tensr", Some("Tensor")),
            ("Optionla", Some("Optional")),
            ("STR", Some("str")),
            ("stt", None),
            ("u8", None),
            ("complex64", None),
            ("", None),
        ] {
            assert_eq!(suggestion(found, &names), expected, "{found}");
        }
    }
}
