//! Runs a program whose system calls are observed, and lets one of them fail or ends the program before it.
//!
//! The kernel stops each observed call of the program and of its children, and asks this process what to do (seccomp's
//! user notification). So calls that the C library or a crate makes without a symbol are observed too.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The first argument of the `prctl` by which the program says that observation begins (1) or ends (0). No real option
/// has this number.
const MARK: u32 = 0x7456_4d46;
/// The time after which a program hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// The fault at the chosen call.
#[derive(Clone, Copy)]
pub enum Fault {
    /// The call fails with this error.
    Error(c_int),
    /// The program is killed before the call.
    Kill,
}

/// The end of a program.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// The fault happened: there were so many calls.
    pub was_injected: bool,
    pub hung: bool,
}

/// The calls that are observed.
#[derive(Clone, Copy)]
pub struct Calls {
    /// Their numbers.
    pub numbers: &'static [c_long],
    /// Only calls whose first argument is a descriptor of a regular file: pipes don't fail.
    pub of_files: bool,
}

/// Runs the program. The `nth` of these calls, from 1 and after it has announced itself, meets the fault.
pub fn run(mut command: Command, calls: Calls, nth: u64, fault: Fault) -> io::Result<Ended> {
    let (ours, theirs) = UnixDatagram::pair()?;
    let filter = filter(calls.numbers);
    // SAFETY: between `fork` and `exec` the function only makes system calls, and allocates nothing.
    unsafe {
        command.pre_exec(move || send(&theirs, install(&filter)?));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            Watch { of_files: calls.of_files, nth, fault, calls: None, was_injected: false }.watch(&ours, &is_over)
        });
        let ended = wait(&mut command);
        is_over.store(true, Ordering::Release);
        let was_injected = watching.join().unwrap_or_else(|_| Err(io::Error::other("the watching thread panicked")));
        let (status, stdout, stderr, hung) = ended?;
        Ok(Ended { status, stdout, stderr, hung, was_injected: was_injected? })
    })
}

