//! Memory of the device for the time of a launch, from the environment's allocator.

use super::emitter::Emitter;
use crate::ir::{BinaryOp, ConvertOp, FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};
use crate::lower::abi::HEADER;
use crate::lower::abi::fields::dtype_word;
use crate::lower::abi::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use crate::lower::capi;
use crate::lower::ffi_call;
use crate::lower::protocol::Piece;
use crate::spec::Dim;
use tvm_ffi_runtime::abi::{DLDataType, DLTensor};

impl Emitter<'_, '_> {
    /// The address of so many bytes for each block of the grid. The tensor that owns them is given up once the kernel is launched: allocators that
    /// environments have for devices order uses of memory by the stream.
    pub(super) fn scratch(&mut self, bytes: &Dim, align: u32) -> Value {
        let each = self.extent("scratch", bytes);
        let none = self.b.icmp_imm(IntCC::SGe, each, 0);
        self.require(none, each, ", scratch = ", &[Piece::Text(", expected at least 0 bytes")], None);
        // Extents of grids are below 2^31, 2^16 and 2^16. The product is told by its upper half.
        let mut total = each;
        for extent in self.blocks.clone() {
            let (low, high) =
                (self.b.binary(BinaryOp::Mul, total, extent), self.b.binary(BinaryOp::SMulHi, total, extent));
            let sign = self.b.binary_imm(BinaryOp::AShr, low, 63);
            let fits = self.b.icmp(IntCC::Eq, high, sign);
            self.require(
                fits,
                each,
                ", scratch = ",
                &[Piece::Text(" bytes for each block, which are more than 2^63")],
                None,
            );
            total = low;
        }
        let b = &mut *self.b;
        let order = b.module().endianness;
        let shape = b.slot(8, 8);
        let shape = b.stack_addr(shape);
        // room to align the address, which allocators align to 64 bytes at least
        let room = b.binary_imm(BinaryOp::Add, total, i64::from(align));
        b.store(room, shape, 0, MemFlags::ALIGNED);
        let prototype = b.slot(size_of::<DLTensor>() as u32, 8);
        let prototype = b.stack_addr(prototype);
        let (null, zero, one) = (b.ptr_const(0), b.i64(0), b.iconst(Type::I32, 1));
        let bytes_of = DLDataType { code: tvm_ffi_runtime::abi::kDLUInt, bits: 8, lanes: 1 };
        let dtype = b.iconst(Type::I32, i64::from(dtype_word(order, bytes_of) as i32));
        let fields = [
            (DATA, null),
            (DEVICE, self.inputs.device),
            (NDIM, one),
            (DTYPE, dtype),
            (SHAPE, shape),
            (STRIDES, null),
            (BYTE_OFFSET, zero),
        ];
        for (offset, value) in fields {
            b.store(value, prototype, offset, MemFlags::ALIGNED);
        }
        let owner = self.owner();
        let b = &mut *self.b;
        let allocate = capi::import(b.module(), capi::ENV_TENSOR_ALLOC);
        if let Some(code) = b.call(allocate, &[prototype, owner]) {
            let next = b.block();
            let fine = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch_with(fine, (next, &[]), (self.exits.failed, &[code]), Hint::Likely);
            b.switch_to(next);
        }
        let object = b.load(Type::Ptr, owner, 0, MemFlags::ALIGNED);
        let descriptor = b.ptr_add_imm(object, i64::from(HEADER));
        let data = b.load(Type::Ptr, descriptor, DATA, MemFlags::ALIGNED);
        let offset = b.load(Type::I64, descriptor, BYTE_OFFSET, MemFlags::ALIGNED);
        let start = b.ptr_add(data, offset);
        let address = b.convert(ConvertOp::PtrToInt, Type::I64, start);
        let up = b.binary_imm(BinaryOp::Add, address, i64::from(align) - 1);
        let aligned = b.binary_imm(BinaryOp::And, up, -i64::from(align));
        b.convert(ConvertOp::IntToPtr, Type::Ptr, aligned)
    }

    /// A place of the frame for an object that the launch owns: NULL at first, on every way to the exit.
    fn owner(&mut self) -> Value {
        let slot = self.b.slot(8, 8);
        self.b.at_entry(|b| {
            let (place, null) = (b.stack_addr(slot), b.ptr_const(0));
            b.store(null, place, 0, MemFlags::ALIGNED);
        });
        self.owned.push(slot);
        self.b.stack_addr(slot)
    }
}

/// Gives up the objects that a launch owns, and forgets them: the code may be run again.
pub(super) fn release(b: &mut FunctionBuilder<'_>, owned: &[crate::ir::StackSlot]) {
    for slot in owned {
        let place = b.stack_addr(*slot);
        let object = b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
        let (some, next) = (b.block(), b.block());
        let there = b.icmp_imm(IntCC::Ne, object, 0);
        b.branch(there, some, next, Hint::Likely);
        b.switch_to(some);
        let null = b.ptr_const(0);
        b.store(null, place, 0, MemFlags::ALIGNED);
        ffi_call::release(b, object);
        b.jump(next, &[]);
        b.switch_to(next);
    }
}
