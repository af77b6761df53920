//! A relocatable object: whether it can be loaded here, and its symbols.

use object::elf::{self, STT_GNU_IFUNC, STV_DEFAULT, STV_PROTECTED};
use object::{
    Architecture, BinaryFormat, File, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags, SectionKind,
    SymbolFlags, SymbolIndex, SymbolKind,
};

use crate::engine::EngineError;
use crate::object_symbols::c_name;

/// A relocatable object for this machine, without code that runs at load time.
pub(in crate::engine) struct ObjectFile<'a> {
    /// The object in words, for messages.
    pub(in crate::engine) label: String,
    #[cfg_attr(not(feature = "_llvm"), allow(dead_code))] // LLJIT uses them
    pub(in crate::engine) bytes: &'a [u8],
    pub(super) file: File<'a>,
    pub(super) defined: Vec<Definition<'a>>,
    pub(super) undefined: Vec<Undefined<'a>>,
}

/// The code that an object may run when it is loaded or unloaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RunsAtLoad {
    /// Nothing: the object only contains kernels.
    Nothing,
    /// Functions in ELF's lists.
    Lists,
}

/// A global symbol that an object defines.
pub(super) struct Definition<'a> {
    pub(super) name: &'a str,
    pub(super) symbol: SymbolIndex,
    pub(super) strength: Strength,
    pub(super) is_function: bool,
    /// Whether users of a library can find the symbol by its name.
    pub(super) is_exported: bool,
}

/// The rank of a definition among several of one name; the highest one is used. Two strong definitions are an error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Strength {
    Common,
    Weak,
    Strong,
}

/// A symbol that an object needs.
pub(super) struct Undefined<'a> {
    pub(super) name: &'a str,
    /// Its address may be 0.
    pub(super) weak: bool,
}

/// The error for a rejected object.
pub(super) fn refused(label: &str, problem: impl Into<String>) -> EngineError {
    EngineError::Object { object: label.to_owned(), problem: problem.into() }
}

/// The format of this machine's objects, and its name in messages.
pub(super) const FORMAT: BinaryFormat = if cfg!(windows) {
    BinaryFormat::Coff
} else if cfg!(target_vendor = "apple") {
    BinaryFormat::MachO
} else {
    BinaryFormat::Elf
};

fn of_this_machine(file: &File<'_>) -> bool {
    let architecture = match file.architecture() {
        Architecture::X86_64 => cfg!(target_arch = "x86_64"),
        Architecture::Aarch64 => cfg!(target_arch = "aarch64"),
        Architecture::Riscv64 => cfg!(target_arch = "riscv64"),
        Architecture::S390x => cfg!(target_arch = "s390x"),
        _ => false,
    };
    architecture && file.format() == FORMAT && file.is_64() && file.is_little_endian() == cfg!(target_endian = "little")
}

/// Describes a file that isn't a relocatable object.
fn kind(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Dynamic => "a shared library or a program",
        ObjectKind::Executable => "a program",
        ObjectKind::Core => "a dump of memory",
        _ => "a file of another kind",
    }
}

