//! Walks along the paths of a function and of the functions that it calls.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use tvm_ffi_codegen::ir::{
    BinaryOp, Block, BlockCall, ConvertOp, FuncRef, FuncSig, Function, Inst, Linkage, Module, Op, Terminator, Type,
    UnaryOp, Value,
};

use super::reads::{self, Reads};
use super::state::State;
use super::symbols::{self, Id, Place, Symbol};
use super::{Proof, calls};

/// The maximum number of states of a function.
const MOST_STATES: usize = 2_000;

/// A reference that the code gets.
struct Reference {
    /// The calls around the instruction that gets it, and itself.
    at: Vec<Inst>,
    /// The number of references that the code then has from there, as in a loop.
    others: usize,
    /// The function that gives it.
    giver: String,
}

/// A walk along the paths of one function.
pub struct Walk<'m> {
    module: &'m Module,
    reads: HashMap<FuncRef, Rc<HashMap<Block, Reads>>>,
    /// The functions around the current instruction.
    active: Vec<FuncRef>,
    /// The calls around the current instruction, and itself.
    at: Vec<Inst>,
    /// Values that some path releases or passes on after the binder has accepted them: their types include objects.
    bound: HashSet<Id>,
    /// The callee of the current instruction.
    callee: &'m str,
    references: Vec<Reference>,
    violations: BTreeSet<String>,
    /// The violations of values that the binder has accepted, if their types have objects.
    of_bound: BTreeSet<(Id, String)>,
    name: &'m str,
    states: usize,
    /// The releases of references in lists that the binder has filled.
    pub trusted: usize,
    releases: BTreeSet<(FuncRef, Inst)>,
}

/// Checks a function. Returns the violations.
pub fn check(module: &Module, func: FuncRef, function: &Function, proof: &mut Proof) -> Vec<String> {
    let mut walk = Walk {
        module,
        reads: HashMap::new(),
        active: Vec::new(),
        at: Vec::new(),
        callee: "",
        references: Vec::new(),
        bound: HashSet::new(),
        violations: BTreeSet::new(),
        of_bound: BTreeSet::new(),
        name: &module.functions[func].name,
        states: 0,
        trusted: 0,
        releases: BTreeSet::new(),
    };
    let args = [Symbol::Unknown, Symbol::Unknown, Symbol::Unknown, Symbol::Address(Place::Result, 0)];
    let outcomes = walk.function(func, function, &args, State::default());
    proof.trusted += walk.trusted;
    proof.owned += walk.references.len();
    proof.undecided += usize::from(walk.states >= MOST_STATES);
    for (code, state) in outcomes {
        walk.ends(&code, state);
    }
    let Walk { mut violations, of_bound, bound, releases, .. } = walk;
    proof.releases.extend(releases);
    violations.extend(of_bound.into_iter().filter(|(id, _)| bound.contains(id)).map(|(_, problem)| problem));
    violations.into_iter().collect()
}

