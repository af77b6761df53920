//! The progress of long work, as observers are told it.

/// How far long work is. An observer gets it again and again, in each step with a growing [`done`](Self::done), maybe on several threads at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The work that is being done.
    pub step: Step,
    /// How much of it is done.
    pub done: u64,
    /// How much of it there is; `None` where that isn't known, and `done` stays 0.
    pub total: Option<u64>,
}

/// A step of long work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Functions of a library are lowered to the IR. Counts functions.
    Lower,
    /// Machine code is made. Counts functions of the IR, of which a function of a library has several; with LLVM nothing is counted.
    Compile,
    /// Payloads are copied. Counts bytes.
    Copy,
}

/// Whoever is told of progress: of each function, and of each 16 MiB of a payload.
pub(super) type Observer<'a> = &'a (dyn Fn(Progress) + Sync);

/// The observer that nobody listens to.
pub(super) const NOBODY: Observer<'static> = &|_| {};

impl Progress {
    pub(super) fn new(step: Step, done: u64, total: u64) -> Self {
        Progress { step, done, total: Some(total) }
    }

    /// The progress of a step which doesn't count.
    #[cfg(feature = "_engine")]
    pub(super) fn uncounted(step: Step) -> Self {
        Progress { step, done: 0, total: None }
    }
}
