//! The encoder: translates a signature into descriptors in the constant pool, for the binder.

mod encoder;
mod expr;
mod result;
mod texts;

use super::constants::ConstantPool;
use super::devices::{Devices, SharedId};
use super::error::LowerError;
use super::protocol::state::{binding_size, deferred_size};
use super::protocol::{Capabilities, Capability, Demands, SignatureDescriptor, SignatureExtension, bindings_offset};
use crate::spec::{ParamType, Signature};
use encoder::Encoder;
pub(in crate::lower) use encoder::Options;
use expr::DimVars;
pub(in crate::lower) use texts::{Subject, shown};
use texts::{calling, expected};

/// The stack memory of a function that `bind` writes to: arguments that the fast path accepts, then its own state and
/// bindings.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Scratch {
    pub bytes: u32,
    /// The bytes of each [use](USES).
    parts: [i64; USES.len()],
}

/// The uses of the scratch memory, as named in messages. [`Encoder`] counts the first four.
const USES: [&str; 7] = [
    "tensors, their sizes and strides",
    "shapes",
    "strs and bytes",
    "tuples and containers",
    "arguments",
    "dimension variables and device ids, with where each is from",
    "dimensions that are expressions, with where each is",
];

impl Scratch {
    /// The max stack frame of a function, in bytes. A thread's stack may be as small as 512 KiB.
    pub(in crate::lower) const MOST: u32 = 128 << 10;

    /// The largest uses with their bytes, in descending order, without those below a tenth.
    pub(in crate::lower) fn largest(&self) -> Vec<(&'static str, u32)> {
        let mut parts: Vec<_> =
            USES.into_iter().zip(self.parts.map(|part| u32::try_from(part).unwrap_or(u32::MAX))).collect();
        parts.retain(|(_, bytes)| *bytes > self.bytes / 10);
        parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        parts.truncate(3);
        parts
    }
}

/// How messages describe the values that they are about.
#[derive(Clone, Copy)]
pub(in crate::lower) enum Wording<'a> {
    /// Arguments of the signature's function.
    Arguments,
    /// Values that aren't arguments. Their parameters have descriptions as names.
    Values {
        /// The location of the values: ``called by `f(x: int64)` ``.
        place: &'a str,
        /// The sources of the integers that precede the values.
        origins: &'a [&'a str],
    },
}

/// A signature's descriptor in the pool.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Encoded {
    /// Its offset.
    pub offset: u32,
    pub scratch: Scratch,
    /// Bytes of a variable's binding.
    pub binding_size: i64,
}

impl Wording<'_> {
    /// The name in messages of the parameter with that number.
    fn name_of<'n>(&self, number: usize, name: &'n str) -> &'n str
    where
        Self: 'n,
    {
        match self {
            Wording::Values { origins, .. } => origins.get(number).copied().unwrap_or(name),
            Wording::Arguments => name,
        }
    }

    /// The offset of the string between the subject of a message and the expected value.
    fn place_in(&self, pool: &mut ConstantPool, signature: &Signature) -> u32 {
        match self {
            Wording::Arguments => calling(pool, signature),
            Wording::Values { place, .. } => pool.text(&format!(" {place}, expected ")),
        }
    }
}

/// Writes a signature's descriptor into the pool.
///
/// # Errors
/// [`LowerError::Internal`].
pub(in crate::lower) fn encode(
    pool: &mut ConstantPool,
    signature: &Signature,
    devices: &Devices,
    options: Options,
) -> Result<Encoded, LowerError> {
    let encoded = encode_signature(pool, signature, devices, options, Wording::Arguments);
    encoded.map_err(|missing| internal(signature, missing))
}

/// Writes the descriptor of values that aren't arguments into the pool. `signature` has an integer for each of the
/// `origins`, then a parameter for each value.
///
/// # Errors
/// The message names a failed look-up that should never fail.
pub(in crate::lower) fn encode_values(
    pool: &mut ConstantPool,
    signature: &Signature,
    devices: &Devices,
    place: &str,
    origins: &[&str],
) -> Result<Encoded, String> {
    let options = Options { fold_all: false, forward_args: false };
    encode_signature(pool, signature, devices, options, Wording::Values { place, origins })
}

/// Writes the descriptor of the result that a kernel writes; returns its offset.
///
/// # Errors
/// The message names a failed look-up that should never fail.
pub(in crate::lower) fn encode_result(
    pool: &mut ConstantPool,
    signature: &Signature,
    ty: &ParamType,
) -> Result<u32, String> {
    result::result(pool, signature, ty)
}

fn internal(signature: &Signature, missing: String) -> LowerError {
    LowerError::Internal { function: signature.name().to_owned(), missing }
}

