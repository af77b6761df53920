//! Functions created by a body: closures over values of the body.

use std::sync::Arc;

use super::args::Args;
use super::builder::{Body, BodyFn, Closure};
use super::calls::{CallArg, KnownOwned, Owned};
use super::expr::Ops;
use super::function::{BodyLowerer, Enclosing, Extra};
use super::held::Held;
use super::life::Life;
use super::pack::{self, Packed};
use super::param::ParamRef;
use super::take::Taken;
use crate::host::tree::Expr as Tree;
use crate::ir::{Hint, Linkage, MemFlags, Type, Val, Value};
use crate::lower::abi::fields::pair;
use crate::lower::abi::{ANY_SIZE, CELL_DATA, OBJECT_TYPE_INDEX, PAYLOAD, store_any, store_none};
use crate::lower::encode::{Subject, shown};
use crate::lower::value::Expected;
use crate::lower::{capi, ffi_call};
use crate::spec::{ParamType, Signature};
use tvm_ffi_runtime::abi::TypeIndex;

impl Body<'_> {
    /// Creates a function object that runs another body. It captures values; `captures` gives each value with its type,
    /// and the other body accesses it with [`captured`](Self::captured). The creating body owns the function object,
    /// and can pass it on or return it.
    ///
    /// The function keeps the captured values and the library with its code alive. In a JIT that library is the module
    /// of [`Engine::compile_module`](crate::Engine::compile_module), or of the function of
    /// [`Engine::compile`](crate::Engine::compile). If you call code of
    /// [`Engine::compile_code`](crate::Engine::compile_code), you must keep that code alive yourself.
    ///
    #[cfg_attr(feature = "_engine", doc = "```")]
    #[cfg_attr(not(feature = "_engine"), doc = "```text")]
    /// use tvm_ffi_codegen::runtime::Function;
    /// use tvm_ffi_codegen::{Engine, Kernel, ParamType, ScalarType, Signature};
    ///
    /// let signature: Signature = "adder(n: int64) -> Function".parse()?;
    /// let kernel = Kernel::body(|b| {
    ///     let inner = "add(x: int64) -> int64".parse().expect("a signature");
    ///     let captures = [(b.arg("n").into(), ParamType::from(ScalarType::Int64))];
    ///     let add = b.closure(&inner, captures, |b| b.ret(b.arg("x") + b.captured(0).value()));
    ///     b.ret_value(add.by_move());
    /// });
    /// // SAFETY: the bodies read no memory.
    /// let adder = unsafe { Engine::new()?.compile(&signature, &kernel)? };
    /// let add_two = adder.call((2,))?.cast::<Function>()?;
    /// drop(adder);
    /// assert_eq!(add_two.call((40,))?.cast::<i64>()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn closure<'b>(
        &'b self,
        signature: &Signature,
        captures: impl IntoIterator<Item = (CallArg<'b>, ParamType)>,
        build: impl Fn(&Body<'_>) + Send + Sync + 'static,
    ) -> Owned<'b> {
        const OPERATION: &str = "closure";
        self.is_in_graph(OPERATION);
        let (values, captured): (Vec<CallArg<'b>>, Vec<ParamType>) = captures.into_iter().unzip();
        let ops: &'b dyn Ops = self;
        let recorded =
            self.recorder().map(|recorder| values.iter().map(|value| recorder.arg(value)).collect::<Vec<_>>());
        let types = captured.clone();
        let build: BodyFn = Arc::new(build);
        let depth = self.emit(|l| l.exits.depth());
        let values = pack::evaluate_all(ops, OPERATION, &values);
        let any = self.value(|l| l.any_slot());
        let number = self.state.borrow().closures.len();
        if let Some(mut values) = values {
            let made = self.emit(|l| {
                values.push(l.library());
                let array = l.made_by("ffi.Array", &values);
                let symbol = format!("{}-closure-{number}", l.wrapper);
                let func = l.b.module().declare(symbol.clone(), ffi_call::safe_call_signature(), Linkage::Local);
                l.make_function(func, array, any);
                l.let_go(depth);
                Some((func, symbol))
            });
            if let Some((func, symbol)) = made {
                let (signature, build) = (signature.clone(), Arc::clone(&build));
                self.state.borrow_mut().closures.push(Closure { func, symbol, signature, build, captured });
            }
        }
        self.emit(|l| l.hold(Held::Value(any)));
        let (scope, loops) = (ops.scope(), self.emit(|l| Some(l.exits.loops())));
        let known = KnownOwned::Type(self.arena.ty(ParamType::Function));
        let owned = Owned { body: self, any, scope, known, loops };
        if let Some(values) = recorded {
            self.record_closure(owned, signature, values.into_iter().zip(types).collect(), &build);
        }
        owned
    }

    fn record_closure(&self, owned: Owned<'_>, signature: &Signature, values: Vec<(Tree, ParamType)>, build: &BodyFn) {
        let Some(recorder) = self.recorder() else { return };
        let captured: Vec<ParamType> = values.iter().map(|(_, ty)| ty.clone()).collect();
        let enclosing = Enclosing { wrapper: "a closure", is_c: false, captured: &captured };
        match super::record(signature, enclosing, &**build, recorder.images()) {
            Ok(block) => recorder.closure(owned, signature, values, block),
            Err(error) => self.error("closure", error.to_string()),
        }
    }

    /// A value captured by the function, by its index among the captures of [`closure`](Self::closure).
    pub fn captured(&self, index: usize) -> ParamRef<'_> {
        let ops: &dyn Ops = self;
        let life = ops.life();
        let found = self.emit(|l| Some(l.captured_value(index, life)));
        let args = match found {
            Some(Ok(args)) => args,
            Some(Err(problem)) => {
                self.error(format!("captured({index})"), problem);
                return ParamRef { body: self, args: self.args, node: None };
            }
            None => return ParamRef { body: self, args: self.args, node: None },
        };
        let args = self.arena.args(args);
        let param = ParamRef { body: self, args, node: args.params.first() };
        self.recorder().inspect(|recorder| recorder.captured(index, param));
        param
    }
}

