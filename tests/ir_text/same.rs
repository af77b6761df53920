//! Compares modules.

use tvm_ffi_codegen::ir::{FuncDecl, Function, Module, PointerFacts, ValueDef};

/// Compares all that two modules hold, except the numbers of instructions, which texts don't have.
///
/// # Errors
/// The part that differs.
pub fn same(a: &Module, b: &Module) -> Result<(), String> {
    let parts = [
        ("byte orders", a.endianness == b.endianness),
        ("data", a.data == b.data),
        ("constructors", a.constructors == b.constructors),
        ("destructors", a.destructors == b.destructors),
        ("locations", a.locations == b.locations),
        ("numbers of functions", a.functions.len() == b.functions.len()),
    ];
    if let Some((part, _)) = parts.into_iter().find(|(_, same)| !same) {
        return Err(format!("{part} differ"));
    }
    match a.functions.values().zip(b.functions.values()).find(|(a, b)| normal(a) != normal(b)) {
        Some((a, _)) => Err(format!("`{}` differs", a.name)),
        None => Ok(()),
    }
}

/// A function with its instructions numbered in their order in the blocks, without those that are in no block. Facts
/// that say nothing are left out.
fn normal(decl: &FuncDecl) -> FuncDecl {
    let mut decl = decl.clone();
    if decl.param_facts.iter().all(|facts| *facts == PointerFacts::NONE) {
        decl.param_facts.clear();
    }
    decl.body = decl.body.map(|body| {
        let mut func = Function { insts: Default::default(), locations: Default::default(), ..body.clone() };
        for block in func.blocks.values_mut() {
            for inst in &mut block.insts {
                let new = func.insts.push(body.insts[*inst].clone());
                if let Some(value) = body.insts[*inst].result {
                    func.values[value].def = ValueDef::Result(new);
                }
                if body.locations[*inst].is_some() {
                    func.locations[new] = body.locations[*inst];
                }
                *inst = new;
            }
        }
        func.end_locations = Default::default();
        for (block, location) in body.blocks.keys().map(|block| (block, body.end_locations[block])) {
            if location.is_some() {
                func.end_locations[block] = location;
            }
        }
        func
    });
    decl
}

#[test]
fn a_change_is_found() {
    let text = "local fn f(i64) -> i64 {\nblock0(v0: i64):\n    v1 = add.i64 v0, v0\n    return v1\n}\n";
    let module: Module = text.parse().unwrap();
    assert_eq!(same(&module, &text.parse().unwrap()), Ok(()));
    for (from, to) in [("add", "sub"), ("local", "export"), ("v0, v0", "v0, v1"), ("(i64)", "(ptr)")] {
        let other: Module = text.replacen(from, to, 1).parse().unwrap();
        assert!(same(&module, &other).is_err(), "{from}");
    }
    let mut other = module.clone();
    let body = other.functions.values_mut().next().unwrap().body.as_mut().unwrap();
    body.values[tvm_ffi_codegen::ir::Value::from_u32(1)].def = ValueDef::Param(body.entry().unwrap(), 0);
    assert!(same(&module, &other).is_ok(), "an instruction's result is what the instruction says");
}
