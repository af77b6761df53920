//! Checks a signature: every error is found and all are reported together.

use std::collections::{HashMap, HashSet};

use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

use super::dim::{Dim, any_size};
use super::error::{PartError, Problem};
use super::param::{DefaultValue, Param, ParamType};
use super::path::{Part, Step, Way};
use super::scalar::ScalarType;
use super::signature::Signature;
use super::tensor::{DType, Device, DeviceId, Layout, TensorShape, TensorType};

mod result;
mod vars;

/// The maximum number of parameters of a signature.
const MAX_PARAMS: usize = 4096;
/// The maximum number of dimensions of a tensor; the same as NumPy's.
pub const MAX_RANK: usize = 64;
/// The maximum nesting depth of types.
pub const MAX_TYPE_DEPTH: usize = 16;
/// The maximum nesting depth of Arrays, Lists, Maps and Dicts.
pub const MAX_CONTAINER_DEPTH: usize = 4;
/// The maximum nesting depth of operations in a dimension.
pub const MAX_DIM_DEPTH: usize = 16;

/// A letter or underscore, then letters, digits, underscores.
fn is_identifier(name: &str) -> bool {
    is_var_name(name) && !name.contains(['.', '$'])
}

/// An identifier that may also contain `.` and `$`, which object files and loaders accept.
fn is_var_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'))
}

/// Whether a string can be a quoted name, which has no escapes.
fn is_quotable(text: &str) -> bool {
    !text.contains(['"', '\\', '\0'])
}

pub(super) struct Checker<'a> {
    signature: &'a Signature,
    /// Parameters by name; the first one if several share a name.
    params: HashMap<&'a str, &'a Param>,
    /// The parameters are values, not arguments: their names are descriptions for messages.
    of_values: bool,
    errors: Vec<PartError>,
}

impl<'a> Checker<'a> {
    fn new(signature: &'a Signature, of_values: bool) -> Self {
        let mut params = HashMap::new();
        for param in &signature.params {
            params.entry(param.name.as_str()).or_insert(param);
        }
        Checker { signature, params, of_values, errors: Vec::new() }
    }

    /// All errors in a signature.
    pub(super) fn check(signature: &'a Signature) -> Vec<PartError> {
        let mut checker = Checker::new(signature, false);
        checker.names();
        checker.all_params();
        checker.result();
        checker.constraints();
        checker.determined();
        checker.locations();
        checker.errors
    }

    /// All errors in the types of values that aren't arguments. In `signature` they follow `vars` parameters that
    /// are variables.
    pub(super) fn check_values(signature: &'a Signature, vars: usize) -> Vec<PartError> {
        let mut checker = Checker::new(signature, true);
        for (i, param) in signature.params.iter().enumerate().skip(vars) {
            let at = Way::to(Part::Param(i));
            checker.param_type(at, &param.ty, Nesting { depth: 0, containers: 0 });
            if param.ty.is_of_parameters() || param.ty.has_record() {
                checker.error(at, format!("a value can't have type {}; only a parameter can", param.ty));
            }
            param.ty.for_each_tensor(&mut |tensor| {
                if tensor.noalias {
                    let problem = "expected no `noalias`: other pointers may lead to the value";
                    checker.error(at, problem);
                }
            });
        }
        checker.determined();
        checker.errors
    }

    /// All errors in the locations of a signature.
    pub(super) fn check_locations(signature: &'a Signature) -> Vec<PartError> {
        let mut checker = Checker::new(signature, false);
        checker.locations();
        checker.errors
    }

    fn error(&mut self, at: Way<'_>, problem: impl Into<Problem>) {
        let name = match at.part {
            Part::Param(number) => self.signature.params.get(number).filter(|param| self.is_told_by_name(param)),
            _ => None,
        };
        let ty = name.map(|param| &param.ty);
        let path = at.path(name.map(|param| param.name.as_str()), |steps| field_at(ty?, steps));
        self.errors.push(PartError::new(path, problem.into()));
    }

    /// Whether the parameter's name identifies it.
    fn is_told_by_name(&self, param: &Param) -> bool {
        let is_first = || self.params.get(param.name.as_str()).is_some_and(|first| std::ptr::eq(*first, param));
        self.of_values || (is_identifier(&param.name) && is_first())
    }

