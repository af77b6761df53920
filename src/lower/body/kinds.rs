//! Questions of a body about values of type `Any`, and taking such a value as a type.

use super::calls::Owned;
use super::expr::{Expr, Ops};
use super::function::BodyLowerer;
use super::life::Life;
use super::param::ParamRef;
use super::take::Taken;
use crate::ir::{BinaryOp, FuncRef, FuncSig, IntCC, MemFlags, Module, Type, Value};
use crate::lower::abi::{OBJECT_TYPE_INDEX, PAYLOAD, TYPE_INDEX, byte_array};
use crate::lower::{capi, ffi_call};
use crate::names::{self, UnknownName};
use crate::spec::{ParamType, ScalarType};
use std::mem::offset_of;
use std::str::FromStr;
use tvm_ffi_runtime::abi::{TVMFFITypeInfo, TypeIndex};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $name:literal $($index:ident)*;)*) => {
        /// The kind of a value of type `Any`, with the name that messages show (`docs/reference/contract.md`, C7.1).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        #[allow(missing_docs)] // the names are the field's own
        pub enum ValueKind {
            $($(#[$doc])* $variant,)*
        }

        impl ValueKind {
            /// Every kind.
            pub const ALL: &'static [ValueKind] = &[$(ValueKind::$variant),*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ValueKind::$variant => $name,)*
                }
            }

            /// The type indices of its values.
            fn indices(self) -> &'static [TypeIndex] {
                match self {
                    $(ValueKind::$variant => &[$(TypeIndex::$index),*],)*
                }
            }
        }
    };
}

kinds! {
    None "None" NONE;
    Bool "bool" BOOL;
    /// An integer of 64 bits.
    Int "int" INT;
    Float "float" FLOAT;
    /// An opaque pointer.
    Handle "handle" OPAQUE_PTR;
    DType "dtype" DATA_TYPE;
    Device "device" DEVICE;
    Str "str" SMALL_STR STR RAW_STR;
    Bytes "bytes" SMALL_BYTES BYTES BYTE_ARRAY_PTR;
    Tensor "Tensor" TENSOR DL_TENSOR_PTR;
    Error "Error" ERROR;
    Function "Function" FUNCTION;
    Module "Module" MODULE;
    Shape "Shape" SHAPE;
    Array "Array" ARRAY;
    List "List" LIST;
    Map "Map" MAP;
    Dict "Dict" DICT;
}

impl FromStr for ValueKind {
    type Err = UnknownName;

    /// Parses [`ValueKind::name`].
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Self::ALL, Self::name)
    }
}

#[expect(clippy::return_self_not_must_use, reason = "a body may leave a value unused")]
impl<'b> ParamRef<'b> {
    /// Whether a value of type `Any` is of that kind. [`cast`](Self::cast) takes the value.
    pub fn is_kind(self, kind: ValueKind) -> Expr<'b> {
        let any = self.any("is_kind");
        let is_it = any.map_or_else(|| self.body.zero(ScalarType::Bool), |any| is_kind(self.body, any, kind));
        is_it.recorded(|recorder| recorder.is_value_kind(recorder.param(self), kind.name()))
    }

    /// Whether a value of type `Any` is an object of the type with that key, or of a type derived from it. No value is
    /// of a type that isn't registered.
    pub fn is_object(self, type_key: &str) -> Expr<'b> {
        let any = self.any("is_object");
        let is_it = any.map_or_else(|| self.body.zero(ScalarType::Bool), |any| is_object(self.body, any, type_key));
        is_it.recorded(|recorder| recorder.is_object(recorder.param(self), type_key))
    }

    /// A value of type `Any` as the stated type, with the same checks and conversions as a parameter's. The owner of
    /// the value stays as it is.
    pub fn cast(self, ty: impl Into<ParamType>) -> ParamRef<'b> {
        const OPERATION: &str = "cast_any";
        let (body, ty) = (self.body, ty.into());
        let missing = ParamRef { node: None, ..self };
        let Some(any) = self.any(OPERATION) else { return missing };
        if ty.is_of_parameters() {
            body.note(OPERATION, format!("an {ty} is no value"));
            return missing;
        }
        let life = Life { part_of: self.args.life.part_of, ..body.life() };
        let value = Taken { any, life, is_owned: false };
        match body.emit(|l| Some(l.checked_value(value, self.path(), "of", &ty))) {
            Some(Ok(args)) => {
                let args = body.arena().args(args);
                body.recorder().inspect(|recorder| recorder.cast_any(recorder.param(self), args, ty.clone()));
                ParamRef { body, args, node: args.params.first() }
            }
            Some(Err(problem)) => {
                body.note(OPERATION, problem);
                missing
            }
            None => missing,
        }
    }

    /// The address of the `TVMFFIAny` of a value of type `Any`; otherwise records an error.
    fn any(self, operation: &str) -> Option<Value> {
        let node = self.alive(operation).node?;
        if node.ty == ParamType::Any {
            return Some(self.value().used(operation).value);
        }
        let problem =
            format!("`{}: {}` has a stated type; only values of type `Any` have another one", node.path, node.ty);
        self.body.note(operation, problem);
        None
    }
}

