//! Random operations on one thread, compared with a model.

use proptest::prelude::*;

use super::{call, constant, kept, packed, table};
use crate::support::random::{run, stated_or};

#[derive(Clone, Debug)]
enum Step {
    Call(i64),
    Insert(i64),
    Remove(i64),
    Prewarm(i64),
    Clear,
}

fn steps() -> impl Strategy<Value = (usize, Vec<Step>)> {
    let key = 0i64..12;
    let step = prop_oneof![
        8 => key.clone().prop_map(Step::Call),
        2 => key.clone().prop_map(Step::Insert),
        2 => key.clone().prop_map(Step::Remove),
        1 => key.prop_map(Step::Prewarm),
        1 => Just(Step::Clear),
    ];
    (1usize..9, proptest::collection::vec(step, 1..80))
}

/// A kept function of the model: its key, its number, when it was used and taken.
#[derive(Clone, Debug)]
struct Kept {
    key: i64,
    number: i64,
    used: u64,
    taken: u64,
}

/// C20 in its simplest form.
#[derive(Default)]
struct Model {
    most: usize,
    kept: Vec<Kept>,
    time: u64,
    made: i64,
    hits: u64,
    misses: u64,
    errors: u64,
    evictions: u64,
}

impl Model {
    fn keep(&mut self, key: i64, number: i64) {
        self.time += 1;
        self.kept.push(Kept { key, number, used: self.time, taken: self.time });
        self.time += 1;
        if self.kept.len() > self.most {
            let oldest = self.kept.iter().map(|kept| (kept.used, kept.taken)).min().unwrap();
            self.kept.retain(|kept| (kept.used, kept.taken) != oldest);
            self.evictions += 1;
        }
    }

    /// The number that a call returns, or `None` for an error. Keys that are a multiple of 5 fail now and then.
    fn call(&mut self, key: i64) -> Option<i64> {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.key == key) {
            kept.used = self.time;
            self.hits += 1;
            return Some(kept.number);
        }
        self.misses += 1;
        self.made += 1;
        if fails(key, self.made) {
            self.errors += 1;
            return None;
        }
        self.keep(key, self.made);
        Some(self.made)
    }

    fn remove(&mut self, key: i64) -> bool {
        let before = self.kept.len();
        self.kept.retain(|kept| kept.key != key);
        self.kept.len() < before
    }
}

fn fails(key: i64, made: i64) -> bool {
    key % 5 == 0 && made % 2 == 0
}

#[test]
fn a_table_does_what_the_model_does() {
    run(stated_or(60), &steps(), |(most, steps)| {
        let made = std::sync::atomic::AtomicI64::new(0);
        let on_miss = packed(move |args| {
            let made = made.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            if fails(args[0].cast()?, made) {
                return Err(tvm_ffi_codegen::runtime::Error::new("KeyError", "fails"));
            }
            Ok(constant(made).into())
        });
        let table = table(on_miss, Some(most));
        let mut model = Model { most, ..Model::default() };
        for (place, step) in steps.iter().enumerate() {
            match step {
                Step::Call(key) => prop_assert_eq!(call(&table, *key).ok(), model.call(*key)),
                Step::Insert(key) => {
                    table.insert((*key,), constant(-*key)).unwrap();
                    model.remove(*key);
                    model.keep(*key, -*key);
                }
                Step::Remove(key) => prop_assert_eq!(table.remove((*key,)).unwrap(), model.remove(*key)),
                Step::Prewarm(key) => {
                    prop_assert_eq!(table.prewarm([(*key,)]).is_ok(), model.call(*key).is_some());
                }
                Step::Clear => {
                    table.clear();
                    model.kept.clear();
                }
            }
            let keys: Vec<i64> = model.kept.iter().map(|kept| kept.key).collect();
            prop_assert_eq!(kept(&table), keys, "after step {} of {:?}", place, steps);
            let stats = table.stats();
            prop_assert_eq!(
                (stats.hits, stats.misses, stats.errors, stats.evictions, stats.waits),
                (model.hits, model.misses, model.errors, model.evictions, 0)
            );
        }
        Ok(())
    });
}
