//! The interpreter's interface to native code: calls of native functions whose signature is known only at run time, and
//! addresses at which these call back.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::code::Code;
use super::jit::Jit;
use crate::ir::interp::{Callback, Datum, Host};
use crate::ir::{FuncSig, FunctionBuilder, Linkage, MemFlags, Module, Type, verify};

/// Runs native code for the interpreter, with the symbols of a [`Jit`], so it computes the same results.
///
/// A call goes through a trampoline `fn(callee, args: *const u64, result: *mut u64)`. It is compiled once per signature
/// from this crate's IR, so only the backend deals with calling conventions. A callback goes through a thunk that has
/// the function's own signature and is compiled for it.
///
/// A clone shares the trampolines but has its own thunks, which live as long as their host.
pub struct NativeHost {
    jit: Jit,
    trampolines: Rc<RefCell<HashMap<FuncSig, Arc<Code>>>>,
    thunks: RefCell<Vec<(Arc<Code>, Rc<Callback>)>>,
}

impl fmt::Debug for NativeHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeHost").field("jit", &self.jit).finish_non_exhaustive()
    }
}

impl Clone for NativeHost {
    fn clone(&self) -> Self {
        let (jit, trampolines) = (self.jit.clone(), Rc::clone(&self.trampolines));
        NativeHost { jit, trampolines, thunks: RefCell::default() }
    }
}

type Trampoline = unsafe extern "C" fn(*const u8, *const u64, *mut u64);

const NAME: &str = "trampoline";

impl NativeHost {
    /// A host with the symbols of `jit`.
    pub fn new(jit: Jit) -> Self {
        NativeHost { jit, trampolines: Rc::default(), thunks: RefCell::default() }
    }

    /// The trampoline's address, and the code that contains it.
    fn trampoline(&self, sig: &FuncSig) -> Result<(*const u8, Arc<Code>), String> {
        let known = self.trampolines.borrow().get(sig).cloned();
        let code = match known {
            Some(code) => code,
            None => {
                let code = self.compile(build(sig))?;
                self.trampolines.borrow_mut().insert(sig.clone(), Arc::clone(&code));
                code
            }
        };
        Ok((address(&code)?, code))
    }

    fn compile(&self, module: Module) -> Result<Arc<Code>, String> {
        let module = verify(module).map_err(|e| format!("{e:?}"))?;
        self.jit.load(&module).map_err(|e| e.to_string())
    }
}

/// The address of the code's only function.
fn address(code: &Code) -> Result<*const u8, String> {
    code.function(NAME).ok_or_else(|| format!("the {NAME} was not defined"))
}

/// Builds a function of the signature that passes its arguments to [`call_back`], each in the lower part of a word, and
/// returns its result.
fn build_thunk(sig: &FuncSig, callback: &Rc<Callback>) -> Module {
    let mut module = Module::new();
    let f = module.declare(NAME, sig.clone(), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let count = sig.params.len() as u32;
    let [args, result] = [count, 1].map(|words| b.slot(8 * words.max(1), 8));
    let [args, result] = [args, result].map(|slot| b.stack_addr(slot));
    for (i, param) in sig.params.iter().enumerate() {
        let at = 8 * i as i32;
        if param.ty.bytes() < 8 {
            let zero = b.i64(0);
            b.store(zero, args, at, MemFlags::ALIGNED);
        }
        b.store(b.param(i), args, at, MemFlags::ALIGNED);
    }
    let own = b.signature(FuncSig::new([Type::Ptr; 3], None));
    let callee = b.ptr_const((call_back as *const u8).expose_provenance() as u64);
    let context = b.ptr_const(Rc::as_ptr(callback).expose_provenance() as u64);
    b.call_indirect(own, callee, &[context, args, result]);
    let value = sig.ret.map(|ret| b.load(ret.ty, result, 0, MemFlags::ALIGNED));
    b.ret(value);
    b.finish();
    module
}

/// The function that thunks call.
unsafe extern "C" fn call_back(callback: *const Callback, args: *const u64, result: *mut u64) {
    // SAFETY: the thunk passes the address of a callback that its host keeps alive, and arrays of the signature's
    // length. The caller that runs the interpreted module has guaranteed the rest. No panic leaves the call.
    unsafe { (*callback).call(args, result) }
}

/// The trampoline of a signature. Every argument and the result takes 8 bytes; the value is in the lower ones (targets
/// are little-endian).
fn build(sig: &FuncSig) -> Module {
    let mut module = Module::new();
    let own = FuncSig::new([Type::Ptr; 3], None);
    let f = module.declare(NAME, own, Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let (callee, args, result) = (b.param(0), b.param(1), b.param(2));
    let values: Vec<_> =
        (0i32..).zip(&sig.params).map(|(i, param)| b.load(param.ty, args, 8 * i, MemFlags::ALIGNED)).collect();
    let sig = b.signature(sig.clone());
    if let Some(value) = b.call_indirect(sig, callee, &values) {
        b.store(value, result, 0, MemFlags::ALIGNED);
    }
    b.ret(None);
    b.finish();
    module
}

impl Host for NativeHost {
    fn resolve(&self, name: &str) -> Option<u64> {
        self.jit.symbols().resolve(name).map(|address| address.expose_provenance() as u64)
    }

    unsafe fn call(&self, address: u64, sig: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String> {
        if args.len() != sig.params.len() {
            return Err(format!("{} arguments for {sig}", args.len()));
        }
        if address == 0 {
            return Err(format!("call of a null pointer as {sig}"));
        }
        let words: Vec<u64> = args.iter().map(|&arg| arg.bits()).collect();
        let mut result = 0u64;
        let (trampoline, _code) = self.trampoline(sig)?;
        // SAFETY: `build` gives the trampoline this signature, and its code is kept alive here.
        let trampoline: Trampoline = unsafe { std::mem::transmute(trampoline) };
        let callee = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: the caller guarantees the callee's prototype, and the arrays are as long as the signature says.
        unsafe { trampoline(callee, words.as_ptr(), &raw mut result) };
        Ok(sig.ret.map(|ret| Datum::from_bits(ret.ty, result)))
    }

    fn callback(&self, sig: &FuncSig, callback: Callback) -> Result<u64, String> {
        let callback = Rc::new(callback);
        let code = self.compile(build_thunk(sig, &callback))?;
        let address = address(&code)?.expose_provenance() as u64;
        self.thunks.borrow_mut().push((code, callback));
        Ok(address)
    }
}
