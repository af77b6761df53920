//! The caller's own arguments, for a body that passes some of them on unchanged, without the conversions of the checks.

use crate::ir::{DataRef, Emitter, Type, Val};
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
    min: usize,
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
        Originals { table: pool.data, min: signature.arity().0, defaults }
    }

    /// The address of the caller's arguments followed by defaults. If there are no defaults, it is the caller's own
    /// array.
    pub(super) fn array<'c>(&self, c: Emitter<'c>, args: Val<'c>, num_args: Val<'c>) -> Val<'c> {
        if self.defaults.is_empty() {
            return args;
        }
        let array = c.slot(ANY_SIZE as usize * (self.min + self.defaults.len()));
        for i in 0..self.min as i32 {
            copy(args, array, i * ANY_SIZE);
        }
        for (i, default) in (self.min as i32..).zip(&self.defaults) {
            c.when_else(
                num_args.gt(i),
                || copy(args, array, i * ANY_SIZE),
                || self.store(*default, array + i * ANY_SIZE),
            );
        }
        array
    }

    fn store(&self, default: Default, to: Val<'_>) {
        let c = to.emitter();
        let (index, payload) = match default {
            Default::Plain(index, payload) => (index, c.i64(payload)),
            Default::Text(offset) => (TypeIndex::RAW_STR, c.data(self.table, offset)),
            Default::Bytes(offset, len) => {
                let array = c.slot(size_of::<TVMFFIByteArray>());
                let (data, len) = (c.data(self.table, offset), c.i64(len));
                array.store(0, data);
                array.store(8, len);
                (TypeIndex::BYTE_ARRAY_PTR, array)
            }
        };
        c.with(|b| store_any(b, to.value(), index, payload.value()));
    }
}

fn copy<'c>(from: Val<'c>, to: Val<'c>, offset: i32) {
    for word in [TYPE_INDEX, PAYLOAD] {
        to.store(offset + word, from.load(Type::I64, offset + word));
    }
}

/// The caller's arguments, in a wrapper that its slow path may have called. In that case their address is the payload
/// of the marked result.
pub(super) fn of_this_call(c: Emitter<'_>, has_result: bool) -> Val<'_> {
    let [_, args, _, result] = c.params();
    let marked = match has_result {
        true => result,
        // the caller may pass no result to a function that returns nothing; the arguments are never marked
        false => result.is(0).select(args, result),
    };
    // the payload of a result that isn't marked is anything
    let passed_on = marked.load(Type::Ptr, PAYLOAD);
    marked.load(Type::I32, TYPE_INDEX).is(MARK).select(passed_on, args)
}
