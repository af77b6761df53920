//! Random signatures that many random calls can satisfy.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{self, select};
use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::spec::{
    CompareOp, DType, DTypePolicy, DefaultValue, DeviceId, DimOp, SignatureBuilder, TensorShape,
};
use tvm_ffi_codegen::{DLDataType, DLDeviceType, Device, Dim, Layout, ParamType, ScalarType, Signature, TensorType};

/// The symbols of dimensions.
pub const SYMBOLS: [&str; 5] = ["n", "m", "k", "s", "t"];
/// The symbols of sizes; other symbols may be negative.
const SIZES: [&str; 4] = ["n", "m", "k", "s"];

fn scalar() -> impl Strategy<Value = ScalarType> {
    select(ScalarType::ALL.to_vec())
}

fn leaf(symbols: &'static [&'static str]) -> impl Strategy<Value = Dim> + Clone {
    prop_oneof![3 => select(symbols).prop_map(Dim::from), 2 => (0i64..5).prop_map(Dim::Const)]
}

pub fn dim_op() -> impl Strategy<Value = DimOp> + Clone {
    prop_oneof![
        3 => Just(DimOp::Add),
        2 => Just(DimOp::Sub),
        3 => Just(DimOp::Mul),
        1 => Just(DimOp::FloorDiv),
        1 => Just(DimOp::Mod),
        1 => Just(DimOp::CeilDiv),
        1 => Just(DimOp::Min),
        1 => Just(DimOp::Max),
    ]
}

fn dim(symbols: &'static [&'static str]) -> impl Strategy<Value = Dim> {
    let binary = |x: BoxedStrategy<Dim>| (dim_op(), x.clone(), x).prop_map(|(op, x, y)| Dim::binary(op, x, y));
    let one = binary(leaf(symbols).boxed());
    let two = binary(prop_oneof![2 => leaf(symbols), 1 => one.clone()].boxed());
    let expression = prop_oneof![3 => one, 1 => two].prop_map(|dim| match dim.eval(&|_| None) {
        // a size can't be negative
        Some(..0) => Dim::Const(2),
        _ => dim,
    });
    prop_oneof![3 => leaf(symbols), 1 => expression]
}

pub fn dtype() -> impl Strategy<Value = DLDataType> {
    let names = [
        "float32",
        "float64",
        "int8",
        "int64",
        "bool",
        "uint8",
        "uint16",
        "int8x4",
        "float8_e4m3fn",
        "float8_e5m2",
        "float4_e2m1fn",
        "bfloat16",
        "complex64",
    ];
    select(names.map(|name| name.parse::<DLDataType>().unwrap()).to_vec())
}

fn device() -> impl Strategy<Value = Device> {
    let kinds = [DLDeviceType::CPU, DLDeviceType::CUDA, DLDeviceType::OPENCL, DLDeviceType::TRN];
    let id =
        prop_oneof![3 => Just(DeviceId::Shared), 1 => Just(DeviceId::Any), 2 => (0i32..3).prop_map(DeviceId::Fixed)];
    prop_oneof![
        6 => Just(Device::CPU),
        2 => (select(kinds.to_vec()), id).prop_map(|(kind, id)| Device::Kind(kind, id)),
        1 => Just(Device::Any),
    ]
}

fn tensor() -> impl Strategy<Value = TensorType> {
    let stride = prop_oneof![4 => dim(&["s", "t", "n"]), 1 => (-3i64..0).prop_map(Dim::Const)];
    let dims = vec((dim(&["n", "m", "k", "s"]), stride), 0..4);
    let align = proptest::option::weighted(0.3, select(vec![1u32, 2, 8, 64]));
    let dtype = prop_oneof![8 => dtype().prop_map(DType::Exact), 1 => Just(DType::Any)];
    (dims, dtype, device(), 0..10, any::<bool>(), align).prop_map(|(dims, dtype, device, layout, ranked, align)| {
        let (shape, strides): (Vec<Dim>, Vec<Dim>) = dims.into_iter().unzip();
        let mut tensor = TensorType::new(shape, dtype).with_device(device);
        tensor.align = align;
        match layout {
            0..5 => {}
            5..9 => tensor.layout = Layout::Strides(strides),
            _ => tensor.layout = Layout::Any,
        }
        if layout % 5 == 4 && ranked && !matches!(tensor.layout, Layout::Strides(_)) {
            tensor.shape = TensorShape::Any;
        }
        tensor
    })
}

