//! A C compiler for programs under Wine. It asks `cargo xtask`, outside Wine, to run mingw with the same arguments.
//!
//! The executable's name is the compiler's, such as `cc.exe`. `xtask/src/compiler.rs` is the other end, and documents
//! the protocol.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::exit;

fn main() {
    match run() {
        Ok(code) => exit(code),
        Err(error) => {
            eprintln!("the compiler outside of Wine: {error}");
            exit(125);
        }
    }
}

fn run() -> Result<i32> {
    let variable = |name: &str| std::env::var(name).map_err(|e| Error::new(ErrorKind::NotFound, format!("{name}: {e}")));
    let mut args = std::env::args();
    let own = args.next().unwrap_or_default();
    let name = Path::new(&own).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = std::env::current_dir()?.to_string_lossy().into_owned();
    let words: Vec<String> = [variable("XTASK_COMPILER_TOKEN")?, name, folder].into_iter().chain(args).collect();

    let mut stream = TcpStream::connect(variable("XTASK_COMPILER_ADDRESS")?)?;
    stream.write_all(words.join("\0").as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;

    let (code, rest) = answer.split_first_chunk().ok_or(ErrorKind::UnexpectedEof)?;
    let (length, rest) = rest.split_first_chunk().ok_or(ErrorKind::UnexpectedEof)?;
    let (stdout, stderr) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(ErrorKind::UnexpectedEof)?;
    std::io::stdout().write_all(stdout)?;
    std::io::stderr().write_all(stderr)?;
    Ok(i32::from_le_bytes(*code))
}