fn encode_signature(
    pool: &mut ConstantPool,
    signature: &Signature,
    devices: &Devices,
    options: Options,
    wording: Wording<'_>,
) -> Result<Encoded, String> {
    pool.ask(of_wrapper(signature, devices));
    let vars = DimVars::new(signature.names_in_dims());
    let mut e = Encoder::new(pool, devices, options, signature.dtype_policy(), vars);
    let passed = signature.passed().count();
    let mut params = Vec::new();
    for (number, param) in signature.passed().enumerate() {
        let name = wording.name_of(number, &param.name);
        let param = e.param(name, &param.ty, &expected(&param.ty), Some(&param.name))?;
        params.extend(e.pool.encoded(&param));
    }
    let first_constraint = e.constraints(signature.constraints())?;
    let (result_dims, first_result_dim) = e.result_dims(signature)?;
    let defaults = e.defaults(signature);
    let constraints = signature.constraints().len() as u32;
    let has_extension = defaults != 0 || constraints != 0 || result_dims != 0;
    let (min, max) = signature.arity();
    let arity = if min == max { max.to_string() } else { format!("{min} to {max}") };
    let mut bytes = Vec::new();
    if has_extension {
        let extension = SignatureExtension { defaults, constraints, first_constraint, result_dims, first_result_dim };
        bytes.extend(e.pool.encoded(&extension));
    }
    let start = bytes.len() as u32;
    let mut demands = Demands::empty();
    demands.set(Demands::FORWARD_ARGS, options.forward_args);
    demands.set(Demands::OWNED, signature.has_records());
    // larger signatures are rejected: their data doesn't fit in the wrapper's stack frame
    let count = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let descriptor = SignatureDescriptor {
        params: count(passed),
        min: count(min),
        vars: count(e.vars.len()),
        deferred: count(e.deferred),
        devices: devices.slots() as u8,
        binding_size: binding_size(e.deepest) as u8,
        demands: demands.bits(),
        has_extension: u8::from(has_extension),
        calling: wording.place_in(e.pool, signature),
        arity: match wording {
            Wording::Arguments => e.pool.text(&arity),
            Wording::Values { .. } => 0,
        },
    };
    bytes.extend(e.pool.encoded(&descriptor));
    bytes.extend(params);
    let bindings = (e.vars.len() + devices.slots()) as i64 * binding_size(e.deepest);
    let deferred = e.deferred as i64 * deferred_size(e.deepest);
    let [tensors, shapes, strings, containers] = e.memory.map(|bytes| bytes as i64);
    let parts = [tensors, shapes, strings, containers, bindings_offset(signature), bindings, deferred];
    let bytes_in_all: i64 = parts.iter().sum();
    let scratch = Scratch { bytes: u32::try_from(bytes_in_all).unwrap_or(u32::MAX), parts };
    let binding_size = binding_size(e.deepest);
    Ok(Encoded { offset: e.pool.signature(&bytes, start)?, scratch, binding_size })
}