fn plain() -> impl Strategy<Value = ParamType> {
    let keys = ["test.Thing", "test.Thing.Sub", "ffi.Function", "ffi.Object", "test.Nothing"];
    let stated = vec(dim(&["n", "m", "k"]), 0..3).prop_map(|dims| ParamType::Shape(Some(dims)));
    let one = select(vec![
        ParamType::Str,
        ParamType::Str,
        ParamType::Bytes,
        ParamType::DType,
        ParamType::Device,
        ParamType::Shape(None),
        ParamType::Any,
        ParamType::None,
        ParamType::Int(3),
        ParamType::Bool(true),
        ParamType::Bool(false),
        ParamType::Function,
        ParamType::Module,
    ]);
    prop_oneof![
        6 => one,
        4 => scalar().prop_map(ParamType::from),
        1 => stated,
        1 => select(keys.to_vec()).prop_map(ParamType::object),
    ]
}

/// A record. Its fields may have the names of parts of tensors and of dimension variables.
fn record(inner: impl Strategy<Value = ParamType>) -> impl Strategy<Value = ParamType> {
    vec(inner, 1..4).prop_map(|types| ParamType::record("Config", ["a", "shape", "n"].into_iter().zip(types)))
}

fn param_type() -> impl Strategy<Value = ParamType> {
    let leaf = prop_oneof![3 => tensor().prop_map(ParamType::from), 2 => plain()];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let key =
            prop_oneof![3 => Just(ParamType::Str), 2 => Just(ScalarType::Int64.into()), 1 => Just(ParamType::Any)];
        let map = (key, inner.clone());
        prop_oneof![
            4 => inner.clone().prop_map(ParamType::optional),
            2 => vec(inner.clone(), 0..4).prop_map(ParamType::Tuple),
            2 => record(inner.clone()),
            2 => inner.clone().prop_map(ParamType::array),
            1 => inner.prop_map(ParamType::list),
            1 => map.clone().prop_map(|(key, value)| ParamType::map(key, value)),
            1 => map.prop_map(|(key, value)| ParamType::dict(key, value)),
        ]
    })
}

fn result() -> impl Strategy<Value = Option<ParamType>> {
    let tensor = || {
        (vec(dim(&["n", "m", "k"]), 0..3), dtype(), device()).prop_map(|(dims, dtype, device)| {
            let device = if device == Device::Any { Device::CPU } else { device };
            ParamType::from(TensorType::new(dims, dtype).with_device(device))
        })
    };
    let tensors = vec(tensor(), 1..4).prop_map(|tensors| Some(ParamType::tuple(tensors)));
    let any = || ParamType::Any;
    let others = select(vec![
        ParamType::Str,
        ParamType::Bytes,
        ParamType::DType,
        ParamType::Device,
        ParamType::Any,
        ParamType::Function,
        ParamType::Module,
        ParamType::Shape(None),
        ParamType::object("test.Thing"),
        ParamType::array(any()),
        ParamType::list(any()),
        ParamType::map(any(), any()),
        ParamType::dict(any(), any()),
    ]);
    prop_oneof![
        5 => Just(None),
        3 => scalar().prop_map(|ty| Some(ty.into())),
        2 => tensor().prop_map(Some),
        1 => tensors,
        2 => others.prop_map(Some),
    ]
}

