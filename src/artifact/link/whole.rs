//! Finds libraries that are cut off although the linker succeeded.
//!
//! GNU ld ignores the error of its last write, for example on a full disk. The file then lacks its end, and a loader
//! may still accept it.

use object::{File, FileKind, Object, ObjectSection, ObjectSegment};

use super::error::LinkError;
use super::stated::Run;

/// Checks that all parts which a library's headers name are in its bytes.
pub(super) fn check(bytes: &[u8], run: &Run) -> Result<(), LinkError> {
    parts(bytes).map_err(|error| LinkError::Incomplete {
        problem: error.to_string(),
        command: run.command.clone(),
        output: run.output.clone(),
    })
}

fn parts(bytes: &[u8]) -> object::Result<()> {
    use FileKind::{Elf32, Elf64, MachO32, MachO64, Pe32, Pe64};
    // the loader refuses files of other kinds
    if !matches!(FileKind::parse(bytes), Ok(Elf32 | Elf64 | MachO32 | MachO64 | Pe32 | Pe64)) {
        return Ok(());
    }
    let file = File::parse(bytes)?;
    file.segments().try_for_each(|segment| segment.data().map(drop))?;
    file.sections().try_for_each(|section| section.data().map(drop))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_lacks_its_end_is_noticed() {
        let library = include_bytes!("../../../fixtures/artifacts/bodies-cranelift-0.1.0.so");
        assert!(parts(library).is_ok());
        for missing in [1, 64, 1600, library.len() / 2] {
            let error = parts(&library[..library.len() - missing]).unwrap_err();
            assert!(!error.to_string().is_empty(), "{missing}");
        }
        assert!(parts(b"a text that a linker's argument asked for").is_ok());
    }
}
