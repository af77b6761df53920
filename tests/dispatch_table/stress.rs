//! Many threads on one table, with errors, evictions and replacements. `TVM_FFI_CODEGEN_STRESS_SECONDS` sets how long.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::{Error, Function};

use super::{packed, table, until};
use crate::support::dice::{Dice, seed};

const THREADS: u64 = 8;
const KEYS: usize = 200;

/// The value that a made function carries. It knows whether it is alive.
struct Made {
    key: i64,
    is_alive: AtomicBool,
    live: Arc<AtomicI64>,
}

impl Drop for Made {
    fn drop(&mut self) {
        self.is_alive.store(false, Ordering::SeqCst);
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Makes functions that return their key, and checks that no key is made twice at once.
struct Maker {
    live: Arc<AtomicI64>,
    making: Mutex<HashSet<i64>>,
    /// A thread may detach a miss, and another one then makes the key again.
    is_detaching: AtomicBool,
    calls: AtomicU64,
}

impl Maker {
    fn make(&self, key: i64) -> Result<Function, Error> {
        let is_first = self.making.lock().unwrap().insert(key);
        assert!(is_first || self.is_detaching.load(Ordering::SeqCst), "{key} is made twice at once");
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if call.is_multiple_of(3) {
            thread::yield_now();
        }
        self.making.lock().unwrap().remove(&key);
        if call % 7 == 3 {
            return Err(Error::new("KeyError", "now and then"));
        }
        self.live.fetch_add(1, Ordering::SeqCst);
        let made = Made { key, is_alive: AtomicBool::new(true), live: Arc::clone(&self.live) };
        Ok(packed(move |args| {
            assert!(made.is_alive.load(Ordering::SeqCst), "a dropped function runs");
            assert_eq!(args[0].cast::<i64>()?, made.key);
            if args.len() > 1 {
                thread::yield_now();
                assert!(made.is_alive.load(Ordering::SeqCst), "a running function is dropped");
            }
            Ok(made.key.into())
        }))
    }
}

fn run(most: Option<usize>, is_detaching: bool, time: Duration, seed: u64) {
    let live = Arc::new(AtomicI64::new(0));
    let maker = Arc::new(Maker {
        live: Arc::clone(&live),
        making: Mutex::default(),
        is_detaching: AtomicBool::new(is_detaching),
        calls: AtomicU64::new(0),
    });
    let making = Arc::clone(&maker);
    let table: DispatchTable = table(packed(move |args| making.make(args[0].cast()?).map(Into::into)), most);
    let (calls, errors) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + time;
    thread::scope(|scope| {
        let (table, calls, errors, maker) = (&table, &calls, &errors, &maker);
        let start = |thread| {
            scope.spawn(move || {
                let mut dice = Dice::new(seed + thread);
                while Instant::now() < end {
                    let keys = if dice.one_in(2) { KEYS } else { 4 };
                    let key = dice.below(keys) as i64;
                    if is_detaching && dice.one_in(50) {
                        match dice.below(3) {
                            0 => drop(table.remove((key,)).unwrap()),
                            1 => drop(maker.make(key).map(|made| table.insert((key,), made).unwrap())),
                            _ if dice.one_in(20) => table.clear(),
                            _ => assert!(table.entries().len() <= most.unwrap_or(KEYS)),
                        }
                        continue;
                    }
                    calls.fetch_add(1, Ordering::SeqCst);
                    let result = match dice.one_in(4) {
                        true => table.function().call_as::<i64>((key, key, "yield")),
                        false => table.function().call_as::<i64>((key, key)),
                    };
                    match result {
                        Ok(number) => assert_eq!(number, key),
                        Err(error) => {
                            assert_eq!(error.kind(), "KeyError");
                            errors.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                }
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        // The scope's end doesn't wait for the destructors of ended threads, which may be dropping functions.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let stats = table.stats();
    let calls = calls.load(Ordering::SeqCst);
    assert_eq!(stats.hits + stats.misses + stats.waits, calls, "{stats:?}");
    assert_eq!(stats.errors, errors.load(Ordering::SeqCst));
    // what isn't kept any more goes, perhaps by a call of another test that has taken it over
    until(|| live.load(Ordering::SeqCst) == stats.entries as i64);
    if most.is_none() && !is_detaching {
        assert_eq!(stats.misses - stats.errors, stats.entries as u64, "each key is made once while it is kept");
    }
    drop(table);
    until(|| live.load(Ordering::SeqCst) == 0);
}

#[test]
fn threads_agree() {
    let seconds = std::env::var("TVM_FFI_CODEGEN_STRESS_SECONDS").ok().and_then(|stated| stated.parse().ok());
    let seed = seed();
    println!("TVM_FFI_CODEGEN_SEED={seed}");
    let time = Duration::from_secs_f64(seconds.unwrap_or(1.0)) / 4;
    run(None, false, time, seed);
    run(Some(20), false, time, seed + 100);
    run(Some(20), true, time, seed + 200);
    run(None, true, time, seed + 300);
}
