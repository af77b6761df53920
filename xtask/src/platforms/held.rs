//! The tests behind each platform's claims: the table of `docs/reference/platforms.md`.

use std::fmt::Write as _;

/// The depth of a step's tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The code runs on the machine that runs the step.
    Native,
    /// The code runs under qemu, or under Wine.
    Emulated,
    /// A linker for the platform accepts the objects, and its tools read them.
    Linked,
    /// The crates compile without clippy warnings.
    Compiled,
}
use How::{Compiled, Emulated, Linked, Native};

impl How {
    fn text(self) -> &'static str {
        match self {
            Native => "run natively",
            Emulated => "run, emulated",
            Linked => "linked",
            Compiled => "compiled",
        }
    }
}

/// A cell: how far each of the named steps goes, or the reason why there are none.
enum Cell {
    Held(&'static [(How, &'static [&'static str])]),
    Not(&'static str),
}
use Cell::{Held, Not};

/// A platform, and its four parts: compiling in the process, objects, libraries, the bundled runtime.
struct Platform {
    name: &'static str,
    jit: Cell,
    objects: Cell,
    libraries: Cell,
    runtime: Cell,
}

const PLATFORMS: [Platform; 9] = [
    Platform {
        name: "Linux x86-64 (glibc)",
        jit: Held(&[(Native, &["test", "llvm", "soak"])]),
        objects: Held(&[(Native, &["hosts", "static", "objects"])]),
        libraries: Held(&[(Native, &["hosts", "foreign", "aot", "llvm"])]),
        runtime: Held(&[(Native, &["test", "hosts", "headers", "runtime-modes", "foreign"])]),
    },
    Platform {
        name: "Linux x86-64 (musl, static)",
        jit: Held(&[(Native, &["musl"])]),
        objects: Held(&[(Native, &["musl"])]),
        libraries: Not("a static executable has no loader"),
        runtime: Held(&[(Native, &["musl"])]),
    },
    Platform {
        name: "Linux aarch64",
        jit: Held(&[(Emulated, &["aarch64-jit"])]),
        objects: Held(&[(Emulated, &["cross", "struct-args"])]),
        libraries: Held(&[(Emulated, &["cross", "aarch64-jit"])]),
        runtime: Held(&[(Emulated, &["aarch64-jit", "cross"])]),
    },
    Platform {
        name: "Linux riscv64",
        jit: Not("never run"),
        objects: Held(&[(Emulated, &["cross", "struct-args"])]),
        libraries: Held(&[(Emulated, &["cross"])]),
        runtime: Held(&[(Emulated, &["cross"])]),
    },
    Platform {
        name: "Linux s390x",
        jit: Not("never run"),
        objects: Held(&[(Emulated, &["byte-order", "struct-args"])]),
        libraries: Not("the objects are linked into a program"),
        runtime: Not("never built"),
    },
    Platform {
        name: "Windows x86-64",
        jit: Held(&[(Emulated, &["windows"])]),
        objects: Held(&[(Emulated, &["windows"]), (Linked, &["formats"])]),
        libraries: Held(&[(Emulated, &["windows"])]),
        runtime: Held(&[(Emulated, &["windows"])]),
    },
    Platform {
        name: "Windows aarch64",
        jit: Not("never built"),
        objects: Held(&[(Linked, &["formats"])]),
        libraries: Held(&[(Linked, &["formats"])]),
        runtime: Not("never built"),
    },
    Platform {
        name: "macOS x86-64, aarch64",
        jit: Held(&[(Compiled, &["check-targets"])]),
        objects: Held(&[(Linked, &["formats"])]),
        libraries: Held(&[(Linked, &["formats"])]),
        runtime: Held(&[(Compiled, &["check-targets"])]),
    },
    Platform {
        name: "Android aarch64",
        jit: Held(&[(Compiled, &["check-targets"])]),
        objects: Not("those of Linux aarch64"),
        libraries: Not("never linked"),
        runtime: Held(&[(Compiled, &["check-targets"])]),
    },
];

impl Cell {
    fn text(&self) -> String {
        match self {
            Not(why) => format!("no: {why}"),
            Held(ways) => {
                let way = |(how, steps): &(How, &[&str])| {
                    let steps: Vec<_> = steps.iter().map(|step| format!("`{step}`")).collect();
                    format!("{}: {}", how.text(), steps.join(", "))
                };
                ways.iter().map(way).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// The table in Markdown.
fn table() -> String {
    let mut text = "| | JIT | objects | libraries | runtime |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for Platform { name, jit, objects, libraries, runtime } in &PLATFORMS {
        let cells = [jit, objects, libraries, runtime].map(Cell::text).join(" | ");
        let _ = writeln!(text, "| {name} | {cells} |");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::command::root;
    use crate::steps::TEST;
    use crate::tools::{QEMU, Source, Tool, WINE};

    const DOCUMENT: &str = "docs/reference/platforms.md";

    #[test]
    fn the_document_has_the_table() {
        let document = std::fs::read_to_string(root().join(DOCUMENT)).unwrap();
        let rows: Vec<_> = document.lines().skip_while(|line| !line.starts_with("| | JIT |")).collect();
        let found: Vec<_> = rows.into_iter().take_while(|line| line.starts_with('|')).collect();
        let expected = table();
        assert_eq!(found, expected.lines().collect::<Vec<_>>(), "{DOCUMENT} has another table than\n{expected}");
    }

    #[test]
    fn steps_hold_platforms() {
        let cells = PLATFORMS.iter().flat_map(|p| [&p.jit, &p.objects, &p.libraries, &p.runtime]);
        let ways = cells.filter_map(|cell| if let Held(ways) = cell { Some(*ways) } else { None }).flatten();
        let named: Vec<&str> = ways.flat_map(|(_, steps)| *steps).copied().collect();
        for name in &named {
            assert!(TEST.iter().any(|step| step.name == *name), "there is no step `{name}`");
        }
        // a step that builds or runs for another platform supports a claim
        let foreign =
            |tool: &Tool| matches!(tool.source, Source::RustTarget(_)) || [QEMU.name, WINE.name].contains(&tool.name);
        for step in TEST.iter().filter(|step| step.needs.iter().any(foreign)) {
            assert!(named.contains(&step.name), "the table has no step `{}`", step.name);
        }
    }
}
