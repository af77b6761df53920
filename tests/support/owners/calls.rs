//! The effects of calls on references.

use tvm_ffi_codegen::runtime::abi::TypeIndex;

use super::state::State;
use super::symbols::{Place, Symbol};
use super::walk::Walk;

/// The effect of a callee.
enum Effect {
    /// Writes an owned value to the address in an argument.
    Any(usize),
    /// Writes an owned handle to the address in an argument. It may be NULL if so stated.
    Handle {
        to: usize,
        may_be_null: bool,
    },
    /// Takes the error that is raised, if there is one, to the address in an argument. It can't fail.
    TakeRaised,
    /// Calls a function with the packed arguments at the address in an argument. Their number and the result follow.
    Packed(usize),
    /// Calls a kernel, which may leave a result and fail.
    PackedKernel,
    /// Calls a kernel, which may write its result to the address in its last argument, whether it fails or not.
    Kernel,
    /// Checks the values at the address in an argument.
    Binds(usize),
    /// Takes the value at the address in an argument, whether it fails or not.
    Takes(usize),
    /// Creates a function. It takes the handle in the first argument.
    Creates,
    Adds,
    Releases,
    /// Nothing.
    None,
}

/// The effect of a function that isn't followed; `None` for a function that is, if it has a body.
fn effect(name: &str, has_body: bool, is_packed: bool) -> Option<Effect> {
    Some(match name {
        "TVMFFIAnyViewToOwnedAny" | "TVMFFIStringFromByteArray" | "TVMFFIBytesFromByteArray" => Effect::Any(1),
        "TVMFFIEnvTensorAlloc" => Effect::Handle { to: 1, may_be_null: false },
        "TVMFFITensorCreateUnsafeView" => Effect::Handle { to: 2, may_be_null: false },
        "TVMFFIFunctionGetGlobal" => Effect::Handle { to: 1, may_be_null: true },
        "TVMFFIErrorMoveFromRaised" => Effect::TakeRaised,
        "TVMFFIFunctionCall" => Effect::Packed(1),
        "TVMFFIFunctionCreate" => Effect::Creates,
        "TVMFFIObjectIncRef" => Effect::Adds,
        "TVMFFIObjectDecRef" => Effect::Releases,
        _ if name.starts_with("__tvm_ffi_codegen_take_result") => Effect::Takes(2),
        _ if name.starts_with("__tvm_ffi_codegen_bind") => Effect::Binds(2),
        // it raises an error, and handles no references of its callers
        _ if name.starts_with("__tvm_ffi_codegen_report") => Effect::None,
        _ if has_body => return None,
        _ if is_packed && (name.is_empty() || name.starts_with("__tvm_ffi_")) => Effect::Packed(1),
        _ if is_packed => Effect::PackedKernel,
        _ if name.starts_with("TVMFFI") || name.starts_with("__tvm_ffi_") => Effect::None,
        _ => Effect::Kernel,
    })
}

/// The results and states after a call; `None` if the callee's body has to be followed.
pub fn call(
    walk: &mut Walk<'_>,
    name: &str,
    (has_body, is_packed): (bool, bool),
    args: &[Symbol],
    state: &State,
) -> Option<Vec<(Symbol, State)>> {
    let fails = |state: State| (Symbol::NonZero, state);
    Some(match effect(name, has_body, is_packed)? {
        Effect::None => vec![(Symbol::Unknown, state.clone())],
        Effect::Binds(values) => {
            let mut bound = state.clone();
            if let Symbol::Address(place, _) = args[values] {
                bound.bind(place);
            }
            vec![(Symbol::Const(0), bound), fails(state.clone())]
        }
        Effect::Any(to) => vec![(Symbol::Const(0), given_any(walk, &args[to], state.clone())), fails(state.clone())],
        Effect::Handle { to, may_be_null } => {
            vec![(Symbol::Const(0), given_handle(walk, &args[to], may_be_null, state.clone())), fails(state.clone())]
        }
        Effect::TakeRaised => vec![(Symbol::Unknown, given_handle(walk, &args[0], true, state.clone()))],
        Effect::Creates => {
            let created = match args[0].id() {
                Some(id) => walk.without(state, id),
                // NULL, or a value that isn't tracked
                None => state.clone(),
            };
            vec![(Symbol::Const(0), given_handle(walk, &args[3], false, created)), fails(state.clone())]
        }
        Effect::Takes(from) => {
            let Symbol::Address(place, at) = args[from] else {
                walk.violation("takes a value at an unknown address");
                return Some(Vec::new());
            };
            let taken = match state.load(place, at + PAYLOAD).id() {
                Some(id) => walk.without(state, id),
                None => state.clone(),
            };
            vec![(Symbol::Const(0), taken.clone()), fails(taken)]
        }
        Effect::Packed(at) => packed(walk, &args[at..], state),
        // a kernel of another convention, whose parameters have the same types
        Effect::PackedKernel if !matches!(args[3], Symbol::Address(..)) => vec![(Symbol::Unknown, state.clone())],
        Effect::PackedKernel => {
            let mut outcomes = packed(walk, &args[1..], state);
            outcomes.push(fails(given_any(walk, &args[3], state.clone())));
            outcomes
        }
        Effect::Kernel => {
            let mut outcomes = vec![(Symbol::Unknown, state.clone())];
            if let Some(Symbol::Address(place, at)) = args.last()
                && [0, PAYLOAD].iter().all(|part| state.load(*place, at + part) == Symbol::Const(0))
            {
                outcomes.push((Symbol::Unknown, given_any(walk, &args[args.len() - 1], state.clone())));
            }
            outcomes
        }
        Effect::Adds => {
            let mut state = state.clone();
            if let Some(id) = args[0].id() {
                state.own(id);
            }
            vec![(Symbol::Const(0), state)]
        }
        Effect::Releases => {
            let mut outcomes = Vec::new();
            for (symbol, state) in walk.cases(args[0].clone(), state.clone()) {
                match symbol {
                    Symbol::Payload(id) | Symbol::Handle(id) if state.is_object(id) => {
                        outcomes.push((Symbol::Const(0), walk.released(&state, id)));
                    }
                    Symbol::Payload(_) | Symbol::Handle(_) => walk.violation("releases what may be no object"),
                    Symbol::Listed => {
                        walk.trusted += 1;
                        outcomes.push((Symbol::Const(0), state));
                    }
                    _ => walk.violation("releases a reference that it doesn't own"),
                }
            }
            outcomes
        }
    })
}

