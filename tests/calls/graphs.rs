//! Random call graphs. Their functions call each other by symbol, as global functions and as function values. They own,
//! move, catch and raise values meanwhile.
//!
//! `TVM_FFI_CODEGEN_GRAPHS` sets the number of graphs; `TVM_FFI_CODEGEN_SEED` repeats a run.

use tvm_ffi_codegen::lower::{CallArg, CallResult, Caught, Variable};
use tvm_ffi_codegen::runtime::Any;
use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::runtime::registry::{remove_global, set_global};
use tvm_ffi_codegen::{Body, DLDataType, Kernel, ParamType};

use super::callees;
use crate::support::dice::{Dice, seed};
use crate::support::library::{Library, Loaded, Prepared};
use crate::support::recording::{Trace, failing, record};
use crate::support::sig;

/// The number of graphs in a default run. Debug builds take half a second for each, and count all live objects.
const GRAPHS: u64 = if cfg!(debug_assertions) { 12 } else { 200 };
/// The maximum number of functions in a graph.
const FUNCTIONS: usize = 20;
/// The approximate maximum number of calls that one call of a graph's function leads to.
const MOST_CALLS: usize = 60;
/// The number of calls that are made to fail in each graph.
const FAULTS: usize = 4;

/// The tests' functions that accept any value.
const HOSTS: &[&str] =
    &["calls.text", "calls.tensor", "calls.array", "calls.int", "calls.echo", "calls.take", "calls.fail"];

#[derive(Clone, Debug)]
enum To {
    Symbol(usize),
    Global { function: usize, uncached: bool },
    Value(usize),
    Host(&'static str),
}

#[derive(Clone, Debug)]
enum Action {
    Call {
        to: To,
        n: i64,
        value: usize,
        moved: bool,
    },
    /// Assigns a value to the variable.
    Set {
        value: usize,
        moved: bool,
    },
    Allocate,
    Twice(Vec<Action>),
    /// Only if `n` has this remainder modulo 3.
    Where(i64, Vec<Action>),
    Try(Vec<Action>, Handling),
    Return(usize),
    Raise,
}

/// How a handler treats the error.
#[derive(Clone, Debug)]
enum Handling {
    Nothing,
    Keep,
    Pass,
    RaiseAgain,
    RaiseFrom,
}

/// Generates the functions of a graph, from the last to the first. Each calls only functions after it.
struct Maker<'d> {
    dice: &'d mut Dice,
    /// The number of calls that one call of each function leads to.
    costs: Vec<usize>,
    count: usize,
}

impl Maker<'_> {
    /// The actions of the next function to generate, which precedes the existing ones.
    fn function(&mut self) -> Vec<Action> {
        let mut left = MOST_CALLS;
        let actions = self.actions(&mut left, 1, 0, false);
        self.costs.push(MOST_CALLS - left + 1);
        actions
    }

    fn actions(&mut self, left: &mut usize, times: usize, depth: usize, may_leave: bool) -> Vec<Action> {
        let mut actions: Vec<Action> = (0..1 + self.dice.below(4)).map(|_| self.action(left, times, depth)).collect();
        if may_leave && self.dice.one_in(3) {
            actions.push(if self.dice.one_in(2) { Action::Raise } else { Action::Return(self.dice.below(8)) });
        }
        actions
    }

    fn action(&mut self, left: &mut usize, times: usize, depth: usize) -> Action {
        match self.dice.below(if depth < 3 { 13 } else { 9 }) {
            0..7 => self.call(left, times),
            7 => Action::Set { value: self.dice.below(8), moved: self.dice.one_in(2) },
            8 => Action::Allocate,
            9 => Action::Twice(self.actions(left, 2 * times, depth + 1, false)),
            10 => Action::Where(self.dice.below(3) as i64, self.actions(left, times, depth + 1, true)),
            _ => {
                use Handling::*;
                let handling = self.dice.pick(&[Nothing, Nothing, Keep, Pass, RaiseAgain, RaiseFrom]);
                Action::Try(self.actions(left, times, depth + 1, false), handling)
            }
        }
    }

    fn call(&mut self, left: &mut usize, times: usize) -> Action {
        let (value, moved, n) = (self.dice.below(8), self.dice.one_in(3), self.dice.below(3) as i64);
        let behind = self.costs.len();
        if behind > 0 && self.dice.below(3) > 0 {
            // call the newest more often, so graphs become deep
            let nth = if self.dice.one_in(2) { behind - 1 } else { self.dice.below(behind) };
            let cost = times * self.costs[nth];
            if cost <= *left {
                *left -= cost;
                let function = self.count - 1 - nth;
                let to = match self.dice.below(4) {
                    0 | 1 => To::Symbol(function),
                    2 => To::Global { function, uncached: self.dice.one_in(3) },
                    _ => To::Value(function),
                };
                return Action::Call { to, n, value, moved };
            }
        }
        // most calls succeed
        let host = match self.dice.one_in(12) {
            true => "calls.fail",
            false => HOSTS[self.dice.below(HOSTS.len() - 1)],
        };
        *left = left.saturating_sub(times);
        Action::Call { to: To::Host(host), n, value, moved }
    }
}

