//! The behaviour of a wrapper for a call, according to `docs/reference/contract.md`: a reference that shares no code
//! with `src/lower`.
//!
//! Executors that run the same lowered IR agree even if the lowering is wrong; this model would differ.

mod dims;
mod outcome;
pub mod seen;
mod tensor;
mod types;

use std::collections::HashMap;

use tvm_ffi_codegen::lower::Convention;
use tvm_ffi_codegen::runtime::abi::{DLDevice, DLDeviceType};
use tvm_ffi_codegen::runtime::unstable::type_table::key_to_index;
use tvm_ffi_codegen::{Param, ParamType, Signature};

use super::args::register_types;
use super::kernels::Noted;
use super::layout::{Slot, is_opaque, param_slots};
use super::states::state_of;
use super::streams::stream_of;
use super::value::{Call, Value};
use dims::Deferred;
pub use seen::brief;

/// The kind and message of an error.
pub type Refusal = (String, String);

/// The behaviour of a wrapper for a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Prediction {
    Refused(Refusal),
    Accepted(Accepted),
}

/// The words that a native kernel receives, and the predictable parts of results.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Accepted {
    /// The words in the form of `Outcome::received`; `None` if the contract leaves a word open.
    pub words: Vec<Option<Noted>>,
    /// The result if it is the first scalar parameter: type index and payload.
    pub first_scalar: Option<(i32, u64)>,
    /// The tensors that the wrapper returns, in printed form, if the kernel doesn't write to them.
    pub tensors: Option<String>,
}

/// The outcome of a call, which is the same for both forms of tensors; `None` if the call violates what wrappers don't
/// check.
pub fn predict(signature: &Signature, call: &Call, convention: Convention) -> Option<Prediction> {
    register_types();
    match Model::new(signature, convention).call(call) {
        Ok(accepted) => Some(Prediction::Accepted(accepted)),
        Err(Stop::Refused(kind, text)) => Some(Prediction::Refused((kind.to_owned(), text))),
        Err(Stop::TrustBroken) => None,
    }
}

enum Stop {
    Refused(&'static str, String),
    TrustBroken,
}

type Checked<T = ()> = Result<T, Stop>;

/// Whether a value equals the predicted result. All NaNs are equal.
pub fn same_result(predicted: (i32, u64), (index, padding, payload): (i32, u32, u64)) -> bool {
    let both_nan = f64::from_bits(predicted.1).is_nan() && f64::from_bits(payload).is_nan();
    index == predicted.0 && padding == 0 && (payload == predicted.1 || (index == 3 && both_nan))
}

struct Model<'a> {
    signature: &'a Signature,
    convention: Convention,
    /// The values of symbols, with the paths that bound them.
    symbols: HashMap<&'a str, (i64, String)>,
    /// Dimensions that can't be decided yet.
    deferred: Vec<Deferred<'a>>,
    /// The device id that tensors without an explicit one share, for each kind of device, with the path that bound it.
    devices: HashMap<DLDeviceType, (i32, String)>,
    /// The common device of tensors without an explicit kind, with the path that bound it.
    anywhere: Option<(DLDevice, String)>,
    /// The device of the first tensor that may have a stream.
    stream: Option<DLDevice>,
    words: Vec<Option<Noted>>,
}

/// The location of a value, and the rules that apply there.
#[derive(Clone)]
struct At {
    argument: usize,
    /// The path in messages.
    path: String,
    /// The path after `from` in messages.
    from: String,
    /// Inside an Array, List, Map or Dict: values aren't converted or passed to the kernel as separate arguments.
    element: bool,
    /// Whether None is also accepted.
    optional: bool,
}

impl At {
    fn step(&self, path: &str, from: &str) -> At {
        let (path, from) = (format!("{}{path}", self.path), format!("{}{from}", self.from));
        At { path, from, optional: false, ..self.clone() }
    }

    fn item(&self, i: usize) -> At {
        let step = format!("[{i}]");
        self.step(&step, &step)
    }

    fn field(&self, name: &str) -> At {
        let step = format!(".{name}");
        self.step(&step, &step)
    }

    fn element(self) -> At {
        At { element: true, ..self }
    }
}

