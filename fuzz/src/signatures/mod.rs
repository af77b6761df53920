//! Signatures and launches as text. A text that parses is printed and read back, and lowers to a module. The verifier
//! accepts this module, and its accesses are proven. Errors have places in the text. Signatures that are built are
//! checked alike.

mod built;
mod lowered;
mod places;

use std::fmt::{Debug, Display};
use std::str::FromStr;

use tvm_ffi_codegen::lower::Convention;
use tvm_ffi_codegen::spec::{
    Constraint, DTypePolicy, Device, Dim, KernelArg, Launch, LaunchedSignature, ParamType, TensorType,
};
use tvm_ffi_codegen::{ScalarType, Signature, SyntaxError};

use places::{Places, check};

/// The maximum size of an input in bytes. It keeps the check of each text fast.
const LONGEST: usize = 2048;

/// The first byte of an input that is no text, but chooses the parts of a signature.
const IS_BUILT: u8 = 0xff;

/// Reads an input as a signature, as a signature with a launch, and as each part that has a text of its own.
///
/// # Panics
/// A text isn't read back to the same value, an error has no place in the text, or lowering makes invalid code.
pub fn run(input: &[u8]) {
    if let Some((&IS_BUILT, choices)) = input.split_first() {
        if let Ok(Ok(signature)) = built::build(choices) {
            same_again(&signature);
            lowered::alone(&signature);
        }
        return;
    }
    let text = String::from_utf8_lossy(&input[..input.len().min(LONGEST)]);
    parts(&text);
    if let Some(signature) = read::<Signature>(&text) {
        lowered::alone(&signature);
    }
    if let Some(launched) = read::<LaunchedSignature>(&text) {
        lowered::launched(&launched);
    }
}

/// Reads the text as each part of a signature or launch.
fn parts(text: &str) {
    read::<Dim>(text);
    read::<Constraint>(text);
    read::<ParamType>(text);
    read::<TensorType>(text);
    read::<Device>(text);
    read::<KernelArg>(text);
    read::<Launch>(text);
    if let Err(error) = KernelArg::list(text) {
        check::<SyntaxError>(&error, text);
    }
    word::<ScalarType>(text);
    word::<DTypePolicy>(text);
    word::<Convention>(text);
}

/// The value of a text. An error has its places in the text.
fn read<T: FromStr<Err: Places> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    match text.parse::<T>() {
        Ok(value) => {
            same_again(&value);
            Some(value)
        }
        Err(error) => {
            check(&error, text);
            None
        }
    }
}

/// Reads a word, whose errors have no places.
fn word<T: FromStr<Err: Display + Debug> + Display + PartialEq + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => same_again(&value),
        Err(error) => assert!(!error.to_string().is_empty(), "an error without a message for {text:?}"),
    }
}

/// Prints a value, and reads it back.
fn same_again<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(value: &T) {
    let printed = value.to_string();
    let again = printed.parse::<T>().unwrap_or_else(|error| panic!("{error:?} in what was printed:\n{printed}"));
    assert!(again == *value, "{printed}\nis read back as\n{again:?}\ninstead of\n{value:?}");
    assert_eq!(again.to_string(), printed, "what is read back prints otherwise");
}
