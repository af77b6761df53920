//! Wrappers release each reference that they own once: a proof for each fixture's signature and for generated bodies,
//! without running them. Then each release is removed, and made twice. The proof fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tvm_ffi_codegen::ir::{Block, FuncRef, Module, Op};
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};

use crate::fixtures::signatures;
use crate::fuzz::targets::bodies;
use crate::support::owners::{Proof, prove};
use crate::support::parallel;
use crate::support::random::stated_or;

/// The modules of the fixtures' signatures, with their names.
fn of_fixtures() -> Vec<(String, Module)> {
    let module = |(heading, signature, kernel): (_, _, _)| (heading, lower(&signature, &kernel, IMPORT).unwrap());
    signatures().into_iter().map(module).collect()
}

const IMPORT: RuntimeHelpers = RuntimeHelpers::Import;

/// The modules of the committed inputs of the fuzz target `bodies`, if their programs obey the rules.
fn of_bodies() -> Vec<(String, Module)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/bodies");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut modules: Vec<(String, Module)> = files
        .filter_map(|file| {
            let input = fs::read(&file).unwrap();
            let (signature, kernel) = bodies::keeps_rules(&input).then(|| bodies::function(&input, true))?;
            Some((file.display().to_string(), lower(&signature, &kernel, IMPORT).unwrap()))
        })
        .collect();
    modules.sort_by(|(a, _), (b, _)| a.cmp(b));
    modules
}

#[test]
fn every_wrapper_releases_what_it_owns() {
    for (what, modules) in [("fixtures", of_fixtures()), ("bodies", of_bodies())] {
        let proofs = parallel::map(&modules, |(heading, module)| {
            prove(module).unwrap_or_else(|violations| panic!("{heading}\n{violations}\n{module}"))
        });
        let sum = |count: fn(&Proof) -> usize| proofs.iter().map(count).sum::<usize>();
        let (owned, trusted, undecided) =
            (sum(|proof| proof.owned), sum(|proof| proof.trusted), sum(|proof| proof.undecided));
        println!(
            "{what}: {} modules, {owned} references, {trusted} releases trusted, {undecided} functions undecided",
            proofs.len()
        );
        assert!(owned > 100 && undecided * 20 < proofs.len(), "{owned}, {undecided}");
    }
}

/// A call that releases a reference.
#[derive(Clone, Copy)]
struct Release {
    func: FuncRef,
    block: Block,
    /// The number of the instruction in the block.
    at: usize,
}

/// The releases of a module that release a reference on some path, without those in functions that release one value.
fn releases(module: &Module) -> Vec<Release> {
    let proof = prove(module).unwrap();
    let mut found = Vec::new();
    for (func, decl) in module.functions.iter().filter(|(_, decl)| !decl.name.starts_with("__tvm_ffi_codegen")) {
        let Some(body) = &decl.body else { continue };
        for (block, data) in body.blocks.iter() {
            for (at, &inst) in data.insts.iter().enumerate() {
                if let Op::Call(callee, _) = &body.insts[inst].op
                    && ["__tvm_ffi_codegen_release", "TVMFFIObjectDecRef"]
                        .contains(&module.functions[*callee].name.as_str())
                    && proof.releases.contains(&(func, inst))
                {
                    found.push(Release { func, block, at });
                }
            }
        }
    }
    found
}

/// The module without a release, or with the release made twice.
fn changed(module: &Module, Release { func, block, at }: Release, twice: bool) -> Module {
    let mut module = module.clone();
    let insts = &mut module.functions[func].body.as_mut().unwrap().blocks[block].insts;
    match twice {
        true => insts.insert(at, insts[at]),
        false => drop(insts.remove(at)),
    }
    module
}

/// A smaller number in `PROPTEST_CASES` takes only some modules.
const MODULES: u32 = 100;

#[test]
fn each_release_is_needed_once() {
    let step = if stated_or(MODULES) < MODULES { 4 } else { 1 };
    let modules = of_fixtures().into_iter().chain(of_bodies()).map(|(heading, module)| {
        let releases = releases(&module);
        (heading, module, releases)
    });
    let modules: Vec<_> = modules.filter(|(_, _, releases)| !releases.is_empty()).step_by(step).collect();
    let results = parallel::map(&modules, |(heading, module, releases)| {
        let (mut counts, mut unnoticed) = (BTreeMap::<(bool, bool), usize>::new(), Vec::new());
        for &release in releases {
            for twice in [false, true] {
                let noticed = prove(&changed(module, release, twice)).is_err();
                *counts.entry((twice, noticed)).or_default() += 1;
                if !noticed {
                    let name = &module.functions[release.func].name;
                    unnoticed.push(format!("{heading}: {name}, {}, twice: {twice}", release.block));
                }
            }
        }
        (counts, unnoticed)
    });
    let mut counts = BTreeMap::<(bool, bool), usize>::new();
    for (of_module, _) in &results {
        of_module.iter().for_each(|(key, count)| *counts.entry(*key).or_default() += count);
    }
    let unnoticed: Vec<&String> = results.iter().flat_map(|(_, unnoticed)| unnoticed).collect();
    println!("(made twice, noticed): {counts:?}\nnot noticed: {unnoticed:#?}");
    // the only release of a value that the binder has accepted
    assert!(unnoticed.len() * 25 <= counts.values().sum(), "{counts:?}\n{unnoticed:#?}");
}
