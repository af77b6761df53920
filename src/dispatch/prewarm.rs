//! Making functions ahead of their first calls, on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread as os_thread;
use std::time::Instant;

use super::failure::{Failure, guarded};
use super::key::Key;
use super::process::lock;
use super::table::Table;
use super::{interpreter, signals, thread};

/// The keys of one call, which threads share out among themselves.
struct Job {
    table: Arc<Table>,
    keys: Vec<Arc<Key>>,
    /// The first key that no thread has taken.
    next: AtomicUsize,
    /// The caller has gone.
    is_abandoned: AtomicBool,
    progress: Mutex<Progress>,
    /// Signals that a thread has ended.
    ended: Condvar,
}

struct Progress {
    threads: usize,
    /// The failure of the first key that has failed, with the key's place.
    failure: Option<(usize, Failure)>,
}

/// Makes the functions of all keys that the table has none for.
///
/// # Errors
/// The failure of the first key, in their order, that has one. All keys are tried, unless a signal ends the waiting.
pub fn prewarm(table: &Arc<Table>, keys: Vec<Key>) -> Result<(), Failure> {
    let threads = os_thread::available_parallelism().map_or(1, usize::from).min(keys.len());
    let job = Arc::new(Job {
        table: Arc::clone(table),
        keys: keys.into_iter().map(Arc::new).collect(),
        next: AtomicUsize::new(0),
        is_abandoned: AtomicBool::new(false),
        progress: Mutex::new(Progress { threads: 0, failure: None }),
        ended: Condvar::new(),
    });
    let caller = thread::id();
    // Without as many threads, those that have started do all, or this one does.
    let start = |_| {
        let worker = Worker::new(Arc::clone(&job));
        os_thread::Builder::new().name("tvm-ffi-prewarm".into()).spawn(move || worker.run(caller)).ok()
    };
    let started: Vec<_> = (0..threads).map_while(start).collect();
    if started.is_empty() {
        job.work();
    }
    interpreter::released(|| {
        job.wait()?;
        // The threads are ending, and then use the table no more. Their own panics are failures already.
        started.into_iter().for_each(|thread| drop(thread.join()));
        Ok::<(), Failure>(())
    })?;
    let failure = job.progress().failure.take();
    failure.map_or(Ok(()), |(_, failure)| Err(failure))
}

impl Job {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes functions until no key is left.
    fn work(&self) {
        while !self.is_abandoned.load(Ordering::Relaxed) {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(key) = self.keys.get(place) else { return };
            let Err(failure) = guarded(|| self.table.find(Arc::clone(key), &key.views()).map(drop)) else { continue };
            // The caller can't see what a code alone says about this thread.
            let failure = Failure::from(tvm_ffi_runtime::Error::from(failure));
            let mut progress = self.progress();
            if progress.failure.as_ref().is_none_or(|(first, _)| place < *first) {
                progress.failure = Some((place, failure));
            }
        }
    }

    /// Waits until all threads have ended.
    fn wait(&self) -> Result<(), Failure> {
        let mut looked = Instant::now();
        let mut progress = self.progress();
        while progress.threads > 0 {
            progress = self.ended.wait_timeout(progress, signals::INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            if looked.elapsed() >= signals::INTERVAL {
                drop(progress);
                if let Err(failure) = signals::check() {
                    self.is_abandoned.store(true, Ordering::Relaxed);
                    let caller = thread::id();
                    lock().acting.retain(|(_, other)| *other != caller);
                    return Err(failure);
                }
                looked = Instant::now();
                progress = self.progress();
            }
        }
        Ok(())
    }
}

/// The part of a thread in a job. Its end counts the thread out.
struct Worker(Arc<Job>);

impl Worker {
    fn new(job: Arc<Job>) -> Self {
        job.progress().threads += 1;
        Self(job)
    }

    fn run(self, caller: u64) {
        let this_thread = thread::id();
        lock().acting.push((this_thread, caller));
        self.0.work();
        lock().acting.retain(|(worker, _)| *worker != this_thread);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.progress().threads -= 1;
        self.0.ended.notify_all();
    }
}