    fn names(&mut self) {
        let signature = self.signature;
        let whole = Way::to(Part::Signature);
        if !is_var_name(&signature.name) {
            let expected = "a letter or `_`, then letters, digits, `_`, `.` or `$`";
            self.error(whole.then(Step::Name), Problem::mismatch(expected, format_args!("{:?}", signature.name)));
        }
        let count = signature.params.len();
        if count > MAX_PARAMS {
            let problem = Problem::mismatch(format_args!("at most {MAX_PARAMS} parameters"), count);
            self.error(whole.then(Step::Params), problem);
        }
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (i, param) in signature.params.iter().enumerate() {
            let (at, first) = (Way::to(Part::Param(i)), *first.entry(&param.name).or_insert(i));
            if !is_identifier(&param.name) {
                self.error(at.then(Step::Name), Problem::mismatch("an identifier", format_args!("{:?}", param.name)));
            } else if first != i {
                let problem = format!("`{}` is already the name of params[{first}]", param.name);
                self.error(at.then(Step::Name), problem);
            }
        }
    }

    /// Rejects locations that no backtrace can show.
    fn locations(&mut self) {
        for (part, location) in self.signature.own_locations() {
            if let Some(problem) = location.problem() {
                self.error(Way::to(part).then(Step::SourceLocation), problem);
            }
        }
    }

    fn all_params(&mut self) {
        let signature = self.signature;
        let mut defaulted: Option<&Param> = None;
        for (i, param) in signature.params.iter().enumerate() {
            let at = Way::to(Part::Param(i));
            self.param_type(at, &param.ty, Nesting::default());
            match (&param.default, defaulted) {
                (Some(default), _) => {
                    self.default(at, &param.ty, default);
                    defaulted = Some(param);
                }
                (None, Some(earlier)) if param.is_passed() => {
                    let problem = format!("expected a default, as `{}` before it has one", earlier.name);
                    self.error(at.then(Step::Default), problem);
                }
                (None, _) => {}
            }
        }
        let stream = signature.params.iter().position(|param| param.ty.is_stream());
        if let Some(stream) = stream
            && !signature.params.iter().any(|param| has_device_tensor(&param.ty))
        {
            let problem = "expected a tensor on a device among the parameters, whose stream it is";
            self.error(Way::to(Part::Param(stream)), problem);
        }
    }