/// A default that the type allows, if any.
fn default(ty: &ParamType) -> Option<DefaultValue> {
    Some(match ty {
        ParamType::Optional(inner) => return Some(default(inner).unwrap_or(DefaultValue::None)),
        ParamType::Scalar(ScalarType::Bool) => true.into(),
        ParamType::Scalar(ScalarType::Handle) | ParamType::Stream | ParamType::None => DefaultValue::None,
        ParamType::Scalar(ty) if ty.is_float() => 0.5.into(),
        ParamType::Scalar(_) => 2.into(),
        ParamType::Str | ParamType::Bytes => "of the signature".into(),
        ParamType::Any => "any".into(),
        ParamType::DType => DLDataType::INT8.into(),
        ParamType::Device => DLDevice::cuda(1).into(),
        ParamType::Int(value) => (*value).into(),
        ParamType::Bool(value) => (*value).into(),
        _ => return None,
    })
}

/// The parts of a signature, which may be incompatible.
#[derive(Clone, Debug)]
struct Parts {
    params: Vec<ParamType>,
    /// The number of trailing parameters that may have defaults.
    defaults: usize,
    /// The integer parameter that is a symbol, and the symbol's name.
    symbol: Option<(usize, &'static str)>,
    stream: bool,
    /// Whether the caller may pass a stream.
    given_stream: bool,
    /// The global function that provides the state.
    state: Option<&'static str>,
    constraint: Option<(Dim, CompareOp, i64)>,
    policy: DTypePolicy,
    ret: Option<ParamType>,
}

impl Parts {
    /// A signature with as many of the parts as are compatible. If a symbol has no value, additional tensors determine
    /// it.
    fn build(&self) -> Option<Signature> {
        self.signature(&[], &[]).or_else(|| self.signature(&SIZES, &[])).or_else(|| self.signature(&SIZES, &["t"]))
    }

