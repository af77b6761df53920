//! The text form of signatures: the parser accepts everything that `Display` writes, and no input breaks it.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::spec::{
    Access, ClusterScheduling, CompareOp, DType, DTypePolicy, DefaultValue, DeviceId, FloatBits, Interleave, KernelArg,
    L2Promotion, Launch, LaunchedSignature, MemorySyncDomain, Swizzle, TensorMap, TensorShape,
};
use tvm_ffi_codegen::{DLDataType, DLDeviceType, Device, Dim, Layout, ParamType, ScalarType, Signature, TensorType};

use super::signatures::dim_op;
use crate::support::random::{run, stated_or};

/// Signatures that use everything that the text form can express, whether useful or not.
fn wide_signature() -> impl Strategy<Value = Signature> {
    let default = option::weighted(0.2, default());
    let named = ("[A-Z][a-zA-Z0-9_]{0,6}", param_type(), default);
    let constraint = (dim(), select(CompareOp::ALL.to_vec()), dim());
    let policy = vec(select(DTypePolicy::NAMES.iter().map(|(policy, _)| *policy).collect::<Vec<_>>()), 0..3);
    let policy = policy.prop_map(|all| all.into_iter().fold(DTypePolicy::EXACT, |one, other| one | other));
    let rest = (
        policy,
        option::of(param_type()),
        vec(constraint, 0..3),
        (any::<bool>(), option::of("[^\"\0]{1,9}"), 0..9usize),
    );
    let parts = ("[a-z_][a-zA-Z0-9_.$]{0,9}", vec(named, 0..6), rest);
    parts.prop_filter_map(
        "the builder finds errors",
        |(name, params, (policy, ret, constraints, (stream, state, positional)))| {
            let mut builder = Signature::builder(name).dtype_policy(policy);
            for (number, (name, ty, default)) in params.iter().enumerate() {
                if number == positional {
                    builder = builder.keyword_only();
                }
                builder = match default {
                    Some(default) => builder.param_or(name, ty.clone(), default.clone()),
                    None => builder.param(name, ty.clone()),
                };
            }
            if stream {
                builder = builder.param("stream", ParamType::EnvStream);
                builder = builder.param_or("given", ParamType::Stream, DefaultValue::None);
            }
            if let Some(state) = &state {
                builder = builder.param("state", ParamType::env_state(state));
            }
            for (left, op, right) in constraints {
                builder = builder.constraint(left, op, right);
            }
            let plain = params.iter().fold(Signature::builder("f"), |b, (name, ty, _)| b.param(name, ty.clone()));
            let whole = ret.iter().fold(builder.clone(), |b, ty| b.returns(ty.clone())).build();
            whole.or_else(|_| builder.build()).or_else(|_| plain.build()).ok()
        },
    )
}

fn dim() -> impl Strategy<Value = Dim> + Clone {
    let leaf = prop_oneof![
        1 => any::<u32>().prop_map(|v| Dim::Const(v.into())),
        4 => "[a-e]".prop_map(Dim::Var),
        1 => "[a-z_][a-z0-9_]{0,6}".prop_map(Dim::Var),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| (dim_op(), inner.clone(), inner).prop_map(|(op, x, y)| Dim::binary(op, x, y)))
}

fn dims() -> impl Strategy<Value = Vec<Dim>> {
    // a bare symbol determines its value
    vec(prop_oneof![4 => "[a-e]".prop_map(Dim::Var), 1 => dim()], 0..6)
}

