//! The functions, data and locations of the module, which the text's code refers to by name.

use std::borrow::Cow;
use std::collections::HashMap;

use super::lex::{Parsed, Token, Tokens};
use crate::ir::inst::{DataRef, FuncRef, LocationRef};
use crate::ir::module::Module;

/// The names of data and locations in a text.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub(super) data: HashMap<&'a str, DataRef>,
    pub(super) locations: HashMap<&'a str, LocationRef>,
}

/// A symbol's name, in quotes or as a word.
pub(super) fn symbol<'a>(tokens: &mut Tokens<'a>) -> Parsed<Cow<'a, str>> {
    match tokens.peek() {
        Token::Text(_) => tokens.string().map(Cow::Owned),
        _ => tokens.word("a symbol").map(Cow::Borrowed),
    }
}

/// `@name`: a function of the module.
pub(super) fn function(tokens: &mut Tokens<'_>, module: &Module) -> Parsed<FuncRef> {
    let at = tokens.at();
    tokens.sign("@")?;
    let name = symbol(tokens)?;
    let found = module.function_named(&name).map(|(func, _)| func);
    found.ok_or_else(|| tokens.error_at(at, "a function of the module", format!("`@{name}`")))
}
