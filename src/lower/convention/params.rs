//! The C parameters of a kernel. One walk over a signature yields the prototypes in C and in IR and the lists for
//! callers.

use std::collections::HashSet;

use super::c_names;
use super::c_type::CType;
use super::param::{ARGS, HANDLE, KernelParam, NUM_ARGS, ParamPart, ParamSource, RESULT};
use super::{Convention, KernelReturn, TensorForm, has_null, writes_result};
use crate::ir::FuncSig;
use crate::spec::{Dim, ParamType, ScalarType, Signature, TensorType};

/// The value that is passed: a parameter of the signature, an item of one, or the result. Strings are created only for
/// output.
enum PassedValue<'a> {
    Param(&'a str),
    Item(&'a PassedValue<'a>, usize),
    Field(&'a PassedValue<'a>, &'a str),
    Result,
}

/// The purpose of a C parameter, without strings.
enum Source<'a> {
    Part(&'a PassedValue<'a>, ParamPart),
    DimVar(&'a str),
    Handle,
    Args,
    NumArgs,
}

impl PassedValue<'_> {
    /// The path in messages: `x`, `t[0]`, `cfg.alpha` or `result`.
    fn path(&self) -> String {
        match self {
            PassedValue::Param(name) => (*name).to_owned(),
            PassedValue::Result => RESULT.to_owned(),
            PassedValue::Item(of, i) => format!("{}[{i}]", of.path()),
            PassedValue::Field(of, name) => format!("{}.{name}", of.path()),
        }
    }

    /// The same as a name in C: `t_0`, `cfg_alpha`.
    fn c_name(&self) -> String {
        match self {
            PassedValue::Param(_) | PassedValue::Result => self.path(),
            PassedValue::Item(of, i) => format!("{}_{i}", of.c_name()),
            PassedValue::Field(of, name) => format!("{}_{name}", of.c_name()),
        }
    }

    fn is_result(&self) -> bool {
        match self {
            PassedValue::Param(_) => false,
            PassedValue::Result => true,
            PassedValue::Item(of, _) | PassedValue::Field(of, _) => of.is_result(),
        }
    }
}

impl Source<'_> {
    /// The name of the C parameter, before conflicts with C's reserved names are resolved.
    fn name(&self) -> String {
        match self {
            Source::Part(place, part) => {
                let whole = place.c_name();
                match part {
                    ParamPart::Value
                    | ParamPart::Data
                    | ParamPart::Descriptor
                    | ParamPart::Stream
                    | ParamPart::State => whole,
                    ParamPart::Given => whole + "_given",
                    ParamPart::Size => whole + "_size",
                    ParamPart::ByteOffset => whole + "_byte_offset",
                    ParamPart::Allocated => whole + "_allocated",
                    ParamPart::Aligned => whole + "_aligned",
                    ParamPart::Offset => whole + "_offset",
                    ParamPart::Extent(d) => format!("{whole}_size{d}"),
                    ParamPart::Stride(d) => format!("{whole}_stride{d}"),
                    ParamPart::Argument => whole + "_argument",
                }
            }
            Source::DimVar(name) => (*name).to_owned(),
            Source::Handle => HANDLE.to_owned(),
            Source::Args => ARGS.to_owned(),
            Source::NumArgs => NUM_ARGS.to_owned(),
        }
    }

    /// The source in the form of the public API.
    fn stated(&self, signature: &Signature) -> ParamSource {
        match self {
            Source::Part(place, part) => {
                let path = place.path();
                if place.is_result() { ParamSource::Result(path, *part) } else { ParamSource::Argument(path, *part) }
            }
            Source::DimVar(name) => {
                ParamSource::DimVar { name: (*name).to_owned(), from: first_place(signature, name) }
            }
            Source::Handle => ParamSource::Handle,
            Source::Args => ParamSource::Args,
            Source::NumArgs => ParamSource::NumArgs,
        }
    }
}

/// The first dimension that is just the variable, or else the first expression with it.
fn first_place(signature: &Signature, var: &str) -> Option<String> {
    let (mut alone, mut inside) = (None, None);
    for param in signature.params() {
        dims_of(&param.name, &param.ty, &mut |dim, place| {
            let mut occurs = false;
            dim.for_each_var(&mut |name| occurs |= name == var);
            let first = if matches!(dim, Dim::Var(_)) { &mut alone } else { &mut inside };
            if occurs && first.is_none() {
                *first = Some(place());
            }
        });
    }
    alone.or(inside)
}

