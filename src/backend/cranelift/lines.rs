//! Cranelift's listings, with the IR lines that they were generated from.

use cranelift_module::ModuleRelocTarget;

use super::compiled::{CompiledFunction, CompiledModule};
use super::translate::{DATA, FUNCTIONS};
use crate::backend::TextLine;
use crate::backend::disassembly::{Reference, disassemble};
use crate::ir::LocationRef;

/// The indentation of CLIF's instructions.
const INDENT: &str = "    ";

/// The CLIF of a function, parsed from its listing with locations. CLIF prints a location such as `@001f` in the margin
/// of an instruction; all lines then have a margin of that width.
pub(super) fn clif(module: &CompiledModule, clif: &str) -> Vec<TextLine> {
    let line = |text: &str| {
        let trimmed = text.trim_start();
        if let Some((location, instruction)) = trimmed.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            let index = u32::from_str_radix(location, 16).ok();
            let ir_line = index.and_then(|index| ir_line(module, index));
            return TextLine { text: format!("{INDENT}{}", instruction.trim_start()), ir_line };
        }
        TextLine::plain(match text.len() - trimmed.len() {
            0 | 4 => text.to_owned(),
            // a block header, or an alias of a value
            _ if trimmed.starts_with("block") => trimmed.to_owned(),
            _ => format!("{INDENT}{trimmed}"),
        })
    };
    clif.lines().map(line).collect()
}

/// The machine code of `plain`. Lines get their origins from `located`, the same function compiled with locations.
pub(super) fn machine_code(
    module: &CompiledModule,
    plain: &CompiledFunction,
    located: &CompiledFunction,
) -> Vec<TextLine> {
    let lines = if plain.code == located.code { &located.lines[..] } else { &[] };
    // the constants follow the last instruction
    let end = located.lines.iter().map(|lines| lines.end).max().unwrap_or_default();
    let end = if lines.is_empty() { plain.code.len() as u32 } else { end };
    let boundaries = lines.iter().flat_map(|lines| [lines.start, lines.end]);
    let decoded = disassemble(&plain.code, 0..end, &references(module, plain), boundaries);
    let line = |offset: u32| {
        let at = lines.partition_point(|lines| lines.end <= offset);
        lines.get(at).filter(|lines| lines.start <= offset)
    };
    let with_origin = decoded.into_iter().map(|decoded| TextLine {
        text: format!("{:5x}: {}", decoded.place.start, decoded.text),
        ir_line: line(decoded.place.start).and_then(|lines| ir_line(module, lines.location.as_u32())),
    });
    [TextLine::plain(format!("{}:", plain.name))].into_iter().chain(with_origin).collect()
}

/// The line of the listing that a location of the compiled module stands for.
fn ir_line(module: &CompiledModule, location: u32) -> Option<u32> {
    module.locations.get(LocationRef::from_u32(location)).map(|location| location.line)
}

/// The symbols that a function's code refers to.
fn references(module: &CompiledModule, function: &CompiledFunction) -> Vec<Reference> {
    let name = |target: &ModuleRelocTarget| match target {
        ModuleRelocTarget::User { namespace: FUNCTIONS, index } => module.functions[*index as usize].name.clone(),
        ModuleRelocTarget::User { namespace: DATA, index } => match &module.data[*index as usize].variable {
            Some(variable) => variable.clone(),
            None => format!("data{index}"),
        },
        other => other.to_string(),
    };
    function.relocs.iter().map(|reloc| (reloc.offset, name(&reloc.name))).collect()
}
