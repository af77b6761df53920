//! Static libraries: objects and a table of their symbols in one file.

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use object::read::archive::{ArchiveFile, ArchiveMember};
use object::read::macho::{MachHeader, MachOFile};
use object::{BinaryFormat, Endianness, File, Object, ObjectKind, ObjectSymbol};
use target_lexicon::Triple;

use super::format;
use super::map::{Contents, contents, contents_of};
use super::output::Output;
use crate::diagnostic::{Diagnose, Diagnostic, DiagnosticKind};

/// The error of [`write_archive`]. A file that was at the archive's path before is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// This crate doesn't know the object format or the machine of the target.
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
    /// An input is neither an object of the target nor an archive of them, or its name can't be a member's name.
    #[error("{name}: {problem}")]
    Member {
        /// The file; for an archive, with the member.
        name: String,
        /// Why it is refused.
        problem: String,
    },
}

/// An input of [`write_archive`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArchiveInput {
    /// An object file, or an archive (all of its members are added).
    File(PathBuf),
    /// An object in memory, or an archive (all of its members are added).
    Object {
        /// The member's name, such as `kernels.o`. If it is a path, the last part is used. Any Unicode is allowed
        /// except NUL and line ends. For an archive, the name only appears in messages.
        name: String,
        /// The bytes of the object or archive.
        bytes: Vec<u8>,
    },
}

/// Writes an archive (`.a`; `.lib` for Windows) of objects for `target` to `path`.
///
/// The members have the order of the inputs. The archive records neither times nor users, so the same inputs give the
/// same bytes.
///
/// # Errors
/// The target is unknown, a file can't be read or written, or an input is refused. An input is refused if it is neither
/// an object of the target nor an archive of such objects, or if its name isn't a file name.
pub fn write_archive(target: &Triple, inputs: &[ArchiveInput], path: impl AsRef<Path>) -> Result<(), ArchiveError> {
    let path = path.as_ref();
    let files = open_all(inputs)?;
    let members = Members::of(target, inputs, &files)?;
    let failed = |source| ArchiveError::Io { path: path.to_owned(), source };
    let mut output = Output::create(path).map_err(failed)?;
    members.write(output.file()).map_err(failed)?;
    if members.have_stand_ins() {
        output.file().rewind().map_err(failed)?;
        let written = contents_of(output.file()).map_err(failed)?;
        let headers = headers(&written).map_err(failed)?;
        drop(written);
        members.put_names(output.file(), &headers).map_err(failed)?;
    }
    output.commit().map_err(failed)
}

/// Builds an archive in memory; otherwise like [`write_archive`].
///
/// # Errors
/// The same as for [`write_archive`], except that no file is written.
pub fn archive_bytes(target: &Triple, inputs: &[ArchiveInput]) -> Result<Vec<u8>, ArchiveError> {
    let files = open_all(inputs)?;
    let members = Members::of(target, inputs, &files)?;
    let failed = |source| ArchiveError::Io { path: "the archive".into(), source };
    let mut archive = Cursor::new(Vec::new());
    members.write(&mut archive).map_err(failed)?;
    if members.have_stand_ins() {
        let headers = headers(archive.get_ref()).map_err(failed)?;
        members.put_names(&mut archive, &headers).map_err(failed)?;
    }
    Ok(archive.into_inner())
}

/// All members of an archive, after the checks.
struct Members<'a> {
    kind: ArchiveKind,
    members: Vec<Member<'a>>,
}

impl<'a> Members<'a> {
    /// Collects the members of the inputs. `files` are the contents of the inputs' files.
    fn of(target: &Triple, inputs: &'a [ArchiveInput], files: &'a [Option<Contents>]) -> Result<Self, ArchiveError> {
        let sample = format::object_of(target).ok_or_else(|| ArchiveError::Target(target.clone()))?;
        let kind = match sample.format() {
            BinaryFormat::MachO => ArchiveKind::Darwin,
            BinaryFormat::Coff => ArchiveKind::Coff,
            _ => ArchiveKind::Gnu,
        };
        let mut members = Vec::new();
        for (input, file) in inputs.iter().zip(files) {
            match (input, file) {
                (ArchiveInput::Object { name, bytes }, _) => members_of(name, bytes, &mut members)?,
                (ArchiveInput::File(path), Some(file)) => members_of(&path.display().to_string(), file, &mut members)?,
                (ArchiveInput::File(_), None) => {}
            }
        }
        for member in &members {
            let expected = (sample.format(), sample.architecture());
            check(member.bytes, expected)
                .and_then(|()| check_name(&member.name, kind))
                .map_err(|problem| ArchiveError::Member { name: member.shown.clone(), problem })?;
        }
        Ok(Members { kind, members })
    }

    fn have_stand_ins(&self) -> bool {
        self.members.iter().any(|member| member.needs_stand_in(self.kind))
    }

