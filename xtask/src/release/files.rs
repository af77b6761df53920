//! The files of a release for each target: a wheel, and archives of the command line and of the C library.

use std::fs;
use std::path::{Path, PathBuf};

use super::{failed, folder, text, version};
use crate::command::{Cmd, Tests, cargo, cmd, root, target_folder};
use crate::python::maturin;
use crate::run::Failure;
use crate::tools::{CARGO_ZIGBUILD, ZIG, python_package};

/// The profile of all files.
const PROFILE: &str = "dist";
/// The features of every file that the system's loader can load LLVM into.
const FEATURES: &[&str] = &["libwild", "llvm22-1-loaded"];
/// A static program can't load LLVM.
const STATIC_FEATURES: &[&str] = &["libwild"];
/// The packages of the archives.
const PACKAGES: [&str; 2] = ["tvm-ffi-codegen-cli", "tvm-ffi-codegen-c"];

/// A target of the release.
struct Target {
    triple: &'static str,
    linker: Linker,
    /// The name of the platform for `maturin --compatibility`.
    compatibility: &'static str,
}

enum Linker {
    /// Zig's, for Linux: with this version of the C library in the target's name.
    Zig(&'static str),
    Mingw,
    /// The toolchain's own.
    System,
}

/// Files for Linux with glibc 2.28 or newer.
pub fn x86_64_linux() -> Result<Tests, Failure> {
    files(&Target { triple: "x86_64-unknown-linux-gnu", linker: Linker::Zig(".2.28"), compatibility: "manylinux_2_28" })
}

/// The same for aarch64.
pub fn aarch64_linux() -> Result<Tests, Failure> {
    files(&Target {
        triple: "aarch64-unknown-linux-gnu",
        linker: Linker::Zig(".2.28"),
        compatibility: "manylinux_2_28",
    })
}

/// A wheel for musl, and a command line without any dependency.
pub fn musl_linux() -> Result<Tests, Failure> {
    files(&Target { triple: "x86_64-unknown-linux-musl", linker: Linker::Zig(""), compatibility: "musllinux_1_2" })
}

/// The target of [`windows`].
pub const WINDOWS: &str = "x86_64-pc-windows-gnu";

pub fn windows() -> Result<Tests, Failure> {
    files(&Target { triple: WINDOWS, linker: Linker::Mingw, compatibility: "off" })
}

pub fn aarch64_macos() -> Result<Tests, Failure> {
    files(&Target { triple: "aarch64-apple-darwin", linker: Linker::System, compatibility: "off" })
}

pub fn x86_64_macos() -> Result<Tests, Failure> {
    files(&Target { triple: "x86_64-apple-darwin", linker: Linker::System, compatibility: "off" })
}

/// The source distribution of the package for Python.
pub fn sdist() -> Result<Tests, Failure> {
    maturin(&["sdist", "--out", &text(&folder())]).run().map(|output| output.tests)
}

/// Builds a wheel from the source distribution, as pip does where there is no wheel.
pub fn sdist_builds() -> Result<Tests, Failure> {
    let source = newest(&folder(), ".tar.gz", "tvm_ffi_codegen-")?;
    let to = text(&target_folder().join("release-sdist"));
    cmd("python3", &["-m", "pip", "wheel", "--no-deps", "--wheel-dir", &to, &text(&source)]).runs_cargo().run()?;
    Ok(Tests { passed: 1, ..Tests::default() })
}

/// The file of a directory with this start and end.
pub fn newest(folder: &Path, end: &str, start: &str) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(folder).map_err(|e| failed(format!("{}: {e}", folder.display())))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        })
    });
    found.sort();
    found.pop().ok_or_else(|| failed(format!("{}: no file {start}*{end}", folder.display())))
}

fn files(target: &Target) -> Result<Tests, Failure> {
    if matches!(target.linker, Linker::System) && !cfg!(target_os = "macos") {
        println!("left out: only macOS links for {}", target.triple);
        return Ok(Tests { skipped: 1, ..Tests::default() });
    }
    let licences = root().join("python/THIRD-PARTY-LICENSES");
    cmd("python3", &["xtask/src/release/licences.py", &text(&licences), target.triple]).run()?;
    target.wheel()?;
    target.build()?;
    target.archive_command(&licences)?;
    target.archive_library(&licences)?;
    Ok(Tests::default())
}

impl Target {
    fn wheel(&self) -> Result<(), Failure> {
        let words = ["build", "--profile", PROFILE, "--target", self.triple, "--compatibility", self.compatibility];
        let more: &[&str] = match self.linker {
            Linker::Zig(_) => &["--zig"],
            // otherwise maturin looks for `python.exe`
            Linker::Mingw => &["--interpreter", "python3"],
            Linker::System => &[],
        };
        let to = text(&folder());
        self.environment(maturin(&[&words, more, &["--out", &to]].concat())).run().map(drop)
    }

    /// The archive of the command line: the program and its licences.
    fn archive_command(&self, licences: &Path) -> Result<(), Failure> {
        let program = if self.is_windows() { "tvm-ffi-codegen.exe" } else { "tvm-ffi-codegen" };
        self.archive("tvm-ffi-codegen", licences, &[(self.built().join(program), format!("bin/{program}"))])
    }

