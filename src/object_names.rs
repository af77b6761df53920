//! The names that the tables of an object file refer to, with a limit on their total size.

use std::borrow::Cow;

/// The limit on the total size of all names, as a multiple of the file's size. Linkers share the ends of names, so
/// some bytes belong to several names. No linker writes a file whose names exceed the file's size.
const TIMES: u64 = 16;

/// Reads names and counts their bytes. A table's entry has only a few bytes, but may refer to a name that is nearly
/// as large as the file.
pub(crate) struct Names {
    limit: u64,
    left: u64,
}

impl Names {
    /// For the names of a file of `len` bytes.
    pub(crate) fn of_file(len: usize) -> Self {
        let limit = TIMES.saturating_mul(len as u64);
        Self { limit, left: limit }
    }

    /// A name as a string.
    pub(crate) fn text<'a>(&mut self, name: &'a [u8]) -> Result<Cow<'a, str>, String> {
        self.count(name)?;
        Ok(String::from_utf8_lossy(name))
    }

    /// Counts a name that was read.
    pub(crate) fn count(&mut self, name: &[u8]) -> Result<(), String> {
        // reading an empty name takes time too
        self.left = self.left.checked_sub(name.len() as u64 + 1).ok_or_else(|| {
            format!(
                "its names overlap: together they are more than {} bytes, which is {TIMES} times the file",
                self.limit
            )
        })?;
        Ok(())
    }
}
