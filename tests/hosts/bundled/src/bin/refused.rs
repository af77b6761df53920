//! Libraries that the bundled runtime doesn't load: `refused LIBRARY...` prints the error of each.

use std::process::ExitCode;

use tvm_ffi_runtime::Module;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for library in std::env::args().skip(1) {
        // SAFETY: the library belongs to this test, and its initialisers do nothing.
        match unsafe { Module::load_from_file(&library) } {
            Ok(_) => {
                println!("{library}: loaded");
                code = ExitCode::FAILURE;
            }
            Err(error) => println!("{error}"),
        }
    }
    code
}
