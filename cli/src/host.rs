//! `tvm-ffi-codegen check` and `format`: files of host text.

use std::path::{Path, PathBuf};

use clap::Args;
use tvm_ffi_codegen::HostProgram;
use tvm_ffi_codegen::artifact::LibraryBuilder;

use crate::error::{CliError, failure_in};
use crate::images::Images;
use crate::io::{input_name, read_text, write_text};

/// Checks a file of host text: finds all errors of its grammar, or else all errors of its functions
#[derive(Args)]
pub struct Check {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    images: Images,
}

impl Check {
    pub fn run(&self) -> Result<(), CliError> {
        let program = read_program(&self.file, &self.images)?;
        LibraryBuilder::new().program(&program).check().map_err(|error| failure_in(input_name(&self.file), error))
    }
}

/// Prints a file of host text in its canonical form, with its comments
#[derive(Args)]
pub struct Format {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write, which may be the same; by default, or for `-`, stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

impl Format {
    pub fn run(&self) -> Result<(), CliError> {
        let text =
            HostProgram::format(&read_text(&self.file)?).map_err(|error| failure_in(input_name(&self.file), error))?;
        write_text(&self.output, &text)
    }
}

/// Reads a file of host text with the images of its launches.
pub fn read_program(path: &Path, images: &Images) -> Result<HostProgram, CliError> {
    HostProgram::parse_with(&read_text(path)?, images.read_named()?)
        .map_err(|error| failure_in(input_name(path), error))
}
