//! The objects of every fixture signature, for each machine and backend, compared with a committed table
//! (`fixtures/objects.table`). So a change of generated code is visible in review.
//!
//! `cargo xtask test --only objects` compares them, and updates the table with `--bless`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use crc32fast::Hasher;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind, SymbolSection};
use tvm_ffi_codegen::Backend;
use tvm_ffi_codegen::artifact::{LibraryBuilder, Triple};

use crate::fixtures::signatures;
use crate::support::parallel;

/// If set to 1, the table and the listings are written instead of compared.
pub const BLESS: &str = "TVM_FFI_CODEGEN_BLESS_OBJECTS";
const TABLE: &str = "fixtures/objects.table";

/// The machines and backends of the table's columns, with their names there.
const TARGETS: &[(&str, &str, Backend)] = &[
    ("cranelift/x86_64", "x86_64-unknown-linux-gnu", Backend::Cranelift),
    ("cranelift/aarch64", "aarch64-unknown-linux-gnu", Backend::Cranelift),
    ("cranelift/riscv64", "riscv64gc-unknown-linux-gnu", Backend::Cranelift),
    ("cranelift/s390x", "s390x-unknown-linux-gnu", Backend::Cranelift),
    #[cfg(feature = "llvm22-1")]
    ("llvm22/x86_64", "x86_64-unknown-linux-gnu", Backend::Llvm),
    #[cfg(feature = "llvm22-1")]
    ("llvm22/aarch64", "aarch64-unknown-linux-gnu", Backend::Llvm),
];

/// A size in bytes or entries, and a checksum of the contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Part {
    size: u64,
    checksum: u32,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:08x}", self.size, self.checksum)
    }
}

/// Sections of one kind.
#[derive(Default)]
struct Contents {
    size: u64,
    bytes: Hasher,
    relocations: String,
}

impl Contents {
    fn add<'a>(&mut self, file: &object::File<'a>, section: &object::Section<'a, '_>) -> Result<(), object::Error> {
        self.size += section.size();
        self.bytes.update(&section.uncompressed_data()?);
        for (offset, relocation) in section.relocations() {
            let target = match relocation.target() {
                RelocationTarget::Symbol(index) => symbol(file, &file.symbol_by_index(index)?)?,
                other => format!("{other:?}"),
            };
            let (flags, addend) = (relocation.flags(), relocation.addend());
            let _ = writeln!(self.relocations, "{offset} {flags:?} {target} {addend}");
        }
        Ok(())
    }

    fn part(&self) -> Part {
        let mut checksum = self.bytes.clone();
        checksum.update(self.relocations.as_bytes());
        Part { size: self.size, checksum: checksum.finalize() }
    }
}

/// The properties of an object that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Summary {
    /// Machine code with its relocations. Local targets are identified by section and offset.
    code: Part,
    /// Data with its relocations.
    data: Part,
    /// Names, kinds and locations of symbols.
    symbols: Part,
    /// Bytes of read-only data.
    read_only: u64,
    /// Data that is written at run time or by the loader: state, lists of constructors, and addresses.
    writable: Part,
    /// Unwind tables.
    unwind: Part,
    /// The number of relocations in all of these.
    relocations: u64,
}

impl Summary {
    fn of(bytes: &[u8]) -> Result<Self, object::Error> {
        let file = object::File::parse(bytes)?;
        let [mut code, mut data, mut writable, mut unwind] = <[Contents; 4]>::default();
        let (mut read_only, mut relocations) = (0, 0);
        for section in file.sections() {
            let (name, kind) = (section.name()?, section.kind());
            match kind {
                SectionKind::Text => code.add(&file, &section)?,
                SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::ReadOnlyDataWithRel => {
                    data.add(&file, &section)?;
                }
                _ => {}
            }
            let is_list = name.starts_with(".init_array") || name.starts_with(".fini_array");
            match kind {
                SectionKind::Text => {}
                _ if name == ".eh_frame" => unwind.add(&file, &section)?,
                SectionKind::Data | SectionKind::UninitializedData => writable.add(&file, &section)?,
                _ if is_list => writable.add(&file, &section)?,
                SectionKind::ReadOnlyData | SectionKind::ReadOnlyDataWithRel => read_only += section.size(),
                _ => continue,
            }
            relocations += section.relocations().count() as u64;
        }
        let mut names: Vec<String> = Vec::new();
        for each in file.symbols() {
            names.push(format!("{} {}", each.name()?, symbol(&file, &each)?));
        }
        names.sort();
        let mut symbols = Hasher::new();
        symbols.update(names.join("\n").as_bytes());
        let symbols = Part { size: names.len() as u64, checksum: symbols.finalize() };
        let [code, data, writable, unwind] = [code, data, writable, unwind].map(|contents| contents.part());
        Ok(Summary { code, data, symbols, read_only, writable, unwind, relocations })
    }

