//! Streams an object to its file.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use object::write::WritableBuffer;
use tvm_ffi_runtime::unstable::library_bin::{Layout, Segment};

use super::payload::{PackError, Payload};
use crate::artifact::map;
use crate::artifact::progress::{Observer, Progress, Step};

/// Files are copied in pieces of this size, and the observer is called after each piece. The kernel copies a piece
/// without user space where it can.
const PIECE: u64 = 16 << 20;

/// The payloads of the layout's nodes, and the observer of how much of them is written.
#[derive(Clone, Copy)]
pub(super) struct Payloads<'a> {
    of_nodes: &'a [Option<&'a Payload>],
    observer: Observer<'a>,
    /// The bytes of all of them.
    total: u64,
}

impl<'a> Payloads<'a> {
    pub(super) fn new(of_nodes: &'a [Option<&'a Payload>], layout: &Layout, observer: Observer<'a>) -> Self {
        let bytes = |segment| if let Segment::Payload { len, .. } = segment { len } else { 0 };
        Payloads { of_nodes, observer, total: layout.segments().map(bytes).sum() }
    }
}

/// Writes the output of the object writer, with a `library_bin` instead of the stand-in slice.
pub(super) struct ObjectFile<'a> {
    out: BufWriter<&'a mut File>,
    path: &'a Path,
    len: usize,
    stand_in: &'a [u8],
    layout: &'a Layout,
    payloads: Payloads<'a>,
    /// The payload bytes written so far.
    copied: u64,
    /// The first failure; nothing is written after it.
    result: Result<(), PackError>,
}

impl<'a> ObjectFile<'a> {
    pub(super) fn new(
        file: &'a mut File,
        path: &'a Path,
        stand_in: &'a [u8],
        layout: &'a Layout,
        payloads: Payloads<'a>,
    ) -> Self {
        Self { out: BufWriter::new(file), path, len: 0, stand_in, layout, payloads, copied: 0, result: Ok(()) }
    }

    pub(super) fn finish(mut self) -> Result<(), PackError> {
        self.result?;
        self.out.flush().map_err(|source| PackError::Output { path: self.path.to_owned(), source })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), PackError> {
        self.out.write_all(bytes).map_err(|source| PackError::Output { path: self.path.to_owned(), source })
    }

    fn write_layout(&mut self) -> Result<(), PackError> {
        for segment in self.layout.segments() {
            match segment {
                Segment::Bytes(bytes) => self.write(bytes)?,
                Segment::Payload { node, len } => match self.payloads.of_nodes.get(node).copied().flatten() {
                    Some(Payload::Bytes(bytes)) => {
                        self.write(bytes)?;
                        self.note_copied(len);
                    }
                    Some(Payload::File(path)) => self.copy(path, len)?,
                    // the layout only has payloads for modules
                    None => {}
                },
            }
        }
        Ok(())
    }

    /// Counts copied bytes and reports them to the observer.
    fn note_copied(&mut self, bytes: u64) {
        self.copied += bytes;
        (self.payloads.observer)(Progress::new(Step::Copy, self.copied, self.payloads.total));
    }

    /// Copies a file of `expected` bytes. The kernel does the copying where it can.
    fn copy(&mut self, path: &Path, expected: u64) -> Result<(), PackError> {
        let failed = |source| PackError::Payload { path: path.to_owned(), source };
        let file = map::open(path).map_err(failed)?;
        let mut copied = 0;
        while copied < expected {
            let piece = (expected - copied).min(PIECE);
            let len = io::copy(&mut (&file).take(piece), &mut self.out).map_err(|source| {
                // `io::copy` doesn't say which of the two files failed
                let source = io::Error::new(source.kind(), format!("can't copy {}: {source}", path.display()));
                PackError::Output { path: self.path.to_owned(), source }
            })?;
            copied += len;
            self.note_copied(len);
            if len < piece {
                break;
            }
        }
        let more = (&file).read(&mut [0]).map_err(failed)?;
        if copied == expected && more == 0 {
            return Ok(());
        }
        let found = if more == 0 { copied } else { file.metadata().map_err(failed)?.len() };
        Err(PackError::Changed { path: path.to_owned(), expected, found })
    }

    fn and_then(&mut self, step: impl FnOnce(&mut Self) -> Result<(), PackError>) {
        if self.result.is_ok() {
            self.result = step(self);
        }
    }
}

impl WritableBuffer for ObjectFile<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn reserve(&mut self, _size: usize) -> Result<(), ()> {
        Ok(())
    }

    fn resize(&mut self, new_len: usize) {
        const ZEROS: [u8; 64] = [0; 64];
        while self.len < new_len {
            let len = (new_len - self.len).min(ZEROS.len());
            self.and_then(|file| file.write(&ZEROS[..len]));
            self.len += len;
        }
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        match std::ptr::eq(bytes, self.stand_in) {
            true => self.and_then(Self::write_layout),
            false => self.and_then(|file| file.write(bytes)),
        }
        self.len += bytes.len();
    }
}
