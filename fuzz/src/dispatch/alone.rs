//! A table on one thread, against a model.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use arbitrary::{Result as Read, Unstructured};
use tvm_ffi_codegen::dispatch::{DispatchEntry, DispatchTable};
use tvm_ffi_codegen::runtime::{Any, AnyView, Array, Error, Function, Result};

use super::keys::{Value, identity};
use super::{Functions, LONGEST};
use crate::dispatch_table::expected::{Made, Model};

/// A key, by what its values are equal by.
type Key = Vec<(u8, Vec<u8>)>;

/// The behaviour of `on_miss` for a key.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Makes,
    /// Every second time.
    Fails,
    /// It returns no function.
    ReturnsNumber,
    /// It calls the table with None, and makes the function then.
    CallsAnother,
    /// It calls the table with the key itself, which is an error.
    CallsItself,
    /// It inserts another function, so the table doesn't keep the one that it makes.
    Inserts,
    Clears,
}

/// The way of a key. It depends on the first value alone, so that the model and `on_miss` agree.
fn way(first: Option<&(u8, Vec<u8>)>) -> Way {
    match first {
        Some((1, bits)) if bits[0] == 1 => Way::CallsAnother,
        Some((1, bits)) if bits[0] == 2 => Way::Inserts,
        Some((1, bits)) if bits[0] == 3 => Way::Clears,
        Some((3, _)) => Way::CallsItself,
        Some((4, _)) => Way::ReturnsNumber,
        Some((2 | 5, _)) => Way::Fails,
        _ => Way::Makes,
    }
}

/// Runs an input's steps.
pub fn run(input: &mut Unstructured<'_>) {
    let count = input.int_in_range(0..=2).unwrap_or(0);
    let most = input.int_in_range(1..=6).unwrap_or(1);
    let mut table = Checked::new(count, most);
    for _ in 0..LONGEST {
        if input.is_empty() || table.step(input).is_err() {
            break;
        }
        table.agree();
    }
    // a table whose `on_miss` owns it is never freed
    drop(table.slot.lock().expect("no panic").take());
    let functions = table.functions.clone();
    drop(table);
    assert_eq!(functions.live(), 0, "functions are left");
}

struct Checked {
    table: DispatchTable,
    slot: Arc<Mutex<Option<DispatchTable>>>,
    functions: Functions,
    model: Model<Key>,
    /// The number of values of a key.
    count: usize,
}

/// The function that a table calls for a miss.
fn on_miss(slot: Arc<Mutex<Option<DispatchTable>>>, functions: Functions, count: usize) -> Function {
    let made = AtomicI64::new(0);
    Function::from_packed(move |args| {
        let number = made.fetch_add(1, Ordering::SeqCst) + 1;
        let key: Vec<Any> = args[..count].iter().map(|value| value.to_owned()).collect::<Result<_>>()?;
        let views: Vec<AnyView<'_>> = key.iter().map(Any::as_view).collect();
        let table = slot.lock().expect("no panic").clone().expect("the table is there");
        let first = key.first().and_then(identity);
        match way(first.as_ref()) {
            Way::Makes => {}
            Way::Fails if number % 2 == 1 => {}
            Way::Fails => return Err(Error::new("KeyError", "fails")),
            Way::ReturnsNumber => return Ok(5.into()),
            Way::CallsAnother => drop(table.function().call(&vec![Any::none().as_view(); count][..])?),
            Way::CallsItself => drop(table.function().call(&views[..])?),
            Way::Inserts => table.insert(&views[..], functions.of(-number, ARGUMENT))?,
            Way::Clears => table.clear(),
        }
        Ok(functions.of(number, ARGUMENT).into())
    })
}

/// The argument of calls behind the key.
const ARGUMENT: i64 = 77;

impl Checked {
    fn new(count: usize, most: usize) -> Self {
        let (slot, functions) = (Arc::<Mutex<Option<DispatchTable>>>::default(), Functions::default());
        let on_miss = on_miss(Arc::clone(&slot), functions.clone(), count);
        let names = ["a", "b"].into_iter().take(count);
        let table = DispatchTable::new("fuzzed", names, on_miss, Some(most)).expect("a table");
        *slot.lock().expect("no panic") = Some(table.clone());
        Checked { table, slot, functions, model: Model::of(most), count }
    }

