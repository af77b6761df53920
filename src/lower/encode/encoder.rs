//! Encodes the descriptors of types, dimensions and expressions.

use super::expr::{self, DimVars};
use super::texts::expected;
use crate::lower::constants::ConstantPool;
use crate::lower::devices::{Devices, SharedId};
use crate::lower::protocol::{
    ANY_ID, Capabilities, Capability, ConstantDescriptor, ConstantDim, DimKind, Encode, ExprDescriptor, ExprDim,
    IntRange, MapDescriptor, ObjectDescriptor, Opcode, OptionalDescriptor, ParamDescriptor, RecordDescriptor,
    ScalarDescriptor, SequenceDescriptor, ShapeDescriptor, SizedText, SplitI64, TARGET, TensorDescriptor, TensorFlags,
    TermDescriptor, TupleDescriptor, TypeDescriptor, TypeKind, VarDim,
};
use crate::spec::{DType, DTypePolicy, Device, Dim, Layout, MAX_RANK, ParamType, ScalarKind, ScalarType, TensorType};
use tvm_ffi_runtime::abi::{
    DLDataType, DLTensor, TVMFFIAny, TVMFFIByteArray, TVMFFIObject, TVMFFISeqCell, TVMFFIShapeCell, TypeIndex,
};

/// Bytes of an object's header.
const HEADER: usize = size_of::<TVMFFIObject>();

/// How the kernel's convention affects the binder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) struct Options {
    /// Every tensor is passed as a `DLTensor`.
    pub fold_all: bool,
    /// The caller's own arguments are passed on.
    pub forward_args: bool,
}

/// The uses of the scratch memory, as indices of [`Encoder::memory`].
const TENSORS: usize = 0;
const SHAPES: usize = 1;
pub(super) const STRINGS: usize = 2;
const CONTAINERS: usize = 3;

/// The encoder of one signature.
///
/// Its errors name a failed look-up that should never fail; they are bugs.
pub(super) struct Encoder<'a, 'p> {
    pub pool: &'p mut ConstantPool,
    pub devices: &'a Devices,
    pub options: Options,
    pub policy: DTypePolicy,
    pub vars: DimVars<'a>,
    /// The bytes that `bind` needs for the values that it creates from arguments.
    pub memory: [usize; 4],
    /// The max number of deferred dimensions.
    pub deferred: usize,
    /// The number of containers around the current type, and the max of that number so far.
    containers: usize,
    pub deepest: usize,
}

/// The header fields of all type descriptors.
#[derive(Clone, Copy)]
struct Head {
    kind: u8,
    expected: u32,
}

impl<'a, 'p> Encoder<'a, 'p> {
    pub(super) fn new(
        pool: &'p mut ConstantPool,
        devices: &'a Devices,
        options: Options,
        policy: DTypePolicy,
        vars: DimVars<'a>,
    ) -> Self {
        Encoder { pool, devices, options, policy, vars, memory: [0; 4], deferred: 0, containers: 0, deepest: 0 }
    }

    /// A parameter, an item or the elements of a container. `var` is the parameter's name if it may be a variable.
    pub(super) fn param(
        &mut self,
        name: &str,
        ty: &'a ParamType,
        text: &str,
        var: Option<&str>,
    ) -> Result<ParamDescriptor, String> {
        let head = Head { kind: kind(ty) as u8, expected: self.pool.text(text) };
        let bytes = self.ty(head, name, ty, text, var)?;
        Ok(ParamDescriptor { name: self.pool.text(name), ty: self.pool.descriptor(&bytes) })
    }

