//! Modules packed into objects of every format, and read back. Also archives, and broken files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;
use object::{BinaryFormat, Object, ObjectSection, ObjectSymbol, SectionFlags};
use tvm_ffi_codegen::artifact::{
    ArchiveError, ArchiveInput, PackBuilder, PackError, Payload, Triple, archive_bytes, inspect, write_archive,
};
use tvm_ffi_codegen::runtime::unstable::library_bin::{LibraryBin, LibraryBinError, Node};

const TARGETS: [(&str, BinaryFormat); 8] = [
    ("x86_64-unknown-linux-gnu", BinaryFormat::Elf),
    ("aarch64-unknown-linux-gnu", BinaryFormat::Elf),
    ("riscv64gc-unknown-linux-gnu", BinaryFormat::Elf),
    ("s390x-unknown-linux-gnu", BinaryFormat::Elf),
    ("x86_64-apple-darwin", BinaryFormat::MachO),
    ("aarch64-apple-darwin", BinaryFormat::MachO),
    ("x86_64-pc-windows-msvc", BinaryFormat::Coff),
    ("aarch64-pc-windows-msvc", BinaryFormat::Coff),
];

fn triple(text: &str) -> Triple {
    text.parse().unwrap()
}

fn host() -> Triple {
    Triple::host()
}

/// A payload of this size that looks nothing like a block of zeros.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A library that imports a module from a file. That one imports a module from memory, which imports an empty one.
fn sample(file: &Path) -> PackBuilder {
    let mut bin = PackBuilder::new();
    let library = bin.library();
    let large = bin.module("large", Payload::File(file.to_owned()));
    let (small, empty) =
        (bin.module("small", Payload::Bytes(b"few".to_vec())), bin.module("empty", Payload::Bytes(vec![])));
    bin.import(library, large).import(large, small).import(library, small).import(small, empty);
    bin
}

#[test]
fn every_format_holds_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (payload, output) = (folder.path().join("payload"), folder.path().join("bin.o"));
    let content = noise(300_001);
    fs::write(&payload, &content).unwrap();
    for (target, format) in TARGETS {
        sample(&payload).symbol_prefix("my_").write_object(&triple(target), &output).unwrap();
        let bytes = fs::read(&output).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        assert_eq!(file.format(), format);
        assert_eq!(file.is_little_endian(), !target.starts_with("s390x"));
        let name =
            if format == BinaryFormat::MachO { "_my___tvm_ffi__library_bin" } else { "my___tvm_ffi__library_bin" };
        let symbol = file.symbol_by_name(name).unwrap();
        assert!(symbol.is_global() && !symbol.is_undefined());
        let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
        if let (true, SectionFlags::Elf { sh_flags }) = (target.starts_with("x86_64"), section.flags()) {
            assert_eq!((section.name(), sh_flags), (Ok(".lrodata"), 0x1000_0002));
        }
        assert_eq!(format == BinaryFormat::Elf, file.section_by_name(".note.GNU-stack").is_some());
        let start = (symbol.address() - section.address()) as usize;
        let bin = LibraryBin::parse(&section.data().unwrap()[start..]).unwrap();
        let expected = [
            Node::Library,
            Node::Module { kind: "large", payload: &content },
            Node::Module { kind: "small", payload: b"few" },
            Node::Module { kind: "empty", payload: b"" },
        ];
        assert_eq!(bin.nodes(), expected, "{target}");
        assert_eq!((bin.children(0), bin.children(1), bin.children(2)), (&[1, 2][..], &[2][..], &[3][..]));

        sample(&payload).symbol_prefix("my_").write_object(&triple(target), &output).unwrap();
        assert_eq!(fs::read(&output).unwrap(), bytes, "the same bytes again");
        let seen = inspect(&output).unwrap();
        let sizes: Vec<_> = seen.modules.unwrap().iter().map(|module| module.size).collect();
        assert_eq!(sizes, [0, 300_001, 3, 0]);
    }
}

