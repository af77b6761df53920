//! Prints the functions of a file.

use std::sync::Arc;

use super::Printer;
use crate::host::tree::{Comment, File, Function, FunctionKernel, Item, ItemKind};
use crate::spec::{KernelArg, Part};

impl Printer<'_> {
    pub(super) fn file(&mut self, file: &File) {
        let mut before = None;
        for item in &file.items {
            let has_comment = self.comments.first().is_some_and(|comment| comment.at < item.span.start);
            let is_apart = has_comment || !is_short(item) || before.is_some_and(|before| !is_short(before));
            if before.is_some() && is_apart && !self.out.ends_with("\n\n") {
                self.put("\n");
            }
            match &item.kind {
                ItemKind::Function(function) => self.function(function, &file.comments),
                ItemKind::Register(function, global) => {
                    self.comments_before(item.span.end);
                    self.put("register ");
                    self.put(&function.value);
                    self.put(" as ");
                    self.text(global.as_bytes());
                    self.put(";");
                }
            }
            self.end_line(&item.span);
            before = Some(item);
        }
        if before.is_some() && !self.comments.is_empty() && !self.out.ends_with("\n\n") {
            self.put("\n");
        }
        self.comments_before(usize::MAX);
        let len = self.out.trim_end().len();
        self.out.truncate(len);
        if len > 0 {
            self.put("\n");
        }
    }

    fn function(&mut self, function: &Function, comments: &Arc<[Comment]>) {
        let signature = &function.signature;
        while let Some(comment) = self.next_comment(|comment| comment.at < function.span.end) {
            // the signature has its documentation
            if !comment.is_doc() {
                self.comment(comment);
            }
        }
        for line in signature.doc().into_iter().flat_map(|doc| doc.split('\n')) {
            self.put(if line.trim().is_empty() { "##" } else { "## " });
            self.put(line.trim_end());
            self.put("\n");
        }
        for (part, location) in signature.own_locations() {
            self.put("@ ");
            match part {
                Part::Signature => {}
                Part::Param(number) => self.put(&format!("{}: ", signature.params()[number].name)),
                Part::Result => self.put("result: "),
                Part::Constraint(number) => self.put(&format!("where[{number}]: ")),
            }
            self.source_location(location);
            self.put("\n");
        }
        self.put(if function.is_extern { "extern " } else { "" });
        self.put(&signature.to_string());
        self.kernel(&function.kernel, comments);
    }

    fn kernel(&mut self, kernel: &FunctionKernel, comments: &Arc<[Comment]>) {
        match kernel {
            FunctionKernel::CheckOnly => self.put(";"),
            FunctionKernel::Body(text) if Arc::ptr_eq(&text.comments, comments) => {
                self.put(" ");
                self.block(&text.block);
            }
            FunctionKernel::Body(text) => self.put(&format!(" {text}")),
            FunctionKernel::Launch(launch) => {
                self.put(" @ ");
                self.launch(launch);
                self.put(";");
            }
            FunctionKernel::Symbol { symbol, convention, returns, args } => {
                self.put(" @ ");
                match symbol.as_str() {
                    // as a name it would begin a launch
                    "launch" => self.text(symbol.as_bytes()),
                    symbol => self.label(symbol),
                }
                if let Some(convention) = convention {
                    self.put(&format!(" {}", convention.value));
                }
                if let Some(returns) = returns {
                    self.put(&format!(" returns={}", returns.value));
                }
                if let Some(args) = args {
                    self.put(" args=[");
                    self.list(args, |printer, arg: &KernelArg| printer.put(&arg.to_string()));
                    self.put("]");
                }
                self.put(";");
            }
        }
    }
}

/// True if an item is printed on one line.
fn is_short(item: &Item) -> bool {
    match &item.kind {
        ItemKind::Register(..) => true,
        ItemKind::Function(function) => {
            let signature = &function.signature;
            let is_body = matches!(function.kernel, FunctionKernel::Body(_));
            !is_body && signature.doc().is_none() && !signature.has_locations()
        }
    }
}
