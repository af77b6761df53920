//! Progress of long work, as a bar on stderr.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tvm_ffi_codegen::artifact::{Progress, Step};

use crate::error::MessageFormat;

/// Work that takes less time shows no bar.
const DELAY: Duration = Duration::from_millis(500);
/// How often the bar is drawn anew where nothing is told.
const TICK: Duration = Duration::from_millis(100);

/// A bar that is there from some time after the beginning of the work until this is dropped. None is there where stderr is no terminal, or errors
/// are written for programs.
pub struct Bar {
    bar: ProgressBar,
    /// The step that the bar is of, and how much there is to do in it.
    shown: Mutex<Option<(Step, Option<u64>)>>,
    /// The thread that shows the bar when it is time, until this says that the work has ended.
    shower: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// The bar of work that begins now.
    pub fn new(format: MessageFormat) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let shower = match io::stderr().is_terminal() && format == MessageFormat::Text {
            true => shower(bar.clone()),
            false => None,
        };
        Bar { bar, shown: Mutex::new(None), shower }
    }

    /// Takes note of progress, on whatever thread.
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
        // nothing panics while it is locked
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
        // threads tell of it in any order
        if progress.done > self.bar.position() {
            self.bar.set_position(progress.done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((ended, shower)) = self.shower.take() {
            drop(ended);
            // it has shown the bar, or never will
            let _ = shower.join();
            self.bar.finish_and_clear();
        }
    }
}

/// A thread that shows the bar once the work has taken long enough.
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

/// How a step looks, with the unit that it counts in, if it counts.
fn style(unit: Option<&str>) -> ProgressStyle {
    let template = match unit {
        Some(unit) => format!("{{msg}} [{{bar:30}}] {unit} {{elapsed}}"),
        None => "{msg} {spinner} {elapsed}".to_owned(),
    };
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}
