//! Device memory for the duration of a launch, from the environment's allocator.

use crate::ir::{BinaryOp, FunctionBuilder, Hint, IntCC, MemFlags, StackSlot, Type, Value};
use crate::lower::abi::HEADER;
use crate::lower::abi::fields::dtype_word;
use crate::lower::abi::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use crate::lower::args::Values;
use crate::lower::capi;
use crate::lower::ffi_call;
use crate::lower::protocol::Piece;
use crate::spec::Dim;
use tvm_ffi_runtime::abi::{DLDataType, DLTensor};

/// The memory of a launch.
pub(super) struct Memory {
    /// The extents of the grid, once computed.
    pub blocks: Vec<Value>,
    /// The `DLDevice` that the memory is on, as one `I64`.
    device: Value,
    /// The objects to release after the launch.
    pub owned: Vec<StackSlot>,
}

impl Memory {
    pub(super) fn new(device: Value) -> Self {
        Memory { blocks: Vec::new(), device, owned: Vec::new() }
    }

    /// The address of scratch memory with `bytes` bytes for each block of the grid. The tensor that owns it is released
    /// once the kernel is launched. This is safe because the environments' device allocators order uses of memory by
    /// stream.
    pub(super) fn scratch(&mut self, values: &mut Values<'_, '_>, bytes: &Dim, align: u32) -> Value {
        let each = values.extent("scratch", bytes);
        let none = values.b.icmp_imm(IntCC::SGe, each, 0);
        values.require(none, each, ", scratch = ", &[Piece::Text(", expected at least 0 bytes")], None);
        // A grid's extents are below 2^31, 2^16 and 2^16. The upper half of the product shows an overflow.
        let mut total = each;
        for extent in self.blocks.clone() {
            let (low, high) =
                (values.b.binary(BinaryOp::Mul, total, extent), values.b.binary(BinaryOp::SMulHi, total, extent));
            let sign = values.b.binary_imm(BinaryOp::AShr, low, 63);
            let fits = values.b.icmp(IntCC::Eq, high, sign);
            values.require(
                fits,
                each,
                ", scratch = ",
                &[Piece::Text(" bytes for each block, which are more than 2^63")],
                None,
            );
            total = low;
        }
        let b = &mut *values.b;
        let order = b.module().endianness;
        let shape = b.slot(8, 8);
        let shape = b.stack_addr(shape);
        // extra room to align the address, because allocators guarantee only an alignment of 64 bytes
        let room = b.binary_imm(BinaryOp::Add, total, i64::from(align));
        b.store(room, shape, 0, MemFlags::ALIGNED);
        let prototype = b.slot(size_of::<DLTensor>() as u32, 8);
        let prototype = b.stack_addr(prototype);
        let (null, zero, one) = (b.ptr_const(0), b.i64(0), b.iconst(Type::I32, 1));
        let bytes_of = DLDataType { code: tvm_ffi_runtime::abi::kDLUInt, bits: 8, lanes: 1 };
        let dtype = b.iconst(Type::I32, i64::from(dtype_word(order, bytes_of) as i32));
        let fields = [
            (DATA, null),
            (DEVICE, self.device),
            (NDIM, one),
            (DTYPE, dtype),
            (SHAPE, shape),
            (STRIDES, null),
            (BYTE_OFFSET, zero),
        ];
        for (offset, value) in fields {
            b.store(value, prototype, offset, MemFlags::ALIGNED);
        }
        let owner = self.owner(values.b);
        let failed = values.failed;
        values.b.structured(|c| {
            let owner = c.val(owner);
            let code = capi::result(c, capi::ENV_TENSOR_ALLOC, &[c.val(prototype), owner]);
            c.or_fail(code.is(0), failed, &[code]);
            let descriptor = owner.load(Type::Ptr, 0) + HEADER;
            let (data, offset) = (descriptor.load(Type::Ptr, DATA), descriptor.load(Type::I64, BYTE_OFFSET));
            let up = (data + offset).address() + (i64::from(align) - 1);
            (up & -i64::from(align)).pointer().value()
        })
    }

    /// A stack slot for an object that the launch owns. It starts as NULL on every path to the exit.
    fn owner(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        let slot = b.slot(8, 8);
        b.at_entry(|b| {
            let (place, null) = (b.stack_addr(slot), b.ptr_const(0));
            b.store(null, place, 0, MemFlags::ALIGNED);
        });
        self.owned.push(slot);
        b.stack_addr(slot)
    }
}

/// Releases the objects that a launch owns and clears their slots, because the code may run again.
pub(super) fn release(b: &mut FunctionBuilder<'_>, owned: &[StackSlot]) {
    b.structured(|c| {
        for slot in owned {
            let place = c.stack_addr(*slot);
            let object = place.load(Type::Ptr, 0);
            let [some, next] = c.blocks();
            c.branch(object.is_not(0), some, next, Hint::Likely);
            c.switch_to(some);
            place.store(0, c.null());
            ffi_call::release(c, object);
            c.jump(next, &[]);
            c.switch_to(next);
        }
    });
}
