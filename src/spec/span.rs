//! Spans in a signature's source: the byte ranges of the parts that may have errors.

use std::ops::Range;

use super::path::{Part, Path, Step};

/// The spans in a source string, from left to right; empty for a signature made with a builder.
#[derive(Clone, Default, Debug)]
pub(super) struct Spans {
    spans: Vec<Span>,
    depth: usize,
}

#[derive(Clone, Debug)]
struct Span {
    /// The number of enclosing spans.
    depth: usize,
    of: SpanOf,
    bytes: Range<usize>,
}

/// The beginning of a path, or a step of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SpanOf {
    Part(Part),
    Step(Step),
}

impl From<Part> for SpanOf {
    fn from(part: Part) -> Self {
        SpanOf::Part(part)
    }
}

impl From<Step> for SpanOf {
    fn from(step: Step) -> Self {
        SpanOf::Step(step)
    }
}

/// A span whose end isn't known yet.
pub(super) struct OpenSpan(usize);

impl Spans {
    /// Begins a span. It encloses the spans that begin before it is closed.
    pub(super) fn open(&mut self, of: impl Into<SpanOf>, start: usize) -> OpenSpan {
        self.add(of, start..start);
        self.depth += 1;
        OpenSpan(self.spans.len() - 1)
    }

    pub(super) fn close(&mut self, open: OpenSpan, end: usize) {
        self.depth -= 1;
        if let Some(span) = self.spans.get_mut(open.0) {
            span.bytes.end = end;
        }
    }

    /// Removes a span and the spans inside it.
    pub(super) fn drop_open(&mut self, open: OpenSpan) {
        self.depth -= 1;
        self.spans.truncate(open.0);
    }

    /// Adds a span without inner spans.
    pub(super) fn add(&mut self, of: impl Into<SpanOf>, bytes: Range<usize>) {
        self.spans.push(Span { depth: self.depth, of: of.into(), bytes });
    }

    /// The span of a path, or of its smallest enclosing part with a span.
    pub(super) fn of(&self, path: &Path) -> Option<Range<usize>> {
        let mut found: Option<&Span> = None;
        let mut rest = self.spans.as_slice();
        let wanted = [SpanOf::Part(path.part())].into_iter().chain(path.steps().iter().copied().map(SpanOf::Step));
        for (depth, wanted) in wanted.enumerate() {
            let inside = rest.iter().position(|span| span.depth < depth).unwrap_or(rest.len());
            rest = &rest[..inside];
            let Some(at) = rest.iter().position(|span| span.depth == depth && span.of == wanted) else { break };
            found = rest.get(at);
            rest = &rest[at + 1..];
        }
        found.map(|span| span.bytes.clone())
    }
}
