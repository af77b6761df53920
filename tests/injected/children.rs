//! Child processes that share this one's memory as it was: the effects of a fault on one don't reach the next one.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::Result;

/// A child process; it is killed if this value is dropped before `wait`.
pub struct Child(Option<libc::pid_t>);

impl Child {
    /// Runs `body` in a child process, which exits with its result. This process must have one thread. A panic's exit
    /// code is 101, as in a program.
    pub fn start(stderr: &File, body: impl FnOnce() -> u8) -> Result<Self> {
        // SAFETY: this process has one thread, so no lock is held by another one in the child.
        match unsafe { libc::fork() } {
            -1 => Err(std::io::Error::last_os_error().into()),
            0 => {
                // SAFETY: both are open descriptors of this child.
                unsafe { libc::dup2(stderr.as_raw_fd(), libc::STDERR_FILENO) };
                let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
                // SAFETY: ends the child without the parent's exit handlers.
                unsafe { libc::_exit(code.into()) }
            }
            child => Ok(Child(Some(child))),
        }
    }

    pub fn kill(&self) {
        if let Some(child) = self.0 {
            // SAFETY: the child hasn't been waited for, so the number is its.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
    }

    pub fn wait(mut self) -> Result<ExitStatus> {
        let child = self.0.take().unwrap_or(-1);
        let mut status = 0;
        // SAFETY: the pointer is to a live variable.
        match unsafe { libc::waitpid(child, &raw mut status, 0) } {
            -1 => Err(std::io::Error::last_os_error().into()),
            _ => Ok(ExitStatus::from_raw(status)),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        if let Some(child) = self.0 {
            // SAFETY: as above; nothing reads the status.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
    }
}
