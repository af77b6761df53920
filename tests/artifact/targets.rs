//! Objects for every target, read back.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use object::{
    Architecture, BinaryFormat, File, Object, ObjectSection, ObjectSymbol, RelocationFlags, SectionKind, SymbolKind,
    elf, macho, pe,
};
use tvm_ffi_codegen::artifact::{LibraryBuilder, ObjectFile, inspect, inspect_bytes};
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::{Backend, Kernel};

use crate::support::sig;

/// The targets of both backends. Only LLVM supports the last one.
const TARGETS: [&str; 8] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "riscv64gc-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "x86_64-pc-windows-gnu",
    "aarch64-pc-windows-msvc",
];

/// Every backend with each of its targets.
fn all() -> impl Iterator<Item = (Backend, &'static str)> {
    let has = |backend: Backend, target: &str| backend != Backend::Cranelift || target != TARGETS[7];
    Backend::ALL.iter().flat_map(move |&b| TARGETS.iter().filter(move |t| has(b, t)).map(move |&t| (b, t)))
}

fn library(backend: Backend, target: &str) -> LibraryBuilder {
    let zero = Kernel::body(|b| {
        let y = b.tensor("y");
        b.for_range(0, b.dim("n"), |i| y.store([i], 0.0f32));
    });
    LibraryBuilder::new()
        .target(target.parse().unwrap())
        .backend(backend)
        .function(&sig("zero(y: Tensor([n], float32))").with_doc("Fills with zeros."), &zero)
        .function(&sig("name(s: str) -> str"), &Kernel::symbol("my_name"))
        .function(&sig("check(x: Tensor([n, 4], int8), k: int64 = 3)"), &Kernel::check_only())
}

/// The library and the system library for each backend and target, built once.
fn made() -> &'static [(String, ObjectFile, ObjectFile)] {
    static MADE: OnceLock<Vec<(String, ObjectFile, ObjectFile)>> = OnceLock::new();
    MADE.get_or_init(|| {
        let emit = |(backend, target)| {
            let system = library(backend, target).system_library("demo_").carries_modules().emit().unwrap();
            (format!("{backend}, {target}"), library(backend, target).emit().unwrap(), system)
        };
        all().map(emit).collect()
    })
}

/// The C name of a symbol: Mach-O adds an underscore before it.
fn c_name<'a>(file: &File<'_>, name: &'a str) -> &'a str {
    if file.format() == BinaryFormat::MachO { name.strip_prefix('_').unwrap_or(name) } else { name }
}

fn names(file: &File<'_>, which: impl Fn(&object::Symbol<'_, '_>) -> bool) -> BTreeSet<String> {
    let symbols = file.symbols().filter(|s| which(s) && s.kind() != SymbolKind::File);
    symbols.map(|s| c_name(file, s.name().unwrap()).to_owned()).filter(|name| !name.is_empty()).collect()
}

fn exported(file: &File<'_>) -> BTreeSet<String> {
    // COFF also lists the default of a weak symbol, and LLVM's constants, which the linker merges
    let aside = |name: &str| [".weak.", "__real@", "__xmm@"].iter().any(|start| name.starts_with(start));
    names(file, |s| s.is_global() && (!s.is_undefined() || s.is_weak()) && !aside(s.name().unwrap()))
}

fn undefined(file: &File<'_>) -> BTreeSet<String> {
    names(file, |s| s.is_undefined() && !s.is_weak())
}

