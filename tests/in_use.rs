//! Output files that are in use, which Windows doesn't replace.
#![cfg(windows)]

use std::fs::{self, OpenOptions};
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;

use tvm_ffi_codegen::artifact::{ArchiveInput, LibraryBuilder, PackBuilder, Triple, write_archive};

/// Writes to a path in every way that needs no linker; returns the errors.
fn write(path: &Path) -> Vec<Option<String>> {
    let object = LibraryBuilder::new().emit().unwrap();
    let target = Triple::host();
    let input = ArchiveInput::Object { name: "wrappers.o".to_owned(), bytes: object.as_bytes().to_vec() };
    let mut bin = PackBuilder::new();
    bin.library();
    let bin = bin.write_object(&target, path);
    let archive = write_archive(&target, &[input], path);
    let object = object.write(path);
    vec![
        bin.err().map(|error| error.to_string()),
        archive.err().map(|error| error.to_string()),
        // the system's error alone, like that of `fs::write`
        object.err().map(|error| format!("{}: {error}", path.display())),
    ]
}

fn expect_refused(path: &Path, before: &[u8]) {
    for error in write(path) {
        let error = error.expect("the file is in use");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert!(error.contains("in use, and Windows doesn't replace it"), "{error}");
    }
    let folder = path.parent().unwrap();
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, [path.file_name().unwrap()], "no temporary file stays");
    if let Ok(bytes) = fs::read(path) {
        assert_eq!(bytes, before);
    }
}

#[test]
fn a_loaded_library_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ünï cödé.dll");
    // any library will do
    fs::copy(r"C:\windows\system32\bcryptprimitives.dll", &path).unwrap();
    let before = fs::read(&path).unwrap();
    // SAFETY: it is the system's.
    let library = unsafe { libloading::Library::new(&path) }.unwrap();
    expect_refused(&path, &before);
    assert_eq!(fs::read(&path).unwrap(), before);
    // SAFETY: the prototype is the system's.
    let random = unsafe { library.get::<unsafe extern "system" fn(*mut u8, usize) -> i32>("ProcessPrng") }.unwrap();
    let mut bytes = [0; 16];
    // SAFETY: the memory is as long as said.
    assert_eq!(unsafe { random(bytes.as_mut_ptr(), bytes.len()) }, 1);
    assert_ne!(bytes, [0; 16]);

    drop(library);
    assert_eq!(write(&path), [None, None, None]);
}

#[test]
fn a_file_that_nobody_else_may_open_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b.lib");
    fs::write(&path, "before").unwrap();
    let file = OpenOptions::new().read(true).share_mode(0).open(&path).unwrap();
    expect_refused(&path, b"before");
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"before");
    assert_eq!(write(&path), [None, None, None]);
}
