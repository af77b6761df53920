//! Handles that are made once, by the first thread that needs them. Each handle has a turn of its own. So an
//! initialisation may take long, and may need other handles. Header section: `TVMFFIHandleInitOnce`.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::error::{Result, runtime_error};

/// The initialisations in progress, by the addresses of handles. There are few at a time.
struct Turns {
    running: Vec<(usize, ThreadId)>,
    /// The waiting threads, each for one handle.
    waiting: Vec<(ThreadId, usize)>,
}

static TURNS: Mutex<Turns> = Mutex::new(Turns { running: Vec::new(), waiting: Vec::new() });
/// Signals that an initialisation has ended.
static ENDED: Condvar = Condvar::new();

fn turns() -> MutexGuard<'static, Turns> {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turns {
    /// The thread that initialises a handle.
    fn owner(&self, handle: usize) -> Option<ThreadId> {
        self.running.iter().find(|(place, _)| *place == handle).map(|(_, thread)| *thread)
    }

    /// True if the initialisation of a handle waits, directly or through others, for a thread.
    fn waits_for(&self, mut handle: usize, thread: ThreadId) -> bool {
        loop {
            match self.owner(handle) {
                Some(owner) if owner == thread => return true,
                Some(owner) => match self.waiting.iter().find(|(waiting, _)| *waiting == owner) {
                    Some((_, next)) => handle = *next,
                    None => return false,
                },
                None => return false,
            }
        }
    }
}

/// The turn of a handle's initialisation. Dropping it ends the turn.
struct Turn(usize);

impl Drop for Turn {
    fn drop(&mut self) {
        turns().running.retain(|(place, _)| *place != self.0);
        ENDED.notify_all();
    }
}

/// Makes a NULL handle once; other threads wait. Returns the code of `init`. If that is not 0, the handle stays NULL
/// and the next call tries again.
///
/// # Errors
/// `RuntimeError` if `init` makes no handle, or needs the handle that it makes, directly or through other threads.
#[cold]
pub(crate) fn init_once(handle: &AtomicPtr<c_void>, init: impl FnOnce(&mut *mut c_void) -> c_int) -> Result<c_int> {
    let (place, this_thread) = (handle.as_ptr().addr(), thread::current().id());
    let mut turns = turns();
    loop {
        if !handle.load(Ordering::Acquire).is_null() {
            return Ok(0);
        }
        if turns.owner(place).is_none() {
            break;
        }
        if turns.waits_for(place, this_thread) {
            drop(turns);
            return Err(runtime_error("the initialisation of a handle needs this handle itself"));
        }
        turns.waiting.push((this_thread, place));
        turns = ENDED.wait(turns).unwrap_or_else(PoisonError::into_inner);
        turns.waiting.retain(|(thread, _)| *thread != this_thread);
    }
    turns.running.push((place, this_thread));
    drop(turns);
    let _turn = Turn(place);
    let mut made = std::ptr::null_mut();
    let code = init(&mut made);
    if code != 0 {
        return Ok(code);
    }
    if made.is_null() {
        return Err(runtime_error("init_func must return a non-NULL handle"));
    }
    handle.store(made, Ordering::Release);
    Ok(0)
}
