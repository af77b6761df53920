//! Translates a function of the IR to LLVM: blocks, their order, and their terminators.
//!
//! Block parameters become phis. Blocks are visited depth first from the entry, so each definition is seen before its
//! uses and unreachable blocks are left out.

use cranelift_entity::SecondaryMap;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::intrinsics::Intrinsic;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, FloatValue, FunctionValue, IntValue, PhiValue, PointerValue};

use super::debug::Scope;
use super::module::ModuleTranslator;
use crate::ir::{Block, BlockCall, Function, Hint, LocationRef, Terminator, Value};

/// Why a function can't be built: usually a bug of this library.
#[derive(Debug, thiserror::Error)]
pub(super) enum BuildError {
    #[error(transparent)]
    Builder(#[from] BuilderError),
    #[error("{0}")]
    Missing(&'static str),
}

/// The result type of all build steps.
pub(super) type Built<T> = Result<T, BuildError>;

/// The translation of one function.
pub(super) struct FunctionTranslator<'t, 'a, 'ctx> {
    pub(super) m: &'t mut ModuleTranslator<'a, 'ctx>,
    pub(super) body: &'t Function,
    pub(super) function: FunctionValue<'ctx>,
    pub(super) builder: Builder<'ctx>,
    /// Whether a load that the IR marks read-only is also invariant in every function that this one may be inlined
    /// into.
    pub(super) invariant: bool,
    values: SecondaryMap<Value, Option<BasicValueEnum<'ctx>>>,
    blocks: SecondaryMap<Block, Option<BasicBlock<'ctx>>>,
    phis: SecondaryMap<Block, Vec<PhiValue<'ctx>>>,
    pub(super) slots: Vec<PointerValue<'ctx>>,
    trap: Option<BasicBlock<'ctx>>,
    /// The debug scope of the function, if it has source locations.
    scope: Option<Scope<'ctx>>,
}

/// Translates a body into a function that has no body yet.
pub(super) fn translate<'ctx>(
    m: &mut ModuleTranslator<'_, 'ctx>,
    body: &Function,
    function: FunctionValue<'ctx>,
    invariant: bool,
    scope: Option<Scope<'ctx>>,
) -> Built<()> {
    let builder = m.context.create_builder();
    let mut t = FunctionTranslator {
        m,
        body,
        function,
        builder,
        invariant,
        values: SecondaryMap::new(),
        blocks: SecondaryMap::new(),
        phis: SecondaryMap::new(),
        slots: Vec::new(),
        trap: None,
        scope,
    };
    t.locate(None);
    let order = order(body);
    t.make_blocks(&order)?;
    for block in order {
        t.block(block)?;
    }
    Ok(())
}

/// Reachable blocks, depth first, the likely successor first. Without optimisation this is the layout of the code.
fn order(body: &Function) -> Vec<Block> {
    let mut order = Vec::with_capacity(body.blocks.len());
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut pending: Vec<Block> = body.entry().into_iter().collect();
    while let Some(block) = pending.pop() {
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        order.push(block);
        match &body.blocks[block].terminator {
            Some(Terminator::Jump(to)) => pending.push(to.block),
            Some(Terminator::Branch { then, otherwise, hint, .. }) => {
                let (first, second) = if *hint == Hint::Unlikely { (otherwise, then) } else { (then, otherwise) };
                pending.extend([second.block, first.block]);
            }
            Some(Terminator::Return(_)) | None => {}
        }
    }
    order
}

impl<'ctx> FunctionTranslator<'_, '_, 'ctx> {
    fn make_blocks(&mut self, order: &[Block]) -> Built<()> {
        for &block in order {
            let new = self.m.context.append_basic_block(self.function, "");
            self.blocks[block] = Some(new);
            self.builder.position_at_end(new);
            let params = &self.body.blocks[block].params;
            if self.body.entry() == Some(block) {
                for (&param, value) in params.iter().zip(self.function.get_param_iter()) {
                    self.values[param] = Some(value);
                }
                self.make_slots()?;
                continue;
            }
            for &param in params {
                let phi = self.builder.build_phi(self.m.types.of(self.body.type_of(param)), "")?;
                self.values[param] = Some(phi.as_basic_value());
                self.phis[block].push(phi);
            }
        }
        Ok(())
    }

    fn make_slots(&mut self) -> Built<()> {
        for slot in self.body.slots.values() {
            let address = self.builder.build_alloca(self.m.types.i8.array_type(slot.size), "")?;
            if let Some(alloca) = address.as_instruction_value() {
                // This fails only if the alignment isn't a power of two, and the verifier has checked that.
                let _ = alloca.set_alignment(slot.align);
            }
            self.slots.push(address);
        }
        Ok(())
    }

