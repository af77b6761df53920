//! Lists in the sources are complete in the book: features, environment variables, options of the command line, names
//! and options of the C API, words of the text forms, and keys of JSON. `docstrings.py` checks the Python package.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{failed, read};
use crate::command::root;
use crate::run::Failure;

const FEATURES: &str = "docs/reference/features.md";
const ERRORS: &str = "docs/reference/errors.md";
const HOST_TEXT: &str = "docs/reference/host-text.md";
const SIGNATURES: &str = "docs/reference/signatures.md";
const LAUNCHES: &str = "docs/reference/launches.md";
const LIBRARIES: &str = "docs/howto/libraries.md";
const COMMAND_LINE: &str = "docs/reference/command-line.md";
const HEADER: &str = "clib/include/tvm_ffi_codegen.h";

/// The crates that users build, with their manifests.
const CRATES: [(&str, &str); 5] = [
    ("tvm-ffi-codegen", "Cargo.toml"),
    ("tvm-ffi-runtime", "runtime/Cargo.toml"),
    ("tvm-ffi-runtime-c", "runtime/clib/Cargo.toml"),
    ("tvm-ffi-codegen-cli", "cli/Cargo.toml"),
    ("tvm-ffi-codegen-c", "clib/Cargo.toml"),
];

/// The sources that users run.
const SHIPPED: [&str; 7] =
    ["src", "runtime/src", "runtime/clib/src", "runtime/clib/cxx", "cli/src", "clib/src", "python/tvm_ffi_codegen"];
/// Those among them that only tests have.
const TESTS: [&str; 2] = ["src/op_tests", "src/lower/worked_example.rs"];
/// Variables that dependencies read: the crates cc and llvm-sys.
const OF_DEPENDENCIES: &str =
    "CC_<target> TARGET_CC CFLAGS CFLAGS_<target> TARGET_CFLAGS LLVM_SYS_221_PREFIX LLVM_SYS_191_PREFIX";

/// Lists: the source, where the list starts and ends in it, and the page that has its strings or its fields as code.
const LISTS: [(&str, &str, &str, &str); 21] = [
    ("src/diagnostic.rs", "fn name(self)", "\n    }", ERRORS),
    ("src/diagnostic.rs", "fn json(&self)", "\n    }", ERRORS),
    ("cli/src/error.rs", "fn json(&self)", "\n    }", ERRORS),
    ("src/host/words.rs", "RESERVED: ", "];", HOST_TEXT),
    ("src/host/words.rs", "\nwords! {", "\n}", HOST_TEXT),
    ("src/spec/text/words.rs", " WORDS: ", "];", SIGNATURES),
    ("src/spec/text/words.rs", " FORMS: ", "];", SIGNATURES),
    ("src/spec/scalar.rs", "\nscalar_types! {", "\n}", SIGNATURES),
    ("src/spec/policy.rs", " NAMES: ", "];", SIGNATURES),
    ("src/spec/text/words.rs", " ARG_FORMS: ", "];", LAUNCHES),
    ("src/spec/text/words.rs", " VALUES: ", "];", LAUNCHES),
    ("src/spec/text/words.rs", " FLAGS: ", "];", LAUNCHES),
    ("src/lower/metadata.rs", "json!({\n", "});", LIBRARIES),
    ("src/lower/metadata.rs", "fn parameter(", "\n}", LIBRARIES),
    ("src/lower/launch_description.rs", "json!({", "\n}", LIBRARIES),
    ("src/lower/launch_description.rs", "impl ImageDescription", "json.get", LIBRARIES),
    ("src/artifact/inspect/json.rs", "fn to_json", "\n//", COMMAND_LINE),
    ("clib/src/library.rs", "struct ObjectOptions {", "\n}", HEADER),
    ("clib/src/library.rs", "struct LinkOptions {", "\n}", HEADER),
    ("clib/src/source.rs", "struct SourceOptions {", "\n}", HEADER),
    ("clib/src/signature.rs", "struct PlacedPart {", "\n}", HEADER),
];

