//! The object format of each target.

use object::write::{CoffExportStyle, MachOBuildVersion, Object};
use object::{Architecture, BinaryFormat, Endianness, FileFlags, elf, macho};
use target_lexicon as target;
use target_lexicon::Triple;

/// An empty object for a target; `None` for a target that this crate doesn't know.
pub(super) fn object_of<'a>(triple: &Triple) -> Option<Object<'a>> {
    let format = binary_format(triple)?;
    let architecture = architecture(triple)?;
    let endian = match triple.endianness().ok()? {
        target::Endianness::Little => Endianness::Little,
        target::Endianness::Big => Endianness::Big,
    };
    let mut object = Object::new(format, architecture, endian);
    match (format, architecture) {
        // Linkers refuse to mix float ABIs. Libraries for Linux use `double`.
        (BinaryFormat::Elf, Architecture::Riscv64) => {
            let e_flags = elf::EF_RISCV_FLOAT_ABI_DOUBLE;
            object.flags = FileFlags::Elf { os_abi: elf::ELFOSABI_NONE, abi_version: 0, e_flags };
        }
        // Apple's linker requires the platform. 11.0 is the first macOS on aarch64.
        (BinaryFormat::MachO, _) if is_macos(triple) => {
            let mut version = MachOBuildVersion::default();
            (version.platform, version.minos, version.sdk) = (macho::PLATFORM_MACOS, 11 << 16, 11 << 16);
            object.set_macho_build_version(version);
        }
        _ => {}
    }
    Some(object)
}

fn is_macos(triple: &Triple) -> bool {
    matches!(triple.operating_system, target::OperatingSystem::Darwin(_) | target::OperatingSystem::MacOSX(_))
}

/// How the linkers of a COFF target spell the exported symbols.
pub(super) fn coff_exports(triple: &Triple) -> CoffExportStyle {
    match triple.environment {
        target::Environment::Gnu | target::Environment::GnuLlvm => CoffExportStyle::Gnu,
        _ => CoffExportStyle::Msvc,
    }
}

fn binary_format(triple: &Triple) -> Option<BinaryFormat> {
    match triple.binary_format {
        target::BinaryFormat::Elf => Some(BinaryFormat::Elf),
        target::BinaryFormat::Macho => Some(BinaryFormat::MachO),
        target::BinaryFormat::Coff => Some(BinaryFormat::Coff),
        _ => None,
    }
}

fn architecture(triple: &Triple) -> Option<Architecture> {
    match (triple.architecture, triple.binary_format) {
        (target::Architecture::X86_64, _) => Some(Architecture::X86_64),
        (target::Architecture::Aarch64(target::Aarch64Architecture::Aarch64), _) => Some(Architecture::Aarch64),
        (target::Architecture::Riscv64(_), target::BinaryFormat::Elf) => Some(Architecture::Riscv64),
        (target::Architecture::S390x, target::BinaryFormat::Elf) => Some(Architecture::S390x),
        _ => None,
    }
}
