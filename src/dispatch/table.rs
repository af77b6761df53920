//! A table: its calls and changes.

use std::ffi::c_int;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tvm_ffi_runtime::abi::TVMFFIAny;
use tvm_ffi_runtime::error::kind;
use tvm_ffi_runtime::{Any, AnyView, Error, Function, TypeIndex};

use super::entry::Entry;
use super::failure::{Failure, guarded};
use super::hazard;
use super::hits::Hits;
use super::key::{self, Key, settled};
use super::miss::Miss;
use super::process::{ENDED, State, free_removed, lock, quietly, unlock};
use super::slots::Slots;
use super::thread;
use super::waiting::{NoFunction, wait};

/// The part of a table that it doesn't share. The rest is behind the process's lock, by the table's number.
pub struct Table {
    number: u64,
    name: String,
    key_names: Vec<String>,
    on_miss: Function,
    max_entries: usize,
    /// The newest of the writer's slots.
    slots: AtomicPtr<Slots>,
    /// The number of entries that the table has taken. It dates uses and insertions.
    time: AtomicU64,
    hits: Hits,
}

/// The counters of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatchStats {
    /// Calls that found a function in the table.
    pub hits: u64,
    /// Calls that got the function of another thread's `on_miss`, for which they waited.
    pub waits: u64,
    /// Calls of `on_miss`, also those that are under way.
    pub misses: u64,
    /// Calls of `on_miss` that failed, or returned no function.
    pub errors: u64,
    /// Functions that were removed to make room for others.
    pub evictions: u64,
    /// Functions in the table.
    pub entries: usize,
    /// The time in calls of `on_miss` that have ended, of all threads together.
    pub on_miss_time: Duration,
}

/// A function that a table keeps.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DispatchEntry {
    /// The key's values, in the order of the table's key names.
    pub key: Vec<Any>,
    /// The function.
    pub function: Function,
}

