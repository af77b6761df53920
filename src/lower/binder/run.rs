//! The top level of `bind`.

use super::finish;
use super::helper::{Binder, GOT, TYPE_ERROR, piece};
use super::state::BinderState;
use super::structured::{Behind, Condition, halves};
use crate::ir::{Type, Val};
use crate::lower::abi::{ANY_SIZE, PAYLOAD, TYPE_INDEX};
use crate::lower::protocol::{
    Binding, Capability, DefaultDescriptor, Deferred, Demands, Directive, Field, ParamDescriptor, Path, Piece,
    SignatureDescriptor, SignatureExtension, TypeKind, field, offset, state,
};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

pub(super) fn run(r: &Binder<'_, '_>) {
    let (pool, args, num_args, scratch) = (r.c.param(0), r.c.param(2), r.c.param(3), r.c.param(4));
    let offset = r.c.param(1).zext();
    let signature = pool + offset;
    let count = signature.read(field!(SignatureDescriptor, params));
    let mut slots = count;
    if r.has(TypeKind::Record) {
        // behind the arguments is the address of what the call owns
        const { assert!(Demands::OWNED.bits() == 2) };
        slots = slots + (signature.read(field!(SignatureDescriptor, demands)) >> 1);
    }
    r.state.set(scratch.base(slots * r.c.i64(ANY_SIZE.into())));
    r.set_field(Field::Pool, pool);
    if r.tells_subjects() {
        // for errors of the call itself
        r.set_number(Field::Arg, -1);
    }
    arity(r, signature, args, num_args, count);
    lay_out(r, signature);

    let first = signature.behind::<SignatureDescriptor>();
    let defaults = r.has(Capability::Default).then(|| (r.c.slot(ANY_SIZE as usize), r.c.var(Type::Ptr)));
    let no_argument = r.has(Capability::Values).then(|| signature.read(field!(SignatureDescriptor, arity)).is(0));
    r.c.for_up(count, |index| {
        let number = no_argument.map_or(index, |no_argument| no_argument.select(r.c.i64(-1), index));
        r.set_field(Field::Arg, number);
        let mut from = args.nth(index, ANY_SIZE);
        if let Some((filled, chosen)) = defaults {
            r.c.when_else(
                index.lt(num_args),
                || chosen.set(from),
                || {
                    fill(r, signature, index, filled);
                    chosen.set(filled);
                },
            );
            from = chosen.get();
        }
        let (param, to) = (first.nth_descriptor::<ParamDescriptor>(index), scratch.nth(index, ANY_SIZE));
        r.check(param, from, to);
        if r.has(Capability::ForwardArgs) {
            let mut forwards = signature.read(field!(SignatureDescriptor, demands));
            if r.has(TypeKind::Record) {
                forwards = forwards & i64::from(Demands::FORWARD_ARGS.bits());
            }
            r.c.when(forwards.is_not(0), || {
                for offset in [TYPE_INDEX, PAYLOAD] {
                    to.store(offset, from.load(Type::I64, offset));
                }
            });
        }
    });
    finish::finish(r, signature);
    r.succeed();
}

/// Checks the number of arguments.
fn arity<'c>(r: &Binder<'c, '_>, signature: Val<'c>, args: Val<'c>, num_args: Val<'c>, count: Val<'c>) {
    r.set_field(Field::Calling, r.pool_text(signature, field!(SignatureDescriptor, calling)));
    let calling = r.calling();
    let ok = Condition::All(vec![num_args.ge(signature.read(field!(SignatureDescriptor, min))), num_args.le(count)]);
    let (expected, got) = (piece(Directive::String, Field::Text), piece(Directive::Number, Field::Got));
    r.require_telling(
        ok,
        TYPE_ERROR,
        &[Piece::Text("Mismatched number of arguments"), calling, expected, GOT, got],
        || {
            r.set_field(Field::Text, r.pool_text(signature, field!(SignatureDescriptor, arity)));
            r.set_field(Field::Got, num_args);
        },
    );
    let there = Condition::Any(vec![args.is_not(0), num_args.is(0)]);
    let text = Piece::Text("a non-NULL pointer, got NULL");
    r.require(there, TYPE_ERROR, &[Piece::Text("Mismatched argument array"), calling, text]);
}