fn tensor() -> impl Strategy<Value = TensorType> {
    let stride = prop_oneof![any::<i64>().prop_map(Dim::Const), dim()];
    let id = prop_oneof![Just(DeviceId::Shared), Just(DeviceId::Any), (0..i32::MAX).prop_map(DeviceId::Fixed)];
    let device = prop_oneof![
        4 => (1i32..19, id).prop_map(|(kind, id)| Device::Kind(DLDeviceType(kind), id)),
        1 => Just(Device::Any),
    ];
    let exact = (0u8..18, any::<u8>(), any::<u16>()).prop_map(|(code, bits, lanes)| DLDataType::new(code, bits, lanes));
    let dtype = prop_oneof![4 => exact.prop_map(DType::Exact), 1 => Just(DType::Any)];
    let align = option::of((0u32..32).prop_map(|bit| 1 << bit));
    let parts =
        (dims(), vec(stride, 6), dtype, device, (0..5, any::<bool>(), any::<bool>()), align, select(&Access::ALL[..]));
    parts.prop_map(|(dims, mut strides, dtype, device, (layout, ranked, noalias), align, access)| {
        strides.truncate(dims.len());
        let layout = match layout {
            0 | 1 => Layout::Contiguous,
            2 | 3 => Layout::Strides(strides),
            _ => Layout::Any,
        };
        let open = !ranked && !matches!(layout, Layout::Strides(_));
        let shape = if open { TensorShape::Any } else { TensorShape::Ranked(dims) };
        let mut tensor = TensorType::new([0; 0], dtype).with_device(device).with_access(access);
        (tensor.shape, tensor.layout, tensor.align, tensor.noalias) = (shape, layout, align, noalias);
        tensor
    })
}

/// A quoted name, which has no escapes.
fn quoted() -> impl Strategy<Value = String> {
    "[^\"\\\\\\x00]{0,8}"
}

/// A string, which has escapes when quoted.
fn text() -> impl Strategy<Value = String> {
    "([^\\x00]|[\"\\\\\n]){0,8}"
}

fn param_type() -> impl Strategy<Value = ParamType> {
    let plain = select(vec![
        ParamType::Str,
        ParamType::Bytes,
        ParamType::DType,
        ParamType::Device,
        ParamType::Shape(None),
        ParamType::Any,
        ParamType::None,
        ParamType::Function,
        ParamType::Module,
        ParamType::Bool(true),
        ParamType::Bool(false),
    ]);
    let leaf = prop_oneof![
        4 => tensor().prop_map(ParamType::from),
        3 => select(ScalarType::ALL.to_vec()).prop_map(ParamType::from),
        3 => plain,
        1 => any::<i64>().prop_map(ParamType::Int),
        1 => quoted().prop_map(ParamType::object),
        1 => dims().prop_map(|dims| ParamType::Shape(Some(dims))),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(ParamType::optional),
            inner.clone().prop_map(ParamType::array),
            inner.clone().prop_map(ParamType::list),
            vec(inner.clone(), 0..4).prop_map(ParamType::Tuple),
            (quoted(), vec(("[a-z_]{1,3}", inner), 0..4)).prop_map(|(name, fields)| ParamType::record(name, fields)),
            pair.clone().prop_map(|(key, value)| ParamType::map(key, value)),
            pair.prop_map(|(key, value)| ParamType::dict(key, value)),
        ]
    })
}

fn default() -> impl Strategy<Value = DefaultValue> {
    prop_oneof![
        Just(DefaultValue::None),
        any::<bool>().prop_map(DefaultValue::from),
        any::<i64>().prop_map(DefaultValue::from),
        any::<f64>().prop_map(DefaultValue::from),
        text().prop_map(DefaultValue::from),
        Just(DLDataType::FLOAT16.into()),
        (1i32..19, 0..i32::MAX).prop_map(|(kind, id)| DLDevice::new(DLDeviceType(kind), id).into()),
    ]
}

#[test]
fn what_a_signature_shows_is_read_back() {
    run(stated_or(500), &wide_signature(), |signature| {
        let text = signature.to_string();
        prop_assert_eq!(text.parse::<Signature>(), Ok(signature), "{}", text);
        Ok(())
    });
}

