//! Insertion, removal and clearing, also during misses; eviction.

use std::sync::Arc;
use std::thread;

use super::{Event, call, constant, counting, kept, packed, table};

/// C20.12: inserted functions replace others, and removed ones are made again.
#[test]
fn functions_are_replaced() {
    let (on_miss, _) = counting();
    let table = table(on_miss, None);
    assert_eq!(call(&table, 1).unwrap(), 1);
    table.insert((1,), constant(50)).unwrap();
    table.insert((2,), constant(60)).unwrap();
    assert_eq!((call(&table, 1).unwrap(), call(&table, 2).unwrap()), (50, 60));
    assert_eq!(kept(&table), [1, 2]);
    assert!(table.remove((1,)).unwrap());
    assert!(!table.remove((1,)).unwrap());
    assert_eq!(call(&table, 1).unwrap(), 2);
    assert_eq!(kept(&table), [2, 1]);
    table.clear();
    assert_eq!(table.stats().entries, 0);
    assert_eq!(call(&table, 2).unwrap(), 3);
}

/// C20.12: the changes that detach a miss.
#[test]
fn changes_detach_a_miss() {
    type Change = fn(&tvm_ffi_codegen::dispatch::DispatchTable);
    let changes: [(Change, i64); 3] = [
        (|table| table.insert((5,), constant(70)).unwrap(), 70),
        (|table| assert!(!table.remove((5,)).unwrap()), 2),
        (|table| table.clear(), 2),
    ];
    for (change, after) in changes {
        let (started, go) = (Arc::new(Event::default()), Arc::new(Event::default()));
        let (signal, wait) = (Arc::clone(&started), Arc::clone(&go));
        let (numbers, _) = counting();
        let table = table(
            packed(move |args| {
                let made = numbers.call(args)?;
                signal.set();
                wait.wait();
                Ok(made)
            }),
            None,
        );
        thread::scope(|scope| {
            let first = scope.spawn(|| call(&table, 5).unwrap());
            started.wait();
            let second = scope.spawn(|| call(&table, 5).unwrap());
            thread::sleep(std::time::Duration::from_millis(20));
            change(&table);
            go.set();
            assert_eq!(first.join().unwrap(), 1);
            // it waits for the detached miss, or came too late for that
            let second = second.join().unwrap();
            assert!(second == 1 || second == after, "{second}");
        });
        assert_eq!(call(&table, 5).unwrap(), after);
    }
}

/// C20.10: the least recently used function goes; of those used at the same time, the oldest.
#[test]
fn the_least_recently_used_goes() {
    let (on_miss, _) = counting();
    let table = table(on_miss, Some(3));
    for key in [1, 2, 3] {
        call(&table, key).unwrap();
    }
    call(&table, 1).unwrap();
    call(&table, 4).unwrap();
    assert_eq!(kept(&table), [1, 3, 4]);
    // 3 and 1 are used after 4 came
    call(&table, 3).unwrap();
    call(&table, 1).unwrap();
    call(&table, 5).unwrap();
    assert_eq!(kept(&table), [1, 3, 5]);
    // both are used after 5 came, and 1 came before 3
    call(&table, 3).unwrap();
    call(&table, 1).unwrap();
    call(&table, 5).unwrap();
    table.insert((6,), constant(0)).unwrap();
    assert_eq!(kept(&table), [3, 5, 6]);
    // replacing takes no room
    table.insert((5,), constant(0)).unwrap();
    assert_eq!(kept(&table), [3, 6, 5]);
    assert_eq!(table.stats().evictions, 3);
}

/// C20.10: a table with room for one.
#[test]
fn room_for_one() {
    let (on_miss, _) = counting();
    let table = table(on_miss, Some(1));
    for round in 0..3 {
        for key in [1, 2] {
            assert_eq!(call(&table, key).unwrap(), 2 * round + key);
            assert_eq!(kept(&table), [key]);
        }
    }
    assert_eq!(table.stats().evictions, 5);
}
