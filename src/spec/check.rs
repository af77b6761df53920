//! What makes a signature wrong: every mistake is found and reported at once.

use std::collections::{HashMap, HashSet};

use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

use super::builder::Mistake;
use super::dim::Dim;
use super::param::{DefaultValue, Param, ParamType};
use super::scalar::ScalarType;
use super::signature::Signature;
use super::tensor::{DType, Device, DeviceId, Layout, TensorShape, TensorType};

/// The most parameters that a signature may have.
const MAX_PARAMS: usize = 4096;
/// The most dimensions that a tensor may have; NumPy's limit too.
pub const MAX_RANK: usize = 64;
/// The greatest depth of types inside each other.
pub const MAX_TYPE_DEPTH: usize = 16;
/// The greatest depth of Arrays, Lists, Maps and Dicts inside each other.
pub const MAX_CONTAINER_DEPTH: usize = 4;
/// The greatest depth of operations inside each other in a dimension.
pub const MAX_DIM_DEPTH: usize = 16;

/// A letter or underscore, then letters, digits, underscores.
fn is_identifier(name: &str) -> bool {
    is_symbol_name(name) && !name.contains(['.', '$'])
}

/// As an identifier, with `.` and `$` inside, which object files and loaders take too.
fn is_symbol_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'))
}

/// Whether a text can stand between quotes: the language has no escapes.
fn is_quotable(text: &str) -> bool {
    !text.contains(['"', '\0'])
}

pub(super) struct Checker<'a> {
    signature: &'a Signature,
    /// Parameters by name.
    params: HashMap<&'a str, &'a Param>,
    mistakes: Vec<Mistake>,
}

impl<'a> Checker<'a> {
    /// All mistakes of a signature.
    pub(super) fn check(signature: &'a Signature) -> Vec<Mistake> {
        let mut checker = Checker { signature, params: HashMap::new(), mistakes: Vec::new() };
        checker.names();
        checker.all_params();
        checker.result();
        checker.constraints();
        checker.determined();
        checker.mistakes
    }

    /// All mistakes of the types of values that aren't arguments, which stand behind so many symbols.
    pub(super) fn check_values(signature: &'a Signature, symbols: usize) -> Vec<Mistake> {
        let params = signature.params.iter().map(|param| (param.name.as_str(), param)).collect();
        let mut checker = Checker { signature, params, mistakes: Vec::new() };
        for param in signature.params.iter().skip(symbols) {
            checker.param_type(&param.name, &param.ty, Place { depth: 0, containers: 0 });
            if !param.is_passed() {
                checker.mistake(&param.name, format!("{} is no type of a value", param.ty));
            }
            param.ty.for_each_tensor(&mut |tensor| {
                if tensor.noalias {
                    let problem = "expected no `noalias`: nobody knows which other pointers lead to the value";
                    checker.mistake(&param.name, problem);
                }
            });
        }
        checker.determined();
        checker.mistakes
    }

    fn mistake(&mut self, path: impl Into<String>, problem: impl Into<String>) {
        self.mistakes.push(Mistake { path: path.into(), problem: problem.into() });
    }

    fn names(&mut self) {
        let signature = self.signature;
        if !is_symbol_name(&signature.name) {
            let problem = "expected a letter or `_`, then letters, digits, `_`, `.` or `$`";
            self.mistake("name", format!("{problem}, got {:?}", signature.name));
        }
        let count = signature.params.len();
        if count > MAX_PARAMS {
            self.mistake("params", format!("expected at most {MAX_PARAMS} parameters, got {count}"));
        }
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (i, param) in signature.params.iter().enumerate() {
            let path = format!("params[{i}].name");
            if !is_identifier(&param.name) {
                self.mistake(path, format!("expected an identifier, got {:?}", param.name));
            } else if let Some(first) = first.insert(&param.name, i) {
                self.mistake(path, format!("`{}` is already the name of params[{first}]", param.name));
            }
            self.params.entry(&param.name).or_insert(param);
        }
    }

    fn all_params(&mut self) {
        let signature = self.signature;
        let mut defaulted: Option<&Param> = None;
        for (i, param) in signature.params.iter().enumerate() {
            let path = if is_identifier(&param.name) { param.name.clone() } else { format!("params[{i}]") };
            self.param_type(&path, &param.ty, Place::default());
            match (&param.default, defaulted) {
                (Some(default), _) => {
                    self.default(&path, &param.ty, default);
                    defaulted = Some(param);
                }
                (None, Some(earlier)) if param.is_passed() => {
                    let problem = format!("expected a default, as `{}` before it has one", earlier.name);
                    self.mistake(path, problem);
                }
                (None, _) => {}
            }
        }
        let stream = signature.params.iter().find(|param| param.ty == ParamType::EnvStream);
        if let Some(param) = stream
            && !signature.params.iter().any(|param| has_device_tensor(&param.ty))
        {
            let problem = "expected a tensor on a device among the parameters, whose stream it is";
            self.mistake(param.name.clone(), problem);
        }
    }