/// Calls `each` with every dimension of a parameter's own tensors and shapes, and its path.
fn dims_of(path: &str, ty: &ParamType, each: &mut dyn FnMut(&Dim, &dyn Fn() -> String)) {
    match ty {
        ParamType::Tensor(tensor) => {
            for (i, dim) in tensor.shape.dims().into_iter().flatten().enumerate() {
                each(dim, &|| format!("{path}.shape[{i}]"));
            }
            for (i, stride) in tensor.strides().into_iter().flatten().enumerate() {
                each(stride, &|| format!("{path}.strides[{i}]"));
            }
        }
        ParamType::Shape(dims) => {
            for (i, dim) in dims.iter().flatten().enumerate() {
                each(dim, &|| format!("{path}[{i}]"));
            }
        }
        ParamType::Optional(inner) => dims_of(path, inner, each),
        _ => {
            for (step, member) in ty.members() {
                dims_of(&format!("{path}{step}"), member, each);
            }
        }
    }
}

/// The C value that a kernel returns for its result; `None` if it fills a tensor or writes a `TVMFFIAny`.
pub(in crate::lower) fn returned(ret: &ParamType) -> Option<CType> {
    match ret {
        ParamType::Scalar(ty) => Some(CType::Scalar(*ty)),
        ParamType::DType => Some(CType::DType),
        ParamType::Device => Some(CType::Device),
        _ => None,
    }
}

/// The value that a kernel of a signature writes in addition to its status; `None` if it has no result, or writes a
/// `TVMFFIAny`.
pub(in crate::lower) fn beside_status(
    signature: &Signature,
    convention: Convention,
    returns: KernelReturn,
) -> Option<CType> {
    let beside = returns == KernelReturn::Status && convention != Convention::Packed;
    signature.ret().filter(|_| beside).and_then(returned)
}

/// The C result of a kernel; `None` for `void`.
pub(in crate::lower) fn c_result(signature: &Signature, returns: KernelReturn) -> Option<CType> {
    match returns {
        KernelReturn::Nothing => None,
        KernelReturn::Status => Some(CType::Scalar(ScalarType::Int32)),
        KernelReturn::Value => signature.ret().and_then(returned),
    }
}

/// The prototype of a kernel.
pub(in crate::lower) fn func_sig(signature: &Signature, convention: Convention, returns: KernelReturn) -> FuncSig {
    let mut params = Vec::new();
    for_each_param(signature, convention, returns, &mut |c_type, _| params.push(c_type.abi()));
    FuncSig { params, ret: c_result(signature, returns).map(CType::abi) }
}

/// The C parameters of a kernel, in order. Their names are unique and have no other meaning in C.
pub(in crate::lower) fn params(
    signature: &Signature,
    convention: Convention,
    returns: KernelReturn,
) -> Vec<KernelParam> {
    let mut taken = HashSet::new();
    let mut params = Vec::new();
    for_each_param(signature, convention, returns, &mut |c_type, source| {
        let name = own_name(source.name(), &mut taken);
        params.push(KernelParam { name, c_type, source: source.stated(signature), position: params.len() });
    });
    params
}

/// The C type of a caller's own argument.
pub(in crate::lower) const ARGUMENT: CType = CType::Pointer("const TVMFFIAny");

/// Adds the parameters for the caller's own arguments, by the names of the signature's parameters.
pub(in crate::lower) fn add_arguments(params: &mut Vec<KernelParam>, names: &[String]) {
    let mut taken: HashSet<String> = params.iter().map(|param| param.name.clone()).collect();
    for path in names {
        let part = ParamPart::Argument;
        let name = own_name(Source::Part(&PassedValue::Param(path), part).name(), &mut taken);
        let source = ParamSource::Argument(path.clone(), part);
        params.push(KernelParam { name, c_type: ARGUMENT, source, position: params.len() });
    }
}

