//! `tvm-ffi-codegen wrap`

use clap::Args;

use crate::error::CliError;
use crate::signatures::Functions;

/// Makes wrappers
#[derive(Args)]
pub struct Wrap {
    #[command(flatten)]
    functions: Functions,
}

impl Wrap {
    pub fn run(&self) -> Result<(), CliError> {
        let _ = self.functions.read()?;
        Ok(())
    }
}
