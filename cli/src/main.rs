//! `tvm-ffi-codegen`: the library's features for compilers in other languages and for build systems.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod error;
mod explain;
mod host;
mod images;
mod inspect;
mod io;
mod pack;
mod progress;
#[cfg(unix)]
mod signals;
mod signatures;
mod wrap;

use error::{CliError, MessageFormat};

#[cfg(not(any(
    feature = "cranelift",
    feature = "llvm19-1",
    feature = "llvm20-1",
    feature = "llvm21-1",
    feature = "llvm22-1",
    feature = "llvm22-1-loaded"
)))]
compile_error!(
    "the command line needs a backend: enable one of the features cranelift, llvm19-1, llvm20-1, llvm21-1, llvm22-1, \
     llvm22-1-loaded"
);

/// Makes checked, fast functions of the TVM FFI stable C ABI from compiled kernels
#[derive(Parser)]
#[command(name = "tvm-ffi-codegen", version)]
struct Cli {
    /// How errors are written to stderr: as text, or as a JSON object in one line
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    message_format: MessageFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Wrap(Box<wrap::Wrap>),
    Check(host::Check),
    Format(host::Format),
    Explain(explain::Explain),
    Pack(pack::Pack),
    Inspect(inspect::Inspect),
}

fn main() -> ExitCode {
    let cli = Cli::try_parse();
    let format = cli.as_ref().map_or_else(|_| asked_format(), |cli| cli.message_format);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(format),
    }
}

fn run(cli: Result<Cli, clap::Error>) -> Result<(), CliError> {
    #[cfg(unix)]
    signals::watch().map_err(|error| CliError::at("signals", error))?;
    match cli {
        Ok(cli) => match cli.command {
            Command::Wrap(wrap) => wrap.run(cli.message_format),
            Command::Check(check) => check.run(),
            Command::Format(format) => format.run(),
            Command::Explain(explain) => explain.run(),
            Command::Pack(pack) => pack.run(cli.message_format),
            Command::Inspect(inspect) => inspect.run(),
        },
        Err(error) if error.use_stderr() => Err(CliError::Usage(error.to_string())),
        Err(help) => io::print(&help.to_string()),
    }
}

/// The requested message format, for arguments that can't be parsed.
fn asked_format() -> MessageFormat {
    let args: Vec<_> = std::env::args_os().collect();
    let asks = |pair: &[std::ffi::OsString]| pair[0] == "--message-format" && pair[1] == "json";
    match args.iter().any(|arg| arg == "--message-format=json") || args.windows(2).any(asks) {
        true => MessageFormat::Json,
        false => MessageFormat::Text,
    }
}
