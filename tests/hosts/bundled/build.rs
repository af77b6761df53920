//! Exports the C API from an executable that contains the runtime, for the libraries that it loads. On Windows the
//! exports need no linker option.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-bins=-rdynamic");
    }
}
