//! The rules of one function's body.
//!
//! Each instruction is checked in steps, and a step is skipped if an earlier one found its input missing. That keeps
//! the verifier from panicking.

use crate::ir::inst::{Block, FuncRef, Op, Terminator, Value};
use crate::ir::module::{FuncDecl, Function, Module, ValueDef};
use crate::ir::text::print::{DisplayInst, DisplayTerminator};
use crate::ir::types::Type;

use super::dominators::Dominators;
use super::problem::{Problem, ProblemLocation, Rule};
use super::signature::check_signature;
use super::typing;

/// Checks a body, and adds the broken rules to `problems`.
pub(super) fn check(module: &Module, func_ref: FuncRef, decl: &FuncDecl, func: &Function, problems: &mut Vec<Problem>) {
    let mut check = Check { module, func_ref, decl, func, problems };
    check.frame();
    check.entry();
    check.definitions();
    let defs = check.placement();
    let doms = Dominators::compute(func);
    for (block, data) in &func.blocks {
        for (i, &inst) in data.insts.iter().enumerate() {
            // `placement` reports a missing instruction.
            if let Some(data) = func.insts.get(inst) {
                let at = Use { place: ProblemLocation::Inst(block, inst), block, position: i as u32 + 1 };
                check.inst(&defs, &doms, at, &data.op, data.result);
            }
        }
        match &data.terminator {
            Some(terminator) => {
                let at = Use { place: ProblemLocation::Terminator(block), block, position: u32::MAX };
                check.terminator(&defs, &doms, at, terminator);
            }
            None => check.report(Rule::Terminators, ProblemLocation::Block(block), "there is no terminator".into()),
        }
    }
}

struct Check<'a> {
    module: &'a Module,
    func_ref: FuncRef,
    decl: &'a FuncDecl,
    func: &'a Function,
    problems: &'a mut Vec<Problem>,
}

/// Where a value is used. Positions in a block count from 1; parameters are at 0.
#[derive(Clone, Copy)]
struct Use {
    place: ProblemLocation,
    block: Block,
    position: u32,
}

/// For each value, where it is defined: the block, and the position in it.
type Defs = Vec<Option<(Block, u32)>>;