/// Everything in the lists is in the book.
pub fn check() -> Result<(), Failure> {
    let mut missing = Vec::new();
    features(&mut missing)?;
    variables(&mut missing)?;
    let helps = read(COMMAND_LINE)?;
    missing.extend(without_help(&helps).into_iter().map(|line| format!("{COMMAND_LINE}: no help of `{line}`")));
    c_functions(&mut missing)?;
    for (source, start, end, page) in LISTS {
        let text = read(source)?;
        let part = part(&text, start, end).ok_or_else(|| failed(format!("{source}: nothing after {start:?}")))?;
        let names = if start.starts_with("struct ") { fields(part) } else { strings(part) };
        if names.is_empty() {
            return Err(failed(format!("{source}: no names after {start:?}")));
        }
        let page_text = read(page)?;
        let known = words(&page_text);
        let unknown = names.iter().filter(|name| !known.contains(*name));
        missing.extend(unknown.map(|name| format!("{page}: `{name}` ({source})")));
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(failed(format!("not documented, or documented in vain:\n{}", missing.join("\n")))),
    }
}

/// The features of each crate are those that the page has for it.
fn features(missing: &mut Vec<String>) -> Result<(), Failure> {
    let page = read(FEATURES)?;
    let known = stated_features(&page);
    for (name, manifest) in CRATES {
        let text = read(manifest)?;
        let own = manifest_features(&text);
        let (rows, all) = known.get(name).cloned().unwrap_or_default();
        let is_known = |feature: &str| {
            // the page has the ways to link LLVM once for all versions
            let is_family = |(at, _)| all.contains(&feature[..at]) && all.contains(&feature[at..]);
            all.contains(feature) || feature.match_indices('-').any(is_family)
        };
        missing.extend(own.iter().filter(|of| !is_known(of)).map(|of| format!("{FEATURES}: feature `{of}` of {name}")));
        let stale = rows.iter().filter(|of| !own.contains(*of));
        missing.extend(stale.map(|of| format!("{FEATURES}: {name} has no feature `{of}`")));
    }
    Ok(())
}

/// The features in a manifest, except those of its own.
fn manifest_features(manifest: &str) -> BTreeSet<&str> {
    let section = part(manifest, "\n[features]\n", "\n[").unwrap_or(manifest);
    let names = section.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
    names.filter(|name| !name.starts_with(['_', '#']) && *name != "default").collect()
}

/// The features that the page states for each crate: those of its rows, and these with all other code about it.
fn stated_features(page: &str) -> BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> {
    let mut crates: BTreeMap<_, (BTreeSet<_>, BTreeSet<_>)> = BTreeMap::new();
    let mut name = CRATES[0].0;
    let (own, others) = page.split_once("\n## Features of the other crates").unwrap_or((page, ""));
    crates.entry(name).or_default().1.extend(own.lines().flat_map(code));
    let own = rows(own).map(|row| (None, row));
    let others = rows(part(others, "\n", "\n## ").unwrap_or(others)).filter_map(|row| {
        let (first, rest) = row.split_once('|')?;
        Some((code(first).next(), rest))
    });
    for (stated, row) in own.chain(others) {
        name = stated.unwrap_or(name);
        let (rows, all) = crates.entry(name).or_default();
        rows.extend(row.split('|').next().into_iter().flat_map(code));
        all.extend(code(row));
    }
    crates
}

/// The variables of the table are those that the sources and their dependencies read.
fn variables(missing: &mut Vec<String>) -> Result<(), Failure> {
    let page = read(FEATURES)?;
    let table = part(&page, "\n## Environment variables", "\n## ").unwrap_or_default();
    let stated = rows(table).filter_map(|row| row.split('|').next()).flat_map(code);
    let stated: BTreeSet<&str> = stated.map(|name| name.split('=').next().unwrap_or(name)).collect();
    let mut used = BTreeSet::new();
    for folder in SHIPPED {
        let mut files = Vec::new();
        list_files(&root().join(folder), &mut files).map_err(|e| failed(format!("{folder}: {e}")))?;
        for file in files {
            let text = fs::read_to_string(&file).map_err(|e| failed(format!("{}: {e}", file.display())))?;
            used.extend(read_variables(&text).into_iter().map(str::to_owned));
        }
    }
    let unknown = used.iter().filter(|name| !stated.contains(name.as_str()));
    missing.extend(unknown.map(|name| format!("{FEATURES}: variable `{name}`")));
    let stale =
        stated.iter().filter(|name| !used.contains(**name) && !OF_DEPENDENCIES.split(' ').any(|of| of == **name));
    missing.extend(stale.map(|name| format!("{FEATURES}: no source reads `{name}`")));
    Ok(())
}

