//! Adds source locations in the user's source language to the end of error backtraces.

use super::abi::error::{APPEND, BACKTRACE, UPDATE_BACKTRACE};
use super::ffi_call::{self, ENVIRONMENT_ERROR};
use super::unit::ModulePool;
use crate::ir::{BinaryOp, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, MemFlags, Module, Type, Value};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::TVMFFIByteArray;

/// A line of a backtrace, in upstream's format.
pub(super) fn line(file: &str, line: u32, function: &str) -> String {
    format!("  File \"{file}\", line {line}, in {function}\n")
}

/// The end of the line that a runtime writes for a wrapper when it walks the stack.
pub(super) fn end_of_line(wrapper: &str) -> String {
    format!(", in {wrapper}\n")
}

/// The address of a string in the pool, and its length.
pub(super) fn text(b: &mut FunctionBuilder<'_>, pool: &mut ModulePool, text: &str) -> [Value; 2] {
    let offset = pool.constants.text(text);
    [b.data_addr(pool.data, offset), b.i64(text.len() as i64)]
}

/// Appends a line to the backtrace of the error that is raised with `code`. `wrapper` is the [end of the wrapper's
/// line](end_of_line). Each string is an address and a length.
pub(super) fn append_texts(b: &mut FunctionBuilder<'_>, line: [Value; 2], wrapper: [Value; 2], code: Value) {
    let trace = tracer(b.module());
    b.call(trace, &[line[0], line[1], wrapper[0], wrapper[1], code]);
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
    FunctionBuilder::define_cold(module, NAME, sig, |b| {
        let [text, size, wrapper, wrapper_size, code] = [0, 1, 2, 3, 4].map(|i| b.param(i));
        let (take, look, done) = (b.block(), b.block(), b.block());
        let environments = b.icmp_imm(IntCC::Eq, code, ENVIRONMENT_ERROR);
        b.branch(environments, done, take, Hint::None);
        b.switch_to(take);
        let error = ffi_call::take_raised(b);
        let there = b.icmp_imm(IntCC::Ne, error, 0);
        b.branch(there, look, done, Hint::None);
        b.switch_to(look);
        let update = b.load(Type::Ptr, error, UPDATE_BACKTRACE, MemFlags::ALIGNED);
        let (walked, append, back) = (b.block(), b.block(), b.block());
        let can = b.icmp_imm(IntCC::Ne, update, 0);
        b.branch(can, walked, back, Hint::None);
        b.switch_to(walked);
        let known = b.load(Type::Ptr, error, BACKTRACE, MemFlags::ALIGNED);
        let known_size = b.load(Type::I64, error, BACKTRACE + 8, MemFlags::ALIGNED);
        for (text, size) in [(wrapper, wrapper_size), (text, size)] {
            if let Some(found) = b.call(holds, &[known, known_size, text, size]) {
                let next = b.block();
                let found = b.icmp_imm(IntCC::Ne, found, 0);
                b.branch(found, next, append, Hint::None);
                b.switch_to(next);
            }
        }
        b.jump(back, &[]);
        b.switch_to(append);
        let array = b.slot(size_of::<TVMFFIByteArray>() as u32, 8);
        let array = b.stack_addr(array);
        b.store(text, array, offset_of!(TVMFFIByteArray, data) as i32, MemFlags::ALIGNED);
        b.store(size, array, offset_of!(TVMFFIByteArray, size) as i32, MemFlags::ALIGNED);
        let mode = b.iconst(Type::I32, APPEND);
        let sig = b.signature(FuncSig::c([Type::Ptr, Type::Ptr, Type::I32], None));
        b.call_indirect(sig, update, &[error, array, mode]);
        b.jump(back, &[]);
        b.switch_to(back);
        ffi_call::set_raised(b, error);
        b.jump(done, &[]);
        b.switch_to(done);
        b.ret(None);
    })
}

/// `int32_t holds_text(const char* all, int64_t all_size, const char* text, int64_t size)`: 1 if `all` contains `text`,
/// else 0.
fn holds_text(module: &mut Module) -> FuncRef {
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr, Type::I64], Some(Type::I32));
    FunctionBuilder::define_cold(module, "__tvm_ffi_codegen_holds_text", sig, |b| {
        let [all, all_size, text, size] = [0, 1, 2, 3].map(|i| b.param(i));
        let (place, inside, compare, further, next) = (b.block(), b.block(), b.block(), b.block(), b.block());
        let (found, missing) = (b.block(), b.block());
        let start = b.block_param(place, Type::I64);
        let at = b.block_param(inside, Type::I64);
        let zero = b.i64(0);
        b.jump(place, &[zero]);
        b.switch_to(place);
        let end = b.binary(BinaryOp::Add, start, size);
        let room = b.icmp(IntCC::SLe, end, all_size);
        b.branch_with(room, (inside, &[zero]), (missing, &[]), Hint::None);
        b.switch_to(inside);
        let more = b.icmp(IntCC::SLt, at, size);
        b.branch(more, compare, found, Hint::None);
        b.switch_to(compare);
        let here = b.binary(BinaryOp::Add, start, at);
        let (here, there) = (b.ptr_add(all, here), b.ptr_add(text, at));
        let (here, there) =
            (b.load(Type::I8, here, 0, MemFlags::ALIGNED), b.load(Type::I8, there, 0, MemFlags::ALIGNED));
        let same = b.icmp(IntCC::Eq, here, there);
        b.branch(same, further, next, Hint::None);
        b.switch_to(further);
        let at = b.binary_imm(BinaryOp::Add, at, 1);
        b.jump(inside, &[at]);
        b.switch_to(next);
        let start = b.binary_imm(BinaryOp::Add, start, 1);
        b.jump(place, &[start]);
        for (block, result) in [(found, 1), (missing, 0)] {
            b.switch_to(block);
            let result = b.iconst(Type::I32, result);
            b.ret(Some(result));
        }
    })
}
