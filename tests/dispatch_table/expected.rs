//! A model of a table, in its simplest form: clause C20 for one thread.

/// A kept function: its key, its number, when it was used and taken.
#[derive(Clone, Debug)]
pub struct Kept<K> {
    pub key: K,
    pub number: i64,
    used: u64,
    taken: u64,
}

/// The outcome of `on_miss`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// It has made the function that the table keeps.
    Kept,
    /// It has made a function, and changed the key's entry meanwhile, so the table doesn't keep the function.
    Detached,
    /// It has failed.
    Nothing,
}

/// A table of functions that return their numbers.
pub struct Model<K> {
    most: usize,
    pub kept: Vec<Kept<K>>,
    time: u64,
    /// The number of the newest function.
    made: i64,
    pub hits: u64,
    pub misses: u64,
    pub errors: u64,
    pub evictions: u64,
}

impl<K: PartialEq + Clone> Model<K> {
    /// An empty table that keeps so many functions.
    pub const fn of(most: usize) -> Self {
        Model { most, kept: Vec::new(), time: 0, made: 0, hits: 0, misses: 0, errors: 0, evictions: 0 }
    }

    fn keep(&mut self, key: K, number: i64) {
        self.time += 1;
        self.kept.push(Kept { key, number, used: self.time, taken: self.time });
        self.time += 1;
        if self.kept.len() > self.most {
            let oldest = self.kept.iter().map(|kept| (kept.used, kept.taken)).min().unwrap_or_default();
            self.kept.retain(|kept| (kept.used, kept.taken) != oldest);
            self.evictions += 1;
        }
    }

    /// The number that a call returns, or `None` for an error. `on_miss` gets the number of the function that it makes.
    pub fn call(&mut self, key: &K, on_miss: impl FnOnce(&mut Self, i64) -> Made) -> Option<i64> {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.key == *key) {
            kept.used = self.time;
            self.hits += 1;
            return Some(kept.number);
        }
        self.misses += 1;
        self.made += 1;
        let number = self.made;
        match on_miss(self, number) {
            Made::Kept => self.keep(key.clone(), number),
            Made::Detached => {}
            Made::Nothing => {
                self.errors += 1;
                return None;
            }
        }
        Some(number)
    }

    pub fn insert(&mut self, key: K, number: i64) {
        self.remove(&key);
        self.keep(key, number);
    }

    pub fn remove(&mut self, key: &K) -> bool {
        let before = self.kept.len();
        self.kept.retain(|kept| kept.key != *key);
        self.kept.len() < before
    }
}
