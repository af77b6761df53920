//! Prints `match`.

use super::Printer;
use super::place::EXPR;
use crate::host::tree::{Block, Match, Pattern, Statement, StatementKind};
use crate::spec::quoted_bytes;

impl Printer<'_> {
    pub(super) fn match_(&mut self, match_: &Match, end: usize) {
        self.put("match ");
        self.list(&match_.keys, |printer, key| {
            if let Some(name) = &key.name {
                printer.label(name);
                printer.put(" = ");
            }
            printer.expr(&key.value, EXPR);
        });
        self.put(" ");
        self.braces(|printer| {
            for row in &match_.rows {
                printer.comments_before(row.span.start);
                printer.line();
                printer.list(&row.patterns, |printer, pattern| printer.put(&pattern_text(&pattern.value)));
                printer.row_block(&row.block);
            }
            if let Some(block) = &match_.otherwise {
                printer.comments_before(block.span.start);
                printer.line();
                printer.put("else");
                printer.row_block(block);
            }
            printer.comments_before(end);
        });
    }

    /// Prints what a row runs: a single statement without blocks needs no braces.
    fn row_block(&mut self, block: &Block) {
        self.put(" => ");
        let has_comment = self.comments.first().is_some_and(|comment| comment.at < block.span.end);
        match &block.statements[..] {
            [Statement { kind, .. }] if !has_blocks(kind) && !has_comment => {
                self.simple(kind);
                self.put(";");
            }
            _ => self.block(block),
        }
        self.end_line(&block.span);
    }
}

fn has_blocks(kind: &StatementKind) -> bool {
    use StatementKind::{For, If, Match, Try, While};
    matches!(kind, If(_) | Match(_) | While(_) | For(_) | Try(_))
}

fn pattern_text(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Any => "_".to_owned(),
        Pattern::Int(value) => value.to_string(),
        Pattern::Bool(value) => (if *value { "True" } else { "False" }).to_owned(),
        Pattern::Text(bytes) => quoted_bytes(bytes),
        Pattern::Name(name) => name.clone(),
        Pattern::Range(start, end) => format!("range({start}, {end})"),
    }
}
