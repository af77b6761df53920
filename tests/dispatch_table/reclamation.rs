//! Functions go when no call runs in them, and no later. A call of another test may take removed functions over and be
//! dropping them, so tests wait for what has to happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tvm_ffi_codegen::runtime::{Any, Function};

use super::{Event, Slot, call, constant, packed, table, until};

/// Counts its live values.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(live))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// C20.13: a removed function goes at once if no call runs in it.
#[test]
fn removed_functions_go() {
    let live = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&live);
    let table = table(
        packed(move |_| {
            let value = Counted::new(&counted);
            Ok(packed(move |_| Ok((value.0.load(Ordering::SeqCst) as i64).into())).into())
        }),
        Some(2),
    );
    let is = |expected: usize| until(|| live.load(Ordering::SeqCst) == expected);
    for key in 0..10 {
        for _ in 0..2 {
            call(&table, key).unwrap();
        }
    }
    is(2);
    table.insert((9,), constant(1)).unwrap();
    is(1);
    let held = table.entries();
    assert!(table.remove((8,)).unwrap());
    is(1);
    drop(held);
    is(0);
    call(&table, 1).unwrap();
    is(1);
    table.clear();
    is(0);
    call(&table, 1).unwrap();
    let function = table.function().clone();
    drop(table);
    is(1);
    assert_eq!(function.call_as::<i64>((1,)).unwrap(), 1);
    drop(function);
    is(0);
}

/// C20.13: a function that removes itself goes when its call ends, also with nested calls.
#[test]
fn a_function_in_use_goes_after_its_call() {
    for depth in [1, 2, 5, 30] {
        let live = Arc::new(AtomicUsize::new(0));
        let slot = Slot::default();
        let (own, counted) = (slot.clone(), Arc::clone(&live));
        let table = table(
            packed(move |_| {
                let (own, value) = (own.clone(), Counted::new(&counted));
                Ok(packed(move |args| {
                    let left: i64 = args[0].cast()?;
                    let table = own.get();
                    if left > 0 {
                        return table.function().call((1, left - 1));
                    }
                    table.clear();
                    Ok((value.0.load(Ordering::SeqCst) as i64).into())
                })
                .into())
            }),
            None,
        );
        slot.set(&table);
        let run = |left: i64| table.function().call_as::<i64>((1, left)).unwrap();
        // the first call makes the function, and has a reference of its own
        assert_eq!(run(0), 1);
        until(|| live.load(Ordering::SeqCst) == 0);
        table.function().call((1, 0)).unwrap();
        // now the calls are hits
        table.prewarm([(1,)]).unwrap();
        assert_eq!(run(depth), 1, "the function lives while calls run in it");
        until(|| live.load(Ordering::SeqCst) == 0);
        slot.clear();
    }
}

/// C20.13: a function that another thread removes goes when the call ends.
#[test]
fn a_function_that_another_thread_removes_goes_after_its_call() {
    let live = Arc::new(AtomicUsize::new(0));
    let (inside, go) = (Arc::new(Event::default()), Arc::new(Event::default()));
    let (enter, leave, counted) = (Arc::clone(&inside), Arc::clone(&go), Arc::clone(&live));
    let table = table(
        packed(move |_| {
            let (enter, leave, value) = (Arc::clone(&enter), Arc::clone(&leave), Counted::new(&counted));
            Ok(packed(move |args| {
                if !args.is_empty() {
                    enter.set();
                    leave.wait();
                }
                Ok((value.0.load(Ordering::SeqCst) as i64).into())
            })
            .into())
        }),
        Some(1),
    );
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            call(&table, 1).unwrap();
            table.function().call_as::<i64>((1, "wait")).unwrap()
        });
        inside.wait();
        // evicts the function of 1
        call(&table, 2).unwrap();
        assert_eq!(live.load(Ordering::SeqCst), 2);
        go.set();
        assert!(running.join().unwrap() >= 1);
        until(|| live.load(Ordering::SeqCst) == 1);
    });
}

/// C20.13: dropping a function may call the table, and an error of the call stays raised.
#[test]
fn a_dropped_function_may_call_the_table() {
    struct Calls(Function);
    impl Drop for Calls {
        fn drop(&mut self) {
            drop(self.0.call((100,)).unwrap_err());
        }
    }
    let fail =
        |message: &'static str| packed(move |_| Err(tvm_ffi_codegen::runtime::Error::new("ValueError", message)));
    let other = table(fail("the other table's"), None);
    let slot = Slot::default();
    let (own, function) = (slot.clone(), other.function().clone());
    let table = table(
        packed(move |_| {
            let (own, calls) = (own.clone(), Calls(function.clone()));
            Ok(packed(move |args| {
                let _keep = &calls;
                if !args.is_empty() {
                    own.get().clear();
                    return Err(tvm_ffi_codegen::runtime::Error::new("KeyError", "own"));
                }
                Ok(Any::none())
            })
            .into())
        }),
        None,
    );
    slot.set(&table);
    for _ in 0..2 {
        table.function().call((1,)).unwrap();
        let error = table.function().call((1, "fail")).unwrap_err();
        assert_eq!(super::text(&error), "KeyError: own");
    }
    until(|| other.stats().errors == 2);
    slot.clear();
}
