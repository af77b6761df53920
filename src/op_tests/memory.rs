use super::jits;
use crate::engine::LoadOptions;
use crate::ir::testing::module_of;
use crate::ir::*;

const TYPES: [Type; 7] = [Type::I8, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64, Type::Ptr];

fn copy_module(flags: MemFlags) -> VerifiedModule {
    let mut module = Module::new();
    for ty in TYPES {
        let f = module.declare(format!("copy_{ty}"), FuncSig::new([Type::Ptr; 2], None), Linkage::Export);
        let mut b = FunctionBuilder::new(&mut module, f);
        let (from, to) = (b.param(0), b.param(1));
        let v = b.load(ty, from, -8, flags);
        b.store(v, to, 40, MemFlags { readonly: false, ..flags });
        b.ret(None);
        b.finish();
    }
    verify(module).unwrap()
}

#[test]
fn loads_and_stores_of_every_type_at_any_address() {
    for (how, jit) in jits() {
        for (flags, shifts) in [(MemFlags::UNALIGNED, 0..8usize), (MemFlags::ALIGNED, 0..1), (MemFlags::READONLY, 0..1)]
        {
            let code = jit.load(&copy_module(flags)).unwrap();
            for ty in TYPES {
                // SAFETY: the function has this signature.
                let copy: extern "C" fn(*const u8, *mut u8) =
                    unsafe { std::mem::transmute(code.function(&format!("copy_{ty}")).unwrap()) };
                for shift in shifts.clone() {
                    let from: Vec<u64> = (1..5u64).map(|i| i.wrapping_mul(0x8182_8384_8586_8788)).collect();
                    let mut to = vec![0u64; 10];
                    let source = from.as_ptr().cast::<u8>().wrapping_add(8 + shift);
                    let target = to.as_mut_ptr().cast::<u8>().wrapping_add(shift);
                    copy(source, target);
                    let bytes: Vec<u8> = from.iter().flat_map(|w| w.to_ne_bytes()).collect();
                    let got: Vec<u8> = to.iter().flat_map(|w| w.to_ne_bytes()).collect();
                    let mut expected = vec![0; 80];
                    let size = ty.bytes() as usize;
                    expected[40 + shift..][..size].copy_from_slice(&bytes[shift..][..size]);
                    assert_eq!(got, expected, "{ty} {flags:?} shift {shift} ({how})");
                }
            }
        }
    }
}

