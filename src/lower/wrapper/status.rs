//! The status of a native kernel: 0, or a failure for which the kernel may have raised an error.

use super::locations;
use crate::ir::{ConvertOp, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, MemFlags, Module, Type, Value};
use crate::lower::encode::{self, Subject};
use crate::lower::fast_path::Checks;
use crate::lower::ffi_call;
use crate::lower::kernel::{Kernel, NativeTarget};
use crate::lower::protocol::{Directive, Piece, helpers};
use crate::lower::trace;
use crate::lower::unit::ModulePool;
use crate::spec::{Part, Signature};

/// The code to return for a nonzero status. If the kernel has raised an error, or reports an error of the environment,
/// it is the status itself. Otherwise it is the code of a `RuntimeError` that names the kernel and its status, because
/// hosts take the raised error without checking that one exists.
pub(super) fn code(
    c: &mut Checks<'_, '_>,
    pool: &mut ModulePool,
    signature: &Signature,
    kernel: &Kernel,
    status: Value,
) -> Value {
    let name = match kernel.target() {
        Some(NativeTarget::Symbol(name)) => format!("kernel `{name}`"),
        _ => "the kernel".to_owned(),
    };
    let before = format!("{name} of `{}` returned status ", encode::shown(signature, Subject::Call));
    let pieces = [Piece::Text(&before), Piece::Value(Directive::Number, 0), Piece::Text(" and raised no error")];
    let template = pool.constants.template("RuntimeError", &pieces);
    let (table, template) = (c.b.data_addr(pool.data, 0), c.b.iconst(Type::I32, i64::from(template)));
    let mut args = vec![table, template, status];
    let place = locations::texts(c.b, pool, signature, Part::Signature);
    args.extend(place.iter().flatten().flatten());
    let failed = failed(c.b.module(), place.is_some());
    // `failed` always has a result, so the fallback is never used
    c.b.call(failed, &args).unwrap_or(status)
}

/// `int32_t failed(const void* table, uint32_t template, int32_t status)`. For a signature with a place, the
/// [texts](locations::texts) of the place follow; they are appended to the error's backtrace.
fn failed(module: &mut Module, has_place: bool) -> FuncRef {
    let name = if has_place { "__tvm_ffi_codegen_failed_at" } else { "__tvm_ffi_codegen_failed" };
    if let Some((known, _)) = module.function_named(name) {
        return known;
    }
    let report = helpers::report(module);
    let place = [Type::Ptr, Type::I64, Type::Ptr, Type::I64];
    let place = if has_place { &place[..] } else { &[] };
    let params = [Type::Ptr, Type::I32, Type::I32].into_iter().chain(place.iter().copied());
    let sig = FuncSig::new(params, Some(Type::I32));
    FunctionBuilder::define_cold(module, name, sig, |b| {
        let [table, template, status] = [0, 1, 2].map(|i| b.param(i));
        let (look, raised, raise, untouched) = (b.block(), b.block(), b.block(), b.block());
        let environments = b.icmp_imm(IntCC::Eq, status, ffi_call::ENVIRONMENT_ERROR);
        b.branch(environments, untouched, look, Hint::None);
        b.switch_to(look);
        let error = ffi_call::take_raised(b);
        let there = b.icmp_imm(IntCC::Ne, error, 0);
        b.branch(there, raised, raise, Hint::None);
        b.switch_to(raised);
        ffi_call::set_raised(b, error);
        b.jump(untouched, &[]);
        b.switch_to(raise);
        let context = b.slot(8, 8);
        let context = b.stack_addr(context);
        let number = b.convert(ConvertOp::SExt, Type::I64, status);
        b.store(number, context, 0, MemFlags::ALIGNED);
        let code = b.call(report, &[table, template, context]);
        if let Some(code) = code.filter(|_| has_place) {
            let [line, wrapper] = [[3, 4], [5, 6]].map(|text| text.map(|i| b.param(i)));
            trace::append_texts(b, line, wrapper, code);
        }
        b.ret(code);
        b.switch_to(untouched);
        b.ret(Some(status));
    })
}
