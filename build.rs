//! Tests load libraries that find the bundled runtime's C symbols in the test executable: it has to export them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-tests=-rdynamic");
    }
}
