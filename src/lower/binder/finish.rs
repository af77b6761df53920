//! The checks after the parameters: deferred dimensions, constraints, the sizes of a returned tensor (C6, C10.14).

use super::dims;
use super::helper::{Binder, EXPECTED_TEXT, GOT_NUMBER, VALUE_ERROR};
use super::state::BinderState;
use super::structured::Behind;
use crate::ir::{Type, Val};
use crate::lower::protocol::state::Pass;
use crate::lower::protocol::{
    Binding, Capability, ConstraintDescriptor, Deferred, Directive, ExprDescriptor, Field, Piece, ResultDimDescriptor,
    SignatureDescriptor, SignatureExtension, TermDescriptor, field, offset,
};
use crate::spec::any_size;

const BINDINGS: Piece<'static> = Piece::Value(Directive::Bindings, Field::Expr as u32);
const UNKNOWN: Piece<'static> = Piece::Value(Directive::Unknown, Field::Expr as u32);

pub(super) fn finish<'c>(r: &Binder<'c, '_>, signature: Val<'c>) {
    if r.has(Capability::Expr) {
        deferred(r);
    }
    if !r.has(Capability::Constraint) && !r.has(Capability::ResultDim) {
        return;
    }
    r.c.when(signature.read(field!(SignatureDescriptor, has_extension)).is_not(0), || {
        if r.has(Capability::Constraint) {
            constraints(r, signature);
        }
        if r.has(Capability::ResultDim) {
            result(r, signature);
        }
    });
}

/// Checks the deferred dimensions repeatedly, as many times as there are entries. Each pass may determine another of
/// them.
fn deferred(r: &Binder<'_, '_>) {
    let count = r.field(Field::DeferredCount);
    r.set_number(Field::Pass, Pass::Again as i64);
    r.c.for_up(count, |_| look(r, count));
    r.set_number(Field::Pass, Pass::Last as i64);
    look(r, count);
}

fn look<'c>(r: &Binder<'c, '_>, count: Val<'c>) {
    r.c.for_up(count, |index| {
        let (all, size) = (r.field_ptr(Field::Deferred), r.field(Field::DeferredSize));
        let dim = all.nth(index, size);
        let descriptor = dim.load(Type::Ptr, offset!(Deferred, dim));
        r.c.when(descriptor.is_not(0), || {
            r.copy_path(dim + offset!(Deferred, path), r.path());
            r.set_field(Field::Arg, dim.load(Type::I64, offset!(Deferred, arg)));
            let got = dim.load(Type::I64, offset!(Deferred, got));
            // IS_SIZE is 1, so the stored flag can serve as the flags
            const _: () = assert!(dims::IS_SIZE == 1);
            r.dim(descriptor, got, dim.load(Type::I64, offset!(Deferred, is_size)));
            r.c.when(r.field(Field::HasValue).is(super::eval::HAS_VALUE), || {
                let done = r.c.null();
                dim.store(offset!(Deferred, dim), done);
            });
        });
    });
}

/// Sets the current expression and requires a value for each of its variables.
fn look_at<'c>(r: &Binder<'c, '_>, expr: Val<'c>, no_value: &[Piece<'_>]) {
    r.set_field(Field::Expr, expr);
    r.set_field(Field::Text, r.pool_text(expr, field!(ExprDescriptor, text)));
    let (unknown, _) = r.unknown(expr);
    r.require(unknown.is(0), VALUE_ERROR, no_value);
}

fn constraints<'c>(r: &Binder<'c, '_>, signature: Val<'c>) {
    let count = signature.read(field!(SignatureExtension, constraints).of_ending::<SignatureExtension>());
    let first = r.pool_text(signature, field!(SignatureExtension, first_constraint).of_ending::<SignatureExtension>());
    let calling = r.calling();
    r.c.for_up(count, |index| {
        r.set_subject(signature, index);
        let constraint = first.nth_descriptor::<ConstraintDescriptor>(index);
        let expr = r.pool_text(constraint, field!(ConstraintDescriptor, expr));
        let mismatch = [Piece::Text("Mismatched constraint"), calling, EXPECTED_TEXT];
        look_at(r, expr, &[&mismatch[..], &[Piece::Text(", got no value of "), UNKNOWN]].concat());
        let zero = r.c.i64(0);
        let (left, has_left) = r.value_of(expr, field!(ExprDescriptor, code), zero);
        let (right, has_right) = r.value_of(constraint, field!(ConstraintDescriptor, right), zero);
        let (one, two, four) = (r.c.i64(1), r.c.i64(2), r.c.i64(4));
        let order = left.lt(right).select(one, left.is(right).select(two, four));
        r.require(
            ((constraint.read(field!(ConstraintDescriptor, accepts)) & order).is_not(0) & has_left) & has_right,
            VALUE_ERROR,
            &[&mismatch[..], &[Piece::Text(", got "), BINDINGS]].concat(),
        );
    });
}