impl Walk<'_> {
    pub fn violation(&mut self, problem: &str) {
        self.violations.insert(format!("{}, {:?}: {problem}", self.name, self.at));
    }

    /// Reports the references that a path still owns when it returns.
    fn ends(&mut self, code: &Symbol, mut state: State) {
        if !matches!(code, Symbol::NonZero) {
            match state.load(Place::Result, 8).id() {
                Some(id) if state.owns(id) => self.give_up(&mut state, id),
                _ => {}
            }
        }
        let owned: Vec<Id> = state.owned().collect();
        owned.into_iter().for_each(|id| self.never_released(&state, id));
    }

    fn never_released(&mut self, state: &State, id: Id) {
        let Reference { at, giver, .. } = &self.references[id as usize];
        let problem = format!("{}, {at:?}: a reference from `{giver}` is never released", self.name);
        match state.is_bound(id) {
            true => self.of_bound.insert((id, problem)),
            false => self.violations.insert(problem),
        };
    }

    /// Removes an owned reference from a path.
    pub fn give_up(&mut self, state: &mut State, id: Id) {
        if state.is_bound(id) {
            self.bound.insert(id);
        }
        state.give_up(id);
    }

    /// The state after the current instruction has released a reference.
    pub fn released(&mut self, state: &State, id: Id) -> State {
        self.releases.extend(self.active.iter().copied().zip(self.at.iter().copied()));
        self.without(state, id)
    }

    /// The state after the path has given up a reference.
    pub fn without(&mut self, state: &State, id: Id) -> State {
        let mut state = state.clone();
        self.give_up(&mut state, id);
        state
    }

    /// A new owned reference, given by the current instruction.
    pub fn new_reference(&mut self, state: &mut State) -> Id {
        let mut others = 0;
        loop {
            let known = self.references.iter().position(|known| known.at == self.at && known.others == others);
            let id = known.unwrap_or(self.references.len()) as Id;
            if known.is_none() {
                let giver = if self.callee.is_empty() { "a function object" } else { self.callee };
                self.references.push(Reference { at: self.at.clone(), others, giver: giver.to_owned() });
            }
            if !state.owns(id) {
                state.own(id);
                return id;
            }
            others += 1;
        }
    }

    /// The states in which a value is known, as far as it depends on references.
    pub fn cases(&self, symbol: Symbol, state: State) -> Vec<(Symbol, State)> {
        let Symbol::Either(id, _) = symbol else { return vec![(symbol, state)] };
        let cases = [true, false].into_iter().filter_map(|is_object| {
            let state = state.clone().assuming(id, is_object)?;
            Some((symbol.assuming(id, is_object), state))
        });
        cases.flat_map(|(symbol, state)| self.cases(symbol, state)).collect()
    }

    /// The results of a function, and the states after it.
    fn function(
        &mut self,
        func: FuncRef,
        function: &Function,
        args: &[Symbol],
        mut state: State,
    ) -> HashSet<(Symbol, State)> {
        let mut outcomes = HashSet::new();
        let Some(entry) = function.entry() else { return outcomes };
        self.active.push(func);
        let depth = self.at.len();
        for (&param, arg) in function.blocks[entry].params.iter().zip(args) {
            state.set_value(depth, param, arg.clone());
        }
        let reads = self.reads(func, function);
        let (mut seen, mut open) = (HashSet::new(), vec![(entry, state)]);
        while let Some((block, state)) = open.pop() {
            self.states += 1;
            if self.states >= MOST_STATES {
                break;
            }
            for state in self.block(function, block, state) {
                let data = &function.blocks[block];
                let mut go = |walk: &mut Self, to: &BlockCall, state: &State| {
                    let mut next = enter(function, depth, to, state, &reads[&to.block]);
                    for id in next.lost() {
                        walk.never_released(&next, id);
                        next.give_up(id);
                    }
                    if seen.insert((to.block, next.clone())) {
                        open.push((to.block, next));
                    }
                };
                match data.terminator.as_ref().unwrap() {
                    Terminator::Jump(to) => go(self, to, &state),
                    Terminator::Branch { cond, then, otherwise, .. } => {
                        for (cond, state) in self.cases(state.value(depth, *cond), state) {
                            if cond != Symbol::Const(0) {
                                go(self, then, &state);
                            }
                            if cond == Symbol::Const(0) || is_open(&cond) {
                                go(self, otherwise, &state);
                            }
                        }
                    }
                    Terminator::Return(value) => {
                        let result = value.map_or(Symbol::Unknown, |value| state.value(depth, value));
                        for (result, mut state) in self.cases(result, state) {
                            state.leave(depth);
                            outcomes.insert((result, state));
                        }
                    }
                }
            }
        }
        self.active.pop();
        outcomes
    }

    /// The states after a block's instructions.
    fn block(&mut self, function: &Function, block: Block, state: State) -> Vec<State> {
        let depth = self.at.len();
        let mut states = vec![state];
        for &inst in &function.blocks[block].insts {
            let data = &function.insts[inst];
            let mut after = Vec::new();
            for mut state in states {
                self.at.push(inst);
                let outcomes = match &data.op {
                    Op::Call(callee, args) => {
                        let args: Vec<Symbol> = args.iter().map(|&arg| state.value(depth, arg)).collect();
                        self.call(*callee, &args, &state)
                    }
                    Op::CallIndirect(sig, callee, args) => {
                        // a kernel at an address, or a function object's code
                        let is_kernel = state.value(depth, *callee) == Symbol::NonZero;
                        self.callee = if is_kernel { "kernel" } else { "" };
                        let args: Vec<Symbol> = args.iter().map(|&arg| state.value(depth, arg)).collect();
                        let is_packed = is_packed(&function.signatures[*sig]);
                        calls::call(self, self.callee, (false, is_packed), &args, &state).unwrap_or_default()
                    }
                    Op::CompareExchange(_, _, new) => exchanged(&state.value(depth, *new), state),
                    op => {
                        let symbol = operation(function, depth, op, &mut state);
                        vec![(symbol, state)]
                    }
                };
                self.at.pop();
                for (symbol, mut state) in outcomes {
                    if let Some(result) = data.result {
                        state.set_value(depth, result, symbol);
                    }
                    after.push(state);
                }
            }
            states = after;
        }
        states
    }

    fn call(&mut self, callee: FuncRef, args: &[Symbol], state: &State) -> Vec<(Symbol, State)> {
        let module = self.module;
        let decl = &module.functions[callee];
        self.callee = &decl.name;
        let is_packed = is_packed(&decl.signature);
        // A function that may call this one is checked by itself.
        let is_checked_itself = decl.linkage == Linkage::Export || is_packed && self.active.contains(&callee);
        let is_followed = decl.body.is_some() && !is_checked_itself;
        let outcomes = calls::call(self, &decl.name, (is_followed, is_packed), args, state);
        match (outcomes, &decl.body) {
            (Some(outcomes), _) => outcomes,
            (None, Some(_)) if self.active.contains(&callee) => {
                self.violation("calls a function of the module that calls itself");
                Vec::new()
            }
            (None, Some(body)) => self.function(callee, body, args, state.clone()).into_iter().collect(),
            (None, None) => Vec::new(),
        }
    }

    fn reads(&mut self, func: FuncRef, function: &Function) -> Rc<HashMap<Block, Reads>> {
        self.reads.entry(func).or_insert_with(|| Rc::new(reads::of(self.module, function))).clone()
    }
}