    /// Checks the type of a parameter, or a type inside it.
    fn param_type(&mut self, at: Way<'_>, ty: &'a ParamType, nesting: Nesting) {
        if nesting.depth > MAX_TYPE_DEPTH {
            return self.error(at, format!("expected at most {MAX_TYPE_DEPTH} types inside each other"));
        }
        let inside = Nesting { depth: nesting.depth + 1, ..nesting };
        match ty {
            ParamType::Tensor(tensor) => self.tensor(at, tensor),
            ParamType::Shape(Some(dims)) => {
                self.rank(at, dims.len());
                self.sizes(at, dims, at, Step::Item);
            }
            ParamType::Object(key) if key.is_empty() || !is_quotable(key) => {
                self.error(at, Problem::mismatch("a type key without `\"` and `\\`", format_args!("{key:?}")));
            }
            _ if ty.is_of_parameters() && nesting.depth > 0 => {
                let expected = if ty.is_passed() { "a type of values" } else { "a type that is passed" };
                let problem = Problem::mismatch(expected, ty);
                self.error(at, problem.because("it stands only for a whole parameter"));
            }
            ParamType::EnvState(name) if name.is_empty() || !is_quotable(name) => {
                let problem =
                    Problem::mismatch("the name of a global function, without `\"` and `\\`", format_args!("{name:?}"));
                self.error(at, problem);
            }
            ParamType::Optional(inner) => {
                if matches!(
                    **inner,
                    ParamType::Optional(_) | ParamType::Any | ParamType::None | ParamType::Scalar(ScalarType::Handle)
                ) {
                    self.error(at, format!("{inner} already accepts None; remove the Optional"));
                }
                self.param_type(at, inner, inside);
            }
            ParamType::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.param_type(at.then(Step::Item(i)), item, inside);
                }
            }
            ParamType::Record { name, fields } => self.record(at, (name, fields), inside),
            ParamType::Array(_) | ParamType::List(_) | ParamType::Map(..) | ParamType::Dict(..) => {
                let inside = Nesting { containers: nesting.containers + 1, ..inside };
                if inside.containers > MAX_CONTAINER_DEPTH {
                    let problem = format!("expected at most {MAX_CONTAINER_DEPTH} containers inside each other");
                    return self.error(at, problem);
                }
                for (step, inner) in parts(ty) {
                    self.param_type(at.then(step), inner, inside);
                }
            }
            _ => {}
        }
    }

    fn record(&mut self, at: Way<'_>, (name, fields): (&str, &'a [(String, ParamType)]), inside: Nesting) {
        if inside.containers > 0 {
            let problem = "expected no Record in a container, which isn't converted; pass it as a parameter";
            return self.error(at, problem);
        }
        if name.is_empty() || !is_quotable(name) {
            let expected = "a name of the Record without `\"` and `\\`";
            self.error(at.then(Step::Name), Problem::mismatch(expected, format_args!("{name:?}")));
        }
        if fields.is_empty() {
            self.error(at, "expected at least one field of the Record");
        }
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (i, (name, ty)) in fields.iter().enumerate() {
            let field = at.then(Step::Field(i));
            let first = *first.entry(name).or_insert(i);
            if !is_identifier(name) {
                self.error(field.then(Step::Name), Problem::mismatch("an identifier", format_args!("{name:?}")));
            } else if first != i {
                let problem = format!("`{name}` is already the name of fields[{first}]");
                self.error(field.then(Step::Name), problem);
            }
            self.param_type(field, ty, inside);
        }
    }

    fn rank(&mut self, at: Way<'_>, rank: usize) {
        if rank > MAX_RANK {
            self.error(at, Problem::mismatch(format_args!("at most {MAX_RANK} dimensions"), rank));
        }
    }

    fn tensor(&mut self, at: Way<'_>, tensor: &TensorType) {
        if let TensorShape::Ranked(dims) = &tensor.shape {
            let shape = at.then(Step::Shape);
            self.rank(shape, dims.len());
            self.sizes(shape, dims, at, Step::Size);
        }
        match &tensor.dtype {
            DType::Exact(dtype) => self.dtype(at, *dtype),
            DType::Any => {}
            DType::Param(name) => self.error(at.then(Step::DType), only_in_result(name)),
        }
        match &tensor.device {
            Device::Kind(kind, id) => self.device(at, *kind, *id),
            Device::Any => {}
            Device::Param(name) => self.error(at.then(Step::Device), only_in_result(name)),
        }
        if let Layout::Strides(strides) = &tensor.layout {
            match tensor.shape.rank() {
                Some(rank) if rank != strides.len() => {
                    let problem = Problem::mismatch(format_args!("one for each of {rank} dimensions"), strides.len());
                    self.error(at.then(Step::Strides), problem);
                }
                None => self.error(at.then(Step::Strides), "expected `any`, or none, for a tensor of any rank"),
                Some(_) => {}
            }
            for (d, stride) in strides.iter().enumerate() {
                self.dim(at.then(Step::Stride(d)), stride);
            }
        }
        if let Some(align) = tensor.align
            && !align.is_power_of_two()
        {
            self.error(at.then(Step::Align), Problem::mismatch("a power of two", align));
        }
    }

    /// Checks sizes. The product of the constant ones must fit, unless one of them is 0.
    fn sizes(&mut self, all: Way<'_>, dims: &[Dim], outer: Way<'_>, each: fn(usize) -> Step) {
        let mut constant = Vec::new();
        for (d, dim) in dims.iter().enumerate() {
            let at = outer.then(each(d));
            if let Dim::Const(size) = dim {
                constant.push(*size);
                if *size < 0 {
                    self.error(at, Problem::mismatch(any_size!(), size));
                }
            } else {
                self.dim(at, dim);
            }
        }
        let product = constant.iter().try_fold(1i64, |product, size| product.checked_mul(*size));
        if product.is_none() && constant.iter().all(|size| *size > 0) {
            self.error(all, "the number of elements overflows 64 bits");
        }
    }

    fn dim(&mut self, at: Way<'_>, dim: &Dim) {
        if dim.depth() > MAX_DIM_DEPTH {
            return self.error(at, format!("expected at most {MAX_DIM_DEPTH} operations inside each other"));
        }
        let mut seen = HashSet::new();
        dim.for_each_var(&mut |name| {
            if seen.insert(name) {
                self.var(at, name);
            }
        });
        if let Dim::Binary(..) = dim
            && seen.is_empty()
            && dim.eval(&|_| None).is_none()
        {
            self.error(at, format!("{dim} has no value in 64 bits"));
        }
    }

    fn var(&mut self, at: Way<'_>, name: &str) {
        let root = name.split(['.', '[']).next().unwrap_or_default();
        if root != name && self.params.contains_key(root) {
            if !self.is_integer_inside(name) {
                let problem = format!("`{name}` is no integer inside a parameter, so it can't be used in a dimension");
                self.error(at, problem);
            }
        } else if !is_identifier(name) && !self.params.contains_key(name) {
            self.error(at, Problem::mismatch("a number or an identifier", format_args!("{name:?}")));
        } else if let Some(param) = self.params.get(name)
            && !param.ty.as_scalar().is_some_and(ScalarType::is_int)
        {
            self.error(at, format!("`{name}` is a parameter, but not an integer, so it can't be used in a dimension"));
        }
    }

    /// Whether a path is an integer inside a parameter.
    fn is_integer_inside(&self, path: &str) -> bool {
        self.signature.type_at(path).and_then(ParamType::as_scalar).is_some_and(ScalarType::is_int)
    }

    fn dtype(&mut self, at: Way<'_>, dtype: DLDataType) {
        // the text form has to parse back: an unknown code, 0 bits or 0 lanes have no text form
        let round_trips = dtype.to_string().parse() == Ok(dtype);
        if !round_trips || dtype.bits == 0 || dtype.lanes == 0 {
            let problem = format!(
                "code {}, {} bits, {} lanes is not an element type of DLPack 1.x",
                dtype.code, dtype.bits, dtype.lanes
            );
            self.error(at.then(Step::DType), problem);
        }
    }

    fn device(&mut self, at: Way<'_>, kind: DLDeviceType, id: DeviceId) {
        if kind.name().is_none() {
            let problem = format!("{} is not a device type of DLPack 1.x", kind.0);
            self.error(at.then(Step::Device), problem);
        }
        if let DeviceId::Fixed(id) = id
            && id < 0
        {
            self.error(at.then(Step::Device), Problem::mismatch("a device id of at least 0", id));
        }
    }

    fn default(&mut self, at: Way<'_>, ty: &ParamType, default: &DefaultValue) {
        let fits = match (ty, default) {
            (ParamType::Optional(_), DefaultValue::None) => true,
            (ParamType::Optional(inner), _) => return self.default(at, inner, default),
            (
                ParamType::None | ParamType::Any | ParamType::Stream | ParamType::Scalar(ScalarType::Handle),
                DefaultValue::None,
            ) => true,
            (ParamType::Scalar(ScalarType::Bool), DefaultValue::Bool(_)) => true,
            (ParamType::Scalar(ty), DefaultValue::Int(value)) if ty.is_int() => {
                ty.narrow_range().is_none_or(|(min, greatest)| (min..=greatest).contains(value))
            }
            (ParamType::Scalar(ty), DefaultValue::Float(_)) => ty.is_float(),
            (ParamType::Int(wanted), DefaultValue::Int(value)) => wanted == value,
            (ParamType::Bool(wanted), DefaultValue::Bool(value)) => wanted == value,
            // wrappers pass it as a NUL-terminated string
            (ParamType::Str | ParamType::Bytes | ParamType::Any, DefaultValue::Str(text)) => !text.contains('\0'),
            // Python reads the name with `tvm_ffi.dtype`, which has no complex types
            (ParamType::DType, DefaultValue::DType(dtype)) => {
                DLDataType::from_upstream_name(&dtype.to_string()) == Ok(*dtype)
            }
            (ParamType::Device, DefaultValue::Device(device)) => {
                device.device_type.name().is_some() && device.device_id >= 0
            }
            (ParamType::Any, DefaultValue::Bool(_) | DefaultValue::Int(_) | DefaultValue::Float(_)) => true,
            _ => false,
        };
        if !fits {
            self.error(at.then(Step::Default), format!("{default} can't be a default of {ty}"));
        }
    }
}

