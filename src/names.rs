//! The error for a text that is no name of the type that it is read as, and the search that gives it.

/// The error of reading a name: the text is none of the names that the type has.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("expected {expected}, got `{text}`")]
#[non_exhaustive]
pub struct UnknownName {
    /// The text that was read.
    pub text: String,
    /// The names that the type has, as a list for people: `none, speed or full`.
    pub expected: String,
}

/// The value whose name the text is.
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
