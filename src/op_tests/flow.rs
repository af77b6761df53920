use super::jits;
use crate::engine::LoadOptions;
use crate::ir::testing::module_of;
use crate::ir::*;

/// Blocks whose parameters are swapped on the back edge: the parallel copies must not overwrite each other.
#[test]
fn a_loop_swaps_its_parameters() {
    let module = module_of("f", FuncSig::new([Type::I64; 3], Some(Type::I64)), |b| {
        let (x, y, n) = (b.param(0), b.param(1), b.param(2));
        let (head, body, done) = (b.block(), b.block(), b.block());
        let (a, c, i) =
            (b.block_param(head, Type::I64), b.block_param(head, Type::I64), b.block_param(head, Type::I64));
        b.jump(head, &[x, y, n]);
        b.switch_to(head);
        let more = b.icmp_imm(IntCC::SGt, i, 0);
        b.branch(more, body, done, Hint::Likely);
        b.switch_to(done);
        let hundred = b.i64(100);
        let a_100 = b.binary(BinaryOp::Mul, a, hundred);
        let r = b.binary(BinaryOp::Add, a_100, c);
        b.ret(Some(r));
        // Created after a block that it doesn't dominate, and branching backwards.
        b.switch_to(body);
        let one = b.i64(1);
        let less = b.binary(BinaryOp::Sub, i, one);
        b.jump(head, &[c, a, less]);
    });
    for (how, jit) in jits() {
        let code = jit.load(&module).unwrap();
        // SAFETY: the function has this signature.
        let f: extern "C" fn(i64, i64, i64) -> i64 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
        for n in 0..5 {
            assert_eq!(f(3, 7, n), if n % 2 == 0 { 307 } else { 703 }, "{how}");
        }
    }
}

/// A block that is created before its dominator, cold blocks, unreachable blocks, and a branch with the same block as
/// both targets.
#[test]
fn blocks_in_any_order() {
    let module = module_of("f", FuncSig::new([Type::I64], Some(Type::I64)), |b| {
        let x = b.param(0);
        let (late, early, lost, cold) = (b.block(), b.block(), b.block(), b.cold_block());
        let p = b.block_param(late, Type::I64);
        b.jump(early, &[]);
        b.switch_to(early);
        let ten = b.i64(10);
        let y = b.binary(BinaryOp::Mul, x, ten);
        let c = b.icmp_imm(IntCC::SLt, x, 0);
        b.branch(c, cold, cold, Hint::None);
        b.switch_to(cold);
        let z = b.binary(BinaryOp::Add, y, ten);
        b.branch_with(c, (late, &[y]), (late, &[z]), Hint::Unlikely);
        b.switch_to(late);
        let sum = b.binary(BinaryOp::Add, y, p);
        b.ret(Some(sum));
        b.switch_to(lost);
        b.jump(lost, &[]);
    });
    for (how, jit) in jits() {
        let code = jit.load(&module).unwrap();
        // SAFETY: the function has this signature.
        let f: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
        assert_eq!(f(1), 30, "{how}");
        assert_eq!(f(-1), -20, "{how}");
    }
}

