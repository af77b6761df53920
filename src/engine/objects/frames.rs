//! Unwind tables of objects (`.eh_frame`), parsed as strictly as this process's unwinders require.
//!
//! Unwinders trust registered tables: libgcc's aborts the process on unexpected contents, and follows lengths without
//! checks. So a table is accepted only if libgcc can read each of its entries. LLVM's unwinder can read all of these
//! too. The format is defined in "Linux Standard Base Core Specification, Generic Part", 10.6, and "DWARF Debugging
//! Information Format", 6.4.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde, EhFrame, EndianSlice, LittleEndian,
    Operation, Register, UnwindExpression, UnwindSection, Vendor,
};
use object::Architecture;

/// An unwind table.
#[derive(Default)]
pub(super) struct FrameTable {
    /// The functions' entries (FDEs), in order.
    pub(super) functions: Vec<FrameDescription>,
    /// The personality functions, which language runtimes call for their frames.
    pub(super) personalities: Vec<Pointer>,
}

/// The entry of a function (FDE).
pub(super) struct FrameDescription {
    pub(super) start: Pointer,
    /// The function's size, which follows its start.
    pub(super) size: Pointer,
    /// The language-specific data.
    pub(super) data: Option<Pointer>,
}

/// A pointer in a table.
#[derive(Clone, Copy)]
pub(super) struct Pointer {
    /// Its offset in the table.
    pub(super) at: usize,
    encoding: u8,
}

/// The encodings of pointers, `DW_EH_PE_...`.
mod encoding {
    pub(super) const ABSOLUTE: u8 = 0;
    pub(super) const OMITTED: u8 = 0xff;
    pub(super) const FORMAT: u8 = 0x0f;
    pub(super) const RELATIVE_TO: u8 = 0x70;
    pub(super) const TO_ITSELF: u8 = 0x10;
    pub(super) const INDIRECT: u8 = 0x80;
}

/// The size in bytes of a pointer format, and whether it is signed. libgcc aborts the process on all others when it
/// sorts functions.
fn format(encoding: u8) -> Option<(usize, bool)> {
    match encoding & encoding::FORMAT {
        0x00 | 0x04 => Some((8, false)),
        0x02 => Some((2, false)),
        0x03 => Some((4, false)),
        0x0a => Some((2, true)),
        0x0b => Some((4, true)),
        0x0c => Some((8, true)),
        _ => None,
    }
}

impl Pointer {
    /// The pointer's size in the table, in bytes.
    pub(super) fn len(self) -> usize {
        format(self.encoding).map_or(0, |(bytes, _)| bytes)
    }

    /// Whether the pointer refers to a word that contains the address.
    #[cfg(all(feature = "cranelift", unix))]
    pub(super) fn is_indirect(self) -> bool {
        self.encoding & encoding::INDIRECT != 0
    }

    /// The pointer's value; `address` is that of the table. A NULL pointer is 0 in every encoding.
    pub(super) fn read(self, table: &[u8], address: u64) -> Option<u64> {
        let (len, is_signed) = format(self.encoding)?;
        let bytes = table.get(self.at..self.at.checked_add(len)?)?;
        let fill = if is_signed && bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
        let mut word = [fill; 8];
        word[..len].copy_from_slice(bytes);
        let value = u64::from_le_bytes(word);
        let is_relative = self.encoding & encoding::RELATIVE_TO == encoding::TO_ITSELF;
        Some(if is_relative && value != 0 { value.wrapping_add(address + self.at as u64) } else { value })
    }
}

impl FrameDescription {
    /// The address range of the function's code.
    #[cfg(all(feature = "cranelift", unix))]
    pub(super) fn code(&self, table: &[u8], address: u64) -> Option<std::ops::Range<u64>> {
        let start = self.start.read(table, address)?;
        Some(start..start.checked_add(self.size.read(table, address)?)?)
    }
}

