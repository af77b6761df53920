//! The functions that an engine has compiled, for code that calls them by symbol.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tvm_ffi_runtime::WeakRef;

use super::code::{Code, KeepAlive};

/// The table isn't searched for dropped functions below this size.
const FEW: usize = 256;

/// The live functions by symbol.
#[derive(Default)]
pub(super) struct Compiled(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// The functions of each symbol, newest last.
    functions: HashMap<Box<str>, Vec<Owner>>,
    /// The number of functions, and the number at which dropped ones are removed.
    count: usize,
    limit: usize,
}

/// Owns a function's code. The reference is weak, so the table keeps nothing alive.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) code: Weak<Code>,
    /// The module that owns the code, if any: the code needs it while it runs.
    pub(super) module: Option<WeakRef>,
}

impl Owner {
    fn lives(&self) -> bool {
        self.code.strong_count() > 0
    }

    /// The code, with a reference that keeps it alive.
    fn get(&self) -> Option<(Arc<Code>, KeepAlive)> {
        match &self.module {
            Some(module) => {
                // the module owns the code, so neither is dropped here
                let keep: KeepAlive = Arc::new(module.upgrade()?);
                Some((self.code.upgrade()?, keep))
            }
            None => self.code.upgrade().map(|code| (Arc::clone(&code), code as KeepAlive)),
        }
    }
}

impl Compiled {
    /// Adds functions of one owner. Not inlined, so a suppression for a tool that doesn't understand the table's lock
    /// can name this frame (xtask/valgrind.supp).
    #[inline(never)]
    pub(super) fn add<'n>(&self, symbols: impl Iterator<Item = &'n str>, owner: &Owner) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Table { functions, count, limit } = &mut *table;
        for symbol in symbols {
            match functions.get_mut(symbol) {
                Some(known) => {
                    // remove dropped functions, for example if one name is compiled repeatedly
                    while known.pop_if(|last| !last.lives()).is_some() {
                        *count -= 1;
                    }
                    known.push(owner.clone());
                }
                None => drop(functions.insert(symbol.into(), vec![owner.clone()])),
            }
            *count += 1;
        }
        if *count > (*limit).max(FEW) {
            functions.retain(|_, owners| {
                owners.retain(Owner::lives);
                !owners.is_empty()
            });
            functions.shrink_to_fit();
            *count = functions.values().map(Vec::len).sum();
            *limit = *count * 2;
        }
    }

    /// The address of the newest live function of that symbol, with a reference that keeps its code alive.
    pub(super) fn find(&self, symbol: &str) -> Option<(*const u8, KeepAlive)> {
        // Upgraded with the lock held and dropped without it, since dropping code may run destructors.
        let (code, keep) = {
            let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            table.functions.get(symbol)?.iter().rev().find_map(Owner::get)?
        };
        Some((code.function(symbol)?, keep))
    }
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