#[test]
fn what_cannot_be_packed_is_refused_and_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let (payload, output) = (folder.path().join("payload"), folder.path().join("bin.o"));
    fs::write(&payload, "some").unwrap();
    fs::write(&output, "before").unwrap();
    let fails = |bin: &PackBuilder, target: &str| {
        let error = bin.write_object(&triple(target), &output).unwrap_err();
        assert_eq!(fs::read(&output).unwrap(), b"before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
        error
    };
    let of_file = |path: PathBuf| {
        let mut bin = PackBuilder::new();
        let (library, module) = (bin.library(), bin.module("kind", Payload::File(path)));
        bin.import(library, module);
        bin
    };
    // five sparse GiB, none of which are read
    let huge = folder.path().join("huge");
    File::create(&huge).unwrap().set_len(5 << 30).unwrap();
    let elf = "x86_64-unknown-linux-gnu";
    for target in ["x86_64-apple-darwin", "x86_64-pc-windows-msvc"] {
        assert!(matches!(fails(&of_file(huge.clone()), target), PackError::TooLarge { size, .. } if size > 5 << 30));
    }
    let error = fails(&of_file("missing".into()), elf);
    assert!(matches!(&error, PackError::Payload { path, .. } if path == Path::new("missing")), "{error}");
    assert!(fails(&of_file(folder.path().to_owned()), elf).to_string().ends_with("expected a regular file"));
    assert!(matches!(fails(&of_file(payload.clone()), "wasm32-unknown-unknown"), PackError::Target(_)));
    // a file that claims to have size 0, but has bytes
    #[cfg(target_os = "linux")]
    assert!(matches!(fails(&of_file("/proc/self/status".into()), elf), PackError::Changed { expected: 0, .. }));

    assert!(matches!(fails(&PackBuilder::new(), elf), PackError::Tree(LibraryBinError::NoNodes { .. })));
    let mut twice = PackBuilder::new();
    for _ in 0..2 {
        twice.library();
    }
    assert!(matches!(fails(&twice, elf), PackError::Tree(LibraryBinError::SecondLibrary { .. })));
    let mut cycle = of_file(payload.clone());
    let module = cycle.module("other", Payload::Bytes(vec![]));
    cycle.import(module, module);
    assert!(matches!(fails(&cycle, elf), PackError::Tree(LibraryBinError::Cycle { .. })));

    let error = of_file(payload).write_object(&host(), folder.path()).unwrap_err();
    assert!(matches!(error, PackError::Output { .. }), "{error}");
}

/// In COFF a prefix becomes a part of a linker option.
#[test]
fn a_prefix_that_no_symbol_has_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (target, _) in TARGETS {
        for prefix in ["a b", "x\" -include:\"evil", "1a", "a,b", "-x"] {
            let mut bin = PackBuilder::new();
            bin.library();
            let error =
                bin.symbol_prefix(prefix).write_object(&triple(target), folder.path().join("bin.o")).unwrap_err();
            assert!(matches!(&error, PackError::Prefix { prefix: found } if found == prefix), "{error}");
        }
    }
}

#[test]
fn broken_files_are_told_and_never_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("good.o"), folder.path().join("bad.o"));
    for (target, _) in [TARGETS[0], TARGETS[4], TARGETS[6]] {
        let mut bin = PackBuilder::new();
        let (library, module) = (bin.library(), bin.module("kind", Payload::Bytes(b"payload".to_vec())));
        bin.import(library, module).write_object(&triple(target), &good).unwrap();
        let bytes = fs::read(&good).unwrap();
        let mut refused = 0;
        let mut try_it = |bytes: &[u8]| {
            // some file systems write back a file that is replaced
            let _ = fs::remove_file(&bad);
            fs::write(&bad, bytes).unwrap();
            refused += usize::from(inspect(&bad).is_err());
        };
        (0..bytes.len()).for_each(|len| try_it(&bytes[..len]));
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            try_it(&bytes);
        }
        assert!(refused > bytes.len() / 2, "{target}: {refused} of {} were refused", 2 * bytes.len());
    }
}

#[test]
fn archives_have_their_members_and_symbols() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (target, _) in TARGETS {
        let target = triple(target);
        for (prefix, name) in [("a_", "a.o"), ("b_", "b.o")] {
            let mut bin = PackBuilder::new();
            bin.library();
            bin.symbol_prefix(prefix).write_object(&target, path(name)).unwrap();
        }
        let object = ArchiveInput::Object { name: "in_memory.o".to_owned(), bytes: fs::read(path("a.o")).unwrap() };
        write_archive(&target, &[object, ArchiveInput::File(path("b.o"))], path("one.a")).unwrap();
        write_archive(&target, &[ArchiveInput::File(path("one.a")), ArchiveInput::File(path("a.o"))], path("two.a"))
            .unwrap();
        let bytes = fs::read(path("two.a")).unwrap();
        let archive = ArchiveFile::parse(&*bytes).unwrap();
        let members: Vec<_> =
            archive.members().map(|m| String::from_utf8_lossy(m.unwrap().name()).into_owned()).collect();
        assert_eq!(members, ["in_memory.o", "b.o", "a.o"], "{target}");
        let symbols =
            archive.symbols().unwrap().unwrap().map(|s| String::from_utf8_lossy(s.unwrap().name()).into_owned());
        assert!(symbols.filter(|name| name.contains("b___tvm_ffi__library_bin")).count() == 1);
        write_archive(&target, &[ArchiveInput::File(path("one.a")), ArchiveInput::File(path("a.o"))], path("again.a"))
            .unwrap();
        assert_eq!(fs::read(path("again.a")).unwrap(), bytes);
    }
    // the last target's objects don't fit this one
    let error = write_archive(&triple(TARGETS[0].0), &[ArchiveInput::File(path("a.o"))], path("x.a")).unwrap_err();
    assert!(
        matches!(&error, ArchiveError::Member { problem, .. } if problem.starts_with("expected an object of Elf")),
        "{error}"
    );
    assert!(!path("x.a").exists());
}