/// Branches on each kind of condition.
#[test]
fn conditions() {
    type Cond = fn(&mut FunctionBuilder<'_>, Value) -> Value;
    type Expected = fn(i64) -> bool;
    let conds: [(&str, Cond, Expected); 5] = [
        ("lt", |b, x| b.icmp_imm(IntCC::SLt, x, 5), |x| x < 5),
        (
            "not",
            |b, x| {
                let c = b.icmp_imm(IntCC::SLt, x, 5);
                b.unary(UnaryOp::Not, c)
            },
            |x| x >= 5,
        ),
        (
            "and",
            |b, x| {
                let (c, d) = (b.icmp_imm(IntCC::SGt, x, 1), b.icmp_imm(IntCC::SLt, x, 5));
                b.binary(BinaryOp::And, c, d)
            },
            |x| x > 1 && x < 5,
        ),
        (
            "or",
            |b, x| {
                let (c, d) = (b.icmp_imm(IntCC::SLt, x, 1), b.icmp_imm(IntCC::SGt, x, 5));
                b.binary(BinaryOp::Or, c, d)
            },
            |x| !(1..=5).contains(&x),
        ),
        ("constant", |b, _| b.bconst(true), |_| true),
    ];
    for (name, cond, expected) in conds {
        let module = module_of("f", FuncSig::new([Type::I64], Some(Type::I32)), |b| {
            let c = cond(b, b.param(0));
            let (yes, no) = (b.block(), b.block());
            b.branch(c, yes, no, Hint::Unlikely);
            for (block, value) in [(yes, 1), (no, 0)] {
                b.switch_to(block);
                let v = b.iconst(Type::I32, value);
                b.ret(Some(v));
            }
        });
        for (how, jit) in jits() {
            let code = jit.load(&module).unwrap();
            // SAFETY: the function has this signature.
            let f: extern "C" fn(i64) -> i32 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
            for x in [i64::MIN, -1, 0, 1, 2, 5, 6, i64::MAX] {
                assert_eq!(f(x) == 1, expected(x), "{name} {x} ({how})");
            }
        }
    }
}

/// Calls between functions of the module, in both directions, recursive, and through a pointer.
#[test]
fn local_calls() {
    let mut module = Module::new();
    let sig = FuncSig::new([Type::I64], Some(Type::I64));
    let factorial = module.declare("factorial", sig.clone(), Linkage::Export);
    let helper = module.declare("helper", FuncSig::new([Type::I64; 2], Some(Type::I64)), Linkage::Local);
    module.functions[helper].cold = true;
    let apply_sig = FuncSig::new([Type::Ptr, Type::I64], Some(Type::I64));
    let apply = module.declare("apply", apply_sig, Linkage::Export);

    let mut b = FunctionBuilder::new(&mut module, factorial);
    let n = b.param(0);
    let (more, done) = (b.block(), b.block());
    let c = b.icmp_imm(IntCC::SGt, n, 1);
    b.branch(c, more, done, Hint::None);
    b.switch_to(done);
    let one = b.i64(1);
    b.ret(Some(one));
    b.switch_to(more);
    let one = b.i64(1);
    let less = b.binary(BinaryOp::Sub, n, one);
    let rest = b.call(factorial, &[less]).unwrap();
    let r = b.call(helper, &[n, rest]).unwrap();
    b.ret(Some(r));
    b.finish();

    let mut b = FunctionBuilder::new(&mut module, helper);
    let r = b.binary(BinaryOp::Mul, b.param(0), b.param(1));
    b.ret(Some(r));
    b.finish();

    let mut b = FunctionBuilder::new(&mut module, apply);
    let sig = b.signature(sig);
    let r = b.call_indirect(sig, b.param(0), &[b.param(1)]).unwrap();
    b.ret(Some(r));
    b.finish();

    let module = verify(module).unwrap();
    for (how, jit) in jits() {
        let code = jit.load(&module).unwrap();
        assert_eq!(code.function("helper"), None, "{how}");
        let address = code.function("factorial").unwrap();
        // SAFETY: the function has this signature.
        let factorial: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(address) };
        let apply = code.function("apply").unwrap();
        // SAFETY: as above.
        let apply: extern "C" fn(*const u8, i64) -> i64 = unsafe { std::mem::transmute(apply) };
        assert_eq!(factorial(10), 3_628_800, "{how}");
        assert_eq!(apply(address, 5), 120, "{how}");
    }
}

#[allow(clippy::too_many_arguments)] // more than fit into registers
extern "C" fn many(a: i8, b: u8, c: i16, d: u16, e: i32, f: f32, g: f64, h: i64, i: i8, j: u16, k: f32) -> i64 {
    // As a C compiler does, Rust relies on the extension of narrow arguments here.
    let narrow = [i64::from(a), i64::from(b), i64::from(c), i64::from(d), i64::from(e), i64::from(i), i64::from(j)];
    let sum = narrow.into_iter().zip(1..).fold(h, |sum, (v, weight)| sum.wrapping_add(v * weight));
    sum.wrapping_add(f as i64 + g as i64 + k as i64)
}

