//! C++ programs on upstream's headers. Each is built once and run with libraries of the same name: upstream's
//! `libtvm_ffi`, ours, and ours with the C++ part.

use std::thread;

use super::*;

/// Each program is a file `*.cc` in this directory of [`source`].
const FOLDER: &str = "headers";

/// As [`FOLDER`], for programs that need the C++ part.
const CXX_FOLDER: &str = "cxx";

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

    let plain = files(&root().join(source(FOLDER)), ".cc")?;
    let needing_cxx = files(&root().join(source(CXX_FOLDER)), ".cc")?;
    let name = |folder: &str, names: &[String]| names.iter().map(|name| format!("{folder}/{name}")).collect::<Vec<_>>();
    build_all(&[name(FOLDER, &plain), name(CXX_FOLDER, &needing_cxx)].concat(), &folder)?;
    for name in &plain {
        compare(&mut tests, &folder.join(name), &theirs, &[("ours", &ours), ("ours with the C++ part", &with_cxx)])?;
    }
    for name in &needing_cxx {
        compare(&mut tests, &folder.join(name), &theirs, &[("ours with the C++ part", &with_cxx)])?;
    }
    Ok(tests)
}

/// Runs a program with upstream's library and with ours, and compares the outputs.
fn compare(tests: &mut Tests, program: &Path, theirs: &Path, ours: &[(&str, &PathBuf)]) -> Result {
    let name = program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let run = |library: &Path, tests: Tests| {
        cmd(&text(program), &[])
            .env("LD_LIBRARY_PATH", &text(library))
            .env("TVM_FFI_BACKTRACE", "0")
            .env("TESTING_LIBRARY", &text(&theirs.join("libtvm_ffi_testing.so")))
            .env("TEMPORARY_FILE", &format!("{}.tmp", text(program)))
            .read()
            .map_err(|Failure { what, .. }| Failure { what, tests })
    };
    let expected = run(theirs, *tests)?;
    for (whose, library) in ours {
        let what = match first_difference(&expected, &run(library, *tests)?) {
            _ if expected.is_empty() => format!("{name} prints nothing"),
            Some((line, theirs, is)) => format!("{name}:{line}: upstream's library `{theirs}`, {whose} `{is}`"),
            None => {
                println!("{name}: {} lines, the same on upstream's library and {whose}", expected.lines().count());
                tests.passed += 1;
                continue;
            }
        };
        tests.failed += 1;
        return Err(Failure { what, tests: *tests });
    }
    Ok(())
}

/// Compiles the file `name` in [`source`], without its extension `.cc`, on upstream's headers. Links it with upstream's
/// library.
pub(super) fn build(name: &str, to: &Path) -> Result {
    let (include, library) = (text(&upstream().join("include")), text(&upstream().join("lib")));
    let options = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-isystem", &include];
    let from = source(&format!("{name}.cc"));
    cmd("g++", &[&options[..], &[&from, "-o", &text(to), "-L", &library, "-ltvm_ffi"]].concat()).run().map(|_| ())
}

/// Compiles and links programs in parallel, one per processor.
fn build_all(names: &[String], folder: &Path) -> Result {
    let build_one = |name: &String| build(name, &folder.join(name.rsplit('/').next().unwrap_or(name)));
    let at_a_time = thread::available_parallelism().map_or(1, usize::from);
    for names in names.chunks(at_a_time) {
        thread::scope(|scope| {
            let builds: Vec<_> = names.iter().map(|name| scope.spawn(|| build_one(name))).collect();
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
