//! Disassembles code for this machine.

use std::ops::Range;

/// An instruction as a string, or bytes that are not an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Decoded {
    /// Its range, in bytes from the function's start.
    pub place: Range<u32>,
    pub text: String,
}

/// A reference from code to a symbol: the offset of the field, and the name.
pub(super) type Reference = (u32, String);

/// The number of undecoded bytes per line.
const BYTES_A_LINE: u32 = 8;

/// Returns the instructions of `code` in the range `instructions`, and then the bytes after them.
///
/// If the crate has no decoder for this machine, or is built without one, all code is returned as bytes, in pieces that
/// begin at `boundaries`.
pub(super) fn disassemble(
    code: &[u8],
    instructions: Range<u32>,
    references: &[Reference],
    boundaries: impl IntoIterator<Item = u32>,
) -> Vec<Decoded> {
    let end = code.len() as u32;
    let mut lines = decode(code, instructions.clone(), references, boundaries);
    lines.extend(bytes(code, instructions.end..end, references));
    lines
}

#[cfg(all(feature = "disassembly", target_arch = "x86_64"))]
fn decode(
    code: &[u8],
    instructions: Range<u32>,
    references: &[Reference],
    _boundaries: impl IntoIterator<Item = u32>,
) -> Vec<Decoded> {
    use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

    let text = &code[instructions.start as usize..instructions.end as usize];
    let mut decoder = Decoder::with_ip(64, text, u64::from(instructions.start), DecoderOptions::NONE);
    let names = names::Names::of(references);
    let mut formatter = GasFormatter::with_options(Some(Box::new(names)), None);
    let options = formatter.options_mut();
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_space_after_operand_separator(true);
    let mut out = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let place = instruction.ip() as u32..instruction.next_ip() as u32;
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        out.push(Decoded { place, text });
    }
    out
}

#[cfg(all(feature = "disassembly", target_arch = "x86_64"))]
mod names {
    use iced_x86::{Instruction, SymbolResolver, SymbolResult};

    use super::Reference;

    /// Prints names in place of the numbers that a linker fills in.
    pub(super) struct Names(Vec<Reference>);

    impl Names {
        pub(super) fn of(references: &[Reference]) -> Self {
            Names(references.to_vec())
        }
    }

    impl SymbolResolver for Names {
        fn symbol(
            &mut self,
            instruction: &Instruction,
            _operand: u32,
            instruction_operand: Option<u32>,
            address: u64,
            _address_size: u32,
        ) -> Option<SymbolResult<'_>> {
            // an instruction with several numbers has the linker's number last; a number without an operand is not part
            // of the code
            instruction_operand?;
            let place = instruction.ip()..instruction.next_ip();
            let (_, name) = self.0.iter().find(|(offset, _)| place.contains(&u64::from(*offset)))?;
            Some(SymbolResult::with_str(address, name))
        }
    }
}

#[cfg(not(all(feature = "disassembly", target_arch = "x86_64")))]
fn decode(
    code: &[u8],
    instructions: Range<u32>,
    references: &[Reference],
    boundaries: impl IntoIterator<Item = u32>,
) -> Vec<Decoded> {
    let mut starts: Vec<u32> = boundaries.into_iter().chain([instructions.start, instructions.end]).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.windows(2).flat_map(|pair| bytes(code, pair[0]..pair[1], references)).collect()
}

/// Bytes printed as such.
fn bytes(code: &[u8], place: Range<u32>, references: &[Reference]) -> Vec<Decoded> {
    let mut out = Vec::new();
    for start in place.clone().step_by(BYTES_A_LINE as usize) {
        let place = start..(start + BYTES_A_LINE).min(place.end);
        let shown: Vec<String> =
            code[place.start as usize..place.end as usize].iter().map(|byte| format!("{byte:#04x}")).collect();
        let mut text = format!(".byte {}", shown.join(", "));
        for (_, name) in references.iter().filter(|(offset, _)| place.contains(offset)) {
            text.push_str("    # ");
            text.push_str(name);
        }
        out.push(Decoded { place, text });
    }
    out
}