impl<'c> Binder<'c, '_> {
    /// Whether anything depends on the subject of a message: the source location of its error, or the printed form of a
    /// long signature.
    pub(super) fn tells_subjects(&self) -> bool {
        self.has(Capability::Places) || self.has(Directive::Stated)
    }

    /// Sets the number of the subject that is checked next; `behind` is its position after the arguments.
    pub(super) fn set_subject(&self, signature: Val<'c>, behind: Val<'c>) {
        if self.tells_subjects() {
            self.set_field(Field::Arg, signature.read(field!(SignatureDescriptor, params)) + behind);
        }
    }
}

/// Reserves room after the state for bindings and other data, and clears the bindings.
fn lay_out<'c>(r: &Binder<'c, '_>, signature: Val<'c>) {
    r.set_field(Field::Path, r.path());
    let zero = r.c.i64(0);
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
    let end = r.c.var(Type::Ptr);
    let bindings = r.state() + state::SIZE;
    end.set(bindings);
    let room = |many: Val<'c>, size: Val<'c>| {
        let start = end.get();
        let bytes = many * size;
        end.advance(bytes);
        start
    };
    // bindings and what follows them, in the order in which `encode` counts the bytes
    let vars = signature.read(field!(SignatureDescriptor, vars));
    if r.has(Capability::Elements) {
        let binding_size = signature.read(field!(SignatureDescriptor, binding_size));
        r.set_field(Field::BindingSize, binding_size);
    }
    let binding_size = r.binding_size();
    room(vars, binding_size);
    let devices = signature.read(field!(SignatureDescriptor, devices));
    r.set_field(Field::DeviceBindings, room(devices, binding_size));
    // the bindings of devices directly follow those of variables
    let behind = end.get();
    r.c.repeat(
        bindings,
        |binding| binding.ult(behind),
        |binding| {
            let (unbound, zero) = (r.c.null(), r.c.i64(0));
            binding.store(offset!(Binding, path.name), unbound);
            // the value that a kernel gets for an unbound variable
            binding.store(offset!(Binding, value), zero);
            binding + binding_size
        },
    );

    if r.has(Capability::Expr) {
        // both structs end with a path
        let deferred_size = binding_size + r.c.i64(i64::from(offset!(Deferred, path) - offset!(Binding, path)));
        r.set_field(Field::DeferredSize, deferred_size);
        r.set_field(Field::Deferred, room(signature.read(field!(SignatureDescriptor, deferred)), deferred_size));
    }
    r.set_field(Field::Memory, end.get());
}

/// Writes the default of an omitted parameter.
fn fill<'c>(r: &Binder<'c, '_>, signature: Val<'c>, index: Val<'c>, to: Val<'c>) {
    let pool = r.field_ptr(Field::Pool);
    let from = (pool + signature.read(field!(SignatureExtension, defaults).of_ending::<SignatureExtension>()))
        .nth_descriptor::<DefaultDescriptor>(index - signature.read(field!(SignatureDescriptor, min)));
    let type_index = from.read(field!(DefaultDescriptor, type_index));
    let (low, high) =
        (from.read(field!(DefaultDescriptor, payload.low)), from.read(field!(DefaultDescriptor, payload.high)));
    r.accept_raw(to, type_index, halves(low, high));
    let text = pool + low;
    if r.has(Capability::DefaultStr) {
        r.c.when(type_index.is(TypeIndex::RAW_STR.0), || r.accept_raw(to, type_index, text));
    }
    if !r.has(Capability::DefaultBytes) {
        return;
    }
    r.c.when(type_index.is(TypeIndex::BYTE_ARRAY_PTR.0), || {
        let array = r.take_memory(size_of::<TVMFFIByteArray>() as i64);
        array.store(0, text);
        array.store(8, high);
        r.accept_raw(to, type_index, array);
    });
}
