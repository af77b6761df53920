//! Exports all symbols from the program, as programs do that load libraries.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-bins=-rdynamic");
    }
}