/// The values that a body has at a program point.
#[derive(Clone)]
struct Scope<'b> {
    variable: Variable<'b>,
    /// The values, each with the depth of the block that created it.
    values: Vec<(CallResult<'b>, usize)>,
    depth: usize,
}

impl<'b> Scope<'b> {
    fn inner(&self) -> Self {
        Scope { depth: self.depth + 1, ..self.clone() }
    }

    /// The value with a number, moved if possible.
    fn value(&mut self, b: &'b Body<'_>, number: usize, moved: bool) -> CallArg<'b> {
        match number {
            0 => "a constant of many characters".into(),
            1 => 5.into(),
            2 => b.param(1).into(),
            3 => self.variable.get().into(),
            _ if self.values.is_empty() => ().into(),
            _ => {
                let at = number % self.values.len();
                let (value, depth) = self.values[at];
                match moved && depth == self.depth {
                    true => {
                        self.values.remove(at);
                        value.by_move()
                    }
                    false => value.into(),
                }
            }
        }
    }
}

fn global_name(graph: u64, function: usize) -> String {
    format!("graph.{graph}.{function}")
}

fn emit<'b>(b: &'b Body<'_>, graph: u64, actions: &[Action], scope: &mut Scope<'b>) {
    for action in actions {
        match action {
            Action::Call { to, n, value, moved } => {
                let args = [(b.arg("n") + *n).into(), scope.value(b, *value, *moved)];
                let call = match to {
                    To::Symbol(function) => b.call_symbol(&format!("g{function}"), args),
                    To::Global { function, uncached } => {
                        let call = b.call_global(&global_name(graph, *function), args);
                        if *uncached { call.uncached() } else { call }
                    }
                    To::Value(function) => {
                        let name = global_name(graph, *function);
                        let function = b.call_global("calls.get", (name,)).returns(ParamType::Function);
                        b.call(function, args)
                    }
                    To::Host(name) => b.call_global(name, args),
                };
                let made = call.returns(ParamType::Any);
                scope.values.push((made, scope.depth));
            }
            Action::Set { value, moved } => {
                let value = scope.value(b, *value, *moved);
                scope.variable.set(value);
            }
            Action::Allocate => {
                let tensor = b.alloc_tensor([b.i64(2)], DLDataType::FLOAT32, DLDevice::CPU);
                b.for_range(0, 2, |i| tensor.store([i], b.f32(1.5)));
                b.call_global("calls.echo", (tensor,)).run();
            }
            Action::Twice(actions) => b.for_range(0, 2, |_| emit(b, graph, actions, &mut scope.inner())),
            Action::Where(rest, actions) => {
                b.if_((b.arg("n") % 3).eq(*rest), || emit(b, graph, actions, &mut scope.inner()));
            }
            Action::Try(actions, handling) => {
                let attempt = || emit(b, graph, actions, &mut scope.inner());
                b.try_(attempt, |error| handle(b, error, handling, scope));
            }
            Action::Return(value) => b.ret_value(scope.value(b, *value, true)),
            Action::Raise => b.raise("GraphError", "at {}", [b.arg("n")]),
        }
    }
}

