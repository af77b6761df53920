//! Tests the IR's operations on every backend with a shared table of inputs and results.

#![allow(clippy::unwrap_used, clippy::panic)]

mod floats;
mod flow;
mod integers;
mod memory;
mod state;

use crate::backend::{Backend, OptLevel};
use crate::engine::Jit;
use crate::ir::*;

type Build = Box<dyn Fn(&mut FunctionBuilder<'_>, &[Value]) -> Value>;

/// One operation with its inputs and expected results, as bits in the low part of a word.
struct Case {
    name: String,
    inputs: Vec<Type>,
    build: Build,
    rows: Vec<(Vec<u64>, u64)>,
}

impl Case {
    fn new(
        name: impl Into<String>,
        inputs: &[Type],
        build: impl Fn(&mut FunctionBuilder<'_>, &[Value]) -> Value + 'static,
        rows: Vec<(Vec<u64>, u64)>,
    ) -> Self {
        Case { name: name.into(), inputs: inputs.to_vec(), build: Box::new(build), rows }
    }
}

/// Every JIT configuration that may generate different code.
fn jits() -> Vec<(String, Jit)> {
    [false, true].into_iter().flat_map(jits_for).collect()
}

/// The configurations for this CPU, or for the baseline of its architecture.
fn jits_for(baseline: bool) -> Vec<(String, Jit)> {
    let mut out = Vec::new();
    for &backend in Backend::ALL {
        for level in [OptLevel::None, OptLevel::Speed, OptLevel::Full] {
            let jit = Jit::builder().backend(backend).opt_level(level).baseline_cpu(baseline).build().unwrap();
            out.push((format!("{backend:?}, {level:?}, baseline: {baseline}"), jit));
        }
    }
    out
}

/// Runs all cases in all configurations: with inputs from memory, and with constants, which the compiler may fold.
fn check(cases: &[Case]) {
    let (mut variable, mut constant) = (Module::new(), Module::new());
    for (i, case) in cases.iter().enumerate() {
        let name = format!("f{i}");
        define(&mut variable, &name, case);
        define_constant(&mut constant, &name, case);
    }
    let (variable, constant) = (verify(variable).unwrap(), verify(constant).unwrap());
    for (how, jit) in jits() {
        run(&jit, &variable, cases, |case, f| {
            for (inputs, expected) in &case.rows {
                let mut result = 0u64;
                f(inputs.as_ptr(), &raw mut result);
                let what = format!("{} of {inputs:x?} ({how})", case.name);
                assert_eq!(result, *expected, "{what}: got {result:#x}, expected {expected:#x}");
            }
        });
    }
    // folding doesn't depend on the CPU
    for (how, jit) in jits_for(true) {
        run(&jit, &constant, cases, |case, f| {
            let mut results = vec![0u64; case.rows.len()];
            f(std::ptr::null(), results.as_mut_ptr());
            for ((inputs, expected), result) in case.rows.iter().zip(results) {
                let what = format!("{} of {inputs:x?} ({how}), constant", case.name);
                assert_eq!(result, *expected, "{what}: got {result:#x}, expected {expected:#x}");
            }
        });
    }
}

/// Compiles the functions of the cases, and passes each case with its function to `test`.
fn run(jit: &Jit, module: &VerifiedModule, cases: &[Case], test: impl Fn(&Case, extern "C" fn(*const u64, *mut u64))) {
    type Function = extern "C" fn(*const u64, *mut u64);
    let code = jit.load(module).unwrap();
    for (i, case) in cases.iter().enumerate() {
        let address = code.function(&format!("f{i}")).unwrap();
        // SAFETY: all functions of both modules have this signature.
        test(case, unsafe { std::mem::transmute::<*const u8, Function>(address) });
    }
}

/// `fn(inputs, result)` around the operation.
fn define(module: &mut Module, name: &str, case: &Case) {
    let f = module.declare(name, FuncSig::new([Type::Ptr; 2], None), Linkage::Export);
    let mut b = FunctionBuilder::new(module, f);
    let (from, to) = (b.param(0), b.param(1));
    let values: Vec<Value> = (0i32..)
        .zip(&case.inputs)
        .map(|(i, &ty)| match ty {
            // A truth value is made from a byte.
            Type::Bool => {
                let byte = b.load(Type::I8, from, 8 * i, MemFlags::ALIGNED);
                b.icmp_imm(IntCC::Ne, byte, 0)
            }
            ty => b.load(ty, from, 8 * i, MemFlags::ALIGNED),
        })
        .collect();
    let result = (case.build)(&mut b, &values);
    store(&mut b, result, to, 0);
    b.ret(None);
    b.finish();
}

/// `fn(unused, results)` with the operation applied to constants, once per row.
fn define_constant(module: &mut Module, name: &str, case: &Case) {
    let f = module.declare(name, FuncSig::new([Type::Ptr; 2], None), Linkage::Export);
    let mut b = FunctionBuilder::new(module, f);
    let to = b.param(1);
    for (row, (inputs, _)) in case.rows.iter().enumerate() {
        let values: Vec<Value> =
            case.inputs.iter().zip(inputs).map(|(&ty, &word)| constant(&mut b, ty, word)).collect();
        let result = (case.build)(&mut b, &values);
        store(&mut b, result, to, 8 * row as i32);
    }
    b.ret(None);
    b.finish();
}

fn store(b: &mut FunctionBuilder<'_>, result: Value, to: Value, offset: i32) {
    let result = match b.type_of(result) {
        Type::Bool => b.convert(ConvertOp::ZExt, Type::I64, result),
        _ => result,
    };
    b.store(result, to, offset, MemFlags::ALIGNED);
}

fn constant(b: &mut FunctionBuilder<'_>, ty: Type, word: u64) -> Value {
    match ty {
        Type::Bool => b.bconst(word != 0),
        Type::I8 => b.iconst(ty, i64::from(word as i8)),
        Type::I16 => b.iconst(ty, i64::from(word as i16)),
        Type::I32 => b.iconst(ty, i64::from(word as i32)),
        Type::I64 => b.iconst(ty, word as i64),
        Type::F32 => b.f32(f32::from_bits(word as u32)),
        Type::F64 => b.f64(f64::from_bits(word)),
        Type::Ptr => b.ptr_const(word),
    }
}

/// All pairs of the values with the result of `f`; pairs for which it returns `None` are skipped.
fn pairs(values: &[u64], f: impl Fn(u64, u64) -> Option<u64>) -> Vec<(Vec<u64>, u64)> {
    let all = values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b)));
    all.filter_map(|(a, b)| Some((vec![a, b], f(a, b)?))).collect()
}

/// All values with the result of `f`.
fn singles(values: &[u64], f: impl Fn(u64) -> u64) -> Vec<(Vec<u64>, u64)> {
    values.iter().map(|&a| (vec![a], f(a))).collect()
}
