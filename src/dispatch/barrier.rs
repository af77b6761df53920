//! Orders hits against removals.
//!
//! A hit stores which function it is about to call, and then looks whether the table still has it. A removal takes the
//! function out of the table, and then looks which calls are about to use it. Each must see the other's store. On Linux
//! and Windows the removal makes all threads of the process execute a barrier, so that hits need none. Elsewhere both
//! sides use sequentially consistent accesses.

use std::sync::OnceLock;

/// True if hits need no barrier of their own. It is decided once for the process.
pub fn is_asymmetric() -> bool {
    static IS_ASYMMETRIC: OnceLock<bool> = OnceLock::new();
    *IS_ASYMMETRIC.get_or_init(system::prepare)
}

/// Orders the stores before it and the loads after it against every hit on any thread. Returns false if the system
/// refuses.
pub fn of_all_threads() -> bool {
    !is_asymmetric() || system::barrier()
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::ffi::{c_int, c_long};

    /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED` and the registration for it.
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;

    fn membarrier(command: c_int) -> bool {
        let none: c_long = 0;
        // SAFETY: the system call takes numbers only.
        unsafe { libc::syscall(libc::SYS_membarrier, c_long::from(command), none, none) == 0 }
    }

    pub fn prepare() -> bool {
        membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED)
    }

    pub fn barrier() -> bool {
        // A forked child may have to register again.
        membarrier(PRIVATE_EXPEDITED) || prepare()
    }
}

#[cfg(windows)]
mod system {
    use windows_sys::Win32::System::Threading::FlushProcessWriteBuffers;

    pub fn prepare() -> bool {
        true
    }

    pub fn barrier() -> bool {
        // SAFETY: any thread may call it.
        unsafe { FlushProcessWriteBuffers() };
        true
    }
}

#[cfg(not(any(windows, all(target_os = "linux", not(miri)))))]
mod system {
    pub fn prepare() -> bool {
        false
    }

    pub fn barrier() -> bool {
        true
    }
}
