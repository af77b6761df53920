#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Instant;

use super::*;
use crate::backend::{Backend, OptLevel};
use crate::ir::*;

/// Something like a wrapper: 60 loads, comparisons and branches to cold blocks with messages.
fn wrapper_like(checks: i32) -> VerifiedModule {
    let mut module = Module::new();
    let sig = FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], Some(Type::I32));
    let f = module.declare("wrapper", sig, Linkage::Export);
    let raise = module.import("raise", FuncSig::new([Type::Ptr, Type::Ptr], None));
    let text = module.add_data("text", vec![b'x'; 1000], 1);
    let mut b = FunctionBuilder::new(&mut module, f);
    let args = b.param(1);
    let fail = b.cold_block();
    let message = b.block_param(fail, Type::Ptr);
    for i in 0..checks {
        let (ok, bad) = (b.block(), b.cold_block());
        let v = b.load(Type::I64, args, 8 * i, MemFlags::READONLY);
        let c = b.icmp_imm(IntCC::Eq, v, i64::from(i));
        b.branch(c, ok, bad, Hint::Likely);
        b.switch_to(bad);
        let message = b.data_addr(text, (i * 7) as u32);
        b.jump(fail, &[message]);
        b.switch_to(ok);
    }
    let zero = b.iconst(Type::I32, 0);
    b.ret(Some(zero));
    b.switch_to(fail);
    let kind = b.data_addr(text, 0);
    b.call(raise, &[kind, message]);
    let code = b.iconst(Type::I32, -1);
    b.ret(Some(code));
    b.finish();
    verify(module).unwrap()
}

extern "C" fn raise(_: *const u8, _: *const u8) {}

/// Not a test: `cargo test --release --lib load_time -- --ignored --nocapture`.
#[test]
#[ignore = "prints timings"]
fn load_time() {
    let backends = [
        Backend::Cranelift,
        #[cfg(feature = "_llvm")]
        Backend::Llvm,
    ];
    let levels = [OptLevel::None, OptLevel::Speed, OptLevel::Full];
    for (backend, level) in backends.into_iter().flat_map(|b| levels.map(|l| (b, l))) {
        let t = Instant::now();
        let builder = Jit::builder().backend(backend).opt_level(level);
        let jit = builder.symbol("raise", raise as *const u8).build().unwrap();
        println!("{backend:?} {level:?}: Jit {:?}", t.elapsed());
        for checks in [1, 60] {
            let module = wrapper_like(checks);
            let (mut load, mut drop_) = (Vec::new(), Vec::new());
            for i in 0..520 {
                let a = Instant::now();
                let code = jit.load(&module).unwrap();
                let b = Instant::now();
                let size = code.code_size();
                drop(code);
                drop_.push(b.elapsed());
                load.push(b - a);
                if i == 0 {
                    println!("  {checks} checks, {size} bytes; first: load {:?}", load[0]);
                }
            }
            for v in [&mut load, &mut drop_] {
                v.sort();
            }
            let m = load.len() / 2;
            println!("  median: load {:?}, drop {:?}", load[m], drop_[m]);
        }
    }
}