/// A problem with a table, as a message.
type Problem = String;

/// The properties that entries of functions (FDEs) take from their common entry (CIE).
struct Common {
    has_augmentation: bool,
    start: u8,
    data: u8,
}

/// The bytes of an entry.
struct Bytes<'a> {
    table: &'a [u8],
    at: usize,
    end: usize,
}

impl Bytes<'_> {
    fn take(&mut self, len: usize) -> Result<usize, Problem> {
        let start = self.at;
        let end = start.checked_add(len).filter(|&end| end <= self.end).ok_or("an entry ends in its middle")?;
        self.at = end;
        Ok(start)
    }

    fn byte(&mut self) -> Result<u8, Problem> {
        Ok(self.table[self.take(1)?])
    }

    fn word(&mut self) -> Result<u32, Problem> {
        let at = self.take(4)?;
        Ok(self.table[at..at + 4].iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)))
    }

    /// A LEB128 number of any length; only its low 64 bits count. Signed numbers return their bits.
    fn leb(&mut self) -> Result<u64, Problem> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number of more than 64 bits".to_owned())
    }

    /// A pointer in an encoding; `None` if it is omitted.
    fn pointer(&mut self, encoding: u8) -> Result<Option<Pointer>, Problem> {
        if encoding == encoding::OMITTED {
            return Ok(None);
        }
        let pointer = Pointer { at: self.at, encoding };
        self.take(pointer.len())?;
        Ok(Some(pointer))
    }
}

/// The augmentation data of an entry, which is preceded by its size.
fn augmentation<'a>(bytes: &mut Bytes<'a>) -> Result<Bytes<'a>, Problem> {
    let len = usize::try_from(bytes.leb()?).map_err(|_| "an entry ends in its middle")?;
    let start = bytes.take(len)?;
    Ok(Bytes { table: bytes.table, at: start, end: start + len })
}

/// Checks that libgcc can read an encoding for this kind of pointer.
fn known(encoding: u8, may_be_indirect: bool) -> Result<u8, Problem> {
    let relative_to = encoding & encoding::RELATIVE_TO;
    let is_known = format(encoding).is_some()
        && matches!(relative_to, encoding::ABSOLUTE | encoding::TO_ITSELF)
        && (may_be_indirect || encoding & encoding::INDIRECT == 0);
    if is_known { Ok(encoding) } else { Err(format!("a pointer of the encoding {encoding:#04x}")) }
}

impl FrameTable {
    /// Parses a table. Its pointers may not be relocated yet.
    ///
    /// # Errors
    /// The table contains something that libgcc can't read.
    pub(super) fn read(table: &[u8], architecture: Architecture) -> Result<Self, Problem> {
        let mut read = FrameTable::default();
        let mut commons = HashMap::new();
        let mut at = 0;
        // a table is terminated by zeros
        while at < table.len() {
            let mut bytes = Bytes { table, at, end: table.len() };
            let len = bytes.word()?;
            if len == 0 {
                break;
            }
            if len >= 0xffff_fff0 {
                return Err("an entry of the 64-bit format".to_owned());
            }
            let start = bytes.take(len as usize)?;
            bytes = Bytes { table, at: start, end: bytes.at };
            match bytes.word()? {
                0 => drop(commons.insert(at, read.common(&mut bytes, architecture)?)),
                distance => {
                    let common = start.checked_sub(distance as usize).and_then(|at| commons.get(&at));
                    read.functions.push(FrameDescription::read(&mut bytes, common.ok_or("a function without a CIE")?)?);
                }
            }
            at = start + len as usize;
        }
        check_programs(&table[..at], architecture)?;
        Ok(read)
    }

    /// The pointers that may have relocations.
    #[cfg(feature = "_llvm")]
    pub(super) fn pointers(&self) -> impl Iterator<Item = Pointer> {
        let of_functions = self.functions.iter().flat_map(|frame| [Some(frame.start), frame.data]);
        self.personalities.iter().copied().chain(of_functions.flatten())
    }

