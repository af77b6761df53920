//! The names that a file's tables refer to.

use std::borrow::Cow;

/// How many times the bytes of the file all names that are read may have together. Linkers share the ends of names, so that some bytes belong
/// to several names; no linker makes a file whose names are more than the file.
const TIMES: u64 = 16;

/// Reads names, and counts their bytes: a table's entry is a few bytes, and may refer to a name that is nearly the whole file.
pub(super) struct Names {
    limit: u64,
    left: u64,
}

impl Names {
    /// The names of a file of so many bytes.
    pub(super) fn of_file(len: usize) -> Self {
        let limit = TIMES.saturating_mul(len as u64);
        Self { limit, left: limit }
    }

    /// A name as text.
    pub(super) fn text<'a>(&mut self, name: &'a [u8]) -> Result<Cow<'a, str>, String> {
        // an empty name takes time too
        self.left = self.left.checked_sub(name.len() as u64 + 1).ok_or_else(|| {
            format!(
                "its names overlap: together they are more than {} bytes, which is {TIMES} times the file",
                self.limit
            )
        })?;
        Ok(String::from_utf8_lossy(name))
    }
}
