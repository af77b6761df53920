//! `bind` itself.

use super::finish;
use super::helper::{Binder, GOT, TYPE_ERROR, piece};
use super::state::BinderState;
use super::structured::{Condition, StructuredCode, Var};
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, Value};
use crate::lower::abi::{ANY_SIZE, PAYLOAD, TYPE_INDEX};
use crate::lower::protocol::{
    Binding, Capability, DefaultDescriptor, Deferred, Directive, Field, ParamDescriptor, Path, Piece,
    SignatureDescriptor, SignatureExtension, field, offset, state,
};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

pub(super) fn run(r: &mut Binder<'_, '_>) {
    let (pool, args, num_args, scratch) = (r.b.param(0), r.b.param(2), r.b.param(3), r.b.param(4));
    let offset = r.b.param(1);
    let offset = r.b.convert(ConvertOp::ZExt, Type::I64, offset);
    let signature = r.b.ptr_add(pool, offset);
    let count = r.read(signature, field!(SignatureDescriptor, params));
    let any_size = r.b.i64(i64::from(ANY_SIZE));
    let args_size = r.b.binary(BinaryOp::Mul, count, any_size);
    r.state = r.base(scratch, args_size);
    r.set_field(Field::Pool, pool);
    if r.tells_subjects() {
        // of the call itself
        r.set_number(Field::Arg, -1);
    }
    arity(r, signature, args, num_args, count);
    lay_out(r, signature);

    let first = r.behind::<SignatureDescriptor>(signature);
    let defaults = r.has(Capability::Default).then(|| {
        let filled = r.b.slot(ANY_SIZE as u32, 8);
        (r.b.stack_addr(filled), Var::new(&mut r.b, Type::Ptr))
    });
    let no_argument = r.has(Capability::Values).then(|| {
        let arity = r.read(signature, field!(SignatureDescriptor, arity));
        r.is(arity, 0)
    });
    r.for_up(count, |r, index| {
        let number = no_argument.map_or(index, |no_argument| {
            let none = r.b.i64(-1);
            r.b.select(no_argument, none, index)
        });
        r.set_field(Field::Arg, number);
        let mut from = r.nth(args, index, ANY_SIZE);
        if let Some((filled, chosen)) = defaults {
            let given = r.b.icmp(IntCC::SLt, index, num_args);
            r.when_else(
                given,
                |r| r.set(chosen, from),
                |r| {
                    fill(r, signature, index, filled);
                    r.set(chosen, filled);
                },
            );
            from = r.get(chosen);
        }
        let (param, to) = (r.nth_descriptor::<ParamDescriptor>(first, index), r.nth(scratch, index, ANY_SIZE));
        r.check(param, from, to);
        if r.has(Capability::ForwardArgs) {
            let forward = r.read(signature, field!(SignatureDescriptor, forward_args));
            let forward = r.is_not(forward, 0);
            r.when(forward, |r| {
                for offset in [TYPE_INDEX, PAYLOAD] {
                    let word = r.b.load(Type::I64, from, offset, MemFlags::ALIGNED);
                    r.b.store(word, to, offset, MemFlags::ALIGNED);
                }
            });
        }
    });
    finish::finish(r, signature);
    r.succeed();
}

/// The call as such.
fn arity(r: &mut Binder<'_, '_>, signature: Value, args: Value, num_args: Value, count: Value) {
    let calling = r.pool_text(signature, field!(SignatureDescriptor, calling));
    r.set_field(Field::Calling, calling);
    let calling = r.calling();
    let least = r.read(signature, field!(SignatureDescriptor, least));
    let enough = r.b.icmp(IntCC::SGe, num_args, least);
    let not_more = r.b.icmp(IntCC::SLe, num_args, count);
    let ok = Condition::All(vec![enough, not_more]);
    let (expected, got) = (piece(Directive::String, Field::Text), piece(Directive::Number, Field::Got));
    let pieces = [Piece::Text("Mismatched number of arguments"), calling, expected, GOT, got];
    r.require_telling(ok, TYPE_ERROR, &pieces, |r| {
        let expected = r.pool_text(signature, field!(SignatureDescriptor, arity));
        r.set_field(Field::Text, expected);
        r.set_field(Field::Got, num_args);
    });
    let there = r.is_not(args, 0);
    let none = r.is(num_args, 0);
    let there = Condition::Any(vec![there, none]);
    let text = Piece::Text("a non-NULL pointer, got NULL");
    r.require(there, TYPE_ERROR, &[Piece::Text("Mismatched argument array"), calling, text]);
}

impl Binder<'_, '_> {
    /// Whether anything depends on the subject of a message: the place that its error ends in, or the text of a long signature.
    pub(super) fn tells_subjects(&self) -> bool {
        self.has(Capability::Places) || self.has(Directive::Stated)
    }

