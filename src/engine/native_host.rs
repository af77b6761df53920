//! The interpreter's way out: calls of native functions whose signature is known only at run time.

use std::collections::HashMap;
use std::sync::Arc;

use super::code::Code;
use super::jit::Jit;
use crate::ir::interp::{Datum, Host};
use crate::ir::{FuncSig, FunctionBuilder, Linkage, MemFlags, Module, Type, verify};

/// Runs native code for the interpreter, with the same symbols as a [`Jit`], and so with the same results.
///
/// A call goes through a trampoline `fn(callee, args: *const u64, result: *mut u64)` that is compiled once for each
/// signature, from our own IR: calling conventions are the backend's business alone.
#[derive(Debug)]
pub struct NativeHost {
    jit: Jit,
    trampolines: HashMap<FuncSig, Arc<Code>>,
}

type Trampoline = unsafe extern "C" fn(*const u8, *const u64, *mut u64);

const NAME: &str = "trampoline";

impl NativeHost {
    /// A host with the symbols of `jit`.
    pub fn new(jit: Jit) -> Self {
        NativeHost { jit, trampolines: HashMap::new() }
    }

    fn trampoline(&mut self, sig: &FuncSig) -> Result<*const u8, String> {
        let code = match self.trampolines.get(sig) {
            Some(code) => code,
            None => {
                let module = verify(build(sig)).map_err(|e| format!("{e:?}"))?;
                let code = self.jit.load(&module).map_err(|e| e.to_string())?;
                self.trampolines.entry(sig.clone()).or_insert(code)
            }
        };
        code.function(NAME).ok_or_else(|| "the trampoline was not defined".to_owned())
    }
}

/// The trampoline of a signature. Every argument and the result has 8 bytes, of which it uses the lower ones
/// (targets are little-endian).
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
    fn resolve(&mut self, name: &str) -> Option<u64> {
        self.jit.symbols().resolve(name).map(|address| address.expose_provenance() as u64)
    }

    unsafe fn call(&mut self, address: u64, sig: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String> {
        if args.len() != sig.params.len() {
            return Err(format!("{} arguments for {sig}", args.len()));
        }
        if address == 0 {
            return Err(format!("call of a null pointer as {sig}"));
        }
        let words: Vec<u64> = args.iter().map(|&arg| arg.bits()).collect();
        let mut result = 0u64;
        let trampoline = self.trampoline(sig)?;
        // SAFETY: that is how `build` makes it, and `self.trampolines` keeps it.
        let trampoline: Trampoline = unsafe { std::mem::transmute(trampoline) };
        let callee = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: the caller vouches for the callee; the arrays are as long as the signature says.
        unsafe { trampoline(callee, words.as_ptr(), &raw mut result) };
        Ok(sig.ret.map(|ret| Datum::from_bits(ret.ty, result)))
    }
}