#[test]
fn addresses() {
    let mut module = Module::new();
    for ty in TYPES {
        let sig = FuncSig::new([Type::Ptr, Type::I64], Some(Type::Ptr));
        let f = module.declare(format!("element_{ty}"), sig.clone(), Linkage::Export);
        let mut b = FunctionBuilder::new(&mut module, f);
        let at = b.element(b.param(0), b.param(1), ty);
        b.ret(Some(at));
        b.finish();
    }
    let f = module.declare("add", FuncSig::new([Type::Ptr, Type::I64], Some(Type::Ptr)), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let at = b.ptr_add(b.param(0), b.param(1));
    b.ret(Some(at));
    b.finish();
    let module = verify(module).unwrap();
    for (how, jit) in jits() {
        let code = jit.load(&module).unwrap();
        let check = |name: &str, step: i64| {
            // SAFETY: the function has this signature.
            let f: extern "C" fn(u64, i64) -> u64 = unsafe { std::mem::transmute(code.function(name).unwrap()) };
            for base in [0u64, 4096, u64::MAX] {
                for index in [0, 1, -1, 1000, i64::MAX, i64::MIN] {
                    assert_eq!(
                        f(base, index),
                        base.wrapping_add(index.wrapping_mul(step) as u64),
                        "{name} {base} {index} ({how})"
                    );
                }
            }
        };
        for ty in TYPES {
            check(&format!("element_{ty}"), i64::from(ty.bytes()));
        }
        check("add", 1);
    }
}

/// Data with several alignments, read through its addresses.
#[test]
fn data() {
    let mut module = Module::new();
    let parts: Vec<(Vec<u8>, u32)> =
        vec![(vec![1, 2, 3], 1), (vec![], 1), (vec![4; 9], 64), (vec![5], 1), (vec![6; 16], 8)];
    for (i, (bytes, align)) in parts.iter().enumerate() {
        let data = module.add_data(format!("data{i}"), bytes.clone(), *align);
        let f = module.declare(format!("at{i}"), FuncSig::new([], Some(Type::Ptr)), Linkage::Export);
        let mut b = FunctionBuilder::new(&mut module, f);
        let at = b.data_addr(data, bytes.len() as u32 / 2);
        b.ret(Some(at));
        b.finish();
    }
    let module = verify(module).unwrap();
    for (how, jit) in jits() {
        let code = jit.load(&module).unwrap();
        for (i, (bytes, align)) in parts.iter().enumerate() {
            // SAFETY: the function has this signature.
            let at: extern "C" fn() -> *const u8 =
                unsafe { std::mem::transmute(code.function(&format!("at{i}")).unwrap()) };
            let half = bytes.len() / 2;
            let start = at().wrapping_sub(half);
            assert_eq!(start.addr() % *align as usize, 0, "data{i} ({how})");
            // The location where LLVM's linker puts data isn't known.
            assert!(bytes.is_empty() || how.starts_with("Llvm") || code.contains(start));
            // SAFETY: the data lives as long as `code`.
            assert_eq!(unsafe { std::slice::from_raw_parts(start, bytes.len()) }, bytes, "data{i} ({how})");
        }
    }
}

extern "C" fn fill(at: *mut u8, size: u64, with: u8) {
    // SAFETY: the caller guarantees it.
    unsafe { std::slice::from_raw_parts_mut(at, size as usize) }.fill(with);
}

/// Slots are disjoint, and have the stated alignment (whatever the caller's frame) and size.
#[test]
fn stack_slots() {
    let slots = [(1u32, 1u32), (8, 8), (100, 16), (3, 64), (20_000, 4096), (24, 8)];
    let module = module_of("f", FuncSig::new([Type::Ptr], None), |b| {
        let fill_sig = FuncSig {
            params: vec![AbiParam::new(Type::Ptr), AbiParam::new(Type::I64), AbiParam::unsigned(Type::I8)],
            ret: None,
        };
        let fill = b.module().import("fill", fill_sig);
        let out = b.param(0);
        let refs = slots.map(|(size, align)| b.slot(size, align));
        for (i, (slot, (size, _))) in refs.into_iter().zip(slots).enumerate() {
            let at = b.stack_addr(slot);
            let (size, with) = (b.i64(i64::from(size)), b.iconst(Type::I8, i as i64 + 1));
            b.call(fill, &[at, size, with]);
            b.store(at, out, 16 * i as i32, MemFlags::ALIGNED);
        }
        for (i, (slot, (size, _))) in refs.into_iter().zip(slots).enumerate() {
            let at = b.stack_addr(slot);
            let first = b.load(Type::I8, at, 0, MemFlags::UNALIGNED);
            let last = b.load(Type::I8, at, size as i32 - 1, MemFlags::UNALIGNED);
            b.store(first, out, 16 * i as i32 + 8, MemFlags::ALIGNED);
            b.store(last, out, 16 * i as i32 + 9, MemFlags::ALIGNED);
        }
        b.ret(None);
    });
    for (how, jit) in jits() {
        let options = LoadOptions { symbols: &[("fill", fill as *const u8)], ..LoadOptions::default() };
        let code = jit.load_with(&module, options).unwrap();
        // SAFETY: the function has this signature.
        let f: extern "C" fn(*mut u64) = unsafe { std::mem::transmute(code.function("f").unwrap()) };
        let mut out = [0u64; 12];
        f(out.as_mut_ptr());
        for (i, (_, align)) in slots.iter().enumerate() {
            assert_eq!(out[2 * i] % u64::from(*align), 0, "slot {i} ({how})");
            let both = 0x0101 * (i as u64 + 1);
            assert_eq!(out[2 * i + 1], both, "slot {i} was overwritten ({how})");
        }
    }
}

#[test]
fn blocks_of_memory_are_the_same_or_not() {
    const SIZES: [(usize, u32); 10] =
        [(1, 8), (1, 16), (1, 24), (1, 32), (1, 56), (1, 64), (1, MAX_SAME_BYTES), (2, 24), (3, 32), (4, 128)];
    let mut module = Module::new();
    for (pairs, size) in SIZES {
        let sig = FuncSig::new([Type::Ptr; 2], Some(Type::I8));
        let f = module.declare(format!("same_{pairs}_{size}"), sig, Linkage::Export);
        let mut b = FunctionBuilder::new(&mut module, f);
        // the blocks of the pairs are contiguous
        let at = |b: &mut FunctionBuilder<'_>, i: usize, base| b.ptr_add_imm(base, i as i64 * i64::from(size));
        let (x, y) = (b.param(0), b.param(1));
        let pairs = (0..pairs).map(|i| (at(&mut b, i, x), at(&mut b, i, y))).collect();
        let same = b.same_bytes(pairs, size);
        let same = b.convert(ConvertOp::ZExt, Type::I8, same);
        b.ret(Some(same));
        b.finish();
    }
    let module = verify(module).unwrap();
    for (how, jit) in jits() {
        let code = jit.load(&module).unwrap();
        for (pairs, size) in SIZES {
            // SAFETY: the function has this signature.
            let same: extern "C" fn(*const u64, *const u64) -> u8 =
                unsafe { std::mem::transmute(code.function(&format!("same_{pairs}_{size}")).unwrap()) };
            let words = pairs * size as usize / 8;
            // an address without vector alignment, and different words around it that must not be compared
            let a: Vec<u64> = (0..words as u64 + 2).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let mut b = a.clone();
            (b[0], b[words + 1]) = (1, 2);
            assert_eq!(same(&a[1], &b[1]), 1, "{pairs} times {size} bytes ({how})");
            for bit in (0..64 * words).step_by(7) {
                b[1 + bit / 64] ^= 1 << (bit % 64);
                assert_eq!(same(&a[1], &b[1]), 0, "{pairs} times {size} bytes, bit {bit} ({how})");
                b[1 + bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
}
