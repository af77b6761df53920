//! The threads of launches on the CPU.
//!
//! Generated code doesn't use threads directly. It asks a [global function](crate::globals) once for the address of a
//! parallel-for, and loops on its own thread if none is registered.
//!
//! The calling thread takes part in the work, and only waits for threads that have taken blocks of its launch. A
//! launch inside a block therefore can't wait for itself, and launches work in a forked child, which has no helpers.
//!
//! Helpers sleep on a condition variable right after their work. Workers that yield before they sleep, as rayon's do,
//! took milliseconds to wake on a busy machine, while these took microseconds.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tvm_ffi_runtime::Error;
use tvm_ffi_runtime::error::{set_raised, take_raised};

/// The maximum number of threads that help a calling thread.
const MAX_HELPERS: usize = 63;
/// The minimum time of a launch for another thread to be useful.
const SHORT: Duration = Duration::from_micros(5);
/// The average number of chunks per thread. If a thread has slow blocks, other threads take more chunks.
const CHUNKS_PER_THREAD: u64 = 16;
/// The number of times that the calling thread checks whether the helpers are done, before it sleeps.
const LOOKS: u32 = 200;
/// The helpers' stack size, the same as a main thread's on Linux. The system only allocates the memory that is
/// touched.
const STACK: usize = 8 << 20;

/// Launches that want helpers, each with the number of helpers that it still wants.
static JOBS: Mutex<VecDeque<(Arc<Job>, usize)>> = Mutex::new(VecDeque::new());
/// Idle helpers wait on this.
static WAKE: Condvar = Condvar::new();
/// The number of helpers, and the process that created them.
static HELPERS: OnceLock<(usize, u32)> = OnceLock::new();

/// Runs one block of a launch. A nonzero code is an error.
type Block = unsafe extern "C" fn(data: *mut c_void, index: i64) -> c_int;

/// The address of the parallel-for.
pub(crate) fn address() -> *mut c_void {
    let function: unsafe extern "C" fn(i64, Block, *mut c_void) -> c_int = parallel_for;
    function as *mut c_void
}

/// Calls a function for each block, on this thread and others, and returns when all are done. After an error it skips
/// the blocks that no thread has begun, returns the first error's code, and raises that error on this thread.
///
/// # Safety
/// Until this function returns, any thread may call `block` with `data` and an index below `blocks`.
unsafe extern "C" fn parallel_for(blocks: i64, block: Block, data: *mut c_void) -> c_int {
    let (work, blocks) = (Work { block, data }, u64::try_from(blocks).unwrap_or(0));
    if blocks <= 1 {
        return work.each(0..blocks);
    }
    let start = Instant::now();
    let mut cost = costs::known(block);
    let mut done = 0;
    if cost.is_some_and(|cost| cost.times(blocks) <= SHORT) {
        done = match work.while_short(blocks, start) {
            Ok(done) => done,
            Err(code) => return code,
        };
        cost = Some(costs::note(block, start.elapsed(), done));
    }
    match helpers() {
        _ if done == blocks => 0,
        0 => work.each(done..blocks),
        helpers => share(work, done..blocks, helpers, cost),
    }
}

/// The number of helpers of this process. The first call creates them.
fn helpers() -> usize {
    let (helpers, process) = *HELPERS.get_or_init(|| {
        let wanted = thread::available_parallelism().map_or(1, usize::from).min(MAX_HELPERS + 1) - 1;
        let start = |_: &usize| {
            let thread = thread::Builder::new().name("tvm-ffi-blocks".to_owned()).stack_size(STACK);
            // if a thread can't be started, the existing ones do its work
            thread.spawn(help).is_ok()
        };
        ((0..wanted).take_while(start).count(), std::process::id())
    });
    if process == std::process::id() { helpers } else { 0 }
}