impl Check<'_> {
    fn report(&mut self, rule: Rule, place: ProblemLocation, detail: String) {
        let code = match place {
            ProblemLocation::Declaration | ProblemLocation::Block(_) => None,
            ProblemLocation::Inst(_, inst) => {
                let known = self.func.insts.is_valid(inst);
                known.then(|| DisplayInst { module: self.module, func: self.func, inst }.to_string())
            }
            ProblemLocation::Terminator(block) => {
                let terminator = self.func.blocks.get(block).and_then(|data| data.terminator.as_ref());
                terminator.map(|terminator| DisplayTerminator(terminator).to_string())
            }
        };
        let symbol = self.decl.name.clone();
        self.problems.push(Problem { rule, function: Some(self.func_ref), symbol, place, code, detail });
    }

    /// Slots and signatures: rules 3, 4 and 5.
    fn frame(&mut self) {
        let func = self.func;
        for (slot, data) in &func.slots {
            if !data.align.is_power_of_two() {
                self.report(
                    Rule::Alignment,
                    ProblemLocation::Declaration,
                    format!("{slot} has alignment {}", data.align),
                );
            }
        }
        for (sig, signature) in &func.signatures {
            check_signature(signature, &format!("{sig}: "), &mut |rule, detail| {
                self.report(rule, ProblemLocation::Declaration, detail);
            });
        }
    }

    /// Rule 6.
    fn entry(&mut self) {
        let Some(entry) = self.func.entry() else {
            return self.report(Rule::Entry, ProblemLocation::Declaration, "there are no blocks".into());
        };
        let params = &self.func.blocks[entry].params;
        let types: Option<Vec<Type>> = params.iter().map(|p| self.func.values.get(*p).map(|v| v.ty)).collect();
        // `definitions` reports a missing parameter.
        if let Some(types) = types
            && !types.iter().eq(self.decl.signature.params.iter().map(|p| &p.ty))
        {
            let types: Vec<String> = types.iter().map(Type::to_string).collect();
            let detail = format!("its parameters are ({}), the signature is {}", types.join(", "), self.decl.signature);
            self.report(Rule::Entry, ProblemLocation::Block(entry), detail);
        }
    }

    /// Rule 10, and rule 8 for block parameters.
    fn definitions(&mut self) {
        let func = self.func;
        for (block, data) in &func.blocks {
            for (i, &param) in data.params.iter().enumerate() {
                let place = ProblemLocation::Block(block);
                match func.values.get(param) {
                    None => self.report(Rule::References, place, format!("parameter {i}, {param}, does not exist")),
                    Some(value) if value.def != ValueDef::Param(block, i as u32) => {
                        let detail = format!("{param} is parameter {i}, but says that it is {:?}", value.def);
                        self.report(Rule::Definitions, place, detail);
                    }
                    Some(_) => {}
                }
            }
        }
        for (value, data) in &func.values {
            let named = match data.def {
                ValueDef::Param(block, i) => func.blocks.get(block).and_then(|b| b.params.get(i as usize)).copied(),
                ValueDef::Result(inst) => func.insts.get(inst).and_then(|i| i.result),
            };
            if named != Some(value) {
                let detail = format!("{value} says that it is {:?}, which doesn't define it", data.def);
                self.report(Rule::Definitions, ProblemLocation::Declaration, detail);
            }
        }
    }

    /// Rule 9, and rule 8 for the instructions of blocks. Returns where each value is defined.
    fn placement(&mut self) -> Defs {
        let func = self.func;
        let mut defs: Defs = vec![None; func.values.len()];
        let mut define = |value: Value, block, position| {
            if let Some(def) = defs.get_mut(value.as_u32() as usize) {
                def.get_or_insert((block, position));
            }
        };
        let mut placed: Vec<Option<Block>> = vec![None; func.insts.len()];
        for (block, data) in &func.blocks {
            for &param in &data.params {
                define(param, block, 0);
            }
            for (i, &inst) in data.insts.iter().enumerate() {
                let Some(placed) = placed.get_mut(inst.as_u32() as usize) else {
                    self.report(Rule::References, ProblemLocation::Inst(block, inst), format!("{inst} does not exist"));
                    continue;
                };
                if let Some(before) = placed.replace(block) {
                    self.report(Rule::Placement, ProblemLocation::Inst(block, inst), format!("it is also in {before}"));
                }
                if let Some(result) = func.insts[inst].result {
                    define(result, block, i as u32 + 1);
                }
            }
        }
        defs
    }

    fn inst(&mut self, defs: &Defs, doms: &Dominators, at: Use, op: &Op, result: Option<Value>) {
        let mut fine = self.references(at.place, op);
        op.for_each_operand(|value| fine &= self.operand(defs, doms, at, value));
        if let Some(value) = result {
            fine &= self.result(at.place, value);
        }
        if !fine {
            return;
        }
        match typing::result_type(self.module, self.func, op) {
            Err((rule, detail)) => self.report(rule, at.place, detail),
            Ok(gives) => {
                let has = result.map(|value| self.func.type_of(value));
                if gives != has {
                    let name = |ty: Option<Type>| ty.map_or("none".to_owned(), |ty| ty.to_string());
                    let detail = format!("its result is {}, should be {}", name(has), name(gives));
                    self.report(Rule::Results, at.place, detail);
                }
            }
        }
    }

    /// Rules 8 and 10 for the result of an instruction. Returns whether the result exists.
    fn result(&mut self, place: ProblemLocation, value: Value) -> bool {
        let Some(data) = self.func.values.get(value) else {
            self.report(Rule::References, place, format!("{value} does not exist"));
            return false;
        };
        if !matches!((place, data.def), (ProblemLocation::Inst(_, inst), ValueDef::Result(def)) if inst == def) {
            self.report(Rule::Definitions, place, format!("{value} says that it is {:?}", data.def));
        }
        true
    }

    /// Rule 8 for everything that an operation names besides values. Returns whether all of it exists.
    fn references(&mut self, place: ProblemLocation, op: &Op) -> bool {
        let missing = match op {
            Op::StackAddr(slot, _) if !self.func.slots.is_valid(*slot) => slot.to_string(),
            Op::DataAddr(data, _) if !self.module.data.is_valid(*data) => data.to_string(),
            Op::Call(callee, _) | Op::FuncAddr(callee) if !self.module.functions.is_valid(*callee) => {
                callee.to_string()
            }
            Op::CallIndirect(sig, ..) if !self.func.signatures.is_valid(*sig) => sig.to_string(),
            _ => return true,
        };
        self.report(Rule::References, place, format!("{missing} does not exist"));
        false
    }

    /// Rules 8 and 11 for a used value. Returns whether it exists, so its type can be looked up.
    fn operand(&mut self, defs: &Defs, doms: &Dominators, at: Use, value: Value) -> bool {
        let Some(def) = defs.get(value.as_u32() as usize) else {
            self.report(Rule::References, at.place, format!("{value} does not exist"));
            return false;
        };
        match *def {
            None => self.report(Rule::Dominance, at.place, format!("nothing in any block defines {value}")),
            Some(_) if !doms.is_reachable(at.block) => {}
            Some((block, position)) if block == at.block => {
                if position >= at.position {
                    self.report(Rule::Dominance, at.place, format!("{value} is defined further down"));
                }
            }
            Some((block, _)) => {
                if !doms.dominates(block, at.block) {
                    let detail = format!("{value} is defined in {block}, which doesn't dominate {}", at.block);
                    self.report(Rule::Dominance, at.place, detail);
                }
            }
        }
        true
    }

    fn terminator(&mut self, defs: &Defs, doms: &Dominators, at: Use, terminator: &Terminator) {
        let operand = terminator.operand();
        let there = operand.is_none_or(|value| self.operand(defs, doms, at, value));
        match terminator {
            Terminator::Branch { cond, .. } if there => {
                if let Err((rule, detail)) = typing::check_condition(self.func, *cond) {
                    self.report(rule, at.place, detail);
                }
            }
            Terminator::Return(value) if there => {
                let has = value.map(|value| self.func.type_of(value));
                if has != self.decl.signature.ret.map(|ret| ret.ty) {
                    let has = has.map_or("nothing".to_owned(), |ty| ty.to_string());
                    let detail = format!("it returns {has}, the signature is {}", self.decl.signature);
                    self.report(Rule::Returns, at.place, detail);
                }
            }
            _ => {}
        }
        for to in terminator.targets() {
            let mut fine = true;
            for &arg in &to.args {
                fine &= self.operand(defs, doms, at, arg);
            }
            let Some(target) = self.func.blocks.get(to.block) else {
                self.report(Rule::References, at.place, format!("{} does not exist", to.block));
                continue;
            };
            if Some(to.block) == self.func.entry() {
                self.report(Rule::EntryTarget, at.place, format!("{} is the entry block", to.block));
            }
            fine &= target.params.iter().all(|param| self.func.values.is_valid(*param));
            if !fine {
                continue;
            }
            let params = target.params.iter().map(|param| self.func.type_of(*param));
            if let Some(detail) = typing::mismatch(self.func, &to.args, params) {
                self.report(Rule::BranchArguments, at.place, format!("{}: {detail}", to.block));
            }
        }
    }
}
