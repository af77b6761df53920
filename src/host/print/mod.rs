//! Prints trees in the canonical form: two spaces for each block, one statement on a line. The comments of a text stand
//! between its statements. `parse` reads the form back.

mod expr;
mod item;
mod matches;
mod place;

use std::fmt;

use super::tree::{
    At, Block, Comment, Error, Expr, File, For, If, LaunchOf, Location, Scoped, Span, Statement, StatementKind, Text,
    While,
};
use crate::spec::{SourceLocation, quoted_bytes};

use place::{EXPR, VALUE, begins_with_if};

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(&self.comments);
        printer.file(self);
        f.write_str(&printer.out)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.comments.partition_point(|comment| comment.at < self.block.span.start);
        let mut printer = Printer::new(&self.comments[first..]);
        printer.block(&self.block);
        f.write_str(&printer.out)
    }
}

/// A value, as the canonical form has it.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(&[]);
        printer.expr(self, EXPR);
        f.write_str(&printer.out)
    }
}

struct Printer<'t> {
    out: String,
    /// The number of open blocks.
    depth: usize,
    /// The comments that aren't printed yet.
    comments: &'t [Comment],
}

impl<'t> Printer<'t> {
    fn new(comments: &'t [Comment]) -> Self {
        Printer { out: String::new(), depth: 0, comments }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Begins a line.
    fn line(&mut self) {
        (0..self.depth).for_each(|_| self.out.push_str("  "));
    }

    fn next_comment(&mut self, is_meant: impl FnOnce(&Comment) -> bool) -> Option<&'t Comment> {
        let (first, rest) = self.comments.split_first()?;
        if !is_meant(first) {
            return None;
        }
        self.comments = rest;
        Some(first)
    }

    /// Prints the comments before a byte of the text, each on a line of its own.
    fn comments_before(&mut self, end: usize) {
        while let Some(comment) = self.next_comment(|comment| comment.at < end) {
            self.comment(comment);
        }
    }

    fn comment(&mut self, comment: &Comment) {
        self.line();
        self.put(&comment.text);
        self.put(if comment.is_apart && self.depth == 0 { "\n\n" } else { "\n" });
    }

    /// Ends the line, after the comments that the text has behind `span` on the same line.
    fn end_line(&mut self, span: &Span) {
        while let Some(comment) = self.next_comment(|comment| comment.behind == Some(span.end)) {
            self.put("  ");
            self.put(&comment.text);
        }
        self.put("\n");
    }

    fn block(&mut self, block: &Block) {
        self.braces(|printer| {
            block.statements.iter().for_each(|statement| printer.statement(statement));
            printer.comments_before(block.span.end);
        });
    }

    /// Prints lines in braces.
    fn braces(&mut self, inside: impl FnOnce(&mut Self)) {
        self.put("{");
        let empty = self.out.len();
        self.put("\n");
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        if self.out.len() == empty + 1 {
            self.out.truncate(empty);
        } else {
            self.line();
        }
        self.put("}");
    }

    /// Prints statements and their value in braces, on lines of their own.
    fn scoped(&mut self, scoped: &Scoped) {
        self.braces(|printer| {
            scoped.block.statements.iter().for_each(|statement| printer.statement(statement));
            let value = &scoped.value;
            printer.comments_before(value.span.end);
            printer.line();
            // an `if` there would be a statement
            let begins_with_if = begins_with_if(value);
            printer.put(if begins_with_if { "(" } else { "" });
            printer.expr(value, EXPR);
            printer.put(if begins_with_if { ")" } else { "" });
            printer.end_line(&value.span);
        });
    }

    fn statement(&mut self, statement: &Statement) {
        let Statement { span, kind } = statement;
        self.comments_before(span.start);
        self.line();
        match kind {
            StatementKind::If(if_) => self.if_(if_),
            StatementKind::Match(match_) => self.match_(match_, span.end),
            StatementKind::While(while_) => self.while_(while_),
            StatementKind::For(for_) => self.for_(for_),
            StatementKind::Try(try_) => {
                self.put("try ");
                self.block(&try_.attempt);
                self.put(" catch ");
                self.put(&try_.name.value);
                self.put(" ");
                self.block(&try_.handler);
            }
            StatementKind::Graph(block) => {
                self.put("graph ");
                self.block(block);
            }
            _ => {
                self.simple(kind);
                self.put(";");
            }
        }
        self.end_line(span);
        // comments inside of the statement that no inner statement has printed
        self.comments_before(span.end);
    }

