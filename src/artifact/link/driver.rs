//! Linking by a C compiler's driver, which knows where its linker and libraries are.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use target_lexicon::{Architecture, BinaryFormat, Environment, HOST};

use super::{Input, LinkError, Linker, Run, joined, plain, windows};

pub(super) fn link(linker: &Linker, objects: &[PathBuf], output: &Path) -> Result<Run, LinkError> {
    let command = match (linker.format(), linker.target.environment) {
        (BinaryFormat::Elf, _) => elf(linker, objects, output)?,
        (BinaryFormat::Macho, _) => macho(linker, objects, output)?,
        (BinaryFormat::Coff, Environment::Msvc) => msvc(linker, objects, output)?,
        (BinaryFormat::Coff, _) => mingw(linker, objects, output)?,
        _ => return Err(linker.unsupported("expected one of ELF, Mach-O or COFF")),
    };
    run(command)
}

fn elf(linker: &Linker, objects: &[PathBuf], output: &Path) -> Result<Command, LinkError> {
    let mut command = driver(linker)?;
    // what isn't needed of libc and the like shall not be asked for when the library is loaded
    command.args(["-shared", "-Wl,--as-needed", "-o"]).arg(output);
    command.args(linker.elf_inputs(objects, |option| format!("-Wl,{option}").into()));
    command.args(linker.last(linker.runtime.as_deref()));
    Ok(command)
}

fn macho(linker: &Linker, objects: &[PathBuf], output: &Path) -> Result<Command, LinkError> {
    let mut command = driver(linker)?;
    command.args(["-dynamiclib", "-Wl,-undefined,dynamic_lookup", "-o"]).arg(output);
    // unless told, the linker takes the output's path, which is a temporary one
    let file = output.file_name().unwrap_or_default();
    command.arg(joined("-Wl,-install_name,@rpath/", Path::new(file)));
    command.args(objects).args(linker.folders.iter().map(|folder| joined("-L", folder)));
    for input in &linker.inputs {
        match input {
            Input::File(path) => command.arg(path),
            Input::WholeArchive(path) => command.arg(joined("-Wl,-force_load,", path)),
            Input::Library(name) => command.arg(format!("-l{name}")),
        };
    }
    command.args(linker.last(linker.runtime.as_deref()));
    Ok(command)
}

fn mingw(linker: &Linker, objects: &[PathBuf], output: &Path) -> Result<Command, LinkError> {
    let runtime = windows::runtime(linker, objects, output.parent().unwrap_or(output))?;
    let mut command = driver(linker)?;
    command.args(["-shared", "-o"]).arg(output);
    command.args(linker.elf_inputs(objects, |option| format!("-Wl,{option}").into()));
    command.args(linker.last(runtime.as_deref()));
    Ok(command)
}

fn msvc(linker: &Linker, objects: &[PathBuf], output: &Path) -> Result<Command, LinkError> {
    let runtime = windows::runtime(linker, objects, output.parent().unwrap_or(output))?;
    let architecture = match linker.target.architecture {
        Architecture::X86_64 => "x86_64",
        Architecture::Aarch64(_) => "aarch64",
        _ => return Err(linker.unsupported("expected x86-64 or aarch64")),
    };
    let tool = cc::windows_registry::find_tool(architecture, "link.exe");
    let tool = tool.ok_or_else(|| no_driver(linker, "Visual Studio's link.exe".to_owned()))?;
    let mut command = tool.to_command();
    command.args(["/NOLOGO", "/DLL"]).arg(joined("/OUT:", output)).args(objects);
    command.args(linker.folders.iter().map(|folder| joined("/LIBPATH:", folder)));
    for input in &linker.inputs {
        match input {
            Input::File(path) => command.arg(path),
            Input::WholeArchive(path) => command.arg(joined("/WHOLEARCHIVE:", path)),
            Input::Library(name) => command.arg(format!("{name}.lib")),
        };
    }
    command.args(linker.last(runtime.as_deref()));
    Ok(command)
}

fn no_driver(linker: &Linker, problem: String) -> LinkError {
    LinkError::NoDriver { target: Box::new(linker.target.clone()), problem }
}

/// The driver with the flags that choose the target.
fn driver(linker: &Linker) -> Result<Command, LinkError> {
    if let Some(command) = plain::driver(&linker.target) {
        return Ok(command);
    }
    let mut build = cc::Build::new();
    // the tool's defaults are those of a build script
    build.cargo_metadata(false).cargo_warnings(false).cargo_output(false).cargo_debug(false);
    build.inherit_rustflags(false).inherit_trim_paths(false).warnings(false).extra_warnings(false);
    build.target(&linker.target.to_string()).host(&HOST.to_string()).opt_level(0).debug(false);
    let tool = build.try_get_compiler().map_err(|error| no_driver(linker, error.to_string()))?;
    Ok(tool.to_command())
}

/// The path of a library where the driver looks for libraries. GNU's and LLVM's drivers tell it.
pub(super) fn find_library(linker: &Linker, name: &OsStr) -> Option<PathBuf> {
    let mut option = OsString::from("-print-file-name=");
    option.push(name);
    let mut command = driver(linker).ok()?;
    let done = command.arg(option).output().ok().filter(|done| done.status.success())?;
    let path = PathBuf::from(String::from_utf8(done.stdout).ok()?.trim_end());
    // the name alone says that there is none
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