impl<'a> ObjectFile<'a> {
    /// Reads an object.
    ///
    /// # Errors
    /// The bytes are not a relocatable object for this machine, or the object has unsupported contents.
    pub(super) fn read(label: String, bytes: &'a [u8], runs: RunsAtLoad) -> Result<Self, EngineError> {
        if bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b") {
            return Err(refused(&label, "expected a relocatable object, got LLVM's bitcode (see `Kernel::bitcode`)"));
        }
        let file = File::parse(bytes)
            .map_err(|error| refused(&label, format!("expected a relocatable object or an archive: {error}")))?;
        if !of_this_machine(&file) {
            let shown = |format, architecture: &str, bits, little| {
                format!(
                    "{format:?} for {architecture} ({bits} bits, {} byte first)",
                    if little { "low" } else { "high" }
                )
            };
            let bits = if file.is_64() { 64 } else { 32 };
            let architecture = format!("{:?}", file.architecture()).to_lowercase();
            let got = shown(file.format(), &architecture, bits, file.is_little_endian());
            let expected = shown(FORMAT, std::env::consts::ARCH, usize::BITS, cfg!(target_endian = "little"));
            return Err(refused(
                &label,
                format!("expected a relocatable object of this machine, {expected}, got {got}"),
            ));
        }
        if file.kind() != ObjectKind::Relocatable {
            return Err(refused(&label, format!("expected a relocatable object, got {}", kind(file.kind()))));
        }
        check_sections(&label, &file, runs)?;
        let mut object = ObjectFile { label, bytes, file, defined: Vec::new(), undefined: Vec::new() };
        object.read_symbols()?;
        Ok(object)
    }

    fn read_symbols(&mut self) -> Result<(), EngineError> {
        let malformed = |error: object::Error| refused(&self.label, error.to_string());
        let format = self.file.format();
        for symbol in self.file.symbols() {
            let indirect = matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info & 0xf == STT_GNU_IFUNC);
            if !symbol.is_global() && !indirect {
                continue;
            }
            let name = c_name(format, symbol.name().map_err(malformed)?);
            if indirect {
                let problem =
                    format!("`{name}` is an indirect function (IFUNC), whose code is chosen when it is loaded");
                return Err(refused(&self.label, problem));
            }
            if symbol.kind() == SymbolKind::Tls {
                return Err(refused(
                    &self.label,
                    format!("`{name}` is a thread-local variable, and kernels can't have any"),
                ));
            }
            // the object contains only GCC's intermediate code
            if name == "__gnu_lto_slim" {
                let problem = "it has no machine code, only GCC's intermediate code; compile it without `-flto`";
                return Err(refused(&self.label, problem));
            }
            if name.is_empty() || symbol.is_undefined() && name == GOT {
                continue;
            }
            if symbol.is_undefined() {
                self.undefined.push(Undefined { name, weak: symbol.is_weak() });
                continue;
            }
            let strength = match () {
                () if symbol.is_common() => Strength::Common,
                () if symbol.is_weak() => Strength::Weak,
                () => Strength::Strong,
            };
            // symbols from assembly may have no type
            let is_function = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown) && !symbol.is_common();
            let is_exported = match symbol.flags() {
                SymbolFlags::Elf { st_other, .. } => matches!(st_other & 3, STV_DEFAULT | STV_PROTECTED),
                _ => false,
            };
            self.defined.push(Definition { name, symbol: symbol.index(), strength, is_function, is_exported });
        }
        Ok(())
    }
}

/// The global offset table, which linkers create. Assemblers add this symbol whenever code uses the table, even if it
/// isn't referred to. Code of the large code model does refer to it, and adds the distance of what it needs.
pub(super) const GOT: &str = "_GLOBAL_OFFSET_TABLE_";

/// Whether an ELF section is loaded.
#[cfg_attr(not(any(all(feature = "cranelift", unix), feature = "_llvm")), expect(dead_code, reason = "linkers ask"))]
pub(super) fn is_loaded(flags: SectionFlags) -> bool {
    matches!(flags, SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_ALLOC) != 0)
}

/// The lists of functions that run when an ELF object is loaded and unloaded. Lists with lower numbers come first.
pub(super) const LISTS: [&str; 2] = [".init_array", ".fini_array"];

fn check_sections(label: &str, file: &File<'_>, runs: RunsAtLoad) -> Result<(), EngineError> {
    const RUN_BY_LOADERS: [&str; 7] =
        [".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors", "__mod_init_func", ".CRT$XC"];
    for section in file.sections().filter(|section| section.size() > 0) {
        let name = section.name().map_err(|error| refused(label, error.to_string()))?;
        let is_run = runs == RunsAtLoad::Lists && LISTS.iter().any(|list| name.starts_with(list));
        if !is_run && RUN_BY_LOADERS.iter().any(|prefix| name.starts_with(prefix)) {
            let problem = format!("section `{name}` has constructors or destructors, which the loader wouldn't run");
            return Err(refused(label, problem));
        }
        if matches!(section.kind(), SectionKind::Tls | SectionKind::UninitializedTls | SectionKind::TlsVariables) {
            let problem = format!("section `{name}` is of thread-local variables, and kernels can't have any");
            return Err(refused(label, problem));
        }
    }
    Ok(())
}
