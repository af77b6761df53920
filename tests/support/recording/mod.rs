//! A runtime that records the calls of generated code, and can fail on demand.
//!
//! [`symbols`] contains a replacement for each function of the runtime. The replacements record their calls while
//! [`record`] or [`failing`] runs on the same thread. Only generated code has their addresses, so the trace contains no
//! calls made by the tests themselves.

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

/// A reference that generated code gets or releases, with the object's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Got(usize),
    /// Got during the initialisation of a one-time handle, and kept by the library.
    Kept(usize),
    Released(usize),
}

/// The recorded behaviour of generated code.
#[derive(Clone, Default)]
pub struct Trace {
    /// Calls with arguments and results; nested calls are indented. Objects are numbered in the order of their first
    /// use, so traces of different executors are equal.
    pub events: Vec<String>,
    /// References that were got and released.
    pub changes: Vec<Change>,
    /// The number of calls that may fail.
    pub fallible: usize,
    /// Objects that are alive when the recording ends, except the injected error, functions not created by generated
    /// code, and the runtime's own objects.
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
    /// Checks that each reference that was got is released exactly once, in reverse order. References kept by the
    /// library may be released in any order after the others, because the trace includes unloading.
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

    /// Checks that no reference is released more often than it was got, in any order. Callees and the caller may have
    /// taken references.
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

/// An injected failure.
#[derive(Clone, Copy, Debug)]
struct Fault {
    /// The number of fallible calls before the one that fails.
    at: usize,
    code: c_int,
}

/// The current recording.
#[derive(Default)]
struct Recorder {
    trace: Trace,
    depth: usize,
    /// Objects by their numbers. A weak reference prevents reuse of the address, but doesn't keep the object alive.
    objects: Vec<(usize, WeakRef)>,
    /// The functions created by generated code.
    made_functions: Vec<usize>,
    /// The number of handles that are being initialised.
    initialisations: usize,
    fault: Option<Fault>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Runs a closure, and returns its result and the trace of generated code on this thread.
pub fn record<T>(run: impl FnOnce() -> T) -> (T, Trace) {
    recording(None, run)
}

/// Like [`record`], but the fallible call number `at`, starting at 0, fails with -1 and an error of the kind
/// `InjectedError`. A call is fallible if the C API allows it to raise an error.
pub fn failing<T>(at: usize, run: impl FnOnce() -> T) -> (T, Trace) {
    recording(Some(Fault { at, code: -1 }), run)
}

/// Like [`failing`], with a different return code.
pub fn failing_with<T>(at: usize, code: c_int, run: impl FnOnce() -> T) -> (T, Trace) {
    recording(Some(Fault { at, code }), run)
}

/// Ends the recording, also when unwinding.
struct Stop;

impl Drop for Stop {
    fn drop(&mut self) {
        // Weak references are dropped here, outside the borrow.
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

/// Records an event outside generated code, such as a call of a test function.
pub fn note(event: impl FnOnce() -> String) {
    with(|recorder| recorder.push(event()));
}

/// Accesses the recording, if there is one.
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

    /// Records a new reference of generated code.
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
            // the marker for keyword arguments, which belongs to the runtime
            type_index => type_index == TypeIndex::OBJECT,
        };
        let objects = self.objects.iter().map(|(_, object)| object.upgrade()).enumerate();
        let left = objects.filter_map(|(number, object)| Some((number, object?)));
        left.filter(|(number, object)| !is_others(*number, object) && Some(object.as_ptr()) != injected)
            .map(|(number, _)| number)
            .collect()
    }

    /// Counts a fallible call, and raises the error if this call must fail.
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

/// Makes a call, and records it with the calls nested in it. `outcome` describes the result.
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
        // If there were no nested calls, the outcome is on the same line.
        match recorder.trace.events.len() == began {
            true => recorder.trace.events[began - 1].push_str(&format!(" = {outcome}")),
            false => recorder.push(format!("= {outcome}")),
        }
    });
    result
}

/// Like `noted`, for a call that returns a code and may raise an error.
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
