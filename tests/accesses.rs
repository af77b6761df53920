//! Wrappers read and write only what their checks allow: a proof for each fixture's signature, without running it. Then
//! each check of a fast path is removed in turn. The proof fails, or a call shows the difference.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

use proptest::collection::vec;
use tvm_ffi_codegen::ir::{self, Block, FuncRef, Linkage, Module, Op, Terminator, Type};
use tvm_ffi_codegen::lower::{Convention, RuntimeHelpers, lower};
use tvm_ffi_codegen::runtime::abi::{DLDevice, DLDeviceType, TypeIndex};
use tvm_ffi_codegen::{Kernel, Signature};

use crate::fixtures::{self, signatures};
use crate::property::calls::{self, Part, Plan};
use crate::support::accesses::{Proof, prove};
use crate::support::args::Form;
use crate::support::dice::Dice;
use crate::support::exec::{Program, Runnable, forms, interpreter, run};
use crate::support::model::{self, Prediction};
use crate::support::parallel;
use crate::support::random::{sample, stated_or};
use crate::support::value::{Call, Data, Strides, TensorSpec, Value};

#[test]
fn every_wrapper_reads_what_its_checks_allow() {
    let all = signatures();
    let proofs = parallel::map(&all, |(heading, signature, kernel)| {
        let module = lower(signature, kernel, RuntimeHelpers::Import).unwrap();
        prove(&module).unwrap_or_else(|violations| panic!("{heading}\n{violations}\n{module}"))
    });
    let sum = |count: fn(&Proof) -> usize| proofs.iter().map(count).sum::<usize>();
    let (proven, own, trusted) = (sum(|proof| proof.proven), sum(|proof| proof.own), sum(|proof| proof.trusted));
    println!("{} wrappers: {proven} reads of arguments proven, {own} own, {trusted} trusted", proofs.len());
    assert!(proven > 4000 && own > 2000, "{proven}, {own}");
}

/// A check of a fast path: a branch whose other target is the slow path.
#[derive(Clone, Copy)]
struct Check {
    func: FuncRef,
    block: Block,
    /// The number of the target that goes on.
    passes: usize,
}

/// The checks of all exported wrappers that make checks themselves. Others call the binder first.
fn checks(module: &Module) -> Vec<Check> {
    let mut found = Vec::new();
    for (func, decl) in module.functions.iter().filter(|(_, decl)| decl.linkage == Linkage::Export) {
        let Some(body) = &decl.body else { continue };
        let calls_slow_path =
            |block: Block| body.blocks[block].insts.iter().any(|&inst| is_slow_path(module, &body.insts[inst].op));
        for (block, data) in body.blocks.iter() {
            let Some(Terminator::Branch { then, otherwise, .. }) = &data.terminator else { continue };
            match [then, otherwise].map(|to| calls_slow_path(to.block)) {
                [false, true] => found.push(Check { func, block, passes: 0 }),
                [true, false] => found.push(Check { func, block, passes: 1 }),
                _ => {}
            }
        }
    }
    found
}

/// True if an instruction calls a slow path.
fn is_slow_path(module: &Module, op: &Op) -> bool {
    matches!(op, Op::Call(callee, _) if module.functions[*callee].name.ends_with("-slow-path"))
}

/// The module whose slow paths refuse all calls. It accepts the calls that pass every check of a fast path.
fn only_fast_path(module: &Module) -> Module {
    let mut changed = module.clone();
    for body in changed.functions.iter_mut().filter_map(|(_, decl)| decl.body.as_mut()) {
        for (_, inst) in body.insts.iter_mut().filter(|(_, inst)| is_slow_path(module, &inst.op)) {
            inst.op = Op::IntConst { ty: Type::I32, value: -1 };
        }
    }
    changed
}

/// The module without a check.
fn without(module: &Module, check: Check) -> Module {
    let mut module = module.clone();
    let body = module.functions[check.func].body.as_mut().unwrap();
    let terminator = body.blocks[check.block].terminator.as_mut().unwrap();
    let passes = terminator.targets().nth(check.passes).unwrap().clone();
    *terminator = Terminator::Jump(passes);
    module
}

