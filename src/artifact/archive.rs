//! Static libraries: objects, with a table of their symbols, in one file.

use std::io;
use std::path::{Path, PathBuf};

use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use memmap2::Mmap;
use object::read::archive::ArchiveFile;
use object::{BinaryFormat, File, Object, ObjectKind, ObjectSymbol};
use target_lexicon::Triple;

use super::format;
use super::map::map;
use super::output::Output;

/// The error of writing an archive. A file that was in its place before still is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Objects of the target are not known here.
    #[error("can't make archives for {0}")]
    Target(Triple),
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An input is no object or archive, or is one that doesn't belong there.
    #[error("{name}: {problem}")]
    Member {
        /// The file, and the member of it.
        name: String,
        /// The problem.
        problem: String,
    },
}

/// An input of [`write_archive`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArchiveInput {
    /// An object file; or an archive, of which each member is put in.
    File(PathBuf),
    /// An object in memory.
    Object {
        /// The member's name, such as `kernels.o`.
        name: String,
        /// The object.
        bytes: Vec<u8>,
    },
}

/// Writes the archive (`.a`; `.lib` for Windows) of objects for `target` to `path`, in the order given. The same inputs give the same bytes: there are no times or
/// users in it.
///
/// # Errors
/// A file can't be read or written, an input is no object of the target or an archive of such.
pub fn write_archive(target: &Triple, inputs: &[ArchiveInput], path: impl AsRef<Path>) -> Result<(), ArchiveError> {
    let path = path.as_ref();
    let sample = format::object_of(target).ok_or_else(|| ArchiveError::Target(target.clone()))?;
    let kind = match sample.format() {
        BinaryFormat::MachO => ArchiveKind::Darwin,
        BinaryFormat::Coff => ArchiveKind::Coff,
        _ => ArchiveKind::Gnu,
    };
    let maps: Vec<Option<Mmap>> = inputs.iter().map(open).collect::<Result<_, _>>()?;
    let mut members = Vec::new();
    for (input, map) in inputs.iter().zip(&maps) {
        match (input, map) {
            (ArchiveInput::Object { name, bytes }, _) => members.push((name.clone(), &bytes[..])),
            (ArchiveInput::File(path), Some(map)) => members_of(path, map, &mut members)?,
            (ArchiveInput::File(_), None) => {}
        }
    }
    for (name, bytes) in &members {
        let expected = (sample.format(), sample.architecture());
        check(bytes, expected).map_err(|problem| ArchiveError::Member { name: name.clone(), problem })?;
    }
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, bytes)| NewArchiveMember::new(bytes, &DEFAULT_OBJECT_READER, base_name(&name)))
        .collect();
    let failed = |source| ArchiveError::Io { path: path.to_owned(), source };
    let mut output = Output::create(path).map_err(failed)?;
    write_archive_to_stream(output.file(), &members, kind, false, Some(false)).map_err(failed)?;
    output.commit().map_err(failed)
}

fn open(input: &ArchiveInput) -> Result<Option<Mmap>, ArchiveError> {
    match input {
        ArchiveInput::Object { .. } => Ok(None),
        ArchiveInput::File(path) => {
            map(path).map(Some).map_err(|source| ArchiveError::Io { path: path.clone(), source })
        }
    }
}

/// Adds the members that a file gives, with their names for messages.
fn members_of<'a>(path: &Path, bytes: &'a [u8], members: &mut Vec<(String, &'a [u8])>) -> Result<(), ArchiveError> {
    let shown = path.display().to_string();
    if bytes.starts_with(&object::archive::THIN_MAGIC) {
        let problem = "a thin archive, which only names its members: give those".to_owned();
        return Err(ArchiveError::Member { name: shown, problem });
    }
    if !bytes.starts_with(&object::archive::MAGIC) {
        members.push((shown, bytes));
        return Ok(());
    }
    let failed = |error: object::Error| ArchiveError::Member { name: shown.clone(), problem: error.to_string() };
    for member in ArchiveFile::parse(bytes).map_err(failed)?.members() {
        let member = member.map_err(failed)?;
        let name = format!("{shown}({})", String::from_utf8_lossy(member.name()));
        members.push((name, member.data(bytes).map_err(failed)?));
    }
    Ok(())
}

/// The name in the archive of what is shown as `path/of.o` or `path/of.a(member.o)`.
fn base_name(shown: &str) -> String {
    let name = shown.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')).map_or(shown, |(_, member)| member);
    name.rsplit(['/', '\\']).next().unwrap_or(name).to_owned()
}

/// That it is an object of the target whose symbols can be read, as the archive's writer panics over others.
fn check(bytes: &[u8], expected: (BinaryFormat, object::Architecture)) -> Result<(), String> {
    let file = File::parse(bytes).map_err(|error| format!("expected an object: {error}"))?;
    let found = (file.format(), file.architecture());
    if found != expected {
        return Err(format!(
            "expected an object of {:?} for {:?}, got {:?} for {:?}",
            expected.0, expected.1, found.0, found.1
        ));
    }
    if file.kind() != ObjectKind::Relocatable {
        return Err("expected an object, got a file that is linked already".to_owned());
    }
    file.symbols().try_for_each(|symbol| symbol.name_bytes().map(drop)).map_err(|error| error.to_string())
}