    /// The archive of the C library: header, libraries, and the files for `pkg-config` and CMake.
    fn archive_library(&self, licences: &Path) -> Result<(), Failure> {
        let mut files = vec![(root().join("clib/include/tvm_ffi_codegen.h"), "include/tvm_ffi_codegen.h".to_owned())];
        let mut names = vec!["libtvm_ffi_codegen.a"];
        match self.triple {
            WINDOWS => names.extend(["tvm_ffi_codegen.dll", "libtvm_ffi_codegen.dll.a"]),
            triple if triple.contains("darwin") => names.push("libtvm_ffi_codegen.dylib"),
            triple if triple.contains("musl") => {} // its crates are for static programs
            _ => names.push("libtvm_ffi_codegen.so"),
        }
        files.extend(names.into_iter().map(|name| (self.built().join(name), format!("lib/{name}"))));
        for (name, to) in [
            ("tvm_ffi_codegen.pc", "lib/pkgconfig"),
            ("tvm_ffi_codegen-config.cmake", "lib/cmake/tvm_ffi_codegen"),
            ("tvm_ffi_codegen-config-version.cmake", "lib/cmake/tvm_ffi_codegen"),
        ] {
            files.push((self.with_version(name)?, format!("{to}/{name}")));
        }
        self.archive("tvm-ffi-codegen-c", licences, &files)
    }

    /// A file of `clib/packaging` with the version, and the system's libraries that the static one needs.
    fn with_version(&self, name: &str) -> Result<PathBuf, Failure> {
        let to = self.built().join(name);
        let version = version()?;
        let libraries = if self.is_windows() {
            "-lws2_32 -luserenv -lbcrypt -lntdll -lole32 -loleaut32"
        } else {
            "-lm -ldl -lpthread"
        };
        let written = fs::read_to_string(root().join("clib/packaging").join(name)).and_then(|text| {
            fs::write(&to, text.replace("@VERSION@", &version).replace("@SYSTEM_LIBRARIES@", libraries))
        });
        written.map(|()| to).map_err(|e| failed(format!("clib/packaging/{name}: {e}")))
    }

    fn is_windows(&self) -> bool {
        self.triple == WINDOWS
    }

    /// The directory of what cargo has built.
    fn built(&self) -> PathBuf {
        target_folder().join(self.triple).join(PROFILE)
    }

    /// Builds the command line and the C library, which share their dependencies.
    fn build(&self) -> Result<(), Failure> {
        let features = if self.triple.contains("musl") { STATIC_FEATURES } else { FEATURES };
        let features: Vec<String> =
            PACKAGES.iter().flat_map(|of| features.iter().map(move |feature| format!("{of}/{feature}"))).collect();
        let features = features.join(",");
        let packages: Vec<&str> = PACKAGES.iter().flat_map(|name| ["-p", name]).collect();
        let words = [&packages[..], &["--profile", PROFILE, "--features", &features, "--target"]].concat();
        let command = match self.linker {
            Linker::Zig(version) => {
                let triple = format!("{}{version}", self.triple);
                let program = text(&python_package(&CARGO_ZIGBUILD).join("bin/cargo-zigbuild"));
                cmd(&program, &[&["zigbuild"], &words[..], &[&triple]].concat()).runs_cargo()
            }
            Linker::Mingw | Linker::System => cargo(&[&["build"], &words[..], &[self.triple]].concat()),
        };
        self.environment(command).run().map(drop)
    }

    /// The command with the environment of a build: it finds the linker, and no LLVM.
    fn environment(&self, command: Cmd) -> Cmd {
        // build as on a machine without LLVM
        let command = command.env("LLVM_SYS_221_PREFIX", "/nonexistent");
        match self.linker {
            Linker::Zig(_) => command.env("CARGO_ZIGBUILD_ZIG_PATH", &text(&python_package(&ZIG).join("ziglang/zig"))),
            Linker::Mingw => command
                .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", "x86_64-w64-mingw32-gcc-posix")
                // For this target, the code of a crate is one section, and the linker can't leave out a part of it.
                // Without this, the wheel is larger than 10 MiB.
                .env("CARGO_PROFILE_DIST_LTO", "thin"),
            Linker::System => command,
        }
    }

    /// Packs files, by their names in the archive, into `NAME-TARGET.tar.gz` with the directory `NAME`.
    fn archive(&self, name: &str, licences: &Path, files: &[(PathBuf, String)]) -> Result<(), Failure> {
        let stage = target_folder().join("release-stage").join(self.triple);
        let inside = stage.join(name);
        let copy = |from: &Path, to: &str| {
            let to = inside.join(to);
            let made = to.parent().map_or(Ok(()), fs::create_dir_all);
            made.and_then(|()| fs::copy(from, to)).map_err(|e| failed(format!("{}: {e}", from.display())))
        };
        // left by an earlier run
        let _ = fs::remove_dir_all(&inside);
        for (from, to) in files {
            copy(from, to)?;
        }
        copy(&root().join("LICENSE"), "LICENSE")?;
        copy(&root().join("NOTICE"), "NOTICE")?;
        copy(licences, "THIRD-PARTY-LICENSES")?;
        fs::create_dir_all(folder()).map_err(|e| failed(e.to_string()))?;
        let archive = folder().join(format!("{name}-{}.tar.gz", self.triple));
        cmd("tar", &["-czf", &text(&archive), "-C", &text(&stage), name]).run().map(drop)
    }
}
