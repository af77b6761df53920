//! The checks after the parameters: deferred dimensions, constraints, the sizes of a returned tensor (C6, C10.14).

use super::dims;
use super::helper::{Binder, EXPECTED_TEXT, GOT_NUMBER, VALUE_ERROR};
use super::state::BinderState;
use super::structured::{StructuredCode, Var};
use crate::ir::{IntCC, MemFlags, Type, Value};
use crate::lower::protocol::state::Pass;
use crate::lower::protocol::{
    Binding, Capability, ConstraintDescriptor, Deferred, Directive, ExprDescriptor, Field, Piece, ResultDimDescriptor,
    SignatureDescriptor, SignatureExtension, TermDescriptor, field, offset,
};

const BINDINGS: Piece<'static> = Piece::Value(Directive::Bindings, Field::Expr as u32);
const UNKNOWN: Piece<'static> = Piece::Value(Directive::Unknown, Field::Expr as u32);

pub(super) fn finish(r: &mut Binder<'_, '_>, signature: Value) {
    if r.has(Capability::Expr) {
        deferred(r);
    }
    if !r.has(Capability::Constraint) && !r.has(Capability::ResultDim) {
        return;
    }
    let has_extension = r.read(signature, field!(SignatureDescriptor, has_extension));
    let has_extension = r.is_not(has_extension, 0);
    r.when(has_extension, |r| {
        if r.has(Capability::Constraint) {
            constraints(r, signature);
        }
        if r.has(Capability::ResultDim) {
            result(r, signature);
        }
    });
}

/// Goes through the deferred dimensions, as often as there are deferred dimensions: each time the first of them may get its value.
fn deferred(r: &mut Binder<'_, '_>) {
    let count = r.field(Field::DeferredCount);
    r.set_number(Field::Pass, Pass::Again as i64);
    r.for_up(count, |r, _| look(r, count));
    r.set_number(Field::Pass, Pass::Last as i64);
    look(r, count);
}

fn look(r: &mut Binder<'_, '_>, count: Value) {
    r.for_up(count, |r, index| {
        let (all, size) = (r.field_ptr(Field::Deferred), r.field(Field::DeferredSize));
        let dim = r.nth_of(all, index, size);
        let descriptor = r.b.load(Type::Ptr, dim, offset!(Deferred, dim), MemFlags::ALIGNED);
        let undecided = r.is_not(descriptor, 0);
        r.when(undecided, |r| {
            let path = r.b.ptr_add_imm(dim, i64::from(offset!(Deferred, path)));
            let here = r.path();
            r.copy_path(path, here);
            let arg = r.b.load(Type::I64, dim, offset!(Deferred, arg), MemFlags::ALIGNED);
            r.set_field(Field::Arg, arg);
            let got = r.b.load(Type::I64, dim, offset!(Deferred, got), MemFlags::ALIGNED);
            // the flag is 1, so that it is all flags of a size
            const _: () = assert!(dims::IS_SIZE == 1);
            let is_size = r.b.load(Type::I64, dim, offset!(Deferred, is_size), MemFlags::ALIGNED);
            r.dim(descriptor, got, is_size);
            let decided = r.field(Field::HasValue);
            let decided = r.is(decided, super::eval::HAS_VALUE);
            r.when(decided, |r| {
                let done = r.b.ptr_const(0);
                r.b.store(done, dim, offset!(Deferred, dim), MemFlags::ALIGNED);
            });
        });
    });
}

