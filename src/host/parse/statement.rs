//! Parses statements.

use super::{HostParser, MAX_DEPTH, Read};
use crate::host::tree::{
    At, Block, Error, Expr, ExprKind, For, If, LaunchOf, Location, Scoped, Statement, StatementKind, Try, While,
};
use crate::host::words::Word;
use crate::spec::{Parser, SourceLocation, SyntaxError, Token, did_you_mean};

impl HostParser<'_> {
    /// Statements in braces.
    pub(super) fn block(&mut self) -> Read<Block> {
        let start = self.start();
        let mut block = self.in_block(|parser| Ok(parser.statements(false)?.0))?;
        block.span = self.since(start);
        Ok(block)
    }

    /// Parses the inside of a block with its braces.
    pub(super) fn in_block<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.blocks + self.open >= MAX_DEPTH {
            return Err(self.too_deep().into());
        }
        self.expect_sign("{")?;
        self.blocks += 1;
        let read = read(self);
        self.blocks -= 1;
        let read = read?;
        self.expect_sign("}")?;
        Ok(read)
    }

    /// Statements up to a `}`, and the value that may stand before it.
    pub(super) fn statements(&mut self, ends_with_value: bool) -> Read<(Block, Option<Expr>)> {
        let mut block = Block::default();
        while self.peek() != Token::Sign("}") {
            if self.peek() == Token::End {
                return Err(self.p.expected("a statement or `}`").into());
            }
            let (start, open) = (self.p.tokens.mark(), self.open);
            match self.statement(ends_with_value) {
                Ok(Stated::Statement(statement)) => block.statements.push(statement),
                Ok(Stated::Value(value)) => return Ok((block, Some(value))),
                Err(error) => {
                    self.open = open;
                    self.recover(error, start)?;
                    if ends_with_value && self.peek() == Token::Sign("}") {
                        // the value itself has the error, which is recorded
                        let value = Expr { span: 0..0, depth: 0, kind: Box::new(ExprKind::None) };
                        return Ok((block, Some(value)));
                    }
                }
            }
        }
        Ok((block, None))
    }

    /// Parses a statement. `simple` parses statements without blocks, so nested blocks use less stack.
    fn statement(&mut self, ends_with_value: bool) -> Read<Stated> {
        let start = self.start();
        let kind = match self.peek() {
            Token::Name("if") => self.if_()?,
            Token::Name("match") => self.match_()?,
            Token::Name("while") => self.while_()?,
            Token::Name("for") => self.for_()?,
            Token::Name("try") => self.try_()?,
            // elsewhere it is a name
            Token::Name("graph") if self.second() == Token::Sign("{") => {
                self.p.tokens.next();
                StatementKind::Graph(self.block()?)
            }
            _ => return self.simple(start, ends_with_value),
        };
        Ok(self.statement_of(start, kind))
    }

    /// Parses a statement without blocks, as a row of a `match` may have one.
    pub(super) fn simple_statement(&mut self, start: usize) -> Read<Statement> {
        match self.simple(start, false)? {
            Stated::Statement(statement) => Ok(statement),
            Stated::Value(_) => Err(self.p.expected("a statement").into()),
        }
    }

    /// Parses a statement without blocks.
    fn simple(&mut self, start: usize, ends_with_value: bool) -> Read<Stated> {
        let kind = match self.peek() {
            Token::Name("let") => self.let_()?,
            Token::Name("var") => {
                self.p.tokens.next();
                let name = self.new_name("a variable's name")?;
                self.semicolon(StatementKind::Var(name))?
            }
            Token::Name(word @ ("return" | "break" | "continue")) => self.exit(word)?,
            Token::Name("raise") => self.raise()?,
            Token::Name("ensure") => {
                self.p.tokens.next();
                let condition = self.expr()?;
                self.p.expect(Token::Comma)?;
                let error = self.error()?;
                self.semicolon(StatementKind::Ensure(condition, error))?
            }
            Token::Name("launch") => self.launch()?,
            Token::At => self.location()?,
            Token::Name("forward") => {
                let call = self.forwarded()?;
                self.semicolon(StatementKind::Forward(call))?
            }
            Token::Name("call") => {
                let call = self.value()?;
                self.semicolon(StatementKind::Do(call))?
            }
            _ => {
                if let Some(word) = self.statement_word() {
                    let done = self.word_of(word)?;
                    return self.semicolon(StatementKind::Do(done)).map(|kind| self.statement_of(start, kind));
                }
                let value = self.expr()?;
                if ends_with_value && self.peek() == Token::Sign("}") {
                    return Ok(Stated::Value(value));
                }
                let is_place = matches!(*value.kind, ExprKind::Name(_) | ExprKind::Index(..));
                if !is_place || !self.p.eat(Token::Equals) {
                    return Err(self.p.expected(if is_place { "`=`" } else { "a statement" }).into());
                }
                let new = self.passed()?;
                self.semicolon(StatementKind::Set(value, new))?
            }
        };
        Ok(self.statement_of(start, kind))
    }

    fn statement_of(&self, start: usize, kind: StatementKind) -> Stated {
        Stated::Statement(Statement { span: self.since(start), kind })
    }

    /// The operation without a value that begins here.
    fn statement_word(&self) -> Option<Word> {
        let Token::Name(name) = self.peek() else { return None };
        Word::named(name).filter(|word| word.is_statement() && self.second() == Token::Open)
    }

    fn semicolon(&mut self, kind: StatementKind) -> Read<StatementKind> {
        self.expect_sign(";")?;
        Ok(kind)
    }

    fn let_(&mut self) -> Read<StatementKind> {
        self.p.tokens.next();
        let name = self.new_name("the name of a value")?;
        self.p.expect(Token::Equals)?;
        let value = self.value()?;
        self.semicolon(StatementKind::Let(name, value))
    }

    fn exit(&mut self, word: &str) -> Read<StatementKind> {
        self.p.tokens.next();
        let kind = match word {
            "break" => StatementKind::Break,
            "continue" => StatementKind::Continue(self.exprs(Token::Sign(";"))?),
            _ if self.peek() == Token::Sign(";") => StatementKind::Return(None),
            _ => StatementKind::Return(Some(self.passed()?)),
        };
        self.semicolon(kind)
    }

    fn if_(&mut self) -> Read<StatementKind> {
        let (mut branches, mut otherwise) = (Vec::new(), None);
        let blocks = self.blocks;
        let read = loop {
            self.p.tokens.next();
            let branch = self.expr().and_then(|condition| Ok((condition, self.block()?)));
            match branch {
                Ok(branch) => branches.push(branch),
                Err(error) => break Err(error),
            }
            if !self.word("else") {
                break Ok(());
            }
            if self.peek() != Token::Name("if") {
                otherwise = match self.block() {
                    Ok(block) => Some(block),
                    Err(error) => break Err(error),
                };
                break Ok(());
            }
            // the next branch is inside of this one
            self.blocks += 1;
        };
        self.blocks = blocks;
        read?;
        Ok(StatementKind::If(If { branches, otherwise }))
    }

    fn while_(&mut self) -> Read<StatementKind> {
        self.p.tokens.next();
        let condition = match self.peek() {
            Token::Sign("{") => self.scoped()?.0,
            _ => Scoped { block: Block::default(), value: self.expr()? },
        };
        let carried = self.carried()?;
        Ok(StatementKind::While(Box::new(While { condition, carried, block: self.block()? })))
    }

    fn for_(&mut self) -> Read<StatementKind> {
        self.p.tokens.next();
        let index = self.new_name("the name of the index")?;
        self.expect_word("in")?;
        self.expect_word("range")?;
        self.p.expect(Token::Open)?;
        let start = self.expr()?;
        self.p.expect(Token::Comma)?;
        let end = self.expr()?;
        let step = if self.p.eat(Token::Comma) { Some(self.expr()?) } else { None };
        self.p.expect(Token::Close)?;
        let carried = self.carried()?;
        Ok(StatementKind::For(Box::new(For { index, start, end, step, carried, block: self.block()? })))
    }

    /// The values that a loop carries.
    fn carried(&mut self) -> Read<Vec<(At<String>, Expr)>> {
        let mut carried = Vec::new();
        if !self.word("with") {
            return Ok(carried);
        }
        loop {
            let name = self.new_name("the name of a value that the loop carries")?;
            self.p.expect(Token::Equals)?;
            carried.push((name, self.expr()?));
            if !self.p.eat(Token::Comma) {
                return Ok(carried);
            }
        }
    }

    fn try_(&mut self) -> Read<StatementKind> {
        self.p.tokens.next();
        let attempt = self.block()?;
        self.expect_word("catch")?;
        let name = self.new_name("the name of the error")?;
        Ok(StatementKind::Try(Box::new(Try { attempt, name, handler: self.block()? })))
    }

    fn raise(&mut self) -> Read<StatementKind> {
        self.p.tokens.next();
        if self.second() != Token::Open {
            let name = self.new_name("an error's kind, or the name of a caught error")?;
            return self.semicolon(StatementKind::RaiseAgain(name));
        }
        let error = self.error()?;
        let from = if self.word("from") { Some(self.new_name("the name of a caught error")?) } else { None };
        self.semicolon(StatementKind::Raise(error, from))
    }

    /// `Kind("message {}", value)`
    fn error(&mut self) -> Read<Error> {
        let kind = self.label("the kind of an error, such as `ValueError`")?;
        self.p.expect(Token::Open)?;
        let message = self.utf8()?;
        let mut values = Vec::new();
        while self.p.eat(Token::Comma) && self.peek() != Token::Close {
            values.push(self.passed()?);
        }
        self.p.expect(Token::Close)?;
        Ok(Error { kind, message, values })
    }

    fn launch(&mut self) -> Read<StatementKind> {
        let launch = self.launch_of()?;
        self.semicolon(StatementKind::Launch(Box::new(launch)))
    }

    /// A launch up to a `;`, which stays.
    pub(super) fn launch_of(&mut self) -> Read<LaunchOf> {
        let start = self.p.tokens.mark();
        let end = (start..).find(|at| matches!(self.p.tokens.at(*at), Token::Sign(";" | "{" | "}") | Token::End));
        let end = end.unwrap_or(start);
        let mut window = Parser::new(self.p.text, self.p.tokens.window(start..end));
        let read = window.host_launch();
        let (launch, items) = match window.finish(read) {
            Ok(read) => read,
            Err(error) => {
                // the last one stops the statement, and the others are recorded
                let mut errors = error.each();
                let last = errors.pop();
                self.errors.extend(errors);
                return Err(last.unwrap_or_else(|| self.p.expected("a launch")).into());
            }
        };
        let is_unknown = |image: &str| self.images.is_some_and(|known| !known.contains(&image));
        let mut named = items.images.iter().flatten();
        if let Some((image, span)) = named.find(|(image, _)| is_unknown(image)) {
            let problem =
                format!("no image is called `{image}`{}", did_you_mean(image, self.images.unwrap_or_default()));
            return Err(SyntaxError::new(self.p.text, span.clone(), problem).into());
        }
        self.p.tokens.go_to(end);
        Ok(LaunchOf { launch, items })
    }

    fn location(&mut self) -> Read<StatementKind> {
        self.p.tokens.next();
        let location = match self.peek() {
            Token::Name("none") => {
                self.p.tokens.next();
                Location::None
            }
            Token::Integer(_) => Location::Line(self.line()?),
            _ => Location::Whole(self.source_location()?),
        };
        self.semicolon(StatementKind::Location(location))
    }

    /// `"file":line "function"`
    pub(super) fn source_location(&mut self) -> Read<SourceLocation> {
        if !matches!(self.peek(), Token::Text(_)) {
            return Err(self.p.expected("a file in quotes, a line or `none`").into());
        }
        let file = self.utf8()?;
        self.p.expect(Token::Colon)?;
        let line = self.line()?;
        Ok(SourceLocation::new(file, line, self.utf8()?))
    }

    fn line(&mut self) -> Read<u32> {
        let pos = self.p.tokens.peek().0;
        let line = self.p.integer("a line")?;
        Ok(u32::try_from(line).map_err(|_| self.p.error(pos, format!("`{line}` isn't a line number")))?)
    }
}

/// The construct that the parser found where a statement may begin.
enum Stated {
    Statement(Statement),
    /// The value before the `}` of a block with one.
    Value(Expr),
}
