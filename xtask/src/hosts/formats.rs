//! Objects in formats that can't run here, checked with LLVM's tools.

use std::collections::BTreeSet;

use super::*;

/// The properties that an object must have.
struct Object {
    backend: &'static str,
    triple: &'static str,
    /// The format's name in `llvm-readobj`.
    format: &'static str,
    /// The prefix of a C name.
    mangled: &'static str,
    /// The relocation types allowed in a position-independent library.
    relocations: &'static [&'static str],
    /// Unwind tables.
    unwind: &'static [&'static str],
    /// Undefined symbols besides the C API and the kernels.
    helpers: &'static [&'static str],
}

const COFF_X86: &[&str] = &["IMAGE_REL_AMD64_ADDR32NB", "IMAGE_REL_AMD64_ADDR64", "IMAGE_REL_AMD64_REL32"];

const OBJECTS: [Object; 7] = [
    Object {
        backend: "cranelift",
        triple: "x86_64-apple-darwin",
        format: "Mach-O 64-bit x86-64",
        mangled: "_",
        relocations: &[
            "X86_64_RELOC_BRANCH",
            "X86_64_RELOC_GOT",
            "X86_64_RELOC_GOT_LOAD",
            "X86_64_RELOC_SUBTRACTOR",
            "X86_64_RELOC_UNSIGNED",
        ],
        unwind: &["__eh_frame"],
        helpers: &[],
    },
    Object {
        backend: "cranelift",
        triple: "aarch64-apple-darwin",
        format: "Mach-O arm64",
        mangled: "_",
        relocations: &[
            "ARM64_RELOC_BRANCH26",
            "ARM64_RELOC_GOT_LOAD_PAGE21",
            "ARM64_RELOC_GOT_LOAD_PAGEOFF12",
            "ARM64_RELOC_SUBTRACTOR",
            "ARM64_RELOC_UNSIGNED",
        ],
        unwind: &["__eh_frame"],
        helpers: &[],
    },
    Object {
        backend: "cranelift",
        triple: "x86_64-pc-windows-msvc",
        format: "COFF-x86-64",
        mangled: "",
        relocations: COFF_X86,
        unwind: &[".pdata", ".xdata"],
        helpers: &[],
    },
    Object {
        backend: "llvm",
        triple: "x86_64-apple-darwin",
        format: "Mach-O 64-bit x86-64",
        mangled: "_",
        relocations: &[
            "X86_64_RELOC_BRANCH",
            "X86_64_RELOC_GOT_LOAD",
            "X86_64_RELOC_SIGNED",
            "X86_64_RELOC_SUBTRACTOR",
            "X86_64_RELOC_UNSIGNED",
        ],
        unwind: &["__compact_unwind"],
        helpers: &["_bzero", "_memcpy", "_memset"],
    },
    Object {
        backend: "llvm",
        triple: "aarch64-apple-darwin",
        format: "Mach-O arm64",
        mangled: "_",
        relocations: &[
            "ARM64_RELOC_ADDEND",
            "ARM64_RELOC_BRANCH26",
            "ARM64_RELOC_GOT_LOAD_PAGE21",
            "ARM64_RELOC_GOT_LOAD_PAGEOFF12",
            "ARM64_RELOC_PAGE21",
            "ARM64_RELOC_PAGEOFF12",
            "ARM64_RELOC_SUBTRACTOR",
            "ARM64_RELOC_UNSIGNED",
        ],
        unwind: &["__compact_unwind"],
        helpers: &["_bzero", "_memcpy", "_memset"],
    },
    Object {
        backend: "llvm",
        triple: "x86_64-pc-windows-msvc",
        format: "COFF-x86-64",
        mangled: "",
        relocations: COFF_X86,
        unwind: &[".pdata", ".xdata"],
        // parts of every C runtime there: stack probes for large frames, and a marker that floats are used
        helpers: &["__chkstk", "_fltused"],
    },
    Object {
        backend: "llvm",
        triple: "aarch64-pc-windows-msvc",
        format: "COFF-ARM64",
        mangled: "",
        relocations: &[
            "IMAGE_REL_ARM64_ADDR32NB",
            "IMAGE_REL_ARM64_BRANCH26",
            "IMAGE_REL_ARM64_PAGEBASE_REL21",
            "IMAGE_REL_ARM64_PAGEOFFSET_12A",
            "IMAGE_REL_ARM64_PAGEOFFSET_12L",
        ],
        unwind: &[".pdata", ".xdata"],
        helpers: &["__chkstk", "_fltused"],
    },
];

/// Emits each object, and checks its format, symbols, relocations and tables.
pub fn formats() -> Result<Tests> {
    let names = kernel_names()?;
    let mut tests = Tests::default();
    for object in OBJECTS {
        let folder = folder("formats")?.join(format!("{}-{}", object.backend, object.triple));
        emit(&folder, object.backend, &["--target", object.triple])?;
        match object.check(&folder, &names) {
            Ok(()) => tests.passed += 1,
            Err(Failure { what, .. }) => {
                tests.failed += 1;
                return Err(Failure { what: format!("{}, {}: {what}", object.backend, object.triple), tests });
            }
        }
    }
    Ok(tests)
}

/// The names of the library's functions, which are also those of the kernels.
fn kernel_names() -> Result<BTreeSet<String>> {
    let path = source("signatures.txt");
    let text = fs::read_to_string(root().join(&path)).map_err(|e| failure(format!("{path}: {e}")))?;
    Ok(text.lines().filter_map(|line| Some(line.split_once(" @ ")?.1.to_owned())).collect())
}

