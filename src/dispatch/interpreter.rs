//! Python's global interpreter lock (GIL). A thread that holds it must not wait for another thread's `on_miss`, which
//! may need it. Calls from Python release it, unless `release_gil` of the function is False.

/// Runs a function without the GIL, if this thread holds it.
pub fn released<T>(run: impl FnOnce() -> T) -> T {
    let _held = python::release();
    run()
}

#[cfg(all(unix, not(miri)))]
mod python {
    use std::ffi::c_void;

    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

    type Get = unsafe extern "C" fn() -> *mut c_void;
    type Restore = unsafe extern "C" fn(*mut c_void);

    /// The GIL that was released. Dropping this takes it again.
    pub struct Released {
        thread: *mut c_void,
        restore: Restore,
    }

    impl Drop for Released {
        fn drop(&mut self) {
            // SAFETY: this thread's state, which `PyEval_SaveThread` returned.
            unsafe { (self.restore)(self.thread) };
        }
    }

    /// Releases the GIL, if the process has a Python and this thread holds its GIL.
    pub fn release() -> Option<Released> {
        // SAFETY: the process itself is already open, so no initialisers run.
        let process = unsafe { Library::open(None::<&str>, RTLD_LAZY | RTLD_LOCAL) }.ok()?;
        // SAFETY: these are the types of the functions in Python's C API.
        let get = |name: &[u8]| unsafe { process.get::<Get>(name) }.ok().map(|symbol| *symbol);
        let own = get(b"PyGILState_GetThisThreadState")?;
        // Since Python 3.13 the first has a public name.
        let current = get(b"PyThreadState_GetUnchecked").or_else(|| get(b"_PyThreadState_UncheckedGet"))?;
        let save = get(b"PyEval_SaveThread")?;
        // SAFETY: as above.
        let restore = unsafe { process.get::<Restore>(b"PyEval_RestoreThread") }.ok().map(|symbol| *symbol)?;
        // SAFETY: any thread may call both. The current state is that of the thread which holds the GIL, or NULL.
        let (current, own) = unsafe { (current(), own()) };
        if current.is_null() || current != own {
            return None;
        }
        // SAFETY: this thread holds the GIL.
        Some(Released { thread: unsafe { save() }, restore })
    }
}

#[cfg(not(all(unix, not(miri))))]
mod python {
    pub fn release() -> Option<()> {
        None
    }
}
