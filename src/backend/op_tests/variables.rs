//! Variables in the frame that `ir::promote` makes values of: what a function gives stays the same.

use super::jits;
use crate::ir::interp::{Datum, Host, Interpreter};
use crate::ir::*;

/// Nothing is called.
struct Nobody;

impl Host for Nobody {
    fn resolve(&mut self, _: &str) -> Option<u64> {
        None
    }

    unsafe fn call(&mut self, _: u64, _: &FuncSig, _: &[Datum]) -> Result<Option<Datum>, String> {
        Err("nothing is called".to_owned())
    }
}

/// Functions `(i64) -> i64`, once as they are built and once simplified.
struct Pair {
    module: Module,
    count: usize,
}

impl Pair {
    fn new() -> Self {
        Pair { module: Module::new(), count: 0 }
    }

    /// Adds a function, whose body gets its parameter and addresses of as many variables. `plain` ones are zero at first.
    fn add(&mut self, variables: usize, body: impl Fn(&mut FunctionBuilder<'_>, Value, &[Value])) {
        for simplified in [false, true] {
            let name = format!("{}{}", if simplified { "s" } else { "p" }, self.count);
            let f = self.module.declare(name, FuncSig::new([Type::I64], Some(Type::I64)), Linkage::Export);
            let mut b = FunctionBuilder::new(&mut self.module, f);
            let slots: Vec<Value> = (0..variables)
                .map(|_| {
                    let slot = b.slot(8, 8);
                    b.stack_addr(slot)
                })
                .collect();
            if !simplified {
                for slot in &slots {
                    let zero = b.i64(0);
                    b.store(zero, *slot, 0, MemFlags::ALIGNED);
                }
            }
            let x = b.param(0);
            body(&mut b, x, &slots);
            if simplified {
                b.finish_simplified();
            } else {
                b.finish();
            }
        }
        self.count += 1;
    }

    fn simplified(&self, index: usize) -> &Function {
        let (_, decl) = self.module.function_named(&format!("s{index}")).unwrap();
        decl.body.as_ref().unwrap()
    }

    /// Holds both against each other, on the interpreter and every backend; gives the results.
    fn check(self, inputs: &[i64]) -> Vec<Vec<i64>> {
        let module = verify(self.module).unwrap();
        let mut interpreter = Interpreter::new(&module, Nobody).unwrap().with_fuel(10_000_000);
        let mut results = Vec::new();
        for i in 0..self.count {
            let mut run = |kind: &str, input: i64| {
                // SAFETY: the functions touch their own frames.
                let result = unsafe { interpreter.run(&format!("{kind}{i}"), &[Datum::I64(input as u64)]) };
                result.unwrap().unwrap().bits() as i64
            };
            let expected: Vec<i64> = inputs.iter().map(|&input| run("p", input)).collect();
            let found: Vec<i64> = inputs.iter().map(|&input| run("s", input)).collect();
            assert_eq!(found, expected, "function {i}");
            results.push(expected);
        }
        for (how, jit) in jits() {
            let code = jit.load(&module).unwrap();
            for (i, expected) in results.iter().enumerate() {
                // SAFETY: the function has this signature.
                let f: extern "C" fn(i64) -> i64 =
                    unsafe { std::mem::transmute(code.function(&format!("s{i}")).unwrap()) };
                let found: Vec<i64> = inputs.iter().map(|&input| f(input)).collect();
                assert_eq!(found, *expected, "function {i} ({how})");
            }
        }
        results
    }
}

fn get(b: &mut FunctionBuilder<'_>, variable: Value) -> Value {
    b.load(Type::I64, variable, 0, MemFlags::ALIGNED)
}

fn set(b: &mut FunctionBuilder<'_>, variable: Value, value: Value) {
    b.store(value, variable, 0, MemFlags::ALIGNED);
}

#[test]
fn a_loop_a_diamond_and_what_was_never_written() {
    let mut pair = Pair::new();
    // the sum of the odd numbers below x, and a variable that nothing writes
    pair.add(3, |b, x, v| {
        let (sum, i, never) = (v[0], v[1], v[2]);
        let (head, body, odd, next, done) = (b.block(), b.block(), b.block(), b.block(), b.block());
        let zero = b.i64(0);
        set(b, sum, zero);
        set(b, i, zero);
        b.jump(head, &[]);
        b.switch_to(head);
        let at = get(b, i);
        let more = b.icmp(IntCC::SLt, at, x);
        b.branch(more, body, done, Hint::None);
        b.switch_to(body);
        let bit = b.binary_imm(BinaryOp::And, at, 1);
        let is_odd = b.icmp_imm(IntCC::Ne, bit, 0);
        b.branch(is_odd, odd, next, Hint::None);
        b.switch_to(odd);
        let before = get(b, sum);
        let after = b.binary(BinaryOp::Add, before, at);
        set(b, sum, after);
        b.jump(next, &[]);
        b.switch_to(next);
        let at = get(b, i);
        let one_more = b.binary_imm(BinaryOp::Add, at, 1);
        set(b, i, one_more);
        b.jump(head, &[]);
        b.switch_to(done);
        let (total, nothing) = (get(b, sum), get(b, never));
        let both = b.binary(BinaryOp::Add, total, nothing);
        b.ret(Some(both));
        // nothing comes here
        let lost = b.block();
        b.switch_to(lost);
        let more = get(b, i);
        set(b, never, more);
        b.jump(next, &[]);
    });
    // written on one way only; each way ends in the same block
    pair.add(1, |b, x, v| {
        let (yes, join) = (b.block(), b.block());
        let positive = b.icmp_imm(IntCC::SGt, x, 0);
        b.branch(positive, yes, join, Hint::None);
        b.switch_to(yes);
        set(b, v[0], x);
        b.branch(positive, join, join, Hint::None);
        b.switch_to(join);
        let value = get(b, v[0]);
        b.ret(Some(value));
    });
    for i in 0..2 {
        let func = pair.simplified(i);
        assert!(func.slots.is_empty(), "{:?}", func.slots);
        assert!(!func.insts.values().any(|inst| matches!(inst.op, Op::Load { .. } | Op::Store { .. })));
    }
    // neither what nothing writes nor what nothing reads is carried round
    assert_eq!(pair.simplified(0).blocks.values().map(|block| block.params.len()).max(), Some(2));
    assert_eq!(pair.simplified(0).blocks.len(), 6);
    let inputs = [-3, 0, 1, 2, 9];
    assert_eq!(pair.check(&inputs), [[0, 0, 0, 1, 16], [0, 0, 1, 2, 9]]);
}

/// Slots that are no variables: one whose address is passed on, one that is read in parts, one of two types, one that is stored, one
/// that is read behind its beginning.
#[test]
fn memory_stays_memory() {
    let mut pair = Pair::new();
    let bodies: [fn(&mut FunctionBuilder<'_>, Value, Value); 5] = [
        |b, x, slot| {
            let join = b.block();
            let address = b.block_param(join, Type::Ptr);
            b.jump(join, &[slot]);
            b.switch_to(join);
            set(b, address, x);
        },
        |b, x, slot| {
            set(b, slot, x);
            let part = b.load(Type::I32, slot, 0, MemFlags::ALIGNED);
            b.store(part, slot, 4, MemFlags::ALIGNED);
        },
        |b, x, slot| {
            let float = b.convert(ConvertOp::Bitcast, Type::F64, x);
            b.store(float, slot, 0, MemFlags::ALIGNED);
        },
        |b, x, slot| {
            set(b, slot, x);
            let other = b.slot(8, 8);
            let other = b.stack_addr(other);
            b.store(slot, other, 0, MemFlags::ALIGNED);
            let address = b.load(Type::Ptr, other, 0, MemFlags::ALIGNED);
            let negative = b.unary(UnaryOp::Neg, x);
            set(b, address, negative);
        },
        |b, x, slot| {
            set(b, slot, x);
            let behind = b.ptr_add_imm(slot, 4);
            let zero = b.iconst(Type::I32, 0);
            b.store(zero, behind, 0, MemFlags::ALIGNED);
        },
    ];
    for body in bodies {
        pair.add(1, |b, x, v| {
            body(b, x, v[0]);
            let value = get(b, v[0]);
            b.ret(Some(value));
        });
    }
    for i in 0..bodies.len() {
        // the variable that has the address is one
        assert_eq!(pair.simplified(i).slots.len(), 1, "function {i}");
    }
    pair.check(&[0, 1, -1, 1 << 40, i64::MIN]);
}

/// Steele, Lea and Flood's generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// Any graph of blocks, with loops that have several entries among them.
#[test]
fn graphs_by_chance() {
    let mut pair = Pair::new();
    for seed in 0..150 {
        let variables = 1 + seed as usize % 5;
        // the last variable counts the blocks that may still be entered
        pair.add(variables + 1, |b, x, v| {
            let mut random = Random(seed);
            let (fuel, v) = v.split_last().unwrap();
            let limit = b.i64(60);
            set(b, *fuel, limit);
            let blocks: Vec<Block> = (0..1 + random.below(9)).map(|_| b.block()).collect();
            let out = b.block();
            let first = blocks[0];
            b.jump(first, &[]);
            for &block in &blocks {
                b.switch_to(block);
                for _ in 0..random.below(5) {
                    let (to, from) = (v[random.below(v.len())], v[random.below(v.len())]);
                    let value = get(b, from);
                    let value = match random.below(3) {
                        0 => b.binary(BinaryOp::Add, value, x),
                        1 => b.binary_imm(BinaryOp::Mul, value, 3),
                        _ => value,
                    };
                    set(b, to, value);
                }
                let rest = get(b, *fuel);
                let rest = b.binary_imm(BinaryOp::Sub, rest, 1);
                set(b, *fuel, rest);
                let more = b.icmp_imm(IntCC::SGt, rest, 0);
                let on = b.block();
                b.branch(more, on, out, Hint::None);
                b.switch_to(on);
                let [one, other] = [(); 2].map(|()| blocks[random.below(blocks.len())]);
                let value = get(b, v[random.below(v.len())]);
                let bit = b.binary_imm(BinaryOp::And, value, 1 + random.below(7) as i64);
                let odd = b.icmp_imm(IntCC::Ne, bit, 0);
                b.branch(odd, one, other, Hint::None);
            }
            b.switch_to(out);
            let mut sum = b.i64(0);
            for &variable in v {
                let value = get(b, variable);
                let scaled = b.binary_imm(BinaryOp::Mul, sum, 31);
                sum = b.binary(BinaryOp::Add, scaled, value);
            }
            b.ret(Some(sum));
        });
    }
    pair.check(&[0, 1, -7, 12345]);
}
