//! The files of a release, and their tests. Nothing here publishes anything.

mod aarch64;
mod archives;
mod crates;
mod files;
mod wheels;

use std::fs;
use std::path::{Path, PathBuf};

pub use aarch64::check as aarch64;
pub use archives::check as archives;
pub use crates::{builds, check as crates, packed, patches};
pub use files::{
    WINDOWS, aarch64_linux, aarch64_macos, musl_linux, sdist, sdist_builds, windows, x86_64_linux, x86_64_macos,
};
pub use wheels::{check as files, pythons};

use crate::command::{Tests, root, target_folder};
use crate::run::Failure;

/// The directory of the files.
pub fn folder() -> PathBuf {
    target_folder().join("release-files")
}

/// The version of the workspace.
fn version() -> Result<String, Failure> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).map_err(|e| failed(e.to_string()))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    line.map(str::to_owned).ok_or_else(|| failed("Cargo.toml states no version"))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn failed(what: impl Into<String>) -> Failure {
    Failure { what: what.into(), tests: Tests::default() }
}
