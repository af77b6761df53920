//! The caller's own arguments, for a body that passes some of them on unchanged, without the conversions of the checks.

use crate::ir::{DataRef, FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};
use crate::lower::abi::fields::{dtype_word, pair};
use crate::lower::abi::{ANY_SIZE, PAYLOAD, TYPE_INDEX, store_any};
use crate::lower::unit::ModulePool;
use crate::spec::{DefaultValue, ParamType, Signature};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

/// Type index that marks the result when the slow path calls a wrapper with the binder's arguments. Callers pass a
/// result that is None (contract C1.2), so no caller passes this index.
pub(super) const MARK: i64 = i32::MIN as i64;

/// The default values for arguments that a call leaves out.
pub(super) struct Originals {
    /// The constant pool that contains the strings of defaults.
    table: DataRef,
    /// The minimum number of arguments of a call.
    least: usize,
    defaults: Vec<Default>,
}

#[derive(Clone, Copy)]
enum Default {
    Plain(TypeIndex, i64),
    /// A C string in the pool.
    Text(u32),
    /// Bytes in the pool.
    Bytes(u32, i64),
}

impl Originals {
    pub(super) fn new(signature: &Signature, pool: &mut ModulePool) -> Self {
        let order = pool.constants.order();
        let defaults = signature.passed().filter_map(|param| {
            let is_bytes = matches!(&param.ty, ParamType::Bytes)
                || matches!(&param.ty, ParamType::Optional(inner) if **inner == ParamType::Bytes);
            Some(match param.default.as_ref()? {
                DefaultValue::None => Default::Plain(TypeIndex::NONE, 0),
                DefaultValue::Bool(value) => Default::Plain(TypeIndex::BOOL, i64::from(*value)),
                DefaultValue::Int(value) => Default::Plain(TypeIndex::INT, *value),
                DefaultValue::Float(value) => Default::Plain(TypeIndex::FLOAT, value.to_bits() as i64),
                DefaultValue::Str(text) if is_bytes => Default::Bytes(pool.constants.text(text), text.len() as i64),
                DefaultValue::Str(text) => Default::Text(pool.constants.text(text)),
                DefaultValue::DType(dtype) => {
                    Default::Plain(TypeIndex::DATA_TYPE, pair(order, dtype_word(order, *dtype), 0))
                }
                DefaultValue::Device(device) => {
                    let (kind, id) = (device.device_type.0 as u32, device.device_id as u32);
                    Default::Plain(TypeIndex::DEVICE, pair(order, kind, id))
                }
            })
        });
        let defaults = defaults.collect();
        Originals { table: pool.data, least: signature.arity().0, defaults }
    }

    /// The address of the caller's arguments followed by defaults. If there are no defaults, it is the caller's own
    /// array.
    pub(super) fn array(&self, b: &mut FunctionBuilder<'_>, args: Value, num_args: Value) -> Value {
        if self.defaults.is_empty() {
            return args;
        }
        let slot = b.slot(ANY_SIZE as u32 * (self.least + self.defaults.len()) as u32, 8);
        let array = b.stack_addr(slot);
        for i in 0..self.least as i32 {
            copy(b, args, array, i * ANY_SIZE);
        }
        for (i, default) in (self.least as i32..).zip(&self.defaults) {
            let (given, left_out, next) = (b.block(), b.block(), b.block());
            let is_given = b.icmp_imm(IntCC::SGt, num_args, i64::from(i));
            b.branch(is_given, given, left_out, Hint::None);
            b.switch_to(given);
            copy(b, args, array, i * ANY_SIZE);
            b.jump(next, &[]);
            b.switch_to(left_out);
            let to = b.ptr_add_imm(array, i64::from(i * ANY_SIZE));
            self.store(b, *default, to);
            b.jump(next, &[]);
            b.switch_to(next);
        }
        array
    }

    fn store(&self, b: &mut FunctionBuilder<'_>, default: Default, to: Value) {
        match default {
            Default::Plain(index, payload) => {
                let payload = b.i64(payload);
                store_any(b, to, index, payload);
            }
            Default::Text(offset) => {
                let text = b.data_addr(self.table, offset);
                store_any(b, to, TypeIndex::RAW_STR, text);
            }
            Default::Bytes(offset, len) => {
                let slot = b.slot(size_of::<TVMFFIByteArray>() as u32, 8);
                let array = b.stack_addr(slot);
                let (data, len) = (b.data_addr(self.table, offset), b.i64(len));
                b.store(data, array, 0, MemFlags::ALIGNED);
                b.store(len, array, 8, MemFlags::ALIGNED);
                store_any(b, to, TypeIndex::BYTE_ARRAY_PTR, array);
            }
        }
    }
}

fn copy(b: &mut FunctionBuilder<'_>, from: Value, to: Value, offset: i32) {
    for word in [TYPE_INDEX, PAYLOAD] {
        let value = b.load(Type::I64, from, offset + word, MemFlags::ALIGNED);
        b.store(value, to, offset + word, MemFlags::ALIGNED);
    }
}

/// The caller's arguments, in a wrapper that its slow path may have called. In that case the slow path has passed them
/// instead of the handle.
pub(super) fn of_this_call(b: &mut FunctionBuilder<'_>, has_result: bool) -> Value {
    let [handle, args, result] = [0, 1, 3].map(|i| b.param(i));
    let marked = match has_result {
        true => result,
        // the caller may pass no result to a function that returns nothing; the arguments are never marked
        false => {
            let null = b.icmp_imm(IntCC::Eq, result, 0);
            b.select(null, args, result)
        }
    };
    let index = b.load(Type::I32, marked, TYPE_INDEX, MemFlags::ALIGNED);
    let again = b.icmp_imm(IntCC::Eq, index, MARK);
    b.select(again, handle, args)
}
