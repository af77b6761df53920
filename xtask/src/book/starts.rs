//! The programs of the book's first pages. Each page is followed in an empty directory, with what is built here in the
//! place of what its readers install.

use std::fs;
use std::path::Path;

use super::{failed, read};
use crate::command::{Tests, cargo, cmd, root, target_folder};
use crate::platforms::Amount;
use crate::python::site;
use crate::run::Failure;
use crate::tools::{NUMPY, TYPING_EXTENSIONS, UPSTREAM, python_package};

/// The start of a command that installs something.
const INSTALLS: [&str; 4] = ["cargo install ", "python3 -m venv ", ".venv/bin/pip ", "tar xf "];
/// The start of a line before a block that is a file.
const FILE: &str = "Write `";
/// The page that builds the library with the features of its users, which no other step does.
const RUST: &str = "rust";

/// Follows the pages, or only those that need no build of their own.
pub fn check(amount: Amount) -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    for page in ["python", "c", "cpp", "command-line", RUST] {
        if page != RUST || amount == Amount::All {
            follow(page).map_err(|Failure { what, .. }| failed(format!("docs/start/{page}.md: {what}")))?;
            tests.passed += 1;
        }
    }
    Ok(tests)
}

/// A part of a page.
#[derive(Debug, PartialEq)]
enum Part {
    File {
        name: String,
        text: String,
    },
    /// Commands, and what they print if the page shows it.
    Commands {
        text: String,
        prints: Option<String>,
    },
}

fn follow(page: &str) -> Result<(), Failure> {
    let folder = target_folder().join("starts").join(page);
    // left by an earlier run
    let _ = fs::remove_dir_all(&folder);
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, text)).map_err(|e| failed(format!("{}: {e}", path.display())))
    };
    for (name, text) in installed(page)? {
        write(&name, &text)?;
    }
    for part in parts(&read(&format!("docs/start/{page}.md"))?) {
        match part {
            Part::File { name, text } => write(&name, &text)?,
            Part::Commands { text, prints } => {
                let printed = run(&folder, &text)?;
                if prints.is_some_and(|prints| prints != printed) {
                    return Err(failed(format!("the page shows another output of\n{text}it is\n{printed}")));
                }
            }
        }
    }
    Ok(())
}

/// The files that stand for what a page installs.
fn installed(page: &str) -> Result<Vec<(String, String)>, Failure> {
    let python = ("python".to_owned(), "exec python3 \"$@\"\n");
    let config = ("tvm-ffi-config".to_owned(), "exec python3 -m tvm_ffi.config \"$@\"\n");
    let script = |(name, text): (String, &str)| (format!(".venv/bin/{name}"), format!("#!/bin/sh\n{text}"));
    Ok(match page {
        RUST => {
            let crates =
                [("tvm-ffi-codegen", ""), ("tvm-ffi-runtime", "runtime"), ("tvm-ffi-runtime-macros", "runtime/macros")];
            let patch = crates.map(|(name, folder)| format!("{name}.path = {:?}\n", root().join(folder)));
            vec![(".cargo/config.toml".to_owned(), format!("[patch.crates-io]\n{}", patch.concat()))]
        }
        "c" | "cpp" => {
            // with an example, so the engine has the features and the build of other steps
            let packages = ["-p", "tvm-ffi-codegen-c", "-p", "tvm-ffi-codegen", "--lib", "--example", "quickstart"];
            cargo(&[&["build"], &packages[..]].concat()).run()?;
            vec![script(python), script(config)]
        }
        "command-line" => {
            cargo(&["build", "-p", "tvm-ffi-codegen-cli"]).run()?;
            vec![script(python)]
        }
        _ => vec![script(python)],
    })
}

/// Runs commands but for those that install, and returns what they print.
fn run(folder: &Path, commands: &str) -> Result<String, Failure> {
    let own = commands.lines().filter(|line| !INSTALLS.iter().any(|install| line.starts_with(install)));
    let own: Vec<&str> = own.collect();
    if own.is_empty() {
        return Ok(String::new());
    }
    let packages = [&UPSTREAM, &NUMPY, &TYPING_EXTENSIONS].map(python_package);
    let path: Vec<String> = [site()?].iter().chain(&packages).map(|path| path.display().to_string()).collect();
    let built = target_folder().join("debug");
    let library = "tvm-ffi-codegen-c";
    // the unpacked library of the pages for C and C++
    let set_up = format!(
        "set -e; chmod +x .venv/bin/* 2>/dev/null || true; mkdir -p {library}/lib; ln -sfn {root}/clib/include {library}/include; \
         ln -sf {built}/libtvm_ffi_codegen.a {library}/lib/; export PATH={built}:$PATH",
        root = root().display(),
        built = built.display(),
    );
    let script = format!("{set_up}\n{}", own.join("\n"));
    let target = target_folder().join("starts/target").display().to_string();
    let bash = cmd("bash", &["-c", &script]).within(&folder.display().to_string());
    bash.env("PYTHONPATH", &path.join(":")).env("CARGO_TARGET_DIR", &target).read()
}

/// The parts of a page: the blocks after `Write ...`, the blocks of commands, and the blocks that follow these at once.
fn parts(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut name = None;
    let mut after_commands = false;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: String =
                lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
            match (name.take(), language, parts.last_mut()) {
                (Some(name), ..) => parts.push(Part::File { name, text }),
                (None, "text", Some(Part::Commands { prints, .. })) if after_commands => *prints = Some(text),
                (None, "sh", _) => parts.push(Part::Commands { text, prints: None }),
                _ => {}
            }
            after_commands = language == "sh";
        } else if let Some(rest) = line.strip_prefix(FILE) {
            name = rest.split_once('`').map(|(name, _)| name.to_owned());
        } else if !line.is_empty() {
            after_commands = false;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_files_and_commands_with_their_output() {
        let page = "Write `a.c`:\n\n```c\nint a;\n```\n\n```sh\ncc a.c\n./a\n```\n\n```text\n1\n```\n\n```sh\nls\n```\n\
                    \nSo:\n\n```text\n2\n```\n";
        let commands = |text: &str, prints: Option<&str>| Part::Commands {
            text: text.to_owned(),
            prints: prints.map(str::to_owned),
        };
        let file = Part::File { name: "a.c".to_owned(), text: "int a;\n".to_owned() };
        assert_eq!(parts(page), [file, commands("cc a.c\n./a\n", Some("1\n")), commands("ls\n", None)]);
    }
}
