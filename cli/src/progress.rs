//! Progress of long work, as a bar on stderr.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tvm_ffi_codegen::artifact::{Progress, Step};

use crate::error::MessageFormat;

/// The minimum duration of work that shows a bar.
const DELAY: Duration = Duration::from_millis(500);
/// The bar's redraw interval while no progress is reported.
const TICK: Duration = Duration::from_millis(100);

/// A progress bar. It appears some time after the start of the work, and disappears when dropped. It never appears if
/// stderr isn't a terminal, or if errors are written for programs.
pub struct Bar {
    bar: ProgressBar,
    /// The step that the bar shows, and its total.
    shown: Mutex<Option<(Step, Option<u64>)>>,
    /// The thread that shows the bar after the delay. The sender stops it when the work ends.
    shower: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Starts measuring the delay for work that begins now.
    pub fn new(format: MessageFormat) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let shower = match io::stderr().is_terminal() && format == MessageFormat::Text {
            true => shower(bar.clone()),
            false => None,
        };
        Bar { bar, shown: Mutex::new(None), shower }
    }

    /// Records progress; any thread may call it.
    pub fn note(&self, progress: Progress) {
        if self.shower.is_none() {
            return;
        }
        let (message, unit) = match progress.step {
            Step::Lower => ("lowering", "{pos}/{len} functions"),
            Step::Compile => ("compiling", "{pos}/{len} parts of functions"),
            Step::Copy => ("copying", "{binary_bytes}/{binary_total_bytes}"),
            _ => ("working", "{pos}/{len}"),
        };
        // no code panics while it is locked
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Some((progress.step, progress.total));
        if *shown != now {
            *shown = now;
            self.bar.set_position(0);
            self.bar.set_message(message);
            self.bar.set_style(style(progress.total.map(|_| unit)));
            match progress.total {
                Some(total) => self.bar.set_length(total),
                None => self.bar.unset_length(),
            }
        }
        // threads report progress in any order
        if progress.done > self.bar.position() {
            self.bar.set_position(progress.done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((ended, shower)) = self.shower.take() {
            drop(ended);
            // the thread has shown the bar, or never will
            let _ = shower.join();
            self.bar.finish_and_clear();
        }
    }
}

/// Starts a thread that shows the bar once the work has taken longer than the delay.
fn shower(bar: ProgressBar) -> Option<(Sender<()>, JoinHandle<()>)> {
    let (ended, end) = channel();
    let show = move || {
        if end.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
        }
    };
    let thread = thread::Builder::new().name("progress".to_owned()).spawn(show).ok()?;
    Some((ended, thread))
}

/// How a step is displayed, with its unit if it counts something.
fn style(unit: Option<&str>) -> ProgressStyle {
    let template = match unit {
        Some(unit) => format!("{{msg}} [{{bar:30}}] {unit} {{elapsed}}"),
        None => "{msg} {spinner} {elapsed}".to_owned(),
    };
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}
