//! The name that a program which is linked with the library looks for when it starts.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => println!("cargo::rustc-link-arg-cdylib=-Wl,-install_name,@rpath/libtvm_ffi.dylib"),
        Ok("windows") => {}
        _ => println!("cargo::rustc-link-arg-cdylib=-Wl,-soname,libtvm_ffi.so"),
    }
}
