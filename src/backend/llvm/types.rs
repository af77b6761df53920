//! The IR's types and signatures as LLVM types.

use inkwell::AddressSpace;
use inkwell::context::ContextRef;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FloatType, FunctionType, IntType, PointerType};

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
}

impl<'ctx> Types<'ctx> {
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

    pub(super) fn function(&self, sig: &FuncSig) -> FunctionType<'ctx> {
        let params: Vec<BasicMetadataTypeEnum<'ctx>> = sig.params.iter().map(|p| self.of(p.ty).into()).collect();
        match sig.ret {
            Some(ret) => self.of(ret.ty).fn_type(&params, false),
            None => self.context.void_type().fn_type(&params, false),
        }
    }
}
