//! Archives of objects. Only the needed members are linked.

use std::collections::HashMap;

use object::read::archive::{ArchiveFile, ArchiveMember, ArchiveOffset};

use super::read::{FORMAT, ObjectFile, RunsAtLoad, refused};
use crate::engine::EngineError;
use crate::object_symbols::c_name;

/// An archive with the members that haven't been taken yet.
pub(super) struct Archive<'a> {
    label: String,
    bytes: &'a [u8],
    file: ArchiveFile<'a>,
    /// Maps each symbol to the index of the member that defines it. A member is removed when it is taken.
    members: Vec<Option<Member<'a>>>,
    runs: RunsAtLoad,
    symbols: HashMap<&'a str, usize>,
}

enum Member<'a> {
    At(ArchiveOffset),
    Read(Box<ObjectFile<'a>>),
}

impl<'a> Archive<'a> {
    /// Reads an archive: its symbol table, or all of its members if it has none.
    ///
    /// # Errors
    /// The archive is malformed, or thin.
    pub(super) fn read(label: String, bytes: &'a [u8], runs: RunsAtLoad) -> Result<Self, EngineError> {
        let file = ArchiveFile::parse(bytes).map_err(|error| refused(&label, error.to_string()))?;
        if file.is_thin() {
            return Err(refused(&label, "a thin archive, which only names its members: give those"));
        }
        let mut archive = Archive { label, bytes, file, members: Vec::new(), runs, symbols: HashMap::new() };
        archive.index()?;
        Ok(archive)
    }

    fn index(&mut self) -> Result<(), EngineError> {
        let malformed = |label: &str, error: object::Error| refused(label, error.to_string());
        let table = self.file.symbols().map_err(|error| malformed(&self.label, error))?;
        if let Some(table) = table {
            let mut numbers = HashMap::new();
            for symbol in table {
                let symbol = symbol.map_err(|error| malformed(&self.label, error))?;
                let Ok(name) = std::str::from_utf8(symbol.name()) else { continue };
                let name = c_name(FORMAT, name);
                let number = *numbers.entry(symbol.offset().0).or_insert_with(|| {
                    self.members.push(Some(Member::At(symbol.offset())));
                    self.members.len() - 1
                });
                self.symbols.entry(name).or_insert(number);
            }
            return Ok(());
        }
        for member in self.file.members() {
            let member = member.map_err(|error| malformed(&self.label, error))?;
            let object = self.object(&member)?;
            for definition in &object.defined {
                self.symbols.entry(definition.name).or_insert(self.members.len());
            }
            self.members.push(Some(Member::Read(Box::new(object))));
        }
        Ok(())
    }

    fn object(&self, member: &ArchiveMember<'a>) -> Result<ObjectFile<'a>, EngineError> {
        let label = format!("member `{}` of {}", String::from_utf8_lossy(member.name()), self.label);
        let bytes = member.data(self.bytes).map_err(|error| refused(&label, error.to_string()))?;
        ObjectFile::read(label, bytes, self.runs)
    }

    /// Takes the member that defines a symbol, unless it has been taken.
    ///
    /// # Errors
    /// The member is rejected.
    pub(super) fn take(&mut self, symbol: &str) -> Result<Option<ObjectFile<'a>>, EngineError> {
        let Some(&number) = self.symbols.get(symbol) else { return Ok(None) };
        match self.members.get_mut(number).and_then(Option::take) {
            None => Ok(None),
            Some(Member::Read(object)) => Ok(Some(*object)),
            Some(Member::At(offset)) => {
                let member = self.file.member(offset).map_err(|error| refused(&self.label, error.to_string()))?;
                self.object(&member).map(Some)
            }
        }
    }
}
