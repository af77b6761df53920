//! Detects objects that can't be linked into a shared library because their code uses absolute addresses.

use object::{
    Architecture, File, Object, ObjectKind, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationTarget,
    SectionFlags, SymbolScope, SymbolSection, elf,
};

use target_lexicon::BinaryFormat;

use super::error::LinkError;
use super::objects::{Looked, for_each_object};
use super::stated::Link;

/// A kind of address in an object that position-independent code doesn't contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Address {
    /// Absolute, in less than 64 bits, so the loader of libraries can't write it.
    Short,
    /// Absolute, in 64 bits. The loader writes it into data, but never into memory that processes share.
    Long,
    /// Relative to a symbol that another library may define.
    Relative,
}

/// Refuses objects that no linker accepts for a shared library, or only with code that the loader has to patch.
/// Members of archives are left to the linker, which takes the members it needs.
///
/// # Errors
/// The first unsuitable object.
pub(super) fn check(linker: &Link) -> Result<(), LinkError> {
    if linker.format() != BinaryFormat::Elf {
        return Ok(());
    }
    let lets_loader_write = linker.args.iter().any(|arg| arg.to_string_lossy().contains("notext"));
    let mut found = None;
    for_each_object(linker, &mut |Looked { label, object, is_linked, .. }| {
        if is_linked && found.is_none() {
            let is_wrong = |address| match address {
                Address::Short => true,
                Address::Long => !lets_loader_write,
                Address::Relative => false,
            };
            found = unsuitable(&label, object, is_wrong);
        }
    });
    found.map_or(Ok(()), Err)
}

/// Replaces the error of a linker that failed because of an unsuitable object.
pub(super) fn explained(linker: &Link, error: LinkError) -> LinkError {
    // the wording of GNU ld, lld and wild, or of wild alone
    let is_why = |output: &str| output.contains("-fPIC") || output.contains("because output is a shared object");
    if !matches!(&error, LinkError::Failed { output, .. } if is_why(output)) {
        return error;
    }
    // a relative address is wrong only if another library may define the symbol, so absolute ones explain more
    let (mut absolute, mut relative) = (None, None);
    for_each_object(linker, &mut |Looked { label, object, .. }| {
        absolute = absolute.take().or_else(|| unsuitable(&label, object, |address| address != Address::Relative));
        relative = relative.take().or_else(|| unsuitable(&label, object, |address| address == Address::Relative));
    });
    absolute.or(relative).unwrap_or(error)
}

/// The first unsuitable address of an object, as an error.
fn unsuitable(label: &str, object: &File<'_>, is_wrong: impl Fn(Address) -> bool) -> Option<LinkError> {
    if object.kind() != ObjectKind::Relocatable {
        return None;
    }
    for section in object.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else { return None };
        let (is_loaded, is_data) =
            (sh_flags & u64::from(elf::SHF_ALLOC) != 0, sh_flags & u64::from(elf::SHF_WRITE) != 0);
        let name = section.name().unwrap_or_default();
        // linkers rewrite unwind tables with relative addresses
        if !is_loaded || name == ".eh_frame" {
            continue;
        }
        for (_, relocation) in section.relocations() {
            let Some((address, relocation_name)) = address(object.architecture(), &relocation) else { continue };
            let symbol = symbol(object, &relocation);
            let counts = match (address, &symbol) {
                (_, AddressTarget::Number) => false,
                (Address::Short, _) => true,
                (Address::Long, _) => !is_data,
                (Address::Relative, AddressTarget::Named { may_be_elsewhere, .. }) => *may_be_elsewhere,
            };
            if counts && is_wrong(address) {
                let to = match symbol {
                    AddressTarget::Named { name, .. } if !name.is_empty() => format!(" to `{name}`"),
                    _ => String::new(),
                };
                let problem = format!("section `{name}` has a relocation {relocation_name}{to}");
                return Some(LinkError::PositionDependent { object: label.to_owned(), problem });
            }
        }
    }
    None
}

/// The target of a relocation.
enum AddressTarget {
    /// A number instead of an address.
    Number,
    Named {
        name: String,
        /// Whether another library may define it.
        may_be_elsewhere: bool,
    },
}

fn symbol(object: &File<'_>, relocation: &Relocation) -> AddressTarget {
    let unnamed = AddressTarget::Named { name: String::new(), may_be_elsewhere: false };
    let RelocationTarget::Symbol(index) = relocation.target() else { return unnamed };
    let Ok(symbol) = object.symbol_by_index(index) else { return unnamed };
    if symbol.section() == SymbolSection::Absolute {
        return AddressTarget::Number;
    }
    let section =
        || symbol.section_index().and_then(|index| object.section_by_index(index).ok()?.name().ok().map(str::to_owned));
    let name = symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_owned).or_else(section);
    let may_be_elsewhere = symbol.is_global() && matches!(symbol.scope(), SymbolScope::Dynamic | SymbolScope::Unknown);
    AddressTarget::Named { name: name.unwrap_or_default(), may_be_elsewhere }
}

macro_rules! addresses {
    ($number:expr; $($kind:ident: $($name:ident)*;)*) => {
        match $number {
            $($(elf::$name => Some((Address::$kind, stringify!($name))),)*)*
            _ => None,
        }
    };
}

/// The address that an ELF relocation writes, if it has one of these kinds, and the relocation's name.
fn address(architecture: Architecture, relocation: &Relocation) -> Option<(Address, &'static str)> {
    let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
    match architecture {
        Architecture::X86_64 => addresses! { r_type;
            Short: R_X86_64_32 R_X86_64_32S R_X86_64_16 R_X86_64_8 R_X86_64_TPOFF32;
            Long: R_X86_64_64;
            Relative: R_X86_64_PC32 R_X86_64_PC64;
        },
        Architecture::Aarch64 => addresses! { r_type;
            Short: R_AARCH64_ABS32 R_AARCH64_ABS16
                R_AARCH64_MOVW_UABS_G0 R_AARCH64_MOVW_UABS_G0_NC R_AARCH64_MOVW_UABS_G1 R_AARCH64_MOVW_UABS_G1_NC
                R_AARCH64_MOVW_UABS_G2 R_AARCH64_MOVW_UABS_G2_NC R_AARCH64_MOVW_UABS_G3;
            Long: R_AARCH64_ABS64;
            Relative: R_AARCH64_ADR_PREL_LO21 R_AARCH64_ADR_PREL_PG_HI21 R_AARCH64_ADR_PREL_PG_HI21_NC;
        },
        Architecture::Riscv64 => addresses! { r_type;
            Short: R_RISCV_HI20 R_RISCV_32;
            Long: R_RISCV_64;
            Relative: R_RISCV_PCREL_HI20;
        },
        _ => None,
    }
}
