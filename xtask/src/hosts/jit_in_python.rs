//! A compiler built as a shared library, on each of the runtimes, in a Python process.

use super::*;
use crate::tools::{NUMPY, TYPING_EXTENSIONS};

/// The order of loading the library and `import tvm_ffi`, and whether the library's symbols are global.
const ORDERS: [&str; 4] = ["first", "first, global", "last", "last, global"];

/// Builds the library on each runtime and loads it in each order. It works, or reports the reason why not.
pub fn jit_in_python() -> Result<Tests> {
    let mut tests = Tests::default();
    for way in ["external", "hidden", "bundled"] {
        let feature = format!("host-jit-in-python/{way}");
        let features: &[&str] = if way == "bundled" { &[] } else { &["--features", &feature] };
        // With an example, so the engine has the same features as in the tests, and shares their build.
        let packages = ["-p", "host-jit-in-python", "-p", "tvm-ffi-codegen", "--lib", "--example", "quickstart"];
        cargo(&[&["build"], &packages[..], features].concat()).run()?;
        let library = text(&target_folder().join("debug/libhost_jit_in_python.so"));
        for order in ORDERS {
            let python = |command: Cmd| {
                without_stacks(command).env(
                    "PYTHONPATH",
                    &[&UPSTREAM, &TYPING_EXTENSIONS, &NUMPY].map(python_package).map(|path| text(&path)).join(":"),
                )
            };
            let script = source("jit_in_python/main.py");
            if (way, order) == ("bundled", "last, global") {
                // Upstream's library binds to symbols that are already loaded. It ends the process when it registers
                // names again.
                let refusal = r#"out=$("$@" 2>&1) && exit 1
                    for part in "two TVM FFI runtimes" libtvm_ffi.so "feature \`external\`" "\`hidden\`"; do
                        case $out in *"$part"*) ;; *) echo "$out"; exit 1;; esac
                    done"#;
                python(cmd("sh", &["-c", refusal, "sh", "python3", &script, way, order, &library])).run()?;
            } else {
                python(cmd("python3", &[&script, way, order, &library])).run()?;
            }
            tests.passed += 1;
        }
    }
    Ok(tests)
}
