//! Spans of a signature's text: the bytes of each part that a mistake may be in.

use std::ops::Range;

use super::path::{Part, Path, Step};

/// The spans of a text, from left to right; empty for a signature that was built.
#[derive(Clone, Default, Debug)]
pub(super) struct Spans {
    spans: Vec<Span>,
    depth: usize,
}

#[derive(Clone, Debug)]
struct Span {
    /// The number of spans around it.
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
    /// Begins a span, which those are inside of that begin before it is closed.
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

    /// Forgets a span and those inside of it.
    pub(super) fn drop_open(&mut self, open: OpenSpan) {
        self.depth -= 1;
        self.spans.truncate(open.0);
    }

    /// Adds a span that no other is inside of.
    pub(super) fn add(&mut self, of: impl Into<SpanOf>, bytes: Range<usize>) {
        self.spans.push(Span { depth: self.depth, of: of.into(), bytes });
    }

    /// The span of a path, or of the smallest part around it that has one.
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
