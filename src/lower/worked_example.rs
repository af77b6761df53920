//! Generates the worked example of `docs/internals/worked-example.md`: one signature with its IR, its descriptors byte
//! by byte, and one failing call. The test regenerates it and compares, so the document stays correct.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::abi::{ANY_SIZE, PAYLOAD, TYPE_INDEX};
use super::protocol::{
    Binding, Descriptor, Descriptors, DimDescriptor, Encode, Field, ParamDescriptor, SignatureDescriptor,
    TensorDescriptor, bindings_offset, helpers,
};
use super::{Kernel, RuntimeHelpers, lower};
use crate::ir::interp::{Datum, Host, Interpreter};
use crate::ir::{FuncSig, FunctionBuilder, HOST_ENDIANNESS, Linkage, Type, verify};
use crate::spec::Signature;
use tvm_ffi_runtime::abi::{DLDataType, DLDevice, DLDeviceType, DLTensor, TVMFFIAny, TypeIndex};

const BLESS: &str = "TVM_FFI_CODEGEN_BLESS";
const DOCUMENT: &str = "docs/internals/worked-example.md";
const BEGIN: &str = "<!-- worked example: `lower::worked_example` writes it with TVM_FFI_CODEGEN_BLESS=1 -->\n";
const END: &str = "<!-- end of the worked example -->\n";

const SIGNATURE: &str = "add_one(x: Tensor([n], float32), y: Tensor([n], float32))";

#[test]
fn the_document_has_the_example_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DOCUMENT);
    let document = std::fs::read_to_string(&path).expect("the document is there");
    let (before, rest) = document.split_once(BEGIN).expect("the example's beginning is marked");
    let (found, after) = rest.split_once(END).expect("the example's end is marked");
    let example = example();
    if std::env::var_os(BLESS).is_some_and(|value| value == "1") {
        std::fs::write(&path, format!("{before}{BEGIN}{example}{END}{after}")).expect("the document can be written");
        return;
    }
    assert!(found == example, "{DOCUMENT} has another worked example; {BLESS}=1 writes it anew:\n{example}");
}

fn example() -> String {
    let signature: Signature = SIGNATURE.parse().expect("the signature has no errors");
    let kernel = Kernel::symbol("add_one_kernel");
    let prototype =
        super::c_prototype(&signature, "add_one_kernel", super::Convention::Flat, super::KernelReturn::Nothing)
            .expect("the kernel fits");
    let mut text = format!(
        "The signature is `{signature}`. Its kernel is this C function:

```c
{}
```

",
        prototype.trim()
    );
    ir(&signature, &kernel, &mut text);
    let pool = descriptors(&signature, &kernel, &mut text);
    failing_call(&signature, &kernel, pool, &mut text);
    text
}

/// Prints the functions of the wrapper, with the fast path marked.
fn ir(signature: &Signature, kernel: &Kernel, text: &mut String) {
    let module = lower(signature, kernel, RuntimeHelpers::Import).expect("the kernel fits");
    text.push_str(
        "## IR\n\nComments mark the blocks of the fast path. A call with two valid `ffi.Tensor`s runs through them, \
         from `block0` to the\ncall of the kernel. Nearly always it runs through no other block. All other blocks are \
         cold.\n\n```text\n",
    );
    let listing = module.to_string();
    let start = listing.find("export fn").expect("the wrapper is exported");
    let mut on_wrapper = false;
    for line in listing[start..].lines() {
        on_wrapper = line.starts_with("export fn") || (on_wrapper && !line.starts_with("local fn"));
        let marked = on_wrapper && line.starts_with("block") && !line.contains(" cold");
        let _ = writeln!(text, "{line}{}", if marked { "    ; fast path" } else { "" });
    }
    text.push_str("```\n\n");
}

/// The bytes of a pool, and the offset of the signature's descriptor.
struct EncodedPool {
    bytes: Vec<u8>,
    signature: u32,
}

