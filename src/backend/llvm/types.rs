//! The IR's types and signatures as LLVM types.

use inkwell::AddressSpace;
use inkwell::context::ContextRef;
use inkwell::module::Module;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FloatType, FunctionType, IntType, PointerType};
use target_lexicon::Triple;

use crate::backend::c_abi::{CAbi, Scalars};
use crate::ir::{FuncSig, Type};

/// The types of one LLVM context.
#[derive(Clone, Copy)]
pub(super) struct Types<'ctx> {
    pub bool: IntType<'ctx>,
    pub i8: IntType<'ctx>,
    pub i16: IntType<'ctx>,
    pub i32: IntType<'ctx>,
    pub i64: IntType<'ctx>,
    pub i128: IntType<'ctx>,
    pub f32: FloatType<'ctx>,
    pub f64: FloatType<'ctx>,
    pub ptr: PointerType<'ctx>,
    context: ContextRef<'ctx>,
    /// How C functions of the code's target take structs; `None` if that isn't known.
    pub c_abi: Option<CAbi>,
}

impl<'ctx> Types<'ctx> {
    /// The types for a module's target. A module without a triple is for the host.
    pub(super) fn of_module(module: &Module<'ctx>) -> Self {
        let triple = module.get_triple().as_str().to_string_lossy().into_owned();
        let triple = if triple.is_empty() { Some(Triple::host()) } else { triple.parse().ok() };
        Types { c_abi: triple.as_ref().and_then(CAbi::of), ..Self::new(module.get_context()) }
    }

    /// The types without a target. Functions can't take structs by value.
    pub(super) fn new(context: ContextRef<'ctx>) -> Self {
        Types {
            bool: context.bool_type(),
            i8: context.i8_type(),
            i16: context.i16_type(),
            i32: context.i32_type(),
            i64: context.i64_type(),
            i128: context.i128_type(),
            f32: context.f32_type(),
            f64: context.f64_type(),
            ptr: context.ptr_type(AddressSpace::default()),
            context,
            c_abi: None,
        }
    }

    pub(super) fn of(&self, ty: Type) -> BasicTypeEnum<'ctx> {
        match ty {
            Type::F32 => self.f32.into(),
            Type::F64 => self.f64.into(),
            Type::Ptr => self.ptr.into(),
            _ => self.int(ty).into(),
        }
    }

    /// An integer type; non-integers count as 64 bits.
    pub(super) fn int(&self, ty: Type) -> IntType<'ctx> {
        match ty.bits() {
            1 => self.bool,
            8 => self.i8,
            16 => self.i16,
            32 => self.i32,
            _ => self.i64,
        }
    }

    pub(super) fn float(&self, ty: Type) -> FloatType<'ctx> {
        if ty == Type::F32 { self.f32 } else { self.f64 }
    }

    /// The call of a function outside the module that passes structs as C does; `None` if it is the plain one.
    pub(super) fn scalars(&self, sig: &FuncSig) -> Option<Scalars> {
        self.c_abi?.scalars(sig)
    }

    /// The type of a function outside the module.
    pub(super) fn outside(&self, sig: &FuncSig) -> FunctionType<'ctx> {
        let scalars = self.scalars(sig);
        self.function(scalars.as_ref().map_or(sig, |scalars| &scalars.sig))
    }

    /// The type of a function that the module defines.
    pub(super) fn function(&self, sig: &FuncSig) -> FunctionType<'ctx> {
        let params: Vec<BasicMetadataTypeEnum<'ctx>> = sig.params.iter().map(|p| self.of(p.ty).into()).collect();
        match sig.ret {
            Some(ret) => self.of(ret.ty).fn_type(&params, false),
            None => self.context.void_type().fn_type(&params, false),
        }
    }
}