extern "C" fn negative() -> i8 {
    -3
}

extern "C" fn large() -> u16 {
    65_535
}

/// Narrow integers reach a C function extended, in registers and on the stack, and come back.
#[test]
fn narrow_arguments_are_extended() {
    let module = module_of("f", FuncSig::new([Type::I64], Some(Type::I64)), |b| {
        use AbiParam as P;
        let sig = FuncSig {
            params: vec![
                P::signed(Type::I8),
                P::unsigned(Type::I8),
                P::signed(Type::I16),
                P::unsigned(Type::I16),
                P::signed(Type::I32),
                P::new(Type::F32),
                P::new(Type::F64),
                P::new(Type::I64),
                P::signed(Type::I8),
                P::unsigned(Type::I16),
                P::new(Type::F32),
            ],
            ret: Some(P::new(Type::I64)),
        };
        let many = b.module().import("many", sig);
        let negative = FuncSig { params: vec![], ret: Some(P::signed(Type::I8)) };
        let negative = b.module().import("negative", negative);
        let large = b.module().import("large", FuncSig { params: vec![], ret: Some(P::unsigned(Type::I16)) });
        // The upper bits of the source register are arbitrary.
        let x = b.param(0);
        let x8 = b.convert(ConvertOp::Truncate, Type::I8, x);
        let x16 = b.convert(ConvertOp::Truncate, Type::I16, x);
        let x32 = b.convert(ConvertOp::Truncate, Type::I32, x);
        let (f, g) = (b.f32(1000.0), b.f64(-2000.0));
        let r = b.call(many, &[x8, x8, x16, x16, x32, f, g, x, x8, x16, f]).unwrap();
        let n = b.call(negative, &[]).unwrap();
        let n = b.convert(ConvertOp::SExt, Type::I64, n);
        let l = b.call(large, &[]).unwrap();
        let l = b.convert(ConvertOp::ZExt, Type::I64, l);
        let r = b.binary(BinaryOp::Add, r, n);
        let r = b.binary(BinaryOp::Add, r, l);
        b.ret(Some(r));
    });
    for (how, jit) in jits() {
        let symbols = [("many", many as *const u8), ("negative", negative as *const u8), ("large", large as *const u8)];
        let code = jit.load_with(&module, LoadOptions { symbols: &symbols, ..LoadOptions::default() }).unwrap();
        // SAFETY: the function has this signature.
        let f: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
        for x in [0, -1, 0x1234_5678_9abc_def0, i64::MIN + 0x80, 0x8080_8080] {
            let expected =
                many(x as i8, x as u8, x as i16, x as u16, x as i32, 1000.0, -2000.0, x, x as i8, x as u16, 1000.0);
            assert_eq!(f(x), expected.wrapping_sub(3).wrapping_add(65_535), "{x:#x} ({how})");
        }
    }
}

/// A narrow result is extended too, for a C caller that relies on it. LLVM omits this where callers don't rely on it,
/// as on x86-64.
#[test]
#[cfg_attr(
    all(target_arch = "aarch64", not(target_vendor = "apple")),
    ignore = "AAPCS64 leaves the upper bits of a narrow result open, and Cranelift doesn't extend it there"
)]
fn narrow_results_are_extended() {
    let sig = FuncSig { params: vec![AbiParam::new(Type::I64)], ret: Some(AbiParam::signed(Type::I16)) };
    let module = module_of("f", sig, |b| {
        let r = b.convert(ConvertOp::Truncate, Type::I16, b.param(0));
        b.ret(Some(r));
    });
    for (how, jit) in jits().into_iter().filter(|(how, _)| cfg!(target_vendor = "apple") || !how.starts_with("Llvm")) {
        let code = jit.load(&module).unwrap();
        // SAFETY: the result register is read up to the width to which it is extended.
        let f: extern "C" fn(i64) -> i32 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
        assert_eq!(f(0x1_8000), -0x8000, "{how}");
    }
}
