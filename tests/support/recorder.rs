//! A kernel for any signature, which notes every argument that it receives.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use tvm_ffi_codegen::engine::Code;
use tvm_ffi_codegen::ir::{self, ConvertOp, Extension, FuncSig, FunctionBuilder, Linkage, MemFlags, Module, Type};
use tvm_ffi_codegen::lower::flat_signature;
use tvm_ffi_codegen::runtime::abi::{DLTensor, TVMFFIAny, TVMFFIObject};
use tvm_ffi_codegen::runtime::{Any, AnyView, Array, Bytes, Dict, Function, List, Map, ObjectRef, Shape};
use tvm_ffi_codegen::{Kernel, KernelReturn, ParamType, ScalarType, Signature};

use super::args::new_object;
use super::exec::UNOPTIMISED;
use super::kernels::{Noted, note};
use super::layout::{Gives, Slot, gives, layout};
use super::modules;
use super::value::Thing;
use super::{half, show};

/// The data that the code of a recorder refers to.
struct Recorder {
    slots: Vec<Slot>,
    returns: Option<ParamType>,
}

/// The code of a recorder, with the data that it refers to.
struct Made {
    code: Arc<Code>,
    _recorder: Box<Recorder>,
}

thread_local! {
    static MADE: RefCell<HashMap<Signature, Made>> = RefCell::new(HashMap::new());
}

const SYMBOL: &str = "recorder";

/// The recorder for a signature. It lives as long as the current thread.
pub fn kernel(signature: &Signature) -> Result<Kernel, String> {
    let returns = match gives(signature) {
        Gives::Nothing | Gives::Tensor => KernelReturn::Nothing,
        Gives::Value => KernelReturn::Value,
        Gives::Written => KernelReturn::Status,
    };
    let known = MADE.with_borrow(|made| made.get(signature).map(|made| made.code.clone()));
    let code = match known {
        Some(code) => code,
        None => {
            let made = compile(signature, flat_signature(signature, returns).map_err(|e| e.to_string())?)?;
            let code = made.code.clone();
            MADE.with_borrow_mut(|all| all.insert(signature.clone(), made));
            code
        }
    };
    let address = code.function(SYMBOL).ok_or("the recorder was not defined")?;
    let kernel = Kernel::address(address.cast::<u8>());
    // the signature determines the result, except for the choice between nothing and a status
    Ok(if returns == KernelReturn::Status { kernel.returns(returns) } else { kernel })
}

fn compile(signature: &Signature, prototype: FuncSig) -> Result<Made, String> {
    let slots = layout(signature);
    let words: usize = slots.iter().map(|slot| slot.words()).sum();
    if words != prototype.params.len() {
        return Err(format!(
            "the contract gives the kernel of `{signature}` {words} words, its prototype is {prototype}"
        ));
    }
    let recorder = Box::new(Recorder { slots, returns: signature.ret().cloned() });
    let mut module = Module::new();
    let function = module.declare(SYMBOL, prototype.clone(), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, function);
    let slot = b.slot(8 * words.max(1) as u32, 8);
    let to = b.stack_addr(slot);
    for (i, param) in prototype.params.iter().enumerate() {
        let value = b.param(i);
        let whole = match param.ty {
            Type::I8 | Type::I16 | Type::I32 if param.ext == Extension::Signed => {
                b.convert(ConvertOp::SExt, Type::I64, value)
            }
            Type::I8 | Type::I16 | Type::I32 => b.convert(ConvertOp::ZExt, Type::I64, value),
            _ => value,
        };
        let offset = 8 * i as i32;
        if param.ty == Type::F32 {
            let zero = b.i64(0);
            b.store(zero, to, offset, MemFlags::ALIGNED);
        }
        b.store(whole, to, offset, MemFlags::ALIGNED);
    }
    let receive: unsafe extern "C" fn(*const u64, *const Recorder) = receive;
    let callee = b.ptr_const((receive as *const c_void).expose_provenance() as u64);
    let noted = b.ptr_const((&raw const *recorder).expose_provenance() as u64);
    let prototype_of_receive = b.signature(FuncSig::new([Type::Ptr; 2], None));
    b.call_indirect(prototype_of_receive, callee, &[to, noted]);
    let result = prototype.ret.map(|ret| match ret.ty {
        Type::F32 => b.f32(1.0),
        Type::F64 => b.f64(1.0),
        Type::Ptr => b.ptr_const(1),
        ty => b.iconst(ty, word_returned(signature)),
    });
    b.ret(result);
    b.finish();
    let module = ir::verify(module).map_err(|e| e.to_string())?;
    let code = UNOPTIMISED.jit().load(&module).map_err(|e| e.to_string())?;
    Ok(Made { code, _recorder: recorder })
}

