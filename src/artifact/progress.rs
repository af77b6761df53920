//! The progress of long operations, as observers receive it.

/// The progress of a long operation. An observer is called repeatedly, maybe from several threads at the same time.
/// Within a step, [`done`](Self::done) grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The current step.
    pub step: Step,
    /// How much of it is done.
    pub done: u64,
    /// Total amount; `None` if unknown, in which case `done` stays 0.
    pub total: Option<u64>,
}

/// A step of a long operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Functions of a library are lowered to the IR. Counts functions.
    Lower,
    /// Machine code is generated. Counts functions of the IR; one library function consists of several. LLVM counts
    /// nothing.
    Compile,
    /// Payloads are copied. Counts bytes.
    Copy,
}

/// A receiver of progress: after each function, and after each 16 MiB of a payload.
pub(super) type Observer<'a> = &'a (dyn Fn(Progress) + Sync);

/// An observer that ignores the progress.
pub(super) const NOBODY: Observer<'static> = &|_| {};

impl Progress {
    pub(super) fn new(step: Step, done: u64, total: u64) -> Self {
        Progress { step, done, total: Some(total) }
    }

    /// The progress of a step that isn't counted.
    #[cfg(feature = "_engine")]
    pub(super) fn uncounted(step: Step) -> Self {
        Progress { step, done: 0, total: None }
    }
}
