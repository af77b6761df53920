//! Parses launches, the inverse of `launch`.

use std::ops::Range;
use std::str::FromStr;

use super::dims;
use super::parser::{Parsed, Parser};
use super::words::{FLAGS, VALUES};
use crate::spec::builder::SignatureBuilder;
use crate::spec::launch::{ClusterScheduling, Launch, LaunchedSignature, MemorySyncDomain};
use crate::spec::parse_error::{ParseError, SyntaxError};
use crate::spec::signature::Signature;
use crate::spec::token::{Token, Tokens};

/// The names of a launch's items, and then the other tokens that may follow, for messages.
macro_rules! items {
    ($more:literal) => {
        concat!(
            "`grid`, `block`, `cluster`, `preferred_cluster`, `shared_memory`, `args`, `stream`, `priority`, ",
            "`cluster_scheduling`, `memory_sync_domain`, `shared_memory_carveout`, `completion_event`, `globals`, ",
            "`on_load`, `on_unload`, ",
            "`cooperative`, `programmatic_dependent_launch`, `non_portable_cluster`",
            $more
        )
    };
}

const ITEM: &str = items!(" or the end");
const HOST_ITEM: &str = items!(", `image`, `values` or `;`");

/// The items of a launch that only host functions have, each with its bytes in the source.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct HostItems {
    /// The names of its images.
    pub images: Option<Vec<(String, Range<usize>)>>,
    /// The named values that a kernel without stated parameters takes.
    pub values: Option<Vec<LaunchLocal>>,
}

/// A value of a launch: `name`, or `name=value` for a value with another name.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LaunchLocal {
    /// Its name in the launch.
    pub name: String,
    /// Its name in the body.
    pub value: String,
    pub span: Range<usize>,
}

impl FromStr for Launch {
    type Err = SyntaxError;

