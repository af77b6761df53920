//! Converts an error of unknown type to a diagnostic: lists all types that implement [`Diagnose`].

use std::error::Error;

#[cfg(feature = "_engine")]
use crate::artifact::EmitError;
use crate::artifact::{ArchiveError, LinkError};
use crate::backend::CodegenError;
use crate::diagnostic::{Diagnose, Diagnostic, DiagnosticKind};
#[cfg(feature = "_engine")]
use crate::embed::EmbedError;
use crate::engine::EngineError;
#[cfg(feature = "_engine")]
use crate::explain::ExplainError;
use crate::host::HostTextError;
use crate::lower::{ArgProblem, LaunchProblem, LowerError};
use crate::spec::{ParseError, SignatureError, SyntaxError};

impl Diagnostic {
    /// The diagnostic of an error of this library, or of the first such error among its sources. For any other error,
    /// it has only the message.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut causes = std::iter::successors(Some(error), |cause| (*cause).source());
        match causes.find_map(as_diagnose) {
            Some(known) => Diagnostic { message: error.to_string(), ..known.diagnostic() },
            None => Self::plain(DiagnosticKind::Other, error),
        }
    }
}

/// Returns the error as the first of these types that matches.
macro_rules! return_first {
    ($error:expr; $($known:ty),*) => {
        $(if let Some(known) = $error.downcast_ref::<$known>() {
            return Some(known);
        })*
    };
}

/// The error as a [`Diagnose`], if its type implements that.
fn as_diagnose<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e dyn Diagnose> {
    return_first! { error; ParseError, SyntaxError, SignatureError, HostTextError, LowerError, EngineError }
    return_first! { error; LaunchProblem, ArgProblem, LinkError, ArchiveError, CodegenError }
    #[cfg(feature = "_engine")] // only backends make them
    return_first! { error; EmitError, EmbedError, ExplainError }
    None
}
