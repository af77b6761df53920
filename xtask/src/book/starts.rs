//! The programs of the book's first pages. Each page is followed in an empty directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{failed, read};
use crate::command::{Cmd, Tests, cargo, cmd, root, target_folder};
use crate::python::site;
use crate::release;
use crate::run::Failure;
use crate::tools::{NUMPY, TYPING_EXTENSIONS, UPSTREAM, python_package};

/// The start of a command that installs something.
const INSTALLS: [&str; 4] = ["cargo install ", "python3 -m venv ", ".venv/bin/pip ", "tar xf "];
/// The start of a line before a block that is a file.
const FILE: &str = "Write `";
/// The page whose reader builds the library.
pub const RUST: &str = "rust";
pub const COMMAND_LINE: &str = "command-line";
/// The program of that page.
const PROGRAM: &str = "tvm-ffi-codegen";
/// All pages.
const PAGES: [&str; 5] = ["python", "c", "cpp", COMMAND_LINE, RUST];

/// The files that the pages are followed with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Installed<'a> {
    /// The files that other steps build from this repository. The commands that install are skipped.
    Built,
    /// The files of a release. The commands that install run, and take ours from there.
    Released,
    /// The command line as a shell script. The commands that install are skipped.
    Script(&'a str),
}
use Installed::{Built, Released, Script};

/// Follows every page, or with [`Built`] those that need no build of their own.
pub fn check(from: Installed<'_>) -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    for page in PAGES.into_iter().filter(|&page| from == Released || page != RUST) {
        follow(page, from)?;
        tests.passed += 1;
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

/// Follows one page.
pub fn follow(page: &str, from: Installed<'_>) -> Result<(), Failure> {
    let start = Instant::now();
    follow_parts(page, from).map_err(|Failure { what, .. }| failed(format!("docs/start/{page}.md: {what}")))?;
    println!("followed docs/start/{page}.md in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// A program of a page, and what the page says that it prints.
pub struct Program {
    pub text: String,
    pub prints: String,
}

/// The file of a page with this name, and the last output that the page shows.
pub fn program(page: &str, file: &str) -> Result<Program, Failure> {
    let mut program = Program { text: String::new(), prints: String::new() };
    for part in parts(&read(&format!("docs/start/{page}.md"))?) {
        match part {
            Part::File { name, text } if name == file => program.text = text,
            Part::Commands { prints: Some(prints), .. } => program.prints = prints,
            _ => {}
        }
    }
    Ok(program)
}

fn follow_parts(page: &str, from: Installed<'_>) -> Result<(), Failure> {
    let folder = target_folder().join("starts").join(page);
    // left by an earlier run
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| failed(format!("{}: {e}", folder.display())))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, text)).map_err(|e| failed(format!("{}: {e}", path.display())))
    };
    let files = match from {
        Built => built(page)?,
        Released if [RUST, COMMAND_LINE].contains(&page) => {
            vec![(".cargo/config.toml".to_owned(), release::patches()?)]
        }
        Released => vec![],
        Script(script) => vec![python(), (format!("bin/{PROGRAM}"), script.to_owned())],
    };
    for (name, text) in files {
        write(&name, &text)?;
    }
    for part in parts(&read(&format!("docs/start/{page}.md"))?) {
        match part {
            Part::File { name, text } => write(&name, &text)?,
            Part::Commands { text, prints } => {
                let commands = match from {
                    Built => with_built(&folder, &text)?,
                    Script(_) => with_packages("chmod +x bin/*; export PATH=$PWD/bin:$PATH", &text, None),
                    Released => with_released(&text)?,
                };
                let printed = commands.within(&folder.display().to_string()).read()?;
                if prints.is_some_and(|prints| prints != printed) {
                    return Err(failed(format!("the page shows another output of\n{text}it is\n{printed}")));
                }
            }
        }
    }
    Ok(())
}

/// Builds what a page needs, and returns the files that stand for what it installs.
fn built(page: &str) -> Result<Vec<(String, String)>, Failure> {
    let config = || script("tvm-ffi-config", "exec python3 -m tvm_ffi.config \"$@\"");
    Ok(match page {
        "c" | "cpp" => {
            // with an example, so the engine has the features and the build of other steps
            let packages = ["-p", "tvm-ffi-codegen-c", "-p", "tvm-ffi-codegen", "--lib", "--example", "quickstart"];
            cargo(&[&["build"], &packages[..]].concat()).run()?;
            vec![python(), config()]
        }
        COMMAND_LINE => {
            super::command_line()?;
            vec![python()]
        }
        _ => vec![python()],
    })
}

/// A program in the place where pages install Python, as a shell script.
fn script(name: &str, text: &str) -> (String, String) {
    (format!(".venv/bin/{name}"), format!("#!/bin/sh\n{text}\n"))
}

fn python() -> (String, String) {
    script("python", "exec python3 \"$@\"")
}

/// Commands but for those that install.
fn with_built(folder: &Path, commands: &str) -> Result<Cmd, Failure> {
    let built = target_folder().join("debug");
    let library = "tvm-ffi-codegen-c";
    // the unpacked library of the pages for C and C++
    let set_up = format!(
        "mkdir -p {folder}/{library}/lib; ln -sfn {root}/clib/include {library}/include; \
         ln -sf {built}/libtvm_ffi_codegen.a {library}/lib/; export PATH={built}:$PATH",
        folder = folder.display(),
        root = root().display(),
        built = built.display(),
    );
    Ok(with_packages(&set_up, commands, Some(site()?)))
}

/// Commands but for those that install, after others. Python finds the packages that pages use, and `package`.
fn with_packages(set_up: &str, commands: &str, package: Option<PathBuf>) -> Cmd {
    let own: Vec<&str> =
        commands.lines().filter(|line| !INSTALLS.iter().any(|install| line.starts_with(install))).collect();
    let packages = package.into_iter().chain([&UPSTREAM, &NUMPY, &TYPING_EXTENSIONS].map(python_package));
    let path: Vec<String> = packages.map(|path| path.display().to_string()).collect();
    bash(&format!("chmod +x .venv/bin/*; {set_up}\n{}", own.join("\n"))).env("PYTHONPATH", &path.join(":"))
}

/// All commands. Those that install take this project's files from the release, and others from their registries.
fn with_released(commands: &str) -> Result<Cmd, Failure> {
    let files = release::folder().display().to_string();
    let command_line = release::packed("tvm-ffi-codegen-cli")?.display().to_string();
    let commands = commands
        .replace("tar xf ", &format!("tar xf {files}/"))
        .replace("cargo install tvm-ffi-codegen-cli ", &format!("cargo install --root . --path {command_line} "));
    let script = format!("export PATH=$PWD/bin:$PATH\n{commands}");
    Ok(bash(&script).env("PIP_FIND_LINKS", &files).env("CARGO_TARGET_DIR", &release::builds()))
}

fn bash(script: &str) -> Cmd {
    cmd("bash", &["-ec", script])
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