fn with<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// The relocations that code may have. ELF and Mach-O code has no absolute addresses, because it is
/// position-independent.
fn allowed_in_code(file: &File<'_>, flags: RelocationFlags) -> bool {
    match (file.architecture(), flags) {
        (Architecture::X86_64, RelocationFlags::Elf { r_type }) => [
            elf::R_X86_64_PC32,
            elf::R_X86_64_PLT32,
            elf::R_X86_64_GOTPCREL,
            elf::R_X86_64_GOTPCRELX,
            elf::R_X86_64_REX_GOTPCRELX,
        ]
        .contains(&r_type),
        (Architecture::Aarch64, RelocationFlags::Elf { r_type }) => [
            elf::R_AARCH64_ADR_GOT_PAGE,
            elf::R_AARCH64_LD64_GOT_LO12_NC,
            elf::R_AARCH64_CALL26,
            elf::R_AARCH64_ADR_PREL_PG_HI21,
            elf::R_AARCH64_ADD_ABS_LO12_NC,
            elf::R_AARCH64_LDST32_ABS_LO12_NC,
            elf::R_AARCH64_LDST64_ABS_LO12_NC,
            elf::R_AARCH64_LDST128_ABS_LO12_NC,
            elf::R_AARCH64_JUMP26,
        ]
        .contains(&r_type),
        (Architecture::Riscv64, RelocationFlags::Elf { r_type }) => [
            elf::R_RISCV_GOT_HI20,
            elf::R_RISCV_PCREL_HI20,
            elf::R_RISCV_PCREL_LO12_I,
            elf::R_RISCV_CALL_PLT,
            elf::R_RISCV_RELAX,
        ]
        .contains(&r_type),
        (Architecture::X86_64, RelocationFlags::MachO { r_type, .. }) => [
            macho::X86_64_RELOC_SIGNED,
            macho::X86_64_RELOC_BRANCH,
            macho::X86_64_RELOC_GOT,
            macho::X86_64_RELOC_GOT_LOAD,
        ]
        .contains(&r_type),
        (Architecture::Aarch64, RelocationFlags::MachO { r_type, .. }) => [
            macho::ARM64_RELOC_BRANCH26,
            macho::ARM64_RELOC_PAGE21,
            macho::ARM64_RELOC_PAGEOFF12,
            macho::ARM64_RELOC_GOT_LOAD_PAGE21,
            macho::ARM64_RELOC_GOT_LOAD_PAGEOFF12,
            macho::ARM64_RELOC_ADDEND,
        ]
        .contains(&r_type),
        (Architecture::X86_64, RelocationFlags::Coff { typ }) => {
            [pe::IMAGE_REL_AMD64_REL32, pe::IMAGE_REL_AMD64_ADDR64].contains(&typ)
        }
        (Architecture::Aarch64, RelocationFlags::Coff { typ }) => [
            pe::IMAGE_REL_ARM64_BRANCH26,
            pe::IMAGE_REL_ARM64_PAGEBASE_REL21,
            pe::IMAGE_REL_ARM64_PAGEOFFSET_12A,
            pe::IMAGE_REL_ARM64_PAGEOFFSET_12L,
        ]
        .contains(&typ),
        _ => false,
    }
}

fn read<'a>(object: &'a ObjectFile, what: &str) -> File<'a> {
    File::parse(object.as_bytes()).unwrap_or_else(|e| panic!("{what}: {e}"))
}

#[test]
fn symbols_are_those_of_a_library_and_the_c_api() {
    for (what, object, _) in made() {
        assert_eq!(object.functions(), ["zero", "name", "check"]);
        let file = read(object, what);
        let expected = with([
            "__tvm_ffi_zero",
            "__tvm_ffi_name",
            "__tvm_ffi_check",
            "__tvm_ffi__metadata_zero",
            "__tvm_ffi__metadata_name",
            "__tvm_ffi__metadata_check",
            "__tvm_ffi__doc_zero",
            "__tvm_ffi__library_ctx",
        ]);
        assert_eq!(exported(&file), expected, "{what}");
        // symbols of Windows: the stack probe for large frames, and a mark for code that uses floats
        let system = ["__chkstk", "___chkstk_ms", "_fltused"];
        let others: Vec<String> = undefined(&file)
            .into_iter()
            .filter(|name| !name.starts_with("TVMFFI") && name != "my_name")
            .filter(|name| file.format() != BinaryFormat::Coff || !system.contains(&&**name))
            .collect();
        assert!(others.is_empty(), "{what}: {others:?}");
        assert!(undefined(&file).contains("my_name"), "{what}");
    }
}

