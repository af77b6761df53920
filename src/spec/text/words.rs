//! The words of types, launches and kernel arguments.

use super::suggestion::suggestion;
use crate::spec::element;
use crate::spec::param::ParamType;
use crate::spec::token::Token;

/// Types of one word, except scalars.
pub(super) const WORDS: [(&str, ParamType); 10] = [
    ("str", ParamType::Str),
    ("bytes", ParamType::Bytes),
    ("dtype", ParamType::DType),
    ("device", ParamType::Device),
    ("Any", ParamType::Any),
    ("None", ParamType::None),
    ("Function", ParamType::Function),
    ("Module", ParamType::Module),
    ("EnvStream", ParamType::EnvStream),
    ("Stream", ParamType::Stream),
];

/// Types that consist of more than one word, with the part after their names.
pub(super) const FORMS: [(&str, &str); 14] = [
    ("Tensor", "(...)"),
    ("Shape", ""),
    ("Shape", "([...])"),
    ("Int", "(...)"),
    ("Bool", "(...)"),
    ("Object", "(\"...\")"),
    ("Optional", "[...]"),
    ("Tuple", "[...]"),
    ("Record", "(\"...\", ...)"),
    ("Array", "[...]"),
    ("List", "[...]"),
    ("Map", "[..., ...]"),
    ("Dict", "[..., ...]"),
    ("EnvState", "(\"...\")"),
];

/// Words that are followed by parentheses as arguments of a kernel, in addition to the names of scalar types.
pub(super) const ARG_FORMS: &[&str] = &["param", "cast", "scratch", "struct", "tensor_map"];

/// Items with a value after `=`.
pub(super) const VALUES: &[&str] = &[
    "grid",
    "block",
    "cluster",
    "preferred_cluster",
    "shared_memory",
    "args",
    "stream",
    "priority",
    "cluster_scheduling",
    "memory_sync_domain",
    "shared_memory_carveout",
    "completion_event",
    "globals",
    "on_load",
    "on_unload",
];
/// Items that consist of one word.
pub(super) const FLAGS: &[&str] = &["cooperative", "programmatic_dependent_launch", "non_portable_cluster"];

/// The bracket that must follow a type's name, or a name that is probably a misspelt one.
pub(super) fn bracket_of(name: &str) -> Option<Token<'static>> {
    if word(name).is_some() {
        return None;
    }
    let name = suggestion(name, &FORMS.map(|(name, _)| name))?;
    let (_, rest) = FORMS.into_iter().find(|(form, rest)| *form == name && !rest.is_empty())?;
    Some(if rest.starts_with('(') { Token::Open } else { Token::OpenList })
}

/// The type that is one word.
pub(super) fn word(name: &str) -> Option<ParamType> {
    let scalar = element::scalar(name).map(ParamType::Scalar);
    scalar.or_else(|| WORDS.into_iter().find(|(word, _)| *word == name).map(|(_, ty)| ty))
}