    /// Prints a statement without blocks, up to its `;`.
    fn simple(&mut self, kind: &StatementKind) {
        match kind {
            StatementKind::Let(name, value) => {
                self.put("let ");
                self.named(name, value, VALUE);
            }
            StatementKind::Var(name) => {
                self.put("var ");
                self.put(&name.value);
            }
            StatementKind::Set(target, value) => {
                self.expr(target, EXPR);
                self.put(" = ");
                self.expr(value, VALUE);
            }
            StatementKind::Do(done) => self.expr(done, VALUE),
            StatementKind::Forward(call) => self.forward(call),
            StatementKind::Return(value) => {
                self.put("return");
                if let Some(value) = value {
                    self.put(" ");
                    self.expr(value, VALUE);
                }
            }
            StatementKind::Break => self.put("break"),
            StatementKind::Continue(next) => {
                self.put(if next.is_empty() { "continue" } else { "continue " });
                self.exprs(next);
            }
            StatementKind::Raise(error, from) => {
                self.put("raise ");
                self.error(error);
                if let Some(from) = from {
                    self.put(" from ");
                    self.put(&from.value);
                }
            }
            StatementKind::RaiseAgain(name) => {
                self.put("raise ");
                self.put(&name.value);
            }
            StatementKind::Ensure(condition, error) => {
                self.put("ensure ");
                self.expr(condition, EXPR);
                self.put(", ");
                self.error(error);
            }
            StatementKind::Launch(launch) => self.launch(launch),
            StatementKind::Location(location) => self.location(location),
            // `statement` has these
            StatementKind::If(_)
            | StatementKind::Match(_)
            | StatementKind::While(_)
            | StatementKind::For(_)
            | StatementKind::Try(_)
            | StatementKind::Graph(_) => {}
        }
    }

    /// `name = value`
    fn named(&mut self, name: &At<String>, value: &Expr, place: u8) {
        self.put(&name.value);
        self.put(" = ");
        self.expr(value, place);
    }

    fn if_(&mut self, if_: &If) {
        let If { branches, otherwise } = if_;
        for (number, (condition, block)) in branches.iter().enumerate() {
            self.put(if number == 0 { "if " } else { " else if " });
            self.expr(condition, EXPR);
            self.put(" ");
            self.block(block);
        }
        if let Some(block) = otherwise {
            self.put(" else ");
            self.block(block);
        }
    }

    fn while_(&mut self, while_: &While) {
        let While { condition, carried, block } = while_;
        self.put("while ");
        match condition.block.statements.is_empty() {
            true => self.expr(&condition.value, EXPR),
            false => self.scoped(condition),
        }
        self.carried(carried);
        self.block(block);
    }

    fn for_(&mut self, for_: &For) {
        let For { index, start, end, step, carried, block } = for_;
        self.put("for ");
        self.put(&index.value);
        self.put(" in range(");
        let bounds = [Some(start), Some(end), step.as_ref()];
        self.list(bounds.into_iter().flatten(), |printer, bound| printer.expr(bound, EXPR));
        self.put(")");
        self.carried(carried);
        self.block(block);
    }

    /// The values that a loop carries, and the space before its block.
    fn carried(&mut self, carried: &[(At<String>, Expr)]) {
        if !carried.is_empty() {
            self.put(" with ");
            self.list(carried, |printer, (name, first)| printer.named(name, first, EXPR));
        }
        self.put(" ");
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        self.list(exprs, |printer, expr| printer.expr(expr, EXPR));
    }

    /// Prints parts with commas between them.
    fn list<T>(&mut self, parts: impl IntoIterator<Item = T>, mut part: impl FnMut(&mut Self, T)) {
        for (number, value) in parts.into_iter().enumerate() {
            self.put(if number == 0 { "" } else { ", " });
            part(self, value);
        }
    }

    /// `Kind("message {}", value)`
    fn error(&mut self, error: &Error) {
        self.label(&error.kind);
        self.put("(");
        self.text(error.message.as_bytes());
        for value in &error.values {
            self.put(", ");
            self.expr(value, VALUE);
        }
        self.put(")");
    }

    fn launch(&mut self, launch: &LaunchOf) {
        self.put(&launch.launch.to_string());
        match launch.items.images.as_deref() {
            None => {}
            Some([(image, _)]) => {
                self.put(" image=");
                self.label(image);
            }
            Some(images) => {
                self.put(" image=[");
                self.list(images, |printer, (image, _)| printer.label(image));
                self.put("]");
            }
        }
        if let Some(values) = &launch.items.values {
            self.put(" values=[");
            self.list(values, |printer, local| {
                printer.put(&local.name);
                if local.value != local.name {
                    printer.put("=");
                    printer.put(&local.value);
                }
            });
            self.put("]");
        }
    }

    fn location(&mut self, location: &Location) {
        self.put("@ ");
        match location {
            Location::Whole(location) => self.source_location(location),
            Location::Line(line) => self.put(&line.to_string()),
            Location::None => self.put("none"),
        }
    }

    /// `"file":line "function"`
    fn source_location(&mut self, location: &SourceLocation) {
        self.text(location.file.as_bytes());
        self.put(&format!(":{} ", location.line));
        self.text(location.function.as_bytes());
    }

    /// A string in quotes.
    fn text(&mut self, bytes: &[u8]) {
        self.put(&quoted_bytes(bytes));
    }

    /// A name, or a string if it isn't one.
    fn label(&mut self, label: &str) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        match label.starts_with(is_first) && label.chars().all(is_name) {
            true => self.put(label),
            false => self.text(label.as_bytes()),
        }
    }
}