#[test]
fn a_system_librarys_symbols_have_its_prefix() {
    for (what, _, object) in made() {
        let file = read(object, what);
        let expected = with([
            "__tvm_ffi_demo_zero",
            "__tvm_ffi_demo_name",
            "__tvm_ffi_demo_check",
            "demo___tvm_ffi__metadata_zero",
            "demo___tvm_ffi__metadata_name",
            "demo___tvm_ffi__metadata_check",
            "demo___tvm_ffi__doc_zero",
            "demo___tvm_ffi__library_ctx",
        ]);
        assert_eq!(exported(&file), expected, "{what}");
        for needed in ["TVMFFIEnvModRegisterSystemLibSymbol", "demo___tvm_ffi__library_bin"] {
            assert!(undefined(&file).contains(needed), "{what}: {needed}");
        }
        let start = match file.format() {
            BinaryFormat::Elf => ".init_array",
            BinaryFormat::MachO => "__mod_init_func",
            // LLVM uses this one for MinGW, whose C library reads both
            _ if file.section_by_name(".ctors").is_some_and(|ctors| ctors.size() > 0) => ".ctors",
            _ => ".CRT$XCU",
        };
        let start = file.section_by_name(start).unwrap_or_else(|| panic!("{what}: no {start}"));
        assert_eq!((start.size(), start.relocations().count()), (8, 1), "{what}");
    }
}

#[test]
fn sections_are_what_linkers_and_unwinders_expect() {
    for (what, object, _) in made() {
        let file = read(object, what);
        let code = file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
        let functions = code.filter(|s| s.size() > 0 || file.format() != BinaryFormat::Elf).count() as u64;
        match file.format() {
            BinaryFormat::Elf => {
                let stack = file.section_by_name(".note.GNU-stack").unwrap_or_else(|| panic!("{what}"));
                assert_eq!(stack.flags(), object::SectionFlags::Elf { sh_flags: 0 }, "{what}");
                let frames = file.section_by_name(".eh_frame").unwrap_or_else(|| panic!("{what}"));
                assert!(frames.relocations().count() as u64 >= functions, "{what}");
            }
            BinaryFormat::MachO => {
                let tables = ["__eh_frame", "__compact_unwind"].map(|name| file.section_by_name(name));
                assert!(tables.into_iter().flatten().any(|table| table.relocations().count() > 0), "{what}");
            }
            _ => {
                let table = file.section_by_name(".pdata").unwrap_or_else(|| panic!("{what}"));
                let entry = if file.architecture() == Architecture::X86_64 { 12 } else { 8 };
                assert!(table.size() >= 8 * entry && table.size().is_multiple_of(entry), "{what}");
                let directives = file.section_by_name(".drectve").unwrap_or_else(|| panic!("{what}"));
                let text = String::from_utf8_lossy(directives.data().unwrap()).to_lowercase();
                assert!(text.contains("export:__tvm_ffi_zero"), "{what}: {text}");
                assert!(text.contains("export:__tvm_ffi__library_ctx,data"), "{what}: {text}");
            }
        }
        let mut written = 0;
        for section in file.sections() {
            match section.kind() {
                SectionKind::Text => {
                    for (offset, relocation) in section.relocations() {
                        let flags = relocation.flags();
                        assert!(allowed_in_code(&file, flags), "{what}: {flags:?} at {offset:#x}");
                    }
                }
                SectionKind::Data | SectionKind::UninitializedData => written += section.size(),
                _ => {}
            }
        }
        let common: u64 = file.symbols().filter(|s| s.is_common()).count() as u64 * 8;
        assert_eq!(written + common, 8, "{what}: only the context is written");
    }
}

/// Hash maps iterate in another order each time.
#[test]
fn the_same_input_gives_the_same_bytes() {
    for ((backend, target), (what, _, object)) in all().zip(made()) {
        assert!(
            library(backend, target).system_library("demo_").carries_modules().emit().unwrap() == *object,
            "{what}"
        );
    }
}

#[test]
fn a_target_that_no_backend_has_is_an_error() {
    for &backend in Backend::ALL {
        for target in ["wasm32-unknown-unknown", "i686-unknown-linux-gnu", "powerpc64-unknown-linux-gnu"] {
            let error = library(backend, target).emit().unwrap_err().to_string();
            assert!(error.contains(target.split('-').next().unwrap()), "{error}");
            // the message lists the supported targets
            let known = error.contains("x86-64, AArch64") || error.contains("little-endian");
            assert!(known && error.contains("64-bit RISC-V"), "{error}");
        }
    }
    #[cfg(feature = "cranelift")]
    {
        let error = library(Backend::Cranelift, TARGETS[7]).emit().unwrap_err().to_string();
        assert!(error.starts_with("can't make an object file for `aarch64-pc-windows-msvc`"), "{error}");
    }
}

