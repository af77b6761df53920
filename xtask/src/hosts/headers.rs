//! C++ programs on upstream's headers. Each is built once and run with libraries of the same name: upstream's
//! `libtvm_ffi`, ours, and ours with the C++ part.

use std::thread;

use super::*;

/// Each program is a file `*.cc` in this directory of [`source`].
const FOLDER: &str = "headers";

/// As [`FOLDER`], for programs that need the C++ part.
pub(super) const CXX_FOLDER: &str = "cxx";

/// Builds every program, and runs it with each library that it can use. The outputs must be the same.
pub fn headers() -> Result<Tests> {
    let folder = folder(FOLDER)?;
    cargo(&["build", "--package", "tvm-ffi-runtime-c-as-upstream"]).run()?;
    let (theirs, ours) = (upstream().join("lib"), target_folder().join("debug"));
    let with_cxx = cxx::library(&folder)?;
    let mut tests = Tests::default();
    for library in [&ours, &with_cxx] {
        expect_soname(&library.join("libtvm_ffi.so"))?;
        expect_symbols(&library.join("libtvm_ffi.so"))?;
        tests.passed += 2;
    }
    missing::check(&folder, &theirs, &ours)?;
    cxx::expect_symbols(&theirs, &with_cxx)?;
    tests.passed += 2;

    let sources = |of: &str| -> Result<Vec<String>> {
        Ok(files(&root().join(source(of)), ".cc")?.iter().map(|name| format!("{of}/{name}")).collect())
    };
    let (plain, needing_cxx) = (sources(FOLDER)?, sources(CXX_FOLDER)?);
    let program = |name: &String| folder.join(name.replace('/', "_"));
    in_parallel(&[&plain[..], &needing_cxx].concat(), |name| build(name, &program(name)))?;
    let ours_alone = [("ours", &ours), ("ours with the C++ part", &with_cxx)];
    for (names, libraries) in [(plain, &ours_alone[..]), (needing_cxx, &ours_alone[1..])] {
        for name in names {
            let run = |library: &Path| {
                cmd(&text(&program(&name)), &[])
                    .env("LD_LIBRARY_PATH", &text(library))
                    .env("TESTING_LIBRARY", &text(&theirs.join("libtvm_ffi_testing.so")))
                    .env("TEMPORARY_FILE", &format!("{}.tmp", text(&program(&name))))
            };
            for (whose, library) in libraries {
                on_both::compare(&mut tests, &format!("{name} on {whose}"), run(&theirs), run(library))?;
            }
        }
    }
    cxx::python_programs(&mut tests, &folder, &with_cxx)?;
    Ok(tests)
}

/// Compiles the file `name` in [`source`], without its extension `.cc`, on upstream's headers. Links it with upstream's
/// library.
pub(super) fn build(name: &str, to: &Path) -> Result {
    let (include, library) = (text(&upstream().join("include")), text(&upstream().join("lib")));
    let options = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-isystem", &include];
    let from = source(&format!("{name}.cc"));
    cmd("g++", &[&options[..], &[&from, "-o", &text(to), "-L", &library, "-ltvm_ffi"]].concat()).run().map(|_| ())
}

/// Runs a build for each name, one per processor at a time.
pub(super) fn in_parallel(names: &[String], build: impl Fn(&String) -> Result + Sync) -> Result {
    let at_a_time = thread::available_parallelism().map_or(1, usize::from);
    let build = &build;
    for names in names.chunks(at_a_time) {
        thread::scope(|scope| {
            let builds: Vec<_> = names.iter().map(|name| scope.spawn(move || build(name))).collect();
            builds.into_iter().try_for_each(|build| build.join().map_err(|_| failure("a build panicked".to_owned()))?)
        })?;
    }
    Ok(())
}

/// Checks the SONAME: a program that was linked with one library looks for the other by this name.
fn expect_soname(library: &Path) -> Result {
    let dynamic = cmd("readelf", &["--dynamic", "--wide", &text(library)]).read()?;
    match dynamic.contains("Library soname: [libtvm_ffi.so]") {
        true => Ok(()),
        false => Err(failure(format!("{} has not the SONAME libtvm_ffi.so", library.display()))),
    }
}

/// Checks that the headers, [`SYMBOLS`] and the library have the same functions.
fn expect_symbols(library: &Path) -> Result {
    let include = upstream().join("include/tvm/ffi");
    let read = |path: PathBuf| fs::read_to_string(&path).map_err(|e| failure(format!("{}: {e}", path.display())));
    let mut declared = Vec::new();
    for header in ["c_api.h", "extra/c_env_api.h"] {
        let header = read(include.join(header))?;
        // `#define TVM_FFI_DLL` isn't followed by a function's name
        let names = header.split("TVM_FFI_DLL ").skip(1).filter_map(|rest| rest.split('(').next());
        let names = names.filter_map(|before| before.split([' ', '*', '\n']).rfind(|word| !word.is_empty()));
        declared.extend(names.filter(|name| name.starts_with("TVMFFI")).map(str::to_owned));
    }
    let defined = cmd("nm", &["--dynamic", "--defined-only", "--format=just-symbols", &text(library)]).read()?;
    let mut defined: Vec<_> = defined.lines().filter(|name| name.starts_with("TVMFFI")).map(str::to_owned).collect();
    declared.sort();
    defined.sort();
    let listed = read(root().join(SYMBOLS))?;
    for (what, names) in [("upstream's headers declare", declared), ("our library defines", defined)] {
        if let Some((line, listed, name)) = first_difference(&listed, &(names.join("\n") + "\n")) {
            return Err(failure(format!("{SYMBOLS}:{line}: there is `{listed}`, and {what} `{name}`")));
        }
    }
    Ok(())
}

/// The C symbols, sorted. The runtime's tests compare its table of symbols with this list.
const SYMBOLS: &str = "fixtures/upstream/symbols.txt";
