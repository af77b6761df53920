//! The state at a point of a path: known values, memory, and owned references.

use std::collections::{BTreeMap, BTreeSet};

use tvm_ffi_codegen::ir::Value;

use super::reads::Reads;
use super::symbols::{Id, Place, Symbol};

/// The state of a path.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct State {
    /// The known values, by the number of calls around them.
    values: BTreeMap<(usize, Value), Symbol>,
    memory: BTreeMap<(Place, i64), Symbol>,
    owned: BTreeMap<Id, Owned>,
}

/// A value whose object the code owns, if it is one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Owned {
    /// The number of references.
    count: u32,
    /// It is an object for certain.
    is_object: bool,
    /// The binder has accepted it.
    is_bound: bool,
}

impl State {
    pub fn value(&self, depth: usize, value: Value) -> Symbol {
        self.values.get(&(depth, value)).cloned().unwrap_or(Symbol::Unknown)
    }

    pub fn set_value(&mut self, depth: usize, value: Value, symbol: Symbol) {
        match symbol {
            Symbol::Unknown => self.values.remove(&(depth, value)),
            symbol => self.values.insert((depth, value), symbol),
        };
    }

    pub fn load(&self, place: Place, at: i64) -> Symbol {
        self.memory.get(&(place, at)).cloned().unwrap_or(Symbol::Unknown)
    }

    pub fn store(&mut self, place: Place, at: i64, symbol: Symbol) {
        match symbol {
            Symbol::Unknown => self.memory.remove(&(place, at)),
            symbol => self.memory.insert((place, at), symbol),
        };
    }

    pub fn owns(&self, id: Id) -> bool {
        self.owned.contains_key(&id)
    }

    /// True if an owned value is an object for certain.
    pub fn is_object(&self, id: Id) -> bool {
        self.owned.get(&id).is_some_and(|owned| owned.is_object)
    }

    /// Adds an owned reference.
    pub fn own(&mut self, id: Id) {
        self.owned.entry(id).or_insert(Owned { count: 0, is_object: false, is_bound: false }).count += 1;
    }

    /// Gives up an owned reference.
    pub fn give_up(&mut self, id: Id) {
        let Some(owned) = self.owned.get_mut(&id) else { return };
        owned.count -= 1;
        if owned.count == 0 {
            self.owned.remove(&id);
            self.change(|symbol| symbol.without(id));
        }
    }

    /// The state in which an owned value is an object, or isn't; `None` if that can't be.
    pub fn assuming(mut self, id: Id, is_object: bool) -> Option<Self> {
        let owned = self.owned.get_mut(&id)?;
        match is_object {
            true => owned.is_object = true,
            false if owned.is_object => return None,
            false => {
                self.owned.remove(&id);
            }
        }
        self.change(|symbol| symbol.assuming(id, is_object));
        Some(self)
    }

    fn change(&mut self, change: impl Fn(&Symbol) -> Symbol) {
        for symbol in self.values.values_mut().chain(self.memory.values_mut()) {
            *symbol = change(symbol);
        }
        self.values.retain(|_, symbol| *symbol != Symbol::Unknown);
        self.memory.retain(|_, symbol| *symbol != Symbol::Unknown);
    }

    /// Marks the values in a place, which the binder has accepted.
    pub fn bind(&mut self, values: Place) {
        for (_, symbol) in self.memory.iter().filter(|((place, _), _)| *place == values) {
            if let Symbol::Payload(id) = symbol
                && let Some(owned) = self.owned.get_mut(id)
            {
                owned.is_bound = true;
            }
        }
    }

    pub fn is_bound(&self, id: Id) -> bool {
        self.owned.get(&id).is_some_and(|owned| owned.is_bound)
    }

    /// The references that the code owns.
    pub fn owned(&self) -> impl Iterator<Item = Id> {
        self.owned.keys().copied()
    }

    /// Forgets what no later code of a function reads.
    pub fn keep(&mut self, depth: usize, reads: &Reads) {
        self.values.retain(|(of, value), _| *of < depth || reads.values.contains(value));
        let addresses = self.values.values().chain(self.memory.values());
        let pointed: BTreeSet<Place> = addresses
            .filter_map(|symbol| match symbol {
                Symbol::Address(place, _) | Symbol::Within(place) => Some(*place),
                _ => None,
            })
            .collect();
        self.memory.retain(|(place, at), _| match place {
            Place::Slot(of, slot) if *of >= depth => reads.has(*slot, *at) || pointed.contains(place),
            _ => true,
        });
    }

    /// The references that the code owns, but that no value or memory has any more.
    pub fn lost(&self) -> Vec<Id> {
        let known: BTreeSet<Id> = self.values.values().chain(self.memory.values()).flat_map(Symbol::held).collect();
        self.owned.keys().copied().filter(|id| !known.contains(id)).collect()
    }

    /// Forgets the values and slots of a function that has returned.
    pub fn leave(&mut self, depth: usize) {
        self.values.retain(|(of, _), _| *of < depth);
        self.memory.retain(|(place, _), _| !matches!(place, Place::Slot(of, _) if *of >= depth));
    }
}