/// The sources in a directory, without those of tests.
fn list_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_test = TESTS.iter().any(|test| path.ends_with(test));
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if is_test => {}
            None if path.is_dir() => list_files(&path, files)?,
            Some("rs" | "py" | "cc" | "h") => files.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// The variables that a source reads: strings in capitals. One without a `_` counts only if its line reads the
/// environment.
fn read_variables(source: &str) -> BTreeSet<&str> {
    const READS: [&str; 4] = ["env::var", "os.environ", "os.getenv(", "std::getenv("];
    let reads = |text: &str| READS.iter().any(|call| text.contains(call));
    let own = source.split("#[cfg(test)]\nmod tests").next().unwrap_or(source);
    let mut names = BTreeSet::new();
    if !reads(own) {
        return names;
    }
    for line in own.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let mut parts = line.split('"');
        while let (Some(before), Some(name)) = (parts.next(), parts.next()) {
            let in_capitals = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            // `CC_` is the start of names, and `.env("LC_ALL", "C")` sets a variable
            let is_whole = name.len() > 1 && !name.starts_with('_') && !name.ends_with('_');
            if in_capitals && is_whole && !before.ends_with("env(") && (name.contains('_') || reads(line)) {
                names.insert(name);
            }
        }
    }
    names
}

/// Each function of the header has a comment and is in the book. Those that it only declares have one in `clib/src`.
fn c_functions(missing: &mut Vec<String>) -> Result<(), Failure> {
    const PAGE: &str = "docs/howto/c.md";
    let (header, page) = (read(HEADER)?, read(PAGE)?);
    let known = words(&page);
    let mut before = "";
    for line in header.lines() {
        if let Some(name) = line.starts_with("static inline ").then(|| part(line, " tfc_", "(")).flatten() {
            if !before.ends_with("*/") {
                missing.push(format!("{HEADER}: `tfc_{name}` has no comment"));
            }
            if !known.contains(&*format!("tfc_{name}")) {
                missing.push(format!("{PAGE}: `tfc_{name}`"));
            }
        }
        before = line;
    }
    let mut files = Vec::new();
    list_files(&root().join("clib/src"), &mut files).map_err(|e| failed(format!("clib/src: {e}")))?;
    let sources: String = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    for name in header.lines().filter_map(|line| line.strip_prefix("TFC_FUNCTION(")?.strip_suffix(");")) {
        let above = sources.split_once(&format!("\n#[tvm_ffi::export(crate = tvm_ffi)]\nfn tfc_{name}("));
        if !above.and_then(|(above, _)| above.lines().last()).is_some_and(|line| line.starts_with("///")) {
            missing.push(format!("clib/src: `tfc_{name}` has no comment"));
        }
    }
    Ok(())
}

/// The commands, options, arguments and values in a page of helps that have no text.
fn without_help(page: &str) -> Vec<&str> {
    let lines: Vec<&str> = page.lines().collect();
    let next = |at: usize| lines.get(at + 1).map_or("", |line| line.trim_start());
    let is_without = |(at, line): (usize, &str)| {
        let name = line.trim_start();
        match line.len() - name.len() {
            0 => line == "```text" && next(at).starts_with("Usage:"),
            2 if name.starts_with(|c: char| c.is_ascii_lowercase()) => !name.contains("  "),
            2 | 6 if name.starts_with(['-', '<']) => next(at).is_empty() || next(at).starts_with('['),
            10 if name.starts_with("- ") => !name.contains(": "),
            _ => false,
        }
    };
    let helps = lines.iter().position(|line| line.starts_with("<!-- generated")).unwrap_or(0);
    let all = lines.iter().enumerate().skip(helps);
    all.filter(|(at, line)| is_without((*at, line))).map(|(_, line)| line.trim()).collect()
}