    /// Sets the number of the subject whose check comes next, of so many behind the arguments.
    pub(super) fn set_subject(&mut self, signature: Value, behind: Value) {
        if self.tells_subjects() {
            let count = self.read(signature, field!(SignatureDescriptor, params));
            let number = self.b.binary(BinaryOp::Add, count, behind);
            self.set_field(Field::Arg, number);
        }
    }
}

/// Finds room for bindings and what else is needed behind the state, and clears the bindings.
fn lay_out(r: &mut Binder<'_, '_>, signature: Value) {
    let here = r.path();
    r.set_field(Field::Path, here);
    let zero = r.b.i64(0);
    if r.has(Capability::Elements) {
        r.set_path(offset!(Path, depth), zero);
    }
    for (field, capability) in [
        (Field::DeferredCount, Capability::Expr),
        (Field::Strict, Capability::Elements),
        (Field::Pass, Capability::Expr),
    ] {
        if r.has(capability) {
            r.set_field(field, zero);
        }
    }
    let end = Var::new(&mut r.b, Type::Ptr);
    let bindings = r.b.ptr_add_imm(r.state, state::SIZE);
    r.set(end, bindings);
    let room = |r: &mut Binder<'_, '_>, many: Value, size: Value| {
        let start = r.get(end);
        let bytes = r.b.binary(BinaryOp::Mul, many, size);
        r.advance(end, bytes);
        start
    };
    // bindings and what comes behind them in the order in which `encode` counts the bytes
    let symbols = r.read(signature, field!(SignatureDescriptor, symbols));
    if r.has(Capability::Elements) {
        let binding_size = r.read(signature, field!(SignatureDescriptor, binding_size));
        r.set_field(Field::BindingSize, binding_size);
    }
    let binding_size = r.binding_size();
    room(r, symbols, binding_size);
    let devices = r.read(signature, field!(SignatureDescriptor, devices));
    let device_bindings = room(r, devices, binding_size);
    r.set_field(Field::DeviceBindings, device_bindings);
    // those of devices come right behind those of symbols
    let behind = r.get(end);
    r.for_each(bindings, behind, binding_size, |r, binding| {
        let (unbound, zero) = (r.b.ptr_const(0), r.b.i64(0));
        r.b.store(unbound, binding, offset!(Binding, path.name), MemFlags::ALIGNED);
        // what a kernel gets for a symbol that has no value
        r.b.store(zero, binding, offset!(Binding, value), MemFlags::ALIGNED);
    });

    if r.has(Capability::Expr) {
        // both end with a path
        let difference = r.b.i64(i64::from(offset!(Deferred, path) - offset!(Binding, path)));
        let deferred_size = r.b.binary(BinaryOp::Add, binding_size, difference);
        r.set_field(Field::DeferredSize, deferred_size);
        let many = r.read(signature, field!(SignatureDescriptor, deferred));
        let deferred = room(r, many, deferred_size);
        r.set_field(Field::Deferred, deferred);
    }
    let memory = r.get(end);
    r.set_field(Field::Memory, memory);
}

/// Writes the default of a parameter that was left out.
fn fill(r: &mut Binder<'_, '_>, signature: Value, index: Value, to: Value) {
    let pool = r.field_ptr(Field::Pool);
    let first = r.read(signature, field!(SignatureExtension, defaults).of_ending::<SignatureExtension>());
    let first = r.b.ptr_add(pool, first);
    let least = r.read(signature, field!(SignatureDescriptor, least));
    let number = r.b.binary(BinaryOp::Sub, index, least);
    let from = r.nth_descriptor::<DefaultDescriptor>(first, number);
    let type_index = r.read(from, field!(DefaultDescriptor, type_index));
    let (low, high) =
        (r.read(from, field!(DefaultDescriptor, payload.low)), r.read(from, field!(DefaultDescriptor, payload.high)));
    let plain = r.halves(low, high);
    r.accept_raw(to, type_index, plain);
    let text = r.b.ptr_add(pool, low);
    if r.has(Capability::DefaultStr) {
        let is = r.is(type_index, i64::from(TypeIndex::RAW_STR.0));
        r.when(is, |r| r.accept_raw(to, type_index, text));
    }
    if !r.has(Capability::DefaultBytes) {
        return;
    }
    let is = r.is(type_index, i64::from(TypeIndex::BYTE_ARRAY_PTR.0));
    r.when(is, |r| {
        let array = r.take_memory(size_of::<TVMFFIByteArray>() as i64);
        r.b.store(text, array, 0, MemFlags::ALIGNED);
        r.b.store(high, array, 8, MemFlags::ALIGNED);
        r.accept_raw(to, type_index, array);
    });
}
