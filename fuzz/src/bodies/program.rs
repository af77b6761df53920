//! Programs decoded from bytes: each byte chooses a statement or a value.

use std::cell::{Cell, RefCell};

use arbitrary::Unstructured;
use tvm_ffi_codegen::lower::{CallResult, Callee, Caught, Expr, Owned, TensorRef, Variable};
use tvm_ffi_codegen::runtime::DLDevice;
use tvm_ffi_codegen::{Body, CallArg, DLDataType, MatchKey, MatchPattern, MatchRow, ParamType, ScalarType, Signature};

/// Maximum number of statements in a program.
const STATEMENTS: u32 = 60;
/// The maximum nesting of loops, conditionals and handlers.
const DEPTH: u32 = 4;

/// Writes a body of the signature `f(n: int64, x: Any) -> int64`, decoded from the bytes. If `keeps_rules` is set, the
/// body has no errors. Otherwise it also uses values after their end.
pub fn write(b: &Body<'_>, bytes: &[u8], keeps_rules: bool) {
    let writer = Writer::new(b, bytes, keeps_rules, b.arg("n"), 1);
    writer.statements(DEPTH);
    b.ret(writer.number(2));
}

/// Writes the body of a closure of the signature `g(x: Any) -> Any`, with a captured integer.
fn write_closure(b: &Body<'_>, bytes: &[u8], keeps_rules: bool) {
    let writer = Writer::new(b, bytes, keeps_rules, b.captured(0).value(), 0);
    writer.statements(1);
    b.ret_value(writer.argument());
}

fn ty(text: &str) -> ParamType {
    let signature: Signature = format!("f(x: {text})").parse().expect("a type");
    signature.params()[0].ty.clone()
}

