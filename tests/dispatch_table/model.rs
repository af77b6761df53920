//! Random operations on one thread, compared with a model.

use proptest::prelude::*;

use super::expected::{Made, Model};
use super::{Slot, call, constant, kept, packed, table};
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

/// The key whose `on_miss` removes it, so that the table doesn't keep the function.
const DETACHED: i64 = 11;

/// Keys that are a multiple of 5 fail now and then.
fn fails(key: i64, made: i64) -> bool {
    key % 5 == 0 && made % 2 == 0
}

#[test]
fn a_table_does_what_the_model_does() {
    run(stated_or(60), &steps(), |(most, steps)| {
        let made = std::sync::atomic::AtomicI64::new(0);
        let slot = Slot::default();
        let of_on_miss = slot.clone();
        let on_miss = packed(move |args| {
            let (key, made) = (args[0].cast()?, made.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1);
            if key == DETACHED {
                of_on_miss.get().remove((key,))?;
            }
            if fails(key, made) {
                return Err(tvm_ffi_codegen::runtime::Error::new("KeyError", "fails"));
            }
            Ok(constant(made).into())
        });
        let table = table(on_miss, Some(most));
        slot.set(&table);
        let mut model = Model::of(most);
        let called = |model: &mut Model<i64>, key: i64| {
            model.call(&key, |_, made| match key {
                _ if fails(key, made) => Made::Nothing,
                DETACHED => Made::Detached,
                _ => Made::Kept,
            })
        };
        for (place, step) in steps.iter().enumerate() {
            match step {
                Step::Call(key) => prop_assert_eq!(call(&table, *key).ok(), called(&mut model, *key)),
                Step::Insert(key) => {
                    table.insert((*key,), constant(-*key)).unwrap();
                    model.insert(*key, -*key);
                }
                Step::Remove(key) => prop_assert_eq!(table.remove((*key,)).unwrap(), model.remove(key)),
                Step::Prewarm(key) => {
                    prop_assert_eq!(table.prewarm([(*key,)]).is_ok(), called(&mut model, *key).is_some());
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
        slot.clear();
        Ok(())
    });
}
