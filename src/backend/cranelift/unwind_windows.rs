//! The `UNWIND_INFO` of a Windows function on x86-64, as defined in Microsoft's "x64 exception handling".
//!
//! Cranelift's own (0.135) is wrong where registers are saved. It scales the registers' offsets by 16, which is right
//! for vector registers only; others use 8. And it writes the frame register's offset in bytes into a field of four
//! bits that counts in units of 16. The order of its codes is right, and its prologue is always the same:
//!
//! ```text
//! push rbp                 PUSH_NONVOL rbp
//! mov rbp, rsp             SET_FPREG
//! sub rsp, ...
//! mov [rsp + ...], r       SAVE_NONVOL r, SAVE_XMM128 r: consecutive, aligned, right below rbp
//! ```
//!
//! So the offsets follow from the order, and this module writes the whole structure anew. An unwinder that reverses the
//! prologue needs two things. One is a frame register that points to the lowest saved register, or a known number of
//! bytes above it. The other is the allocation that it has to undo.

use cranelift_codegen::isa::unwind::winx64::UnwindInfo;

const PUSH_NONVOL: u8 = 0;
const ALLOC_SMALL: u8 = 2;
const ALLOC_LARGE: u8 = 1;
const SET_FPREG: u8 = 3;
const SAVE_NONVOL: u8 = 4;
const SAVE_XMM128: u8 = 8;

/// A register that the prologue saves: the prologue offset after the save, the operation, and the register.
struct Saved {
    behind: u8,
    operation: u8,
    register: u8,
    /// The offset in bytes from the lowest saved register.
    offset: u32,
}

/// The bytes of an `UNWIND_INFO`; `None` if Cranelift's doesn't have the expected form.
pub(super) fn unwind_info(info: &UnwindInfo) -> Option<Vec<u8>> {
    let mut given = vec![0; info.emit_size()];
    info.emit(&mut given);
    let (&[version, prologue, nodes, frame], codes) = given.split_first_chunk::<4>()?;
    if version != 1 || frame & 15 != 5 {
        return None;
    }
    // codes are in reverse order
    let mut saves = Vec::new();
    let (mut push, mut set_frame) = (None, None);
    let mut codes = codes.get(..2 * usize::from(nodes))?.chunks_exact(2);
    while let Some(&[behind, code]) = codes.next() {
        match code & 15 {
            operation @ (SAVE_NONVOL | SAVE_XMM128) => {
                codes.next()?;
                saves.push(Saved { behind, operation, register: code >> 4, offset: 0 });
            }
            SET_FPREG => set_frame = Some(behind),
            PUSH_NONVOL => push = Some((behind, code)),
            _ => return None,
        }
    }
    let ((pushed, push), set_frame) = (push?, set_frame?);
    let mut size = 0u32;
    for save in saves.iter_mut().rev() {
        let width = if save.operation == SAVE_XMM128 { 16 } else { 8 };
        save.offset = size.next_multiple_of(width);
        size = save.offset + width;
    }
    let size = size.next_multiple_of(16);
    // a field of 4 bits, in units of 16 bytes
    let frame_offset = u8::try_from(size / 16).ok().filter(|offset| *offset < 16)?;

    let mut out: Vec<u8> = Vec::new();
    for save in &saves {
        let scale = if save.operation == SAVE_XMM128 { 16 } else { 8 };
        out.extend([save.behind, save.register << 4 | save.operation]);
        out.extend(u16::try_from(save.offset / scale).ok()?.to_le_bytes());
    }
    out.extend([set_frame, SET_FPREG]);
    match size {
        0 => {}
        1..=128 => out.extend([set_frame, ((size / 8 - 1) as u8) << 4 | ALLOC_SMALL]),
        _ => {
            out.extend([set_frame, ALLOC_LARGE]);
            out.extend(((size / 8) as u16).to_le_bytes());
        }
    }
    out.extend([pushed, push]);
    let nodes = u8::try_from(out.len() / 2).ok()?;
    // the number of codes must be even
    out.resize(out.len().next_multiple_of(4), 0);
    Some([&[version, prologue, nodes, frame_offset << 4 | 5][..], &out].concat())
}
