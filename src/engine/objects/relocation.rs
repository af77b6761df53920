//! The relocations that compilers emit for kernels, as the processors' ELF supplements define them ("System V ABI,
//! AMD64 Architecture Processor Supplement", 4.4; "ELF for the Arm 64-bit Architecture", 5.7).

use object::{Architecture, elf};

/// A kind of relocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Relocation {
    pub(super) name: &'static str,
    pub(super) via: Via,
    pub(super) field: Field,
}

/// The address that a relocation uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Via {
    /// The symbol's.
    Symbol,
    /// The symbol's, or that of a stub that jumps there.
    Call,
    /// That of a word that contains the symbol's address.
    Got,
}

/// How an address `S + A` is encoded in a field at address `P`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    /// Not encoded.
    Nothing,
    /// 64 bits.
    Absolute64,
    /// 32 bits, zero-extended.
    Absolute32,
    /// 32 bits, sign-extended.
    Signed32,
    /// The distance from `P`, 64 bits.
    Relative64,
    /// The distance from `P`, 32 bits.
    Relative32,
    /// The distance in instructions, in the 26 bits of `b` and `bl`.
    Branch26,
    /// The distance in instructions, in the 19 bits of `b.cond`, `cbz` and `ldr` of a literal.
    Branch19,
    /// The distance in instructions, in the 14 bits of `tbz`.
    Branch14,
    /// The distance between the pages, in the 21 bits of `adrp`.
    Page21,
    /// The distance, in the 21 bits of `adr`.
    Address21,
    /// The offset in a page, shifted right by that many bits, in the 12 bits of `add`, `ldr` and `str`.
    PageOffset(u32),
    /// 16 bits starting at the given bit, for `movz` and `movk`; the flag says whether the higher bits must be 0.
    Piece16(u32, bool),
}

/// The target is out of the field's range, or isn't aligned as the instruction requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OutOfReach;

const fn howto(name: &'static str, via: Via, field: Field) -> Relocation {
    Relocation { name, via, field }
}

/// The relocation with this number; `None` if it is unsupported.
pub(super) fn find(architecture: Architecture, number: u32) -> Option<Relocation> {
    match architecture {
        Architecture::X86_64 => x86_64(number),
        Architecture::Aarch64 => aarch64(number),
        _ => None,
    }
}

macro_rules! relocations {
    ($($function:ident { $($name:ident: $via:ident, $field:expr;)* })*) => {
        $(
            fn $function(number: u32) -> Option<Relocation> {
                use Field::*;
                match number {
                    $(elf::$name => Some(howto(stringify!($name), Via::$via, $field)),)*
                    _ => None,
                }
            }
        )*
    };
}

relocations! {
    x86_64 {
        R_X86_64_NONE: Symbol, Nothing;
        R_X86_64_64: Symbol, Absolute64;
        R_X86_64_32: Symbol, Absolute32;
        R_X86_64_32S: Symbol, Signed32;
        R_X86_64_PC64: Symbol, Relative64;
        R_X86_64_PC32: Symbol, Relative32;
        R_X86_64_PLT32: Call, Relative32;
        R_X86_64_GOTPCREL: Got, Relative32;
        R_X86_64_GOTPCRELX: Got, Relative32;
        R_X86_64_REX_GOTPCRELX: Got, Relative32;
        // the large code model computes with the table's address, which is 0 here
        R_X86_64_GOTPC64: Symbol, Relative64;
        R_X86_64_GOTOFF64: Symbol, Absolute64;
        R_X86_64_PLTOFF64: Symbol, Absolute64;
        R_X86_64_GOT64: Got, Absolute64;
    }
    aarch64 {
        R_AARCH64_NONE: Symbol, Nothing;
        R_AARCH64_ABS64: Symbol, Absolute64;
        R_AARCH64_ABS32: Symbol, Absolute32;
        R_AARCH64_PREL64: Symbol, Relative64;
        R_AARCH64_PREL32: Symbol, Relative32;
        R_AARCH64_PLT32: Call, Relative32;
        R_AARCH64_CALL26: Call, Branch26;
        R_AARCH64_JUMP26: Call, Branch26;
        R_AARCH64_CONDBR19: Symbol, Branch19;
        R_AARCH64_LD_PREL_LO19: Symbol, Branch19;
        R_AARCH64_TSTBR14: Symbol, Branch14;
        R_AARCH64_ADR_PREL_LO21: Symbol, Address21;
        R_AARCH64_ADR_PREL_PG_HI21: Symbol, Page21;
        R_AARCH64_ADR_PREL_PG_HI21_NC: Symbol, Page21;
        R_AARCH64_ADD_ABS_LO12_NC: Symbol, PageOffset(0);
        R_AARCH64_LDST8_ABS_LO12_NC: Symbol, PageOffset(0);
        R_AARCH64_LDST16_ABS_LO12_NC: Symbol, PageOffset(1);
        R_AARCH64_LDST32_ABS_LO12_NC: Symbol, PageOffset(2);
        R_AARCH64_LDST64_ABS_LO12_NC: Symbol, PageOffset(3);
        R_AARCH64_LDST128_ABS_LO12_NC: Symbol, PageOffset(4);
        R_AARCH64_MOVW_UABS_G0: Symbol, Piece16(0, true);
        R_AARCH64_MOVW_UABS_G0_NC: Symbol, Piece16(0, false);
        R_AARCH64_MOVW_UABS_G1: Symbol, Piece16(16, true);
        R_AARCH64_MOVW_UABS_G1_NC: Symbol, Piece16(16, false);
        R_AARCH64_MOVW_UABS_G2: Symbol, Piece16(32, true);
        R_AARCH64_MOVW_UABS_G2_NC: Symbol, Piece16(32, false);
        R_AARCH64_MOVW_UABS_G3: Symbol, Piece16(48, true);
        R_AARCH64_ADR_GOT_PAGE: Got, Page21;
        R_AARCH64_LD64_GOT_LO12_NC: Got, PageOffset(3);
    }
}

