//! Unwind tables of an object file: `.eh_frame` (ELF, and Mach-O's `__eh_frame`), `.pdata` and `.xdata` (COFF).

use super::recorder::{Recorder, endian_of};
use super::unwind_windows::unwind_info;
use cranelift_codegen::gimli::write::{Address, CieId, DebugFrame, EhFrame, FrameTable, RelocationTarget};
use cranelift_codegen::gimli::{DW_EH_PE_pcrel, DW_EH_PE_sdata4, DwEhPe, RunTimeEndian};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::isa::unwind::{UnwindInfo, winx64};
use object::write::{Object, Relocation, StandardSection, Symbol, SymbolId, SymbolSection};
use object::{
    BinaryFormat, RelocationEncoding, RelocationFlags, RelocationKind, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope, macho,
};

/// Unwind information of an object's functions, collected until all of them are defined.
pub(super) struct UnwindTables {
    frames: FrameTable,
    cie: Option<CieId>,
    endian: RunTimeEndian,
    /// Maps the index that gimli uses as a symbol in an FDE's address to the object's symbol.
    symbols: Vec<SymbolId>,
    /// Functions of a Windows target, with their sizes.
    windows: Vec<(SymbolId, winx64::UnwindInfo, u32)>,
}

impl UnwindTables {
    pub(super) fn new(isa: &dyn TargetIsa) -> Self {
        let mut frames = FrameTable::default();
        let macho = isa.triple().binary_format == target_lexicon::BinaryFormat::Macho;
        let cie = isa.create_systemv_cie().map(|mut cie| {
            // Relative, so a loader has nothing to relocate, and of the width that compilers use for the format.
            cie.fde_address_encoding =
                if macho { DW_EH_PE_pcrel } else { DwEhPe(DW_EH_PE_pcrel.0 | DW_EH_PE_sdata4.0) };
            frames.add_cie(cie)
        });
        UnwindTables { frames, cie, endian: endian_of(isa), symbols: Vec::new(), windows: Vec::new() }
    }

    /// Adds a function of `len` bytes. Targets without unwind tables are ignored.
    pub(super) fn add(&mut self, symbol: SymbolId, info: UnwindInfo, len: u32) {
        match (info, self.cie) {
            (UnwindInfo::SystemV(info), Some(cie)) => {
                let address = Address::Symbol { symbol: self.symbols.len(), addend: 0 };
                self.frames.add_fde(cie, info.to_fde(address));
                self.symbols.push(symbol);
            }
            (UnwindInfo::WindowsX64(info), _) => self.windows.push((symbol, info, len)),
            _ => {}
        }
    }

    /// Writes the sections. Errors say what the format doesn't support.
    pub(super) fn write(self, object: &mut Object<'_>) -> Result<(), String> {
        if !self.symbols.is_empty() {
            self.write_frames(object)?;
        }
        if !self.windows.is_empty() {
            self.write_windows(object)?;
        }
        Ok(())
    }

    /// Writes `.debug_frame`, which only debuggers read; loaders and unwinders ignore it.
    pub(super) fn write_for_debugger(&self, object: &mut Object<'_>) -> Result<(), String> {
        let mut frames = DebugFrame(Recorder::new(self.endian));
        self.frames.write_debug_frame(&mut frames).map_err(|e| e.to_string())?;
        let Recorder { bytes, relocations } = frames.0;
        let section = object.add_section(Vec::new(), b".debug_frame".to_vec(), SectionKind::Debug);
        object.append_section_data(section, bytes.slice(), 8);
        for relocation in relocations {
            let (symbol, addend) = match relocation.target {
                RelocationTarget::Symbol(index) => (self.symbols[index], relocation.addend),
                RelocationTarget::Section(_) => (object.section_symbol(section), relocation.addend),
            };
            let (kind, encoding, size) = (RelocationKind::Absolute, RelocationEncoding::Generic, 8 * relocation.size);
            let flags = RelocationFlags::Generic { kind, encoding, size };
            let relocation = Relocation { offset: relocation.offset as u64, symbol, addend, flags };
            object.add_relocation(section, relocation).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn write_frames(&self, object: &mut Object<'_>) -> Result<(), String> {
        let mut frames = EhFrame(Recorder::new(self.endian));
        self.frames.write_eh_frame(&mut frames).map_err(|e| e.to_string())?;
        let Recorder { bytes, relocations } = frames.0;
        let section = object.section_id(StandardSection::EhFrame);
        object.append_section_data(section, bytes.slice(), 8);
        // Mach-O has no relative data relocations, only differences of symbols.
        let anchor = (object.format() == BinaryFormat::MachO).then(|| {
            object.add_symbol(Symbol {
                name: b"EH_frame".to_vec(),
                value: 0,
                size: 0,
                kind: SymbolKind::Unknown,
                scope: SymbolScope::Compilation,
                weak: false,
                section: SymbolSection::Section(section),
                flags: SymbolFlags::None,
            })
        });
        for relocation in relocations {
            let RelocationTarget::Symbol(index) = relocation.target else { continue };
            let (offset, mut symbol) = (relocation.offset as u64, self.symbols[index]);
            let size = 8 * relocation.size;
            let (flags, addend) = match anchor {
                None => {
                    let (kind, encoding) = (RelocationKind::Relative, RelocationEncoding::Generic);
                    let mut addend = relocation.addend;
                    // Another library may export a function of the same name, but the table means this library's code.
                    if let Some((section, at)) = object.symbol_section_and_offset(symbol) {
                        (symbol, addend) = (section, addend + at as i64);
                    }
                    (RelocationFlags::Generic { kind, encoding, size }, addend)
                }
                Some(_) => {
                    let (r_type, r_length) = (macho::X86_64_RELOC_UNSIGNED, if size == 64 { 3 } else { 2 });
                    const _: () = assert!(macho::X86_64_RELOC_UNSIGNED == macho::ARM64_RELOC_UNSIGNED);
                    let flags = RelocationFlags::MachO { r_type, r_pcrel: false, r_length };
                    (flags, relocation.addend - offset as i64)
                }
            };
            let relocation = Relocation { offset, symbol, addend, flags };
            object.add_relocation_with_subtractor(section, relocation, anchor).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Writes a `RUNTIME_FUNCTION` in `.pdata` for each function: its begin and end, and the address of its
    /// `UNWIND_INFO` in `.xdata`, all relative to the image.
    fn write_windows(&self, object: &mut Object<'_>) -> Result<(), String> {
        let [xdata, pdata] = [&b".xdata"[..], b".pdata"]
            .map(|name| object.add_section(Vec::new(), name.to_vec(), SectionKind::ReadOnlyData));
        let infos = object.section_symbol(xdata);
        for (function, info, len) in &self.windows {
            let function_name = || String::from_utf8_lossy(&object.symbol(*function).name).into_owned();
            let bytes = unwind_info(info).ok_or_else(|| format!("{} has an unknown prologue", function_name()))?;
            let at = object.append_section_data(xdata, &bytes, 4);
            let entry = object.append_section_data(pdata, &[0; 12], 4);
            for (offset, symbol, addend) in [(0, *function, 0), (4, *function, i64::from(*len)), (8, infos, at as i64)]
            {
                let (kind, encoding, size) = (RelocationKind::ImageOffset, RelocationEncoding::Generic, 32);
                let flags = RelocationFlags::Generic { kind, encoding, size };
                let relocation = Relocation { offset: entry + offset, symbol, addend, flags };
                object.add_relocation(pdata, relocation).map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}