impl EncodedPool {
    /// The string at an offset.
    fn text(&self, offset: u32) -> String {
        let bytes = &self.bytes[offset as usize..];
        let end = bytes.iter().position(|byte| *byte == 0).expect("texts end with a NUL");
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    fn read<D: Descriptor>(&self, offset: u32) -> D {
        Descriptors { bytes: &self.bytes, order: HOST_ENDIANNESS }.read(offset).expect("the descriptor is there")
    }

    /// Prints the fields of a descriptor, one line each: offset, bytes, name and value.
    fn show<D: Descriptor>(&self, offset: u32, what: &str, text: &mut String) {
        let _ = writeln!(text, "{what}: {} at {offset}", D::NAME);
        for (name, at, size) in D::FIELDS {
            let at = offset as usize + at;
            let bytes = &self.bytes[at..at + size];
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let value = bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
            let shown = match *name {
                "name" | "calling" | "arity" | "expected" | "dtype_text" | "device_text" => {
                    format!("{value} -> {:?}", self.text(value as u32))
                }
                "unused" => continue,
                _ if *size == 8 => {
                    let [low, high] = [value as u32, (value >> 32) as u32];
                    format!("{low}, {high} -> {:?}", self.text(high))
                }
                _ if *size == 4 => (value as i32).to_string(),
                _ if *size == 1 => (value as i8).to_string(),
                _ => value.to_string(),
            };
            let _ = writeln!(text, "  {at:>4}  {:<24} {name} = {shown}", hex.join(" "));
        }
    }
}

fn descriptors(signature: &Signature, kernel: &Kernel, text: &mut String) -> EncodedPool {
    let plan = super::plan::Plan::new(signature, kernel.stated_convention(), false);
    let mut unit = super::unit::Unit::new(HOST_ENDIANNESS);
    let options = super::encode::Options { fold_all: false, forward_args: false };
    let encoded =
        super::encode::encode(&mut unit.pool.constants, signature, &plan.devices, options).expect("look-ups succeed");
    let module = unit.finish();
    let data = module.data.values().next().expect("the pool is the first data");
    let pool = EncodedPool { bytes: data.bytes.clone(), signature: encoded.offset };
    let _ = write!(
        text,
        "## Descriptors\n\nFor this signature, the constant pool has {} bytes of descriptors and strings. The binder \
         needs {} bytes of scratch\nmemory. Each line shows an offset in the pool, the bytes there, and their field. If \
         a field is the offset of a string,\nthe string follows `->`. Both parameters share one type \
         descriptor.\n\n```text\n",
        pool.bytes.len(),
        encoded.scratch.bytes
    );
    pool.show::<SignatureDescriptor>(pool.signature, "the signature", text);
    let header: SignatureDescriptor = pool.read(pool.signature);
    let mut types = Vec::new();
    for number in 0..u32::from(header.params) {
        let at = pool.signature + (SignatureDescriptor::SIZE + number as usize * ParamDescriptor::SIZE) as u32;
        pool.show::<ParamDescriptor>(at, &format!("parameter {number}"), text);
        let param: ParamDescriptor = pool.read(at);
        if !types.contains(&param.ty) {
            types.push(param.ty);
        }
    }
    for ty in types {
        pool.show::<TensorDescriptor>(ty, "the type of both", text);
        let tensor: TensorDescriptor = pool.read(ty);
        for dim in 0..u32::try_from(tensor.rank).unwrap_or(0) {
            let at = ty + (TensorDescriptor::SIZE + dim as usize * DimDescriptor::SIZE) as u32;
            pool.show::<DimDescriptor>(at, &format!("dimension {dim}"), text);
        }
    }
    text.push_str("```\n\n");
    pool
}

/// A host with one function, which records the raised error.
#[derive(Default)]
struct Errors {
    /// Names of the imports, by number.
    imports: RefCell<Vec<String>>,
    /// The error's kind, and the parts of its message.
    raised: RefCell<Option<(String, Vec<String>)>>,
}

const SET_RAISED: &str = "TVMFFIErrorSetRaisedFromCStrParts";

impl Host for Errors {
    fn resolve(&self, name: &str) -> Option<u64> {
        self.imports.borrow_mut().push(name.to_owned());
        Some(self.imports.borrow().len() as u64)
    }

