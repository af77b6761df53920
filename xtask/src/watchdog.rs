//! A time limit for each command in CI. Otherwise a command that hangs would end with the whole run, and the log would
//! not show which one it was.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The maximum duration of a command: several times that of the slowest.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Puts the command's process and its children into a separate process group, so the watchdog can stop all of them.
/// Their stdin is empty, because a background process that reads from the terminal would wait forever.
pub fn prepare(command: &mut Command) {
    command.stdin(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

/// A thread that stops the command's processes at the limit, unless [`Watchdog::ended`] comes first.
pub struct Watchdog {
    ended: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watchdog {
    /// Watches a command that went through [`prepare`].
    pub fn start(child: &Child) -> Self {
        let process = child.id();
        let (ended, until) = mpsc::channel();
        let thread = thread::spawn(move || {
            let late = until.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout);
            if late {
                show_processes();
                stop(process);
            }
            late
        });
        Self { ended, thread }
    }

    /// Call this after the command has ended. Returns an error if the watchdog stopped it.
    pub fn ended(self) -> Result<(), String> {
        drop(self.ended);
        match self.thread.join() {
            Ok(false) => Ok(()),
            _ => Err(format!("it was stopped after {} minutes", LIMIT.as_secs() / 60)),
        }
    }
}

/// Prints the machine's processes, to show the one that hangs.
fn show_processes() {
    let listed =
        Command::new("ps").args(["-e", "--forest", "-o", "pid,etime,time,stat,args"]).stdin(Stdio::null()).output();
    if let Ok(listed) = listed {
        println!("{}", String::from_utf8_lossy(&listed.stdout));
    }
}

#[cfg(target_os = "linux")]
fn stop(process: u32) {
    // SAFETY: the call takes no pointers. `prepare` has made the group the command's own.
    unsafe { libc::kill(-(process as libc::pid_t), libc::SIGKILL) };
}

#[cfg(not(target_os = "linux"))]
fn stop(process: u32) {
    println!("process {process} goes on");
}