    fn bytes(self) -> u64 {
        self.code.size + self.data.size
    }
}

/// A symbol in a form independent of local names: an import by its name, any other by its location.
fn symbol<'a>(file: &object::File<'a>, symbol: &impl ObjectSymbol<'a>) -> Result<String, object::Error> {
    let (kind, global, weak) = (symbol.kind(), symbol.is_global(), symbol.is_weak());
    let place = match symbol.section() {
        SymbolSection::Section(index) => {
            format!("{}+{}", file.section_by_index(index)?.name()?, symbol.address())
        }
        SymbolSection::Undefined => symbol.name()?.to_owned(),
        other => format!("{other:?}"),
    };
    Ok(format!("{place} {kind:?} {global} {weak}"))
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { code, data, symbols, read_only, writable, unwind, relocations } = self;
        write!(f, "{code} {data} {symbols}  ro={read_only} rw={writable} unwind={unwind} relocs={relocations}")
    }
}

/// The table: for each heading, one line per target.
type Table = BTreeMap<String, BTreeMap<String, String>>;

/// The table's line with the version of LLVM that made its rows.
const LLVM: &str = "# LLVM ";

/// The version of the linked LLVM.
fn llvm_version() -> Option<String> {
    #[cfg(feature = "llvm22-1")]
    {
        let (major, minor, patch) = inkwell::support::get_llvm_version();
        Some(format!("{major}.{minor}.{patch}"))
    }
    #[cfg(not(feature = "llvm22-1"))]
    None
}

/// The version of the LLVM that made the table's rows.
fn tabled_llvm(table: &str) -> &str {
    table.lines().find_map(|line| line.strip_prefix(LLVM)).unwrap_or_default()
}

/// Whether the linked LLVM is the one that made the table's rows.
pub fn compares_llvm() -> bool {
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE)).unwrap_or_default();
    llvm_version().is_some_and(|version| version == tabled_llvm(&table))
}

fn parse(text: &str) -> Table {
    let mut table = Table::new();
    let mut heading = String::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("  ").and_then(|row| row.split_once(' ')) {
            Some((target, summary)) => {
                table.entry(heading.clone()).or_default().insert(target.to_owned(), summary.trim().to_owned());
            }
            None => heading = line.to_owned(),
        }
    }
    table
}

fn print(table: &Table, llvm: &str) -> String {
    let mut text = format!(
        "# Objects of the fixtures' signatures: bytes of code, bytes of data, number of symbols, each with a checksum (CRC-32).\n\
         # By section: bytes of read-only data, of writable data (state, addresses, lists of constructors) and of unwind tables, number of relocations.\n\
         # Zeroed state, lists of constructors, and the unwind tables of x86-64 are not among the bytes of data.\n\
         # `cargo xtask test --only objects` compares, with `--bless` writes.\n{LLVM}{llvm}\n",
    );
    for (heading, rows) in table {
        let _ = writeln!(text, "\n{heading}");
        for (target, summary) in rows {
            let _ = writeln!(text, "  {target} {summary}");
        }
    }
    text
}