/// Checks the sizes of returned tensors: they can't be negative, and every product of a tensor's trailing sizes has to
/// fit.
fn result<'c>(r: &Binder<'c, '_>, signature: Val<'c>) {
    let rank = signature.read(field!(SignatureExtension, result_dims).of_ending::<SignatureExtension>());
    let first = r.pool_text(signature, field!(SignatureExtension, first_result_dim).of_ending::<SignatureExtension>());
    if r.tells_subjects() {
        r.set_subject(
            signature,
            signature.read(field!(SignatureExtension, constraints).of_ending::<SignatureExtension>()),
        );
    }
    let size_of = |d: Val<'c>| {
        let at = first.nth(d, r.c.i64(size_of::<ResultDimDescriptor>() as i64));
        let tensor = r.pool_text(at, field!(ResultDimDescriptor, tensor));
        r.set_field(Field::Payload, tensor);
        r.set_field(Field::Expected, at.read(field!(ResultDimDescriptor, number)));
        r.pool_text(at, field!(ResultDimDescriptor, expr))
    };
    let (dim, calling) = (Piece::Value(Directive::Number, Field::Expected as u32), r.calling());
    let tensor = Piece::Value(Directive::String, Field::Payload as u32);
    let mismatch = [Piece::Text("Mismatched "), tensor, Piece::Text(".shape["), dim, Piece::Text("]"), calling];
    let with = |more: &[Piece<'static>]| [&mismatch[..], more].concat();
    r.c.for_up(rank, |d| {
        let expr = size_of(d);
        look_at(r, expr, &with(&[Piece::Text(concat!(any_size!(), ", got no value of ")), UNKNOWN]));
        let zero = r.c.i64(0);
        let (size, has_value) = r.value_of(expr, field!(ExprDescriptor, code), zero);
        r.require(
            has_value,
            VALUE_ERROR,
            &with(&[EXPECTED_TEXT, Piece::Text(" in 64 bits ("), BINDINGS, Piece::Text("), got none")]),
        );
        r.set_field(Field::Got, size);
        let natural = size.ge(0);
        // equal strings are stored once, so an expression whose text is its variable's name is just that variable
        let (text, name) = (
            expr.read(field!(ExprDescriptor, text)),
            expr.read(field!(TermDescriptor, name).behind::<ExprDescriptor>()),
        );
        let alone = text.is(name);
        r.set_field(
            Field::Origin,
            r.binding(expr.read(field!(TermDescriptor, var).behind::<ExprDescriptor>())) + offset!(Binding, path),
        );
        let negative = |more: [Piece<'static>; 2]| {
            let [sep, what] = more;
            let size = [Piece::Text(concat!(any_size!(), ", got ")), GOT_NUMBER, Piece::Text(" ("), EXPECTED_TEXT];
            with(&[&size[..], &[sep, what, Piece::Text(")")]].concat())
        };
        r.require(natural | alone, VALUE_ERROR, &negative([Piece::Text(", "), BINDINGS]));
        let from = Piece::Value(Directive::DimPath, Field::Origin as u32);
        r.require(natural, VALUE_ERROR, &negative([Piece::Text(", from "), from]));
    });
    let product = r.c.var(Type::I64);
    let one = r.c.i64(1);
    product.set(one);
    let overflows = [
        Piece::Text("Mismatched "),
        tensor,
        Piece::Text(".shape"),
        calling,
        Piece::Text("sizes whose product fits in 64 bits, got an overflow"),
    ];
    r.c.for_down(rank, |d| {
        let expr = size_of(d);
        let zero = r.c.i64(0);
        let (size, _) = r.value_of(expr, field!(ExprDescriptor, code), zero);
        let before = product.get();
        let (next, ok) = r.product_fits(before, size);
        r.require(ok, VALUE_ERROR, &overflows);
        // the dimension before a first dimension (number 0) belongs to another tensor
        product.set(r.field(Field::Expected).is(0).select(one, next));
    });
}
