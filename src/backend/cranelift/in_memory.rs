//! Tables for code in this process: for unwinders and debuggers.

use cranelift_codegen::gimli::DW_EH_PE_absptr;
use cranelift_codegen::gimli::write::{Address, EhFrame, EndianVec, FrameTable};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::isa::unwind::UnwindInfo;
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

use super::compiled::CompiledModule;
use super::debug::{self, Described};
use super::error::Error;
use super::recorder::endian_of;
use super::unwind::UnwindTables;
use super::unwind_windows::unwind_info;

impl CompiledModule {
    /// The `.eh_frame` of functions at these addresses, which are in the order of [`functions`](Self::functions);
    /// `None` for an undefined function. The table ends with four zeros, as unwinders expect. There is none on Windows,
    /// nor for code compiled without [`Options::unwind`](super::Options::unwind).
    #[cfg_attr(windows, allow(dead_code))]
    pub(crate) fn eh_frame(&self, isa: &dyn TargetIsa, addresses: &[Option<usize>]) -> Option<Vec<u8>> {
        let mut cie = isa.create_systemv_cie()?;
        cie.fde_address_encoding = DW_EH_PE_absptr;
        let mut frames = FrameTable::default();
        let cie = frames.add_cie(cie);
        for (function, address) in self.functions.iter().zip(addresses) {
            if let (Some(UnwindInfo::SystemV(info)), Some(address)) = (&function.unwind, address) {
                frames.add_fde(cie, info.to_fde(Address::Constant(*address as u64)));
            }
        }
        if frames.fde_count() == 0 {
            return None;
        }
        let mut section = EhFrame(EndianVec::new(endian_of(isa)));
        frames.write_eh_frame(&mut section).ok()?;
        let mut bytes = section.0.into_vec();
        bytes.extend([0; 4]);
        Some(bytes)
    }

    /// The `UNWIND_INFO` of functions (Windows on x86-64), each with the function's index.
    pub(crate) fn unwind_infos(&self) -> Vec<(usize, Vec<u8>)> {
        let infos = self.functions.iter().enumerate().filter_map(|(index, function)| match &function.unwind {
            Some(UnwindInfo::WindowsX64(info)) => Some((index, unwind_info(info)?)),
            _ => None,
        });
        infos.collect()
    }

    /// Builds an object file that describes `memory` to a debugger. `memory` is mapped at `base` and has the functions
    /// at these addresses. The file contains the functions' names, lines and unwind information. Its addresses are
    /// relative to `.text`, which is `memory`.
    pub(crate) fn image(
        &self,
        isa: &dyn TargetIsa,
        base: usize,
        memory: &[u8],
        addresses: &[Option<usize>],
    ) -> Result<Vec<u8>, Error> {
        let triple = isa.triple();
        let refused = |reason: String| Error::Object { target: triple.to_string(), reason };
        let architecture = match triple.architecture {
            target_lexicon::Architecture::X86_64 => Architecture::X86_64,
            target_lexicon::Architecture::Aarch64(_) => Architecture::Aarch64,
            target_lexicon::Architecture::Riscv64(_) => Architecture::Riscv64,
            target_lexicon::Architecture::S390x => Architecture::S390x,
            other => return Err(refused(format!("no debugger's image for {other}"))),
        };
        let endianness = match triple.endianness() {
            Ok(target_lexicon::Endianness::Big) => Endianness::Big,
            _ => Endianness::Little,
        };
        let mut object = Object::new(BinaryFormat::Elf, architecture, endianness);
        let text = object.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        object.append_section_data(text, memory, 64);
        let mut unwind = UnwindTables::new(isa);
        let mut described = Vec::new();
        for (function, address) in self.functions.iter().zip(addresses) {
            let Some(address) = address else { continue };
            let size = function.code.len() as u32;
            let symbol = object.add_symbol(Symbol {
                name: function.name.clone().into_bytes(),
                value: address.wrapping_sub(base) as u64,
                size: u64::from(size),
                kind: SymbolKind::Text,
                scope: SymbolScope::Linkage,
                weak: false,
                section: SymbolSection::Section(text),
                flags: SymbolFlags::None,
            });
            if let Some(info) = &function.unwind {
                unwind.add(symbol, info.clone(), size);
            }
            if let Some(first) = function.first_location {
                described.extend(Described::new(symbol, size, function.lines.clone(), first));
            }
        }
        unwind.write_for_debugger(&mut object).map_err(refused)?;
        debug::write(&mut object, endian_of(isa), &self.locations, &described).map_err(refused)?;
        object.write().map_err(|e| refused(e.to_string()))
    }
}
