//! Global functions that return states of a compiler's runtime, and functions that return other values.

use std::ffi::c_void;
use std::sync::Once;

use tvm_ffi_codegen::runtime::{Any, Error, Function, registry};

/// The result of a global function.
#[derive(Clone, Copy)]
enum State {
    /// The opaque pointer.
    Pointer(u64),
    /// A value of another type, with the type's name in messages.
    Other(&'static str),
    /// The error that the function raises.
    Raises(&'static str),
}

/// All global functions by name; other names are never registered.
const STATES: &[(&str, State)] = &[
    ("test.state", State::Pointer(0x57a7e0)),
    ("test.other_state", State::Pointer(0x57a7e8)),
    ("test.null_state", State::Pointer(0)),
    ("test.int_state", State::Other("int")),
    ("test.str_state", State::Other("str")),
    ("test.no_state_yet", State::Raises("there is no state yet")),
];

fn find(name: &str) -> Option<State> {
    STATES.iter().find(|(known, _)| *known == name).map(|(_, state)| *state)
}

/// The pointer that a function with this signature gets for the name, or the error's kind and message.
pub fn state_of(name: &str, signature: &str) -> Result<u64, (&'static str, String)> {
    let text = match find(name) {
        None => format!("global function `{name}`, which provides the state of `{signature}`, is not registered"),
        Some(State::Raises(message)) => return Err(("ValueError", message.to_owned())),
        Some(State::Pointer(state @ 1..)) => return Ok(state),
        Some(State::Pointer(0)) => wrong(name, signature, "NULL"),
        Some(State::Other(got)) => wrong(name, signature, got),
    };
    Err((if find(name).is_none() { "RuntimeError" } else { "TypeError" }, text))
}

fn wrong(name: &str, signature: &str, got: &str) -> String {
    let subject = format!("Mismatched type of result of `{name}`, which provides the state of `{signature}`");
    format!("{subject}, expected a handle that is not NULL, got {got}")
}

fn give(state: State) -> Result<Any, Error> {
    match state {
        State::Pointer(state) => {
            let pointer: *mut c_void = std::ptr::without_provenance_mut(state as usize);
            // SAFETY: the address is never dereferenced.
            Ok(unsafe { Any::from_opaque_ptr(pointer) })
        }
        State::Other("int") => Ok(Any::from(5i64)),
        State::Other(_) => Ok(Any::from("an owned text, which is released")),
        State::Raises(message) => Err(Error::new("ValueError", message)),
    }
}

/// Registers the global functions once for the process.
pub fn register_all() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        for (name, state) in STATES {
            let function = Function::from_packed(move |_| give(*state));
            registry::set_global(name, function, false).unwrap();
        }
    });
}
