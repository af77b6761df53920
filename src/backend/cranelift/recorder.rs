//! Records what gimli writes, including relocations.

use cranelift_codegen::gimli::RunTimeEndian;
use cranelift_codegen::gimli::write::{EndianVec, RelocateWriter, Relocation};
use cranelift_codegen::isa::TargetIsa;
use target_lexicon::Endianness;

/// A section that gimli writes to.
#[derive(Clone)]
pub(super) struct Recorder {
    pub(super) bytes: EndianVec<RunTimeEndian>,
    pub(super) relocations: Vec<Relocation>,
}

impl Recorder {
    pub(super) fn new(endian: RunTimeEndian) -> Self {
        Recorder { bytes: EndianVec::new(endian), relocations: Vec::new() }
    }
}

impl RelocateWriter for Recorder {
    type Writer = EndianVec<RunTimeEndian>;

    fn writer(&self) -> &Self::Writer {
        &self.bytes
    }

    fn writer_mut(&mut self) -> &mut Self::Writer {
        &mut self.bytes
    }

    fn relocate(&mut self, relocation: Relocation) {
        self.relocations.push(relocation);
    }
}

/// The target's byte order as gimli's type.
pub(super) fn endian_of(isa: &dyn TargetIsa) -> RunTimeEndian {
    match isa.triple().endianness() {
        Ok(Endianness::Big) => RunTimeEndian::Big,
        _ => RunTimeEndian::Little,
    }
}