    unsafe fn call(&self, address: u64, _: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String> {
        let name = self.imports.borrow().get(address as usize - 1).cloned();
        let [Datum::Ptr(kind), Datum::Ptr(parts), Datum::I32(count)] = args else {
            return Err(format!("{name:?} was called"));
        };
        if name.as_deref() != Some(SET_RAISED) {
            return Err(format!("{name:?} was called"));
        }
        // SAFETY: the arguments follow the function's prototype (tvm/ffi/c_api.h): a C string, and an array with the
        // given length.
        let text = |at: u64| unsafe {
            std::ffi::CStr::from_ptr(std::ptr::with_exposed_provenance(at as usize)).to_string_lossy().into_owned()
        };
        // SAFETY: as above.
        let parts = unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u64>(*parts as usize), *count as usize)
        };
        self.raised.replace(Some((text(*kind), parts.iter().map(|part| text(*part)).collect())));
        Ok(None)
    }
}

/// The fields of the binder's state that this call uses, in order.
const FIELDS: [(Field, &str); 12] = [
    (Field::Got, "got"),
    (Field::Payload, "payload"),
    (Field::Expected, "expected"),
    (Field::Text, "text"),
    (Field::Arg, "arg"),
    (Field::Calling, "calling"),
    (Field::Path, "path"),
    (Field::Origin, "origin"),
    (Field::Var, "dimension variable"),
    (Field::Pool, "pool"),
    (Field::DeviceBindings, "device bindings"),
    (Field::Memory, "free memory"),
];

/// The initial contents of memory, to recognise words that were never written.
const UNTOUCHED: u64 = 0xa5a5_a5a5_a5a5_a5a5;