/// The columns of a row that begin with a number, by their names in messages.
fn sizes(summary: &str) -> Vec<(&str, i64)> {
    let mut first = ["code", "data", "symbols"].into_iter();
    let size = |column: &'_ str| column.split(':').next().and_then(|size| size.parse().ok()).unwrap_or_default();
    let columns = summary.split_whitespace().map(|column| match column.split_once('=') {
        Some((name, column)) => (name, size(column)),
        None => (first.next().unwrap_or_default(), size(column)),
    });
    columns.collect()
}

/// By how much the columns of a row grow: `code +16, unwind -4`.
fn growth(before: &str, after: &str) -> String {
    let before: BTreeMap<_, _> = sizes(before).into_iter().collect();
    let by = |(name, size): (&str, i64)| match size - before.get(name).copied().unwrap_or_default() {
        0 => None,
        by => Some(format!("{name} {by:+}")),
    };
    match sizes(after).into_iter().filter_map(by).collect::<Vec<_>>() {
        none if none.is_empty() => "the same sizes".to_owned(),
        columns => columns.join(", "),
    }
}

/// The signatures whose rows differ, with the growth of each.
fn differences(before: &Table, after: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for heading in before.keys().chain(after.keys().filter(|heading| !before.contains_key(*heading))) {
        match (before.get(heading), after.get(heading)) {
            (Some(_), None) => found.push(format!("{heading}\n  is gone")),
            (None, _) => found.push(format!("{heading}\n  is new")),
            (Some(before), Some(after)) => {
                let changed: Vec<_> = TARGETS
                    .iter()
                    .filter_map(|(target, ..)| {
                        let empty = String::new();
                        let (old, new) = (before.get(*target).unwrap_or(&empty), after.get(*target).unwrap_or(&empty));
                        (old != new).then(|| format!("\n  {target} {}: {old} -> {new}", growth(old, new)))
                    })
                    .collect();
                if !changed.is_empty() {
                    found.push(format!("{heading}{}", changed.concat()));
                }
            }
        }
    }
    found
}

#[test]
fn are_as_in_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    let bless = std::env::var_os(BLESS).is_some_and(|v| v == "1");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let before = parse(&text);
    let tabled_llvm = tabled_llvm(&text);
    let llvm = llvm_version().unwrap_or_else(|| tabled_llvm.to_owned());
    if !bless && llvm != tabled_llvm {
        println!("LLVM's rows are not compared: the table's are from LLVM {tabled_llvm}, and this is LLVM {llvm}");
    }
    let is_made = |backend| bless || backend == Backend::Cranelift || llvm == tabled_llvm;
    let made = parallel::map(&signatures(), |(heading, signature, kernel)| {
        let targets = TARGETS.iter().filter(|(.., backend)| is_made(*backend));
        let summaries = targets.map(|&(target, triple, backend)| {
            let triple: Triple = triple.parse().unwrap();
            let library = LibraryBuilder::new().target(triple).backend(backend).function(signature, kernel);
            let object = library.emit().unwrap_or_else(|e| panic!("{heading}, {target}: {e}"));
            (target, Summary::of(object.as_bytes()).unwrap_or_else(|e| panic!("{heading}: {e}")))
        });
        (heading.clone(), summaries.collect::<Vec<_>>())
    });
    let mut after = Table::new();
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (heading, summaries) in made {
        let rows = after.entry(heading.clone()).or_default();
        for (target, summary) in summaries {
            *totals.entry(target).or_default() += summary.bytes();
            rows.insert(target.to_owned(), summary.to_string());
        }
        // keep the rows that aren't made here
        for (target, summary) in before.get(&heading).into_iter().flatten() {
            rows.entry(target.clone()).or_insert_with(|| summary.clone());
        }
    }
    println!("{} signatures; bytes of code and data: {totals:?}", after.len());
    let found = differences(&before, &after);
    if bless {
        println!("{} signatures changed\n{}", found.len(), found.join("\n"));
        fs::write(&path, print(&after, &llvm)).unwrap();
        return;
    }
    assert!(
        found.is_empty(),
        "objects of {} signatures changed; `cargo xtask test --only objects --bless` accepts what they are now\n{}",
        found.len(),
        found.join("\n")
    );
}