/// True if a function has the parameters of `TVMFFISafeCallType`.
fn is_packed(signature: &FuncSig) -> bool {
    signature.params.iter().map(|param| param.ty).eq([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr])
}

/// True if a condition may be false and may hold.
fn is_open(cond: &Symbol) -> bool {
    !matches!(cond, Symbol::Const(_) | Symbol::NonZero)
}

/// The state at the beginning of a block.
fn enter(function: &Function, depth: usize, to: &BlockCall, state: &State, reads: &Reads) -> State {
    let passed: Vec<Symbol> = to.args.iter().map(|&arg| state.value(depth, arg)).collect();
    let mut next = state.clone();
    for (&param, symbol) in function.blocks[to.block].params.iter().zip(passed) {
        let counts = reads.is_head && matches!(symbol, Symbol::Const(_));
        next.set_value(depth, param, if counts { Symbol::Unknown } else { symbol });
    }
    next.keep(depth, reads);
    next
}

/// The outcomes of replacing NULL in a variable of the module: it takes a reference, or another thread was faster.
fn exchanged(new: &Symbol, state: State) -> Vec<(Symbol, State)> {
    let mut taken = state.clone();
    new.id().into_iter().for_each(|id| taken.give_up(id));
    vec![(Symbol::Const(0), taken), (Symbol::NonZero, state)]
}

/// The value of an operation that isn't a call.
fn operation(function: &Function, depth: usize, op: &Op, state: &mut State) -> Symbol {
    let value = |value: Value| state.value(depth, value);
    match op {
        Op::IntConst { value, .. } => Symbol::Const(*value),
        Op::BoolConst(value) => Symbol::Const(i64::from(*value)),
        Op::PtrConst(0) => Symbol::Const(0),
        Op::PtrConst(_) | Op::DataAddr(..) | Op::FuncAddr(_) => Symbol::NonZero,
        Op::StackAddr(slot, at) => Symbol::Address(Place::Slot(depth, *slot), i64::from(*at)),
        Op::Unary(UnaryOp::Not, of) if function.type_of(*of) == Type::Bool => symbols::not(&value(*of)),
        Op::Binary(BinaryOp::And, a, b) => symbols::and(&value(*a), &value(*b)),
        Op::Binary(BinaryOp::Or, a, b) => symbols::or(&value(*a), &value(*b)),
        Op::Binary(BinaryOp::Add, a, b) | Op::PtrAdd(a, b) => symbols::add(&value(*a), &value(*b)),
        Op::Element { base, index, ty } => {
            let bytes = match value(*index) {
                Symbol::Const(index) => Symbol::Const(index.wrapping_mul(i64::from(ty.bytes()))),
                _ => Symbol::Unknown,
            };
            symbols::add(&value(*base), &bytes)
        }
        Op::ICmp(cc, a, b) => symbols::compare(*cc, &value(*a), &value(*b)),
        Op::Select(cond, yes, no) => symbols::select(&value(*cond), &value(*yes), &value(*no)),
        Op::Convert(
            ConvertOp::SExt | ConvertOp::ZExt | ConvertOp::Truncate | ConvertOp::PtrToInt | ConvertOp::IntToPtr,
            _,
            of,
        ) => value(*of),
        Op::Load { ptr, offset, .. } => match value(*ptr) {
            Symbol::Address(place, at) => state.load(place, at + i64::from(*offset)),
            Symbol::Within(_) => Symbol::Listed,
            _ => Symbol::Unknown,
        },
        Op::Store { value: stored, ptr, offset, .. } => {
            let (stored, to) = (value(*stored), value(*ptr));
            match to {
                Symbol::Address(place, at) => state.store(place, at + i64::from(*offset), stored),
                // a variable of the module, or a field of an object, takes the reference
                _ => {
                    if let Symbol::Payload(id) | Symbol::Handle(id) = stored {
                        state.give_up(id);
                    }
                }
            }
            Symbol::Unknown
        }
        _ => Symbol::Unknown,
    }
}