/// The part of a text after a start and before an end, or to the text's end.
fn part<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let rest = text.split_once(start)?.1;
    Some(rest.split_once(end).map_or(rest, |(part, _)| part))
}

/// The rows of the tables in a page, without the first `|`.
fn rows(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix('|'))
}

/// The code in a line.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The words in all code of a page.
fn words(page: &str) -> BTreeSet<&str> {
    let mut is_block = false;
    let mut words = BTreeSet::new();
    for line in page.lines() {
        is_block ^= line.starts_with("```");
        let parts: Vec<&str> = if is_block { vec![line] } else { code(line).collect() };
        words.extend(parts.iter().flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')));
    }
    words
}

/// The words that are strings of a source.
fn strings(source: &str) -> BTreeSet<&str> {
    let is_word = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).filter(is_word).collect()
}

/// The fields of a struct.
fn fields(source: &str) -> BTreeSet<&str> {
    let lines = source.lines().map(str::trim).filter(|line| !line.starts_with(['/', '#']));
    lines.filter_map(|line| Some(line.split_once(": ")?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<const N: usize>(names: [&'static str; N]) -> BTreeSet<&'static str> {
        BTreeSet::from(names)
    }

    #[test]
    fn a_crate_has_the_features_of_its_rows() {
        let manifest = "[package]\n\n[features]\n# a\ndefault = [\"b\"]\nb = []\n_c = []\nd-1 = []\n\n[lib]\ne = 1\n";
        assert_eq!(manifest_features(manifest), set(["b", "d-1"]));
        let page = "| `b` | yes | the `x` |\n\nAlso `-y`.\n\n## Features of the other crates\n\n| crate | feature |\n\
                    | `tvm-ffi-runtime` | `c` | |\n| | `d` | also `e` |\n\n## Environment variables\n\n| `F` | |\n";
        let stated = stated_features(page);
        assert_eq!(stated["tvm-ffi-codegen"], (set(["b"]), set(["-y", "b", "x"])));
        assert_eq!(stated["tvm-ffi-runtime"], (set(["c", "d"]), set(["c", "d", "e"])));
    }

    #[test]
    fn a_source_reads_variables_by_name_or_constant() {
        let rust = "const A: &str = \"A_FILE\";\nlet x = (\"PTX\", env::var_os(A));\ncommand.env(\"LC_ALL\", \"C\");\n\
                    // \"IN_COMMENT\"\n[\"CC_\"];\n#[cfg(test)]\nmod tests {\n\"IN_TEST\"";
        assert_eq!(read_variables(rust), set(["A_FILE", "PTX"]));
        assert_eq!(read_variables("os.environ.get(\"CC\" if c else \"CXX\")"), set(["CC", "CXX"]));
        assert_eq!(read_variables("\"A_FILE\""), set([]));
    }

    #[test]
    fn an_option_without_a_text_is_found() {
        let page = "<!-- generated -->\n```text\nText\n\nCommands:\n  wrap  Wraps\n  check\n\nArguments:\n  <FILE>\n\n\
                    Options:\n      --a <A>\n          Text\n\n          Possible values:\n          - x: Text\n\
                    \x20         - y\n\n  -o, --output\n          [default: a]\n\n```\n```text\nUsage: b\n";
        assert_eq!(without_help(page), ["check", "<FILE>", "- y", "-o, --output", "```text"]);
    }

    #[test]
    fn lists_are_strings_and_fields() {
        assert_eq!(strings("(\"a\", \"(\\\"...\\\")\"),\n// \"b\"\n\"c_1\" 1 [\"d\"]"), set(["a", "c_1", "d"]));
        assert_eq!(fields("\n    /// a: b\n    #[serde]\n    c: Vec<u8>,\n    pub d: u8,"), set(["c", "pub d"]));
        assert_eq!(words("a `b(c)` d\n```text\n\"e\"\n```\nf"), set(["", "b", "c", "e", "text"]));
    }
}
