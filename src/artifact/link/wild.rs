//! Links in this process with the linker wild.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use target_lexicon::{Architecture, OperatingSystem, Triple};

use super::error::LinkError;
use super::stated::{Input, Link, Run, as_file};

/// The linker's name for a supported target.
pub(super) fn emulation(target: &Triple) -> Option<&'static str> {
    match (target.architecture, target.operating_system) {
        (Architecture::X86_64, OperatingSystem::Linux) => Some("elf_x86_64"),
        (Architecture::Aarch64(_), OperatingSystem::Linux) => Some("aarch64linux"),
        (Architecture::Riscv64(_), OperatingSystem::Linux) => Some("elf64lriscv"),
        _ => None,
    }
}

pub(super) fn link(linker: &Link, objects: &[PathBuf], output: &Path) -> Result<Run, LinkError> {
    let unsupported = || linker.unsupported("expected Linux on x86-64, aarch64 or riscv64");
    let emulation = emulation(&linker.target).ok_or_else(unsupported)?;
    let mut args: Vec<String> =
        ["wild", "-flavor", "gnu", "-m", emulation, "-shared", "--as-needed", "-z", "now"].map(String::from).into();
    // on a full disk, a write to a mapped file ends the process with `SIGBUS`
    args.push("--no-mmap-output-file".to_owned());
    if is_small(linker) {
        // the output doesn't depend on the number of threads, and starting them takes longer than the link
        args.push("--threads=1".to_owned());
    }
    let inputs = linker.elf_inputs(objects, |option| option.into());
    for arg in inputs.into_iter().chain(linker.last(linker.runtime.as_deref())).chain(["-o".into(), as_file(output)]) {
        args.push(arg.into_string().map_err(|arg| linker.unsupported(&format!("{} isn't UTF-8", arg.display())))?);
    }
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&warnings);
    let said = || warnings.lock().map(|warnings| warnings.clone()).unwrap_or_default();
    let failed = |problem: String| {
        let output = [said(), vec![problem]].concat().join("\n");
        LinkError::Failed { command: args.join(" "), status: "wild".to_owned(), output }
    };
    let run = || -> Result<(), String> {
        let mut parsed = libwild::Args::new(|| args.iter()).map_err(|error| error.to_string())?;
        // without a handler they are printed
        parsed.on_warning(Box::new(move |warning| {
            if let Ok(mut warnings) = keep.lock() {
                warnings.push(format!("warning: {}", warning.warning()));
            }
        }));
        parsed.parse(|| args.iter()).map_err(|error| error.to_string())?;
        libwild::run(parsed).map_err(|error| error.to_string())
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => Ok(Run { command: args.join(" "), output: said().join("\n") }),
        Ok(Err(problem)) => Err(failed(problem)),
        Err(_) => Err(failed("wild panicked, which is a bug of its own".to_owned())),
    }
}

/// Whether the inputs are too small for more threads to pay off.
fn is_small(linker: &Link) -> bool {
    const SMALL: u64 = 4 << 20;
    let in_memory: u64 = linker.objects.iter().map(|object| object.len() as u64).sum();
    let files = linker.inputs.iter().map(|input| match input {
        // the linker reports files that can't be accessed
        Input::File(path) | Input::WholeArchive(path) => std::fs::metadata(path).map_or(0, |found| found.len()),
        Input::Library(_) => SMALL,
    });
    files.fold(in_memory, u64::saturating_add) < SMALL
}
