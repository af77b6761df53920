//! Tests memory, calls and hosts; `eval_tests.rs` tests operations on values, and `fixtures/ir` control flow.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::RefCell;

use super::entry::MAX_CALLBACKS;
use super::*;
use crate::ir::{
    BinaryOp, ConvertOp, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value, verify,
};

/// Functions by name. A function's address is its index in the list plus 1.
#[derive(Default)]
struct Table<'f>(Vec<(&'static str, RefCell<Native<'f>>)>);

fn table<'f>(functions: Vec<(&'static str, Native<'f>)>) -> Table<'f> {
    Table(functions.into_iter().map(|(name, native)| (name, RefCell::new(native))).collect())
}

type Native<'f> = Box<dyn FnMut(&[Datum]) -> Result<Option<Datum>, String> + 'f>;

impl Host for Table<'_> {
    fn resolve(&self, name: &str) -> Option<u64> {
        self.0.iter().position(|(known, _)| *known == name).map(|i| i as u64 + 1)
    }

    unsafe fn call(&self, address: u64, _: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String> {
        (self.0[address as usize - 1].1.borrow_mut())(args)
    }
}

/// A module with `f(params) -> ret`. Its body ends by returning what `build` returns.
fn module(params: &[Type], ret: Option<Type>, build: impl FnOnce(&mut FunctionBuilder) -> Option<Value>) -> Module {
    let mut module = Module::new();
    let f = module.declare("f", FuncSig::new(params.iter().copied(), ret), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let value = build(&mut b);
    b.ret(value);
    b.finish();
    module
}

fn run_with(module: Module, host: Table<'_>, args: &[Datum]) -> Result<Option<Datum>, InterpError> {
    let module = verify(module).unwrap();
    let mut interpreter = Interpreter::new(&module, host)?.with_fuel(1_000_000);
    // SAFETY: the tests' functions access only their own memory, and the host isn't native code.
    unsafe { interpreter.run("f", args) }
}

fn run(module: Module, args: &[Datum]) -> Result<Option<Datum>, InterpError> {
    run_with(module, Table::default(), args)
}

/// The result of one operation on arguments.
pub(super) fn eval(
    args: &[Datum],
    ret: Type,
    op: impl FnOnce(&mut FunctionBuilder, &[Value]) -> Value,
) -> Result<Datum, InterpError> {
    let types: Vec<Type> = args.iter().map(|arg| arg.ty()).collect();
    let module = module(&types, Some(ret), |b| {
        let params: Vec<Value> = (0..args.len()).map(|i| b.param(i)).collect();
        Some(op(b, &params))
    });
    run(module, args).map(Option::unwrap)
}

pub(super) fn trap(result: Result<Datum, InterpError>) -> TrapReason {
    match result {
        Err(InterpError::Trap { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Compares bits, since `==` on floats doesn't distinguish zeros or NaNs.
pub(super) fn assert_bits(found: Datum, expected: Datum) {
    assert_eq!((found.ty(), found.bits()), (expected.ty(), expected.bits()), "{found:?}, not {expected:?}");
}

#[test]
fn addresses_wrap() {
    let add = |p, n: i64| eval(&[Datum::Ptr(p), Datum::I64(n as u64)], Type::Ptr, |f, v| f.ptr_add(v[0], v[1]));
    assert_eq!(add(100, -1), Ok(Datum::Ptr(99)));
    assert_eq!(add(u64::MAX, 2), Ok(Datum::Ptr(1)));
    for (ty, size) in [(Type::Bool, 1), (Type::I8, 1), (Type::I16, 2), (Type::F32, 4), (Type::Ptr, 8)] {
        let element =
            |i: i64| eval(&[Datum::Ptr(1000), Datum::I64(i as u64)], Type::Ptr, |f, v| f.element(v[0], v[1], ty));
        assert_eq!(element(3), Ok(Datum::Ptr(1000 + 3 * size)));
        assert_eq!(element(-3), Ok(Datum::Ptr(1000 - 3 * size)));
    }
    let compare = |a, b| {
        eval(&[Datum::Ptr(a), Datum::Ptr(b)], Type::I8, |f, v| {
            let less = f.icmp(IntCC::ULt, v[0], v[1]);
            f.convert(ConvertOp::ZExt, Type::I8, less)
        })
    };
    assert_eq!(compare(1, 1 << 63), Ok(Datum::I8(1)));
}

#[test]
fn loads_and_stores_of_every_type() {
    for (ty, bits) in [
        (Type::I8, 0xab),
        (Type::I16, 0xabcd),
        (Type::I32, 0x89ab_cdef),
        (Type::I64, 0x0123_4567_89ab_cdef),
        (Type::F32, 0x7f80_0001),
        (Type::F64, 0x7ff0_0000_0000_0001),
        (Type::Ptr, u64::MAX),
    ] {
        // A signalling NaN stays one. Also unaligned by one byte, and with a negative offset.
        let mut memory = [0x11u8; 24];
        let value = Datum::from_bits(ty, bits);
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let copy = module(&[Type::Ptr, ty], Some(ty), |b| {
            let (p, v) = (b.param(0), b.param(1));
            b.store(v, p, 1, MemFlags::UNALIGNED);
            let end = b.ptr_add_imm(p, 24);
            Some(b.load(ty, end, -23, MemFlags::UNALIGNED))
        });
        assert_bits(run(copy, &[Datum::Ptr(address), value]).unwrap().unwrap(), value);
        let size = ty.bytes() as usize;
        assert_eq!(memory[1..=size], bits.to_le_bytes()[..size]);
        assert!(memory[0] == 0x11 && memory[size + 1..].iter().all(|byte| *byte == 0x11));
    }
}

#[test]
fn misaligned_accesses_are_reported() {
    let load = |address: u64, offset, flags| {
        eval(&[Datum::Ptr(address)], Type::I32, |f, v| f.load(Type::I32, v[0], offset, flags))
    };
    let memory = [0u64; 2];
    let address = memory.as_ptr().expose_provenance() as u64;
    assert_eq!(load(address, 2, MemFlags::UNALIGNED), Ok(Datum::I32(0)));
    assert_eq!(trap(load(address, 2, MemFlags::READONLY)), TrapReason::Misaligned(address + 2));
}

/// Runs conditionals and loops of structured code on all of their paths.
#[test]
fn structured_code_runs() {
    let function = module(&[Type::I64], Some(Type::I64), |b| {
        b.structured(|c| {
            let (n, sum) = (c.param(0), c.var(Type::I64));
            c.require(n.ge(0), || c.ret(c.i64(-1)));
            sum.set(n - n);
            c.for_up(n, |i| c.when_else((i & 1).is(0), || sum.advance(i), || sum.advance(100)));
            c.for_down(n, |i| sum.set((sum.get() << 1) + i));
            c.when(n.gt(3), || sum.advance(1000));
            c.pass_unless(n.is(4), || sum.set(-sum.get()));
            let [odd, failed] = c.blocks();
            let code = c.block_param(failed, Type::I64);
            c.aside(failed, || c.ret(code));
            c.or_fail(n.is_not(7), failed, &[n * 1000]);
            c.or_leave((n & 1).is(0), odd);
            c.ret(sum.get());
            c.switch_to(odd);
            Some((sum.get() * 3).value())
        })
    });
    let expected = |n: i64| {
        let mut sum = (0..n).map(|i| if i % 2 == 0 { i } else { 100 }).sum();
        sum = (0..n).rev().fold(sum, |sum: i64, i| 2 * sum + i) + if n > 3 { 1000 } else { 0 };
        sum = if n == 4 { -sum } else { sum };
        match n {
            ..0 => -1,
            7 => 7000,
            _ if n % 2 == 1 => 3 * sum,
            _ => sum,
        }
    };
    for n in -1..10 {
        let result = run(function.clone(), &[Datum::I64(n as u64)]);
        assert_eq!(result, Ok(Some(Datum::I64(expected(n) as u64))), "{n}");
    }
}

#[test]
fn slots_are_aligned_apart_and_fresh() {
    let sizes = [(1, 1), (24, 64), (0, 1), (3, 2), (8, 4096)];
    for (which, (_, align)) in sizes.into_iter().enumerate() {
        // Writes all slots, then reads one: they must not overlap.
        let m = module(&[], Some(Type::Ptr), |b| {
            let slots = sizes.map(|(size, align)| b.slot(size, align));
            let addresses = slots.map(|slot| b.stack_addr(slot));
            for (i, (size, _)) in sizes.into_iter().enumerate() {
                for at in 0..size {
                    let byte = b.iconst(Type::I8, i as i64 + 1);
                    b.store(byte, addresses[i], at as i32, MemFlags::UNALIGNED);
                }
            }
            let mut fine = b.bconst(true);
            for (i, (size, _)) in sizes.into_iter().enumerate() {
                for at in 0..size {
                    let byte = b.load(Type::I8, addresses[i], at as i32, MemFlags::UNALIGNED);
                    let same = b.icmp_imm(IntCC::Eq, byte, i as i64 + 1);
                    fine = b.binary(BinaryOp::And, fine, same);
                }
            }
            let null = b.ptr_const(0);
            Some(b.select(fine, addresses[which], null))
        });
        let Ok(Some(Datum::Ptr(address))) = run(m, &[]) else { panic!() };
        assert!(address != 0 && address.is_multiple_of(align.into()));
    }
    // An unwritten slot contains neither zeros nor data of an earlier call.
    let m = module(&[], Some(Type::I8), |b| {
        let slot = b.slot(1, 1);
        let address = b.stack_addr(slot);
        let before = b.load(Type::I8, address, 0, MemFlags::UNALIGNED);
        let byte = b.iconst(Type::I8, 7);
        b.store(byte, address, 0, MemFlags::UNALIGNED);
        Some(before)
    });
    let verified = verify(m).unwrap();
    let mut interpreter = Interpreter::new(&verified, Table::default()).unwrap();
    for _ in 0..2 {
        // SAFETY: the function accesses only its own slot.
        assert_eq!(unsafe { interpreter.run("f", &[]) }, Ok(Some(Datum::I8(0xa5))));
    }
}

#[test]
fn slots_too_large_for_memory_are_an_error() {
    let m = module(&[], None, |b| {
        b.slot(8, 1 << 31);
        for _ in 0..1 << 16 {
            b.slot(u32::MAX, 1 << 31);
        }
        None
    });
    let error = run(m, &[]);
    assert_eq!(error, Err(InterpError::OutOfMemory { what: "f".into() }));
}

#[test]
fn static_data_is_aligned_and_stays() {
    let mut m = module(&[], Some(Type::Ptr), |b| {
        let data = b.module().add_data("table", vec![1, 2, 3, 4, 5], 64);
        Some(b.data_addr(data, 5))
    });
    m.add_data("empty", vec![], 1);
    let verified = verify(m).unwrap();
    let mut interpreter = Interpreter::new(&verified, Table::default()).unwrap();
    // SAFETY: the function accesses no memory.
    let (first, second) = unsafe { (interpreter.run("f", &[]), interpreter.run("f", &[])) };
    assert_eq!(first, second);
    let Ok(Some(Datum::Ptr(end))) = first else { panic!() };
    assert!((end - 5).is_multiple_of(64));
    let bytes = std::ptr::with_exposed_provenance::<[u8; 5]>(end as usize - 5);
    // SAFETY: the interpreter is alive, and so is its data.
    assert_eq!(unsafe { bytes.read() }, [1, 2, 3, 4, 5]);
}

#[test]
fn calls_of_the_host() {
    let build = || {
        module(&[Type::I8, Type::F32], Some(Type::F64), |b| {
            let log = b.module().import("log", FuncSig::new([Type::I8], None));
            let mix = b.module().import("mix", FuncSig::new([Type::F32, Type::I8], Some(Type::Ptr)));
            let sig = b.signature(FuncSig::new([Type::Ptr], Some(Type::F64)));
            let (byte, single) = (b.param(0), b.param(1));
            b.call(log, &[byte]);
            let pointer = b.call(mix, &[single, byte]).unwrap();
            b.call_indirect(sig, pointer, &[pointer])
        })
    };
    let args = [Datum::I8(200), Datum::F32(0.5)];
    let mut logged = Vec::new();
    let host = table(vec![
        (
            "log",
            Box::new(|args| {
                logged.extend_from_slice(args);
                Ok(None)
            }),
        ),
        (
            "mix",
            Box::new(|args| {
                assert_eq!(args, [Datum::F32(0.5), Datum::I8(200)]);
                Ok(Some(Datum::Ptr(3)))
            }),
        ),
        (
            "by its address",
            Box::new(|args| {
                assert_eq!(args, [Datum::Ptr(3)]);
                Ok(Some(Datum::F64(2.5)))
            }),
        ),
    ]);
    assert_eq!(run_with(build(), host, &args), Ok(Some(Datum::F64(2.5))));
    assert_eq!(logged, [Datum::I8(200)]);

    let missing = run_with(build(), table(vec![("other", Box::new(|_| Ok(None)))]), &args);
    assert_eq!(missing, Err(InterpError::MissingImports { names: vec!["log".into(), "mix".into()] }));

    let failing = table(vec![("log", Box::new(|_| Err("no paper".into()))), ("mix", Box::new(|_| Ok(None)))]);
    let error = run_with(build(), failing, &args).unwrap_err();
    assert_eq!(error.to_string(), "no paper, in f, block0, inst0, `call @log(v0)`");

    // A result of another type than the signature's, and null as the callee.
    let wrong = table(vec![("log", Box::new(|_| Ok(None))), ("mix", Box::new(|_| Ok(Some(Datum::I64(3)))))]);
    assert!(matches!(run_with(build(), wrong, &args), Err(InterpError::Host { .. })));
    let null = table(vec![("log", Box::new(|_| Ok(None))), ("mix", Box::new(|_| Ok(Some(Datum::Ptr(0)))))]);
    let error = run_with(build(), null, &args);
    assert!(matches!(error, Err(InterpError::Trap { reason: TrapReason::NullAccess(0), .. })));
}

#[test]
fn runs_that_do_not_fit_are_errors() {
    let build = || {
        module(&[Type::I64], None, |b| {
            b.module().import("ext", FuncSig::default());
            None
        })
    };
    let verified = verify(build()).unwrap();
    let host = table(vec![("ext", Box::new(|_| Ok(None)))]);
    let mut interpreter = Interpreter::new(&verified, &host).unwrap();
    // SAFETY: the function accesses no memory.
    let mut run = |name: &str, args: &[Datum]| unsafe { interpreter.run(name, args) };
    assert_eq!(run("f", &[Datum::I64(1)]), Ok(None));
    for name in ["g", "ext"] {
        assert_eq!(run(name, &[]), Err(InterpError::NoSuchFunction { name: name.into() }));
    }
    for args in [&[][..], &[Datum::Ptr(1)], &[Datum::I64(1), Datum::I64(1)]] {
        assert!(matches!(run("f", args), Err(InterpError::Arguments { .. })));
    }
}

/// A host that calls back: `again(f, x)` returns `f(x)`, and `swallow(f, x)` does too, or returns 77 if `f` has failed.
/// Addresses of functions are numbers from 100.
#[derive(Default)]
struct CallsBack {
    callbacks: RefCell<Vec<Callback>>,
    gone: RefCell<Vec<Datum>>,
}

impl Host for CallsBack {
    fn resolve(&self, name: &str) -> Option<u64> {
        ["again", "swallow", "gone", "panics"].iter().position(|known| *known == name).map(|i| i as u64 + 1)
    }

    unsafe fn call(&self, address: u64, _: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String> {
        match (address, args) {
            (3, [made]) => {
                self.gone.borrow_mut().push(*made);
                Ok(None)
            }
            (1 | 2, [Datum::Ptr(callee), Datum::I64(x)]) => {
                let callback = self.callbacks.borrow()[*callee as usize - 100];
                // the upper half of the second argument is arbitrary
                let (args, mut result) = ([*x, 0xdead_beef_0000_0005], 0);
                // SAFETY: the functions take an `I64` and an `I32`, and return an `I64`.
                unsafe { callback.call(args.as_ptr(), &raw mut result) };
                let failed = address == 2 && result == u64::MAX;
                Ok(Some(Datum::I64(if failed { 77 } else { result })))
            }
            (4, _) => panic!("on purpose"),
            _ => Err(format!("{address} was called with {args:?}")),
        }
    }

    fn callback(&self, _: &FuncSig, callback: Callback) -> Result<u64, String> {
        self.callbacks.borrow_mut().push(callback);
        Ok(99 + self.callbacks.borrow().len() as u64)
    }
}

/// `down(n, five)` counts `n` down to 0, calling itself through the host for each step; `f(n)` starts it. At 0, `end`
/// provides the result. Destructors report to `gone` how often `down` has run.
fn counts_down(host_function: &str, end: impl FnOnce(&mut FunctionBuilder<'_>) -> Value) -> VerifiedModule {
    let mut module = Module::new();
    let sig = FuncSig::new([Type::I64, Type::I32], Some(Type::I64));
    let down = module.declare("down", sig.clone(), Linkage::Local);
    let by = module.import(host_function, FuncSig::new([Type::Ptr, Type::I64], Some(Type::I64)));
    let gone = module.import("gone", FuncSig::new([Type::I64], None));
    let count = module.add_state("count", 8, 8);

    let mut b = FunctionBuilder::new(&mut module, down);
    let (more, done) = (b.block(), b.block());
    let one = b.i64(1);
    let at = b.data_addr(count, 0);
    b.atomic_add(at, one);
    let zero = b.icmp_imm(IntCC::Eq, b.param(0), 0);
    b.branch(zero, done, more, Hint::None);
    b.switch_to(more);
    let address = b.func_addr(down);
    let less = b.binary(BinaryOp::Sub, b.param(0), one);
    let r = b.call(by, &[address, less]);
    b.ret(r);
    b.switch_to(done);
    let r = end(&mut b);
    b.ret(Some(r));
    b.finish();

    let f = module.declare("f", FuncSig::new([Type::I64], Some(Type::I64)), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let (address, five) = (b.func_addr(down), b.iconst(Type::I32, 5));
    let sig = b.signature(sig);
    let r = b.call_indirect(sig, address, &[b.param(0), five]);
    b.ret(r);
    b.finish();

    for step in [0, 1000] {
        let destructor = module.declare(format!("destructor{step}"), FuncSig::default(), Linkage::Local);
        let mut b = FunctionBuilder::new(&mut module, destructor);
        let at = b.data_addr(count, 0);
        let made = b.load(Type::I64, at, 0, MemFlags::ALIGNED);
        let made = b.binary_imm(BinaryOp::Add, made, step);
        b.call(gone, &[made]);
        b.ret(None);
        b.finish();
        module.destructors.push(destructor);
    }
    verify(module).unwrap()
}

/// The second parameter.
fn five(b: &mut FunctionBuilder<'_>) -> Value {
    b.convert(ConvertOp::ZExt, Type::I64, b.param(1))
}

#[test]
fn native_code_calls_back_while_it_is_called() {
    let host = CallsBack::default();
    let module = counts_down("again", five);
    let mut interpreter = Interpreter::new(&module, &host).unwrap();
    // SAFETY: the functions access only their own data, and the host isn't native code.
    let mut run = |n: u64| unsafe { interpreter.run("f", &[Datum::I64(n)]) };
    assert_eq!(run(0), Ok(Some(Datum::I64(5))));
    assert_eq!(run(10), Ok(Some(Datum::I64(5))));
    // one address for each function
    assert_eq!(host.callbacks.borrow().len(), 1);
    let limit = MAX_CALLBACKS as u64;
    assert_eq!(run(limit), Ok(Some(Datum::I64(5))));
    let deep = InterpError::TooDeep { function: "down".into(), limit: MAX_CALLBACKS };
    assert_eq!(run(limit + 1), Err(deep.clone()));
    assert_eq!(run(1), Ok(Some(Datum::I64(5))));
    // outside of a run
    let (callback, args, mut result) = (host.callbacks.borrow()[0], [limit + 1, 5], 0);
    // SAFETY: the arguments fit the function's signature.
    unsafe { callback.call(args.as_ptr(), &raw mut result) };
    assert_eq!((result, interpreter.take_failure(), interpreter.take_failure()), (u64::MAX, Some(deep), None));
    // on another thread it fails and accesses nothing
    struct Elsewhere(Callback);
    // SAFETY: everything that the callback refers to outlives the thread, and isn't used at the same time.
    unsafe impl Send for Elsewhere {}
    let elsewhere = Elsewhere(callback);
    let result = std::thread::scope(|scope| {
        let call = move || {
            let (elsewhere, mut result) = (elsewhere, 0);
            // SAFETY: as above.
            unsafe { (elsewhere.0).call([0, 5].as_ptr(), &raw mut result) };
            result
        };
        scope.spawn(call).join().unwrap()
    });
    assert_eq!((result, interpreter.take_failure()), (u64::MAX, None));
    assert!(host.gone.borrow().is_empty());
    drop(interpreter);
    let ran = 1 + 11 + (limit + 1) + (limit + 1) + 2 + (limit + 1);
    assert_eq!(*host.gone.borrow(), [ran + 1000, ran].map(Datum::I64));
}

#[test]
fn what_fails_in_a_call_back_ends_the_run() {
    let divides = |b: &mut FunctionBuilder<'_>| {
        let zero = b.i64(0);
        b.binary(BinaryOp::SDiv, b.param(0), zero)
    };
    for name in ["again", "swallow"] {
        let host = CallsBack::default();
        let module = counts_down(name, divides);
        let mut interpreter = Interpreter::new(&module, &host).unwrap();
        // SAFETY: as above.
        let error = unsafe { interpreter.run("f", &[Datum::I64(3)]) }.unwrap_err();
        let InterpError::Trap { function, reason, .. } = &error else { panic!("{error}") };
        assert!(function == "down" && *reason == TrapReason::DivisionByZero, "{error}");
        assert_eq!(interpreter.take_failure(), None);
    }
    // nested runs share one step count
    let host = CallsBack::default();
    let module = counts_down("again", five);
    let mut interpreter = Interpreter::new(&module, &host).unwrap().with_fuel(60);
    // SAFETY: as above.
    let mut run = |n: u64| unsafe { interpreter.run("f", &[Datum::I64(n)]) };
    assert_eq!(run(3), Ok(Some(Datum::I64(5))));
    assert_eq!(run(30), Err(InterpError::OutOfFuel { function: "down".into(), fuel: 60 }));
    // a host that panics
    let module = counts_down("again", |b| {
        let panics = b.module().import("panics", FuncSig::new([], Some(Type::I64)));
        b.call(panics, &[]).unwrap()
    });
    let mut interpreter = Interpreter::new(&module, &host).unwrap();
    // SAFETY: as above.
    let error = unsafe { interpreter.run("f", &[Datum::I64(1)]) }.unwrap_err().to_string();
    assert_eq!(error, "panic: on purpose, in down, a call by native code");
}

#[test]
fn destructors_run_only_after_a_run() {
    let host = CallsBack::default();
    let module = counts_down("again", five);
    drop(Interpreter::new(&module, &host).unwrap());
    assert!(host.gone.borrow().is_empty());
}

#[test]
fn a_host_without_addresses_says_so() {
    let module = module(&[], Some(Type::Ptr), |b| {
        let f = b.func_ref();
        Some(b.func_addr(f))
    });
    let error = run(module, &[]).unwrap_err().to_string();
    assert!(error.contains("gives functions of the module no addresses, such as one of () -> ptr, in f"), "{error}");
}