fn only_in_result(name: &str) -> Problem {
    Problem::mismatch("`any` or a type", format_args!("`{name}`")).because("only a result may refer to a parameter")
}

/// The nesting depth inside a parameter's type.
#[derive(Clone, Copy, Default)]
struct Nesting {
    depth: usize,
    containers: usize,
}

/// The types directly inside a container, each with the step to it.
fn parts(ty: &ParamType) -> Vec<(Step, &ParamType)> {
    match ty {
        ParamType::Array(elements) | ParamType::List(elements) => vec![(Step::Elements, elements)],
        ParamType::Map(keys, values) | ParamType::Dict(keys, values) => {
            vec![(Step::Keys, keys), (Step::Values, values)]
        }
        _ => Vec::new(),
    }
}

/// The name of the field of a record at the end of steps, if it is an identifier.
fn field_at(ty: &ParamType, steps: &[Step]) -> Option<String> {
    let (step, rest) = steps.split_first()?;
    match (ty, step) {
        (ParamType::Optional(inner), _) => field_at(inner, steps),
        (ParamType::Tuple(items), Step::Item(number)) => field_at(items.get(*number)?, rest),
        (ParamType::Record { fields, .. }, Step::Field(number)) => {
            let (name, ty) = fields.get(*number)?;
            if rest.is_empty() { Some(name.clone()).filter(|name| is_identifier(name)) } else { field_at(ty, rest) }
        }
        _ => None,
    }
}

/// Whether a tensor of the type may have a stream.
fn has_device_tensor(ty: &ParamType) -> bool {
    let mut found = false;
    let mut look = |tensor: &TensorType| found |= tensor.device.kind() != Some(DLDeviceType::CPU);
    match ty {
        ParamType::Tensor(tensor) => look(tensor),
        // a container may be empty
        ParamType::Optional(_) | ParamType::Tuple(_) | ParamType::Record { .. } => {
            return ty.inner().into_iter().any(has_device_tensor);
        }
        _ => {}
    }
    found
}
