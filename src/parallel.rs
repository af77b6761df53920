//! Parallel work whose results don't depend on the number of threads.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// The amount of work that is worth a thread: about a millisecond, some ten times the cost of starting a thread.
const WORTH_A_THREAD: usize = 512;
/// The maximum number of pieces that a thread takes in one step.
const CHUNK: usize = 8;

/// The number of threads to use for `pieces` pieces of work, which together take `work` steps of about 2
/// microseconds. `most` is the maximum number of threads; the default is the machine's.
pub(crate) fn threads_for(pieces: usize, work: usize, max: Option<NonZeroUsize>) -> usize {
    let worth = pieces.min(work / WORTH_A_THREAD);
    if worth < 2 {
        return 1;
    }
    // asking the system takes longer than compiling a small module
    let max = max.or_else(|| thread::available_parallelism().ok());
    worth.min(max.map_or(1, NonZeroUsize::get))
}

/// The results of one thread: runs of results, each with the index of its first.
type Done<T> = Vec<(usize, Vec<T>)>;

/// Does the pieces of work `0..count` and returns their results in order.
///
/// Each thread has its own state: `mine` for this thread, and results of `state` for the others. If the system can't
/// start that many threads, fewer are used.
///
/// # Errors
/// The error of the failing piece with the lowest index.
///
/// # Panics
/// If `work` does.
pub(crate) fn in_order<S, T: Send, E: Send>(
    count: usize,
    threads: usize,
    mine: &mut S,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    if threads < 2 {
        let mut results = Vec::with_capacity(count);
        for index in 0..count {
            results.push(work(mine, index)?);
        }
        return Ok(results);
    }
    // with few pieces, their costs may differ much, so they are distributed one by one
    let chunk = (count / (4 * threads)).clamp(1, CHUNK);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    // A thread finishes its chunk even if another thread fails meanwhile. All chunks before the failing one have been
    // begun by then, so the first error is always found.
    let run = |state: &mut S| -> (Done<T>, Option<(usize, E)>) {
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let start = next.fetch_add(chunk, Ordering::Relaxed);
            if start >= count {
                break;
            }
            let mut results = Vec::with_capacity(chunk);
            for index in start..count.min(start + chunk) {
                match work(state, index) {
                    Ok(result) => results.push(result),
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        return (done, Some((index, error)));
                    }
                }
            }
            done.push((start, results));
        }
        (done, None)
    };
    let mut all = Vec::new();
    let mut errors = Vec::new();
    thread::scope(|scope| {
        let other = || thread::Builder::new().spawn_scoped(scope, || run(&mut state())).ok();
        let others: Vec<_> = (1..threads).map_while(|_| other()).collect();
        let here = run(mine);
        let there = others.into_iter().map(|other| other.join().unwrap_or_else(|payload| resume_unwind(payload)));
        for (done, error) in [here].into_iter().chain(there) {
            all.extend(done);
            errors.extend(error);
        }
    });
    if let Some((_, error)) = errors.into_iter().min_by_key(|(index, _)| *index) {
        return Err(error);
    }
    all.sort_unstable_by_key(|(start, _)| *start);
    let mut results = Vec::with_capacity(count);
    results.extend(all.into_iter().flat_map(|(_, chunk)| chunk));
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_counts() {
        for threads in [1, 2, 7] {
            for count in [0, 1, 8, 9, 1000] {
                let twice = in_order(count, threads, &mut (), || (), |(), i| Ok::<_, usize>(2 * i));
                assert_eq!(twice, Ok((0..count).map(|i| 2 * i).collect()));
            }
            for bad in [0, 5, 500, 999] {
                let work = |(): &mut (), i| if i >= bad { Err(i) } else { Ok(i) };
                assert_eq!(in_order(1000, threads, &mut (), || (), work), Err(bad));
            }
        }
    }

    #[test]
    fn every_thread_has_its_state() {
        let mut mine = vec![0usize; 3];
        let sizes = in_order(100, 3, &mut mine, Vec::new, |seen: &mut Vec<usize>, i| {
            seen.push(i);
            Ok::<_, ()>(seen.len())
        });
        assert!(sizes.is_ok_and(|sizes| sizes.iter().all(|size| *size >= 1)));
        assert!(mine.len() >= 3);
    }

    #[test]
    fn little_work_starts_no_thread() {
        let eight = NonZeroUsize::new(8);
        assert_eq!(threads_for(100, 2 * WORTH_A_THREAD - 1, eight), 1);
        assert_eq!(threads_for(100, 2 * WORTH_A_THREAD, eight), 2);
        assert_eq!(threads_for(100, 100 * WORTH_A_THREAD, eight), 8);
        assert_eq!(threads_for(3, 100 * WORTH_A_THREAD, eight), 3);
        assert_eq!(threads_for(1, 100 * WORTH_A_THREAD, eight), 1);
        assert_eq!(threads_for(100, 100 * WORTH_A_THREAD, NonZeroUsize::new(1)), 1);
        assert!(threads_for(100, 100 * WORTH_A_THREAD, None) >= 1);
    }
}