/// The integer that a recorder returns.
fn word_returned(signature: &Signature) -> i64 {
    match signature.ret() {
        Some(ParamType::Scalar(_)) => 1,
        // int8
        Some(ParamType::DType) => 0x0001_0800,
        // cpu:0
        Some(ParamType::Device) => 1,
        // success
        _ => 0,
    }
}

/// The result of a call of a recorder, in printed form; `None` if the recorder returns nothing or the wrapper allocates
/// the result.
pub fn result(signature: &Signature) -> Option<String> {
    let text = match signature.ret()? {
        ParamType::Tensor(_) | ParamType::Tuple(_) => return None,
        ParamType::Scalar(ScalarType::Bool) => "bool true",
        ParamType::Scalar(ScalarType::Handle) => "handle 0x1",
        ParamType::Scalar(ScalarType::Float32 | ScalarType::Float64) => "float 1",
        // the value of the bits 1
        ParamType::Scalar(ty) if ty.is_float() => return show::plain(3, half::value(*ty, 1).to_bits()),
        ParamType::Scalar(_) => "int 1",
        ParamType::DType => "dtype int8",
        ParamType::Device => "device cpu",
        ty => return Some(show::value(&made(ty))),
    };
    Some(text.to_owned())
}

/// A value of the type, which a recorder writes as its result.
fn made(ty: &ParamType) -> Any {
    match ty {
        ParamType::Bytes => Bytes::new(b"\0from a recorder").into(),
        ParamType::Function => Function::from_packed(|_| Ok(().into())).into(),
        ParamType::Module => modules::empty("recorder").into(),
        ParamType::Shape(_) => Shape::new(&[1, 2]).into(),
        ParamType::Object(key) if *key == *"ffi.Function" => made(&ParamType::Function),
        ParamType::Object(_) => new_object(Thing::Sub),
        ParamType::Array(_) => [1, 2].into_iter().collect::<Array>().into(),
        ParamType::List(_) => [1, 2].into_iter().collect::<List>().into(),
        ParamType::Map(..) => Map::try_from_entries([("a", 1)]).unwrap().into(),
        ParamType::Dict(..) => Dict::try_from_entries([("a", 1)]).unwrap().into(),
        _ => Any::from("from a recorder"),
    }
}

/// # Safety
/// The words correspond to the recorder's slots, and the call hasn't returned.
unsafe extern "C" fn receive(words: *const u64, recorder: *const Recorder) {
    // SAFETY: the code has the address of its own recorder, which is never freed.
    let Recorder { slots, returns } = unsafe { &*recorder };
    let mut at = 0;
    for slot in slots {
        // SAFETY: the slots have that many words in total.
        let (first, second) = unsafe { (words.add(at).read(), words.add(at + slot.words() - 1).read()) };
        at += slot.words();
        if *slot == Slot::Result {
            let value = returns.as_ref().map_or_else(Any::none, made);
            // SAFETY: the wrapper passes a pointer to the result.
            unsafe { address::<TVMFFIAny>(first).cast_mut().write(value.into_raw()) };
            continue;
        }
        // SAFETY: the kernel's pointers refer to the objects in the contract's table.
        note(unsafe { read(*slot, first, second as usize) });
        if slot.words() == 2 {
            note([Noted::Word(second)]);
        }
    }
}

fn address<T>(word: u64) -> *const T {
    std::ptr::with_exposed_provenance(word as usize)
}

/// # Safety
/// An address points to the kind of object of the slot; `size` is the second word.
unsafe fn read(slot: Slot, word: u64, size: usize) -> Vec<Noted> {
    if word == 0 || slot == Slot::Word {
        return vec![Noted::Word(word)];
    }
    // SAFETY: the caller's promise.
    let text = unsafe {
        match slot {
            Slot::Str => show::text("str", std::slice::from_raw_parts(address(word), size)),
            Slot::Bytes => show::text("bytes", std::slice::from_raw_parts(address(word), size)),
            Slot::Shape => show::shape(std::slice::from_raw_parts(address(word), size)),
            Slot::Array => {
                let values = std::slice::from_raw_parts(address::<TVMFFIAny>(word), size);
                let values = values.iter().map(|raw| show::brief(AnyView::from_raw(*raw)));
                show::sequence("Array", &values.collect::<Vec<_>>())
            }
            Slot::Any => show::brief(AnyView::from_raw(address::<TVMFFIAny>(word).read())),
            Slot::Object => {
                let object = ObjectRef::clone_from_raw(address::<TVMFFIObject>(word).cast_mut());
                show::brief(Any::from(object).as_view())
            }
            Slot::Tensor => {
                let tensor = &*address::<DLTensor>(word);
                let data = tensor.data.expose_provenance() as u64;
                return vec![show::descriptor(tensor).into(), Noted::Word(data), Noted::Word(tensor.byte_offset)];
            }
            Slot::Memory => "memory".to_owned(),
            Slot::Word | Slot::Result => String::new(),
        }
    };
    vec![Noted::Text(text)]
}