#[test]
fn what_a_piece_of_a_signature_shows_is_read_back() {
    run(stated_or(500), &(dim(), param_type()), |(dim, ty)| {
        let (dim_text, type_text) = (dim.to_string(), ty.to_string());
        prop_assert_eq!(dim_text.parse::<Dim>(), Ok(dim), "{}", dim_text);
        let read = type_text.parse::<ParamType>();
        // for types that no signature accepts, such as a dtype without a name, it only has to be an error or a type
        if Signature::builder("f").param("x", ty.clone()).build().is_ok() {
            prop_assert_eq!(read, Ok(ty), "{}", type_text);
        } else if let Ok(read) = read {
            prop_assert_eq!(read.to_string().parse(), Ok(read), "{}", type_text);
        }
        Ok(())
    });
}

fn scalar_but_float() -> impl Strategy<Value = ScalarType> {
    select(ScalarType::ALL.iter().copied().filter(|ty| !ty.is_float()).collect::<Vec<_>>())
}

fn float_type() -> impl Strategy<Value = ScalarType> {
    select(vec![ScalarType::Float32, ScalarType::Float64])
}

fn name() -> impl Strategy<Value = String> {
    select(vec!["x", "y", "null", "cast", "grid", "int32", "launch"]).prop_map(str::to_owned)
}

fn launch_arg() -> impl Strategy<Value = KernelArg> {
    let map = (name(), vec(dim(), 1..4), vec(1u32..9, 0..4), (0usize..3, 0usize..4, 0usize..4, any::<bool>()));
    let leaf = prop_oneof![
        name().prop_map(KernelArg::Param),
        (name(), select(ScalarType::ALL.to_vec())).prop_map(|(name, ty)| KernelArg::Cast(name, ty)),
        (dim(), scalar_but_float()).prop_map(|(dim, ty)| KernelArg::Int(dim, ty)),
        (any::<f64>().prop_filter("another NaN", |value| !value.is_nan()), float_type())
            .prop_map(|(value, ty)| KernelArg::Float(FloatBits::new(value), ty)),
        name().prop_map(KernelArg::DeviceId),
        (name(), 0usize..4, scalar_but_float()).prop_map(|(name, number, ty)| KernelArg::Stride(name, number, ty)),
        Just(KernelArg::Null),
        (dim(), any::<u32>()).prop_map(|(bytes, align)| KernelArg::Scratch { bytes, align }),
        map.prop_map(|(tensor, boxes, steps, (interleave, swizzle, promotion, nan_fill))| {
            let mut map = TensorMap::new(tensor, boxes);
            (map.element_strides, map.nan_fill) = (steps, nan_fill);
            map.interleave = Interleave::ALL[interleave];
            map.swizzle = Swizzle::ALL[swizzle];
            map.l2_promotion = L2Promotion::ALL[promotion];
            KernelArg::TensorMap(map)
        }),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        (any::<u32>(), any::<u32>(), vec((any::<u32>(), inner), 0..3))
            .prop_map(|(size, align, fields)| KernelArg::Struct { size, align, fields })
    })
}

fn launch() -> impl Strategy<Value = Launch> {
    let entry = select(vec!["add", "_Z3addPf", "a.b$c", "a b", "launch", "1x"]);
    let extents = || vec(dim(), 1..4);
    let more = (vec(dim(), 0..4), vec(dim(), 0..4), dim(), option::of(vec(launch_arg(), 0..4)));
    let attributes = (
        option::of(select(ClusterScheduling::ALL.to_vec())),
        option::of(select(MemorySyncDomain::ALL.to_vec())),
        option::of(any::<u32>()),
        option::of(name()),
        option::of(select(vec!["pkg.load", "a b"])),
        vec((select(vec!["scale", "_ZN1a1bE", "a b"]), launch_arg()), 0..3),
    );
    let flags = (option::of(any::<i32>()), any::<[bool; 3]>(), attributes);
    (entry, extents(), extents(), more, flags).prop_map(
        |(entry, grid, block, (cluster, preferred, shared, args), flags)| {
            let mut launch = Launch::new(entry)
                .grid(grid)
                .block(block)
                .cluster(cluster)
                .preferred_cluster(preferred)
                .shared_memory(shared);
            if let Some(args) = args {
                launch = launch.args(args);
            }
            let (priority, [cooperative, programmatic_dependent_launch, non_portable], attributes) = flags;
            let (policy, domain, carveout, event, hook, globals) = attributes;
            launch = hook.into_iter().fold(launch, Launch::on_load);
            launch = hook.into_iter().fold(launch, Launch::on_unload);
            launch = globals.into_iter().fold(launch, |launch, (name, value)| launch.global(name, value));
            launch = policy.into_iter().fold(launch, Launch::cluster_scheduling);
            launch = domain.into_iter().fold(launch, Launch::memory_sync_domain);
            launch = carveout.into_iter().fold(launch, Launch::shared_memory_carveout);
            launch = event.into_iter().fold(launch, Launch::completion_event);
            if let Some(priority) = priority {
                launch = launch.priority(priority);
            }
            launch = if cooperative { launch.cooperative() } else { launch };
            launch = if programmatic_dependent_launch { launch.programmatic_dependent_launch() } else { launch };
            if non_portable { launch.non_portable_cluster() } else { launch }
        },
    )
}

