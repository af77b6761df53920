//! The files that a scenario may leave in its directory: whole ones, each either as it was before or as it must be.

use std::fs;
use std::path::{Path, PathBuf};

use tvm_ffi_codegen::artifact::inspect;

use crate::scenarios::Scenario;
use crate::steps::load;
use crate::{Folders, Result};

/// The content of the files at the outputs' paths before a scenario runs.
const OLD: &[u8] = b"what was there before, and stays if the scenario fails";

/// Empties the directory, and puts the old files there.
pub fn begin(scenario: &Scenario, folders: &Folders) -> Result {
    if folders.out.exists() {
        fs::remove_dir_all(&folders.out)?;
    }
    fs::create_dir_all(&folders.out)?;
    put_old(scenario, folders)
}

/// Puts an old file at each output's path.
pub fn put_old(scenario: &Scenario, folders: &Folders) -> Result {
    for output in scenario.outputs {
        fs::write(folders.out.join(output), OLD)?;
    }
    Ok(())
}

/// Checks every file under a final name. `is_done`: the scenario has succeeded, so all outputs are new.
pub fn check(scenario: &Scenario, folders: &Folders, is_done: bool) -> Result {
    for output in scenario.outputs {
        let found = fs::read(folders.out.join(output))?;
        let expected = fs::read(folders.reference.join(output))?;
        // a linker that doesn't find one of its inputs may go on with another one
        let is_another = || output.ends_with(".so") && is_whole(&folders.out.join(output));
        if found != expected && (is_done || found != OLD) && !is_another() {
            return Err(format!("{output} has {} bytes that are neither old nor new", found.len()).into());
        }
    }
    check_cache(&folders.out.join("cache"), &folders.reference.join(ARTIFACT))
}

/// Whether a library has all that its headers name, and works.
fn is_whole(library: &Path) -> bool {
    inspect(library).is_ok() && load(library).is_ok()
}

/// The file whose bytes every entry of a cache has.
pub const ARTIFACT: &str = "artifact.so";

/// Checks the names of a cache's directory. Every entry has its name's bytes: those of the artifact.
fn check_cache(cache: &Path, artifact: &Path) -> Result {
    if !cache.exists() {
        return Ok(());
    }
    let expected = fs::read(artifact)?;
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "CACHEDIR.TAG" {
            let tag = fs::read_to_string(&path)?;
            if !tag.starts_with("Signature: 8a477f597d28d172789f06886806bc55\n") || !tag.ends_with("here.\n") {
                return Err(format!("CACHEDIR.TAG is {tag:?}").into());
            }
        } else if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                let entry = entry?.path();
                if fs::read(&entry)? != expected {
                    return Err(format!("{} has other bytes", entry.display()).into());
                }
            }
        } else if !name.starts_with(".unfinished-") {
            return Err(format!("the cache has a file {name}").into());
        }
    }
    Ok(())
}

/// Temporary files and directories that are left in a directory.
pub fn unfinished(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(".tvm-ffi-") || name.starts_with(".unfinished-") {
            found.push(path);
        } else if path.is_dir() {
            found.extend(unfinished(&path)?);
        }
    }
    Ok(found)
}