/// The capabilities that no descriptor implies. The wrapper itself may read the binding of a returned tensor's device,
/// and the number of the subject of a failed check.
fn of_wrapper(signature: &Signature, devices: &Devices) -> Capabilities {
    let mut asked = Capabilities::default();
    asked.add_if(signature.has_locations(), Capability::Places);
    for tensor in signature.returned_tensors() {
        asked.add_if(devices.place(&tensor.device).1 == SharedId::OfSlot, Capability::SameDevice);
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::protocol::{CapabilityBit, TypeKind};
    use target_lexicon::Endianness;

    /// The capabilities that a signature's descriptors require, which are the same for both byte orders.
    fn asked(signature: &str, forward_args: bool) -> Capabilities {
        let signature: Signature = signature.parse().expect(signature);
        let [little, big] = [Endianness::Little, Endianness::Big].map(|order| {
            let mut pool = ConstantPool::new(order);
            let options = Options { fold_all: false, forward_args };
            encode(&mut pool, &signature, &Devices::of(&signature), options)
                .expect("every dimension variable has a number");
            if let Some(ret) = signature.ret() {
                encode_result(&mut pool, &signature, ret).expect("the result has a kind");
            }
            pool.capabilities()
        });
        assert_eq!(little, big);
        little
    }

    fn add_all(set: &mut Capabilities, capabilities: &[impl CapabilityBit]) {
        capabilities.iter().for_each(|capability| set.add(*capability));
    }

    /// Reading the descriptors finds exactly the expected kinds of types and other capabilities.
    #[test]
    fn descriptors_ask_for_what_they_say() {
        use Capability::*;
        use TypeKind as K;
        // a contiguous tensor on the CPU with a stated dtype
        let plain = [Ranked, Compact, DeviceType, SameDevice];
        let cases: &[(&str, &[TypeKind], &[Capability])] = &[
            ("f()", &[], &[]),
            ("f(x: int64, y: float64, b: bool, h: handle)", &[K::Signed, K::Float, K::Bool, K::Handle], &[]),
            ("f(x: uint8, y: float32)", &[K::Unsigned, K::Float], &[Narrow, Float32]),
            ("f(n: int64, x: Tensor([n, 4], float32))", &[K::Signed, K::Tensor], &[IntVar, Var, Const]),
            ("f(x: Tensor([n], float32), y: Tensor([2 * n], float32))", &[K::Tensor], &[Var, Expr]),
            ("f(x: Tensor([n], float32)) -> Tensor([n + 1], float32)", &[K::Tensor], &[Var, ResultDim]),
            ("f(x: Tensor([n], float32)) where n % 16 == 0", &[K::Tensor], &[Var, Constraint]),
            ("f(x: Optional[Tensor([4], float32)])", &[K::Optional, K::Tensor], &[Const]),
            (
                "f(xs: Array[Tuple[str, Tensor([n], float32)]])",
                &[K::Sequence, K::Tuple, K::Str, K::Tensor],
                &[Elements, Var],
            ),
            ("f(m: Map[str, int8])", &[K::Map, K::Str, K::Signed], &[Elements, Narrow]),
            ("f(s: Shape([n, 4]), t: Shape)", &[K::Shape], &[ShapeRank, Var, Const]),
            (r#"f(r: Record("R", n: int8, s: str))"#, &[K::Record, K::Signed, K::Str], &[Narrow]),
            (
                r#"f(t: Tuple[Record("R", n: int64)]) where t[0].n > 0"#,
                &[K::Tuple, K::Record, K::Signed],
                &[IntVar, Constraint],
            ),
            ("f(g: Function)", &[K::Object], &[ObjectIndex]),
            (r#"f(o: Object("my.Type"))"#, &[K::Object], &[ObjectKey]),
            (
                r#"f(a: int64 = 3, s: str = "x", b: bytes = "y")"#,
                &[K::Signed, K::Str, K::Bytes],
                &[Default, DefaultStr, DefaultBytes],
            ),
            (
                "f(a: Int(3), t: Bool(True), n: None, d: dtype, v: device, z: Any)",
                &[K::Int, K::True, K::None, K::DType, K::Device, K::Any],
                &[],
            ),
            (r#"f(x: Any) -> Object("my.Type")"#, &[K::Any], &[ResultKey]),
        ];
        for (signature, kinds, others) in cases {
            let mut expected = Capabilities::default();
            add_all(&mut expected, kinds);
            add_all(&mut expected, others);
            if kinds.contains(&K::Tensor) {
                add_all(&mut expected, &plain);
            }
            assert_eq!(asked(signature, false), expected, "{signature}");
        }
    }

    /// Capabilities from the words of a tensor's descriptor: rank, strides, dtype, device.
    #[test]
    fn tensors_ask_for_what_their_descriptors_say() {
        use Capability::*;
        let cases: &[(&str, &[Capability])] = &[
            ("Tensor([...], float32)", &[AnyRank, Compact, DeviceType, SameDevice, Fold]),
            ("Tensor([4], any)", &[Ranked, Const, Compact, AnyDType, DeviceType, SameDevice, Fold]),
            ("Tensor([4], float32, strides=[1])", &[Ranked, Const, Strided, DeviceType, SameDevice]),
            ("Tensor([4], float32, strides=any)", &[Ranked, Const, AnyStrides, DeviceType, SameDevice, Fold]),
            ("Tensor([4], float32, device=any)", &[Ranked, Const, Compact, AnyDevice, SameDevice, Fold]),
            (r#"Tensor([4], float32, device="cuda:1")"#, &[Ranked, Const, Compact, DeviceType, DeviceId]),
            (r#"Tensor([4], float32, device="cuda:any")"#, &[Ranked, Const, Compact, DeviceType, AnyDeviceId]),
            (r#"Tensor([4], float32, device="opencl")"#, &[Ranked, Const, Compact, DeviceType, SameDevice, Opaque]),
        ];
        for (tensor, others) in cases {
            let mut expected = Capabilities::default();
            expected.add(TypeKind::Tensor);
            add_all(&mut expected, others);
            assert_eq!(asked(&format!("f(x: {tensor})"), false), expected, "{tensor}");
        }
    }

    /// A capability that a convention requires.
    #[test]
    fn forwarded_arguments_are_a_capability() {
        assert!(!asked("f(x: int64)", false).has(Capability::ForwardArgs));
        assert!(asked("f(x: int64)", true).has(Capability::ForwardArgs));
    }

    /// The error about a variable without a number names it, and no number is substituted.
    #[test]
    fn a_var_without_a_number_is_missing() {
        let vars = DimVars::new(vec!["n", "m"]);
        assert_eq!(vars.number("m"), Ok(1));
        assert_eq!(vars.number("k"), Err("the number of the dimension variable k".to_owned()));
    }
}