    fn signature(&self, sizes: &[&'static str], strides: &[&'static str]) -> Option<Signature> {
        let mut builder = Signature::builder("f").dtype_policy(self.policy);
        let ints = self.params.iter().enumerate().filter(|(_, ty)| ty.as_scalar().is_some_and(ScalarType::is_int));
        let ints: Vec<usize> = ints.map(|(i, _)| i).collect();
        let symbol = self.symbol.filter(|_| !ints.is_empty()).map(|(i, name)| (ints[i % ints.len()], name));
        let name = |i| symbol.filter(|(of, _)| *of == i).map_or_else(|| format!("p{i}"), |(_, name)| name.to_owned());
        if !sizes.is_empty() {
            builder = builder.param("all", TensorType::new(sizes.to_vec(), DLDataType::INT8));
        }
        if !strides.is_empty() {
            let tensor = TensorType::new(vec![2; strides.len()], DLDataType::INT8);
            builder = builder.param("steps", tensor.with_strides(strides.to_vec()));
        }
        let same_default = |ty: &&ParamType| default(ty).is_some();
        let defaults = self.params.iter().rev().take(self.defaults).take_while(same_default).count();
        let names: HashSet<String> = (0..self.params.len()).map(name).collect();
        for (i, ty) in self.params.iter().enumerate() {
            builder = match default(ty).filter(|_| i + defaults >= self.params.len()) {
                Some(value) => builder.param_or(name(i), ty.clone(), value),
                None => builder.param(name(i), ty.clone()),
            };
        }
        if self.given_stream && !names.contains("given") {
            builder = builder.param_or("given", ParamType::Stream, DefaultValue::None);
        }
        if self.stream && !names.contains("stream") {
            builder = builder.param("stream", ParamType::EnvStream);
        }
        if let Some(name) = self.state.filter(|_| !names.contains("state")) {
            builder = builder.param("state", ParamType::env_state(name));
        }
        if let Some((left, op, right)) = &self.constraint {
            builder = builder.constraint(left.clone(), *op, *right);
        }
        let path = self.params.iter().enumerate().find_map(|(i, ty)| {
            let ParamType::Record { fields, .. } = ty else { return None };
            let is_int = |ty: &ParamType| ty.as_scalar().is_some_and(ScalarType::is_int);
            fields.iter().find(|(_, ty)| is_int(ty)).map(|(field, _)| format!("{}.{field}", name(i)))
        });
        if let Some(path) = path.filter(|_| self.defaults % 2 == 1) {
            builder = builder.constraint(Dim::from(path), CompareOp::Lt, 120);
        }
        self.ret.iter().fold(builder, |builder, ty| builder.returns(ty.clone())).build().ok()
    }
}

pub fn signature() -> impl Strategy<Value = Signature> {
    let policies = select(vec![
        DTypePolicy::SIGN,
        DTypePolicy::BOOL,
        DTypePolicy::FP8,
        DTypePolicy::STORAGE,
        DTypePolicy::SIGN | DTypePolicy::BOOL,
    ]);
    let policy = prop_oneof![3 => Just(DTypePolicy::EXACT), 1 => policies];
    // most of these constraints hold for small sizes
    let op = select(vec![CompareOp::Le, CompareOp::Lt, CompareOp::Ne, CompareOp::Ne]);
    let constraint = (dim(&["n", "m"]), select(vec!["n", "m"]), op, 0i64..12);
    let constraint = constraint.prop_map(|(dim, symbol, op, limit)| {
        // without a symbol it would always hold, or never
        let left = if dim.eval(&|_| Some(1)) == dim.eval(&|_| None) { symbol.into() } else { dim };
        (left, op, limit)
    });
    let params =
        (vec(param_type(), 0..5), 0usize..4, proptest::option::weighted(0.3, (0usize..4, select(&SYMBOLS[..]))));
    let state = proptest::option::weighted(0.1, select(vec!["test.state", "test.other_state", "test.null_state"]));
    let streams = (proptest::bool::weighted(0.15), proptest::bool::weighted(0.1));
    let rest = ((streams, state), proptest::option::weighted(0.2, constraint), policy, result());
    (params, rest).prop_filter_map(
        "the builder finds errors",
        |(params, (((stream, given_stream), state), constraint, policy, ret))| {
            let (params, defaults, symbol) = params;
            let parts = Parts { params, defaults, symbol, stream, given_stream, state, constraint, policy, ret };
            let plain = Parts { stream: false, given_stream: false, ..parts.clone() };
            parts.build().or_else(|| plain.build())
        },
    )
}

/// A constant up to 2^62. It is usually a power of two, so products wrap to 0 in 64 bits.
fn large() -> impl Strategy<Value = Dim> + Clone {
    prop_oneof![3 => (28u32..=62).prop_map(|bit| Dim::Const(1 << bit)), 1 => (0i64..=1 << 62).prop_map(Dim::Const)]
}

/// Signatures with a few tensors whose sizes are expressions of large numbers. A tensor with some of the bare symbols
/// is before, among or after them.
pub fn large_signature() -> impl Strategy<Value = Signature> {
    let leaf =
        prop_oneof![4 => select(&SIZES[..3]).prop_map(Dim::from), 3 => large(), 1 => (0i64..5).prop_map(Dim::Const)];
    let op = || prop_oneof![1 => dim_op(), 2 => Just(DimOp::Mul)];
    let expression = leaf.prop_recursive(3, 6, 2, move |inner| {
        (op(), inner.clone(), inner).prop_map(|(op, x, y)| Dim::binary(op, x, y))
    });
    // calls would rarely match a constant size
    let expression = expression.prop_map(|dim| match dim.eval(&|_| None) {
        Some(_) => "n".into(),
        None => dim,
    });
    let symbols = (sample::subsequence(SIZES[..3].to_vec(), 1..=3), any::<sample::Index>());
    let random = (vec(vec(expression, 1..3), 1..4), symbols).prop_filter_map("the builder finds errors", |parts| {
        let (mut tensors, (alone, at)) = parts;
        tensors.insert(at.index(tensors.len() + 1), alone.into_iter().map(Dim::from).collect());
        let add = |builder: SignatureBuilder, (i, dims)| {
            builder.param(format!("p{i}"), TensorType::new(dims, DLDataType::INT8))
        };
        tensors.into_iter().enumerate().fold(Signature::builder("f"), add).build().ok()
    });
    // for a size of 4, the product in parentheses wraps to 0 in 64 bits
    let seed = "f(x: Tensor([n], int8), y: Tensor([m * (4611686018427387904 * n)], int8), z: Tensor([m], int8))";
    prop_oneof![1 => Just(seed.parse().unwrap()), 9 => random]
}
