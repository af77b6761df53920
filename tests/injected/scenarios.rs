//! The scenarios: everything that allocates, maps memory, starts threads and programs, or writes files.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use tvm_ffi_codegen::artifact::{ArchiveInput, Cache, CacheKey, PackBuilder, Payload, Triple, inspect, write_archive};
use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::embed::runtime_symbols;
use tvm_ffi_codegen::engine::{LibraryImage, SymbolResolver};
use tvm_ffi_codegen::runtime::{Any, Error as RuntimeError, Function, Module};
use tvm_ffi_codegen::{Engine, OptLevel};

use crate::outputs::ARTIFACT;
use crate::steps::{NAME, check, compile, kernel, linker, load, object, signature};
use crate::{Folders, Result};

#[derive(Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// The names of the files that it writes. The setup writes the same files to the reference directory.
    pub outputs: &'static [&'static str],
    /// Makes the inputs and the reference outputs.
    pub setup: fn(&Folders) -> Result,
    pub run: fn(&Folders) -> Result,
}

/// Every scenario. A run in the debugger is `injected setup NAME FOLDER`, then `injected run NAME FOLDER`.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "compile", outputs: &[], setup: |_| Ok(()), run: compiles },
    Scenario { name: "threads", outputs: &[], setup: |_| Ok(()), run: compiles_on_threads },
    Scenario { name: "raise", outputs: &[], setup: |_| Ok(()), run: raises },
    Scenario { name: "dispatch", outputs: &[], setup: |_| Ok(()), run: dispatches },
    Scenario { name: "load", outputs: &[], setup: artifact, run: |f| load(&f.reference.join(ARTIFACT)) },
    Scenario { name: "image", outputs: &[], setup: artifact, run: loads_an_image },
    Scenario { name: "inspect", outputs: &[], setup: artifact, run: inspects },
    Scenario { name: "emit", outputs: &["out.o"], setup: |f| emit(&f.reference), run: |f| emit(&f.out) },
    Scenario { name: "link-cc", outputs: &["cc.so"], setup: |f| link_cc(&f.reference), run: |f| link_cc(&f.out) },
    Scenario {
        name: "link-gold",
        outputs: &["gold.so"],
        setup: |f| link_gold(&f.reference),
        run: |f| link_gold(&f.out),
    },
    #[cfg(feature = "libwild")]
    Scenario {
        name: "link-wild",
        outputs: &["wild.so"],
        setup: |f| link_wild(&f.reference),
        run: |f| link_wild(&f.out),
    },
    Scenario {
        name: "pack",
        outputs: &["packed.o"],
        setup: |f| artifact(f).and_then(|()| pack(&f.reference.join(ARTIFACT), &f.reference)),
        run: |f| pack(&f.reference.join(ARTIFACT), &f.out),
    },
    Scenario {
        name: "archive",
        outputs: &["out.a"],
        setup: |f| {
            object(1)?.write(f.reference.join("in.o")).map_err(Into::into).and_then(|()| archive(f, &f.reference))
        },
        run: |f| archive(f, &f.out),
    },
    Scenario { name: "cache", outputs: &[], setup: artifact, run: caches },
];

/// The library that other scenarios load, pack or store.
fn artifact(folders: &Folders) -> Result {
    Ok(linker()?.link(folders.reference.join(ARTIFACT))?)
}

fn compiles(_: &Folders) -> Result {
    for level in [OptLevel::None, OptLevel::Speed] {
        let engine = Engine::builder().opt_level(level).build()?;
        check(&compile(&engine, 3.0)?, 3.0)?;
    }
    Ok(())
}

/// Enough functions that the engine starts threads.
fn compiles_on_threads(_: &Folders) -> Result {
    let engine = Engine::builder().threads(NonZeroUsize::MIN.saturating_add(2)).build()?;
    let functions = (0..12).map(|number| Ok((signature(NAME)?, kernel(number as f32)))).collect::<Result<Vec<_>>>()?;
    for (number, (signature, kernel)) in functions.iter().enumerate() {
        // SAFETY: as for `compile`.
        check(&unsafe { engine.compile(signature, kernel)? }, number as f32)?;
    }
    let code = engine.compile_code(functions.iter().map(|(signature, kernel)| (signature, kernel)));
    // they have the same name, which is an error of its own
    assert!(code.is_err());
    let names: Vec<_> = (0..12).map(|number| signature(&format!("{NAME}_{number}"))).collect::<Result<_>>()?;
    engine.compile_code(names.iter().zip(functions.iter().map(|(_, kernel)| kernel)))?;
    Ok(())
}