impl Table {
    pub fn new(name: String, key_names: Vec<String>, on_miss: Function, max_entries: Option<usize>) -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let slots = Arc::new(Slots::with_room(0));
        let table = Self {
            number,
            name,
            key_names,
            on_miss,
            max_entries: max_entries.unwrap_or(usize::MAX),
            slots: AtomicPtr::new(Arc::as_ptr(&slots).cast_mut()),
            time: AtomicU64::new(0),
            hits: Hits::new(),
        };
        lock().writer(number).slots.push(slots);
        Arc::new(table)
    }

    /// Calls the function of the key in the first arguments with the arguments after these.
    ///
    /// # Safety
    /// As for `Callable::call`.
    #[inline(always)]
    pub unsafe fn call(&self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> i32 {
        // SAFETY: promised by the caller.
        unsafe {
            match self.call_kept(args, num_args, result) {
                Some(code) => code,
                None => self.call_found(args, num_args, result),
            }
        }
    }

    /// Calls a function that the table keeps, without a lock. `None` if that needs a closer look.
    ///
    /// # Safety
    /// As for [`Table::call`].
    #[inline(always)]
    unsafe fn call_kept(&self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> Option<i32> {
        let count = self.key_names.len();
        if usize::try_from(num_args).ok()? < count || args.is_null() {
            return None;
        }
        // SAFETY: the caller promises so many values, which live for the call. A view is a transparent `TVMFFIAny`.
        let values: &[AnyView<'_>] = unsafe { slice::from_raw_parts(args.cast(), count) };
        let record = hazard::of_thread()?;
        let hash = key::hash_of_call(values)?;
        // SAFETY: the table's slots live as long as the table, which the caller keeps.
        let slots = unsafe { &*self.slots.load(Ordering::Acquire) };
        let (entry, place) = slots.find(hash)?;
        let hit = record.protect(entry, place)?;
        // SAFETY: the entry was in the slots after this thread named it, so nobody frees it until the hit ends.
        let entry = unsafe { &*entry };
        let mut code = None;
        // a closure would be a function of its own
        if entry.key.matches(values) {
            entry.note_use(self.time.load(Ordering::Relaxed));
            self.hits.count(record.index);
            // SAFETY: the function lives as long as its entry. The arguments behind the key are passed on as they came.
            code = Some(unsafe {
                (entry.callable)(entry.function.as_raw_handle(), args.add(count), num_args - count as i32, result)
            });
        }
        if hit.end() {
            free_removed();
        }
        code
    }

    /// Calls a function that the table keeps or makes.
    ///
    /// # Safety
    /// As for [`Table::call`].
    #[cold]
    #[inline(never)]
    unsafe fn call_found(&self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> i32 {
        // SAFETY: promised by the caller.
        let args_found = unsafe { AnyView::slice_from_raw(args, num_args) };
        let function = match guarded(|| self.function_for_call(args_found)) {
            Ok(function) => function,
            Err(failure) => return failure.raise(),
        };
        // There are at least so many arguments, or no function was found.
        let (args, num_args) = (args.wrapping_add(self.key_names.len()), num_args - self.key_names.len() as i32);
        // SAFETY: the arguments behind the key are passed on as they came.
        let code = unsafe { function.as_safe_call()(function.as_raw_handle(), args, num_args, result) };
        quietly(function);
        code
    }

    fn function_for_call(&self, args: &[AnyView<'_>]) -> Result<Function, Failure> {
        // Nobody may take over an argument before the function that is called has it.
        // SAFETY: the arguments live for the call.
        let args: Vec<AnyView<'_>> = args.iter().map(|arg| unsafe { settled(arg.as_raw()) }).collect();
        let count = self.key_names.len();
        let values = args.get(..count).ok_or_else(|| {
            let (name, got) = (self.signature(), args.len());
            let message =
                format!("Mismatched number of arguments when calling: {name}, expected at least {count}, got {got}");
            Failure::of_kind(kind::TYPE_ERROR, &message)
        })?;
        let key = Key::of(values).map_err(|index| {
            let (name, ty) = (self.key_name(index), type_name(values.get(index)));
            let (types, signature) = (key::TYPES, self.signature());
            let message = format!(
                "Mismatched type of {name} on argument #{index} when calling: {signature}, expected {types}, got {ty}"
            );
            Failure::of_kind(kind::TYPE_ERROR, &message)
        })?;
        self.find(Arc::new(key), &args)
    }

    /// The function of a key, which `on_miss` makes with the arguments if the table has none.
    pub fn find(&self, key: Arc<Key>, args: &[AnyView<'_>]) -> Result<Function, Failure> {
        loop {
            let mut state = lock();
            state.register_thread();
            let writer = state.writer(self.number);
            if let Some(entry) = writer.entries.get(&key) {
                let function = entry.function.clone();
                entry.note_use(self.time.load(Ordering::Relaxed));
                writer.counts.hits += 1;
                unlock(state);
                return Ok(function);
            }
            let Some(miss) = writer.misses.get(&key).cloned() else {
                return self.make(state, key, args);
            };
            unlock(state);
            match wait(&miss) {
                Ok(function) => {
                    lock().writer(self.number).counts.waits += 1;
                    return Ok(function);
                }
                Err(NoFunction::Failed) => (),
                Err(NoFunction::Recursion) => return Err(self.recursion(&key)),
                Err(NoFunction::Signal(failure)) => return Err(failure),
            }
        }
    }

    /// Makes a function with `on_miss`, and keeps it unless the miss is detached meanwhile.
    fn make(
        &self,
        mut state: std::sync::MutexGuard<'static, State>,
        key: Arc<Key>,
        args: &[AnyView<'_>],
    ) -> Result<Function, Failure> {
        let maker = thread::id();
        // A detached miss of this thread isn't in the table any more.
        let is_own = |(table, miss): &(u64, Arc<Miss>)| *table == self.number && miss.maker == maker && miss.key == key;
        if state.making.iter().any(is_own) {
            unlock(state);
            return Err(self.recursion(&key));
        }
        let miss = Arc::new(Miss::new(Arc::clone(&key), maker));
        let writer = state.writer(self.number);
        writer.misses.insert(Arc::clone(&key), Arc::clone(&miss));
        writer.counts.misses += 1;
        state.making.push((self.number, Arc::clone(&miss)));
        unlock(state);
        let mut making = Making { table: self, miss, start: Instant::now(), function: None };
        let function = self.call_on_miss(&key, args)?;
        making.function = Some(function.clone());
        Ok(function)
    }

    fn call_on_miss(&self, key: &Key, args: &[AnyView<'_>]) -> Result<Function, Failure> {
        let mut result = TVMFFIAny::none();
        // SAFETY: a view is a transparent `TVMFFIAny`, so this is the same slice.
        let raw: &[TVMFFIAny] = unsafe { slice::from_raw_parts(args.as_ptr().cast(), args.len()) };
        // SAFETY: the views are valid for the call, and the result is None.
        let code: c_int = unsafe { self.on_miss.call_raw(raw, &mut result) };
        // The error is taken before anything else runs.
        let failure = (code != 0).then(|| Failure::of_call(code));
        // SAFETY: a call has written an owned value.
        let value = unsafe { Any::from_raw(result) };
        match failure {
            Some(failure) => Err(failure),
            None => value.cast().map_err(|_| {
                let (key, got) = (key.described(&self.key_names), type_name(Some(&value.as_view())));
                let message = format!(
                    "Mismatched type of the result of on_miss of {} for {key}, expected Function, got {got}",
                    self.signature()
                );
                Failure::of_kind(kind::TYPE_ERROR, &message)
            }),
        }
    }

    /// Keeps a function under a key that has none, and evicts others if there are too many.
    fn keep(&self, state: &mut State, key: Arc<Key>, function: Function) {
        let time = self.time.load(Ordering::Relaxed) + 1;
        // uses from now on are later than the entry's coming
        self.time.store(time + 1, Ordering::Relaxed);
        let entry = Arc::new(Entry::new(key, function, time));
        let writer = state.writer(self.number);
        writer.entries.insert(Arc::clone(&entry.key), Arc::clone(&entry));
        let count = writer.entries.len();
        match writer.slots.last() {
            Some(slots) if slots.has_room(count) => slots.insert(&entry),
            _ => {
                let slots = Arc::new(Slots::with_room(count));
                writer.entries.values().for_each(|entry| slots.insert(entry));
                self.slots.store(Arc::as_ptr(&slots).cast_mut(), Ordering::SeqCst);
                // A hit that has the old slots must not find entries there that are removed later.
                writer.slots.iter().for_each(|old| old.clear());
                writer.slots.push(slots);
            }
        }
        // One entry came, so that one has to go.
        if count > self.max_entries
            && let Some(oldest) = writer.entries.values().min_by_key(|entry| entry.age()).cloned()
        {
            writer.counts.evictions += 1;
            writer.entries.remove(&oldest.key);
            if let Some(slots) = writer.slots.last() {
                slots.remove(&oldest);
            }
            state.removed.push(oldest);
        }
    }

    /// Keeps the function of a key from now on, whatever the table has or makes for it.
    pub fn insert(&self, key: Key, function: Function) {
        let (mut state, key) = (lock(), Arc::new(key));
        self.take_out(&mut state, &key);
        self.keep(&mut state, key, function);
        unlock(state);
    }

    /// Removes the function of a key, and detaches a miss. Returns whether the table had a function.
    pub fn remove(&self, key: &Key) -> bool {
        let mut state = lock();
        let is_removed = self.take_out(&mut state, key);
        unlock(state);
        is_removed
    }

    fn take_out(&self, state: &mut State, key: &Key) -> bool {
        let writer = state.writer(self.number);
        writer.misses.remove(key);
        let Some(entry) = writer.entries.remove(key) else { return false };
        if let Some(slots) = writer.slots.last() {
            slots.remove(&entry);
        }
        state.removed.push(entry);
        true
    }

    /// Removes all functions, and detaches all misses.
    pub fn clear(&self) {
        let mut state = lock();
        let writer = state.writer(self.number);
        writer.misses.clear();
        if let Some(slots) = writer.slots.last() {
            slots.clear();
        }
        let entries: Vec<_> = writer.entries.drain().map(|(_, entry)| entry).collect();
        state.removed.extend(entries);
        unlock(state);
    }

    pub fn stats(&self) -> DispatchStats {
        let mut state = lock();
        let writer = state.writer(self.number);
        let (counts, entries) = (&writer.counts, writer.entries.len());
        DispatchStats {
            hits: counts.hits + self.hits.total(),
            waits: counts.waits,
            misses: counts.misses,
            errors: counts.errors,
            evictions: counts.evictions,
            entries,
            on_miss_time: counts.time,
        }
    }

    /// The functions in the order in which the table has taken them.
    pub fn entries(&self) -> Vec<DispatchEntry> {
        let mut kept: Vec<(u64, Arc<Key>, Function)> = {
            let mut state = lock();
            let entries = state.writer(self.number).entries.values();
            entries.map(|entry| (entry.taken, Arc::clone(&entry.key), entry.function.clone())).collect()
        };
        kept.sort_by_key(|(taken, ..)| *taken);
        kept.into_iter().map(|(_, key, function)| DispatchEntry { key: key.to_values(), function }).collect()
    }

    pub fn key_names(&self) -> &[String] {
        &self.key_names
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A key from its values alone.
    ///
    /// # Errors
    /// `ValueError` for a wrong number of values, `TypeError` for a value that can't be a part of a key.
    pub fn key(&self, values: &[AnyView<'_>]) -> Result<Key, Error> {
        // SAFETY: the values live as long as the views of them.
        let values: Vec<AnyView<'_>> = values.iter().map(|value| unsafe { settled(value.as_raw()) }).collect();
        let (signature, expected, got) = (self.signature(), self.key_names.len(), values.len());
        if expected != got {
            let message = format!("Mismatched length of a key of {signature}, expected {expected}, got {got}");
            return Err(Error::new(kind::VALUE_ERROR, &message));
        }
        Key::of(&values).map_err(|index| {
            let (name, ty, types) = (self.key_name(index), type_name(values.get(index)), key::TYPES);
            let message = format!("Mismatched type of {name} in a key of {signature}, expected {types}, got {ty}");
            Error::new(kind::TYPE_ERROR, &message)
        })
    }

    fn key_name(&self, index: usize) -> &str {
        self.key_names.get(index).map_or("", String::as_str)
    }

    /// The table as messages show it.
    fn signature(&self) -> String {
        format!("`{}({}, ...)`", self.name, self.key_names.join(", "))
    }

    fn recursion(&self, key: &Key) -> Failure {
        let (signature, key) = (self.signature(), key.described(&self.key_names));
        let message = format!("on_miss of {signature} needs the function that it makes, for {key}");
        Failure::of_kind(kind::RUNTIME_ERROR, &message)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let mut state = lock();
        let writer = state.remove_table(self.number);
        if let Some(writer) = writer {
            // A call may be running in a function, although its caller must keep the table.
            state.removed.extend(writer.entries.into_values());
        }
        unlock(state);
    }
}

/// A miss of this thread. Its end, of whatever kind, ends the miss: with a function, or as failed.
struct Making<'t> {
    table: &'t Table,
    miss: Arc<Miss>,
    start: Instant,
    function: Option<Function>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let (number, miss, function) = (self.table.number, &self.miss, self.function.take());
        let mut state = lock();
        state.making.retain(|(_, making)| !Arc::ptr_eq(making, miss));
        let writer = state.writer(number);
        writer.counts.time += self.start.elapsed();
        writer.counts.errors += u64::from(function.is_none());
        let is_attached = writer.misses.get(&miss.key).is_some_and(|other| Arc::ptr_eq(other, miss));
        if is_attached {
            writer.misses.remove(&miss.key);
            if let Some(function) = &function {
                self.table.keep(&mut state, Arc::clone(&miss.key), function.clone());
            }
        }
        // nobody else sets the outcome
        let _ = miss.outcome.set(function);
        ENDED.notify_all();
        unlock(state);
    }
}

/// The type of a value as messages show it.
fn type_name(value: Option<&AnyView<'_>>) -> String {
    value.map_or_else(String::new, |value| match value.type_index() {
        TypeIndex::STR | TypeIndex::SMALL_STR | TypeIndex::RAW_STR => "str".to_owned(),
        TypeIndex::BYTES | TypeIndex::SMALL_BYTES | TypeIndex::BYTE_ARRAY_PTR => "bytes".to_owned(),
        TypeIndex::DL_TENSOR_PTR => "Tensor".to_owned(),
        _ => {
            let key = value.type_key();
            key.strip_prefix("ffi.").map_or(key.clone(), str::to_owned)
        }
    })
}
