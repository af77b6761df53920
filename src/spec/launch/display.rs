//! Writes the text form of launches. `docs/reference/launches.md` defines the grammar, and `text::launch` parses it.

use std::fmt::{self, Display, Formatter};

use super::{Launch, LaunchedSignature};
use crate::spec::dim::Dim;
use crate::spec::kernel_arg::{Extents, Listed};
use crate::spec::quote::Quoted;

impl Display for LaunchedSignature {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} @ {}", self.signature, self.launch)
    }
}

impl Display for Launch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "launch {}", Label(&self.entry))?;
        for (name, extents) in [("grid", &self.grid), ("block", &self.block)] {
            if *extents != [Dim::Const(1)] {
                write!(f, " {name}={}", Extents(extents))?;
            }
        }
        for (name, extents) in [("cluster", &self.cluster), ("preferred_cluster", &self.preferred_cluster)] {
            if !extents.is_empty() {
                write!(f, " {name}={}", Extents(extents))?;
            }
        }
        if self.shared != Dim::Const(0) {
            write!(f, " shared_memory={}", self.shared)?;
        }
        if let Some(args) = &self.args {
            write!(f, " args=[{}]", Listed(args))?;
        }
        if let Some(stream) = &self.stream {
            write!(f, " stream={stream}")?;
        }
        if let Some(priority) = self.priority {
            write!(f, " priority={priority}")?;
        }
        if let Some(policy) = self.cluster_scheduling {
            write!(f, " cluster_scheduling={policy}")?;
        }
        if let Some(domain) = self.memory_sync_domain {
            write!(f, " memory_sync_domain={domain}")?;
        }
        if let Some(percent) = self.carveout {
            write!(f, " shared_memory_carveout={percent}")?;
        }
        if let Some(event) = &self.completion_event {
            write!(f, " completion_event={event}")?;
        }
        for (name, function) in [("on_load", &self.on_load), ("on_unload", &self.on_unload)] {
            if let Some(function) = function {
                write!(f, " {name}={}", Label(function))?;
            }
        }
        let mut between = " globals=[";
        for (name, value) in &self.globals {
            write!(f, "{}{}={value}", std::mem::replace(&mut between, ", "), Label(name))?;
        }
        if !self.globals.is_empty() {
            f.write_str("]")?;
        }
        let flags = [
            (self.flags.cooperative, "cooperative"),
            (self.flags.programmatic_dependent_launch, "programmatic_dependent_launch"),
            (self.flags.non_portable_cluster, "non_portable_cluster"),
        ];
        flags.into_iter().filter(|(is, _)| *is).try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

/// A name in an image or of a function, in quotes unless it is a single name of the text form.
struct Label<'a>(&'a str);

impl Display for Label<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match is_name(self.0) {
            true => f.write_str(self.0),
            false => write!(f, "{}", Quoted(self.0)),
        }
    }
}

/// Whether the entry is a single name of the text form.
fn is_name(entry: &str) -> bool {
    let mut bytes = entry.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
}
