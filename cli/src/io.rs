//! Standard input and output.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use crate::error::CliError;

/// True for the path `-`, which means stdin or stdout.
pub fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of an input in messages.
pub fn input_name(path: &Path) -> String {
    if is_stream(path) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Prints to stdout. Ignores a reader that closes the pipe early.
pub fn print(text: &str) -> Result<(), CliError> {
    print_bytes(text.as_bytes())
}

/// Writes a text to a file; to stdout for `-`.
pub fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    if is_stream(path) {
        return print(text);
    }
    fs::write(path, text).map_err(|error| CliError::at_path(path, error))
}

/// Writes bytes to stdout, as `print` does.
pub fn print_bytes(mut bytes: &[u8]) -> Result<(), CliError> {
    copy_to_stdout(&mut bytes)
}

/// Copies everything from a reader to stdout, as `print` does.
pub fn copy_to_stdout(from: &mut impl Read) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    match io::copy(from, &mut stdout).and_then(|_| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CliError::at("stdout", error)),
        _ => Ok(()),
    }
}

/// All of stdin.
pub fn read_stdin() -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| CliError::at("stdin", error))?;
    Ok(bytes)
}

/// The text of a file; of stdin for `-`.
pub fn read_text(path: &Path) -> Result<String, CliError> {
    let text = match is_stream(path) {
        true => String::from_utf8(read_stdin()?).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it isn't UTF-8")),
        false => fs::read_to_string(path),
    };
    text.map_err(|error| CliError::at_path(path, error))
}

/// The bytes of a file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, CliError> {
    fs::read(path).map_err(|error| CliError::at_path(path, error))
}