/// The loop of a helper thread.
fn help() {
    let mut jobs = jobs();
    loop {
        let Some((job, wanted)) = jobs.front_mut() else {
            jobs = WAKE.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let job = Arc::clone(job);
        *wanted -= 1;
        if *wanted == 0 {
            jobs.pop_front();
        }
        drop(jobs);
        let (_, is_last) = job.take_blocks();
        if is_last {
            job.caller.unpark();
        }
        drop(job);
        jobs = self::jobs();
    }
}

fn jobs() -> MutexGuard<'static, VecDeque<(Arc<Job>, usize)>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs blocks on this thread and at most `helpers` helpers.
fn share(work: Work, blocks: Range<u64>, helpers: usize, cost: Option<costs::Cost>) -> c_int {
    let count = blocks.end - blocks.start;
    let worth = cost.map_or(u64::MAX, |cost| (cost.times(count).as_nanos() / SHORT.as_nanos()) as u64);
    let helpers = (helpers as u64).min(count - 1).min(worth);
    if helpers == 0 {
        return work.each(blocks);
    }
    let job = Arc::new(Job {
        work,
        end: blocks.end,
        chunk: (count / (CHUNKS_PER_THREAD * (helpers + 1))).max(1),
        next: AtomicU64::new(blocks.start),
        left: AtomicU64::new(count),
        has_failed: AtomicBool::new(false),
        failure: Mutex::new(None),
        caller: thread::current(),
    });
    jobs().push_back((Arc::clone(&job), helpers as usize));
    (0..helpers).for_each(|_| WAKE.notify_one());
    let start = Instant::now();
    let (taken, _) = job.take_blocks();
    if taken > 0 {
        costs::note(work.block, start.elapsed(), taken);
    }
    // helpers that haven't started are no longer needed
    jobs().retain(|(other, _)| !Arc::ptr_eq(other, &job));
    let is_done = || job.left.load(Ordering::Acquire) == 0;
    for _ in 0..LOOKS {
        if is_done() {
            break;
        }
        std::hint::spin_loop();
    }
    while !is_done() {
        thread::park();
    }
    job.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(0, |(code, error)| {
        error.into_iter().for_each(set_raised);
        code
    })
}

/// The blocks of a launch.
#[derive(Clone, Copy)]
struct Work {
    block: Block,
    data: *mut c_void,
}

// SAFETY: the caller of `parallel_for` promises that any thread may call the function with the data.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Work {
    /// Runs blocks in order. Returns the code of the first error, or 0.
    fn each(self, mut blocks: Range<u64>) -> c_int {
        // SAFETY: the blocks are those of a call of `parallel_for` that hasn't returned.
        let code = |index: u64| unsafe { (self.block)(self.data, index as i64) };
        blocks.find_map(|index| Some(code(index)).filter(|code| *code != 0)).unwrap_or(0)
    }

    /// Runs blocks from the first one, for about as long as a short launch takes. Returns the number of completed
    /// blocks, or an error's code.
    fn while_short(self, blocks: u64, start: Instant) -> Result<u64, c_int> {
        let mut done = 0;
        while done < blocks && (done == 0 || start.elapsed() <= SHORT) {
            let next = blocks.min((2 * done).max(1));
            match self.each(done..next) {
                0 => done = next,
                code => return Err(code),
            }
        }
        Ok(done)
    }
}

/// A launch that several threads work on.
struct Job {
    work: Work,
    end: u64,
    /// The number of blocks that a thread takes in one step.
    chunk: u64,
    /// The first block that no thread has taken. Blocks are below 2^63, and each thread adds at most one chunk beyond
    /// the end.
    next: AtomicU64,
    /// The number of blocks that are neither done nor skipped.
    left: AtomicU64,
    has_failed: AtomicBool,
    /// The first error: its code, and the error that the block has raised.
    failure: Mutex<Option<(c_int, Option<Error>)>>,
    caller: Thread,
}

impl Job {
    /// Takes blocks until none are left. Returns their number, and whether they were the last ones to finish.
    fn take_blocks(&self) -> (u64, bool) {
        let mut taken = 0;
        loop {
            let start = self.next.fetch_add(self.chunk, Ordering::Relaxed);
            if start >= self.end {
                break;
            }
            let end = self.end.min(start + self.chunk);
            if !self.has_failed.load(Ordering::Relaxed) {
                match self.work.each(start..end) {
                    0 => (),
                    code => self.fail(code),
                }
            }
            taken += end - start;
        }
        (taken, taken > 0 && self.left.fetch_sub(taken, Ordering::AcqRel) == taken)
    }

    fn fail(&self, code: c_int) {
        let error = take_raised();
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert((code, error));
        self.has_failed.store(true, Ordering::Relaxed);
    }
}

/// The time that the blocks of launches have taken, by function. This is only a hint, because code may be unloaded and
/// other code loaded at its address.
mod costs {
    use super::{AtomicU64, Block, Duration, Ordering};

    /// The upper half of an entry is part of the function's address, and the lower half is the cost.
    static COSTS: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

    /// The time of a block in picoseconds.
    #[derive(Clone, Copy)]
    pub(super) struct Cost(u32);

    impl Cost {
        pub(super) fn times(self, blocks: u64) -> Duration {
            Duration::from_nanos(u64::from(self.0).saturating_mul(blocks) / 1000)
        }
    }

    fn place(block: Block) -> (&'static AtomicU64, u64) {
        // functions are aligned to 16 bytes
        let address = (block as usize as u64) >> 4;
        (&COSTS[(address ^ (address >> 8)) as usize % COSTS.len()], address << 32)
    }