fn handle<'b>(b: &'b Body<'_>, error: Caught<'b, '_>, handling: &Handling, scope: &Scope<'b>) {
    match handling {
        Handling::Nothing => {}
        Handling::Keep => scope.variable.set(error.error()),
        Handling::Pass => b.call_global("calls.echo", (error.error(),)).run(),
        Handling::RaiseAgain => b.if_(error.is_kind("KeyError"), || error.raise_again()),
        Handling::RaiseFrom => error.raise_from("GraphError", "from {}", [b.arg("n")]),
    }
}

/// The library of a graph, and the number of its functions.
fn graph(number: u64, dice: &mut Dice) -> Result<(Library, usize), String> {
    // a few large ones are enough
    let max = dice.pick(&[4, 6, 8, FUNCTIONS]);
    let count = 1 + dice.below(max);
    let mut maker = Maker { dice, costs: Vec::new(), count };
    let mut all: Vec<Vec<Action>> = (0..count).map(|_| maker.function()).collect();
    all.reverse();
    let function = |(i, actions): (usize, Vec<Action>)| {
        let kernel = Kernel::body(move |b| {
            let mut scope = Scope { variable: b.variable(), values: Vec::new(), depth: 0 };
            emit(b, number, &actions, &mut scope);
            b.ret_value(scope.variable.get());
        });
        (sig(&format!("g{i}(n: int64, x: Any) -> Any")), kernel)
    };
    Ok((Library::new(all.into_iter().enumerate().map(function).collect())?, count))
}

/// Registers the functions, calls the first one, and unloads the library.
fn call(loaded: &mut Loaded<'_>, number: u64, count: usize) -> String {
    for i in 0..count {
        set_global(&global_name(number, i), loaded.function(&format!("g{i}")), false).unwrap();
    }
    let reply = loaded.call("g0", &[Any::from(4), Any::from("a parameter of many characters")]);
    loaded.unload();
    (0..count).for_each(|i| assert!(remove_global(&global_name(number, i))));
    reply.to_string()
}

/// Checks that all executors agree on a graph, with and without failing calls.
fn agree(number: u64, dice: &mut Dice) -> Result<usize, String> {
    let (library, count) = graph(number, dice)?;
    let mut prepared = Prepared::new(&library)?;
    let (text, trace) = prepared.run(|loaded| record(|| call(loaded, number, count)))?;
    is_clean(&text, &trace)?;
    for _ in 0..FAULTS.min(trace.fallible) {
        let at = dice.below(trace.fallible);
        let faulty = prepared.run(|loaded| {
            let (text, trace) = failing(at, || call(loaded, number, count));
            // drop the injected error, which mustn't outlive the call
            (text, Trace { injected: None, ..trace })
        });
        let (text, trace) = faulty.map_err(|e| format!("call {at} fails: {e}"))?;
        is_clean(&text, &trace).map_err(|e| format!("call {at} fails: {e}"))?;
    }
    Ok(trace.fallible)
}

/// Checks that no object is left, and that nothing was released too often.
fn is_clean(text: &str, trace: &Trace) -> Result<(), String> {
    let released = trace.releases_no_more_than_it_got();
    let left = if trace.left.is_empty() { Ok(()) } else { Err(format!("{:?} are left", trace.left)) };
    released.and(left).map_err(|problem| format!("{problem}: {text}\n{trace}"))
}

#[test]
fn executors_agree_on_random_call_graphs() {
    callees::register();
    let stated = std::env::var("TVM_FFI_CODEGEN_GRAPHS").ok().and_then(|stated| stated.parse().ok());
    let (seed, graphs) = (seed(), stated.unwrap_or(GRAPHS));
    println!("TVM_FFI_CODEGEN_SEED={seed}");
    let mut calls = 0;
    for number in 0..graphs {
        let mut dice = Dice::new(seed.wrapping_add(number));
        match agree(number, &mut dice) {
            Ok(made) => calls += made,
            Err(problem) => {
                panic!("graph {number}: {problem}\nTVM_FFI_CODEGEN_SEED={} repeats this", seed.wrapping_add(number))
            }
        }
    }
    println!("{graphs} graphs, {calls} calls of the runtime that can fail");
}
