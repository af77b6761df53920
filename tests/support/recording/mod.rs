//! A runtime that notes what generated code asks of it, and can fail on demand.
//!
//! [`symbols`] are the functions of the runtime, each behind one that notes its calls while [`record`] or [`failing`]
//! runs on the same thread. Generated code gets these addresses and nothing else does, so that the trace has no call of
//! the tests' own.

mod describe;
mod table;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fmt;

use tvm_ffi_codegen::runtime::abi::TypeIndex;
use tvm_ffi_codegen::runtime::error::set_raised;
use tvm_ffi_codegen::runtime::{AsObject, Error, ObjectRef, WeakRef};

pub use table::{real, symbols};

/// A reference to an object that generated code gets or gives up, by the object's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Got(usize),
    /// Got by the initialisation of a one-time handle, for the library to keep.
    Kept(usize),
    Released(usize),
}

/// What generated code did.
#[derive(Clone, Default)]
pub struct Trace {
    /// Calls with their arguments and results, those inside of others indented. Objects have numbers in the order in
    /// which they appeared, so that traces of several executors are equal.
    pub events: Vec<String>,
    /// References that came and went.
    pub changes: Vec<Change>,
    /// The number of calls that could have failed.
    pub fallible: usize,
    /// Objects that are there when the recording ends, aside from the injected error, from functions that generated
    /// code hasn't made, and from the runtime's own.
    pub left: Vec<usize>,
    /// The error of the call that was made to fail.
    pub injected: Option<Error>,
}

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        (&self.events, &self.changes, &self.left) == (&other.events, &other.changes, &other.left)
            && self.fallible == other.fallible
            && self.injected.is_some() == other.injected.is_some()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events.iter().try_for_each(|event| writeln!(f, "    {event}"))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace of {} fallible calls:\n{self}", self.fallible)
    }
}

impl Trace {
    /// Whether every reference that was got is given up once, the last one first but for those that the library keeps;
    /// else the reference that isn't. The library's end is part of the trace.
    pub fn mirrors(&self) -> Result<(), String> {
        let (mut held, mut kept) = (Vec::new(), Vec::new());
        for &change in &self.changes {
            match change {
                Change::Got(number) => held.push(number),
                Change::Kept(number) => kept.push(number),
                Change::Released(number) if held.last() == Some(&number) => held.truncate(held.len() - 1),
                Change::Released(number) => match kept.iter().position(|kept| *kept == number) {
                    Some(at) if held.is_empty() => {
                        kept.remove(at);
                    }
                    _ => return Err(format!("#{number} is released while {held:?} are held and {kept:?} kept")),
                },
            }
        }
        match held.is_empty() && kept.is_empty() {
            true => Ok(()),
            false => Err(format!("{held:?} are held and {kept:?} kept at the end")),
        }
    }

    /// Whether every reference that was got is given up as often, in any order, but for those that callees or the
    /// caller have taken; else the object.
    pub fn releases_no_more_than_it_got(&self) -> Result<(), String> {
        let mut counts: BTreeMap<usize, i32> = BTreeMap::new();
        for &change in &self.changes {
            match change {
                Change::Got(number) | Change::Kept(number) => *counts.entry(number).or_default() += 1,
                Change::Released(number) => *counts.entry(number).or_default() -= 1,
            }
            if let Some((number, _)) = counts.iter().find(|(_, count)| **count < 0) {
                return Err(format!("#{number} is released once too often"));
            }
        }
        Ok(())
    }
}

/// A call that fails.
#[derive(Clone, Copy, Debug)]
struct Fault {
    /// The number of fallible calls before it.
    at: usize,
    code: c_int,
}

