//! Runs the program with the library in its argument, and prints the report.

fn main() -> std::process::ExitCode {
    let library = std::env::args().nth(1).unwrap_or_default();
    match host_rust_three_ways::run(&library) {
        Ok(report) => {
            print!("{report}");
            match tvm_ffi_runtime::object::live_objects() {
                Some(live @ 1..) => {
                    eprintln!("{live} objects are left");
                    std::process::ExitCode::FAILURE
                }
                _ => std::process::ExitCode::SUCCESS,
            }
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