impl Object {
    fn check(&self, folder: &Path, names: &BTreeSet<String>) -> Result {
        let [wrappers, packed] = ["wrappers.o", "bin.o"].map(|name| text(&folder.join(name)));
        for file in [&wrappers, &packed] {
            let header = cmd("llvm-readobj-22", &["--file-headers", file]).read()?;
            let format = header.lines().find_map(|line| line.strip_prefix("Format: ")).unwrap_or_default();
            require(format == self.format, || format!("{file} is of format `{format}`, not `{}`", self.format))?;
        }
        self.check_symbols(&wrappers, names)?;
        let packed = symbols(&packed, "--defined-only")?;
        require(packed.contains(&format!("{}__tvm_ffi__library_bin", self.mangled)), || format!("{packed:?}"))?;

        let relocations = cmd("llvm-objdump-22", &["--reloc", &wrappers]).read()?;
        let row = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
        let is_row = |line: &&str| line.starts_with(|c: char| c.is_ascii_hexdigit()) && line.contains("_REL");
        let kinds: BTreeSet<_> = relocations.lines().filter(is_row).filter_map(row).collect();
        let strange: Vec<_> = kinds.iter().filter(|kind| !self.relocations.contains(&kind.as_str())).collect();
        require(!kinds.is_empty() && strange.is_empty(), || {
            format!("relocations {kinds:?}, not expected {strange:?}")
        })?;

        let sections = cmd("llvm-readobj-22", &["--sections", &wrappers]).read()?;
        for section in self.unwind {
            let there = sections.lines().any(|line| line.trim().starts_with(&format!("Name: {section} ")));
            require(there, || format!("there is no section {section}"))?;
        }
        self.check_link(folder, names)?;
        // some function calls each kernel
        for name in names {
            let symbol = format!("{}{name}", self.mangled);
            let target = |line: &str| line.split_whitespace().nth(2).map(|to| to.split('@').next() == Some(&symbol));
            let called = relocations.lines().filter_map(target).any(|is| is);
            require(called, || format!("no relocation leads to {symbol}"))?;
        }
        Ok(())
    }

    /// Checks that a linker accepts the objects, and that the library exports all functions. Undefined symbols stay
    /// undefined, since there is no system to link with.
    fn check_link(&self, folder: &Path, names: &BTreeSet<String>) -> Result {
        let [wrappers, packed, library] = ["wrappers.o", "bin.o", "library"].map(|name| text(&folder.join(name)));
        let (linked, exports) = if self.triple.contains("apple") {
            let arch = if self.triple.starts_with("aarch64") { "arm64" } else { "x86_64" };
            let options = ["-dylib", "-arch", arch, "-platform_version", "macos", "12.0", "12.0"];
            let files = ["-undefined", "dynamic_lookup", &wrappers, &packed, "-o", &library];
            (cmd("ld64.lld-22", &[&options[..], &files].concat()), ["llvm-objdump-22", "--macho", "--exports-trie"])
        } else {
            let options = ["/dll", "/noentry", "/nodefaultlib", "/force:unresolved", "/errorlimit:1"];
            let output = format!("/out:{library}");
            let files = [&*wrappers, &packed, &output];
            (
                cmd("lld-link-22", &[&options[..], &files].concat()),
                ["llvm-readobj-22", "--file-headers", "--coff-exports"],
            )
        };
        linked.read()?;
        let exports = cmd(exports[0], &[&exports[1..], &[&library]].concat()).read()?;
        let words: BTreeSet<_> = exports.split_whitespace().collect();
        for name in names.iter().map(|name| format!("__tvm_ffi_{name}")).chain(["__tvm_ffi__library_bin".to_owned()]) {
            let symbol = format!("{}{name}", self.mangled);
            require(words.contains(&*symbol), || format!("{library} doesn't export {symbol}"))?;
        }
        Ok(())
    }

    /// Checks that the library has exactly the expected symbols. Only the C API, the kernels and `helpers` may be
    /// undefined.
    fn check_symbols(&self, file: &str, names: &BTreeSet<String>) -> Result {
        let mangled = |name: String| format!("{}{name}", self.mangled);
        let fixed = ["__tvm_ffi__library_ctx", "__tvm_ffi__doc_scale"].map(str::to_owned);
        let of = |name: &String| [format!("__tvm_ffi_{name}"), format!("__tvm_ffi__metadata_{name}")];
        let expected: BTreeSet<_> = names.iter().flat_map(of).chain(fixed).map(mangled).collect();
        let mut defined = symbols(file, "--defined-only")?;
        // COFF emulates weak symbols with a default symbol, and shares constants between all objects
        defined.retain(|name| !name.starts_with(".weak.") && !name.starts_with("__xmm@"));
        require(defined == expected, || {
            format!("exported {:?}", defined.symmetric_difference(&expected).collect::<Vec<_>>())
        })?;
        let api = mangled("TVMFFI".to_owned());
        let known = |name: &String| {
            let plain = name.strip_prefix(self.mangled).unwrap_or(name);
            name.starts_with(&api) || names.contains(plain) || self.helpers.contains(&name.as_str())
        };
        let strange: Vec<_> = symbols(file, "--undefined-only")?.into_iter().filter(|name| !known(name)).collect();
        require(strange.is_empty(), || format!("needs {strange:?}"))
    }
}

fn symbols(file: &str, which: &str) -> Result<BTreeSet<String>> {
    let printed = cmd("llvm-nm-22", &["--extern-only", which, "--format=just-symbols", file]).read()?;
    Ok(printed.lines().map(str::to_owned).collect())
}

fn require(condition: bool, what: impl FnOnce() -> String) -> Result {
    condition.then_some(()).ok_or_else(|| failure(what()))
}