    /// Makes a call in the model.
    fn call(model: &mut Model<Key>, key: &Key, count: usize) -> Option<i64> {
        model.call(key, |model, number| match way(key.first()) {
            Way::Makes => Made::Kept,
            Way::Fails if number % 2 == 1 => Made::Kept,
            Way::Fails | Way::ReturnsNumber | Way::CallsItself => Made::Nothing,
            Way::CallsAnother => {
                let none: Key = vec![(0, vec![0; 8]); count];
                Self::call(model, &none, count);
                Made::Kept
            }
            Way::Inserts => {
                model.insert(key.clone(), -number);
                Made::Detached
            }
            Way::Clears => {
                model.kept.clear();
                Made::Detached
            }
        })
    }

    fn step(&mut self, input: &mut Unstructured<'_>) -> Read<()> {
        let operation = input.int_in_range(0..=15)?;
        let values = (0..self.count).map(|_| Value::of(input)).collect::<Read<Vec<_>>>()?;
        let key: Option<Key> = values.iter().map(|value| value.identity.clone()).collect();
        let views: Vec<AnyView<'_>> = values.iter().map(Value::view).collect();
        match operation {
            0..=8 => {
                let behind = Any::from(ARGUMENT);
                let mut args = views;
                if operation < 6 {
                    args.push(behind.as_view());
                }
                let got = self.table.function().call_as::<i64>(&args[..]);
                self.compare(got, key);
            }
            9 => {
                // a key with a value too few is none
                if let Some(short) = self.count.checked_sub(1) {
                    let got = self.table.function().call(&views[..short]);
                    assert!(got.is_err_and(|error| error.kind() == "TypeError"), "a call without a whole key");
                    assert!(self.table.remove(&views[..short]).is_err(), "a key without all values");
                }
            }
            10..=11 => {
                let function = self.functions.of(-100, ARGUMENT);
                let got = self.table.insert(&views[..], function);
                assert_eq!(got.is_ok(), key.is_some(), "insert");
                if let Some(key) = key {
                    self.model.insert(key, -100);
                }
            }
            12..=13 => {
                let got = self.table.remove(&views[..]).ok();
                assert_eq!(got, key.map(|key| self.model.remove(&key)), "remove");
            }
            14 => {
                self.table.clear();
                self.model.kept.clear();
            }
            _ => {
                // through the functions for other languages
                let functions = self.table.functions();
                let values: Vec<Any> = values.iter().filter_map(|value| value.view().to_owned().ok()).collect();
                let array = Array::from(values);
                let remove = functions.get("remove").expect("plain keys").expect("it is there");
                let got = remove.call_as::<bool>((array,)).ok();
                assert_eq!(got, key.map(|key| self.model.remove(&key)), "remove by an array");
            }
        }
        Ok(())
    }

    fn compare(&mut self, got: Result<i64>, key: Option<Key>) {
        let Some(key) = key else {
            return assert!(got.is_err_and(|error| error.kind() == "TypeError"), "a call with a wrong key");
        };
        let expected = Self::call(&mut self.model, &key, self.count);
        assert_eq!(got.ok(), expected, "a call of {key:?}");
    }

    /// Compares the table with its model.
    fn agree(&self) {
        let of = |entry: DispatchEntry| -> Option<Key> { entry.key.iter().map(identity).collect() };
        let kept: Vec<_> = self.table.entries().into_iter().map(of).collect();
        let expected: Vec<_> = self.model.kept.iter().map(|kept| Some(kept.key.clone())).collect();
        assert_eq!(kept, expected, "the keys of the table");
        assert_eq!(self.functions.live(), expected.len() as i64, "functions that are alive");
        let stats = self.table.stats();
        assert_eq!(
            (stats.hits, stats.misses, stats.errors, stats.evictions, stats.waits, stats.entries),
            (self.model.hits, self.model.misses, self.model.errors, self.model.evictions, 0, expected.len()),
            "the statistics"
        );
    }
}
