//! A table that two threads call and change. Only what holds in any order is checked.

use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::{Error, Function};

use super::{Functions, LONGEST};

/// The number of keys.
const KEYS: i64 = 8;
/// Functions of a key return the key times this, and their own number.
const FACTOR: i64 = 1 << 32;

/// Runs half of the steps on each thread.
pub fn run(steps: &[u8]) {
    let steps = &steps[..steps.len().min(LONGEST)];
    let (most, steps) = steps.split_first().unwrap_or((&0, &[]));
    let (functions, made) = (Functions::default(), AtomicI64::new(0));
    let on_miss = {
        let functions = functions.clone();
        Function::from_packed(move |args| {
            let (key, number) = (args[0].cast::<i64>()?, made.fetch_add(1, Ordering::SeqCst));
            if number % 5 == 4 {
                return Err(Error::new("KeyError", "now and then"));
            }
            thread::yield_now();
            Ok(functions.of(key * FACTOR + number, key).into())
        })
    };
    let most = 1 + usize::from(most % 6);
    let table = DispatchTable::new("fuzzed", ["n"], on_miss, Some(most)).expect("a table");
    let (one, other) = steps.split_at(steps.len() / 2);
    let start = Barrier::new(2);
    let calls: u64 = thread::scope(|scope| {
        let threads = [one, other].map(|steps| {
            let (table, functions, start) = (&table, &functions, &start);
            scope.spawn(move || {
                start.wait();
                steps.iter().map(|&step| u64::from(take(table, functions, step))).sum::<u64>()
            })
        });
        threads.map(|thread| thread.join().expect("a thread without errors")).iter().sum()
    });
    let stats = table.stats();
    assert_eq!(stats.hits + stats.waits + stats.misses, calls, "each call is a hit, a wait or a miss: {stats:?}");
    assert!(stats.entries <= most, "{} entries of at most {most}", stats.entries);
    assert_eq!(functions.live(), stats.entries as i64, "functions that are alive");
    drop(table);
    assert_eq!(functions.live(), 0, "functions are left");
}

/// Takes a step, and returns whether it was a call.
fn take(table: &DispatchTable, functions: &Functions, step: u8) -> bool {
    let key = i64::from(step) % KEYS;
    match step / KEYS as u8 {
        0..=23 => {
            match table.function().call_as::<i64>((key, key)) {
                Ok(number) => assert_eq!(number / FACTOR, key, "the function of another key"),
                Err(error) => assert_eq!(error.kind(), "KeyError", "{error}"),
            }
            return true;
        }
        24..=26 => table.insert((key,), functions.of(key * FACTOR, key)).expect("a key"),
        27..=29 => drop(table.remove((key,)).expect("a key")),
        30 => assert!(table.entries().iter().all(|entry| entry.key.len() == 1), "a key of one value"),
        _ => table.clear(),
    }
    false
}
