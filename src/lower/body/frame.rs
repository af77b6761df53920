//! Values in the frame, and the caller's own arguments.

use super::function::{BodyLowerer, Extra};
use crate::ir::{IntCC, MemFlags, Type, Value};
use crate::lower::abi::{ANY_SIZE, CELL_DATA, PAYLOAD, TYPE_INDEX};
use crate::lower::ffi_call;
use crate::spec::ParamType;
use tvm_ffi_runtime::abi::TypeIndex;

const OF_OPTIONAL: &str = "an item of an optional tuple can't be passed on; pass the tuple";

/// Where the last field of a record ends in a path inside an argument; `None` for a path without one.
fn end_of_fields(ty: &ParamType, path: &str) -> Option<usize> {
    let ty = if let ParamType::Optional(inner) = ty { inner } else { ty };
    let (_, member, rest) = ty.first_member(path)?;
    let own = path.len() - rest.len();
    let inside = end_of_fields(member, rest).map(|end| own + end);
    inside.or(matches!(ty, ParamType::Record { .. }).then_some(own))
}

impl BodyLowerer<'_> {
    /// A `TVMFFIAny` in the frame, initially None.
    pub(super) fn any_slot(&mut self) -> Value {
        self.b.structured(|c| ffi_call::any_slot(c).value())
    }

    /// A slot for a callee's result, initially None. From now on calls keep the function's own result pointer in the
    /// frame instead of a register.
    pub(super) fn result_slot(&mut self, whole: bool) -> Value {
        self.spill_result();
        if whole { self.any_slot() } else { self.b.structured(|c| ffi_call::index_slot(c).value()) }
    }

    /// Adds a parameter to the body's function, unless it has it already.
    pub(super) fn extra(&mut self, extra: Extra) -> Value {
        if let Some((_, known)) = self.extras.iter().find(|(known, _)| *known == extra) {
            return *known;
        }
        let value = self.b.add_param(Type::Ptr);
        self.extras.push((extra, value));
        value
    }

    /// The address of the caller's own argument at a path: a parameter, a tuple item or a field of a record.
    pub(super) fn original(&mut self, path: &str) -> Result<Value, String> {
        let end = path.find(['[', '.']).unwrap_or(path.len());
        let (name, items) = path.split_at(end);
        let mut passed = self.signature.passed();
        let Some(index) = passed.position(|param| param.name == name) else {
            return Err(format!("`{path}` isn't an argument"));
        };
        if self.is_c {
            return Err(format!(
                "`{path}` is passed as a C argument, so it can't be passed on as an argument of TVM FFI; give it the \
                 type `Any`, and let the kernel pass the caller's own argument (`Kernel::with_arguments`)"
            ));
        }
        let ty = self.signature.passed().nth(index).map(|param| param.ty.clone()).unwrap_or(ParamType::Any);
        if let Some(end) = end_of_fields(&ty, items) {
            let (fields, items) = items.split_at(end);
            let (field, ty) = self.field(index, fields, &ty)?;
            return self.item(field, items, &ty);
        }
        let argument = self.argument(index);
        self.item(argument, items, &ty)
    }

    /// The address of a field of a record as it came, with its type. `path` is the path inside an argument.
    fn field(&mut self, index: usize, path: &str, ty: &ParamType) -> Result<(Value, ParamType), String> {
        let bound = self.extra(Extra::Bound);
        let mut base = self.b.ptr_add_imm(bound, index as i64 * i64::from(ANY_SIZE));
        let (mut ty, mut rest) = (ty, path);
        while !rest.is_empty() {
            let Some((i, member, after)) = ty.first_member(rest) else { return Err(OF_OPTIONAL.to_owned()) };
            // the binder writes the fields as they came after those that it has accepted
            let i = if after.is_empty() { ty.inner().len() + i } else { i };
            base = self.element(base, i);
            (ty, rest) = (member, after);
        }
        Ok((base, ty.clone()))
    }

    /// The address of an element of the Array in a value.
    fn element(&mut self, any: Value, index: usize) -> Value {
        let array = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
        let data = self.b.load(Type::Ptr, array, CELL_DATA, MemFlags::ALIGNED);
        self.b.ptr_add_imm(data, index as i64 * i64::from(ANY_SIZE))
    }

    /// The address of a copy of an argument, made at function entry.
    pub(super) fn argument(&mut self, index: usize) -> Value {
        if let Some((_, known)) = self.arguments.iter().find(|(known, _)| *known == index) {
            return *known;
        }
        let base = self.extra(Extra::Originals);
        let copy = self.b.at_entry(|b| ffi_call::copy_of_argument(b, base, index));
        self.arguments.push((index, copy));
        copy
    }

    /// The address of a tuple item inside a value; `items` is, for example, `[2][0]`.
    pub(super) fn item(&mut self, mut base: Value, items: &str, ty: &ParamType) -> Result<Value, String> {
        let mut ty = ty;
        for index in items.split(['[', ']']).filter(|index| !index.is_empty()) {
            let (ParamType::Tuple(types), Ok(index)) = (ty, index.parse::<usize>()) else {
                return Err(OF_OPTIONAL.to_owned());
            };
            let Some(item) = types.get(index) else { return Err(format!("the tuple has no item {index}")) };
            ty = item;
            base = self.element(base, index);
        }
        Ok(base)
    }

    /// The address of the `DLTensor` for a value that holds a `DLTensor*` or an `ffi.Tensor`.
    pub(super) fn descriptor_of(&mut self, any: Value) -> Value {
        let index = self.b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
        let payload = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
        let bare = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::DL_TENSOR_PTR.0));
        let inside = self.b.ptr_add_imm(payload, i64::from(crate::lower::abi::HEADER));
        self.b.select(bare, payload, inside)
    }
}