    /// The descriptor of a type.
    fn ty(
        &mut self,
        head: Head,
        name: &str,
        ty: &'a ParamType,
        text: &str,
        var: Option<&str>,
    ) -> Result<Vec<u8>, String> {
        let Head { kind, expected: expected_text } = head;
        let plain = TypeDescriptor { kind, unused: [0; 3], expected: expected_text };
        match ty {
            ParamType::Scalar(ty) if ty.is_int() || ty.is_float() => self.scalar(head, *ty, var),
            ParamType::Tensor(tensor) => self.tensor(head, tensor),
            ParamType::Str | ParamType::Bytes => {
                self.memory[STRINGS] += HEADER + size_of::<TVMFFIByteArray>();
                Ok(self.pool.encoded(&plain))
            }
            ParamType::Int(value) => {
                let TypeDescriptor { kind, unused, expected } = plain;
                Ok(self.pool.encoded(&ConstantDescriptor { kind, unused, expected, value: SplitI64::new(*value) }))
            }
            ParamType::Shape(dims) => self.shape(head, dims.as_deref()),
            ParamType::Function => Ok(self.object(head, TypeIndex::FUNCTION)),
            ParamType::Module => Ok(self.object(head, TypeIndex::MODULE)),
            ParamType::Object(key) => {
                let key = SizedText { text: self.pool.text(key), len: key.len() as u32 };
                Ok([self.object(head, TypeIndex(-1)), self.pool.encoded(&key)].concat())
            }
            ParamType::Optional(inner) => {
                let inner = self.param(name, inner, text, None)?;
                let TypeDescriptor { kind, unused, expected } = plain;
                Ok(self.pool.encoded(&OptionalDescriptor { kind, unused, expected, inner }))
            }
            ParamType::Tuple(items) => {
                let TypeDescriptor { kind, unused, expected } = plain;
                let count = items.len() as u32;
                let mut bytes = self.pool.encoded(&TupleDescriptor { kind, unused, expected, count });
                self.memory[CONTAINERS] += HEADER + size_of::<TVMFFISeqCell>() + items.len() * size_of::<TVMFFIAny>();
                bytes.extend(self.members(name, ty)?);
                Ok(bytes)
            }
            ParamType::Record { fields, .. } => {
                let TypeDescriptor { kind, unused, expected } = plain;
                let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
                let (count, listed) = (fields.len() as u32, self.pool.text(&names.join(", ")));
                let record = RecordDescriptor { kind, unused, expected, count, names: listed };
                let mut bytes = self.pool.encoded(&record);
                // each field as it came, and as it is accepted
                let values = 2 * fields.len() * size_of::<TVMFFIAny>();
                self.memory[CONTAINERS] += HEADER + size_of::<TVMFFISeqCell>() + values;
                bytes.extend(self.members(name, ty)?);
                for name in names {
                    let name = SizedText { text: self.pool.text(name), len: name.len() as u32 };
                    bytes.extend(self.pool.encoded(&name));
                }
                Ok(bytes)
            }
            ParamType::Array(elements) => self.sequence(head, TypeIndex::ARRAY, true, elements),
            ParamType::List(elements) => self.sequence(head, TypeIndex::LIST, false, elements),
            ParamType::Map(keys, values) => self.map(head, TypeIndex::MAP, "Map", keys, values),
            ParamType::Dict(keys, values) => self.map(head, TypeIndex::DICT, "Dict", keys, values),
            ParamType::Scalar(_)
            | ParamType::DType
            | ParamType::Device
            | ParamType::Any
            | ParamType::None
            | ParamType::Bool(_)
            | ParamType::EnvStream
            | ParamType::Stream
            | ParamType::EnvState(_) => Ok(self.pool.encoded(&plain)),
        }
    }