/// The way in which a removed check was noticed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Noticed {
    ByTheProof,
    ByACall,
    Not,
}

/// `PROPTEST_CASES` of at least this number takes every signature. A run otherwise takes one in [`SOME`].
const WHOLE: u32 = 200;
const SOME: usize = 12;
/// The number of random calls of a signature, and of random plain ones. A run of some signatures makes a tenth.
const CALLS: u64 = 200;
/// The number of checks of a signature that are removed. Of more, equally many at equal distances.
const MOST_CHECKS: usize = 40;
/// The number of accepted calls that are varied: first those that pass every check of the fast path, and of these the
/// ones with most [`dimensions`]. If none is accepted, plain calls are varied.
const ACCEPTED: usize = 4;

fn takes_all() -> bool {
    stated_or(0) >= WHOLE
}

#[test]
fn each_check_is_needed() {
    let mut seen = HashSet::new();
    let all: Vec<Signature> = signatures().into_iter().map(|(_, signature, _)| signature).collect();
    let all: Vec<Signature> = all.into_iter().filter(|signature| seen.insert(signature.to_string())).collect();
    let (step, most) = if takes_all() { (1, 80) } else { (SOME, 50) };
    let some: Vec<Signature> = all.into_iter().step_by(step).collect();
    let counts = Mutex::new(BTreeMap::<Noticed, usize>::new());
    let calls = fixtures::calls();
    let unnoticed = parallel::map(&some, |signature| {
        let own = calls.get(&signature.to_string()).map_or(&[][..], Vec::as_slice);
        removed(signature, own, &counts)
    });
    let unnoticed: Vec<String> = unnoticed.into_iter().flatten().collect();
    let counts = counts.into_inner().unwrap();
    println!("{counts:?}\nnot noticed:\n{}", unnoticed.join("\n"));
    // Other checks imply most of these: a product of two sizes fits if the tensor's number of entries does, and twice a
    // size is negative if it doesn't. The slow path accepts others: NULL data without entries, and any stride of a
    // dimension with at most one.
    assert!(unnoticed.len() * most <= counts.values().sum(), "{counts:?}\n{}", unnoticed.join("\n"));
}

/// Small values of the dimension variables, for calls that are likely accepted.
const SMALL: [[i64; 5]; 4] = [[2, 3, 4, 1, 1], [1, 2, 3, 4, 1], [3, 1, 2, 2, 2], [0, 1, 0, 2, 1]];
/// Values that sizes can't have, or whose sums or products overflow.
const EXTREME: [i64; 8] = [-1, 1 << 31, 1 << 32, 1 << 61, 1 << 62, i64::MAX, i64::MIN, -1 << 32];

/// Calls that a fast path may take, with some random ones. The sizes of all arguments fit together, even if the model
/// refuses them.
fn plain_calls(signature: &Signature, random: u64) -> impl Iterator<Item = Call> {
    let small = (0..4).flat_map(|seed| SMALL.map(|values| (values, seed)));
    let extreme = (0..5).flat_map(|first| (first..5).map(move |second| (first, second))).flat_map(|(first, second)| {
        EXTREME.map(|value| {
            let mut values = SMALL[0];
            values[first] = value;
            values[second] = value;
            (values, value as u64)
        })
    });
    let random = (0..random).map(|seed| (random_values(&mut Dice::new(seed)), seed));
    small.chain(extreme).chain(random).map(|(values, seed)| Plan::of(values, 0, seed, vec![]).plain_call(signature))
}

/// Small numbers of either sign, and numbers near powers of two.
fn random_values(dice: &mut Dice) -> [i64; 5] {
    [(); 5].map(|()| match dice.below(4) {
        0 => dice.below(16) as i64 - 8,
        1 => (1i64 << dice.below(64)).wrapping_add(dice.below(3) as i64 - 1),
        _ => dice.below(6) as i64,
    })
}