/// `a`, `a and b`, `a, b and c`
fn listed(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

impl<'a> Model<'a> {
    fn new(signature: &'a Signature, convention: Convention) -> Self {
        Model {
            signature,
            convention,
            symbols: HashMap::new(),
            deferred: Vec::new(),
            devices: HashMap::new(),
            anywhere: None,
            stream: None,
            words: Vec::new(),
        }
    }

    fn refuse<T>(&self, kind: &'static str, what: &str, expected: &str, got: &str) -> Checked<T> {
        let shown = self.shown(what);
        let text = format!("Mismatched {what} when calling: `{shown}`, expected {expected}, got {got}");
        Err(Stop::Refused(kind, text))
    }

    /// The signature in a message (C7.8).
    fn shown(&self, what: &str) -> String {
        let argument = what.split(" on argument #").nth(1).and_then(|number| number.parse().ok());
        let param = match argument {
            Some(number) => self.signature.passed().nth(number),
            None => self.signature.params().iter().find(|param| param.name == what),
        };
        self.shown_with(param, what.starts_with("result.") || what.starts_with("result["))
    }

    /// The signature in a message, with the subject: a parameter, or the result.
    fn shown_with(&self, subject: Option<&Param>, of_result: bool) -> String {
        let signature = self.signature;
        let full = signature.to_string();
        if full.len() <= 200 {
            return full;
        }
        let mut shown = Vec::new();
        for (i, param) in signature.params().iter().enumerate() {
            let is_subject = subject.is_some_and(|subject| std::ptr::eq(subject, param));
            shown.extend((is_subject && i >= 100).then(|| "...".to_owned()));
            match is_subject {
                true => shown.push(param.to_string()),
                false => shown.extend((i < 100).then(|| param.name.clone())),
            }
        }
        shown.extend((signature.params().len() > 100).then(|| "...".to_owned()));
        let result = signature.ret().filter(|_| of_result).map(|ret| format!(" -> {ret}")).unwrap_or_default();
        format!("{}({}){result}", signature.name(), shown.join(", "))
    }

    fn call(&mut self, call: &Call) -> Checked<Accepted> {
        self.arity(call)?;
        let mut accepted = Accepted::default();
        let mut environment = Vec::new();
        let mut given = call.args.iter();
        let mut argument = 0;
        for param in self.signature.params() {
            if !param.is_passed() {
                environment.push((param, self.words.len()));
                self.words.push(None);
                continue;
            }
            let default = param.default.as_ref().map(|default| seen::default_value(&param.ty, default));
            let value = given.next().map(|(_, value)| value).or(default.as_ref());
            // the number of arguments has been checked
            let Some(value) = value else { return Err(Stop::TrustBroken) };
            let (path, from) = (param.name.clone(), param.name.clone());
            let at = At { argument, path, from, element: false, optional: false };
            self.argument(&param.ty, value, &at)?;
            if let ParamType::Scalar(ty) = param.ty {
                let scalar = self.scalar(&param.ty, ty, value, &at)?.1;
                accepted.first_scalar.get_or_insert(scalar);
            }
            if param.ty == ParamType::Stream && seen::index(value) == 0 {
                environment.push((param, self.words.len() - 1));
            }
            argument += 1;
        }
        self.decide_deferred()?;
        self.constraints()?;
        accepted.tensors = self.returned_tensors()?;
        // streams come first
        environment.sort_by_key(|(param, _)| matches!(param.ty, ParamType::EnvState(_)));
        for (param, place) in environment {
            let word = match &param.ty {
                // a packed kernel receives no state
                ParamType::EnvState(_) if self.convention == Convention::Packed => continue,
                ParamType::EnvState(name) => {
                    let signature = self.shown_with(Some(param), false);
                    state_of(name, &signature).map_err(|(kind, text)| Stop::Refused(kind, text))?
                }
                _ => {
                    let Some(device) = self.stream else {
                        let expected = "a tensor that decides the device of the stream";
                        return self.refuse("ValueError", &param.name, expected, "None for each");
                    };
                    stream_of(device)
                }
            };
            self.words[place] = Some(Noted::Word(word));
        }
        for tensor in self.signature.returned_tensors() {
            // the pointer may be NULL if the tensor is empty; the offset from a handle depends on the allocator
            let words = if tensor.device.kind().is_some_and(is_opaque) { 2 } else { 1 };
            self.words.extend(vec![None; words]);
        }
        for name in self.signature.dim_vars() {
            let value = self.symbols.get(name).map_or(0, |(value, _)| *value as u64);
            self.words.push(Some(Noted::Word(value)));
        }
        accepted.words = std::mem::take(&mut self.words);
        Ok(accepted)
    }

    fn arity(&self, call: &Call) -> Checked {
        let count = call.num_args.unwrap_or(call.args.len() as i32);
        let params: Vec<_> = self.signature.params().iter().filter(|p| p.is_passed()).collect();
        let min = params.iter().filter(|p| p.default.is_none()).count();
        if count < min as i32 || count > params.len() as i32 {
            let max = params.len().to_string();
            let expected = if min == params.len() { max } else { format!("{min} to {max}") };
            return self.refuse("TypeError", "number of arguments", &expected, &count.to_string());
        }
        if call.null_array && count > 0 {
            return self.refuse("TypeError", "argument array", "a non-NULL pointer", "NULL");
        }
        // trusted: the count isn't greater than the number of arguments in the array
        if count as usize == call.args.len() { Ok(()) } else { Err(Stop::TrustBroken) }
    }

    /// Checks an argument of the call.
    fn argument(&mut self, ty: &'a ParamType, value: &Value, at: &At) -> Checked {
        let referred = match value {
            Value::Reference(Some(object)) if !seen::is_null(object) => Some(&**object),
            Value::Reference(_) | Value::Raw(10, 0) => None,
            Value::Raw(10, _) => return Err(Stop::TrustBroken),
            other => return self.value(ty, other, at),
        };
        let Some(object) = referred else {
            let optional = matches!(ty, ParamType::Optional(_));
            let ty = if let ParamType::Optional(inner) = ty { &**inner } else { ty };
            let unknown = matches!(ty, ParamType::Object(key) if key_to_index(key).is_none());
            let more = if unknown { " (not a registered type)" } else { "" };
            return self.wrong_type(ty, &At { optional, ..at.clone() }, more, "rvalue reference");
        };
        let before = self.words.len();
        self.value(ty, object, at)?;
        if *ty == ParamType::Any {
            // either the rvalue reference or the object itself
            self.words[before] = None;
        }
        Ok(())
    }

    /// The words of an optional argument that is None.
    fn zeros(&mut self, ty: &ParamType) {
        let mut slots = Vec::new();
        param_slots(ty, &mut slots);
        let words: usize = slots.into_iter().map(Slot::words).sum();
        self.words.extend(std::iter::repeat_n(Some(Noted::Word(0)), words));
    }

    fn give(&mut self, at: &At, noted: impl IntoIterator<Item = Option<Noted>>) {
        if !at.element {
            self.words.extend(noted);
        }
    }

    fn give_word(&mut self, at: &At, word: u64) {
        self.give(at, [Some(Noted::Word(word))]);
    }
}
