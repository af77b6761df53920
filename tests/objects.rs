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

/// The parts of an object that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Summary {
    /// Machine code with its relocations. Local targets are identified by section and offset.
    code: Part,
    /// Read-only data with its relocations.
    data: Part,
    /// Names, kinds and locations of symbols.
    symbols: Part,
}

impl Summary {
    fn of(bytes: &[u8]) -> Result<Self, object::Error> {
        let file = object::File::parse(bytes)?;
        let mut parts = [const { (0, String::new()) }; 2];
        let mut checksums = [Hasher::new(), Hasher::new()];
        for section in file.sections() {
            let part = match section.kind() {
                SectionKind::Text => 0,
                SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::ReadOnlyDataWithRel => 1,
                _ => continue,
            };
            let data = section.uncompressed_data()?;
            parts[part].0 += data.len() as u64;
            checksums[part].update(&data);
            for (offset, relocation) in section.relocations() {
                let target = match relocation.target() {
                    RelocationTarget::Symbol(index) => symbol(&file, &file.symbol_by_index(index)?)?,
                    other => format!("{other:?}"),
                };
                let (flags, addend) = (relocation.flags(), relocation.addend());
                let _ = writeln!(parts[part].1, "{offset} {flags:?} {target} {addend}");
            }
        }
        let mut names: Vec<String> = Vec::new();
        for each in file.symbols() {
            names.push(format!("{} {}", each.name()?, symbol(&file, &each)?));
        }
        names.sort();
        let mut symbols = Hasher::new();
        symbols.update(names.join("\n").as_bytes());
        let [code, data] = [0, 1].map(|part| {
            let mut checksum = checksums[part].clone();
            checksum.update(parts[part].1.as_bytes());
            Part { size: parts[part].0, checksum: checksum.finalize() }
        });
        let symbols = Part { size: names.len() as u64, checksum: symbols.finalize() };
        Ok(Summary { code, data, symbols })
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
        write!(f, "{} {} {}", self.code, self.data, self.symbols)
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
        "# Objects of the fixtures' signatures: bytes of code, bytes of read-only data, number of symbols, each with a checksum (CRC-32).\n\
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

/// The total size of code and data in a row.
fn bytes(summary: &str) -> i64 {
    summary.split(' ').take(2).filter_map(|part| part.split(':').next()?.parse::<i64>().ok()).sum()
}

/// The signatures whose rows differ, with the difference in bytes.
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
                        let by = bytes(new) - bytes(old);
                        (old != new).then(|| format!("\n  {target} {by:+} bytes: {old} -> {new}"))
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