/// The return code of a call in each form of its tensors, and the kind and message of its error.
type Results = Vec<(Result<i32, String>, Option<(String, String)>)>;

fn results(runnable: &mut dyn Runnable, signature: &Signature, call: &Call) -> Results {
    let of_form = |form: &Form| {
        let outcome = run(runnable, call, *form);
        (outcome.code, outcome.error)
    };
    forms(signature).iter().map(of_form).collect()
}

/// The fixture's calls of a wrapper, plain and random calls, and variations of accepted ones. Each has the results of
/// the whole wrapper, with which the model agrees. Calls whose behaviour the contract leaves open are left out.
fn judged_calls(program: &Program, own: &[Call]) -> Vec<(Call, Results)> {
    let signature = &program.signature;
    let count = if takes_all() { CALLS } else { CALLS / 10 };
    let random = sample(&vec(calls::plan(), count as usize)).into_iter().map(|plan| plan.call(signature));
    let bases = own.iter().cloned().chain(plain_calls(signature, count)).chain(random);
    let mut whole = interpreter(program).unwrap();
    let mut judged = |call: Call| {
        let accepts = matches!(model::predict(signature, &call, Convention::Flat)?, Prediction::Accepted(_));
        let results = results(&mut *whole, signature, &call);
        results.iter().for_each(|(code, _)| assert_eq!(*code == Ok(0), accepts, "{signature}\n{call:?}"));
        Some((call, results))
    };
    let mut found: Vec<(Call, Results)> = bases.filter_map(&mut judged).collect();
    let accepted = found.iter().filter(|(_, results)| results[0].0 == Ok(0));
    let mut varied: Vec<Call> = accepted.map(|(call, _)| call.clone()).collect();
    let fast = with_module(program, only_fast_path(&program.module));
    let mut fast = interpreter(&fast).unwrap();
    varied.sort_by_cached_key(|call| (run(&mut *fast, call, Form::Object).code != Ok(0), Reverse(dimensions(call))));
    if varied.is_empty() {
        varied.extend(plain_calls(signature, 0).take(ACCEPTED));
    }
    varied.truncate(ACCEPTED);
    found.extend(varied.iter().flat_map(variations).filter_map(judged));
    found
}

/// A program with another module.
fn with_module(program: &Program, module: Module) -> Program {
    let module = ir::verify(module).unwrap();
    Program { signature: program.signature.clone(), kernel: Kernel::check_only(), module }
}

/// Calls that differ from one in one part, or in one number or device wherever it occurs.
fn variations(call: &Call) -> Vec<Call> {
    let parts = calls::parts(call);
    let mut found: Vec<Call> = (0..call.args.len()).map(|count| shortened(call, count)).collect();
    let mut numbers = HashSet::new();
    for part in &parts {
        let any = (0..ANY_VALUES).map(|seed| calls::any_value(seed, part.is_held));
        // a container can't own some of these
        let nulls = if part.is_held { 0..0 } else { OBJECTS };
        let nulls = nulls.map(|index| Value::Raw(index, 0));
        found.extend(any.chain(nulls).chain(others(&part.value)).map(|value| calls::replaced(call, part, value)));
        match &part.value {
            Value::Tensor(tensor) => numbers.extend(&tensor.shape),
            Value::Shape(entries) => numbers.extend(entries),
            Value::Raw(1, integer) => numbers.extend([*integer as i64]),
            _ => {}
        }
    }
    // tensors may have to be on one device, so all of a device move together
    let devices: HashSet<DLDevice> = of_tensors(&parts).map(|tensor| tensor.device).collect();
    for (from, (kind, id)) in
        devices.iter().flat_map(|from| [(1, 0), (1, 1), (2, 0), (2, 1), (10, 0)].map(|to| (*from, to)))
    {
        found.push(everywhere(call, &parts, |value| {
            let Value::Tensor(tensor) = value else { return false };
            let moves = tensor.device == from;
            if moves {
                tensor.device = DLDevice::new(DLDeviceType(kind), id);
            }
            moves
        }));
    }
    // tensors of one shape may be compared with each other alone, so all of a rank change alike
    let ranks: HashSet<usize> = of_tensors(&parts).map(|tensor| tensor.shape.len()).collect();
    for rank in ranks {
        let first = of_tensors(&parts).find(|tensor| tensor.shape.len() == rank);
        let count = first.map_or(0, |tensor| tensors(tensor).len());
        found.extend((0..count).map(|index| {
            everywhere(call, &parts, |value| match value {
                Value::Tensor(tensor) if tensor.shape.len() == rank => {
                    *tensor = tensors(tensor).swap_remove(index);
                    true
                }
                _ => false,
            })
        }));
    }
    for (from, to) in
        numbers.iter().flat_map(|from| [-1, i64::MIN, i64::MAX, from.wrapping_add(1)].map(|to| (*from, to)))
    {
        let change = |sizes: &mut [i64]| {
            let found = sizes.contains(&from);
            sizes.iter_mut().filter(|size| **size == from).for_each(|size| *size = to);
            found
        };
        found.push(everywhere(call, &parts, |value| match value {
            Value::Tensor(tensor) => {
                tensor.data = Data::Zeros;
                change(&mut tensor.shape)
            }
            Value::Shape(entries) => change(entries),
            Value::Raw(1, integer) if *integer as i64 == from => {
                *integer = to as u64;
                true
            }
            _ => false,
        }));
    }
    found
}