/// A value that the program owns.
#[derive(Clone, Copy)]
enum Value<'b> {
    Result(CallResult<'b>),
    /// A result that has items.
    Pair(CallResult<'b>),
    Function(CallResult<'b>),
    Closure(Owned<'b>),
    Variable(Variable<'b>),
    Tensor(TensorRef<'b>),
    /// A view of another value, with that value's number: it can't be moved.
    View(TensorRef<'b>, usize),
}

/// A value, and the number of loops around its definition.
#[derive(Clone, Copy)]
struct Known<'b> {
    value: Value<'b>,
    loops: u32,
    moved: bool,
}

struct Writer<'b, 'a, 'i> {
    b: &'b Body<'a>,
    input: RefCell<Unstructured<'i>>,
    keeps_rules: bool,
    /// The number of the parameter of type `Any`.
    any: usize,
    statements: Cell<u32>,
    loops: Cell<u32>,
    /// The number of open attempts of handlers.
    tries: Cell<u32>,
    /// For each open loop the index that a turn has to advance itself; `None` if the loop has its own.
    indices: RefCell<Vec<Option<Expr<'b>>>>,
    numbers: RefCell<Vec<Expr<'b>>>,
    values: RefCell<Vec<Known<'b>>>,
}

impl<'b, 'a, 'i> Writer<'b, 'a, 'i> {
    fn new(b: &'b Body<'a>, bytes: &'i [u8], keeps_rules: bool, number: Expr<'b>, any: usize) -> Self {
        Writer {
            b,
            input: RefCell::new(Unstructured::new(bytes)),
            keeps_rules,
            any,
            statements: Cell::new(0),
            loops: Cell::new(0),
            tries: Cell::new(0),
            indices: RefCell::default(),
            numbers: RefCell::new(vec![number]),
            values: RefCell::default(),
        }
    }

    /// A number below `count`, from the input; 0 at the input's end.
    fn below(&self, count: usize) -> usize {
        let byte: u8 = self.input.borrow_mut().arbitrary().unwrap_or(0);
        usize::from(byte) % count
    }

    fn constant(&self) -> i64 {
        [0, 1, -1, 2, 3, 7, 100, i64::MAX, i64::MIN][self.below(9)]
    }

    fn number(&self, depth: u32) -> Expr<'b> {
        let known = || {
            let numbers = self.numbers.borrow();
            numbers[self.below(numbers.len())]
        };
        let inner = || self.number(depth - 1);
        match self.below(10) {
            0 | 1 => self.b.i64(self.constant()),
            2 if depth > 0 => {
                let (x, divisor) = (inner(), inner() | 1);
                match self.below(3) {
                    0 => x.floor_div(divisor),
                    1 => x.floor_rem(divisor),
                    _ => x.ceil_div(divisor),
                }
            }
            3 if depth > 0 => inner() + inner(),
            4 if depth > 0 => inner() * inner(),
            5 if depth > 0 => inner() / (inner() | 1),
            6 if depth > 0 => self.condition(depth - 1).select(inner(), inner()),
            7 if depth > 0 => {
                let condition = self.condition(depth - 1);
                let [yes, no] = [(); 2].map(|()| || self.inside(|| self.number(depth - 1)));
                self.b.if_else_value(condition, yes, no)
            }
            8 if depth > 0 => inner() % (inner() | 1),
            9 if depth > 0 => inner() ^ inner(),
            _ => known(),
        }
    }

    fn condition(&self, depth: u32) -> Expr<'b> {
        let (left, right) = (self.number(depth), self.number(depth));
        match self.below(3) {
            0 => left.lt(right),
            1 => left.eq(right),
            _ => (left & 3).ne(0),
        }
    }

    fn know_number(&self, number: Expr<'b>) {
        self.numbers.borrow_mut().push(number);
    }

    fn know(&self, value: Value<'b>) {
        self.values.borrow_mut().push(Known { value, loops: self.loops.get(), moved: false });
    }

    /// Writes a block. If the rules are kept, the values made in it are forgotten at its end.
    fn inside<R>(&self, write: impl FnOnce() -> R) -> R {
        let (numbers, values) = (self.numbers.borrow().len(), self.values.borrow().len());
        let result = write();
        if self.keeps_rules || self.below(4) != 0 {
            self.numbers.borrow_mut().truncate(numbers);
            self.values.borrow_mut().truncate(values);
        }
        result
    }

    fn in_loop<R>(&self, index: Option<Expr<'b>>, write: impl FnOnce() -> R) -> R {
        self.loops.set(self.loops.get() + 1);
        self.indices.borrow_mut().push(index);
        let result = self.inside(write);
        self.indices.borrow_mut().pop();
        self.loops.set(self.loops.get() - 1);
        result
    }

    /// Leaves the turn of the innermost loop, if there is one.
    fn leave_turn(&self) {
        let Some(index) = self.indices.borrow().last().copied() else { return };
        match (self.below(2), index) {
            (0, _) => self.b.break_(),
            (_, None) => self.b.continue_(),
            (_, Some(index)) => self.b.continue_with([index + 1, self.number(1)]),
        }
    }

    /// A value that may be used.
    fn value(&self) -> Option<(usize, Value<'b>)> {
        let values = self.values.borrow();
        if values.is_empty() {
            return None;
        }
        let index = self.below(values.len());
        let owner = if let Value::View(_, owner) = values[index].value { owner } else { index };
        let fine = !values[index].moved && !values.get(owner).is_none_or(|owner| owner.moved);
        (fine || !self.keeps_rules).then_some((index, values[index].value))
    }

    /// Moves a value that may be moved.
    fn moved(&self) -> Option<CallArg<'b>> {
        let (index, value) = self.value()?;
        let Known { loops, .. } = self.values.borrow()[index];
        let moved = match value {
            Value::Variable(variable) => return Some(variable.get().into()),
            Value::View(..) => return None,
            _ if self.keeps_rules && loops < self.loops.get() => return None,
            Value::Result(result) | Value::Pair(result) | Value::Function(result) => result.by_move(),
            Value::Closure(owned) => owned.by_move(),
            Value::Tensor(tensor) => tensor.owned().by_move(),
        };
        self.values.borrow_mut()[index].moved = true;
        Some(moved)
    }

    fn tensor(&self) -> Option<(usize, TensorRef<'b>)> {
        match self.value()? {
            (index, Value::Tensor(tensor)) => Some((index, tensor)),
            (_, Value::View(view, owner)) => Some((owner, view)),
            _ => None,
        }
    }

    fn variable(&self) -> Option<Variable<'b>> {
        match self.value()? {
            (_, Value::Variable(variable)) => Some(variable),
            _ => None,
        }
    }

    fn argument(&self) -> CallArg<'b> {
        match self.below(12) {
            0 => "short".into(),
            1 => "a text that is not short".into(),
            2 => CallArg::NONE,
            3 => CallArg::bytes(*b"bytes that are not short"),
            4 => CallArg::shape([self.number(1), self.number(0)]),
            5 => CallArg::array([CallArg::from(self.number(1)), "a text in an array".into()]),
            6 => DLDataType::FLOAT32.into(),
            7 => self.b.param(self.any).into(),
            8 | 9 => self.number(2).into(),
            _ => match self.value() {
                None => self.constant().into(),
                Some((_, Value::Result(result) | Value::Function(result))) => result.into(),
                Some((_, Value::Pair(pair))) => match self.below(3) {
                    0 => pair.into(),
                    item => pair.item(item - 1).into(),
                },
                Some((_, Value::Closure(owned))) => owned.into(),
                Some((_, Value::Variable(variable))) => variable.get().into(),
                Some((_, Value::Tensor(tensor) | Value::View(tensor, _))) => tensor.into(),
            },
        }
    }

    fn statements(&self, depth: u32) {
        for _ in 0..=self.below(6) {
            self.statements.set(self.statements.get() + 1);
            if self.statements.get() > STATEMENTS || self.input.borrow().is_empty() {
                return;
            }
            self.statement(depth);
        }
    }

    fn block(&self, depth: u32) {
        self.inside(|| self.statements(depth));
    }

    fn statement(&self, depth: u32) {
        let choice = self.below(30);
        match choice {
            0..=9 => self.call(choice),
            10..=14 if depth > 0 => self.control(choice, depth - 1),
            28 | 29 if depth > 0 => self.matches(choice, depth - 1),
            15..=19 => self.of_variables(choice),
            20..=24 => self.of_tensors(choice),
            _ => self.ways_out(choice),
        }
    }

    fn call(&self, choice: usize) {
        let b = self.b;
        let global = |name: &str, number: Expr<'b>, of: &str| b.call_global(name, [number]).returns(ty(of));
        match choice {
            0 | 1 => {
                // choose the moved value first: no other argument may be that value or a part of it
                let moved = if choice == 1 { self.moved() } else { None };
                let mut args = vec![self.argument(), self.argument()];
                args.extend(moved);
                let mut call = b.call_global("fuzz.log", args);
                if self.below(4) == 0 {
                    call = call.uncached();
                }
                if self.below(4) == 0 {
                    call = call.kwarg("key", self.number(1));
                }
                call.run();
            }
            2 | 3 => self.know_number(global("fuzz.int", self.number(2), "int64").value()),
            4 => {
                let argument = if self.below(2) == 0 { self.moved() } else { None };
                let argument = argument.unwrap_or_else(|| self.argument());
                self.know(Value::Result(b.call_global("fuzz.echo", [argument]).returns(ParamType::Any)));
            }
            5 | 6 => {
                let pair = global("fuzz.pair", self.number(1), "Tuple[int64, str]");
                self.know_number(pair.item(0).value());
                self.know_number(pair.item(1).size());
                self.know(Value::Pair(pair));
            }
            7 => self.know(Value::Function(global("fuzz.function", self.number(1), "Function"))),
            8 => {
                let callee = match self.value() {
                    Some((_, Value::Function(result) | Value::Result(result))) => Callee::from(result),
                    Some((_, Value::Closure(owned))) => Callee::from(owned),
                    Some((_, Value::Variable(variable))) => Callee::from(variable.get()),
                    _ => return,
                };
                let result = b.call(callee, [self.argument()]).returns(ParamType::Any);
                self.know(Value::Result(result));
            }
            _ => {
                let captured = [(self.number(1).into(), ParamType::from(ScalarType::Int64))];
                let length = self.below(40);
                let bytes = self.input.borrow_mut().bytes(length).unwrap_or_default().to_vec();
                let (inner, keeps_rules) = ("g(x: Any) -> Any".parse().expect("a signature"), self.keeps_rules);
                let closure = b.closure(&inner, captured, move |b| write_closure(b, &bytes, keeps_rules));
                self.know(Value::Closure(closure));
            }
        }
    }

    fn control(&self, choice: usize, depth: u32) {
        let b = self.b;
        match choice {
            10 => b.if_(self.condition(1), || self.block(depth)),
            11 => b.if_else(self.condition(1), || self.block(depth), || self.block(depth)),
            12 => {
                let turns = self.below(4);
                b.for_range(0, turns, |i| {
                    self.in_loop(None, || {
                        self.know_number(i);
                        self.statements(depth);
                        if self.below(3) == 0 {
                            b.if_(self.condition(1), || b.break_());
                        }
                    });
                });
            }
            13 => {
                let (first, turns) = (self.number(1), self.below(4) as i64);
                let condition = |[i, _]: [Expr<'b>; 2]| {
                    self.in_loop(Some(i), || {
                        self.statements(0);
                        i.lt(turns)
                    })
                };
                let [_, last] = b.while_loop([b.i64(0), first], condition, |[i, value]| {
                    self.in_loop(Some(i), || {
                        self.numbers.borrow_mut().extend([i, value]);
                        self.statements(depth);
                        [i + 1, self.number(1)]
                    })
                });
                self.know_number(last);
            }
            _ => b.try_(|| self.attempt(depth), |caught| self.inside(|| self.handle(caught, depth))),
        }
    }

    fn attempt(&self, depth: u32) {
        self.tries.set(self.tries.get() + 1);
        self.block(depth);
        self.tries.set(self.tries.get() - 1);
    }

    /// A `match` by two numbers, whose rows may forward.
    fn matches(&self, choice: usize, depth: u32) {
        let b = self.b;
        let keys =
            [MatchKey::new("number", self.number(1)), MatchKey::new("parity", self.number(1).floor_rem(2).eq(0))];
        let first = self.below(5) as i64 - 2;
        let any = || MatchPattern::Any;
        let rows = [
            MatchRow::new([first.into(), true.into()], || self.block(depth)),
            MatchRow::new([first.into(), any()], || match self.below(4) {
                0 if self.tries.get() == 0 || !self.keeps_rules => match self.any {
                    1 => b.call_global("fuzz.int", [self.number(1)]).forward(),
                    _ => b.call_global("fuzz.echo", [self.argument()]).forward(),
                },
                _ => self.block(depth),
            }),
            MatchRow::new([(first + 1..first + 3).into(), false.into()], || self.block(depth)),
        ];
        match choice {
            28 => b.match_(keys, rows),
            _ => b.match_else(keys, rows, || self.block(depth)),
        }
    }

    fn handle(&self, caught: Caught<'b, 'a>, depth: u32) {
        let b = self.b;
        if self.below(2) == 0 {
            b.call_global("fuzz.log", [caught.error()]).run();
        }
        if self.below(2) == 0 {
            b.if_(caught.is_kind("ValueError"), || self.block(depth));
        }
        match self.below(8) {
            0 => caught.raise_again(),
            1 => caught.raise_from("OtherError", "from {}", [self.number(1)]),
            2 => {
                let variable = b.variable();
                variable.set(caught.error().by_move());
                self.know(Value::Variable(variable));
            }
            3 if !self.keeps_rules => {
                let variable = b.variable();
                b.for_range(0, self.below(4), |_| {
                    b.if_(caught.is_kind("ValueError"), || self.block(depth));
                    variable.set(caught.error().by_move());
                });
            }
            _ => self.statements(depth),
        }
    }

    fn of_variables(&self, choice: usize) {
        match choice {
            15 => self.know(Value::Variable(self.b.variable())),
            16 | 17 => {
                let Some(variable) = self.variable() else { return };
                let value = if choice == 16 { self.moved() } else { None };
                variable.set(value.unwrap_or_else(|| self.argument()));
            }
            18 => {
                let Some(variable) = self.variable() else { return };
                self.know_number(variable.cast(ScalarType::Int64).value());
            }
            _ => {
                let Some(variable) = self.variable() else { return };
                if self.keeps_rules {
                    return self.know_number(variable.cast(ParamType::Str).size());
                }
                self.know(Value::Pair(variable.cast(ty("Tuple[int64, str]"))));
            }
        }
    }

    fn of_tensors(&self, choice: usize) {
        let b = self.b;
        match choice {
            20 => {
                let size = (self.number(1) & 7) + 1;
                let tensor = b.alloc_tensor([size], DLDataType::INT64, DLDevice::CPU);
                tensor.store([0], self.number(1));
                self.know(Value::Tensor(tensor));
            }
            21 => {
                let made = b.call_global("fuzz.tensor", [self.number(1)]).returns(ty("Tensor([k], int64)"));
                self.know(Value::Tensor(made.tensor()));
            }
            22 => {
                let Some((owner, tensor)) = self.tensor() else { return };
                let view = match self.below(3) {
                    // with fewer dimensions, an error
                    0 => tensor.slice(0, self.below(2), 1),
                    1 => tensor.slice(0, 0, self.number(1)),
                    _ => tensor.transpose([0]),
                };
                self.know(Value::View(view, owner));
            }
            _ => {
                let Some((_, tensor)) = self.tensor() else { return };
                b.if_(tensor.size(0).gt(0), || match choice {
                    23 => tensor.store([0], self.number(1)),
                    _ => b.call_global("fuzz.log", [tensor.load([0])]).run(),
                });
            }
        }
    }

    fn ways_out(&self, choice: usize) {
        let b = self.b;
        match choice {
            25 => b.ensure(self.condition(1), "CheckError", "value {}", [self.number(1)]),
            26 => b.if_(self.condition(1), || match self.below(4) {
                0 if self.any == 1 => b.ret(self.number(1)),
                1 => b.raise("TypeError", "raised {}", [self.number(1)]),
                2 => self.leave_turn(),
                _ => b.raise("TypeError", "raised {} {}", [self.argument(), self.argument()]),
            }),
            _ => match self.below(3) {
                0 => b.set_location("program.py", self.below(9) as u32 + 1, "f"),
                1 => b.check_signals_every(2),
                _ => {
                    let place = b.scratch(8, 8);
                    b.store(place, self.number(1));
                    self.know_number(b.load(ScalarType::Int64, place));
                }
            },
        }
    }
}
