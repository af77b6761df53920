//! Callees of a body: looked up once or at each call, addressed by symbol, or taken from a value.

use super::function::{BodyLowerer, Failure};
use super::held::Held;
use crate::ir::{FuncRef, Hint, IntCC, Linkage, MemFlags, Type, Value};
use crate::lower::abi::error::{KIND, MESSAGE};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX, store_any};
use crate::lower::encode::{Subject, shown};
use crate::lower::once::{self, Looked, NO_CONTEXT, NOT_FOUND};
use crate::lower::protocol::{Directive, Field, Piece};
use crate::lower::{capi, ffi_call};
use crate::spec::{Part, Signature};
use tvm_ffi_runtime::abi::{TypeIndex, symbol};

impl BodyLowerer<'_> {
    /// The calling function's name in messages. A C function with a location is reported as the function there,
    /// because users know that function.
    pub(super) fn caller(&self, shown: impl FnOnce(&Signature) -> String) -> String {
        match self.signature.location(Part::Signature).filter(|_| self.is_c) {
            Some(location) => location.function.clone(),
            None => shown(self.signature),
        }
    }

    /// Returns a global function, looked up once.
    pub(super) fn global(&mut self, name: &str) -> Value {
        self.looked_up(Looked::Global(name.to_owned()))
    }

    pub(super) fn looked_up(&mut self, looked: Looked) -> Value {
        let handle = self.handles.get(self.b.module(), self.prefix, &looked);
        if let Looked::Global(name) = &looked {
            let text = format!(
                "global function `{name}`, which `{}` calls, is not registered",
                self.caller(|signature| shown(signature, Subject::Call))
            );
            let template = self.pool.constants.template("RuntimeError", &[Piece::Text(&text)]);
            let exit = self.exit_target();
            let pool = self.pool.data;
            return self.b.structured(|c| once::load_global(c, handle, pool, template, exit).value());
        }
        // the failing block is known only after `load`, so its code is written afterwards
        let mut refused = None;
        let function =
            self.b.structured(|c| once::load(c, handle, |code| refused = Some((c.current(), code.value()))).value());
        if let Some((block, code)) = refused {
            let here = self.b.current();
            self.b.switch_to(block);
            self.refuse_look_up(&looked, code);
            self.b.switch_to(here);
        }
        function
    }

    /// Ends the current block with the error of a failed look-up, given its code.
    pub(super) fn refuse_look_up(&mut self, looked: &Looked, code: Value) {
        let caller = self.caller(Signature::to_string);
        let texts = match looked {
            // the look-up itself raises this error
            Looked::Global(_) => Vec::new(),
            Looked::Import(name) => vec![
                (
                    NOT_FOUND,
                    format!("no module that the library imports has the function `{name}`, which `{caller}` calls"),
                ),
                (
                    NO_CONTEXT,
                    format!(
                        "the library has no context, so `{caller}` can't call the function `{name}` of its imports"
                    ),
                ),
            ],
        };
        for (reason, text) in texts {
            let (told, next) = (self.b.cold_block(), self.b.cold_block());
            let is = self.b.icmp_imm(IntCC::Eq, code, reason);
            self.b.branch(is, told, next, Hint::None);
            self.b.switch_to(told);
            let template = self.pool.constants.template("RuntimeError", &[Piece::Text(&text)]);
            self.raise(Failure { template, values: Vec::new() });
            self.b.switch_to(next);
        }
        if let Looked::Import(name) = looked {
            self.refuse_import(name, code);
        }
        self.exit(code);
    }

    /// Replaces the error that the look-up of an import has raised, if any. That error names only the function; the new
    /// one names the caller as well.
    pub(super) fn refuse_import(&mut self, name: &str, code: Value) {
        let (take, known, next) = (self.b.cold_block(), self.b.cold_block(), self.b.cold_block());
        let raised = self.b.icmp_imm(IntCC::Eq, code, -1);
        self.b.branch(raised, take, next, Hint::None);
        self.b.switch_to(take);
        let error = self.b.structured(|c| ffi_call::take_raised(c).value());
        let there = self.b.icmp_imm(IntCC::Ne, error, 0);
        self.b.branch(there, known, next, Hint::None);
        self.b.switch_to(known);
        let any = self.any_slot();
        store_any(&mut self.b, any, TypeIndex::ERROR, error);
        let depth = self.exits.depth();
        self.hold(Held::Value(any));
        // copy the texts: strings of the runtime end with a NUL, but an error's own texts may not
        let texts = [KIND, MESSAGE].map(|text| {
            let array = self.b.ptr_add_imm(error, i64::from(text));
            let copy = self.any_slot();
            let make = capi::import(self.b.module(), capi::STRING_FROM_BYTE_ARRAY);
            if let Some(code) = self.b.call(make, &[array, copy]) {
                self.exit_unless_zero(code);
            }
            self.hold(Held::Value(copy));
            self.c_string(copy)
        });
        let text = format!(
            "the look-up of the function `{name}` of the library's imports, which `{}` calls: ",
            self.caller(Signature::to_string)
        );
        let string = |field| Piece::Value(Directive::String, field);
        let pieces = [Piece::Text(&text), string(0), Piece::Text(": "), string(1)];
        let template = self.pool.constants.template("RuntimeError", &pieces);
        self.raise(Failure { template, values: texts.to_vec() });
        self.exits.cut(depth);
        self.b.switch_to(next);
    }

    /// Looks up a global function now; it is held from now on.
    pub(super) fn global_now(&mut self, name: &str) -> Value {
        let data = self.constant(name.as_bytes().to_vec());
        let array = self.byte_array(data, name.len() as i64);
        let any = self.any_slot();
        let payload = self.b.ptr_add_imm(any, i64::from(PAYLOAD));
        let get = capi::import(self.b.module(), capi::FUNCTION_GET_GLOBAL);
        if let Some(code) = self.b.call(get, &[array, payload]) {
            self.exit_unless_zero(code);
        }
        let function = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
        let there = self.b.icmp_imm(IntCC::Ne, function, 0);
        let text = format!(
            "global function `{name}`, which `{}` calls, is not registered",
            self.caller(|signature| shown(signature, Subject::Call))
        );
        self.check(there, |l| Failure {
            template: l.pool.constants.template("RuntimeError", &[Piece::Text(&text)]),
            values: Vec::new(),
        });
        store_any(&mut self.b, any, TypeIndex::FUNCTION, function);
        self.hold(Held::Value(any));
        function
    }

    /// The function object at an address; raises an error if the value isn't a function.
    pub(super) fn function_at(&mut self, any: Value, name: &str) -> Value {
        let index = self.b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
        let payload = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
        let is = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::FUNCTION.0));
        let text = format!(
            "Mismatched type of {name}, which `{}` calls, expected Function, got ",
            self.caller(|signature| shown(signature, Subject::Call))
        );
        self.check(is, |l| {
            let got = l.b.convert(crate::ir::ConvertOp::SExt, Type::I64, index);
            let payload = l.b.convert(crate::ir::ConvertOp::PtrToInt, Type::I64, payload);
            let pieces = [Piece::Text(&text), Piece::Value(Directive::Type, Field::Got as u32)];
            Failure { template: l.pool.constants.template("TypeError", &pieces), values: vec![got, payload] }
        });
        payload
    }

    /// The wrapper of a function, referenced by its symbol.
    pub(super) fn wrapper(&mut self, name: &str) -> FuncRef {
        let symbol = format!("{}{}{name}", symbol::FUNCTION, self.prefix);
        let module = self.b.module();
        match module.function_named(&symbol) {
            Some((known, _)) => known,
            None => module.declare(symbol, ffi_call::safe_call_signature(), Linkage::Import),
        }
    }
}
