//! Signals that end the program: unfinished outputs are removed first.

use std::{io, mem, ptr, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tvm_ffi_codegen::artifact::remove_unfinished_outputs;

/// Waits for such signals in a thread of its own. The program then ends by the signal, as whoever sent it expects.
pub fn watch() -> io::Result<()> {
    // a signal that is ignored from the start, as `nohup` does it, stays ignored
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal)))?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let _none = remove_unfinished_outputs();
            let _ = emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros are a value of the C struct, whose fields are integers and an optional function.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: without a new action nothing is changed; the old one is written to a struct of its type.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), &mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}
