//! Compilers in C and C++ that use the library through TVM FFI functions.

use super::*;

/// The system libraries that a static Rust library needs.
const SYSTEM: [&str; 4] = ["-lm", "-ldl", "-lpthread", "-rdynamic"];

/// Builds the program as C and as C++, links it with the shared library and with the static one, and runs it. Each must
/// print `expected.txt`.
pub fn c_api() -> Result<Tests> {
    // build an example too, so the engine has the same features as in the tests, and shares their build
    let packages = ["-p", "tvm-ffi-codegen-c", "-p", "tvm-ffi-codegen", "--lib", "--example", "quickstart"];
    cargo(&[&["build"], &packages[..]].concat()).run()?;
    let built = target_folder().join("debug");
    let folder = folder("c_api")?;
    let kernel = folder.join("saxpy.o");
    compile("cc", &[], &source("c_api/saxpy.c"), &kernel)?;
    let expected = fs::read_to_string(root().join(source("c_api/expected.txt")));
    let expected = expected.map_err(|error| failure(format!("expected.txt: {error}")))?;
    let shared = library_in(&built, "tvm_ffi_codegen").to_vec();
    let linked_in: Vec<String> =
        [&text(&built.join("libtvm_ffi_codegen.a"))[..]].iter().chain(&SYSTEM).map(|word| word.to_string()).collect();
    let mut tests = Tests::default();
    for (compiler, language, library) in [("cc", "c", &shared), ("c++", "c++", &shared), ("cc", "c", &linked_in)] {
        let (object, program) = (folder.join("main.o"), folder.join("main"));
        compile(compiler, &["-Iclib/include", "-x", language], &source("c_api/main.c"), &object)?;
        let inputs = [&[text(&object)], &library[..]].concat();
        link_program(compiler, &inputs, &[], &program)?;
        let [library, of_text] = ["saxpy.so", "program.so"].map(|name| text(&folder.join(name)));
        let printed = cmd(&text(&program), &[&text(&kernel), &library, &of_text]).run()?.stdout;
        if printed != expected {
            tests.failed += 1;
            return Err(Failure { what: "the program in C prints another text than expected.txt".to_owned(), tests });
        }
        tests.passed += 1;
    }
    Ok(tests)
}
