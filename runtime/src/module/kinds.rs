//! The kinds of C++ modules as static strings.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// A static string of this text. Kinds are few, so none is freed.
pub(super) fn interned(kind: String) -> &'static str {
    static KINDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kinds.get(kind.as_str()) {
        return known;
    }
    let known: &'static str = String::leak(kind);
    kinds.insert(known);
    known
}
