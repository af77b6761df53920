//! Standard input and output.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use crate::error::CliError;

/// Prints to stdout. A reader that goes away early is none of our business.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
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
    let text = match path.as_os_str() == "-" {
        true => String::from_utf8(read_stdin()?).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is no UTF-8")),
        false => fs::read_to_string(path),
    };
    text.map_err(|error| CliError::at(path.display(), error))
}

/// The bytes of a file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, CliError> {
    fs::read(path).map_err(|error| CliError::at(path.display(), error))
}