    fn block(&mut self, block: Block) -> Built<()> {
        let data = &self.body.blocks[block];
        self.builder.position_at_end(self.target(block)?);
        self.locate(None);
        for &inst in &data.insts {
            self.locate(self.body.locations[inst].expand());
            let inst = &self.body.insts[inst];
            let value = self.op(&inst.op)?;
            if let Some(result) = inst.result {
                self.values[result] = value;
            }
        }
        if let Some(end) = self.body.end_locations[block].expand() {
            self.locate(Some(end));
        }
        match &data.terminator {
            Some(Terminator::Jump(to)) => {
                self.pass(to)?;
                self.builder.build_unconditional_branch(self.target(to.block)?)?;
            }
            Some(Terminator::Branch { cond, then, otherwise, hint }) => {
                let cond = self.int(*cond)?;
                if then.block == otherwise.block {
                    return self.select_args(cond, then, otherwise);
                }
                self.pass(then)?;
                self.pass(otherwise)?;
                let (yes, no) = (self.target(then.block)?, self.target(otherwise.block)?);
                let branch = self.builder.build_conditional_branch(cond, yes, no)?;
                self.m.facts.branch(branch, self.hint(*hint, then, otherwise));
            }
            Some(Terminator::Return(Some(value))) => {
                let value = self.value(*value)?;
                self.builder.build_return(Some(&value))?;
            }
            Some(Terminator::Return(None)) => {
                self.builder.build_return(None)?;
            }
            // Can't happen in a verified module.
            None => {
                self.builder.build_unreachable()?;
            }
        }
        Ok(())
    }

    /// Sets the location of the code that follows. A terminator without a location has that of the last instruction
    /// before it.
    fn locate(&mut self, location: Option<LocationRef>) {
        if let (Some(debug), Some(scope)) = (&mut self.m.debug, &mut self.scope) {
            self.builder.set_current_debug_location(debug.location(scope, location));
        }
    }

    /// The branch's hint, or one derived from the coldness of its targets.
    fn hint(&self, hint: Hint, then: &BlockCall, otherwise: &BlockCall) -> Hint {
        match (hint, self.body.blocks[then.block].cold, self.body.blocks[otherwise.block].cold) {
            (Hint::None, false, true) => Hint::Likely,
            (Hint::None, true, false) => Hint::Unlikely,
            (hint, ..) => hint,
        }
    }

    /// Passes arguments with a select where both edges lead to one block: a phi has one value per predecessor.
    fn select_args(&mut self, cond: IntValue<'ctx>, then: &BlockCall, otherwise: &BlockCall) -> Built<()> {
        let from = self.current()?;
        for (i, (&a, &b)) in then.args.iter().zip(&otherwise.args).enumerate() {
            let value = self.builder.build_select(cond, self.value(a)?, self.value(b)?, "")?;
            self.phis[then.block][i].add_incoming(&[(&value, from)]);
        }
        self.builder.build_unconditional_branch(self.target(then.block)?)?;
        Ok(())
    }

    /// Passes the arguments of the edge from the current block to a target's parameters.
    fn pass(&mut self, to: &BlockCall) -> Built<()> {
        let from = self.current()?;
        for (i, &arg) in to.args.iter().enumerate() {
            let value = self.value(arg)?;
            self.phis[to.block][i].add_incoming(&[(&value, from)]);
        }
        Ok(())
    }

    pub(super) fn current(&self) -> Built<BasicBlock<'ctx>> {
        self.builder.get_insert_block().ok_or(BuildError::Missing("a block is missing"))
    }

    fn target(&self, block: Block) -> Built<BasicBlock<'ctx>> {
        self.blocks[block].ok_or(BuildError::Missing("a block is missing"))
    }

    pub(super) fn value(&self, value: Value) -> Built<BasicValueEnum<'ctx>> {
        debug_assert!(self.values[value].is_some(), "{value:?} is used before its definition");
        self.values[value].ok_or(BuildError::Missing("a value is used before its definition"))
    }

    pub(super) fn int(&self, value: Value) -> Built<IntValue<'ctx>> {
        Ok(self.value(value)?.into_int_value())
    }

    pub(super) fn float(&self, value: Value) -> Built<FloatValue<'ctx>> {
        Ok(self.value(value)?.into_float_value())
    }

    pub(super) fn ptr(&self, value: Value) -> Built<PointerValue<'ctx>> {
        Ok(self.value(value)?.into_pointer_value())
    }

    /// Traps if the condition holds, else continues in a new block.
    pub(super) fn trap_if(&mut self, cond: IntValue<'ctx>) -> Built<()> {
        let go_on = self.m.context.append_basic_block(self.function, "");
        let trap = match self.trap {
            Some(known) => known,
            None => self.make_trap()?,
        };
        let branch = self.builder.build_conditional_branch(cond, trap, go_on)?;
        self.m.facts.branch(branch, Hint::Unlikely);
        self.builder.position_at_end(go_on);
        Ok(())
    }

    fn make_trap(&mut self) -> Built<BasicBlock<'ctx>> {
        let here = self.current()?;
        let trap = self.m.context.append_basic_block(self.function, "");
        self.builder.position_at_end(trap);
        self.intrinsic("llvm.trap", &[], &[])?;
        self.builder.build_unreachable()?;
        self.builder.position_at_end(here);
        self.trap = Some(trap);
        Ok(trap)
    }

    /// Calls an intrinsic that is overloaded on `types`.
    pub(super) fn intrinsic(
        &mut self,
        name: &'static str,
        types: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Built<Option<BasicValueEnum<'ctx>>> {
        let unknown = BuildError::Missing("this LLVM lacks an intrinsic");
        let function = Intrinsic::find(name).and_then(|i| i.get_declaration(self.m.module, types)).ok_or(unknown)?;
        let args: Vec<_> = args.iter().map(|&arg| arg.into()).collect();
        Ok(self.builder.build_direct_call(function, &args, "")?.try_as_basic_value().basic())
    }
}
