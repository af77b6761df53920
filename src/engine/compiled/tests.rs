#![allow(clippy::unwrap_used)]

use super::*;
use crate::engine::code::tests::empty;

fn owner(code: &Arc<Code>) -> Owner {
    Owner { code: Arc::downgrade(code), module: None }
}

fn count(compiled: &Compiled) -> (usize, usize) {
    let table = compiled.0.lock().unwrap();
    assert_eq!(table.count, table.functions.values().map(Vec::len).sum::<usize>());
    (table.functions.len(), table.functions.capacity().max(table.count))
}

#[test]
fn what_is_gone_takes_no_memory() {
    let compiled = Compiled::default();
    let kept: Vec<_> = (0..10).map(|_| empty(Vec::new())).collect();
    for (i, code) in kept.iter().enumerate() {
        compiled.add([format!("kept{i}").as_str()].into_iter(), &owner(code));
    }
    for i in 0..100_000 {
        let code = empty(Vec::new());
        compiled.add([format!("f{i}").as_str(), "same"].into_iter(), &owner(&code));
    }
    let (symbols, room) = count(&compiled);
    assert!(symbols < 2 * FEW && room < 4 * FEW, "{symbols} {room}");
    // all of these are alive at the same time, so none is removed
    let many: Vec<_> = (0..5_000).map(|_| empty(Vec::new())).collect();
    for (i, code) in many.iter().enumerate() {
        compiled.add([format!("many{i}").as_str()].into_iter(), &owner(code));
    }
    assert!(count(&compiled).0 >= 5_010);
    drop(many);
    for i in 0..20_000 {
        compiled.add([format!("f{i}").as_str()].into_iter(), &owner(&empty(Vec::new())));
    }
    let (symbols, room) = count(&compiled);
    assert!(symbols < 2 * FEW && room < 4 * FEW, "{symbols} {room}");
}
