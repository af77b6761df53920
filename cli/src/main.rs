//! `tvm-ffi-codegen`: what the library does, for compilers in other languages and for build systems.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod error;
mod explain;
mod inspect;
mod io;
mod pack;
#[cfg(unix)]
mod signals;
mod signatures;
mod wrap;

use error::CliError;

#[cfg(not(any(
    feature = "cranelift",
    feature = "llvm19-1",
    feature = "llvm20-1",
    feature = "llvm21-1",
    feature = "llvm22-1"
)))]
compile_error!(
    "the command line needs a backend: enable one of the features cranelift, llvm19-1, llvm20-1, llvm21-1, llvm22-1"
);

/// Makes checked, fast functions of the TVM FFI stable C ABI from compiled kernels
#[derive(Parser)]
#[command(name = "tvm-ffi-codegen", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Wrap(Box<wrap::Wrap>),
    Explain(explain::Explain),
    Pack(pack::Pack),
    Inspect(inspect::Inspect),
}

fn main() -> ExitCode {
    #[cfg(unix)]
    if let Err(error) = signals::watch() {
        return CliError::at("signals", error).report();
    }
    let result = match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Command::Wrap(wrap) => wrap.run(),
            Command::Explain(explain) => explain.run(),
            Command::Pack(pack) => pack.run(),
            Command::Inspect(inspect) => inspect.run(),
        },
        Err(error) if error.use_stderr() => Err(CliError::Usage(error.to_string())),
        Err(help) => io::print(&help.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
