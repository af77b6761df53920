//! Looks values up by name, and the error for an unknown name.

/// The error for a string that isn't a name of any value of the type.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("expected {expected}, got `{text}`")]
#[non_exhaustive]
pub struct UnknownName {
    /// The string that was parsed.
    pub text: String,
    /// The names that the type has, as a list for messages: `none, speed or full`.
    pub expected: String,
}

/// The value with this name.
pub(crate) fn find<T: Copy>(text: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, UnknownName> {
    let found = all.iter().copied().find(|value| name(*value) == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
        let expected = match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "nothing".to_owned(),
        };
        UnknownName { text: text.to_owned(), expected }
    })
}