/// The objects of two members, each with its own symbol.
fn small_objects(target: &Triple, folder: &Path) -> [Vec<u8>; 2] {
    ["a_", "b_"].map(|prefix| {
        let (mut bin, path) = (PackBuilder::new(), folder.join("small.o"));
        bin.library();
        bin.symbol_prefix(prefix).write_object(target, &path).unwrap();
        fs::read(path).unwrap()
    })
}

/// Archive formats count the bytes of a name, whatever its characters.
#[test]
fn members_keep_names_of_any_script() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "ядро.o",                  // 9 bytes: in the member's header
        "é.o",                     // 4 bytes
        "核核核核a.o",             // 15 bytes: the maximum that a header has room for
        "核核核核ab.o",            // 16 bytes: in the table of long names
        "ядро-с-длинным-именем.o", // many more
        "plain.o",
        "with space and (brackets)",
        "é.o", // a name may occur twice
    ];
    for (target, _) in TARGETS {
        let target = triple(target);
        let [first, second] = small_objects(&target, folder.path());
        let content = |i: usize| if i.is_multiple_of(2) { first.clone() } else { second.clone() };
        let input = |(i, name): (usize, &&str)| ArchiveInput::Object { name: (*name).to_owned(), bytes: content(i) };
        let inputs: Vec<_> = names.iter().enumerate().map(input).collect();
        let (one, two) = (folder.path().join("one.a"), folder.path().join("two.a"));
        write_archive(&target, &inputs, &one).unwrap();
        // names are preserved when an archive is added to another one
        write_archive(&target, &[ArchiveInput::File(one.clone())], &two).unwrap();
        assert!(archive_bytes(&target, &inputs).unwrap() == fs::read(&one).unwrap(), "{target}");
        let whole = ArchiveInput::Object { name: "one.a".to_owned(), bytes: fs::read(&one).unwrap() };
        assert!(archive_bytes(&target, &[whole]).unwrap() == fs::read(&two).unwrap(), "{target}");
        for path in [one, two] {
            let bytes = fs::read(path).unwrap();
            let archive = ArchiveFile::parse(&*bytes).unwrap();
            let members: Vec<_> = archive.members().map(Result::unwrap).collect();
            let found: Vec<_> = members.iter().map(|member| String::from_utf8_lossy(member.name())).collect();
            assert_eq!(found, names, "{target}");
            for (i, member) in members.iter().enumerate() {
                let expected = content(i);
                assert!(member.data(&*bytes).unwrap().starts_with(&expected), "{target} {}", names[i]);
            }
            assert!(archive.symbols().unwrap().unwrap().all(|symbol| symbol.is_ok()));
        }
    }
}

#[test]
fn members_without_a_name_of_their_own_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.a");
    for (target, _) in TARGETS {
        let target = triple(target);
        let [object, _] = small_objects(&target, folder.path());
        let try_it = |name: &str| {
            let input = ArchiveInput::Object { name: name.to_owned(), bytes: object.clone() };
            write_archive(&target, &[input], &output)
        };
        for name in ["", "/", "//", "folder/", ".", "..", "folder/..", "\\", "a\0b.o", "a\nb.o"] {
            let error = try_it(name).unwrap_err();
            let ArchiveError::Member { name: said, problem } = &error else { panic!("{name:?}: {error}") };
            assert_eq!((said.as_str(), problem.starts_with("expected a file's name")), (name, true), "{error}");
            assert!(!output.exists(), "{name:?}");
        }
        // macOS linkers take a member with this name for the symbol table
        let symbol_table = try_it("__.SYMDEF");
        assert_eq!(symbol_table.is_err(), target.to_string().contains("apple"), "{target}");
        let _ = fs::remove_file(&output);
        // the name is the last part of a path
        try_it("folder/of/a.o").unwrap();
        let bytes = fs::read(&output).unwrap();
        let member = ArchiveFile::parse(&*bytes).unwrap().members().next().unwrap().unwrap();
        assert_eq!(member.name(), b"a.o");
        fs::remove_file(&output).unwrap();
    }
}
