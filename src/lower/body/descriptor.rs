//! Code that reads the parts of a tensor that only its `DLTensor` has.

use super::args::{Origin, TensorVars, View};
use super::function::BodyLowerer;
use super::tensor::{Known, TensorRef};
use crate::ir::{BinaryOp, ConvertOp, FuncRef, FuncSig, Hint, IntCC, MemFlags, Module, Type, Value};
use crate::lower::abi::fields::pair;
use crate::lower::abi::tensor::{DATA, DEVICE, NDIM, SHAPE, STRIDES};
use crate::lower::abi::{HEADER, PAYLOAD};
use crate::spec::{Device, DeviceId, Layout};
use tvm_ffi_runtime::abi::{DLDeviceType, DLTensor};

impl BodyLowerer<'_> {
    /// Loads a field of a tensor's descriptor. A tensor with a closed type has no descriptor, and all of its fields are
    /// known otherwise. The fields of an absent tensor are 0.
    pub(super) fn field_of(&mut self, vars: &TensorVars, ty: Type, offset: i32) -> Value {
        let Some(descriptor) = vars.descriptor else {
            return if ty == Type::Ptr { self.b.ptr_const(0) } else { self.b.iconst(ty, 0) };
        };
        let descriptor = self.or_zeros(vars, descriptor);
        self.b.load(ty, descriptor, offset, descriptor_flags(vars))
    }

    /// An address, or that of zeros in place of NULL if the tensor may be absent.
    fn or_zeros(&mut self, vars: &TensorVars, address: Value) -> Value {
        if !vars.may_be_absent {
            return address;
        }
        // as many as a descriptor has, and as many as the tensor has sizes
        let count = size_of::<DLTensor>().max(vars.shape.len() * size_of::<i64>());
        let zeros = self.pool.constants.descriptor(&vec![0; count]);
        let zeros = self.b.data_addr(self.pool.data, zeros);
        let is_null = self.b.icmp_imm(IntCC::Eq, address, 0);
        self.b.select(is_null, zeros, address)
    }

    /// Loads integers that a descriptor has a pointer to.
    pub(super) fn entries_of(&mut self, vars: &TensorVars, offset: i32, count: usize) -> Vec<Value> {
        let array = self.field_of(vars, Type::Ptr, offset);
        let array = self.or_zeros(vars, array);
        let flags = descriptor_flags(vars);
        (0..count as i32).map(|d| self.b.load(Type::I64, array, 8 * d, flags)).collect()
    }

    /// The address of a tensor's first element.
    pub(super) fn data_of(&mut self, vars: &TensorVars) -> Value {
        vars.data.unwrap_or_else(|| self.field_of(vars, Type::Ptr, DATA))
    }

    /// The strides of a tensor, in elements. The number of dimensions must be known.
    pub(super) fn strides_of(&mut self, vars: &TensorVars) -> Vec<Value> {
        if let Some(strides) = &vars.strides {
            return strides.clone();
        }
        if vars.ty.layout != Layout::Contiguous {
            return self.entries_of(vars, STRIDES, vars.shape.len());
        }
        let mut strides = Vec::with_capacity(vars.shape.len());
        let mut step = self.b.i64(1);
        for size in vars.shape.iter().rev() {
            strides.push(step);
            step = self.b.binary(BinaryOp::Mul, step, *size);
        }
        strides.reverse();
        strides
    }

    /// Whether a tensor with strides is contiguous, a `Bool`.
    pub(super) fn is_contiguous(&mut self, vars: &TensorVars) -> Value {
        let [shape, strides, ndim] = match vars.ty.shape.rank() {
            None => {
                let ndim = self.field_of(vars, Type::I32, NDIM);
                let ndim = self.b.convert(ConvertOp::SExt, Type::I64, ndim);
                [self.field_of(vars, Type::Ptr, SHAPE), self.field_of(vars, Type::Ptr, STRIDES), ndim]
            }
            Some(rank) => {
                let strides = self.strides_of(vars);
                let [shape, strides] = [&vars.shape, &strides].map(|values| self.numbers(values));
                [shape, strides, self.b.i64(rank as i64)]
            }
        };
        let function = contiguous(self.b.module());
        match self.b.call(function, &[shape, strides, ndim]) {
            Some(contiguous) => self.b.icmp_imm(IntCC::Ne, contiguous, 0),
            None => self.b.bconst(false),
        }
    }
}

