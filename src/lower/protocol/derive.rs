//! Derives the capabilities that finished descriptors and message templates require. Reads them from the constant pool
//! in the same way as the runtime helpers.

use super::capability::{Capabilities, Capability};
use super::descriptor::{
    ANY_ID, DefaultDescriptor, Demands, DimDescriptor, DimKind, MapDescriptor, ObjectDescriptor, OptionalDescriptor,
    ParamDescriptor, RecordDescriptor, ResultDescriptor, ResultKind, ScalarDescriptor, SequenceDescriptor,
    ShapeDescriptor, SignatureDescriptor, SignatureExtension, TensorDescriptor, TensorFlags, TupleDescriptor,
    TypeDescriptor, TypeKind,
};
use super::layout::{Descriptors, Encode, offset};
use super::template::{Directive, TEXT};
use tvm_ffi_runtime::abi::TypeIndex;

/// The capabilities that the signature's descriptor at an offset requires of `bind`.
///
/// # Errors
/// A descriptor is missing; the message says which.
pub(in crate::lower) fn of_signature(pool: Descriptors<'_>, offset: u32) -> Result<Capabilities, String> {
    let mut walk = Walk { pool, found: Capabilities::default() };
    walk.signature(offset)?;
    Ok(walk.found)
}

/// The capabilities that the result's descriptor at an offset requires of `take_result`.
///
/// # Errors
/// The same as for [`of_signature`].
pub(in crate::lower) fn of_result(pool: Descriptors<'_>, offset: u32) -> Result<Capabilities, String> {
    let result: ResultDescriptor = pool.read(offset)?;
    let mut found = Capabilities::default();
    found.add_if(ResultKind::of_number(result.kind)? == ResultKind::Key, Capability::ResultKey);
    Ok(found)
}

/// The directives of a finished template. Each requires the capability of `report` to print it.
pub(in crate::lower) fn of_template(template: &[u8]) -> Capabilities {
    let mut found = Capabilities::default();
    let mut rest = template;
    while let Some((&code, behind)) = rest.split_first() {
        let directive = Directive::of_code(code);
        if let Some(directive) = directive {
            found.add(directive);
        }
        let has_text = TEXT.contains(&code) || matches!(directive, Some(Directive::Text | Directive::Stated));
        let text = if has_text { behind.iter().position(|byte| *byte == 0) } else { None };
        rest = text.and_then(|end| behind.get(end + 1..)).unwrap_or(behind);
    }
    found
}

struct Walk<'a> {
    pool: Descriptors<'a>,
    found: Capabilities,
}

