//! Forwarding: a call that ends the function. The callee gets the caller's own arguments, and its result is the
//! function's.

use super::args::Arg;
use super::calls::Call;
use super::control::unreachable;
use super::function::BodyLowerer;
use super::invoke::{self, Goes};
use crate::ir::Value;
use crate::lower::abi::fields::before_zeros;
use crate::lower::abi::store_index;
use crate::lower::convention::{returns_tensors, returns_value};
use crate::spec::ParamType;
use tvm_ffi_runtime::abi::TypeIndex;

impl Call<'_> {
    /// Makes the call and ends the function with its outcome. The callee gets the arguments of this call, and after
    /// them all arguments of the function itself, as its caller has passed them; defaults stand for those left out. The
    /// callee's result is the function's result, and its error the function's error.
    ///
    /// A result of type `Any` goes straight to the caller. Results of other types are checked as those of
    /// [`returns`](Self::returns), and without a stated result it is released. The body's own values are released after
    /// the call.
    ///
    /// It is an error inside of `try_`, in a C function, in a function that returns tensors which its wrapper
    /// allocates, and with keyword arguments.
    ///
    #[cfg_attr(feature = "_engine", doc = "```")]
    #[cfg_attr(not(feature = "_engine"), doc = "```text")]
    /// use tvm_ffi_codegen::runtime::{self, Function};
    /// use tvm_ffi_codegen::{Engine, Kernel, Signature};
    ///
    /// let scaled = Function::from_typed(|even: bool, n: i64| if even { n / 2 } else { 3 * n + 1 });
    /// runtime::registry::set_global("doc.scaled", scaled, true)?;
    ///
    /// let signature: Signature = "step(n: int64) -> Any".parse()?;
    /// let kernel = Kernel::body(|b| b.call_global("doc.scaled", (b.arg("n").floor_rem(2).eq(0),)).forward());
    /// // SAFETY: the body reads no memory.
    /// let step = unsafe { Engine::new()?.compile(&signature, &kernel)? };
    /// assert_eq!(step.call((6,))?.cast::<i64>()?, 3);
    /// assert_eq!(step.call((7,))?.cast::<i64>()?, 22);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn forward(self) {
        let body = self.body;
        if body.is_in_graph("forward") {
            return body.run(&mut end);
        }
        body.record(|recorder| recorder.forward(recorder.call(&self, None)));
        if let Some(problem) = body.emit(|l| refusal(l, &self)) {
            body.note("forward", problem);
            return body.run(&mut end);
        }
        let ret = body.emit(|l| l.signature.ret().cloned());
        match ret {
            None => {
                invoke::call(self, None, true);
                body.run(&mut end);
            }
            Some(ty) if returns_value(&ty) => {
                let result = invoke::call(self, Some(ty.clone()), true);
                let value = match result.param.args.find(result.param.path()) {
                    Some((_, Arg::Scalar(_, value))) => Some(*value),
                    _ => None,
                };
                body.run(&mut |l| match value {
                    Some(value) => succeed_with(l, &ty, value),
                    None => end(l),
                });
            }
            Some(ty) => forward_result(&self, &ty),
        }
    }
}

/// Why a function can't end with a call.
fn refusal(l: &mut BodyLowerer<'_>, call: &Call<'_>) -> Option<String> {
    let signature = l.signature;
    Some(match signature.ret() {
        _ if l.is_c => "a C function has no arguments of TVM FFI to pass on; call the function instead".to_owned(),
        _ if l.exits.has_handler() => {
            "it ends the function, so no `try` can catch its errors; forward after the `try`".to_owned()
        }
        _ if !call.kwargs.is_empty() => {
            "takes no keyword arguments, since the function's own arguments stand last".to_owned()
        }
        Some(ret) if returns_tensors(ret) => {
            format!("`{signature}` returns tensors that its wrapper allocates; state the result as `Any`")
        }
        _ => return None,
    })
}

/// Ends the function, and continues in an unreachable block.
fn end(l: &mut BodyLowerer<'_>) {
    l.succeed();
    unreachable(l);
}

/// Ends the function with a checked value of the callee's.
fn succeed_with(l: &mut BodyLowerer<'_>, ty: &ParamType, value: Value) {
    match ty {
        ParamType::Scalar(ty) => l.succeed_with(*ty, value),
        ParamType::DType => {
            let payload = before_zeros(&mut l.b, value);
            l.succeed_with_bits(ty, payload);
        }
        _ => l.succeed_with_bits(ty, value),
    }
    unreachable(l);
}

/// Calls with the function's own result, and ends with the code of the call.
fn forward_result(call: &Call<'_>, ty: &ParamType) {
    let body = call.body;
    let depth = body.emit(|l| l.exits.depth());
    body.run(&mut |l| {
        if *ty != ParamType::Any {
            return;
        }
        // a callee takes a result that is None; the wrapper's slow path may have marked it
        if let Some(result) = l.result_pointer() {
            l.writes_to_caller = true;
            store_index(&mut l.b, result, TypeIndex::NONE);
        }
    });
    let operation = format!("call of `{}`", call.target.name());
    let called = invoke::make_call(call, &operation, true, Goes::ToResult);
    body.run(&mut |l| {
        let Some(called) = called else { return end(l) };
        invoke::forget_moved(l, call);
        if l.b.location().is_some() {
            l.exit_unless_zero(called.code);
            l.succeed();
        } else {
            // the exit of an error does the same with code 0
            l.exit(called.code);
        }
        unreachable(l);
        l.exits.cut(depth);
    });
}
