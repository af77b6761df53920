//! Parses files of functions.

use std::collections::HashSet;
use std::sync::Arc;

use super::{HostParser, Read};
use crate::host::error::of_signature;
use crate::host::tree::{At, File, Function, FunctionKernel, Item, ItemKind, Place, PlaceOf, Span, Text};
use crate::spec::{CommentLine, Parser, Part, Signature, SyntaxError, Token, did_you_mean};

impl HostParser<'_> {
    pub(super) fn file(&mut self) -> Read<File> {
        let mut file = File::default();
        while self.peek() != Token::End {
            let start = self.p.tokens.mark();
            if let Err(error) = self.item(&mut file) {
                (self.blocks, self.open) = (0, 0);
                self.recover(error, start)?;
                // a `}` here belongs to nothing
                while self.sign("}") {}
            }
        }
        file.comments = Arc::clone(&self.comments);
        self.check_globals(&file);
        Ok(file)
    }

    fn check_globals(&mut self, file: &File) {
        let names: Vec<&str> = file.functions().map(|function| function.signature.name()).collect();
        let known: HashSet<&str> = names.iter().copied().collect();
        let unknown = file.globals().filter(|(name, _)| !known.contains(name.value.as_str()));
        let has_errors = !self.errors.is_empty();
        // a function with an error isn't in the file
        let errors = unknown.filter(|_| !has_errors).map(|(name, _)| {
            let problem = format!("no function is called `{}`{}", name.value, did_you_mean(&name.value, &names));
            SyntaxError::new(self.p.text, name.span.clone(), problem)
        });
        self.errors.extend(errors);
    }

    fn item(&mut self, file: &mut File) -> Read<()> {
        let whole = self.start();
        if self.peek() == Token::Name("register") && matches!(self.second(), Token::Name(_)) {
            self.p.tokens.next();
            let start = self.start();
            let name = self.p.name("the name of a function")?.to_owned();
            let name = At { span: self.since(start), value: name };
            self.expect_word("as")?;
            let global = self.utf8()?;
            self.expect_sign(";")?;
            let span = self.since(whole);
            file.items.push(Item { span, kind: ItemKind::Register(name, global) });
            return Ok(());
        }
        let first = self.p.tokens.mark();
        let mut places = Vec::new();
        while self.p.eat(Token::At) {
            places.push(self.place()?);
        }
        let is_extern = matches!(self.second(), Token::Name(_)) && self.word("extern");
        let docs = first..self.p.tokens.mark() + 1;
        let of_first = self.lines.partition_point(|line| line.token < docs.start);
        let lines = self.lines[of_first..].iter().take_while(|line| docs.contains(&line.token));
        let docs: Vec<&str> = lines.filter_map(CommentLine::doc).collect();
        let (signature, span) = self.signature()?;
        let kernel = self.kernel()?;
        // the errors of a signature are recorded
        let Some(mut signature) = signature else { return Ok(()) };
        if !docs.is_empty() {
            signature = signature.with_doc(docs.join("\n"));
        }
        for place in places {
            signature = self.with_place(signature, place)?;
        }
        let function = Function { signature, is_extern, span, kernel };
        file.items.push(Item { span: self.since(whole), kind: ItemKind::Function(Box::new(function)) });
        Ok(())
    }

    /// A signature up to its block or kernel, with its bytes. Its errors are recorded, and then there is none.
    pub(super) fn signature(&mut self) -> Read<(Option<Signature>, Span)> {
        let (first, start) = (self.p.tokens.mark(), self.start());
        let is_end =
            |at: &usize| matches!(self.p.tokens.at(*at), Token::Sign("{" | ";" | "}") | Token::At | Token::End);
        let end = (first..).find(is_end).unwrap_or(first);
        let window = Parser::new(self.p.text, self.p.tokens.window(first..end));
        let read = window.whole_signature();
        self.p.tokens.go_to(end);
        let span = self.since(start);
        match read {
            Ok(signature) => Ok((Some(signature), span)),
            Err(error) => {
                self.errors.extend(of_signature(self.p.text, error));
                Ok((None, span))
            }
        }
    }

    fn kernel(&mut self) -> Read<FunctionKernel> {
        if self.sign(";") {
            return Ok(FunctionKernel::CheckOnly);
        }
        if self.peek() == Token::Sign("{") {
            let block = Arc::new(self.block()?);
            return Ok(FunctionKernel::Body(Text { block, comments: Arc::clone(&self.comments) }));
        }
        if !self.p.eat(Token::At) {
            return Err(self.p.expected("`{`, `@` or `;`").into());
        }
        if self.peek() == Token::Name("launch") && matches!(self.second(), Token::Name(_) | Token::Text(_)) {
            let launch = self.launch_of()?;
            self.expect_sign(";")?;
            return Ok(FunctionKernel::Launch(Box::new(launch)));
        }
        let symbol = self.label("`launch`, or a kernel's symbol")?;
        let is_item = matches!(self.peek(), Token::Name("returns" | "args")) && self.second() == Token::Equals;
        let convention =
            if !is_item && self.peek() != Token::Sign(";") { Some(self.stated("a convention")?) } else { None };
        let (mut returns, mut args) = (None, None);
        if self.word("returns") {
            self.p.expect(Token::Equals)?;
            returns = Some(self.stated("`nothing`, `status` or `value`")?);
        }
        if self.word("args") {
            self.p.expect(Token::Equals)?;
            self.p.expect(Token::OpenList)?;
            args = Some(self.p.rest_of_args(Token::CloseList)?);
        }
        self.expect_sign(";")?;
        Ok(FunctionKernel::Symbol { symbol, convention, returns, args })
    }

    fn stated(&mut self, what: &str) -> Read<At<String>> {
        let start = self.start();
        let name = self.p.name(what)?.to_owned();
        Ok(At { span: self.since(start), value: name })
    }

    /// `@ "file":1 "function"`, or with a part: `@ x: "file":1 "function"`.
    fn place(&mut self) -> Read<Place> {
        let start = self.start();
        let part = match self.peek() {
            Token::Text(_) => PlaceOf::Part(Part::Signature),
            Token::Name("result") => {
                self.p.tokens.next();
                PlaceOf::Part(Part::Result)
            }
            Token::Name("where") if self.second() == Token::OpenList => {
                self.p.tokens.next();
                self.p.tokens.next();
                let pos = self.p.tokens.peek().0;
                let number = self.p.integer("the number of a constraint")?;
                let number =
                    usize::try_from(number).map_err(|_| self.p.error(pos, format!("`{number}` is no index")))?;
                self.p.expect(Token::CloseList)?;
                PlaceOf::Part(Part::Constraint(number))
            }
            _ => PlaceOf::Param(self.p.name("a file in quotes, or a part of the signature")?.to_owned()),
        };
        let part = At { span: self.since(start), value: part };
        if !matches!(part.value, PlaceOf::Part(Part::Signature)) {
            self.p.expect(Token::Colon)?;
        }
        Ok(Place { part, location: self.source_location()? })
    }

    fn with_place(&self, signature: Signature, place: Place) -> Read<Signature> {
        let error = |problem: String| SyntaxError::new(self.p.text, place.part.span.clone(), problem);
        let part = match &place.part.value {
            PlaceOf::Part(part) => *part,
            PlaceOf::Param(name) => {
                let names: Vec<&str> = signature.params().iter().map(|param| param.name.as_str()).collect();
                let at = names.iter().position(|known| known == name);
                let unknown = || error(format!("no parameter is called `{name}`{}", did_you_mean(name, &names)));
                Part::Param(at.ok_or_else(unknown)?)
            }
        };
        Ok(signature.with_location(part, place.location).map_err(|problem| error(problem.to_string()))?)
    }
}