/// The number of dimensions with two entries or more. Strides of others may be any.
fn dimensions(call: &Call) -> usize {
    of_tensors(&calls::parts(call)).map(|tensor| tensor.shape.iter().filter(|size| **size > 1).count()).sum()
}

/// The tensors among the parts of a call.
fn of_tensors(parts: &[Part]) -> impl Iterator<Item = &TensorSpec> {
    parts.iter().filter_map(|part| if let Value::Tensor(tensor) = &part.value { Some(tensor) } else { None })
}

/// The number of values of any type that replace each value.
const ANY_VALUES: u64 = 40;

/// The type indices of the objects that signatures name.
const OBJECTS: std::ops::Range<i32> = TypeIndex::STR.0..TypeIndex::DICT.0 + 1;

/// The call with its first arguments only.
fn shortened(call: &Call, count: usize) -> Call {
    let mut call = call.clone();
    call.args.truncate(count);
    call
}

/// The call with each value changed. `change` returns whether it has changed a value.
fn everywhere(call: &Call, parts: &[Part], change: impl Fn(&mut Value) -> bool) -> Call {
    parts.iter().fold(call.clone(), |call, part| {
        let mut value = part.value.clone();
        if change(&mut value) { calls::replaced(&call, part, value) } else { call }
    })
}

