//! Child processes that share this one's memory as it was: the effects of a fault on one don't reach the next one.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use crate::Result;

/// The milliseconds that a child may sleep after its last message.
const LONGEST_SLEEP: u32 = 20;

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
        let ended = self.ended(0);
        self.0 = None;
        ended?.ok_or_else(|| "a child neither ends nor runs".into())
    }

    /// Waits, and kills a child that sleeps although it `is_ending`.
    pub fn wait_or_kill(mut self, is_ending: impl Fn() -> bool) -> Result<ExitStatus> {
        let mut asleep = 0;
        loop {
            if let Some(status) = self.ended(libc::WNOHANG)? {
                self.0 = None;
                return Ok(status);
            }
            asleep = if is_ending() && self.sleeps() { asleep + 1 } else { 0 };
            if asleep > LONGEST_SLEEP {
                self.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// True if the child waits for something else than a processor.
    fn sleeps(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.0.unwrap_or(-1))).unwrap_or_default();
        status.rsplit_once(')').is_some_and(|(_, state)| state.trim_start().starts_with('S'))
    }

    /// The status of a child that has ended.
    fn ended(&self, options: libc::c_int) -> Result<Option<ExitStatus>> {
        let mut status = 0;
        // SAFETY: the pointer is to a live variable.
        match unsafe { libc::waitpid(self.0.unwrap_or(-1), &raw mut status, options) } {
            -1 => Err(std::io::Error::last_os_error().into()),
            0 => Ok(None),
            _ => Ok(Some(ExitStatus::from_raw(status))),
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