/// Errors with backtraces, which read the program's own file.
fn raises(_: &Folders) -> Result {
    // SAFETY: the process has one thread.
    unsafe { std::env::set_var("TVM_FFI_BACKTRACE", "1") };
    let fails = Function::from_packed(|_| Err(RuntimeError::new("ValueError", "a message of many letters")));
    for _ in 0..2 {
        let error = fails.call(()).unwrap_err();
        if error.kind() == "MemoryError" {
            return Err(error.into());
        }
        assert_eq!((error.kind(), error.message()), ("ValueError", "a message of many letters"));
    }
    check(&compile(&Engine::new()?, 2.0)?, 2.0)
}

fn dispatches(_: &Folders) -> Result {
    let engine = Engine::new()?;
    let failed = |error: crate::Error| RuntimeError::new("RuntimeError", &error.to_string());
    let on_miss = Function::from_packed(move |args| {
        let add: i64 = args[0].cast()?;
        Ok(compile(&engine, add as f32).map_err(failed)?.into())
    });
    let table = DispatchTable::new("add", ["add"], on_miss, Some(3))?;
    table.prewarm([(1,), (2,)])?;
    for add in [1i64, 2, 3, 4, 1] {
        let (function, key) = (table.function().clone(), Any::from(add));
        let of_key = Function::from_packed(move |args| {
            let views: Vec<_> = std::iter::once(key.as_view()).chain(args.iter().copied()).collect();
            function.call(&views[..])
        });
        check(&of_key, add as f32)?;
    }
    Ok(())
}

/// An object that is linked in this process, and loaded from memory by the system's loader.
fn loads_an_image(_: &Folders) -> Result {
    let mut symbols = SymbolResolver::new();
    symbols.add_all(runtime_symbols());
    symbols.search_process();
    let object = object(1)?;
    // SAFETY: the object calls only functions of the runtime.
    let Some(image) = (unsafe { LibraryImage::link([object.as_bytes()], &symbols)? }) else { return Ok(()) };
    // SAFETY: as above.
    let module = unsafe { Module::load_library(image.path())? };
    check(&module.get_function(NAME)?.ok_or("the image lacks its function")?, 1.0)
}

fn inspects(folders: &Folders) -> Result {
    let found = inspect(folders.reference.join(ARTIFACT))?;
    assert_eq!(found.functions.len(), 1);
    Ok(())
}

fn emit(to: &Path) -> Result {
    Ok(object(4)?.write(to.join("out.o"))?)
}

/// Without a build ID: GNU ld computes it from what it reads back of its output, and goes on where that fails.
const NO_ID: &str = "-Wl,--build-id=none";

fn link_cc(to: &Path) -> Result {
    Ok(linker()?.arg(NO_ID).link(to.join("cc.so"))?)
}

fn link_gold(to: &Path) -> Result {
    Ok(linker()?.arg(NO_ID).arg("-fuse-ld=gold").link(to.join("gold.so"))?)
}

#[cfg(feature = "libwild")]
fn link_wild(to: &Path) -> Result {
    Ok(linker()?.link_in_process(to.join("wild.so"))?)
}

fn pack(payload: &Path, to: &Path) -> Result {
    let mut builder = PackBuilder::new();
    let library = builder.library();
    let file = builder.module("file", Payload::File(payload.to_owned()));
    let bytes = builder.module("bytes", Payload::Bytes(vec![7; 100_000]));
    builder.import(library, file).import(library, bytes);
    Ok(builder.write_object(&Triple::host(), to.join("packed.o"))?)
}

fn archive(folders: &Folders, to: &Path) -> Result {
    let inputs = [
        ArchiveInput::File(folders.reference.join("in.o")),
        // a name that needs a stand-in, which is replaced in the file
        ArchiveInput::Object { name: "ü.o".to_owned(), bytes: object(1)?.into_bytes() },
    ];
    Ok(write_archive(&Triple::host(), &inputs, to.join("out.a"))?)
}

/// Stores and finds. The caller gets the artifact, stored or not.
fn caches(folders: &Folders) -> Result {
    let cache = Cache::open(folders.out.join("cache"), 1 << 20)?;
    let artifact = folders.reference.join(ARTIFACT);
    let expected = fs::read(&artifact)?;
    for number in 0..3u8 {
        let key = CacheKey::builder().part("number", [number]).finish();
        let copy = |path: &Path| -> Result { Ok(fs::write(path, fs::read(&artifact)?)?) };
        let made = cache.get_or_make(&key, ".so", copy)?;
        assert_eq!(fs::read(made.path())?, expected, "what the cache returns");
        if let Some(path) = cache.get(&key, ".so")? {
            assert_eq!(fs::read(path)?, expected, "what the cache finds");
        }
        load(made.path())?;
    }
    Ok(())
}