/// Each saved register has its own slot, directly below the frame pointer.
#[test]
#[cfg(feature = "cranelift")]
fn windows_finds_saved_registers() {
    let object = library(Backend::Cranelift, "x86_64-pc-windows-msvc").emit().unwrap();
    let file = read(&object, "COFF");
    let infos = file.section_by_name(".xdata").unwrap().data().unwrap();
    let entries = file.section_by_name(".pdata").unwrap().size() / 12;
    let (mut rest, mut count, mut max) = (infos, 0, 0);
    // UNWIND_INFO: version, size of prologue, number of codes, frame register and its offset, codes
    while let [1, _, nodes, frame, ..] = *rest {
        let codes: Vec<[u8; 2]> = rest[4..4 + 2 * usize::from(nodes)].chunks(2).map(|c| [c[0], c[1]]).collect();
        assert_eq!(frame & 15, 5, "rbp");
        let mut places = BTreeSet::new();
        let mut at = codes.iter();
        while let Some([_, code]) = at.next() {
            let (scale, width) = match code & 15 {
                4 => (8, 8),
                8 => (16, 16),
                _ => continue,
            };
            let place = scale * u32::from(u16::from_le_bytes(*at.next().unwrap()));
            assert!(places.insert(place), "two registers at {place}");
            assert!(place + width <= 16 * u32::from(frame >> 4), "{place} is not below the frame pointer");
        }
        max = max.max(places.len());
        count += 1;
        rest = &rest[4 + 2 * usize::from(nodes).next_multiple_of(2)..];
    }
    assert!(rest.is_empty() && count == entries && max >= 6, "{count} of {entries}, {max}");
}

/// A macOS library as its linker writes it with `-undefined dynamic_lookup`: each undefined symbol may be in any
/// library.
#[test]
fn libraries_of_macos_with_open_symbols_are_inspected() {
    let library = LibraryBuilder::new().target("aarch64-apple-darwin".parse().unwrap());
    let object = library.function(&sig("f(x: Tensor([n], float32))"), &Kernel::symbol("kernel")).emit().unwrap();
    let mut bytes = object.into_bytes();
    let number = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    bytes[12..16].copy_from_slice(&macho::MH_DYLIB.to_le_bytes());
    let flags = number(&bytes, 24) | macho::MH_TWOLEVEL;
    bytes[24..28].copy_from_slice(&flags.to_le_bytes());
    // the commands follow a header of 32 bytes, each with its type and size
    let mut command = 32;
    while number(&bytes, command) != macho::LC_SYMTAB {
        command += number(&bytes, command + 4) as usize;
    }
    let (start, count) = (number(&bytes, command + 8) as usize, number(&bytes, command + 12) as usize);
    for symbol in bytes[start..][..16 * count].chunks_exact_mut(16) {
        if symbol[4] & macho::N_TYPE == macho::N_UNDF {
            symbol[7] = macho::DYNAMIC_LOOKUP_ORDINAL;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.dylib");
    std::fs::write(&path, &bytes).unwrap();
    let seen = inspect(&path).unwrap();
    assert!(seen.linked && seen.has_context && seen.format == "Mach-O");
    let function = &seen.functions[0];
    assert_eq!((function.name.as_str(), function.signature.as_deref()), ("f", Some("f(x: Tensor([n], float32))")));
    assert!(seen.needed_symbols.iter().any(|symbol| symbol == "kernel"), "{:?}", seen.needed_symbols);
}

#[test]
fn the_needed_version_of_tvm_ffi_is_that_of_the_newest_function() {
    let needed = |signature: &str, body: &str| {
        let kernel = Kernel::text(body, std::iter::empty::<(String, Image)>()).unwrap();
        let object = LibraryBuilder::new().function(&sig(signature), &kernel).emit().unwrap().into_bytes();
        inspect_bytes(&object, "f.o").unwrap().needed_tvm_ffi.map(|version| version.to_string())
    };
    assert_eq!(needed("f(x: int64) -> int64", "{ return x + 1; }").as_deref(), Some("0.1.0"));
    // a one-time handle
    let calls = "{ let y = call global tests.twice(x) -> int64; return y; }";
    assert_eq!(needed("f(x: int64) -> int64", calls).as_deref(), Some("0.1.5"));
    // a view
    let allocates = "{ let y = alloc([n], float32, strides=[2], like=x); }";
    assert_eq!(needed("f(x: Tensor([n], float32))", allocates).as_deref(), Some("0.1.6"));
}
