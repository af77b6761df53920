//! Records `match`.

use super::trees::part;
use super::{Recorder, at};
use crate::host::tree::{Expr as Tree, Match, MatchKey as KeyTree, MatchRow as RowTree, Pattern, StatementKind};
use crate::lower::body::match_key::{MatchKey, MatchPattern, MatchRow, MatchValue};
use crate::spec::Device;

/// The keys and the patterns, which are known before the rows' blocks.
pub(in crate::lower::body) struct MatchHeader {
    keys: Vec<KeyTree>,
    rows: Vec<Vec<Pattern>>,
}

impl Recorder {
    pub(in crate::lower::body) fn match_header(&self, keys: &[MatchKey<'_>], rows: &[MatchRow<'_>]) -> MatchHeader {
        let key = |key: &MatchKey<'_>| KeyTree { name: Some(key.name.clone()), value: self.match_value(&key.value) };
        let row = |row: &MatchRow<'_>| row.patterns.iter().map(pattern).collect();
        MatchHeader { keys: keys.iter().map(key).collect(), rows: rows.iter().map(row).collect() }
    }

    fn match_value(&self, value: &MatchValue<'_>) -> Tree {
        match *value {
            MatchValue::Number(number) => self.expr(number),
            MatchValue::DType(dtype) => self.dtype_arg(dtype),
            MatchValue::Device(device) => self.device_arg(device),
            MatchValue::DeviceKind(device) => part(self.device_arg(device), "kind"),
            MatchValue::Str(param) => self.param(param),
        }
    }

    /// Ends a `match`. The blocks of its rows have ended in their order.
    pub(in crate::lower::body) fn match_(&self, header: MatchHeader, has_else: bool) -> StatementKind {
        let MatchHeader { keys, rows } = header;
        let otherwise = has_else.then(|| self.closed().block);
        let row = |patterns: Vec<Pattern>| RowTree {
            span: 0..0,
            patterns: patterns.into_iter().map(at).collect(),
            block: self.closed().block,
        };
        // the last block that has ended is the first that is taken
        let mut rows: Vec<RowTree> = rows.into_iter().rev().map(row).collect();
        rows.reverse();
        StatementKind::Match(Box::new(Match { keys, rows, otherwise }))
    }
}

fn pattern(pattern: &MatchPattern) -> Pattern {
    match pattern {
        MatchPattern::Any => Pattern::Any,
        MatchPattern::Int(value) => Pattern::Int(*value),
        MatchPattern::Range(range) => Pattern::Range(range.start, range.end),
        MatchPattern::Bool(value) => Pattern::Bool(*value),
        MatchPattern::DType(dtype) => Pattern::Name(dtype.to_string()),
        MatchPattern::Device(device) => Pattern::Text(device.to_string().into_bytes()),
        MatchPattern::DeviceKind(kind) => Pattern::Text(Device::of(*kind).to_string().into_bytes()),
        MatchPattern::Str(text) => Pattern::Text(text.clone().into_bytes()),
    }
}
