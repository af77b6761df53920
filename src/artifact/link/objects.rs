//! Iterates over the objects of a link.

use std::path::Path;

use object::File;
use object::read::archive::ArchiveFile;

use super::stated::{Input, Link};
use crate::artifact::map::contents;

/// An object of a link.
pub(super) struct Looked<'a> {
    /// A description of the object: its number in memory, its file, or its member of an archive.
    pub label: String,
    pub object: &'a File<'a>,
    /// The index of the input that is or contains the object; objects in memory come first.
    pub input: usize,
    /// Whether the object is certainly linked: the linker takes only some members of an archive.
    pub is_linked: bool,
}

/// Calls a function for each object of a link. Unreadable inputs are skipped and left to the linker, which knows more
/// formats.
pub(super) fn for_each_object(link: &Link, f: &mut dyn FnMut(Looked<'_>)) {
    for (index, bytes) in link.objects.iter().enumerate() {
        let label = match link.objects.len() {
            1 => "the object in memory".to_owned(),
            _ => format!("object {} in memory", index + 1),
        };
        for_each_object_of(bytes, index, label, false, f);
    }
    for (index, input) in (link.objects.len()..).zip(&link.inputs) {
        if let Input::File(path) | Input::WholeArchive(path) = input
            && let Ok(bytes) = contents(path)
        {
            let takes_all = matches!(input, Input::WholeArchive(_));
            for_each_object_of(&bytes, index, Path::display(path).to_string(), takes_all, f);
        }
    }
}

fn for_each_object_of(bytes: &[u8], input: usize, label: String, takes_all: bool, f: &mut dyn FnMut(Looked<'_>)) {
    if let Ok(archive) = ArchiveFile::parse(bytes) {
        for member in archive.members().flatten() {
            if let Ok(object) = member.data(bytes).and_then(File::parse) {
                let label = format!("{label}({})", String::from_utf8_lossy(member.name()));
                f(Looked { label, object: &object, input, is_linked: takes_all });
            }
        }
    } else if let Ok(object) = File::parse(bytes) {
        f(Looked { label, object: &object, input, is_linked: true });
    }
}