    /// Parses a common entry (CIE).
    fn common(&mut self, bytes: &mut Bytes<'_>, architecture: Architecture) -> Result<Common, Problem> {
        let version = bytes.byte()?;
        if !matches!(version, 1 | 3) {
            return Err(format!("a CIE of version {version}"));
        }
        let mut letters = Vec::new();
        loop {
            match bytes.byte()? {
                0 => break,
                letter => letters.push(letter),
            }
        }
        // the code and data alignment factors
        bytes.leb()?;
        bytes.leb()?;
        let register = if version == 1 { u64::from(bytes.byte()?) } else { bytes.leb()? };
        if register > u64::from(last_register(architecture)) {
            return Err(format!("the return address in register {register}"));
        }
        let mut common = Common { has_augmentation: false, start: encoding::ABSOLUTE, data: encoding::OMITTED };
        let Some((first, letters)) = letters.split_first() else { return Ok(common) };
        let unknown = |letter: u8| Err(format!("an augmentation `{}`", letter.escape_ascii()));
        if *first != b'z' {
            return unknown(*first);
        }
        common.has_augmentation = true;
        let mut data = augmentation(bytes)?;
        for (index, &letter) in letters.iter().enumerate() {
            let before = &letters[..index];
            match letter {
                _ if before.contains(&letter) => return unknown(letter),
                // libgcc's search for `R` stops at `S` and `B`
                b'R' if !before.iter().any(|known| matches!(known, b'S' | b'B')) => {
                    common.start = known(data.byte()?, false)?;
                }
                b'P' => {
                    let encoding = known(data.byte()?, true)?;
                    self.personalities.extend(data.pointer(encoding)?);
                }
                b'L' => {
                    common.data = data.byte()?;
                    if common.data != encoding::OMITTED {
                        known(common.data, false)?;
                    }
                }
                b'S' => {}
                b'B' if matches!(architecture, Architecture::Aarch64) => {}
                letter => return unknown(letter),
            }
        }
        Ok(common)
    }
}

impl FrameDescription {
    fn read(bytes: &mut Bytes<'_>, common: &Common) -> Result<Self, Problem> {
        let missing = || "a function without a start".to_owned();
        let start = bytes.pointer(common.start)?.ok_or_else(missing)?;
        let size = bytes.pointer(common.start & encoding::FORMAT)?.ok_or_else(missing)?;
        let data = match common.has_augmentation {
            true => augmentation(bytes)?.pointer(common.data)?,
            false => None,
        };
        Ok(FrameDescription { start, size, data })
    }
}

/// The last register that libgcc's unwinder supports (`DWARF_FRAME_REGISTERS`).
fn last_register(architecture: Architecture) -> u16 {
    if architecture == Architecture::Aarch64 { 96 } else { 16 }
}

/// The maximum number of remembered states in an entry, and of values on an expression's stack. libgcc has room for 64
/// values.
const DEPTH: usize = 64;

/// Checks the instructions that the unwinder executes.
fn check_programs(table: &[u8], architecture: Architecture) -> Result<(), Problem> {
    let mut section = EhFrame::new(table, LittleEndian);
    section.set_address_size(8);
    if architecture == Architecture::Aarch64 {
        section.set_vendor(Vendor::AArch64);
    }
    let bases = BaseAddresses::default().set_eh_frame(0);
    let broken = |error: gimli::Error| error.to_string();
    let mut entries = section.entries(&bases);
    while let Some(entry) = entries.next().map_err(broken)? {
        let mut program = Program { section: &section, architecture, has_frame: false, aside: 0 };
        let CieOrFde::Fde(partial) = entry else { continue };
        let entry = partial.parse(|table, bases, offset| table.cie_from_offset(bases, offset)).map_err(broken)?;
        program.run(entry.cie().instructions(&section, &bases))?;
        program.run(entry.instructions(&section, &bases))?;
        if !program.has_frame {
            return Err("a function without a frame".to_owned());
        }
    }
    Ok(())
}

