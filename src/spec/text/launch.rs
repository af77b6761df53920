//! Parses launches, the inverse of `launch`.

use std::str::FromStr;

use super::dims;
use super::parser::{Parsed, Parser};
use super::words::{FLAGS, VALUES};
use crate::spec::builder::SignatureBuilder;
use crate::spec::launch::{Launch, LaunchedSignature};
use crate::spec::parse_error::{ParseError, SyntaxError};
use crate::spec::signature::Signature;
use crate::spec::token::{Token, Tokens};

const ITEM: &str = "`grid`, `block`, `cluster`, `preferred_cluster`, `shared_memory`, `args`, `priority`, \
    `cooperative`, `programmatic_dependent_launch`, `non_portable_cluster` or the end";

impl FromStr for Launch {
    type Err = SyntaxError;

    /// Parses the text form: `launch add_kernel grid=ceil_div(n, 1024) block=128`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        let read = parser.launch("the end");
        parser.finish(read)
    }
}

impl FromStr for LaunchedSignature {
    type Err = ParseError;

    /// Parses the text form: the signature, `@`, and the launch.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        let read = parser.launched();
        let spans = std::mem::take(&mut parser.spans);
        let (mut signature, launch) = parser.finish(read)?;
        signature.spans = spans;
        Ok(LaunchedSignature { signature: signature.build()?, launch })
    }
}

impl<'a> Parser<'a> {
    fn launched(&mut self) -> Parsed<(SignatureBuilder, Launch)> {
        let signature = match self.signature(true) {
            Ok(signature) => signature,
            Err(error) => {
                self.recover_at_launch(error)?;
                Signature::builder("")
            }
        };
        if self.errors.is_empty() || self.tokens.peek().1 != Token::End {
            self.expect(Token::At)?;
            return Ok((signature, self.launch(ITEM)?));
        }
        // the error that was found may be a missing `@`
        Ok((signature, Launch::new("")))
    }

    /// A launch up to the end of the source; `expected` describes what else could be there. If there are errors, the
    /// returned launch is incomplete.
    fn launch(&mut self, expected: &str) -> Parsed<Launch> {
        if !self.eat(Token::Name("launch")) {
            return Err(self.expected("`launch`"));
        }
        let mut launch = match self.tokens.peek() {
            (_, Token::Name(name) | Token::Text(name)) => Launch::new(name),
            _ => return Err(self.expected("the name of the kernel's entry")),
        };
        self.tokens.next();
        let mut seen = Vec::new();
        while self.tokens.peek().1 != Token::End {
            let start = self.tokens.mark();
            launch = match self.item(launch, &mut seen, expected) {
                Ok(launch) => launch,
                Err(error) => {
                    self.recover_at_item(error, start)?;
                    Launch::new("")
                }
            };
        }
        Ok(launch)
    }

    fn item(&mut self, launch: Launch, seen: &mut Vec<&'a str>, expected: &str) -> Parsed<Launch> {
        let (pos, Token::Name(name)) = self.tokens.peek() else { return Err(self.expected(expected)) };
        if seen.contains(&name) {
            return Err(self.error(pos, format!("`{name}` is given twice")));
        }
        let value = VALUES.contains(&name);
        if !value && !FLAGS.contains(&name) {
            return Err(self.expected(ITEM));
        }
        self.tokens.next();
        if value {
            self.expect(Token::Equals)?;
        }
        seen.push(name);
        Ok(match name {
            "cooperative" => launch.cooperative(),
            "programmatic_dependent_launch" => launch.programmatic_dependent_launch(),
            "non_portable_cluster" => launch.non_portable_cluster(),
            "grid" => launch.grid(self.extents()?),
            "block" => launch.block(self.extents()?),
            "cluster" => launch.cluster(self.extents()?),
            "preferred_cluster" => launch.preferred_cluster(self.extents()?),
            "shared_memory" => launch.shared_memory(self.dim(dims::OPERAND)?),
            "priority" => launch.priority(self.small("a priority")?),
            _ => {
                self.expect(Token::OpenList)?;
                launch.args(self.rest_of_args(Token::CloseList)?)
            }
        })
    }
}