impl<'b> Owned<'b> {
    /// Whether the value is of that kind, such as the value of a [variable](super::Variable::get).
    pub fn is_kind(self, kind: ValueKind) -> Expr<'b> {
        let is_it = is_kind(self.body, self.used("is_kind").any, kind);
        is_it.recorded(|recorder| recorder.is_value_kind(recorder.owned(self), kind.name()))
    }

    /// Whether the value is an object of the type with that key, or of a type derived from it. No value is of a type
    /// that isn't registered.
    pub fn is_object(self, type_key: &str) -> Expr<'b> {
        let is_it = is_object(self.body, self.used("is_object").any, type_key);
        is_it.recorded(|recorder| recorder.is_object(recorder.owned(self), type_key))
    }
}

fn is_kind<'b>(body: &'b dyn Ops, any: Value, kind: ValueKind) -> Expr<'b> {
    let is_it = body.value(|l| {
        let index = l.b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
        let same = kind.indices().iter().map(|known| l.b.icmp_imm(IntCC::Eq, index, i64::from(known.0)));
        let same: Vec<Value> = same.collect();
        let found = same.into_iter().reduce(|any, one| l.b.binary(BinaryOp::Or, any, one));
        found.unwrap_or_else(|| l.b.bconst(false))
    });
    Expr::new(body, is_it, ScalarType::Bool)
}

fn is_object<'b>(body: &'b dyn Ops, any: Value, type_key: &str) -> Expr<'b> {
    if type_key.is_empty() || type_key.contains('\0') {
        body.note("is_object", "the type key is empty or holds a NUL byte".to_owned());
        return body.zero(ScalarType::Bool);
    }
    let is_it = body.value(|l| l.is_object(any, type_key));
    Expr::new(body, is_it, ScalarType::Bool)
}

impl BodyLowerer<'_> {
    fn is_object(&mut self, any: Value, type_key: &str) -> Value {
        let text = self.pool.constants.text(type_key);
        let key = self.b.data_addr(self.pool.data, text);
        let len = self.b.i64(type_key.len() as i64);
        let function = object_of_key(self.b.module());
        match self.b.call(function, &[any, key, len]) {
            Some(is_it) => self.b.icmp_imm(IntCC::Ne, is_it, 0),
            None => self.b.bconst(false),
        }
    }
}

/// `int32_t is_object(const TVMFFIAny* value, const char* key, int64_t len)`: returns 1 if a value is an object of the
/// type with a key, or of a type derived from it.
fn object_of_key(module: &mut Module) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_is_object";
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::I64], Some(Type::I32));
    module.cold_local_once(NAME, sig, |c| {
        let [any, key, len] = c.params();
        let no = || c.ret(c.i32(0));
        let index = any.load(Type::I32, TYPE_INDEX);
        c.require(index.ge(TypeIndex::STATIC_OBJECT_BEGIN.0), no);
        let object = any.load(Type::Ptr, PAYLOAD);
        c.require(object.is_not(0), no);
        let wanted = c.var(Type::I32);
        wanted.set(c.i32(-1));
        let code = capi::result(c, capi::TYPE_KEY_TO_INDEX, &[byte_array(c, key, len), wanted.address()]);
        c.require(code.is(0), || {
            ffi_call::drop_raised(c);
            no();
        });
        let wanted = wanted.get();
        c.require(index.is_not(wanted), || c.ret(c.i32(1)));
        // Only an object whose header has the same index is known to be of a registered type. Upstream's
        // TVMFFIGetTypeInfo ends the process on an unknown index.
        c.require(object.load(Type::I32, OBJECT_TYPE_INDEX).is(index), no);
        let [info, base] = [index, wanted].map(|index| capi::result(c, capi::GET_TYPE_INFO, &[index]));
        c.require(info.is_not(0) & base.is_not(0), no);
        // the depth of a type is its position among the ancestors of a derived type
        let depth = offset_of!(TVMFFITypeInfo, type_depth) as i32;
        let of_base = base.load(Type::I32, depth);
        c.require(of_base.lt(info.load(Type::I32, depth)), no);
        let ancestors = info.load(Type::Ptr, offset_of!(TVMFFITypeInfo, type_ancestors) as i32);
        let ancestor = ancestors.element(of_base.sext(), Type::Ptr).load(Type::Ptr, 0);
        let same = ancestor.load(Type::I32, offset_of!(TVMFFITypeInfo, type_index) as i32).is(wanted);
        c.ret(same.select(c.i32(1), c.i32(0)));
    })
}