impl Field {
    /// The width of the field in bytes.
    pub(super) fn width(self) -> usize {
        match self {
            Field::Nothing => 0,
            Field::Absolute64 | Field::Relative64 => 8,
            _ => 4,
        }
    }

    /// Whether the field can only hold addresses below 4 GiB.
    pub(super) fn needs_low_memory(self) -> bool {
        matches!(self, Field::Absolute32 | Field::Signed32)
    }

    /// Writes `target`, the address `S + A`, into a field of [`width`](Self::width) bytes whose address will be
    /// `place`.
    pub(super) fn write(self, bytes: &mut [u8], place: u64, target: u64) -> Result<(), OutOfReach> {
        let distance = target.wrapping_sub(place).cast_signed();
        match self {
            Field::Nothing => {}
            Field::Absolute64 => bytes.copy_from_slice(&target.to_le_bytes()),
            Field::Relative64 => bytes.copy_from_slice(&distance.to_le_bytes()),
            Field::Absolute32 => bytes.copy_from_slice(&u32::try_from(target).map_err(|_| OutOfReach)?.to_le_bytes()),
            Field::Signed32 => {
                let target = i32::try_from(target.cast_signed()).map_err(|_| OutOfReach)?;
                bytes.copy_from_slice(&target.to_le_bytes());
            }
            Field::Relative32 => {
                let distance = i32::try_from(distance).map_err(|_| OutOfReach)?;
                bytes.copy_from_slice(&distance.to_le_bytes());
            }
            Field::Branch26 => put(bytes, 0, 26, scaled(distance, 2, 26)?),
            Field::Branch19 => put(bytes, 5, 19, scaled(distance, 2, 19)?),
            Field::Branch14 => put(bytes, 5, 14, scaled(distance, 2, 14)?),
            Field::Page21 => {
                let pages = (target & !0xfff).wrapping_sub(place & !0xfff).cast_signed();
                put_address(bytes, scaled(pages, 12, 21)?);
            }
            Field::Address21 => put_address(bytes, scaled(distance, 0, 21)?),
            Field::PageOffset(unit) => {
                let offset = (target & 0xfff) as u32;
                if !offset.is_multiple_of(1 << unit) {
                    return Err(OutOfReach);
                }
                put(bytes, 10, 12, offset >> unit);
            }
            Field::Piece16(from, last) => {
                let rest = target >> from;
                if last && rest > 0xffff {
                    return Err(OutOfReach);
                }
                put(bytes, 5, 16, (rest & 0xffff) as u32);
            }
        }
        Ok(())
    }
}

/// A distance in units of `1 << unit` bytes, if it fits into a signed field of `bits` bits.
fn scaled(distance: i64, unit: u32, bits: u32) -> Result<u32, OutOfReach> {
    let units = distance >> unit;
    let fits = units >= -(1 << (bits - 1)) && units < 1 << (bits - 1) && units << unit == distance;
    // the caller cuts off the higher bits
    if fits { Ok(units as u32) } else { Err(OutOfReach) }
}

/// Puts bits into an instruction of four bytes.
fn put(bytes: &mut [u8], from: u32, bits: u32, value: u32) {
    let Some(instruction) = bytes.first_chunk_mut::<4>() else { return };
    let mask = ((1 << bits) - 1) << from;
    let new = u32::from_le_bytes(*instruction) & !mask | value << from & mask;
    *instruction = new.to_le_bytes();
}

/// Puts 21 bits into `adr` or `adrp`: the two lowest bits have a separate field.
fn put_address(bytes: &mut [u8], value: u32) {
    put(bytes, 29, 2, value);
    put(bytes, 5, 19, value >> 2);
}

/// The size of a stub, and its alignment.
pub(super) const STUB: usize = 16;

