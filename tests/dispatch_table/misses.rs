//! Misses: one at a time for a key, errors, recursion, prewarming.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::abi::TVMFFIAny;
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::runtime::{Any, Error, Function};

#[cfg(target_os = "linux")]
use super::until;
use super::{Event, Slot, call, constant, packed, table, text};

/// C20.6: callers of one key wait for one call of on_miss.
#[test]
fn callers_of_one_key_share_a_miss() {
    let (started, go) = (Arc::new(Event::default()), Arc::new(Event::default()));
    let (signal, wait) = (Arc::clone(&started), Arc::clone(&go));
    let calls = Arc::new(AtomicI64::new(0));
    let counted = Arc::clone(&calls);
    let table = table(
        packed(move |_| {
            signal.set();
            wait.wait();
            Ok(constant(counted.fetch_add(1, Ordering::SeqCst)).into())
        }),
        None,
    );
    thread::scope(|scope| {
        let first = scope.spawn(|| call(&table, 5).unwrap());
        started.wait();
        let others: Vec<_> = (0..4).map(|_| scope.spawn(|| call(&table, 5).unwrap())).collect();
        thread::sleep(std::time::Duration::from_millis(120));
        go.set();
        assert_eq!(first.join().unwrap(), 0);
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), 0));
    });
    let stats = table.stats();
    assert_eq!((stats.misses, stats.waits + stats.hits, stats.entries), (1, 4, 1));
    assert!(stats.on_miss_time.as_millis() >= 100);
}

/// C20.6: different keys are made at the same time.
#[test]
fn different_keys_are_made_in_parallel() {
    let both = Arc::new(Barrier::new(2));
    let meet = Arc::clone(&both);
    let table = table(
        packed(move |args| {
            meet.wait();
            Ok(constant(args[0].cast()?).into())
        }),
        None,
    );
    thread::scope(|scope| {
        for key in [1, 2] {
            let table = &table;
            scope.spawn(move || assert_eq!(call(table, key).unwrap(), key));
        }
    });
}

/// C20.7: an error goes to the caller that ran on_miss; those who waited try again.
#[test]
fn an_error_is_not_kept() {
    let (started, go) = (Arc::new(Event::default()), Arc::new(Event::default()));
    let (signal, wait) = (Arc::clone(&started), Arc::clone(&go));
    let calls = Arc::new(AtomicI64::new(0));
    let counted = Arc::clone(&calls);
    let table = table(
        packed(move |_| {
            if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                signal.set();
                wait.wait();
                return Err(Error::new("KeyError", "not yet"));
            }
            Ok(constant(8).into())
        }),
        None,
    );
    thread::scope(|scope| {
        let first = scope.spawn(|| call(&table, 5).unwrap_err());
        started.wait();
        let others: Vec<_> = (0..3).map(|_| scope.spawn(|| call(&table, 5).unwrap())).collect();
        thread::sleep(std::time::Duration::from_millis(20));
        go.set();
        assert_eq!(text(&first.join().unwrap()), "KeyError: not yet");
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), 8));
    });
    let stats = table.stats();
    assert_eq!((stats.misses, stats.errors, stats.entries), (2, 1, 1));
}

/// C20.7: results that are no functions, panics, and codes without an error.
#[test]
fn failures_of_on_miss() {
    let calls = AtomicUsize::new(0);
    let table = table(
        packed(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(Any::from(3)),
            1 => Ok(Any::none()),
            2 => panic!("boom"),
            _ => Ok(constant(9).into()),
        }),
        None,
    );
    let no_function = |got: &str| {
        format!(
            "TypeError: Mismatched type of the result of on_miss of `grow(n, ...)` for n=5, expected Function, got {got}"
        )
    };
    assert_eq!(text(&call(&table, 5).unwrap_err()), no_function("int"));
    assert_eq!(text(&call(&table, 5).unwrap_err()), no_function("None"));
    assert!(text(&call(&table, 5).unwrap_err()).contains("boom"));
    assert_eq!(call(&table, 5).unwrap(), 9);
    assert_eq!((table.stats().errors, table.stats().misses), (3, 4));

    unsafe extern "C" fn minus_two(_: *mut std::ffi::c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32 {
        -2
    }
    // SAFETY: it reads nothing.
    let table = super::table(unsafe { Function::from_code(minus_two, ()) }, None);
    let arg = [*Any::from(1).as_raw()];
    for _ in 0..2 {
        // SAFETY: an integer is valid, and the result is None.
        assert_eq!(unsafe { table.function().call_raw(&arg, &mut TVMFFIAny::none()) }, -2);
        assert!(take_raised().is_none());
    }
    assert_eq!(table.stats().errors, 2);
}

/// C20.8: on_miss may call its table with another key.
#[test]
fn on_miss_may_need_other_keys() {
    let slot = Slot::default();
    let own = slot.clone();
    let table = table(
        packed(move |args| {
            let n: i64 = args[0].cast()?;
            let before = if n == 0 { 0 } else { call(&own.get(), n - 1)? };
            Ok(constant(before + n).into())
        }),
        None,
    );
    slot.set(&table);
    assert_eq!(call(&table, 20).unwrap(), 210);
    assert_eq!(table.stats().misses, 21);
    slot.clear();
}

