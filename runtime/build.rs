//! Exports this crate's symbols from the test executables, for the libraries that the tests load. On Windows this needs
//! no option.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-tests=-rdynamic");
    }
}
