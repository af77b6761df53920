use super::jits;
use crate::engine::LoadOptions;
use crate::ir::testing::module_of;
use crate::ir::*;

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