    /// Writes the archive. Some names may still be stand-ins.
    fn write(&self, to: &mut (impl Write + Seek)) -> io::Result<()> {
        let new = |member: &Member<'a>| {
            NewArchiveMember::new(member.bytes, &DEFAULT_OBJECT_READER, member.name_to_write(self.kind))
        };
        let written: Vec<_> = self.members.iter().map(new).collect();
        write_archive_to_stream(to, &written, self.kind, false, Some(false))
    }

    /// Overwrites the stand-ins with the names. `headers` are the offsets of the archive's member headers, in order.
    fn put_names(&self, archive: &mut (impl Write + Seek), headers: &[u64]) -> io::Result<()> {
        if headers.len() != self.members.len() {
            return Err(io::Error::other("the archive has other members than were written"));
        }
        for (member, header) in self.members.iter().zip(headers) {
            if member.needs_stand_in(self.kind) {
                archive.seek(SeekFrom::Start(*header))?;
                archive.write_all(member.name.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// An object to be added to an archive.
struct Member<'a> {
    /// For messages: the source file and, for an archive, the member in it.
    shown: String,
    /// Its name in the archive.
    name: String,
    bytes: &'a [u8],
}

impl<'a> Member<'a> {
    /// Names the member after the last part of a path.
    fn new(shown: &str, path: &str, bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        // the format ends a name at a NUL or at a line end
        if matches!(name, "" | "." | "..") || name.contains(['\0', '\n']) {
            let problem = format!("expected a file's name for a member of an archive, got {path:?}");
            return Err(ArchiveError::Member { name: shown.to_owned(), problem });
        }
        Ok(Self { shown: shown.to_owned(), name: name.to_owned(), bytes })
    }

    /// Whether the archive's writer can't write the name: it pads a name in the member's header to 16 characters
    /// instead of 16 bytes.
    fn needs_stand_in(&self, kind: ArchiveKind) -> bool {
        // longer names, and all names on macOS, are stored outside the header, and their length is counted in bytes
        kind != ArchiveKind::Darwin && self.name.len() < NAME_LEN && !self.name.is_ascii()
    }

    /// The name to give to the archive's writer: a stand-in with the same number of bytes where it can't write the
    /// real one.
    fn name_to_write(&self, kind: ArchiveKind) -> String {
        if self.needs_stand_in(kind) { "-".repeat(self.name.len()) } else { self.name.clone() }
    }
}

/// The size in bytes of the name field in a member's header.
const NAME_LEN: usize = 16;

/// The offsets of the members' headers in an archive. Each header begins with the name.
fn headers(archive: &[u8]) -> io::Result<Vec<u64>> {
    let members = ArchiveFile::parse(archive).map_err(io::Error::other)?.members();
    let header = |member: object::Result<ArchiveMember<'_>>| {
        let (data, _) = member.map_err(io::Error::other)?.file_range();
        Ok(data.saturating_sub(size_of::<object::archive::Header>() as u64))
    };
    members.map(header).collect()
}

/// Opens the inputs that are files.
fn open_all(inputs: &[ArchiveInput]) -> Result<Vec<Option<Contents>>, ArchiveError> {
    let open = |input: &ArchiveInput| match input {
        ArchiveInput::Object { .. } => Ok(None),
        ArchiveInput::File(path) => {
            contents(path).map(Some).map_err(|source| ArchiveError::Io { path: path.clone(), source })
        }
    };
    inputs.iter().map(open).collect()
}

/// Adds the members that a file contributes.
fn members_of<'a>(shown: &str, bytes: &'a [u8], members: &mut Vec<Member<'a>>) -> Result<(), ArchiveError> {
    if bytes.starts_with(&object::archive::THIN_MAGIC) {
        let problem = "a thin archive, which only names its members: give those".to_owned();
        return Err(ArchiveError::Member { name: shown.to_owned(), problem });
    }
    if !bytes.starts_with(&object::archive::MAGIC) {
        members.push(Member::new(shown, shown, bytes)?);
        return Ok(());
    }
    let failed = |error: object::Error| ArchiveError::Member { name: shown.to_owned(), problem: error.to_string() };
    for member in ArchiveFile::parse(bytes).map_err(failed)?.members() {
        let member = member.map_err(failed)?;
        let name = String::from_utf8_lossy(member.name());
        members.push(Member::new(&format!("{shown}({name})"), &name, member.data(bytes).map_err(failed)?)?);
    }
    Ok(())
}

/// Rejects names that readers would take for the symbol table, which has such names in macOS's format.
fn check_name(name: &str, kind: ArchiveKind) -> Result<(), String> {
    match kind == ArchiveKind::Darwin && name.starts_with("__.SYMDEF") {
        true => Err(format!("expected a file's name for a member of an archive, got {name:?}, the table of symbols")),
        false => Ok(()),
    }
}

/// Checks that the bytes are an object of the target with readable symbols. The archive's writer panics on other
/// bytes.
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
    // the reader of Mach-O takes a file whose commands are cut for one without symbols
    let commands = match &file {
        File::MachO32(file) => read_commands(file),
        File::MachO64(file) => read_commands(file),
        _ => Ok(()),
    };
    commands
        .and_then(|()| file.symbols().try_for_each(|symbol| symbol.name_bytes().map(drop)))
        .map_err(|error| error.to_string())
}

/// Reads the load commands of a Mach-O file.
fn read_commands<H: MachHeader<Endian = Endianness>>(file: &MachOFile<'_, H>) -> object::Result<()> {
    let mut commands = file.macho_load_commands()?;
    while commands.next()?.is_some() {}
    Ok(())
}

impl Diagnose for ArchiveError {
    fn diagnostic(&self) -> Diagnostic {
        match self {
            ArchiveError::Target(target) => Diagnostic::of_target(target.to_string(), self),
            ArchiveError::Member { .. } => Diagnostic::plain(DiagnosticKind::Link, self),
            _ => Diagnostic::plain(DiagnosticKind::Other, self),
        }
    }
}