/// C20.8: on_miss that needs the function that it makes.
#[test]
fn recursion_is_an_error() {
    let slot = Slot::default();
    let own = slot.clone();
    let table = DispatchTable::new(
        "grow",
        ["n", "text"],
        packed(move |args| {
            let table = own.get();
            if args[0].cast::<i64>()? == 2 {
                // a detached miss is still this thread's
                table.clear();
            }
            table.function().call(args)
        }),
        None,
    )
    .unwrap();
    slot.set(&table);
    for n in [1, 2] {
        let error = table.function().call((n, "a \"text\"")).unwrap_err();
        let key = format!("n={n}, text=\"a \\\"text\\\"\"");
        assert_eq!(
            text(&error),
            format!("RuntimeError: on_miss of `grow(n, text, ...)` needs the function that it makes, for {key}")
        );
    }
    assert_eq!((table.stats().errors, table.stats().misses), (2, 2));
    slot.clear();
}

/// C20.8: two threads, each of whose on_miss needs the other's function; also through another table.
#[test]
fn recursion_through_other_threads_is_an_error() {
    let slots = [Slot::default(), Slot::default()];
    let both = Arc::new(Barrier::new(2));
    let make = |own: usize| {
        let (other, both) = (slots[1 - own].clone(), Arc::clone(&both));
        let is_first = AtomicBool::new(true);
        table(
            packed(move |args| {
                if is_first.swap(false, Ordering::SeqCst) {
                    both.wait();
                }
                call(&other.get(), args[0].cast()?).map(|number| constant(number).into())
            }),
            None,
        )
    };
    let made = [make(0), make(1)];
    slots.iter().zip(&made).for_each(|(slot, table)| slot.set(table));
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = made.iter().map(|table| scope.spawn(|| call(table, 3))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // One of both finds the circle. Its error ends the other's on_miss, or lets it try again, with the same outcome.
    for result in results {
        let message = text(&result.unwrap_err());
        assert!(message.starts_with("RuntimeError: on_miss of `grow(n, ...)` needs the function that it makes"));
    }
    slots.iter().for_each(Slot::clear);
}

/// C20.9: prewarming makes missing functions, with the key alone.
#[test]
fn prewarming_makes_missing_functions() {
    let on_miss = packed(|args| {
        assert_eq!(args.len(), 1);
        let key: i64 = args[0].cast()?;
        if key % 10 == 7 {
            return Err(Error::new("KeyError", &format!("no {key}")));
        }
        Ok(constant(-key).into())
    });
    let table = table(on_miss, None);
    table.insert((3,), constant(33)).unwrap();
    table.prewarm((0..6).map(|key| (key,))).unwrap();
    assert_eq!(table.stats().misses, 5);
    assert_eq!(call(&table, 3).unwrap(), 33);
    assert_eq!(call(&table, 5).unwrap(), -5);
    let error = table.prewarm((10..40).map(|key| (key,))).unwrap_err();
    assert_eq!(text(&error), "KeyError: no 17");
    assert_eq!((table.stats().entries, table.stats().errors), (33, 3));
    assert_eq!(text(&table.prewarm([(1, 2)]).unwrap_err()).split(':').next(), Some("ValueError"));
    table.prewarm([(0,); 0]).unwrap();
}

/// C20.9: prewarming from on_miss, which the threads of the prewarming need, is an error and no deadlock.
#[test]
fn prewarming_finds_recursion() {
    let slot = Slot::default();
    let own = slot.clone();
    let table = table(
        packed(move |args| {
            let table = own.get();
            match args[0].cast::<i64>()? {
                1 => table.prewarm([(2,), (1,)]).map(|()| constant(1).into()),
                key => Ok(constant(key).into()),
            }
        }),
        None,
    );
    slot.set(&table);
    let message = text(&call(&table, 1).unwrap_err());
    assert_eq!(message, "RuntimeError: on_miss of `grow(n, ...)` needs the function that it makes, for n=1");
    assert_eq!(super::kept(&table), [2]);
    slot.clear();
}

/// C20.11: a fork in a call; the child forgets the misses of other threads.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(miri, ignore = "no process is forked there")]
fn a_forked_child_forgets_other_threads() {
    let (started, go) = (Arc::new(Event::default()), Arc::new(Event::default()));
    let (signal, wait) = (Arc::clone(&started), Arc::clone(&go));
    let parent = std::process::id();
    let table = table(
        packed(move |_| {
            if std::process::id() == parent {
                signal.set();
                wait.wait();
                return Ok(constant(1).into());
            }
            Ok(constant(2).into())
        }),
        Some(1),
    );
    thread::scope(|scope| {
        let other = scope.spawn(|| call(&table, 5).unwrap());
        started.wait();
        // SAFETY: the child calls the table, and ends without running anything else.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_made = call(&table, 5).is_ok_and(|number| number == 2);
            let is_evicted = call(&table, 6).is_ok_and(|number| number == 2) && table.stats().entries == 1;
            // SAFETY: ends this process.
            unsafe { libc::_exit(if is_made && is_evicted { 0 } else { 1 }) };
        }
        let ended = std::cell::Cell::new((0, 0));
        until(|| {
            let mut status = 0;
            // SAFETY: the child is this process's.
            let waited = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
            ended.set((waited, status));
            waited != 0
        });
        assert_eq!(ended.get(), (child, 0));
        go.set();
        assert_eq!(other.join().unwrap(), 1);
    });
}