fn failing_call(signature: &Signature, kernel: &Kernel, pool: EncodedPool, text: &mut String) {
    let mut module = lower(signature, kernel, RuntimeHelpers::Define).expect("the kernel fits");
    // only generated code knows the pool's address
    let data = module.data.keys().next().expect("the pool is the first data");
    let (bind, _) = module.function_named(helpers::BIND_SYMBOL).expect("the binder is defined");
    let sig = FuncSig::new([Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32));
    let probe = module.declare("probe", sig, Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, probe);
    let table = b.data_addr(data, 0);
    let descriptor = b.iconst(Type::I32, i64::from(pool.signature));
    let args = [table, descriptor, b.param(0), b.param(1), b.param(2)];
    let code = b.call(bind, &args);
    b.ret(code);
    b.finish();
    let module = verify(module).expect("lowering makes valid IR");
    let mut interpreter = Interpreter::new(&module, Errors::default()).expect("the host has all imports");

    let (mut shapes, mut strides, mut elements) = ([[3i64], [5]], [[1i64], [1]], [[0f32; 5]; 2]);
    let tensors: [DLTensor; 2] = std::array::from_fn(|i| DLTensor {
        data: elements[i].as_mut_ptr().cast(),
        device: DLDevice { device_type: DLDeviceType::CPU, device_id: 0 },
        ndim: 1,
        dtype: DLDataType::FLOAT32,
        shape: shapes[i].as_mut_ptr(),
        strides: strides[i].as_mut_ptr(),
        byte_offset: 0,
    });
    let addresses: Vec<u64> = tensors.iter().map(|tensor| (&raw const *tensor).expose_provenance() as u64).collect();
    let mut args = vec![0u64; 2 * ANY_SIZE as usize / 8];
    for (i, address) in addresses.iter().enumerate() {
        args[i * 2] = u64::from(TypeIndex::DL_TENSOR_PTR.0 as u32);
        args[i * 2 + 1] = *address;
    }
    const _: () = assert!(ANY_SIZE == 16 && TYPE_INDEX == 0 && PAYLOAD == 8 && size_of::<TVMFFIAny>() == 16);
    let mut scratch = vec![UNTOUCHED; 128];
    let base = scratch.as_mut_ptr().expose_provenance() as u64;
    let args = [Datum::Ptr(args.as_ptr().expose_provenance() as u64), Datum::I64(2), Datum::Ptr(base)];
    // SAFETY: the arguments follow the ABI, and the scratch memory is larger than the descriptor requires.
    let code = unsafe { interpreter.run("probe", &args) }.expect("nothing traps");
    assert_eq!(code, Some(Datum::I32(-1i32 as u32)));
    let (kind, parts) = interpreter.host().raised.take().expect("an error was raised");

    let state = (2 * ANY_SIZE / 8) as usize;
    let word = |index: usize| scratch[index];
    let pool_address = word(state + Field::Pool as usize);
    let scratch_bytes = 8 * scratch.len() as u64;
    let named: BTreeMap<u64, String> =
        addresses.iter().zip(["x", "y"]).map(|(a, name)| (*a, format!("the DLTensor of {name}"))).collect();
    let show = |value: u64| match value {
        _ if named.contains_key(&value) => named[&value].clone(),
        0 => "0".to_owned(),
        _ if (base.saturating_sub(64)..base + scratch_bytes).contains(&value) => {
            format!("scratch {:+}", value.wrapping_sub(base) as i64)
        }
        _ if value == pool_address => "the pool".to_owned(),
        _ if (pool_address..pool_address + pool.bytes.len() as u64).contains(&value) => {
            let offset = (value - pool_address) as u32;
            format!("pool +{offset} {:?}", pool.text(offset))
        }
        // no system has memory at such low addresses
        _ if value < 1 << 20 => value.to_string(),
        // a string of the runtime helpers, after the signature's strings in the pool
        _ => "a string of the helpers".to_owned(),
    };
    text.push_str(
        "## A failing call\n\n`x` has 3 elements, and `y` has 5. The fast path compares the two sizes and goes to the \
         slow path. `bind` checks `x`,\nwrites an accepted argument for it, and binds `n` to 3. It then checks `y` up \
         to its size, where clause C5.11 fails. The\nscratch memory then contains:\n\n```text\n",
    );
    let mut row = |at: usize, name: &str| {
        if word(at) != UNTOUCHED {
            let _ = writeln!(text, "  {:>5}  {name:<28} {}", 8 * at, show(word(at)));
        }
    };
    for (i, name) in ["x", "y"].iter().enumerate() {
        row(2 * i, &format!("argument {name}: type index"));
        row(2 * i + 1, &format!("argument {name}: payload"));
    }
    for (field, name) in FIELDS {
        row(state + field as usize, &format!("state: {name}"));
    }
    let path = ["name", "member", "dim"];
    for (i, name) in path.iter().enumerate() {
        row(state + super::protocol::state::PATH as usize / 8 + i, &format!("present path: {name}"));
    }
    let bindings = bindings_offset(signature) as usize / 8;
    row(bindings, "binding of n: value");
    for (i, name) in path.iter().enumerate() {
        row(bindings + std::mem::offset_of!(Binding, path) / 8 + i, &format!("binding of n: path, {name}"));
    }
    let _ = write!(
        text,
        "```\n\n`bind` copies each accepted `DLTensor`. The payload is the copy's address minus the size of an object \
         header, so the\nfast path treats it as an `ffi.Tensor`. `bind` passes the number of a message template to \
         `report`. `report` replaces\nthe template's directives with the fields that they name, and raises a `{kind}` \
         with these parts:\n\n```text\n"
    );
    for part in &parts {
        let _ = writeln!(text, "  {part:?}");
    }
    let _ = write!(text, "```\n\nTogether they are the message:\n\n```text\n{kind}: {}\n```\n", parts.concat());
}