fn wait(command: &mut Command) -> io::Result<(ExitStatus, String, String, bool)> {
    let mut child = command.spawn()?;
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut text = Vec::new();
            pipe.map(|mut pipe| pipe.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let (start, mut hung) = (Instant::now(), false);
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if start.elapsed() > LIMIT && !hung => {
                hung = true;
                child.kill()?;
            }
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    let joined = |text: thread::JoinHandle<String>| text.join().unwrap_or_default();
    Ok((status, joined(stdout), joined(stderr), hung))
}

/// A program that asks the supervisor at these calls, and at its own marks.
fn filter(calls: &[c_long]) -> Vec<libc::sock_filter> {
    const NUMBER: u32 = 0;
    const FIRST_ARGUMENT: u32 = 16;
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let [ask, allow] = [libc::SECCOMP_RET_USER_NOTIF, libc::SECCOMP_RET_ALLOW];
    // SAFETY: these functions only fill a structure.
    let (plain, jump) = unsafe {
        let plain = |code, value| libc::BPF_STMT(code, value);
        let jump = |value, yes, no| libc::BPF_JUMP(equal, value, yes, no);
        (plain, jump)
    };
    let mut filter = vec![plain(load, NUMBER)];
    for call in calls {
        filter.extend([jump(*call as u32, 0, 1), plain(answer, ask)]);
    }
    filter.extend([jump(libc::SYS_prctl as u32, 0, 3), plain(load, FIRST_ARGUMENT), jump(MARK, 0, 1)]);
    filter.extend([plain(answer, ask), plain(answer, allow)]);
    filter
}

/// Installs the filter in this process, and returns the supervisor's descriptor.
fn install(filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the arguments are those that the system calls take, and the filter outlives the call.
    let listener = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    match c_int::try_from(listener) {
        // SAFETY: the descriptor was just opened, and nothing else owns it.
        Ok(listener @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(listener) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A message of one byte with room for one descriptor.
#[repr(C, align(8))]
struct Message {
    control: [u8; 32],
    byte: u8,
}

/// Calls `use_it` with a header that describes the message.
fn with_header<T>(message: &mut Message, use_it: impl FnOnce(&mut libc::msghdr) -> T) -> T {
    let mut part = libc::iovec { iov_base: (&raw mut message.byte).cast(), iov_len: 1 };
    // SAFETY: zeros are a valid header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
    header.msg_control = message.control.as_mut_ptr().cast();
    // SAFETY: this computes a size.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) } as usize;
    use_it(&mut header)
}

fn send(socket: &UnixDatagram, listener: OwnedFd) -> io::Result<()> {
    let mut message = Message { control: [0; 32], byte: 0 };
    // SAFETY: the header describes the message, which has room for a descriptor.
    let sent = with_header(&mut message, |header| unsafe {
        let control = libc::CMSG_FIRSTHDR(header);
        (*control).cmsg_level = libc::SOL_SOCKET;
        (*control).cmsg_type = libc::SCM_RIGHTS;
        (*control).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as usize;
        libc::CMSG_DATA(control).cast::<c_int>().write_unaligned(listener.as_raw_fd());
        libc::sendmsg(socket.as_raw_fd(), header, 0)
    });
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The descriptor that the program has sent. `None` if the program couldn't be started.
fn receive(socket: &UnixDatagram, is_over: &AtomicBool) -> io::Result<Option<OwnedFd>> {
    while !is_ready(socket, libc::POLLIN)? {
        if is_over.load(Ordering::Acquire) {
            return Ok(None);
        }
    }
    let mut message = Message { control: [0; 32], byte: 0 };
    // SAFETY: as in `send`.
    let listener = with_header(&mut message, |header| unsafe {
        let received = libc::recvmsg(socket.as_raw_fd(), header, libc::MSG_CMSG_CLOEXEC);
        let control = libc::CMSG_FIRSTHDR(header);
        match received < 0 || control.is_null() {
            true => Err(io::Error::last_os_error()),
            false => Ok(libc::CMSG_DATA(control).cast::<c_int>().read_unaligned()),
        }
    })?;
    // SAFETY: the kernel has just made the descriptor for this process.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(listener) }))
}

/// Waits a moment for events of a descriptor.
fn is_ready(descriptor: &impl AsRawFd, events: i16) -> io::Result<bool> {
    const MOMENT_MS: c_int = 20;
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events, revents: 0 };
    // SAFETY: the pointer is to one live structure.
    match unsafe { libc::poll(&raw mut poll, 1, MOMENT_MS) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(poll.revents & events != 0),
    }
}

struct Watch {
    of_files: bool,
    nth: u64,
    fault: Fault,
    /// The calls so far; `None` before the program has announced itself.
    calls: Option<u64>,
    was_injected: bool,
}

impl Watch {
    fn watch(mut self, socket: &UnixDatagram, is_over: &AtomicBool) -> io::Result<bool> {
        let Some(listener) = receive(socket, is_over)? else { return Ok(false) };
        // Children of the program may outlive it, and still ask.
        while !is_over.load(Ordering::Acquire) {
            if is_ready(&listener, libc::POLLIN)? {
                self.answer(&listener)?;
            }
        }
        Ok(self.was_injected)
    }

    fn answer(&mut self, listener: &OwnedFd) -> io::Result<()> {
        // SAFETY: zeros are a valid notification and a valid response.
        let (mut question, mut answer): (libc::seccomp_notif, libc::seccomp_notif_resp) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // A program that was killed meanwhile no longer asks.
        if control(listener, 0, size_of_val(&question), (&raw mut question).cast()).is_err() {
            return Ok(());
        }
        answer.id = question.id;
        if is_mark(&question.data) {
            self.calls = (question.data.args[1] == 1).then_some(0);
        } else {
            let counts = !self.of_files || is_file(question.pid, question.data.args[0]);
            let is_chosen = counts
                && self.calls.as_mut().is_some_and(|calls| {
                    *calls += 1;
                    *calls == self.nth
                });
            self.was_injected |= is_chosen;
            match self.fault {
                _ if !is_chosen => answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
                Fault::Error(error) => answer.error = -error,
                // SAFETY: the process is a child of this one that hasn't been waited for, or one of its children.
                Fault::Kill => _ = unsafe { libc::kill(question.pid as i32, libc::SIGKILL) },
            }
        }
        // it fails if the program has been killed
        let _ = control(listener, 1, size_of_val(&answer), (&raw mut answer).cast());
        Ok(())
    }
}

fn is_mark(call: &libc::seccomp_data) -> bool {
    call.nr == libc::SYS_prctl as c_int && call.args[0] as u32 == MARK
}

/// Whether a descriptor of a process is that of a regular file.
fn is_file(process: u32, descriptor: u64) -> bool {
    std::fs::metadata(format!("/proc/{process}/fd/{descriptor}")).is_ok_and(|found| found.is_file())
}

/// `SECCOMP_IOCTL_NOTIF_RECV` (0) and `_SEND` (1), whose numbers contain the size.
fn control(listener: &OwnedFd, number: c_ulong, size: usize, argument: *mut c_void) -> io::Result<()> {
    const READ_AND_WRITE: c_ulong = 3;
    let request = READ_AND_WRITE << 30 | (size as c_ulong) << 16 | (b'!' as c_ulong) << 8 | number;
    // SAFETY: the argument is a live structure of this size, which belongs to the request.
    match unsafe { libc::ioctl(listener.as_raw_fd(), request as _, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
