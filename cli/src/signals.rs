//! Signals that end the program: unfinished outputs are removed before it ends.

use std::{io, mem, ptr, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tvm_ffi_codegen::artifact::remove_unfinished_outputs;

/// Waits for such signals in a separate thread. The program then ends with the signal, as its sender expects.
pub fn watch() -> io::Result<()> {
    // a signal that is ignored at start, as with `nohup`, stays ignored
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
    // SAFETY: all zeros is a valid value of the C struct, whose fields are integers and an optional function.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the call changes nothing, since the new action is null. It writes the old action to a struct of the right
    // type.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), &mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}