/// Values that differ from one in one part, but not in the values that it contains.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Tensor(tensor) => tensors(tensor).into_iter().map(Value::Tensor).collect(),
        Value::Raw(index, payload) => {
            let integers = [-1, 0, 1, 2, 127, 128, 255, 256, 1 << 31, 1 << 32, i64::MIN, i64::MAX];
            let integers = integers.map(|integer| Value::Raw(1, integer as u64));
            (0..8).map(|other| Value::Raw(other, *payload)).chain(integers).filter(|_| *index < 64).collect()
        }
        Value::Shape(entries) => (0..entries.len())
            .flat_map(|at| [-1, i64::MIN, i64::MAX, entries[at].wrapping_add(1)].map(|to| (at, to)))
            .map(|(at, to)| {
                let mut entries = entries.clone();
                entries[at] = to;
                Value::Shape(entries)
            })
            .chain(
                [entries.split_last().map_or(&[][..], |(_, rest)| rest), &[&entries[..], &[1]].concat()]
                    .map(|entries| Value::Shape(entries.to_vec())),
            )
            .collect(),
        Value::Array(items) | Value::List(items) => {
            let shorter = items.split_last().map_or(&[][..], |(_, rest)| rest).to_vec();
            let longer = [&items[..], &[Value::NONE]].concat();
            [shorter.clone(), longer]
                .into_iter()
                .flat_map(|items| [Value::Array(items.clone()), Value::List(items)])
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Tensors that differ from one in one field.
fn tensors(tensor: &TensorSpec) -> Vec<TensorSpec> {
    let mut found = Vec::new();
    let mut with = |change: &dyn Fn(&mut TensorSpec)| {
        let mut tensor = TensorSpec { data: Data::Zeros, ..tensor.clone() };
        change(&mut tensor);
        found.push(tensor);
    };
    let rank = tensor.shape.len();
    let mut compact = vec![1i64; rank];
    (1..rank).rev().for_each(|d| compact[d - 1] = compact[d].wrapping_mul(tensor.shape[d]));
    for d in 0..rank {
        for to in [-1, 0, 1, 2, i64::MIN, i64::MAX] {
            with(&|tensor| tensor.shape[d] = to);
            with(&|tensor| {
                tensor.shape[d] = to;
                if let Strides::Default = tensor.strides {
                    tensor.strides = Strides::Given(compact.clone());
                }
            });
        }
        for by in [-1, 1, 1 << 40] {
            with(&|tensor| {
                let mut strides = compact.clone();
                if let Strides::Given(given) = &tensor.strides {
                    strides.clone_from(given);
                }
                strides[d] = strides[d].wrapping_add(by);
                tensor.strides = Strides::Given(strides);
            });
        }
    }
    for ndim in [-1, 0, rank as i32 - 1, rank as i32 + 1] {
        with(&|tensor| tensor.ndim = Some(ndim));
    }
    with(&|tensor| tensor.dtype.bits ^= 8);
    with(&|tensor| tensor.dtype.code ^= 1);
    with(&|tensor| tensor.dtype.lanes ^= 1);
    with(&|tensor| tensor.device.device_id ^= 1);
    with(&|tensor| tensor.device.device_id = 0);
    with(&|tensor| tensor.device.device_type.0 ^= 1);
    with(&|tensor| tensor.device.device_type.0 = 1);
    with(&|tensor| tensor.data = Data::Address(0));
    for by in [1, 2, 4, 8, 16, 32, 64] {
        with(&|tensor| tensor.byte_offset ^= by);
        with(&|tensor| tensor.shift ^= by as usize);
    }
    with(&|tensor| tensor.null = true);
    with(&|tensor| tensor.null_shape = true);
    with(&|tensor| tensor.strides = Strides::Null);
    found
}

/// Removes each check of a signature's fast path in turn; returns those that neither the proof nor a call noticed.
fn removed(signature: &Signature, own: &[Call], counts: &Mutex<BTreeMap<Noticed, usize>>) -> Vec<String> {
    let Ok(program) = Program::new(signature.clone(), Kernel::check_only()) else { return Vec::new() };
    let judged = judged_calls(&program, own);
    let mut unnoticed = Vec::new();
    let checks = checks(&program.module);
    let step = checks.len().div_ceil(MOST_CHECKS).max(1);
    for check in checks.into_iter().step_by(step) {
        let mutant = without(&program.module, check);
        let noticed = match prove(&mutant) {
            // It may read anything, so it isn't run.
            Err(_) => Noticed::ByTheProof,
            Ok(_) => {
                let mutant = with_module(&program, mutant);
                let mut runnable = interpreter(&mutant).unwrap();
                let differs =
                    |(call, of_whole): &(Call, Results)| results(&mut *runnable, signature, call) != *of_whole;
                if judged.iter().any(differs) { Noticed::ByACall } else { Noticed::Not }
            }
        };
        *counts.lock().unwrap().entry(noticed).or_default() += 1;
        if noticed == Noticed::Not {
            let body = program.module.functions[check.func].body.as_ref().unwrap();
            let insts = body.blocks[check.block].insts.iter().map(|&inst| &body.insts[inst]);
            let listed: Vec<String> = insts.map(|inst| format!("  {:?} = {:?}", inst.result, inst.op)).collect();
            unnoticed.push(format!("{signature}: {}\n{}", check.block, listed.join("\n")));
        }
    }
    unnoticed
}