/// How a tensor's descriptor is read. That of an argument doesn't change during the call. That of another value may be
/// in memory that the next turn of a loop writes.
fn descriptor_flags(vars: &TensorVars) -> MemFlags {
    match vars.origin {
        // the pool aligns zeros to 4 bytes
        _ if vars.may_be_absent => MemFlags::UNALIGNED,
        Origin::Argument | Origin::Result => MemFlags::READONLY,
        Origin::Object(_) | Origin::Value(_) | Origin::View(_) => MemFlags::ALIGNED,
    }
}

/// `int32_t contiguous(const int64_t* shape, const int64_t* strides, int64_t ndim)`: returns 1 if strides are those of
/// a contiguous tensor, or don't matter.
fn contiguous(module: &mut Module) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_contiguous";
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::I64], Some(Type::I32));
    module.local_once(NAME, sig, |c| {
        let [shape, strides, ndim] = c.params();
        let [head, look, next, same, differ] = c.blocks();
        let (left, step) = (c.block_param(head, Type::I64), c.block_param(head, Type::I64));
        let wrong = c.block_param(head, Type::I64);
        c.jump(head, &[ndim, c.i64(1), c.i64(0)]);
        c.switch_to(head);
        let done = c.block();
        c.branch(left.gt(0), look, done, Hint::None);
        c.switch_to(look);
        let dim = left - 1;
        let size = shape.element(dim, Type::I64).load(Type::I64, 0);
        // no stride of a tensor without elements matters, whatever the other dimensions are
        c.branch(size.is(0), same, next, Hint::None);
        c.switch_to(next);
        let differs = strides.element(dim, Type::I64).load(Type::I64, 0).is_not(step) & size.is_not(1);
        c.jump(head, &[dim, step * size, wrong | differs.zext()]);
        c.switch_to(done);
        c.branch(wrong.is(0), same, differ, Hint::None);
        for (block, result) in [(differ, 0), (same, 1)] {
            c.switch_to(block);
            c.ret(c.i32(result));
        }
    })
}

/// The device of a tensor, an `I64` as loaded from a `DLDevice`. Records an error if the device isn't known.
pub(super) fn device_of(tensor: TensorRef<'_>, operation: &str) -> Option<Value> {
    let (body, known) = (tensor.body, tensor.alive(operation)?);
    let found = body.emit(|l| Some(l.device_of(known)))?;
    match found {
        Ok(device) => Some(device),
        Err(problem) => {
            body.note(operation, problem);
            None
        }
    }
}

impl BodyLowerer<'_> {
    fn device_of(&mut self, Known { name, vars }: Known<'_>) -> Result<Value, String> {
        Ok(match vars.origin {
            Origin::View(View { device, .. }) => device,
            Origin::Object(any) => {
                let object = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
                self.b.load(Type::I64, object, HEADER + DEVICE, MemFlags::ALIGNED)
            }
            _ if vars.descriptor.is_some() => self.field_of(vars, Type::I64, DEVICE),
            Origin::Value(any) => {
                let descriptor = self.descriptor_of(any);
                self.b.load(Type::I64, descriptor, DEVICE, MemFlags::ALIGNED)
            }
            Origin::Argument => {
                let any = self.original(name)?;
                let descriptor = self.descriptor_of(any);
                self.b.load(Type::I64, descriptor, DEVICE, MemFlags::ALIGNED)
            }
            Origin::Result => match vars.ty.device {
                Device::Kind(kind, id) if kind == DLDeviceType::CPU || matches!(id, DeviceId::Fixed(_)) => {
                    let number = if let DeviceId::Fixed(id) = id { id } else { 0 };
                    let order = self.b.module().endianness;
                    self.b.i64(pair(order, kind.0 as u32, number as u32))
                }
                _ => {
                    let problem =
                        "the number of the result's device isn't known to the body; state it in the signature";
                    return Err(problem.to_owned());
                }
            },
        })
    }
}
