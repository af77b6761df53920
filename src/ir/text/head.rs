//! Reads the parts of a function's head: parameters, results and facts.

use super::lex::{Parsed, Token, Tokens};
use crate::ir::types::{AbiParam, Extension, FuncSig, PointerFacts, StructLayout, Type};

/// `i64`, `ptr`, ...
pub(super) fn type_of(tokens: &mut Tokens<'_>) -> Parsed<Type> {
    tokens.known("a type", Type::from_word)
}

/// `(ptr, i32 sext) -> i64`
pub(super) fn signature(tokens: &mut Tokens<'_>) -> Parsed<FuncSig> {
    let params = tokens.list(abi_param)?;
    Ok(FuncSig { params, ret: result(tokens)? })
}

/// A signature with the facts of its parameters, which are empty if there are none.
pub(super) fn prototype(tokens: &mut Tokens<'_>) -> Parsed<(FuncSig, Vec<PointerFacts>)> {
    let params = tokens.list(|tokens| Ok((abi_param(tokens)?, facts(tokens)?)))?;
    let (params, facts): (Vec<AbiParam>, Vec<PointerFacts>) = params.into_iter().unzip();
    let stated = facts.iter().any(|facts| *facts != PointerFacts::NONE);
    let signature = FuncSig { params, ret: result(tokens)? };
    Ok((signature, if stated { facts } else { Vec::new() }))
}

fn result(tokens: &mut Tokens<'_>) -> Parsed<Option<AbiParam>> {
    if tokens.takes_sign("->") { abi_param(tokens).map(Some) } else { Ok(None) }
}

fn abi_param(tokens: &mut Tokens<'_>) -> Parsed<AbiParam> {
    let mut param = AbiParam::new(type_of(tokens)?);
    while tokens.takes_word("struct") {
        if tokens.peek() == Token::Sign("(") {
            param.by_value = Some(layout(tokens)?);
        } else {
            param.aggregate = true;
        }
    }
    if tokens.takes_word("sext") {
        param.ext = Extension::Signed;
    } else if tokens.takes_word("zext") {
        param.ext = Extension::Unsigned;
    }
    Ok(param)
}

/// `(size=16, align=8, 0: f64, 8: i32)`
fn layout(tokens: &mut Tokens<'_>) -> Parsed<StructLayout> {
    let (at, mut size, mut align, mut scalars) = (tokens.at(), 0, 0, Vec::new());
    tokens.list(|tokens| {
        for (name, number) in [("size", &mut size), ("align", &mut align)] {
            if tokens.takes_word(name) {
                tokens.sign("=")?;
                *number = tokens.integer("a number of bytes")?;
                return Ok(());
            }
        }
        let offset: u32 = tokens.integer("`size`, `align` or the offset of a scalar")?;
        tokens.sign(":")?;
        scalars.push((offset, type_of(tokens)?));
        Ok(())
    })?;
    let layout = StructLayout::new(size, align, scalars);
    layout.ok_or_else(|| tokens.error_at(at, "the layout of a C struct", "one that no struct has"))
}

fn facts(tokens: &mut Tokens<'_>) -> Parsed<PointerFacts> {
    let mut facts = PointerFacts::NONE;
    loop {
        match tokens.peek() {
            Token::Word("nonnull") => facts.nonnull = true,
            Token::Word("noalias") => facts.noalias = true,
            Token::Word("readonly") => facts.readonly = true,
            Token::Word("dereferenceable") => {
                tokens.take();
                facts.dereferenceable = tokens.integer("a number of bytes")?;
                continue;
            }
            Token::Word("align") => {
                tokens.take();
                facts.align = tokens.integer("an alignment in bytes")?;
                continue;
            }
            _ => return Ok(facts),
        }
        tokens.take();
    }
}