/// Sets the expression that is looked at, and requires that each of its symbols has a value.
fn look_at(r: &mut Binder<'_, '_>, expr: Value, no_value: &[Piece<'_>]) {
    r.set_field(Field::Expr, expr);
    let text = r.pool_text(expr, field!(ExprDescriptor, text));
    r.set_field(Field::Text, text);
    let (unknown, _) = r.unknown(expr);
    let ok = r.is(unknown, 0);
    r.require(ok, VALUE_ERROR, no_value);
}

fn constraints(r: &mut Binder<'_, '_>, signature: Value) {
    let count = r.read(signature, field!(SignatureExtension, constraints).of_ending::<SignatureExtension>());
    let first = r.pool_text(signature, field!(SignatureExtension, first_constraint).of_ending::<SignatureExtension>());
    let calling = r.calling();
    r.for_up(count, |r, index| {
        r.set_subject(signature, index);
        let constraint = r.nth_descriptor::<ConstraintDescriptor>(first, index);
        let expr = r.pool_text(constraint, field!(ConstraintDescriptor, expr));
        let mismatch = [Piece::Text("Mismatched constraint"), calling, EXPECTED_TEXT];
        look_at(r, expr, &[&mismatch[..], &[Piece::Text(", got no value of "), UNKNOWN]].concat());
        let zero = r.b.i64(0);
        let (left, has_left) = r.value_of(expr, field!(ExprDescriptor, code), zero);
        let (right, has_right) = r.value_of(constraint, field!(ConstraintDescriptor, right), zero);
        let (one, two, four) = (r.b.i64(1), r.b.i64(2), r.b.i64(4));
        let less = r.b.icmp(IntCC::SLt, left, right);
        let equal = r.b.icmp(IntCC::Eq, left, right);
        let order = r.b.select(equal, two, four);
        let order = r.b.select(less, one, order);
        let accepts = r.read(constraint, field!(ConstraintDescriptor, accepts));
        let accepted = r.and(accepts, order);
        let ok = r.is_not(accepted, 0);
        let ok = r.and(ok, has_left);
        let ok = r.and(ok, has_right);
        r.require(ok, VALUE_ERROR, &[&mismatch[..], &[Piece::Text(", got "), BINDINGS]].concat());
    });
}

/// Sizes are not negative, and of each tensor every product of the last ones fits.
fn result(r: &mut Binder<'_, '_>, signature: Value) {
    let rank = r.read(signature, field!(SignatureExtension, result_dims).of_ending::<SignatureExtension>());
    let first = r.pool_text(signature, field!(SignatureExtension, first_result_dim).of_ending::<SignatureExtension>());
    if r.tells_subjects() {
        let constraints = r.read(signature, field!(SignatureExtension, constraints).of_ending::<SignatureExtension>());
        r.set_subject(signature, constraints);
    }
    let size_of = |r: &mut Binder<'_, '_>, d: Value| {
        let bytes = r.b.i64(size_of::<ResultDimDescriptor>() as i64);
        let at = r.nth_of(first, d, bytes);
        let tensor = r.pool_text(at, field!(ResultDimDescriptor, tensor));
        r.set_field(Field::Payload, tensor);
        let number = r.read(at, field!(ResultDimDescriptor, number));
        r.set_field(Field::Expected, number);
        r.pool_text(at, field!(ResultDimDescriptor, expr))
    };
    let (dim, calling) = (Piece::Value(Directive::Number, Field::Expected as u32), r.calling());
    let tensor = Piece::Value(Directive::String, Field::Payload as u32);
    let mismatch = [Piece::Text("Mismatched "), tensor, Piece::Text(".shape["), dim, Piece::Text("]"), calling];
    let with = |more: &[Piece<'static>]| [&mismatch[..], more].concat();
    r.for_up(rank, |r, d| {
        let expr = size_of(r, d);
        look_at(r, expr, &with(&[Piece::Text("a size of at least 0, got no value of "), UNKNOWN]));
        let zero = r.b.i64(0);
        let (size, has_value) = r.value_of(expr, field!(ExprDescriptor, code), zero);
        let in_64_bits = [EXPECTED_TEXT, Piece::Text(" in 64 bits ("), BINDINGS, Piece::Text("), got none")];
        r.require(has_value, VALUE_ERROR, &with(&in_64_bits));
        r.set_field(Field::Got, size);
        let natural = r.b.icmp_imm(IntCC::SGe, size, 0);
        // equal pool are stored once: an expression that is called as its symbol is that
        let (text, name) = (
            r.read(expr, field!(ExprDescriptor, text)),
            r.read(expr, field!(TermDescriptor, name).behind::<ExprDescriptor>()),
        );
        let alone = r.b.icmp(IntCC::Eq, text, name);
        let symbol = r.read(expr, field!(TermDescriptor, symbol).behind::<ExprDescriptor>());
        let binding = r.binding(symbol);
        let origin = r.b.ptr_add_imm(binding, i64::from(offset!(Binding, path)));
        r.set_field(Field::Origin, origin);
        let negative = |more: [Piece<'static>; 2]| {
            let [sep, what] = more;
            let size = [Piece::Text("a size of at least 0, got "), GOT_NUMBER, Piece::Text(" ("), EXPECTED_TEXT];
            with(&[&size[..], &[sep, what, Piece::Text(")")]].concat())
        };
        let fine_or_alone = r.or(natural, alone);
        r.require(fine_or_alone, VALUE_ERROR, &negative([Piece::Text(", "), BINDINGS]));
        let from = Piece::Value(Directive::DimPath, Field::Origin as u32);
        r.require(natural, VALUE_ERROR, &negative([Piece::Text(", from "), from]));
    });
    let product = Var::new(&mut r.b, Type::I64);
    let one = r.b.i64(1);
    r.set(product, one);
    let overflows = [
        Piece::Text("Mismatched "),
        tensor,
        Piece::Text(".shape"),
        calling,
        Piece::Text("sizes whose product fits in 64 bits, got an overflow"),
    ];
    r.for_down(rank, |r, d| {
        let expr = size_of(r, d);
        let zero = r.b.i64(0);
        let (size, _) = r.value_of(expr, field!(ExprDescriptor, code), zero);
        let before = r.get(product);
        let (next, ok) = r.product_fits(before, size);
        r.require(ok, VALUE_ERROR, &overflows);
        // before the first dimension is the last one of another tensor
        let number = r.field(Field::Expected);
        let first = r.b.icmp_imm(IntCC::Eq, number, 0);
        let next = r.b.select(first, one, next);
        r.set(product, next);
    });
}
