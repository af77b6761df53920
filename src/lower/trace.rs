//! Adds source locations in the user's source language to the end of error backtraces.

use super::abi::byte_array;
use super::abi::error::{APPEND, BACKTRACE, UPDATE_BACKTRACE};
use super::ffi_call::{self, ENVIRONMENT_ERROR};
use super::unit::ModulePool;
use crate::ir::{Emitter, FuncRef, FuncSig, Hint, Module, Type, Val};

/// A line of a backtrace, in upstream's format.
pub(super) fn line(file: &str, line: u32, function: &str) -> String {
    format!("  File \"{file}\", line {line}, in {function}\n")
}

/// The end of the line that a runtime writes for a wrapper when it walks the stack.
pub(super) fn end_of_line(wrapper: &str) -> String {
    format!(", in {wrapper}\n")
}

/// The address of a string in the pool, and its length.
pub(super) fn text<'c>(c: Emitter<'c>, pool: &mut ModulePool, text: &str) -> [Val<'c>; 2] {
    let offset = pool.constants.text(text);
    [c.data(pool.data, offset), c.i64(text.len() as i64)]
}

/// Appends a line to the backtrace of the error that is raised with `code`. `wrapper` is the [end of the wrapper's
/// line](end_of_line). Each string is an address and a length.
pub(super) fn append_texts<'c>(c: Emitter<'c>, line: [Val<'c>; 2], wrapper: [Val<'c>; 2], code: Val<'c>) {
    c.call(c.func(tracer), &[line[0], line[1], wrapper[0], wrapper[1], code]);
}

/// `void trace(const char* text, int64_t size, const char* wrapper, int64_t wrapper_size, int32_t code)`: appends a
/// string to the backtrace of the raised error. Does nothing if there is no error, or if the code is that of an
/// environment error.
///
/// A runtime that has walked the stack may already have added the line, from debug information. The wrapper's frame
/// shows that the stack was walked this far. Without that frame, an equal line belongs to another call.
fn tracer(module: &mut Module) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_trace";
    if let Some((known, _)) = module.function_named(NAME) {
        return known;
    }
    let holds = holds_text(module);
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr, Type::I64, Type::I32], None);
    module.cold_local(NAME, sig, |c| {
        let [text, size, wrapper, wrapper_size, code] = c.params();
        let [take, look, done] = c.blocks();
        c.branch(code.is(ENVIRONMENT_ERROR), done, take, Hint::None);
        c.switch_to(take);
        let error = ffi_call::take_raised(c);
        c.branch(error.is_not(0), look, done, Hint::None);
        c.switch_to(look);
        let update = error.load(Type::Ptr, UPDATE_BACKTRACE);
        let [walked, append, back] = c.blocks();
        c.branch(update.is_not(0), walked, back, Hint::None);
        c.switch_to(walked);
        let known = [error.load(Type::Ptr, BACKTRACE), error.load(Type::I64, BACKTRACE + 8)];
        for text in [[wrapper, wrapper_size], [text, size]] {
            let found = c.result(holds, &[known, text].concat());
            c.or_leave(found.is_not(0), append);
        }
        c.jump(back, &[]);
        c.switch_to(append);
        let array = byte_array(c, text, size);
        let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::I32], None);
        c.call_indirect(sig, update, &[error, array, c.i32(APPEND)]);
        c.jump(back, &[]);
        c.switch_to(back);
        ffi_call::set_raised(c, error);
        c.jump(done, &[]);
        c.switch_to(done);
        c.ret(None);
    })
}

/// `int32_t holds_text(const char* all, int64_t all_size, const char* text, int64_t size)`: 1 if `all` contains `text`,
/// else 0.
fn holds_text(module: &mut Module) -> FuncRef {
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr, Type::I64], Some(Type::I32));
    module.cold_local("__tvm_ffi_codegen_holds_text", sig, |c| {
        let [all, all_size, text, size] = c.params();
        let [place, inside, compare, further, next, found, missing] = c.blocks();
        let start = c.block_param(place, Type::I64);
        let at = c.block_param(inside, Type::I64);
        let zero = c.i64(0);
        c.jump(place, &[zero]);
        c.switch_to(place);
        c.branch_with((start + size).le(all_size), (inside, &[zero]), (missing, &[]), Hint::None);
        c.switch_to(inside);
        c.branch(at.lt(size), compare, found, Hint::None);
        c.switch_to(compare);
        let (here, there) = (all + (start + at), text + at);
        c.branch(here.load(Type::I8, 0).is(there.load(Type::I8, 0)), further, next, Hint::None);
        c.switch_to(further);
        c.jump(inside, &[at + 1]);
        c.switch_to(next);
        c.jump(place, &[start + 1]);
        for (block, result) in [(found, 1), (missing, 0)] {
            c.switch_to(block);
            c.ret(c.i32(result));
        }
    })
}