/// A recording under way.
#[derive(Default)]
struct Recorder {
    trace: Trace,
    depth: usize,
    /// Objects by their numbers. A weak reference keeps the address from being another's, and no object alive.
    objects: Vec<(usize, WeakRef)>,
    /// The functions that generated code has made.
    made_functions: Vec<usize>,
    /// The initialisations of handles under way.
    initialisations: usize,
    fault: Option<Fault>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// The trace of what generated code does on this thread meanwhile, and the result.
pub fn record<T>(run: impl FnOnce() -> T) -> (T, Trace) {
    recording(None, run)
}

/// The same, with the fallible call number `at`, from 0 on, failing with -1 and an error of the kind `InjectedError`. A
/// call is fallible if the C API lets it raise an error.
pub fn failing<T>(at: usize, run: impl FnOnce() -> T) -> (T, Trace) {
    recording(Some(Fault { at, code: -1 }), run)
}

/// The same, with another code.
pub fn failing_with<T>(at: usize, code: c_int, run: impl FnOnce() -> T) -> (T, Trace) {
    recording(Some(Fault { at, code }), run)
}

/// Ends the recording, also where it unwinds.
struct Stop;

impl Drop for Stop {
    fn drop(&mut self) {
        // Weak references are dropped here, outside of the borrow.
        let _recorder = RECORDER.take();
    }
}

fn recording<T>(fault: Option<Fault>, run: impl FnOnce() -> T) -> (T, Trace) {
    let before = RECORDER.replace(Some(Recorder { fault, ..Recorder::default() }));
    assert!(before.is_none(), "a recording inside of another");
    let stop = Stop;
    let result = run();
    let mut recorder = RECORDER.take().unwrap_or_default();
    drop(stop);
    recorder.trace.left = recorder.left();
    (result, recorder.trace)
}

/// Notes something that isn't generated code's, such as a call of a function of the test.
pub fn note(event: impl FnOnce() -> String) {
    with(|recorder| recorder.push(event()));
}

/// Looks at the recording, if there is one.
fn with<T>(look: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
    RECORDER.with_borrow_mut(|recorder| recorder.as_mut().map(look))
}

impl Recorder {
    fn push(&mut self, event: String) {
        self.trace.events.push(format!("{:1$}{event}", "", 2 * self.depth));
    }

    /// The number of an object.
    fn number(&mut self, object: &ObjectRef) -> usize {
        let address = object.as_ptr().addr();
        let known = self.objects.iter().position(|(at, _)| *at == address);
        known.unwrap_or_else(|| {
            self.objects.push((address, object.downgrade()));
            self.objects.len() - 1
        })
    }

    /// Notes a new reference of generated code.
    fn gets(&mut self, number: usize) {
        let change = if self.initialisations > 0 { Change::Kept(number) } else { Change::Got(number) };
        self.trace.changes.push(change);
    }

    fn is_gone(&self, number: usize) -> bool {
        self.objects.get(number).is_none_or(|(_, object)| object.upgrade().is_none())
    }

    /// The objects of [`Trace::left`].
    fn left(&self) -> Vec<usize> {
        let injected = self.trace.injected.as_ref().map(|error| error.as_object().as_ptr());
        let is_others = |number, object: &ObjectRef| match object.type_index() {
            TypeIndex::FUNCTION => !self.made_functions.contains(&number),
            // what says that keywords follow, which is the runtime's
            type_index => type_index == TypeIndex::OBJECT,
        };
        let objects = self.objects.iter().map(|(_, object)| object.upgrade()).enumerate();
        let left = objects.filter_map(|(number, object)| Some((number, object?)));
        left.filter(|(number, object)| !is_others(*number, object) && Some(object.as_ptr()) != injected)
            .map(|(number, _)| number)
            .collect()
    }

    /// Counts a fallible call, and raises the error of one that has to fail.
    fn fails(&mut self) -> Option<c_int> {
        let at = self.trace.fallible;
        self.trace.fallible += 1;
        let Fault { code, .. } = self.fault.filter(|fault| fault.at == at)?;
        let error = Error::new("InjectedError", &format!("call {at} fails"));
        set_raised(error.clone());
        self.trace.injected = Some(error);
        Some(code)
    }
}

/// Makes a call, noted with the calls that it makes itself. `outcome` says what a success gives.
fn noted<R>(
    event: impl FnOnce(&mut Recorder) -> String,
    call: impl FnOnce() -> R,
    outcome: impl FnOnce(&mut Recorder, &R) -> String,
) -> R {
    let began = with(|recorder| {
        let event = event(recorder);
        recorder.push(event);
        recorder.depth += 1;
        recorder.trace.events.len()
    });
    let result = call();
    let Some(began) = began else { return result };
    with(|recorder| {
        recorder.depth -= 1;
        let outcome = outcome(recorder, &result);
        if outcome.is_empty() {
            return;
        }
        // Of a call that made none itself, the outcome stands in the same line.
        match recorder.trace.events.len() == began {
            true => recorder.trace.events[began - 1].push_str(&format!(" = {outcome}")),
            false => recorder.push(format!("= {outcome}")),
        }
    });
    result
}

/// The same of a call that returns a code and can raise an error.
fn fallible(
    event: impl FnOnce(&mut Recorder) -> String,
    call: impl FnOnce() -> c_int,
    outcome: impl FnOnce(&mut Recorder) -> String,
) -> c_int {
    let call = || with(Recorder::fails).flatten().unwrap_or_else(call);
    noted(event, call, |recorder, code| match code {
        0 => outcome(recorder),
        code => format!("code {code}"),
    })
}
