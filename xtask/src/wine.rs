//! Wine: runs programs for Windows on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Cmd, cargo, cmd, root, target_folder};
use crate::run::Failure;

/// The target, for Rust and for the command line.
pub const TRIPLE: &str = "x86_64-pc-windows-gnu";
/// The C and C++ compilers for it, which are also the linkers.
pub const GCC: &str = "x86_64-w64-mingw32-gcc-posix";
pub const GXX: &str = "x86_64-w64-mingw32-g++-posix";

/// Programs that Debian installs outside `PATH`: the one that runs programs, and their common server.
pub const PROGRAM: &str = "/usr/lib/wine/wine64";
const SERVER: &str = "/usr/lib/wine/wineserver64";

type Result<T = ()> = std::result::Result<T, Failure>;

/// A separate Windows installation: a *prefix* with its drives and its registry.
pub struct Wine {
    prefix: PathBuf,
}

impl Wine {
    /// The prefix under `target/`, which is created if missing.
    pub fn prepare() -> Result<Self> {
        let wine = Wine { prefix: root().join("target/wine") };
        let library = wine.prefix.join("drive_c/windows/system32/bcryptprimitives.dll");
        fs::create_dir_all(&wine.prefix).map_err(|e| failure(&wine.prefix, &e))?;
        // The server takes a second to start Windows' services, unless it still runs after the last program. It exits
        // this many seconds after the last one.
        wine.within(cmd(SERVER, &["--persistent=20"])).quiet();
        // `wineboot` writes this file last
        if !wine.prefix.join("system.reg").is_file() {
            wine.run(Path::new("wineboot"), &["--init"]).run()?;
        }
        // Rust's standard library needs this DLL, and Wine 8 lacks it
        let source = "tests/windows/bcryptprimitives.c";
        cmd(GCC, &["-shared", "-O1", "-Wall", "-Werror", source, "-o", &library.to_string_lossy(), "-ladvapi32"])
            .run()?;
        Ok(wine)
    }

    /// The directory that is drive C:.
    pub fn drive(&self) -> PathBuf {
        self.prefix.join("drive_c")
    }

    /// A program for Windows, given its path, or its name in Windows' own directory.
    pub fn run(&self, program: &Path, args: &[&str]) -> Cmd {
        self.within(cmd(PROGRAM, &[&[&*program.to_string_lossy()], args].concat()))
    }

    /// `cargo` for Windows. It runs the built programs under Wine.
    pub fn cargo(&self, args: &[&str]) -> Cmd {
        let variable = |what: &str| format!("CARGO_TARGET_{}_{what}", TRIPLE.replace('-', "_").to_uppercase());
        let command = cargo(&[args, &["--target", TRIPLE]].concat());
        self.within(command).env(&variable("LINKER"), GCC).env(&variable("RUNNER"), PROGRAM)
    }

    /// Wine's environment: names of variables, and their values.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("WINEPREFIX", self.prefix.to_string_lossy().into_owned()),
            ("WINEDEBUG", "-all".to_owned()),
            // disable .NET and the browser, which Wine would offer to download, and the debugger for crashes
            ("WINEDLLOVERRIDES", "mscoree,mshtml,winedbg.exe=".to_owned()),
            // the names of files are UTF-8
            ("LC_ALL", "C.UTF-8".to_owned()),
        ]
    }

    /// Sets Wine's environment for a command that starts it.
    fn within(&self, command: Cmd) -> Cmd {
        self.environment().iter().fold(command, |command, (name, value)| command.env(name, value))
    }
}

/// The directory of cargo's outputs for Windows.
pub fn windows_folder() -> PathBuf {
    target_folder().join(TRIPLE).join("debug")
}

/// A path of this machine in the form that a program under Wine takes.
pub fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.to_string_lossy().replace('/', "\\"))
}

/// Directories in which programs look for DLLs, as the value of `WINEPATH`.
pub fn windows_paths(folders: &[&Path]) -> String {
    folders.iter().map(|folder| windows_path(folder)).collect::<Vec<_>>().join(";")
}

fn failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure { what: format!("{}: {error}", path.display()), tests: Default::default() }
}
