//! Compares the machines of a link's inputs with the library's before the linker runs, because linkers report
//! mismatches poorly.

use object::{Architecture, BinaryFormat, Object};
use target_lexicon::Architecture as Target;

use super::error::LinkError;
use super::objects::{Looked, for_each_object};
use super::stated::Link;

/// Compares the inputs; for an archive, only the first object that states a machine. Missing or unreadable inputs are
/// left to the linker.
pub(super) fn check(link: &Link) -> Result<(), LinkError> {
    let wanted = match link.target.architecture {
        Target::X86_64 | Target::X86_64h => Architecture::X86_64,
        Target::Aarch64(_) => Architecture::Aarch64,
        Target::Riscv64(_) => Architecture::Riscv64,
        Target::S390x => Architecture::S390x,
        _ => return Ok(()),
    };
    let wanted = (format_of(link), wanted);
    let (mut compared, mut error) = (None, None);
    for_each_object(link, &mut |Looked { label, object, input, .. }| {
        let format = match object.format() {
            // a DLL, or a program that exports functions
            BinaryFormat::Pe => BinaryFormat::Coff,
            format => format,
        };
        let architecture = object.architecture();
        if error.is_some() || compared == Some(input) || architecture == Architecture::Unknown {
            return;
        }
        compared = Some(input);
        if (format, architecture) != wanted {
            let found = format!("{} in {format:?}", format!("{architecture:?}").to_lowercase());
            let target = Box::new(link.target.clone());
            error = Some(LinkError::Machine { object: label, found, target });
        }
    });
    error.map_or(Ok(()), Err)
}

/// The format of the library's target.
fn format_of(link: &Link) -> BinaryFormat {
    match link.format() {
        target_lexicon::BinaryFormat::Coff => BinaryFormat::Coff,
        target_lexicon::BinaryFormat::Macho => BinaryFormat::MachO,
        _ => BinaryFormat::Elf,
    }
}