impl BodyLowerer<'_> {
    /// The module that contains the code, as an argument; None if the module isn't set.
    fn library(&mut self) -> Packed {
        let context = self.handles.context(self.b.module(), self.prefix);
        let order = self.b.module().endianness;
        let [word, handle] = self.b.structured(|c| {
            let context = c.data(context, 0).load_acquire();
            let [look, join] = c.blocks();
            let found = [Type::I64, Type::Ptr].map(|ty| c.block_param(join, ty));
            let (none, some) = (c.i64(pair(order, 0, 0)), c.i64(pair(order, TypeIndex::MODULE.0 as u32, 0)));
            let null = c.null();
            c.branch_with(context.is_not(0), (look, &[]), (join, &[none, null]), Hint::Likely);
            c.switch_to(look);
            // The context is the module's handle in our runtime. In upstream's runtime it is the address of a C++
            // object: a pointer to its virtual functions, followed by the object header. The type index distinguishes
            // the two: where one layout has it, the other has a part of an address or a reference count.
            let behind = context + 8;
            let [is_behind, is_here] =
                [behind, context].map(|object| object.load(Type::I32, OBJECT_TYPE_INDEX).is(TypeIndex::MODULE.0));
            let object = is_behind.select(behind, is_here.select(context, null));
            c.jump(join, &[object.is_not(0).select(some, none), object]);
            c.switch_to(join);
            found.map(Val::value)
        });
        Packed::Words(word, handle)
    }

    /// Creates a function object that takes over the array at an address.
    fn make_function(&mut self, func: crate::ir::FuncRef, array: Value, any: Value) {
        let object = self.b.load(Type::Ptr, array, PAYLOAD, MemFlags::ALIGNED);
        let code = self.b.func_addr(func);
        // The function's deleter releases the array, which may unload the library that contains the code. So the
        // deleter must be the runtime's own function. Its C prototype differs only in a result, which the caller
        // ignores.
        let dec_ref = capi::import(self.b.module(), capi::OBJECT_DEC_REF);
        let deleter = self.b.func_addr(dec_ref);
        let out = self.b.slot(8, 8);
        let out = self.b.stack_addr(out);
        let create = capi::import(self.b.module(), capi::FUNCTION_CREATE);
        if let Some(code) = self.b.call(create, &[object, code, deleter, out]) {
            self.exit_unless_zero(code);
        }
        store_none(&mut self.b, array);
        let function = self.b.load(Type::Ptr, out, 0, MemFlags::ALIGNED);
        store_any(&mut self.b, any, TypeIndex::FUNCTION, function);
    }

    fn captured_value(&mut self, index: usize, life: Life) -> Result<Args, String> {
        let Some(ty) = self.captured.get(index) else {
            return Err(format!("the function has captured {} values", self.captured.len()));
        };
        let path = format!("captured value #{index}");
        let array = self.extra(Extra::Handle);
        let data = self.b.load(Type::Ptr, array, CELL_DATA, MemFlags::ALIGNED);
        let any = self.b.ptr_add_imm(data, index as i64 * i64::from(ANY_SIZE));
        let expected = Expected {
            values: vec![(path.clone(), ty.clone())],
            place: format!("of `{}`", shown(self.signature, Subject::Call)),
            dtype_policy: self.signature.dtype_policy(),
            known: Vec::new(),
        };
        let mut args = self.checked_values(expected, Taken { any, life, is_owned: false }, &path, ty)?;
        args.is_captured = true;
        Ok(args)
    }
}