#[test]
fn what_a_launch_shows_is_read_back() {
    run(stated_or(500), &(wide_signature(), launch()), |(signature, launch)| {
        let text = launch.to_string();
        prop_assert_eq!(text.parse::<Launch>(), Ok(launch.clone()), "{}", text);
        let both = LaunchedSignature { signature, launch };
        let text = both.to_string();
        prop_assert_eq!(text.parse::<LaunchedSignature>(), Ok(both), "{}", text);
        Ok(())
    });
}

/// Any input can be parsed, and an error can be shown with its caret inside the line.
fn parses(text: &str) -> Result<(), TestCaseError> {
    if let Ok(launch) = format!("launch {text}").parse::<Launch>() {
        prop_assert_eq!(launch.to_string().parse::<Launch>(), Ok(launch));
    }
    match text.parse::<Signature>() {
        Ok(signature) => prop_assert_eq!(signature.to_string().parse::<Signature>(), Ok(signature)),
        Err(tvm_ffi_codegen::spec::ParseError::Syntax(error)) => {
            prop_assert!(!error.to_string().is_empty());
            prop_assert!(error.line >= 1 && error.column >= 1, "{error:?}");
            prop_assert!(error.line <= text.split('\n').count(), "{error:?}");
            let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
            prop_assert!(error.column <= line.chars().count() + 1, "{error:?}");
        }
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

#[test]
fn any_text_is_a_signature_or_an_error() {
    run(stated_or(2000), &any::<String>(), |text| parses(&text));
    let pieces = [
        "f",
        "(",
        ")",
        "x",
        ":",
        "int64",
        "Tensor",
        "[",
        "]",
        ",",
        "@ launch",
        "grid=",
        "args=[",
        "struct(size=8, align=8",
        "tensor_map(x, box=",
        "n",
        "4",
        "-1",
        "float32",
        "strides",
        "=",
        "device",
        "\"cuda:1\"",
        "align",
        "->",
        "None",
        " ",
        "\n",
        "\"",
        "-",
        "99999999999999999999",
        "\u{e9}",
        "\0",
        "float8_",
        "Optional",
        "Map",
        "Tuple",
        "//",
        "*",
        "...",
        "where",
        "==",
        "any",
        "Object",
        "x:Tensor([n],f32)",
    ];
    run(stated_or(2000), &vec(proptest::sample::select(pieces.to_vec()), 0..20), |text| parses(&text.concat()));
}

#[test]
fn a_text_with_one_error_is_an_error_or_another_signature() {
    let strategy = (wide_signature(), any::<prop::sample::Index>(), any::<char>(), any::<bool>());
    run(stated_or(500), &strategy, |(signature, at, c, insert)| {
        let mut chars: Vec<char> = signature.to_string().chars().collect();
        let at = at.index(chars.len());
        if insert {
            chars.insert(at, c);
        } else {
            chars.remove(at);
        }
        parses(&chars.into_iter().collect::<String>())
    });
}
