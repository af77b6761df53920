//! Links with a C compiler's driver, which knows where its linker and libraries are.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use target_lexicon::{Architecture, BinaryFormat, Environment, HOST};

use super::error::LinkError;
use super::stated::{Input, Link, Run, as_file, joined};
use super::{plain, windows};

pub(super) fn link(linker: &Link, objects: &[PathBuf], output: &Path) -> Result<Run, LinkError> {
    let command = match (linker.format(), linker.target.environment) {
        (BinaryFormat::Elf, _) => elf(linker, objects, output)?,
        (BinaryFormat::Macho, _) => macho(linker, objects, output)?,
        (BinaryFormat::Coff, Environment::Msvc) => msvc(linker, objects, output)?,
        (BinaryFormat::Coff, _) => mingw(linker, objects, output)?,
        _ => return Err(linker.unsupported("expected one of ELF, Mach-O or COFF")),
    };
    run(command)
}

fn elf(linker: &Link, objects: &[PathBuf], output: &Path) -> Result<Command, LinkError> {
    let mut command = driver(linker)?;
    // Don't record libc and the like as needed if they aren't. Bind all functions when the library is loaded: a process
    // whose TVM FFI is too old can't load it then, while a later call of a missing function would end the process.
    command.args(["-shared", "-Wl,--as-needed", "-Wl,-z,now", "-o"]).arg(as_file(output));
    command.args(linker.elf_inputs(objects, |option| format!("-Wl,{option}").into()));
    command.args(linker.last(linker.runtime.as_deref()));
    Ok(command)
}

fn macho(linker: &Link, objects: &[PathBuf], output: &Path) -> Result<Command, LinkError> {
    let mut command = driver(linker)?;
    command.args(["-dynamiclib", "-Wl,-undefined,dynamic_lookup", "-o"]).arg(as_file(output));
    // by default the linker records the output's path, which is temporary
    let file = output.file_name().unwrap_or_default();
    command.args(for_linker("-install_name", joined("@rpath/", file)));
    command.args(objects.iter().map(|path| as_file(path)));
    command.args(linker.folders.iter().map(|folder| joined("-L", as_file(folder))));
    for input in &linker.inputs {
        match input {
            Input::File(path) => command.arg(as_file(path)),
            Input::WholeArchive(path) => command.args(for_linker("-force_load", as_file(path))),
            Input::Library(name) => command.arg(format!("-l{name}")),
        };
    }
    command.args(linker.last(linker.runtime.as_deref()));
    Ok(command)
}

fn mingw(linker: &Link, objects: &[PathBuf], output: &Path) -> Result<Command, LinkError> {
    let runtime = windows::runtime(linker, output.parent().unwrap_or(output))?;
    let mut command = driver(linker)?;
    command.args(["-shared", "-o"]).arg(as_file(output));
    command.args(linker.elf_inputs(objects, |option| format!("-Wl,{option}").into()));
    command.args(linker.last(runtime.as_deref()));
    Ok(command)
}

fn msvc(linker: &Link, objects: &[PathBuf], output: &Path) -> Result<Command, LinkError> {
    let runtime = windows::runtime(linker, output.parent().unwrap_or(output))?;
    let architecture = match linker.target.architecture {
        Architecture::X86_64 => "x86_64",
        Architecture::Aarch64(_) => "aarch64",
        _ => return Err(linker.unsupported("expected x86-64 or aarch64")),
    };
    let tool = cc::windows_registry::find_tool(architecture, "link.exe");
    let tool = tool.ok_or_else(|| no_driver(linker, "Visual Studio's link.exe".to_owned()))?;
    let mut command = tool.to_command();
    command.args(["/NOLOGO", "/DLL"]).arg(joined("/OUT:", output)).args(objects.iter().map(|path| as_file(path)));
    command.args(linker.folders.iter().map(|folder| joined("/LIBPATH:", folder)));
    for input in &linker.inputs {
        match input {
            Input::File(path) => command.arg(as_file(path)),
            Input::WholeArchive(path) => command.arg(joined("/WHOLEARCHIVE:", path)),
            Input::Library(name) => command.arg(format!("{name}.lib")),
        };
    }
    command.args(linker.last(runtime.as_deref()));
    Ok(command)
}

/// Passes an option with a value to the linker through the driver: `-Wl,` splits its argument at commas.
fn for_linker(option: &str, value: OsString) -> Vec<OsString> {
    match value.as_encoded_bytes().contains(&b',') {
        true => vec!["-Xlinker".into(), option.into(), "-Xlinker".into(), value],
        false => vec![joined(&format!("-Wl,{option},"), value)],
    }
}

fn no_driver(linker: &Link, problem: String) -> LinkError {
    LinkError::NoDriver { target: Box::new(linker.target.clone()), problem }
}

/// The driver with the flags that select the target.
fn driver(linker: &Link) -> Result<Command, LinkError> {
    if let Some(command) = plain::driver(&linker.target) {
        return Ok(command);
    }
    let mut build = cc::Build::new();
    // the crate's defaults are meant for build scripts
    build.cargo_metadata(false).cargo_warnings(false).cargo_output(false).cargo_debug(false);
    build.inherit_rustflags(false).inherit_trim_paths(false).warnings(false).extra_warnings(false);
    build.target(&linker.target.to_string()).host(&HOST.to_string()).opt_level(0).debug(false);
    let tool = build.try_get_compiler().map_err(|error| no_driver(linker, error.to_string()))?;
    Ok(tool.to_command())
}

/// The path of a library in the driver's search path. GNU's and LLVM's drivers report it.
pub(super) fn find_library(linker: &Link, name: &OsStr) -> Option<PathBuf> {
    let mut option = OsString::from("-print-file-name=");
    option.push(name);
    let mut command = driver(linker).ok()?;
    let done = command.arg(option).output().ok().filter(|done| done.status.success())?;
    let path = PathBuf::from(String::from_utf8(done.stdout).ok()?.trim_end());
    // the bare name means that there is no such library
    Some(path).filter(|path| path.components().count() > 1)
}

fn run(mut command: Command) -> Result<Run, LinkError> {
    let shown = shown(&command);
    let done = command.output();
    let done = done.map_err(|source| LinkError::Io { path: PathBuf::from(command.get_program()), source })?;
    let output = String::from_utf8_lossy(&[done.stderr, done.stdout].concat()).trim_end().to_owned();
    match done.status.success() {
        true => Ok(Run { command: shown, output }),
        false => Err(LinkError::Failed { command: shown, status: done.status.to_string(), output }),
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| {
        let word = OsString::from(word).to_string_lossy().into_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%\\".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_options_are_passed_on_whole() {
        let passed = |value: &str| for_linker("-force_load", value.into());
        assert_eq!(passed("a.a"), ["-Wl,-force_load,a.a"]);
        assert_eq!(passed("a,-rpath,b.a"), ["-Xlinker", "-force_load", "-Xlinker", "a,-rpath,b.a"]);
    }
}
