//! The status of a native kernel: 0, or a failure for which the kernel may have raised an error.

use super::locations;
use crate::ir::{FuncRef, FuncSig, Hint, Module, Type, Value};
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
    c.b.structured(|c| {
        let mut args = vec![c.data(pool.data, 0), c.i32(i64::from(template)), c.val(status)];
        let place = locations::texts(c, pool, signature, Part::Signature);
        args.extend(place.iter().flatten().flatten());
        let failed = c.func(|module| failed(module, place.is_some()));
        c.result(failed, &args).value()
    })
}

/// `int32_t failed(const void* table, uint32_t template, int32_t status)`. For a signature with a place, the
/// [texts](locations::texts) of the place follow; they are appended to the error's backtrace.
fn failed(module: &mut Module, has_place: bool) -> FuncRef {
    let name = if has_place { "__tvm_ffi_codegen_failed_at" } else { "__tvm_ffi_codegen_failed" };
    if let Some((known, _)) = module.function_named(name) {
        return known;
    }
    // `report` comes first among the functions, whose order objects keep
    let report = helpers::report(module);
    let place = [Type::Ptr, Type::I64, Type::Ptr, Type::I64];
    let place = if has_place { &place[..] } else { &[] };
    let params = [Type::Ptr, Type::I32, Type::I32].into_iter().chain(place.iter().copied());
    let sig = FuncSig::new(params, Some(Type::I32));
    module.cold_local(name, sig, |c| {
        let [table, template, status] = c.params();
        let [look, raised, raise, untouched] = c.blocks();
        c.branch(status.is(ffi_call::ENVIRONMENT_ERROR), untouched, look, Hint::None);
        c.switch_to(look);
        let error = ffi_call::take_raised(c);
        c.branch(error.is_not(0), raised, raise, Hint::None);
        c.switch_to(raised);
        ffi_call::set_raised(c, error);
        c.jump(untouched, &[]);
        c.switch_to(raise);
        let context = c.slot(8);
        context.store(0, status.sext());
        let code = c.result(report, &[table, template, context]);
        if has_place {
            let [line, wrapper] = [[3, 4], [5, 6]].map(|text| text.map(|i| c.param(i)));
            trace::append_texts(c, line, wrapper, code);
        }
        c.ret(code);
        c.switch_to(untouched);
        c.ret(status);
    })
}
