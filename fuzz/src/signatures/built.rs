//! Signatures that are built from an input's bytes: each byte chooses a part.

use arbitrary::{Result, Unstructured};
use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDeviceType};
use tvm_ffi_codegen::spec::{
    Access, CompareOp, DType, DTypePolicy, Device, DeviceId, Dim, DimOp, ParamType, SignatureError, TensorShape,
    TensorType,
};
use tvm_ffi_codegen::{DefaultValue, ScalarType, Signature};

/// Names, most of which are right. Parts refer to each other by them.
const NAMES: [&str; 12] = ["x", "y", "n", "m", "k", "t[0]", "cfg.n", "x.shape[1]", "result", "_", "a name", ""];
/// Constants of dimensions, among them the limits.
const NUMBERS: [i64; 10] = [0, 1, -1, 2, 4, 16, 128, 1 << 31, i64::MAX, i64::MIN];
/// The maximum nesting of types and dimensions. It is above what signatures may have.
const DEPTH: u32 = 18;
/// The maximum number of items of a part.
const ITEMS: usize = 4;

/// Builds the signature of an input, which may have errors.
pub fn build(input: &[u8]) -> Result<std::result::Result<Signature, SignatureError>> {
    let mut bytes = Unstructured::new(input);
    let u = &mut bytes;
    let mut builder = Signature::builder(name(u)?);
    for _ in 0..u.int_in_range(0..=6)? {
        let (name, ty) = (name(u)?, ty(u, DEPTH)?);
        builder = match u.int_in_range(0..=3)? {
            0 => builder.param_or(name, ty, default(u)?),
            _ => builder.param(name, ty),
        };
        if u.ratio(1, 8)? {
            builder = builder.keyword_only();
        }
    }
    if u.arbitrary()? {
        builder = builder.returns(ty(u, DEPTH)?);
    }
    for _ in 0..u.int_in_range(0..=2)? {
        let op =
            *u.choose(&[CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge])?;
        builder = builder.constraint(dim(u, DEPTH)?, op, dim(u, DEPTH)?);
    }
    for (policy, _) in DTypePolicy::NAMES {
        if u.ratio(1, 4)? {
            builder = builder.dtype_policy(*policy);
        }
    }
    Ok(builder.build())
}

fn name<'u>(u: &mut Unstructured<'u>) -> Result<&'u str> {
    match u.ratio(1, 16)? {
        true => u.arbitrary(),
        false => u.choose(&NAMES).copied(),
    }
}

fn items<'u, T>(u: &mut Unstructured<'u>, item: impl Fn(&mut Unstructured<'u>) -> Result<T>) -> Result<Vec<T>> {
    (0..u.int_in_range(0..=ITEMS)?).map(|_| item(u)).collect()
}

fn ty(u: &mut Unstructured<'_>, depth: u32) -> Result<ParamType> {
    let inner = |u: &mut Unstructured<'_>| ty(u, depth - 1);
    Ok(match u.int_in_range(0..=if depth == 0 { 15 } else { 22 })? {
        0 | 1 => ParamType::Scalar(*u.choose(ScalarType::ALL)?),
        2 | 3 => ParamType::Tensor(tensor(u)?),
        4 => ParamType::Str,
        5 => ParamType::Bytes,
        6 => ParamType::DType,
        7 => ParamType::Device,
        8 => ParamType::Shape(if u.arbitrary()? { Some(items(u, |u| dim(u, DEPTH))?) } else { None }),
        9 => ParamType::Any,
        10 => ParamType::None,
        11 => ParamType::Int(u.arbitrary()?),
        12 => ParamType::Bool(u.arbitrary()?),
        13 => u.choose(&[ParamType::Function, ParamType::Module, ParamType::EnvStream, ParamType::Stream])?.clone(),
        14 => ParamType::object(name(u)?),
        15 => ParamType::env_state(name(u)?),
        16 => inner(u)?.optional(),
        17 => ParamType::Tuple(items(u, inner)?),
        18 => ParamType::record(name(u)?, items(u, |u| Ok((name(u)?, inner(u)?)))?),
        19 => ParamType::array(inner(u)?),
        20 => ParamType::list(inner(u)?),
        21 => ParamType::map(inner(u)?, inner(u)?),
        _ => ParamType::dict(inner(u)?, inner(u)?),
    })
}

fn tensor(u: &mut Unstructured<'_>) -> Result<TensorType> {
    let dims = |u: &mut Unstructured<'_>| items(u, |u| dim(u, DEPTH));
    let shape = if u.ratio(7, 8)? { TensorShape::Ranked(dims(u)?) } else { TensorShape::Any };
    let dtype = match u.int_in_range(0..=7)? {
        0 => DType::Any,
        1 => DType::Param(name(u)?.to_owned()),
        2 => DType::Exact(DLDataType { code: u.arbitrary()?, bits: u.arbitrary()?, lanes: u.arbitrary()? }),
        3 => DType::Exact(DLDataType::INT8),
        _ => DType::Exact(DLDataType::FLOAT32),
    };
    let mut tensor = TensorType::new(shape, dtype);
    tensor = match u.int_in_range(0..=5)? {
        0 => tensor.with_strides(dims(u)?),
        1 => tensor.with_any_strides(),
        2 => tensor.with_align(u.arbitrary()?),
        3 => tensor.with_align(1 << u.int_in_range(0..=31)?),
        4 => tensor.with_access(*u.choose(&[Access::In, Access::Out, Access::InOut])?),
        _ => tensor,
    };
    if u.ratio(1, 4)? {
        let id = *u.choose(&[DeviceId::Shared, DeviceId::Any, DeviceId::Fixed(1), DeviceId::Fixed(-1)])?;
        let kind = DLDeviceType(u.int_in_range(0..=20)?);
        let kinds = [Device::Any, Device::Param(name(u)?.to_owned()), Device::Kind(kind, id)];
        tensor = tensor.with_device(u.choose(&kinds)?.clone());
    }
    Ok(if u.ratio(1, 8)? { tensor.with_noalias() } else { tensor })
}

fn dim(u: &mut Unstructured<'_>, depth: u32) -> Result<Dim> {
    const OPS: [DimOp; 8] =
        [DimOp::Add, DimOp::Sub, DimOp::Mul, DimOp::FloorDiv, DimOp::Mod, DimOp::CeilDiv, DimOp::Min, DimOp::Max];
    Ok(match u.int_in_range(0..=if depth == 0 { 3 } else { 5 })? {
        0 => Dim::Const(*u.choose(&NUMBERS)?),
        1..=3 => Dim::Var(name(u)?.to_owned()),
        _ => Dim::binary(*u.choose(&OPS)?, dim(u, depth - 1)?, dim(u, depth - 1)?),
    })
}

fn default(u: &mut Unstructured<'_>) -> Result<DefaultValue> {
    Ok(match u.int_in_range(0..=4)? {
        0 => DefaultValue::None,
        1 => DefaultValue::Bool(u.arbitrary()?),
        2 => DefaultValue::Int(*u.choose(&NUMBERS)?),
        3 => DefaultValue::Float(u.arbitrary()?),
        _ => DefaultValue::Str(name(u)?.to_owned()),
    })
}
