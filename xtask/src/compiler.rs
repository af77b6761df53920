//! The C compiler of programs under Wine, which can't start a program of this machine and wait for it.
//!
//! They start `tests/windows/compiler.rs` by the name `cc`. It connects to this server with a request: the token, the
//! name that it was started by, its directory and its arguments, separated by zeros. The server runs mingw. It answers
//! with the exit code and the length of the standard output (32 bits each, little-endian), the standard output, and the
//! standard error.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::command::{Cmd, cmd, target_folder};
use crate::run::Failure;
use crate::wine::{GCC, GXX, TRIPLE, Wine, windows_paths};

/// The client's names, and the program to run for each.
const PROGRAMS: [(&str, &str); 5] =
    [("cc", GCC), ("gcc", GCC), ("c++", GXX), ("g++", GXX), ("dlltool", "x86_64-w64-mingw32-dlltool")];

/// The server. It answers as long as this process lives.
pub struct CompilerServer {
    address: String,
    /// A secret of the programs that this process starts. Other users of the machine don't know it.
    token: String,
    /// The directory of the client.
    folder: PathBuf,
}

impl CompilerServer {
    /// Starts it, and builds the client.
    pub fn start(wine: &Wine) -> Result<Self, Failure> {
        let folder = target_folder().join("wine-compiler");
        let client = build_client(&folder)?;
        let failure = |e: io::Error| Failure { what: format!("the compiler for Wine: {e}"), tests: Default::default() };
        for (name, _) in PROGRAMS {
            fs::copy(&client, folder.join(format!("{name}.exe"))).map_err(failure)?;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failure)?;
        let address = listener.local_addr().map_err(failure)?.to_string();
        let token = format!("{:016x}", RandomState::new().hash_one("token"));
        let (known, drive) = (token.clone(), wine.drive());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (known, drive) = (known.clone(), drive.clone());
                thread::spawn(move || {
                    if let Err(error) = answer(stream, &known, &drive) {
                        eprintln!("the compiler for Wine: {error}");
                    }
                });
            }
        });
        Ok(Self { address, token, folder })
    }

    /// Lets a program under Wine, and its children, find the compiler.
    pub fn within(&self, command: Cmd) -> Cmd {
        command
            .env("XTASK_COMPILER_ADDRESS", &self.address)
            .env("XTASK_COMPILER_TOKEN", &self.token)
            .env("WINEPATH", &windows_paths(&[&self.folder]))
    }
}

/// Compiles the client.
fn build_client(folder: &Path) -> Result<PathBuf, Failure> {
    let client = folder.join("compiler.exe");
    let linker = format!("linker={GCC}");
    let (output, options) = (client.to_string_lossy(), ["--edition=2024", "-O", "-Dwarnings", "-C", &linker]);
    let _ = fs::create_dir_all(folder);
    let files = ["--target", TRIPLE, "tests/windows/compiler.rs", "-o", &*output];
    cmd("rustc", &[&options[..], &files].concat()).run()?;
    Ok(client)
}

fn answer(mut stream: TcpStream, token: &str, drive: &Path) -> io::Result<()> {
    let mut request = String::new();
    stream.read_to_string(&mut request)?;
    let words: Vec<&str> = request.split('\0').collect();
    let invalid = |what: &str| io::Error::new(ErrorKind::InvalidInput, what.to_owned());
    let [known, name, folder, args @ ..] = &words[..] else { return Err(invalid("the request is cut off")) };
    if *known != token {
        return Err(invalid("a request of another program"));
    }
    let (_, program) = PROGRAMS.iter().find(|(alias, _)| alias == name).ok_or_else(|| invalid("no such compiler"))?;
    let mut command = Command::new(program);
    let done =
        command.current_dir(host_text(folder, drive)).args(args.iter().map(|arg| host_text(arg, drive))).output();
    let (code, stdout, stderr) = match done {
        // a compiler that a signal ends has no exit code
        Ok(done) => (done.status.code().unwrap_or(126), done.stdout, done.stderr),
        Err(error) => (127, Vec::new(), format!("{program}: {error}\n").into_bytes()),
    };
    stream.write_all(&code.to_le_bytes())?;
    stream.write_all(&(stdout.len() as u32).to_le_bytes())?;
    stream.write_all(&stdout)?;
    stream.write_all(&stderr)
}

/// An argument with its paths translated to this machine's. Drive Z: is the root, and drive C: is in the prefix.
fn host_text(arg: &str, drive: &Path) -> String {
    let mut arg = arg.replace(r"\\?\", "");
    let mut has_path = false;
    for (letter, place) in
        [("Z:", ""), ("z:", ""), ("C:", &*drive.to_string_lossy()), ("c:", &*drive.to_string_lossy())]
    {
        for slash in ['\\', '/'] {
            let root = format!("{letter}{slash}");
            has_path |= arg.contains(&root);
            arg = arg.replace(&root, &format!("{place}/"));
        }
    }
    if has_path { arg.replace('\\', "/") } else { arg }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_of_this_machine() {
        let of = |arg: &str| host_text(arg, Path::new("/p/drive_c"));
        assert_eq!(of("-fPIC"), "-fPIC");
        assert_eq!(of(r#"-DTEXT="a\n""#), r#"-DTEXT="a\n""#);
        assert_eq!(of(r"\\?\Z:\a b\c.o"), "/a b/c.o");
        assert_eq!(of(r"-Wl,--out-implib,C:\x\y.a"), "-Wl,--out-implib,/p/drive_c/x/y.a");
    }
}