impl Walk<'_> {
    fn signature(&mut self, offset: u32) -> Result<(), String> {
        let signature: SignatureDescriptor = self.pool.read(offset)?;
        let demands = Demands::from_bits_retain(signature.demands);
        self.found.add_if(demands.contains(Demands::FORWARD_ARGS), Capability::ForwardArgs);
        self.found.add_if(signature.arity == 0, Capability::Values);
        if signature.has_extension != 0 {
            let extension = self.pool.read_before(offset)?;
            self.extension(&signature, &extension)?;
        }
        self.params(offset + SignatureDescriptor::SIZE as u32, u32::from(signature.params))
    }

    fn extension(&mut self, signature: &SignatureDescriptor, extension: &SignatureExtension) -> Result<(), String> {
        self.found.add_if(extension.constraints != 0, Capability::Constraint);
        self.found.add_if(extension.result_dims != 0, Capability::ResultDim);
        if extension.defaults == 0 {
            return Ok(());
        }
        self.found.add(Capability::Default);
        for number in 0..u32::from(signature.params.saturating_sub(signature.min)) {
            let default: DefaultDescriptor =
                self.pool.read(extension.defaults + number * DefaultDescriptor::SIZE as u32)?;
            self.found.add_if(default.type_index == TypeIndex::RAW_STR.0 as u32, Capability::DefaultStr);
            self.found.add_if(default.type_index == TypeIndex::BYTE_ARRAY_PTR.0 as u32, Capability::DefaultBytes);
        }
        Ok(())
    }

    fn params(&mut self, first: u32, count: u32) -> Result<(), String> {
        (0..count).try_for_each(|number| {
            let param: ParamDescriptor = self.pool.read(first + number * ParamDescriptor::SIZE as u32)?;
            self.ty(param.ty)
        })
    }

    fn ty(&mut self, offset: u32) -> Result<(), String> {
        let ty: TypeDescriptor = self.pool.read(offset)?;
        let kind = TypeKind::of_number(u32::from(ty.kind))?;
        self.found.add(kind);
        match kind {
            TypeKind::Signed | TypeKind::Unsigned => {
                let int: ScalarDescriptor = self.pool.read(offset)?;
                self.found.add_if(int.unused_bits != 0, Capability::Narrow);
                self.found.add_if(int.has_var != 0, Capability::IntVar);
            }
            TypeKind::Float => {
                let float: ScalarDescriptor = self.pool.read(offset)?;
                self.found.add_if(float.unused_bits == 32, Capability::Float32);
            }
            TypeKind::Tensor => return self.tensor(offset),
            TypeKind::Shape => {
                let shape: ShapeDescriptor = self.pool.read(offset)?;
                // a shape of any length has no entries
                let Ok(rank) = u32::try_from(shape.rank) else { return Ok(()) };
                self.found.add(Capability::ShapeRank);
                return self.dims(offset + ShapeDescriptor::SIZE as u32, rank);
            }
            TypeKind::Object => {
                let object: ObjectDescriptor = self.pool.read(offset)?;
                let known = object.type_index >= 0;
                self.found.add(if known { Capability::ObjectIndex } else { Capability::ObjectKey });
            }
            TypeKind::Optional => return self.params(offset + offset!(OptionalDescriptor, inner) as u32, 1),
            TypeKind::Tuple => {
                let tuple: TupleDescriptor = self.pool.read(offset)?;
                return self.params(offset + TupleDescriptor::SIZE as u32, tuple.count);
            }
            TypeKind::Record => {
                let record: RecordDescriptor = self.pool.read(offset)?;
                return self.params(offset + RecordDescriptor::SIZE as u32, record.count);
            }
            TypeKind::Sequence => {
                self.found.add(Capability::Elements);
                return self.params(offset + offset!(SequenceDescriptor, elements) as u32, 1);
            }
            TypeKind::Map => {
                self.found.add(Capability::Elements);
                let map: MapDescriptor = self.pool.read(offset)?;
                self.ty(map.keys.ty)?;
                return self.ty(map.values.ty);
            }
            TypeKind::Bool
            | TypeKind::Handle
            | TypeKind::Stream
            | TypeKind::Str
            | TypeKind::Bytes
            | TypeKind::DType
            | TypeKind::Device
            | TypeKind::Any
            | TypeKind::None
            | TypeKind::Int
            | TypeKind::True
            | TypeKind::False => {}
        }
        Ok(())
    }

    fn tensor(&mut self, offset: u32) -> Result<(), String> {
        let tensor: TensorDescriptor = self.pool.read(offset)?;
        let flags = TensorFlags::from_bits_retain(tensor.flags);
        let (strided, any_strides) = (flags.contains(TensorFlags::STRIDED), flags.contains(TensorFlags::ANY_STRIDES));
        let rank = u32::try_from(tensor.rank).ok();
        for (asked, capability) in [
            (rank.is_some(), Capability::Ranked),
            (rank.is_none(), Capability::AnyRank),
            (strided, Capability::Strided),
            (any_strides, Capability::AnyStrides),
            (!strided && !any_strides, Capability::Compact),
            (tensor.dtype_codes != 0, Capability::DTypeCodes),
            (flags.contains(TensorFlags::SAME_STORAGE), Capability::SameStorage),
            (flags.contains(TensorFlags::ANY_DTYPE), Capability::AnyDType),
            (tensor.device_type >= 0, Capability::DeviceType),
            (tensor.device_type < 0, Capability::AnyDevice),
            (tensor.device_id >= 0, Capability::DeviceId),
            (tensor.device_id == ANY_ID, Capability::AnyDeviceId),
            (tensor.device_id < ANY_ID, Capability::SameDevice),
            (flags.contains(TensorFlags::OPAQUE), Capability::Opaque),
            (flags.contains(TensorFlags::FOLD), Capability::Fold),
        ] {
            self.found.add_if(asked, capability);
        }
        let lists = if strided { 2 } else { 1 };
        self.dims(offset + TensorDescriptor::SIZE as u32, rank.unwrap_or_default() * lists)
    }

    fn dims(&mut self, first: u32, count: u32) -> Result<(), String> {
        (0..count).try_for_each(|number| {
            let dim: DimDescriptor = self.pool.read(first + number * DimDescriptor::SIZE as u32)?;
            self.found.add(match DimKind::of_number(dim.kind)? {
                DimKind::Const => Capability::Const,
                DimKind::Var => Capability::Var,
                DimKind::Expr => Capability::Expr,
            });
            Ok(())
        })
    }
}