    /// A type of a parameter, or inside one.
    fn param_type(&mut self, path: &str, ty: &'a ParamType, place: Place) {
        if place.depth > MAX_TYPE_DEPTH {
            return self.mistake(path, format!("expected at most {MAX_TYPE_DEPTH} types inside each other"));
        }
        let inside = Place { depth: place.depth + 1, ..place };
        match ty {
            ParamType::Tensor(tensor) => self.tensor(path, tensor),
            ParamType::Shape(Some(dims)) => {
                self.rank(path, dims.len());
                self.sizes(path, "", dims);
            }
            ParamType::Object(key) if key.is_empty() || !is_quotable(key) => {
                self.mistake(path, format!("expected a type key without `\"`, got {key:?}"));
            }
            _ if !ty.is_passed() && place.depth > 0 => {
                let problem = format!("expected a type that is passed, got {ty}: it stands only for a whole parameter");
                self.mistake(path, problem);
            }
            ParamType::EnvState(name) if name.is_empty() || !is_quotable(name) => {
                let problem = format!("expected the name of a global function, without `\"`, got {name:?}");
                self.mistake(path, problem);
            }
            ParamType::Optional(inner) => {
                if matches!(
                    **inner,
                    ParamType::Optional(_) | ParamType::Any | ParamType::None | ParamType::Scalar(ScalarType::Handle)
                ) {
                    self.mistake(path, format!("{inner} takes None already"));
                }
                self.param_type(path, inner, inside);
            }
            ParamType::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.param_type(&format!("{path}[{i}]"), item, inside);
                }
            }
            ParamType::Array(_) | ParamType::List(_) | ParamType::Map(..) | ParamType::Dict(..) => {
                let inside = Place { containers: place.containers + 1, ..inside };
                if inside.containers > MAX_CONTAINER_DEPTH {
                    let problem = format!("expected at most {MAX_CONTAINER_DEPTH} containers inside each other");
                    return self.mistake(path, problem);
                }
                for inner in ty.inner() {
                    self.param_type(&format!("{path}[...]"), inner, inside);
                }
            }
            _ => {}
        }
    }

    fn rank(&mut self, path: &str, rank: usize) {
        if rank > MAX_RANK {
            self.mistake(path, format!("expected at most {MAX_RANK} dimensions, got {rank}"));
        }
    }

    fn tensor(&mut self, path: &str, tensor: &TensorType) {
        if let TensorShape::Ranked(dims) = &tensor.shape {
            self.rank(&format!("{path}.shape"), dims.len());
            self.sizes(path, ".shape", dims);
        }
        match &tensor.dtype {
            DType::Exact(dtype) => self.dtype(path, *dtype),
            DType::Any => {}
            DType::Param(name) => self.mistake(format!("{path}.dtype"), only_in_result(name)),
        }
        match &tensor.device {
            Device::Kind(kind, id) => self.device(path, *kind, *id),
            Device::Any => {}
            Device::Param(name) => self.mistake(format!("{path}.device"), only_in_result(name)),
        }
        if let Layout::Strides(strides) = &tensor.layout {
            match tensor.shape.rank() {
                Some(rank) if rank != strides.len() => {
                    let problem = format!("expected one for each of {rank} dimensions, got {}", strides.len());
                    self.mistake(format!("{path}.strides"), problem);
                }
                None => self.mistake(format!("{path}.strides"), "expected `any`, or none, for a tensor of any rank"),
                Some(_) => {}
            }
            for (d, stride) in strides.iter().enumerate() {
                self.dim(&format!("{path}.strides[{d}]"), stride);
            }
        }
        if let Some(align) = tensor.align
            && !align.is_power_of_two()
        {
            self.mistake(format!("{path}.align"), format!("expected a power of two, got {align}"));
        }
    }

    /// Sizes. The product of those that are constant has to fit, unless one of them is 0.
    fn sizes(&mut self, path: &str, part: &str, dims: &[Dim]) {
        let mut constant = Vec::new();
        for (d, dim) in dims.iter().enumerate() {
            let path = format!("{path}{part}[{d}]");
            if let Dim::Const(size) = dim {
                constant.push(*size);
                if *size < 0 {
                    self.mistake(path, format!("expected a size of at least 0, got {size}"));
                }
            } else {
                self.dim(&path, dim);
            }
        }
        let product = constant.iter().try_fold(1i64, |product, size| product.checked_mul(*size));
        if product.is_none() && constant.iter().all(|size| *size > 0) {
            self.mistake(format!("{path}{part}"), "the number of elements overflows 64 bits");
        }
    }

    fn dim(&mut self, path: &str, dim: &Dim) {
        if dim.depth() > MAX_DIM_DEPTH {
            return self.mistake(path, format!("expected at most {MAX_DIM_DEPTH} operations inside each other"));
        }
        let mut seen = HashSet::new();
        dim.for_each_symbol(&mut |name| {
            if seen.insert(name) {
                self.symbol(path, name);
            }
        });
        if let Dim::Binary(..) = dim
            && seen.is_empty()
            && dim.eval(&|_| None).is_none()
        {
            self.mistake(path, format!("{dim} has no value in 64 bits"));
        }
    }

    fn symbol(&mut self, path: &str, name: &str) {
        if !is_identifier(name) {
            self.mistake(path, format!("expected a number or an identifier, got {name:?}"));
        } else if let Some(param) = self.params.get(name)
            && !param.ty.as_scalar().is_some_and(ScalarType::is_int)
        {
            self.mistake(path, format!("`{name}` is already the name of a parameter, which is no integer"));
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

    fn device(&mut self, path: &str, kind: DLDeviceType, id: DeviceId) {
        if kind.name().is_none() {
            let problem = format!("{} is not a device type of DLPack 1.x", kind.0);
            self.mistake(format!("{path}.device"), problem);
        }
        if let DeviceId::Fixed(id) = id
            && id < 0
        {
            self.mistake(format!("{path}.device"), format!("expected a device id of at least 0, got {id}"));
        }
    }

    fn default(&mut self, path: &str, ty: &ParamType, default: &DefaultValue) {
        let fits = match (ty, default) {
            (ParamType::Optional(_), DefaultValue::None) => true,
            (ParamType::Optional(inner), _) => return self.default(path, inner, default),
            (ParamType::None | ParamType::Any | ParamType::Scalar(ScalarType::Handle), DefaultValue::None) => true,
            (ParamType::Scalar(ScalarType::Bool), DefaultValue::Bool(_)) => true,
            (ParamType::Scalar(ty), DefaultValue::Int(value)) if ty.is_int() => {
                ty.narrow_range().is_none_or(|(least, greatest)| (least..=greatest).contains(value))
            }
            (ParamType::Scalar(ty), DefaultValue::Float(_)) => ty.is_float(),
            (ParamType::Int(wanted), DefaultValue::Int(value)) => wanted == value,
            (ParamType::Bool(wanted), DefaultValue::Bool(value)) => wanted == value,
            (ParamType::Str | ParamType::Bytes, DefaultValue::Str(text)) => is_quotable(text),
            (ParamType::DType, DefaultValue::DType(dtype)) => dtype.to_string().parse() == Ok(*dtype),
            (ParamType::Device, DefaultValue::Device(device)) => {
                device.device_type.name().is_some() && device.device_id >= 0
            }
            (ParamType::Any, DefaultValue::Str(text)) => is_quotable(text),
            (ParamType::Any, DefaultValue::Bool(_) | DefaultValue::Int(_) | DefaultValue::Float(_)) => true,
            _ => false,
        };
        if !fits {
            self.mistake(path, format!("{default} is no default for {ty}"));
        }
    }

    fn result(&mut self) {
        let path = "result";
        let Some(ty) = &self.signature.ret else { return };
        match ty {
            ParamType::Tensor(tensor) => self.returned_tensor(path, tensor),
            ParamType::Scalar(_)
            | ParamType::Str
            | ParamType::Bytes
            | ParamType::DType
            | ParamType::Device
            | ParamType::Any
            | ParamType::Function
            | ParamType::Module
            | ParamType::Shape(None)
            | ParamType::Object(_) => self.param_type(path, ty, Place::default()),
            ParamType::Array(_) | ParamType::List(_) | ParamType::Map(..) | ParamType::Dict(..)
                if ty.inner().iter().all(|inner| **inner == ParamType::Any) => {}
            _ => {
                let problem = format!(
                    "{ty} can't be returned: expected a scalar, str, bytes, dtype, device, Any, Function, Module, Shape, \
                     Object, a container of Any, or Tensor"
                );
                self.mistake(path, problem);
            }
        }
    }

    /// A tensor that the wrapper allocates, so that all of it has to be known.
    fn returned_tensor(&mut self, path: &str, tensor: &'a TensorType) {
        let plain = TensorType {
            dtype: DLDataType::FLOAT32.into(),
            device: Device::CPU,
            layout: Layout::Contiguous,
            ..tensor.clone()
        };
        self.tensor(path, &plain);
        if tensor.shape.rank().is_none() {
            self.mistake(format!("{path}.shape"), "expected sizes, as the tensor is allocated before the kernel runs");
        }
        match &tensor.dtype {
            DType::Exact(dtype) => self.dtype(path, *dtype),
            DType::Any => self.mistake(format!("{path}.dtype"), "expected a dtype, or the name of a dtype parameter"),
            // the text form would read it as what it says itself
            DType::Param(name) if name == "any" || name.parse::<DLDataType>().is_ok() => {
                let problem = format!("expected the name of a dtype parameter that is no dtype itself, got `{name}`");
                self.mistake(format!("{path}.dtype"), problem);
            }
            DType::Param(name) => self.refers(&format!("{path}.dtype"), name, &ParamType::DType),
        }
        match &tensor.device {
            Device::Kind(kind, id) => self.device(path, *kind, *id),
            Device::Any => {
                self.mistake(format!("{path}.device"), "expected a device, or the name of a device parameter")
            }
            Device::Param(name) if name == "any" => {
                let problem = "expected the name of a device parameter that isn't `any`, which is any device";
                self.mistake(format!("{path}.device"), problem);
            }
            Device::Param(name) => self.refers(&format!("{path}.device"), name, &ParamType::Device),
        }
        if tensor.layout != Layout::Contiguous {
            self.mistake(format!("{path}.strides"), "expected none: what is allocated is contiguous");
        }
        if tensor.align.is_some() || tensor.noalias {
            self.mistake(path, "expected neither `align` nor `noalias`: the allocator decides");
        }
    }

    fn refers(&mut self, path: &str, name: &str, ty: &ParamType) {
        if self.params.get(name).is_none_or(|param| param.ty != *ty) {
            self.mistake(path, format!("expected a {ty}, or the name of a {ty} parameter, got `{name}`"));
        }
    }

    fn constraints(&mut self) {
        for (i, constraint) in self.signature.constraints.iter().enumerate() {
            let path = format!("where[{i}]");
            self.dim(&path, &constraint.left);
            self.dim(&path, &constraint.right);
            let mut symbols = 0;
            constraint.left.for_each_symbol(&mut |_| symbols += 1);
            constraint.right.for_each_symbol(&mut |_| symbols += 1);
            if symbols == 0 {
                self.mistake(path, format!("expected a symbol in `{constraint}`, which no call can change"));
            }
        }
    }

    /// Every symbol needs something that says its value: a dimension that is it alone, or one that can be solved for it once the
    /// others are known.
    fn determined(&mut self) {
        let signature = self.signature;
        let mut dims = Vec::new();
        for param in &signature.params {
            param.ty.for_each_dim(&mut |dim| dims.push(dim));
        }
        let mut known: HashSet<&str> = self.params.keys().copied().collect();
        // of each dimension, how many unknown symbols occur in it; of each of those, where
        let mut unknown = vec![0; dims.len()];
        let mut occurrences: HashMap<&str, Vec<usize>> = HashMap::new();
        for (d, dim) in dims.iter().enumerate() {
            dim.for_each_symbol(&mut |name| {
                if !known.contains(name) {
                    unknown[d] += 1;
                    occurrences.entry(name).or_default().push(d);
                }
            });
        }
        let mut solvable: Vec<usize> = (0..dims.len()).filter(|d| unknown[*d] == 1).collect();
        while let Some(d) = solvable.pop() {
            let mut last = None;
            dims[d].for_each_symbol(&mut |name| last = Some(name).filter(|name| !known.contains(name)).or(last));
            if let Some(name) = last
                && dims[d].solved_for(name, Dim::Const(0)).is_some()
            {
                known.insert(name);
                for d in occurrences.remove(name).unwrap_or_default() {
                    unknown[d] -= 1;
                    if unknown[d] == 1 {
                        solvable.push(d);
                    }
                }
            }
        }
        for name in signature.names_in_dims() {
            if !known.contains(name) && is_identifier(name) {
                let problem =
                    "nothing says its value: expected a dimension that is it alone, or that can be solved for it";
                self.mistake(name, problem);
            }
        }
    }
}

fn only_in_result(name: &str) -> String {
    format!("expected `any` or a type, got `{name}`: only a result may refer to a parameter")
}

/// Where in a parameter's type.
#[derive(Clone, Copy, Default)]
struct Place {
    depth: usize,
    containers: usize,
}

/// Whether a tensor of the type may have a stream.
fn has_device_tensor(ty: &ParamType) -> bool {
    let mut found = false;
    let mut look = |tensor: &TensorType| found |= tensor.device.kind() != Some(DLDeviceType::CPU);
    match ty {
        ParamType::Tensor(tensor) => look(tensor),
        // what is in a container can't be relied on
        ParamType::Optional(_) | ParamType::Tuple(_) => return ty.inner().into_iter().any(has_device_tensor),
        _ => {}
    }
    found
}
