//! The archives of each target, used as the book's pages for C and for the command line say: on this machine, or on an
//! emulator.

use std::fs;
use std::path::PathBuf;

use super::{failed, folder, text};
use crate::book;
use crate::command::{Tests, cmd, target_folder};
use crate::run::Failure;
use crate::tools::{CMAKE, UPSTREAM, ZIG, python_package};
use crate::wine::{self, Wine};

const PROJECT: &str = "\
cmake_minimum_required(VERSION 3.16)
project(first C)
find_package(tvm_ffi_codegen 0.1 REQUIRED)
foreach(kind ${KINDS})
  add_executable(first_${kind} main.c)
  target_include_directories(first_${kind} PRIVATE ${TVM_FFI_HEADERS})
  target_link_libraries(first_${kind} PRIVATE tvm_ffi_codegen::${kind})
endforeach()
";

/// A target, and what its programs need here. All texts are for the shell.
#[derive(Clone)]
struct Platform {
    triple: &'static str,
    compiler: String,
    /// The command that runs a program; empty for this machine's own programs.
    emulator: String,
    /// The end of a program's name.
    suffix: &'static str,
    /// `static`, `shared`, or both.
    kinds: &'static [&'static str],
    /// Options of CMake.
    cmake: &'static str,
    /// Commands before all others.
    set_up: String,
}

/// For each target whose archives are here: makes a library with the command line, and builds a program with the C
/// library as `pkg-config` and CMake find it. Both print what the pages say.
pub fn check() -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    for platform in platforms()? {
        if platform.archive("tvm-ffi-codegen-c").is_file() {
            tests.passed += platform.links_programs()?;
            platform.makes_a_library()?;
            tests.passed += 1;
        } else {
            println!("left out: no archives for {}", platform.triple);
            tests.skipped += 1;
        }
    }
    Ok(tests)
}

fn platforms() -> Result<Vec<Platform>, Failure> {
    let zig = text(&python_package(&ZIG).join("ziglang/zig"));
    let wine = Wine::prepare()?;
    let environment = wine.environment().map(|(name, value)| format!("export {name}='{value}'"));
    let native = Platform {
        triple: "x86_64-unknown-linux-gnu",
        compiler: "cc".to_owned(),
        emulator: String::new(),
        suffix: "",
        kinds: &["static", "shared"],
        cmake: "",
        set_up: String::new(),
    };
    Ok(vec![
        Platform {
            triple: "x86_64-unknown-linux-musl",
            // gcc has an unwinder in every program, zig on request
            compiler: format!("{zig} cc -target x86_64-linux-musl -lunwind"),
            kinds: &["static"],
            ..native.clone()
        },
        Platform {
            triple: "aarch64-unknown-linux-gnu",
            compiler: "aarch64-linux-gnu-gcc".to_owned(),
            emulator: "qemu-aarch64 -L /usr/aarch64-linux-gnu".to_owned(),
            ..native.clone()
        },
        Platform {
            triple: wine::TRIPLE,
            compiler: wine::GCC.to_owned(),
            emulator: wine::PROGRAM.to_owned(),
            suffix: ".exe",
            cmake: "-DCMAKE_SYSTEM_NAME=Windows",
            // programs look for DLLs there
            set_up: format!("{}\nexport WINEPATH=Z:$library/lib", environment.join("\n")),
            ..native.clone()
        },
        native,
    ])
}

impl Platform {
    fn archive(&self, name: &str) -> PathBuf {
        folder().join(format!("{name}-{}.tar.gz", self.triple))
    }

    /// An empty directory.
    fn project(&self) -> Result<PathBuf, Failure> {
        let project = target_folder().join("release-archives").join(self.triple);
        // left by an earlier run
        let _ = fs::remove_dir_all(&project);
        fs::create_dir_all(&project).map(|()| project).map_err(|e| failed(e.to_string()))
    }

    /// Builds the program of the page for C, with `pkg-config` and with CMake, and compares what it prints. Returns the
    /// number of programs.
    fn links_programs(&self) -> Result<u64, Failure> {
        let project = self.project()?;
        let program = book::start_program("c", "main.c")?;
        let written = fs::write(project.join("main.c"), program.text)
            .and_then(|()| fs::write(project.join("CMakeLists.txt"), PROJECT));
        written.map_err(|e| failed(format!("{}: {e}", project.display())))?;
        let Self { compiler, emulator, suffix, cmake: options, set_up, .. } = self;
        let headers = text(&python_package(&UPSTREAM).join("tvm_ffi/include"));
        let cmake = text(&python_package(&CMAKE).join("bin/cmake"));
        let script = format!(
            "tar xf {archive}; library=$PWD/tvm-ffi-codegen-c
             {set_up}
             export PKG_CONFIG_PATH=$library/lib/pkgconfig LD_LIBRARY_PATH=$library/lib CC='{compiler}'
             flags=\"-I{headers} $(pkg-config --cflags tvm_ffi_codegen)\"
             shared=$(pkg-config --libs tvm_ffi_codegen)
             static=\"$library/lib/libtvm_ffi_codegen.a $(pkg-config --libs-only-l --static tvm_ffi_codegen | \
                 sed s/-ltvm_ffi_codegen//)\"
             {cmake} -S . -B build {options} -DCMAKE_PREFIX_PATH=$library \
                 -DTVM_FFI_HEADERS={headers} '-DKINDS={all}' >&2
             {cmake} --build build >&2
             for kind in {kinds}; do
               $CC $flags main.c ${{!kind}} -o $kind{suffix}
               for program in ./$kind build/first_$kind; do {emulator} $program{suffix}; done
             done",
            archive = text(&self.archive("tvm-ffi-codegen-c")),
            all = self.kinds.join(";"),
            kinds = self.kinds.join(" "),
        );
        let run = cmd("bash", &["-ec", &script]).within(&text(&project));
        // CMake's package for Python has its files beside its module
        let printed = run.env("PYTHONPATH", &text(&python_package(&CMAKE))).read()?.replace('\r', "");
        let programs = 2 * self.kinds.len();
        match printed == program.prints.repeat(programs) {
            true => Ok(programs as u64),
            false => Err(failed(format!("the programs for {} print\n{printed}", self.triple))),
        }
    }

    /// Follows the page for the command line. The target's program makes the library for this machine.
    fn makes_a_library(&self) -> Result<(), Failure> {
        let project = self.project()?;
        cmd("tar", &["-xf", &text(&self.archive("tvm-ffi-codegen")), "-C", &text(&project)]).run()?;
        let Self { emulator, suffix, set_up, .. } = self;
        let program = text(&project.join("tvm-ffi-codegen/bin/tvm-ffi-codegen"));
        let script = format!(
            "#!/bin/sh
             {set_up}
             command=$1; shift
             if [ $command = wrap ]; then set -- --target x86_64-unknown-linux-gnu \"$@\"; fi
             exec {emulator} {program}{suffix} $command \"$@\"
            "
        );
        book::command_line_start(&script)
    }
}