/// A unique name that has no other meaning in C.
pub(in crate::lower) fn own_name(mut name: String, taken: &mut HashSet<String>) -> String {
    if !c_names::is_free_for_parameter(&name) {
        name.insert_str(0, "p_");
    }
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// Calls `each` with the C parameters of a kernel, in order.
fn for_each_param(
    signature: &Signature,
    convention: Convention,
    returns: KernelReturn,
    each: &mut dyn FnMut(CType, Source<'_>),
) {
    let result = |c_type| (c_type, Source::Part(&PassedValue::Result, ParamPart::Value));
    let mut walk = Walk { convention, each };
    if convention == Convention::Packed {
        (walk.each)(CType::Pointer("void"), Source::Handle);
        (walk.each)(ARGUMENT, Source::Args);
        (walk.each)(CType::Scalar(ScalarType::Int32), Source::NumArgs);
        let (c_type, source) = result(CType::Pointer("TVMFFIAny"));
        return (walk.each)(c_type, source);
    }
    for param in signature.params() {
        walk.of_type(&PassedValue::Param(&param.name), &param.ty);
    }
    match signature.ret() {
        Some(ParamType::Tensor(tensor)) => walk.tensor(&PassedValue::Result, tensor),
        _ => {
            for (i, tensor) in signature.returned_tensors().into_iter().enumerate() {
                walk.tensor(&PassedValue::Item(&PassedValue::Result, i), tensor);
            }
        }
    }
    if convention == Convention::Flat {
        for name in signature.dim_vars() {
            (walk.each)(INT64, Source::DimVar(name));
        }
    }
    let any = signature.ret().is_some_and(writes_result).then_some(CType::Pointer("TVMFFIAny"));
    let value = beside_status(signature, convention, returns).and_then(CType::pointer);
    if let Some((c_type, source)) = any.or(value).map(result) {
        (walk.each)(c_type, source);
    }
}

const INT64: CType = CType::Scalar(ScalarType::Int64);

struct Walk<'a> {
    convention: Convention,
    each: &'a mut dyn FnMut(CType, Source<'_>),
}

impl Walk<'_> {
    fn part(&mut self, place: &PassedValue<'_>, part: ParamPart, c_type: CType) {
        (self.each)(c_type, Source::Part(place, part));
    }

    fn span(&mut self, place: &PassedValue<'_>, of: &'static str) {
        self.part(place, ParamPart::Data, CType::Pointer(of));
        self.part(place, ParamPart::Size, CType::Size);
    }

    fn of_type(&mut self, place: &PassedValue<'_>, ty: &ParamType) {
        match ty {
            ParamType::Scalar(ty) => self.part(place, ParamPart::Value, CType::Scalar(*ty)),
            ParamType::Tensor(tensor) => self.tensor(place, tensor),
            ParamType::Str | ParamType::Bytes => self.span(place, "const char"),
            ParamType::DType => self.part(place, ParamPart::Value, CType::DType),
            ParamType::Device => self.part(place, ParamPart::Value, CType::Device),
            ParamType::Shape(_) => self.span(place, "const int64_t"),
            ParamType::Any => self.part(place, ParamPart::Value, ARGUMENT),
            ParamType::None | ParamType::Int(_) | ParamType::Bool(_) => {}
            ParamType::Function
            | ParamType::Module
            | ParamType::Object(_)
            | ParamType::List(_)
            | ParamType::Map(..)
            | ParamType::Dict(..) => self.part(place, ParamPart::Value, CType::Object),
            ParamType::Array(_) => self.span(place, "const TVMFFIAny"),
            ParamType::EnvStream | ParamType::Stream => self.part(place, ParamPart::Stream, CType::Pointer("void")),
            ParamType::EnvState(_) => self.part(place, ParamPart::State, CType::Pointer("void")),
            ParamType::Optional(inner) => {
                if !has_null(inner) {
                    self.part(place, ParamPart::Given, CType::Scalar(ScalarType::Bool));
                }
                self.of_type(place, inner);
            }
            ParamType::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.of_type(&PassedValue::Item(place, i), item);
                }
            }
            ParamType::Record { fields, .. } => {
                for (name, field) in fields {
                    self.of_type(&PassedValue::Field(place, name), field);
                }
            }
        }
    }

    fn tensor(&mut self, place: &PassedValue<'_>, tensor: &TensorType) {
        let elements = tensor.exact_dtype().map_or(CType::Pointer("void"), CType::Elements);
        match self.convention.form(tensor) {
            TensorForm::Descriptor => self.part(place, ParamPart::Descriptor, CType::Pointer("DLTensor")),
            TensorForm::Data if tensor.is_opaque() => {
                self.part(place, ParamPart::Data, CType::Pointer("void"));
                self.part(place, ParamPart::ByteOffset, CType::Scalar(ScalarType::UInt64));
            }
            TensorForm::Data => self.part(place, ParamPart::Data, elements),
            TensorForm::MemRef => {
                self.part(place, ParamPart::Allocated, elements);
                self.part(place, ParamPart::Aligned, elements);
                self.part(place, ParamPart::Offset, INT64);
                for part in [ParamPart::Extent as fn(u32) -> ParamPart, ParamPart::Stride] {
                    for d in 0..tensor.shape.rank().unwrap_or(0) as u32 {
                        self.part(place, part(d), INT64);
                    }
                }
            }
        }
    }
}