type Section<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

/// The state while checking the instructions of a frame.
struct Program<'a> {
    section: &'a Section<'a>,
    architecture: Architecture,
    /// Whether the frame address (CFA) is defined.
    has_frame: bool,
    /// The number of remembered states.
    aside: usize,
}

impl<'a> Program<'a> {
    fn run(
        &mut self,
        mut instructions: CallFrameInstructionIter<'_, EndianSlice<'a, LittleEndian>>,
    ) -> Result<(), Problem> {
        use CallFrameInstruction as Is;
        while let Some(instruction) = instructions.next().map_err(|error| error.to_string())? {
            match instruction {
                Is::DefCfa { register, .. } | Is::DefCfaSf { register, .. } | Is::DefCfaRegister { register } => {
                    self.check_read(register)?;
                    self.has_frame = true;
                }
                Is::DefCfaExpression { expression } => {
                    self.check_expression(expression, 0)?;
                    self.has_frame = true;
                }
                Is::Register { src_register, .. } => self.check_read(src_register)?,
                Is::Expression { expression, .. } | Is::ValExpression { expression, .. } => {
                    self.check_expression(expression, 1)?;
                }
                Is::RememberState if self.aside == DEPTH => return Err("too many states that are kept".to_owned()),
                Is::RememberState => self.aside += 1,
                Is::RestoreState => {
                    self.aside = self.aside.checked_sub(1).ok_or("a state that was never kept")?;
                }
                // the unwinder ignores rules for registers that it doesn't have
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that the unwinder has a register that it would read.
    fn check_read(&self, register: Register) -> Result<(), Problem> {
        if register.0 <= last_register(self.architecture) { Ok(()) } else { Err(format!("register {}", register.0)) }
    }

    /// Checks an expression. Jumps, which might not end, and divisions, which might be by 0, are rejected; compilers
    /// generate neither.
    fn check_expression(&self, expression: UnwindExpression<usize>, mut depth: usize) -> Result<(), Problem> {
        use Operation as Is;
        let broken = |error: gimli::Error| error.to_string();
        let expression = expression.get(self.section).map_err(broken)?;
        let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let mut operations = expression.operations(encoding);
        while let Some(operation) = operations.next().map_err(broken)? {
            // the numbers of values popped and pushed
            let (takes, gives) = match operation {
                Is::UnsignedConstant { .. } | Is::SignedConstant { .. } => (0, 1),
                Is::RegisterOffset { register, base_type, .. } if base_type.0 == 0 => {
                    self.check_read(register)?;
                    (0, 1)
                }
                Is::Deref { base_type, size: 1 | 2 | 4 | 8, space: false } if base_type.0 == 0 => (1, 1),
                Is::Abs | Is::Neg | Is::Not | Is::PlusConstant { .. } => (1, 1),
                Is::And | Is::Or | Is::Xor | Is::Plus | Is::Minus | Is::Mul | Is::Shl | Is::Shr | Is::Shra => (2, 1),
                Is::Eq | Is::Ge | Is::Gt | Is::Le | Is::Lt | Is::Ne => (2, 1),
                Is::Drop => (1, 0),
                Is::Pick { index } => (usize::from(index) + 1, usize::from(index) + 2),
                Is::Swap => (2, 2),
                Is::Rot => (3, 3),
                Is::Nop => (0, 0),
                _ => return Err("an expression with an unknown operation".to_owned()),
            };
            depth = depth.checked_sub(takes).ok_or("an expression that takes values which it hasn't")? + gives;
            if depth > DEPTH {
                return Err("an expression of too many values".to_owned());
            }
        }
        if depth == 0 { Err("an expression without a value".to_owned()) } else { Ok(()) }
    }
}
