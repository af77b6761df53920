//! An executable that holds the runtime has to export its C API to the libraries that it loads.

fn main() {
    println!("cargo::rustc-link-arg-bins=-rdynamic");
}
