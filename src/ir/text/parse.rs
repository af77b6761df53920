//! Reads the text of a module: its functions, data, locations and lists of functions.

use std::str::FromStr;

use target_lexicon::Endianness;

use super::body::read_body;
use super::error::ParseError;
use super::head::prototype;
use super::lex::{Parsed, Token, Tokens};
use super::scope::{Scope, function, symbol};
use crate::ir::inst::{DataRef, FuncRef, LocationRef};
use crate::ir::module::{Data, DataKind, FuncDecl, Linkage, LocationData, Module};

/// The maximum size of all states of a text in bytes. Their zeros aren't in the text, so they could be larger than it.
const MAX_STATE: usize = 1 << 26;

impl FromStr for Module {
    type Err = ParseError;

    /// Reads the text of a module, as `Display` prints it. The module isn't verified.
    ///
    /// # Errors
    /// The first mistake. Takes linear time. States of a text have at most 64 MiB.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut module = Module::for_endianness(Endianness::Little);
        let mut tokens = Tokens::new(text)?;
        let mut reader = Reader { tokens: &mut tokens, scope: Scope::default(), later: Vec::new(), state_bytes: 0 };
        while reader.tokens.peek() != Token::End {
            reader.item(&mut module)?;
        }
        reader.finish(&mut module)?;
        Ok(module)
    }
}

/// The parts that refer to functions. The reader handles them after it has declared all functions.
enum Later {
    /// Code, from after its `{` on.
    Body(FuncRef),
    /// The function's address at an offset in data.
    Address(DataRef, u32),
    Constructor,
    Destructor,
}

struct Reader<'t, 'a> {
    tokens: &'t mut Tokens<'a>,
    scope: Scope<'a>,
    /// Each with the index of its first token.
    later: Vec<(usize, Later)>,
    /// The size of the states so far.
    state_bytes: usize,
}

impl<'a> Reader<'_, 'a> {
    /// A declaration, or all of a function.
    fn item(&mut self, module: &mut Module) -> Parsed<()> {
        if let Token::Word(word) = self.tokens.peek() {
            if let Some(linkage) = Linkage::from_word(word) {
                self.tokens.take();
                return self.function(module, linkage);
            }
            match word {
                "constructor" | "destructor" => {
                    self.tokens.take();
                    let later = if word == "constructor" { Later::Constructor } else { Later::Destructor };
                    self.later.push((self.tokens.mark(), later));
                    self.tokens.sign("@")?;
                    symbol(self.tokens)?;
                    return self.tokens.line_end();
                }
                "endian" => {
                    self.tokens.take();
                    self.tokens.this_word("big")?;
                    module.endianness = Endianness::Big;
                    return self.tokens.line_end();
                }
                _ => {}
            }
        }
        const EXPECTED: &str = "a function, data or a location";
        let is_data = |token| matches!(token, Token::Text(_) | Token::Word("variable" | "state"));
        let (at, after) = (self.tokens.at(), self.tokens.peek_behind(1));
        if !is_data(after) {
            return Err(self.tokens.error(EXPECTED));
        }
        let name = self.tokens.word(EXPECTED)?;
        let new = if self.tokens.peek_behind(1) == Token::Sign(":") {
            let location = self.location(module)?;
            self.scope.locations.insert(name, location).is_none()
        } else {
            let data = self.data(module)?;
            self.scope.data.insert(name, data).is_none()
        };
        if !new {
            return Err(self.tokens.error_at(at, "a new name", format!("`{name}`, which is defined already")));
        }
        self.tokens.line_end()
    }

    fn function(&mut self, module: &mut Module, linkage: Linkage) -> Parsed<()> {
        self.tokens.this_word("fn")?;
        let name = symbol(self.tokens)?;
        let (signature, param_facts) = prototype(self.tokens)?;
        let func = module.declare(name, signature, linkage);
        let cold = self.tokens.takes_word("cold");
        module.functions[func] = FuncDecl { cold, param_facts, ..module.functions[func].clone() };
        if !self.tokens.takes_sign("{") {
            return self.tokens.line_end();
        }
        self.later.push((self.tokens.mark(), Later::Body(func)));
        while !self.tokens.takes_sign("}") {
            if self.tokens.take() == Token::End {
                return Err(self.tokens.error("`}`"));
            }
        }
        self.tokens.line_end()
    }

    /// `"file":12 in "function"`
    fn location(&mut self, module: &mut Module) -> Parsed<LocationRef> {
        let file = self.tokens.string()?;
        self.tokens.sign(":")?;
        let line = self.tokens.integer("a line")?;
        self.tokens.this_word("in")?;
        let function = self.tokens.string()?;
        Ok(module.location(LocationData { file, line, function }))
    }

    /// `variable "name" align 8 = "contents", 0: @function`
    fn data(&mut self, module: &mut Module) -> Parsed<DataRef> {
        let kind = if self.tokens.takes_word("variable") {
            DataKind::Variable
        } else if self.tokens.takes_word("state") {
            DataKind::State
        } else {
            DataKind::Constant
        };
        let name = self.tokens.string()?;
        self.tokens.this_word("align")?;
        let align = self.tokens.integer("an alignment in bytes")?;
        let bytes = match kind {
            DataKind::State => self.zeros()?,
            DataKind::Constant | DataKind::Variable => {
                self.tokens.sign("=")?;
                self.tokens.bytes()?
            }
        };
        let data = module.data.push(Data { name, bytes, align, kind, addresses: Vec::new() });
        while self.tokens.takes_sign(",") {
            let offset = self.tokens.integer("an offset in bytes")?;
            self.tokens.sign(":")?;
            self.later.push((self.tokens.mark(), Later::Address(data, offset)));
            self.tokens.sign("@")?;
            symbol(self.tokens)?;
        }
        Ok(data)
    }

    /// `, 24 bytes`
    fn zeros(&mut self) -> Parsed<Vec<u8>> {
        self.tokens.sign(",")?;
        let at = self.tokens.at();
        let size: usize = self.tokens.integer("a number of bytes")?;
        self.tokens.this_word("bytes")?;
        self.state_bytes = self.state_bytes.saturating_add(size);
        if self.state_bytes > MAX_STATE {
            let found = format!("{} bytes", self.state_bytes);
            return Err(self.tokens.error_at(at, "states of at most 64 MiB in all", found));
        }
        Ok(vec![0; size])
    }

    /// Reads what refers to functions.
    fn finish(self, module: &mut Module) -> Parsed<()> {
        for (mark, later) in self.later {
            self.tokens.go_to(mark);
            match later {
                Later::Body(func) => {
                    let body = read_body(self.tokens, module, &self.scope)?;
                    module.functions[func].body = Some(body);
                }
                Later::Address(data, offset) => {
                    let func = function(self.tokens, module)?;
                    module.data[data].addresses.push((offset, func));
                }
                Later::Constructor => module.constructors.push(function(self.tokens, module)?),
                Later::Destructor => module.destructors.push(function(self.tokens, module)?),
            }
        }
        Ok(())
    }
}