    /// The items of a tuple or the fields of a record, one after the other.
    fn members(&mut self, name: &str, ty: &'a ParamType) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for (step, member) in ty.members() {
            let path = format!("{name}{step}");
            let member = self.param(&path, member, &expected(member), Some(&path))?;
            bytes.extend(self.pool.encoded(&member));
        }
        Ok(bytes)
    }

    fn scalar(&mut self, head: Head, ty: ScalarType, var: Option<&str>) -> Result<Vec<u8>, String> {
        let range = ty.narrow_range().map(|(min, greatest)| self.pool.text(&format!("{ty} ({min} to {greatest})")));
        let var = var.filter(|name| ty.is_int() && self.vars.has(name));
        let mut bytes = self.pool.encoded(&ScalarDescriptor {
            kind: head.kind,
            unused_bits: 64 - ty.bits() as u8,
            has_var: u8::from(var.is_some()),
            unused: [0],
            expected: head.expected,
        });
        if range.is_some() || var.is_some() {
            bytes.extend(self.pool.encoded(&IntRange { range: range.unwrap_or(0) }));
        }
        if let Some(name) = var {
            bytes.extend(self.var(name)?);
        }
        Ok(bytes)
    }

    fn shape(&mut self, head: Head, dims: Option<&[Dim]>) -> Result<Vec<u8>, String> {
        let rank = dims.map(<[Dim]>::len);
        let Head { kind, expected } = head;
        let mut bytes = self.pool.encoded(&ShapeDescriptor { kind, rank: small(rank), unused: [0; 2], expected });
        self.memory[SHAPES] += HEADER + size_of::<TVMFFIShapeCell>() + 8 * rank.unwrap_or(MAX_RANK);
        for dim in dims.unwrap_or_default() {
            bytes.extend(self.dim(dim)?);
        }
        Ok(bytes)
    }

    /// The descriptor of an object with a type index. A negative index means that only the type key is known.
    fn object(&mut self, head: Head, index: TypeIndex) -> Vec<u8> {
        let Head { kind, expected } = head;
        self.pool.encoded(&ObjectDescriptor { kind, type_index: index.0 as i8, unused: [0; 2], expected })
    }

    /// The elements of a container. Their names start after the element's path.
    fn elements(&mut self, ty: &'a ParamType) -> Result<ParamDescriptor, String> {
        self.containers += 1;
        self.deepest = self.deepest.max(self.containers);
        let deferred = self.deferred;
        let elements = self.param("", ty, &expected(ty), None);
        // dimensions in a container are never deferred (C10.15)
        self.deferred = deferred;
        self.containers -= 1;
        elements
    }

    fn sequence(
        &mut self,
        head: Head,
        index: TypeIndex,
        or_list: bool,
        elements: &'a ParamType,
    ) -> Result<Vec<u8>, String> {
        self.memory[CONTAINERS] += HEADER + size_of::<TVMFFISeqCell>();
        let elements = self.elements(elements)?;
        let Head { kind, expected } = head;
        let (or_list, type_index) = (u8::from(or_list), index.0 as u8);
        Ok(self.pool.encoded(&SequenceDescriptor { kind, or_list, type_index, unused: [0], expected, elements }))
    }

    fn map(
        &mut self,
        head: Head,
        index: TypeIndex,
        container: &str,
        keys: &'a ParamType,
        values: &'a ParamType,
    ) -> Result<Vec<u8>, String> {
        let [size_function, iter_function] = ["Size", "ForwardIterFunctor"].map(|suffix| {
            let name = format!("ffi.{container}{suffix}");
            SizedText { text: self.pool.text(&name), len: name.len() as u32 }
        });
        Ok({
            let (keys, values) = (self.elements(keys)?, self.elements(values)?);
            self.pool.encoded(&MapDescriptor {
                kind: head.kind,
                type_index: index.0 as u8,
                unused: [0; 2],
                expected: head.expected,
                size_function,
                iter_function,
                keys,
                values,
            })
        })
    }

    fn tensor(&mut self, head: Head, tensor: &'a TensorType) -> Result<Vec<u8>, String> {
        let (slot, id) = self.devices.place(&tensor.device);
        let (dtype, dtype_codes, dtype_flags) = self.dtype(&tensor.dtype);
        let mut flags = dtype_flags;
        flags |= match &tensor.layout {
            Layout::Contiguous => TensorFlags::empty(),
            Layout::Strides(_) => TensorFlags::STRIDED,
            Layout::Any => TensorFlags::ANY_STRIDES,
        };
        flags.set(TensorFlags::OPAQUE, tensor.is_opaque());
        flags.set(TensorFlags::FOLD, self.options.fold_all || tensor.is_open());
        let device_text = match (&tensor.device, id) {
            (Device::Kind(kind, _), SharedId::Fixed(id)) => Device::numbered(*kind, id).to_string(),
            (device, _) => device.to_string(),
        };
        let rank = tensor.shape.rank();
        let mut bytes = {
            let descriptor = TensorDescriptor {
                kind: head.kind,
                flags: flags.bits(),
                rank: small(rank),
                device_type: small(tensor.device.kind().map(|kind| kind.0 as usize)),
                expected: head.expected,
                dtype,
                dtype_text: self.pool.text(&tensor.dtype.to_string()),
                dtype_codes,
                device_id: match id {
                    SharedId::Fixed(id) => id,
                    SharedId::Any => ANY_ID,
                    SharedId::OfSlot => ANY_ID - 1 - slot as i32,
                },
                device_text: self.pool.text(&device_text),
                align: tensor.alignment(),
            };
            self.pool.encoded(&descriptor)
        };
        self.memory[TENSORS] += size_of::<DLTensor>() + 8 * rank.unwrap_or(MAX_RANK);
        let mut dims = Vec::new();
        tensor.for_each_dim(&mut |dim| dims.push(dim));
        for dim in dims {
            bytes.extend(self.dim(dim)?);
        }
        Ok(bytes)
    }

    /// The stated dtype, a bit for each other accepted code, and flags.
    fn dtype(&self, dtype: &DType) -> (DLDataType, u32, TensorFlags) {
        let DType::Exact(dtype) = *dtype else {
            return (DLDataType { code: 0, bits: 0, lanes: 0 }, 0, TensorFlags::ANY_DTYPE);
        };
        match self.policy.codes(dtype) {
            // codes of DLPack 1.x are below 32
            Some(codes) => {
                let codes = codes.iter().fold(0, |mask, code| mask | 1u32 << (code & 31));
                (dtype, codes, TensorFlags::empty())
            }
            None => (dtype, 0, TensorFlags::SAME_STORAGE),
        }
    }

    /// A size or stride.
    fn dim(&mut self, dim: &Dim) -> Result<Vec<u8>, String> {
        match dim {
            Dim::Const(value) => {
                let dim = ConstantDim { kind: DimKind::Const as u32, value: SplitI64::new(*value) };
                Ok(self.pool.encoded(&dim))
            }
            Dim::Var(name) => self.var(name),
            Dim::Binary(..) => {
                self.deferred += 1;
                let expr = self.expr(&dim.to_string(), dim, &[dim], true)?;
                Ok(self.pool.encoded(&ExprDim { kind: DimKind::Expr as u32, expr, unused: [0; 4] }))
            }
        }
    }

    /// A size, stride or integer that is a variable.
    fn var(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let var = self.vars.number(name)?;
        let dim = VarDim { kind: DimKind::Var as u32, var, name: self.pool.text(name) };
        Ok(self.pool.encoded(&dim))
    }

    /// The offset of an expression. `dims` contain its variables. If `solve` holds, also encodes the solution for each
    /// variable.
    pub(super) fn expr(&mut self, text: &str, dim: &Dim, dims: &[&Dim], solve: bool) -> Result<u32, String> {
        let mut names: Vec<&str> = Vec::new();
        for part in dims {
            part.for_each_var(&mut |name| {
                if !names.contains(&name) {
                    names.push(name);
                }
            });
        }
        let text = self.pool.text(text);
        let expr = ExprDescriptor { text, code: self.code(dim)?, terms: names.len() as u32 };
        let mut bytes = self.pool.encoded(&expr);
        for name in names {
            let var = self.vars.number(name)?;
            let solved = dim.solved_for(name, Dim::Var(TARGET.to_owned())).filter(|_| solve);
            let solve = solved.map_or(Ok(0), |solved| self.code(&solved))?;
            let term = TermDescriptor { var, name: self.pool.text(name), solve };
            bytes.extend(self.pool.encoded(&term));
        }
        Ok(self.pool.descriptor(&bytes))
    }

    /// The offset of the code that computes a dimension.
    pub(super) fn code(&mut self, dim: &Dim) -> Result<u32, String> {
        let mut words = Vec::new();
        expr::code(dim, &self.vars, &mut words)?;
        if has_function(dim) {
            self.pool.ask(Capabilities::of(Capability::DimFunction));
        }
        words.push(Opcode::End as u32);
        let mut bytes = Vec::new();
        words.iter().for_each(|word| word.write(self.pool.order(), &mut bytes));
        Ok(self.pool.descriptor(&bytes))
    }
}