    /// The cost of a function's blocks in its last launch.
    pub(super) fn known(block: Block) -> Option<Cost> {
        let (place, tag) = place(block);
        let entry = place.load(Ordering::Relaxed);
        (entry >> 32 == tag >> 32).then_some(Cost(entry as u32))
    }

    /// Records the time of some blocks.
    pub(super) fn note(block: Block, time: Duration, blocks: u64) -> Cost {
        let each = (time.as_nanos() * 1000 / u128::from(blocks.max(1))).min(u32::MAX.into()) as u32;
        let (place, tag) = place(block);
        place.store(tag | u64::from(each), Ordering::Relaxed);
        Cost(each)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicI64;

    use super::*;

    /// Calls a closure for each block, through a function that is unique to the closure's type. Panics if a launch that
    /// has returned still wants helpers. Other tests and threads launch at the same time, so it only looks at its own.
    fn each<F: Fn(i64) -> c_int + Sync>(blocks: i64, block: &F) -> c_int {
        unsafe extern "C" fn call<F: Fn(i64) -> c_int>(data: *mut c_void, index: i64) -> c_int {
            // SAFETY: `each` passes the address of what it borrows.
            unsafe { (*data.cast::<F>())(index) }
        }
        let data = (&raw const *block).cast_mut().cast();
        // SAFETY: any thread may call the closure while it is borrowed.
        let code = unsafe { parallel_for(blocks, call::<F>, data) };
        let this = thread::current().id();
        assert!(!jobs().iter().any(|(job, _)| job.caller.id() == this && job.work.data == data));
        code
    }

    #[test]
    fn each_block_is_done_once() {
        for blocks in [-1, 0, 1, 2, 3, 100, 1000, 33_333] {
            let done: Vec<AtomicI64> = (0..blocks).map(|_| AtomicI64::new(0)).collect();
            let mark = |index: i64| {
                done[index as usize].fetch_add(1, Ordering::Relaxed);
                0
            };
            for round in 1..50 {
                assert_eq!(each(blocks, &mark), 0);
                assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == round), "{blocks} blocks");
            }
        }
    }

    #[test]
    fn two_blocks_run_at_once() {
        if helpers() == 0 {
            return eprintln!("skipped: one thread can't do two blocks at once");
        }
        let both = Barrier::new(2);
        let meet = |_| {
            both.wait();
            0
        };
        assert_eq!(each(2, &meet), 0);
    }

    #[test]
    fn blocks_that_take_longer_than_before_are_shared() {
        let long = AtomicBool::new(false);
        let threads = Mutex::new(Vec::new());
        let block = |_| {
            if long.load(Ordering::Relaxed) {
                threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread::current().id());
                thread::sleep(Duration::from_millis(2));
            }
            0
        };
        (0..100).for_each(|_| assert_eq!(each(2, &block), 0));
        long.store(true, Ordering::Relaxed);
        assert_eq!(each(40, &block), 0);
        let mut threads = threads.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(threads.len(), 40);
        threads.retain(|id| *id != thread::current().id());
        assert!(helpers() == 0 || !threads.is_empty());
    }

    #[test]
    fn the_first_error_is_raised_on_the_calling_thread() {
        let done = AtomicI64::new(0);
        for (blocks, bad) in [(1, 0), (2, 0), (2, 1), (1000, 500)] {
            let fails = |index: i64| {
                done.fetch_add(1, Ordering::Relaxed);
                if index == bad {
                    set_raised(Error::new("BlockError", &format!("block {index}")));
                    return -1;
                }
                thread::sleep(Duration::from_micros(20));
                0
            };
            for _ in 0..10 {
                assert_eq!(each(blocks, &fails), -1);
                let error = take_raised().map(|error| (error.kind().to_string(), error.message().to_string()));
                assert_eq!(error, Some(("BlockError".into(), format!("block {bad}"))));
            }
            assert_eq!(each(blocks, &|index| if index == bad { 7 } else { 0 }), 7);
            assert!(take_raised().is_none());
        }
        assert!(done.load(Ordering::Relaxed) < 10 * 1005, "blocks behind an error are left out");
    }

    #[test]
    fn blocks_and_threads_launch_at_once() {
        let done = AtomicI64::new(0);
        let inner = |_| {
            done.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_micros(1));
            0
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20).for_each(|_| assert_eq!(each(20, &|_| each(7, &inner)), 0)));
            }
        });
        assert_eq!(done.load(Ordering::Relaxed), 4 * 20 * 20 * 7);
    }
}