/// The offset of a payload in a value.
const PAYLOAD: i64 = 8;
/// The bytes of a value.
const ANY: i64 = 16;
const MOVED: i64 = TypeIndex::OBJECT_RVALUE_REF.0 as i64;

/// The outcomes of a call with packed arguments, their number and the address of the result.
fn packed(walk: &mut Walk<'_>, args: &[Symbol], state: &State) -> Vec<(Symbol, State)> {
    let mut outcomes = Vec::new();
    for state in moved(walk, &args[0], &args[1], state.clone()) {
        let given = match is_marked(&args[2], &state) {
            true => state.clone(),
            false => given_any(walk, &args[2], state.clone()),
        };
        outcomes.push((Symbol::Const(0), given));
        outcomes.push((Symbol::NonZero, state));
    }
    outcomes
}

/// The type index that the slow path of a function without a result passes when it calls the function again.
const MARK: i64 = i32::MIN as i64;

fn is_marked(to: &Symbol, state: &State) -> bool {
    matches!(to, Symbol::Address(place, at) if state.load(*place, *at) == Symbol::Const(MARK))
}

fn given_any(walk: &mut Walk<'_>, to: &Symbol, mut state: State) -> State {
    if let Some((place, at)) = address(walk, to) {
        let id = walk.new_reference(&mut state);
        state.store(place, at, Symbol::Index(id));
        state.store(place, at + PAYLOAD, Symbol::Payload(id));
    }
    state
}

fn given_handle(walk: &mut Walk<'_>, to: &Symbol, may_be_null: bool, mut state: State) -> State {
    if let Some((place, at)) = address(walk, to) {
        let id = walk.new_reference(&mut state);
        state.store(place, at, Symbol::Handle(id));
        if !may_be_null {
            return state.assuming(id, true).unwrap_or_default();
        }
    }
    state
}

fn address(walk: &mut Walk<'_>, to: &Symbol) -> Option<(Place, i64)> {
    match to {
        Symbol::Address(place, at) => Some((*place, *at)),
        _ => {
            walk.violation("a callee gives a reference to an unknown address");
            None
        }
    }
}

/// The states after a call whose arguments may refer to values that the callee may take: it takes all, or none.
fn moved(walk: &mut Walk<'_>, args: &Symbol, count: &Symbol, state: State) -> Vec<State> {
    let (Symbol::Address(place, at), Symbol::Const(count)) = (args, count) else { return vec![state] };
    let cells: Vec<(Place, i64)> = (0..*count)
        .filter_map(|number| {
            let [index, payload] = [0, PAYLOAD].map(|part| state.load(*place, at + number * ANY + part).if_object());
            match (index, payload) {
                (Symbol::Const(MOVED), Symbol::Address(of, at)) => Some((of, at)),
                _ => None,
            }
        })
        .collect();
    let mut taken = state.clone();
    for (of, at) in &cells {
        if let Some(id) = taken.load(*of, *at).id() {
            taken = walk.without(&taken, id);
            taken.store(*of, *at, Symbol::Const(0));
        }
    }
    if taken == state { vec![state] } else { vec![taken, state] }
}