/// Whether an expression contains a function.
fn has_function(dim: &Dim) -> bool {
    match dim {
        Dim::Const(_) | Dim::Var(_) => false,
        Dim::Binary(op, x, y) => op.is_function() || has_function(x) || has_function(y),
    }
}

/// The encoding of an optional small number, such as a rank or kind of device; -1 means none.
fn small(number: Option<usize>) -> i8 {
    const _: () = assert!(MAX_RANK <= i8::MAX as usize);
    number.map_or(-1, |number| i8::try_from(number).unwrap_or(i8::MAX))
}

fn kind(ty: &ParamType) -> TypeKind {
    match ty {
        ParamType::Scalar(ty) => match ty.kind() {
            ScalarKind::Signed => TypeKind::Signed,
            ScalarKind::Unsigned => TypeKind::Unsigned,
            ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => TypeKind::Float,
            ScalarKind::Bool => TypeKind::Bool,
            ScalarKind::Handle => TypeKind::Handle,
        },
        ParamType::Tensor(_) => TypeKind::Tensor,
        ParamType::Str => TypeKind::Str,
        ParamType::Bytes => TypeKind::Bytes,
        ParamType::DType => TypeKind::DType,
        ParamType::Device => TypeKind::Device,
        ParamType::Shape(_) => TypeKind::Shape,
        // an environment's stream is never passed, so it has no descriptor
        ParamType::Any | ParamType::EnvStream | ParamType::EnvState(_) => TypeKind::Any,
        ParamType::Stream => TypeKind::Stream,
        ParamType::None => TypeKind::None,
        ParamType::Int(_) => TypeKind::Int,
        ParamType::Bool(true) => TypeKind::True,
        ParamType::Bool(false) => TypeKind::False,
        ParamType::Function | ParamType::Module | ParamType::Object(_) => TypeKind::Object,
        ParamType::Optional(_) => TypeKind::Optional,
        ParamType::Tuple(_) => TypeKind::Tuple,
        ParamType::Record { .. } => TypeKind::Record,
        ParamType::Array(_) | ParamType::List(_) => TypeKind::Sequence,
        ParamType::Map(..) | ParamType::Dict(..) => TypeKind::Map,
    }
}
