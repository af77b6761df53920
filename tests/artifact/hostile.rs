//! `inspect` on malicious files.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tvm_ffi_codegen::Kernel;
use tvm_ffi_codegen::artifact::{
    ArchiveError, ArchiveInput, InspectError, LibraryBuilder, Triple, defines_symbol, inspect, write_archive,
};

use crate::support::sig;

/// Reads a number from an ELF64 file for x86-64.
fn number(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes[at..at + len].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

fn set_number(bytes: &mut [u8], at: usize, len: usize, number: usize) {
    bytes[at..at + len].copy_from_slice(&number.to_le_bytes()[..len]);
}

/// The section headers of an ELF64 file. Each has its type (at 4), its offset (at 24), its size (at 32) and the section
/// that it links to (at 40).
fn section_headers(file: &[u8]) -> Vec<[u8; 64]> {
    let (start, count) = (number(file, 0x28, 8), number(file, 0x3c, 2));
    file[start..][..64 * count].chunks_exact(64).map(|header| header.try_into().unwrap()).collect()
}

/// Appends other section headers to the file, and makes the file refer to them.
fn set_section_headers(file: &mut Vec<u8>, headers: &[[u8; 64]]) {
    file.resize(file.len().next_multiple_of(8), 0);
    let start = file.len();
    file.extend(headers.as_flattened());
    set_number(file, 0x28, 8, start);
    set_number(file, 0x3c, 2, headers.len());
}

fn elf(doc: &str) -> Vec<u8> {
    let target = "x86_64-unknown-linux-gnu".parse().unwrap();
    let library = LibraryBuilder::new().target(target);
    library.function(&sig("f(n: int64)").with_doc(doc), &Kernel::check_only()).emit().unwrap().into_bytes()
}

/// The result of `inspect` and the time that it takes. Fails if that is more than a minute.
fn inspect_in_time(path: &Path) -> (Result<tvm_ffi_codegen::artifact::Binary, InspectError>, Duration) {
    let (path, (sender, receiver)) = (path.to_owned(), mpsc::channel());
    thread::spawn(move || {
        let start = Instant::now();
        let _ = sender.send((inspect(path), start.elapsed()));
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("inspect doesn't come to an end")
}

/// Each of 60,000 sections covers nearly all of the same megabyte: together they are 60 GB.
#[test]
fn sections_that_overlap_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.o");
    let doc = "A doc. ".repeat(150_000);
    let mut file = elf(&doc);
    let mut headers = section_headers(&file);
    let text = br#"{"parameters":"#;
    let at = file.windows(text.len()).position(|window| window == text).unwrap();
    let inside = |header: &&[u8; 64]| {
        let (start, size) = (number(*header, 24, 8), number(*header, 32, 8));
        number(*header, 4, 4) == 1 && (start..start + size).contains(&at)
    };
    let data = *headers.iter().find(inside).unwrap();
    for i in 0..60_000 {
        let mut header = data;
        set_number(&mut header, 24, 8, number(&data, 24, 8) + i);
        set_number(&mut header, 32, 8, number(&data, 32, 8) - i);
        headers.push(header);
    }
    set_section_headers(&mut file, &headers);
    fs::write(&path, &file).unwrap();
    let (seen, time) = inspect_in_time(&path);
    println!("{} sections, {} bytes: {time:?}", headers.len(), file.len());
    let seen = seen.unwrap();
    assert_eq!(seen.functions.len(), 1);
    assert_eq!(seen.functions[0].signature.as_deref(), Some("f(n: int64)"));
    assert!(seen.functions[0].doc.as_ref() == Some(&doc));
    assert!(time < Duration::from_secs(10), "{time:?}");
}

/// The name of each of 60,000 symbols covers nearly all of the same megabyte.
#[test]
fn names_of_symbols_that_overlap_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.o");
    let mut file = elf("A doc.");
    let mut headers = section_headers(&file);
    let symbols = headers.iter().position(|header| number(header, 4, 4) == 2).unwrap();
    let strings = number(&headers[symbols], 40, 4);
    let (start, len) = (file.len(), 1 << 20);
    file.resize(start + len, b'a');
    file.push(0);
    set_number(&mut headers[strings], 24, 8, start);
    set_number(&mut headers[strings], 32, 8, len + 1);
    let start = file.len().next_multiple_of(8);
    file.resize(start + 24, 0);
    for i in 1..60_000 {
        // global, and defined in the first section
        let mut symbol = [0; 24];
        set_number(&mut symbol, 0, 4, i);
        (symbol[4], symbol[6]) = (0x10, 1);
        file.extend(symbol);
    }
    set_number(&mut headers[symbols], 24, 8, start);
    let size = file.len() - start;
    set_number(&mut headers[symbols], 32, 8, size);
    set_section_headers(&mut file, &headers);
    fs::write(&path, &file).unwrap();
    let (seen, time) = inspect_in_time(&path);
    let error = seen.unwrap_err();
    assert!(matches!(&error, InspectError::Malformed { problem, .. } if problem.contains("overlap")), "{error}");
    assert!(time < Duration::from_secs(10), "{time:?}");
    assert!(!defines_symbol(&path, "f").unwrap());
}

/// As many functions as in a large library, each with its metadata.
#[test]
fn many_functions_are_found_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("functions.o");
    let mut file = elf("A doc.");
    let mut headers = section_headers(&file);
    let symbols = headers.iter().position(|header| number(header, 4, 4) == 2).unwrap();
    let strings = number(&headers[symbols], 40, 4);
    let count = 60_000;
    let (mut names, mut table, mut texts) = (vec![0], vec![0; 24], Vec::new());
    for i in 0..count {
        for name in [format!("__tvm_ffi_f{i}\0"), format!("__tvm_ffi__metadata_f{i}\0")] {
            let mut symbol = [0; 24];
            set_number(&mut symbol, 0, 4, names.len());
            (symbol[4], symbol[6]) = (0x10, 1);
            table.extend(symbol);
            names.extend(name.as_bytes());
        }
        let signature = format!("f{}(n: int64)", count - 1 - i);
        texts.extend(format!("{{\"parameters\":[],\"signature\":\"{signature}\"}}\0").as_bytes());
    }
    let data = headers.iter().position(|header| number(header, 4, 4) == 1).unwrap();
    for (section, content) in [(symbols, table), (strings, names), (data, texts)] {
        file.resize(file.len().next_multiple_of(8), 0);
        set_number(&mut headers[section], 24, 8, file.len());
        set_number(&mut headers[section], 32, 8, content.len());
        file.extend(content);
    }
    set_section_headers(&mut file, &headers);
    fs::write(&path, &file).unwrap();
    let (seen, time) = inspect_in_time(&path);
    println!("{count} functions, {} bytes: {time:?}", file.len());
    let seen = seen.unwrap();
    assert_eq!(seen.functions.len(), count);
    assert!(seen.functions.iter().all(|function| function.signature == Some(format!("{}(n: int64)", function.name))));
    assert!(time < Duration::from_secs(20), "{time:?}");
}

