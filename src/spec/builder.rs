//! Building a signature: every mistake is found and reported at once.

use std::collections::{HashMap, HashSet};
use std::fmt;

use tvm_ffi_runtime::abi::DLDataType;

use super::signature::{Param, ParamType, Signature};
use super::types::{Dim, Layout, ScalarType, TensorType};

/// The most parameters that a signature may have.
const MAX_PARAMS: usize = 4096;
/// The most dimensions that a tensor may have; NumPy's limit too.
const MAX_RANK: usize = 64;

/// One mistake in a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Where: `name`, `x`, `x.shape[1]`, `x.dtype`, ...
    pub path: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// All mistakes of one signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignatureError {
    /// The signature's name, as given.
    pub name: String,
    /// At least one mistake, in order of appearance.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.mistakes.len() == 1 { "" } else { "s" };
        write!(f, "signature `{}` has {} mistake{plural}", self.name.escape_debug(), self.mistakes.len())?;
        for mistake in &self.mistakes {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SignatureError {}

/// Collects a signature's parts. See [`Signature::builder`].
#[derive(Clone, Debug)]
pub struct SignatureBuilder {
    name: String,
    params: Vec<Param>,
    ret: Option<ScalarType>,
}

impl SignatureBuilder {
    pub(super) fn new(name: String) -> Self {
        SignatureBuilder { name, params: Vec::new(), ret: None }
    }

    /// Adds a parameter.
    pub fn param(mut self, name: impl Into<String>, ty: impl Into<ParamType>) -> Self {
        self.params.push(Param { name: name.into(), ty: ty.into() });
        self
    }

    /// States what the function returns; nothing, unless called.
    pub fn returns(mut self, ty: ScalarType) -> Self {
        self.ret = Some(ty);
        self
    }

    /// Checks it all.
    ///
    /// # Errors
    /// Every mistake of the signature, each with its path.
    pub fn build(self) -> Result<Signature, SignatureError> {
        let mut check = Checker::default();
        check.signature(&self);
        match check.mistakes.is_empty() {
            true => Ok(Signature { name: self.name, params: self.params, ret: self.ret }),
            false => Err(SignatureError { name: self.name, mistakes: check.mistakes }),
        }
    }
}

#[derive(Default)]
struct Checker {
    mistakes: Vec<Mistake>,
}

/// A letter or underscore, then letters, digits, underscores.
fn is_identifier(name: &str) -> bool {
    is_symbol_name(name) && !name.contains(['.', '$'])
}

/// As an identifier, with `.` and `$` inside, which object files and loaders take too.
fn is_symbol_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'))
}

impl Checker {
    fn mistake(&mut self, path: impl Into<String>, problem: impl Into<String>) {
        self.mistakes.push(Mistake { path: path.into(), problem: problem.into() });
    }

    fn signature(&mut self, sig: &SignatureBuilder) {
        if !is_symbol_name(&sig.name) {
            let problem = "expected a letter or `_`, then letters, digits, `_`, `.` or `$`";
            self.mistake("name", format!("{problem}, got {:?}", sig.name));
        }
        if sig.params.len() > MAX_PARAMS {
            self.mistake("params", format!("expected at most {MAX_PARAMS} parameters, got {}", sig.params.len()));
        }
        let mut names: HashMap<&str, usize> = HashMap::new();
        for (i, param) in sig.params.iter().enumerate() {
            if !is_identifier(&param.name) {
                let path = format!("params[{i}].name");
                self.mistake(path, format!("expected an identifier, got {:?}", param.name));
            } else if let Some(first) = names.insert(&param.name, i) {
                let path = format!("params[{i}].name");
                self.mistake(path, format!("`{}` is already the name of params[{first}]", param.name));
            }
        }
        let names: HashSet<&str> = names.into_keys().collect();
        for (i, param) in sig.params.iter().enumerate() {
            if let ParamType::Tensor(tensor) = &param.ty {
                let path = if is_identifier(&param.name) { param.name.clone() } else { format!("params[{i}]") };
                self.tensor(&path, tensor, &names);
            }
        }
    }

    fn tensor(&mut self, path: &str, tensor: &TensorType, params: &HashSet<&str>) {
        let rank = tensor.shape.len();
        if rank > MAX_RANK {
            self.mistake(format!("{path}.shape"), format!("expected at most {MAX_RANK} dimensions, got {rank}"));
        }
        for (d, dim) in tensor.shape.iter().enumerate() {
            let path = format!("{path}.shape[{d}]");
            match dim {
                Dim::Const(size) if *size < 0 => {
                    self.mistake(path, format!("expected a size of at least 0, got {size}"));
                }
                Dim::Const(_) => {}
                Dim::Symbol(name) => self.symbol(path, name, params),
            }
        }
        self.constant_sizes(path, &tensor.shape);
        self.dtype(path, tensor.dtype);
        if tensor.device.device_type.name().is_none() {
            let problem = format!("{} is not a device type of DLPack 1.x", tensor.device.device_type.0);
            self.mistake(format!("{path}.device"), problem);
        }
        if let Some(id) = tensor.device.id
            && id < 0
        {
            self.mistake(format!("{path}.device"), format!("expected a device id of at least 0, got {id}"));
        }
        if let Layout::Strides(strides) = &tensor.layout {
            if strides.len() != rank {
                let problem = format!("expected one for each of {rank} dimensions, got {}", strides.len());
                self.mistake(format!("{path}.strides"), problem);
            }
            for (d, stride) in strides.iter().enumerate() {
                if let Dim::Symbol(name) = stride {
                    self.symbol(format!("{path}.strides[{d}]"), name, params);
                }
            }
        }
        if let Some(align) = tensor.align
            && !align.is_power_of_two()
        {
            self.mistake(format!("{path}.align"), format!("expected a power of two, got {align}"));
        }
    }

    /// The product of the sizes that are constant has to fit, unless one of them is 0.
    fn constant_sizes(&mut self, path: &str, shape: &[Dim]) {
        let sizes = || shape.iter().filter_map(|d| if let Dim::Const(size) = d { Some(*size) } else { None });
        if sizes().any(|size| size <= 0) {
            return;
        }
        if sizes().try_fold(1i64, i64::checked_mul).is_none() {
            self.mistake(format!("{path}.shape"), "the number of elements overflows 64 bits");
        }
    }

    fn symbol(&mut self, path: String, name: &str, params: &HashSet<&str>) {
        if !is_identifier(name) {
            self.mistake(path, format!("expected a number or an identifier, got {name:?}"));
        } else if params.contains(name) {
            self.mistake(path, format!("`{name}` is already the name of a parameter"));
        }
    }

    fn dtype(&mut self, path: &str, dtype: DLDataType) {
        // the text has to parse back: an unknown code, no bits or no lanes have no text
        let round_trips = dtype.to_string().parse() == Ok(dtype);
        if !round_trips || dtype.bits == 0 || dtype.lanes == 0 {
            let problem = format!(
                "code {}, {} bits, {} lanes is not an element type of DLPack 1.x",
                dtype.code, dtype.bits, dtype.lanes
            );
            self.mistake(format!("{path}.dtype"), problem);
        }
    }
}