/// A stub that jumps to an address.
pub(super) fn stub(architecture: Architecture, target: u64) -> [u8; STUB] {
    let mut stub = [0; STUB];
    match architecture {
        Architecture::Aarch64 => {
            // ldr x16, .+8; br x16
            stub[..8].copy_from_slice(&[0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6]);
            stub[8..].copy_from_slice(&target.to_le_bytes());
        }
        _ => {
            // jmp *0(%rip)
            stub[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
            stub[6..14].copy_from_slice(&target.to_le_bytes());
        }
    }
    stub
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(field: Field, before: u32, place: u64, target: u64) -> Result<u32, OutOfReach> {
        let mut bytes = before.to_le_bytes();
        field.write(&mut bytes, place, target).map(|()| u32::from_le_bytes(bytes))
    }

    /// The expected instructions are LLVM's assembler output with resolved operands.
    #[test]
    fn instructions_of_aarch64_get_their_operands() {
        let cases = [
            // bl .+0x1000; b .-4
            (Field::Branch26, 0x9400_0000, 0x1000, 0x2000, 0x9400_0400),
            (Field::Branch26, 0x1400_0000, 0x1000, 0x0ffc, 0x17ff_ffff),
            // b.ne .+8; cbz x3, .-8; ldr x0, .+16
            (Field::Branch19, 0x5400_0001, 0x100, 0x108, 0x5400_0041),
            (Field::Branch19, 0xb400_0003, 0x100, 0x0f8, 0xb4ff_ffc3),
            (Field::Branch19, 0x5800_0000, 0x100, 0x110, 0x5800_0080),
            // tbz w0, #0, .+4
            (Field::Branch14, 0x3600_0000, 0x100, 0x104, 0x3600_0020),
            // adrp x0, .+0x3000; adrp x1, .-0x1000, from the middle of pages
            (Field::Page21, 0x9000_0000, 0x1ff8, 0x4010, 0xf000_0000),
            (Field::Page21, 0x9000_0001, 0x1ff8, 0x0010, 0xf0ff_ffe1),
            // adr x0, .+5
            (Field::Address21, 0x1000_0000, 0x100, 0x105, 0x3000_0020),
            // add x0, x0, #0x123; ldr w1, [x0, #0x124]; ldr x1, [x0, #0x128]; ldr q0, [x0, #0x120]
            (Field::PageOffset(0), 0x9100_0000, 0, 0x5123, 0x9104_8c00),
            (Field::PageOffset(2), 0xb940_0001, 0, 0x5124, 0xb941_2401),
            (Field::PageOffset(3), 0xf940_0001, 0, 0x5128, 0xf940_9401),
            (Field::PageOffset(4), 0x3dc0_0000, 0, 0x5120, 0x3dc0_4800),
            // movz x0, #0x1234, lsl #16
            (Field::Piece16(16, true), 0xd2a0_0000, 0, 0x1234_5678, 0xd2a2_4680),
        ];
        for (field, before, place, target, after) in cases {
            assert_eq!(written(field, before, place, target), Ok(after), "{field:?} {target:#x}");
            // the field's previous contents don't matter
            assert_eq!(written(field, after, place, target), Ok(after), "{field:?} {target:#x}");
        }
    }

    #[test]
    fn what_is_out_of_reach_is_an_error() {
        let far = 1u64 << 40;
        for field in [Field::Branch26, Field::Branch19, Field::Branch14, Field::Page21, Field::Address21] {
            assert_eq!(written(field, 0, 0, far), Err(OutOfReach), "{field:?}");
            assert_eq!(written(field, 0, far, 0), Err(OutOfReach), "{field:?}");
        }
        for (field, min, max) in [
            (Field::Branch26, -(1i64 << 27), (1 << 27) - 4),
            (Field::Page21, -(1i64 << 32), (1 << 32) - 4096),
            (Field::Relative32, -(1i64 << 31), (1 << 31) - 1),
        ] {
            let at = |distance: i64| written(field, 0, far, far.wrapping_add_signed(distance));
            assert!(at(min).is_ok() && at(max).is_ok(), "{field:?}");
            assert_eq!([at(min - 4096), at(max + 4096)], [Err(OutOfReach); 2], "{field:?}");
        }
        assert_eq!(written(Field::PageOffset(3), 0, 0, 0x1004), Err(OutOfReach), "not aligned");
        assert_eq!(written(Field::Absolute32, 0, 0, 0xffff_ffff), Ok(0xffff_ffff));
        assert_eq!(written(Field::Absolute32, 0, 0, 1 << 32), Err(OutOfReach));
        assert_eq!(written(Field::Signed32, 0, 0, 0x8000_0000), Err(OutOfReach));
        assert_eq!(written(Field::Signed32, 0, 0, u64::MAX), Ok(u32::MAX));
        assert_eq!(written(Field::Piece16(0, true), 0, 0, 0x1_0000), Err(OutOfReach));
    }
}
