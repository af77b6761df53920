//! The names that a cache makes. A file with any other name doesn't belong to the cache.

use std::ffi::OsStr;
use std::io;

/// The prefix of the names of files that are still being written.
pub(super) const UNFINISHED: &str = ".unfinished-";

/// Whether a name is that of a key's directory: the key in hexadecimal digits.
pub(super) fn is_key(name: &OsStr) -> bool {
    name.to_str().is_some_and(is_hash)
}

/// Whether a name is that of an artifact: a hash and the extension.
pub(super) fn is_artifact(name: &OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.split_at_checked(64));
    parts.is_some_and(|(hash, extension)| is_hash(hash) && is_extension(extension))
}

/// The hash in an artifact's name, if the name ends with this extension.
pub(super) fn hash_in<'n>(name: &'n OsStr, extension: &str) -> Option<&'n str> {
    name.to_str()?.strip_suffix(extension).filter(|hash| is_hash(hash))
}

/// Whether a name is that of a file that is still being written.
pub(super) fn is_unfinished(name: &OsStr) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED));
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Checks an extension passed by the caller.
pub(super) fn check_extension(extension: &str) -> io::Result<()> {
    match is_extension(extension) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "expected no extension, or a point and at most 31 ASCII letters, digits, `.`, `-` or `_`, got \
                 {extension:?}"
            ),
        )),
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_extension(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    text.is_empty() || text.len() <= 32 && text.starts_with('.') && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_cache_are_told_from_others() {
        let hash = "0123456789abcdef".repeat(4);
        let of = |text: &str| {
            let name = OsStr::new(text);
            [is_key(name), is_artifact(name), is_unfinished(name)]
        };
        assert_eq!(of(&hash), [true, true, false]);
        assert_eq!(of(&format!("{hash}.so")), [false, true, false]);
        assert_eq!(of(".unfinished-aB3xYz"), [false, false, true]);
        for foreign in [
            "",
            ".unfinished-",
            ".unfinished-notes.txt",
            "thesis.tex",
            &hash[1..],
            &hash.to_uppercase(),
            &format!("{hash}so"),
            &format!("{hash}.{}", "a".repeat(32)),
            &format!("{hash}.ü"),
            &format!("{}ü", &hash[1..]),
        ] {
            assert_eq!(of(foreign), [false; 3], "{foreign}");
        }
        assert_eq!(hash_in(OsStr::new(&format!("{hash}.so")), ".so"), Some(&*hash));
        assert_eq!(hash_in(OsStr::new(&format!("{hash}.so")), ""), None);
        for extension in ["so", "./x", "..\\x", ".s o", "/", ".\0"] {
            assert!(check_extension(extension).is_err(), "{extension}");
        }
    }
}