    /// Parses the text form: `launch add_kernel grid=ceil_div(n, 1024) block=128`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        let read = parser.launch("the end", None);
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
            return Ok((signature, self.launch(ITEM, None)?));
        }
        // the error that was found may be a missing `@`
        Ok((signature, Launch::new("")))
    }

    /// The launch of a host function, up to the end of the source.
    pub(crate) fn host_launch(&mut self) -> Parsed<(Launch, HostItems)> {
        let mut host = HostItems::default();
        let launch = self.launch(HOST_ITEM, Some(&mut host))?;
        Ok((launch, host))
    }

    /// A launch up to the end of the source; `expected` describes what else could be there. If there are errors, the
    /// returned launch is incomplete.
    fn launch(&mut self, expected: &str, mut host: Option<&mut HostItems>) -> Parsed<Launch> {
        if !self.eat(Token::Name("launch")) {
            return Err(self.expected("`launch`"));
        }
        let mut launch = Launch::new(self.spanned_label("the name of the kernel's entry")?.0);
        let mut seen = Vec::new();
        while self.tokens.peek().1 != Token::End {
            let start = self.tokens.mark();
            launch = match self.item(launch, &mut seen, expected, host.as_deref_mut()) {
                Ok(launch) => launch,
                Err(error) => {
                    self.recover_at_item(error, start)?;
                    Launch::new("")
                }
            };
        }
        Ok(launch)
    }

    fn item(
        &mut self,
        launch: Launch,
        seen: &mut Vec<&'a str>,
        expected: &str,
        host: Option<&mut HostItems>,
    ) -> Parsed<Launch> {
        let (pos, Token::Name(name)) = self.tokens.peek() else { return Err(self.expected(expected)) };
        if seen.contains(&name) {
            return Err(self.error(pos, format!("`{name}` is given twice")));
        }
        let item = if host.is_some() { HOST_ITEM } else { ITEM };
        let of_host = host.filter(|_| matches!(name, "image" | "values"));
        let value = VALUES.contains(&name) || of_host.is_some();
        if !value && !FLAGS.contains(&name) {
            return Err(self.expected(item));
        }
        self.tokens.next();
        if value {
            self.expect(Token::Equals)?;
        }
        seen.push(name);
        if let Some(host) = of_host {
            match name {
                "image" => host.images = Some(self.image_names()?),
                _ => host.values = Some(self.value_names()?),
            }
            return Ok(launch);
        }
        Ok(match name {
            "cooperative" => launch.cooperative(),
            "programmatic_dependent_launch" => launch.programmatic_dependent_launch(),
            "non_portable_cluster" => launch.non_portable_cluster(),
            "grid" => launch.grid(self.extents()?),
            "block" => launch.block(self.extents()?),
            "cluster" => launch.cluster(self.extents()?),
            "preferred_cluster" => launch.preferred_cluster(self.extents()?),
            "shared_memory" => launch.shared_memory(self.dim(dims::OPERAND)?),
            "stream" => launch.stream(self.name("the name of a stream")?),
            "priority" => launch.priority(self.small("a priority")?),
            "cluster_scheduling" => {
                launch.cluster_scheduling(self.word(ClusterScheduling::ALL, |policy| policy.word())?)
            }
            "memory_sync_domain" => {
                launch.memory_sync_domain(self.word(MemorySyncDomain::ALL, |domain| domain.word())?)
            }
            "shared_memory_carveout" => launch.shared_memory_carveout(self.small("a percentage")?),
            "globals" => {
                self.expect(Token::OpenList)?;
                self.rest_of_globals(launch)?
            }
            "on_load" => launch.on_load(self.spanned_label("the name of a global function")?.0),
            "on_unload" => launch.on_unload(self.spanned_label("the name of a global function")?.0),
            "completion_event" => launch.completion_event(self.name("the name of an event")?),
            _ => {
                self.expect(Token::OpenList)?;
                launch.args(self.rest_of_args(Token::CloseList)?)
            }
        })
    }

    fn rest_of_globals(&mut self, mut launch: Launch) -> Parsed<Launch> {
        while !self.eat(Token::CloseList) {
            let (name, _) = self.spanned_label("the name of a global variable or `]`")?;
            self.expect(Token::Equals)?;
            launch = launch.global(name, self.arg(0)?);
            self.separator(Token::CloseList)?;
        }
        Ok(launch)
    }

    /// One of the words that `word` gives for `all`.
    fn word<T: Copy>(&mut self, all: &[T], word: impl Fn(T) -> &'static str) -> Parsed<T> {
        let found = match self.tokens.peek().1 {
            Token::Name(name) => all.iter().copied().find(|known| word(*known) == name),
            _ => None,
        };
        let Some(found) = found else {
            let words: Vec<String> = all.iter().map(|known| format!("`{}`", word(*known))).collect();
            return Err(self.expected(&words.join(" or ")));
        };
        self.tokens.next();
        Ok(found)
    }

    /// A name or a text, with its bytes in the source.
    pub(crate) fn spanned_label(&mut self, what: &str) -> Parsed<(String, Range<usize>)> {
        let start = self.tokens.peek().0.offset();
        let label = match self.tokens.peek().1 {
            Token::Text(_) => self.string(what)?,
            _ => self.name(what)?.to_owned(),
        };
        Ok((label, start..self.tokens.end_of_last()))
    }

    /// The name of an image, or a list of names.
    fn image_names(&mut self) -> Parsed<Vec<(String, Range<usize>)>> {
        if !self.eat(Token::OpenList) {
            return Ok(vec![self.spanned_label("the name of an image, or `[`")?]);
        }
        let mut names = Vec::new();
        while !self.eat(Token::CloseList) {
            names.push(self.spanned_label("the name of an image, or `]`")?);
            self.separator(Token::CloseList)?;
        }
        Ok(names)
    }

    fn value_names(&mut self) -> Parsed<Vec<LaunchLocal>> {
        self.expect(Token::OpenList)?;
        let mut names = Vec::new();
        while !self.eat(Token::CloseList) {
            let start = self.tokens.peek().0.offset();
            let name = self.name("a value's name or `]`")?.to_owned();
            let value = match self.eat(Token::Equals) {
                true => self.name("the name of a value of the body")?.to_owned(),
                false => name.clone(),
            };
            names.push(LaunchLocal { name, value, span: start..self.tokens.end_of_last() });
            self.separator(Token::CloseList)?;
        }
        Ok(names)
    }
}