/// A FIFO without a writer would block the reader for ever.
#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&fifo, &link).unwrap();
    for path in [&*fifo, &link, folder.path(), Path::new("/dev/null")] {
        let (seen, _) = inspect_in_time(path);
        let error = seen.unwrap_err().to_string();
        assert_eq!(error, format!("{}: expected a regular file", path.display()));
        let error = defines_symbol(path, "f").unwrap_err().to_string();
        assert!(error.ends_with("expected a regular file"), "{error}");
        let input = ArchiveInput::File(path.to_owned());
        let error = write_archive(&Triple::host(), &[input], folder.path().join("a.a")).unwrap_err();
        assert!(matches!(&error, ArchiveError::Io { source, .. } if source.to_string() == "expected a regular file"));
    }
}

/// Other processes write to the file while it is being read. Truncating a mapped file would end the process.
#[test]
fn a_file_may_be_truncated_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changing.o");
    let good = elf(&"A doc. ".repeat(2_000_000));
    fs::write(&path, &good).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                fs::File::options().write(true).open(&path).and_then(|file| file.set_len(100)).unwrap();
                thread::sleep(Duration::from_micros(300));
                fs::write(&path, &good).unwrap();
                thread::sleep(Duration::from_micros(300));
            }
        });
        let (start, mut outcomes) = (Instant::now(), [0, 0]);
        while start.elapsed() < Duration::from_secs(2) {
            outcomes[usize::from(inspect(&path).is_ok())] += 1;
            let _ = defines_symbol(&path, "f");
            let input = ArchiveInput::File(path.clone());
            let target = "x86_64-unknown-linux-gnu".parse().unwrap();
            let _ = write_archive(&target, &[input], folder.path().join("a.a"));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        println!("{outcomes:?} broken and whole");
    });
}
