//! Two threads that call, while others compile, drop, load, unload and dispatch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tvm_ffi_codegen::Engine;
use tvm_ffi_codegen::artifact::{LibraryBuilder, Linker, Triple};
use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::{Error as RuntimeError, Function, Module};

use crate::sizes::{check, compile, function};
use crate::{Result, resident_kib};

/// Calls are counted in groups of so many.
const GROUP: u64 = 10_000;
/// The part of the time after which resident memory is first read: by then every pool and cache is filled.
const WARM: u32 = 10;

pub fn run(seconds: u64) -> Result {
    let engine = Engine::new()?;
    let shared = compile(&engine, 1)?;
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("library.so");
    let (signature, kernel) = function(3)?;
    let object = LibraryBuilder::new().function(&signature, &kernel).emit()?;
    Linker::new(Triple::host()).object(object.into_bytes()).link(&library)?;

    let of_table = engine.clone();
    let on_miss = Function::from_packed(move |args| {
        let number: i64 = args[0].cast()?;
        let failed = |error: crate::Error| RuntimeError::new("RuntimeError", &error.to_string());
        Ok(compile(&of_table, number as usize).map_err(failed)?.into())
    });
    let table = DispatchTable::new("scale", ["number"], on_miss, Some(16))?;

    let (is_over, calls, dispatched, made, loaded) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let call = || -> Result {
        while !is_over.load(Ordering::Relaxed) {
            for _ in 0..GROUP {
                check(&shared, 1)?;
            }
            calls.fetch_add(GROUP, Ordering::Relaxed);
        }
        Ok(())
    };
    let make = || -> Result {
        let mut number = 0;
        while !is_over.load(Ordering::Relaxed) {
            number = (number + 1) % 1000;
            check(&compile(&engine, number)?, number)?;
            made.fetch_add(1, Ordering::Relaxed);
            // SAFETY: nothing uses the library after this block.
            let module = unsafe {
                let module = Module::load_from_file(&library)?;
                module.unload_when_unused()?;
                module
            };
            check(&module.get_function("f3")?.ok_or("no function")?, 3)?;
            loaded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let dispatch = || -> Result {
        let mut state = 1u64;
        while !is_over.load(Ordering::Relaxed) {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // mostly a few keys, which the table keeps, and sometimes others, which it evicts
            let number = if state >> 60 == 0 { state >> 40 & 63 } else { state >> 40 & 7 } as i64;
            let result: i64 = table.function().call_as((number, 1000i64, ()))?;
            if result != 1000 + number {
                return Err(format!("the table's function for {number} returns {result}").into());
            }
            dispatched.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let ended = |work: &dyn Fn() -> Result| {
        let result = work();
        // the others needn't go on after a failure
        is_over.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    };
    let time = Duration::from_secs(seconds);
    let memory = std::thread::scope(|scope| -> Result<[u64; 2]> {
        let works: [&(dyn Fn() -> Result + Sync); 4] = [&call, &call, &make, &dispatch];
        let threads: Vec<_> = works.into_iter().map(|work| scope.spawn(move || ended(&|| work()))).collect();
        let start = Instant::now();
        let until = |part: Duration| {
            while start.elapsed() < part && !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
            }
        };
        until(time / WARM);
        let before = resident_kib()?;
        until(time);
        let after = resident_kib()?;
        is_over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok([before, after])
    })?;
    let [calls, dispatched, made, loaded] = [calls, dispatched, made, loaded].map(AtomicU64::into_inner);
    let stats = table.stats();
    println!("{calls} calls on two threads in {seconds} s; {dispatched} dispatched calls, {stats:?}");
    println!("{made} functions compiled and dropped, {loaded} libraries loaded and unloaded");
    println!("calls {calls} {seconds} {}", memory[1] as i64 - memory[0] as i64);
    println!("resident memory: {} KiB after a tenth of the time, {} KiB at the end", memory[0], memory[1]);
    Ok(())
}
