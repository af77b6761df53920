//! Values of the frame, and the caller's own arguments.

use super::function::{BodyLowerer, Extra};
use crate::ir::{Hint, IntCC, MemFlags, Type, Value};
use crate::lower::abi::fields::before_zeros;
use crate::lower::abi::{ANY_SIZE, CELL_DATA, OBJECT_TYPE_INDEX, PAYLOAD, TYPE_INDEX};
use crate::lower::ffi_call;
use crate::spec::ParamType;
use tvm_ffi_runtime::abi::TypeIndex;

impl BodyLowerer<'_> {
    /// A `TVMFFIAny` in the frame, None at first.
    pub(super) fn any_slot(&mut self) -> Value {
        ffi_call::any_slot(&mut self.b)
    }

    /// The place for what a callee returns, None at first. Calls keep the function's own result pointer out of registers from now on.
    pub(super) fn result_slot(&mut self, whole: bool) -> Value {
        self.spill_result();
        if whole { self.any_slot() } else { ffi_call::index_slot(&mut self.b) }
    }

    /// A parameter that the body's function has from now on.
    pub(super) fn extra(&mut self, extra: Extra) -> Value {
        if let Some((_, known)) = self.extras.iter().find(|(known, _)| *known == extra) {
            return *known;
        }
        let value = self.b.add_param(Type::Ptr);
        self.extras.push((extra, value));
        value
    }

    /// The address of the caller's own argument at a path: a parameter, or an item of a tuple.
    pub(super) fn original(&mut self, path: &str) -> Result<Value, String> {
        let (name, items) = path.split_once('[').map_or((path, ""), |(name, _)| (name, &path[name.len()..]));
        let mut passed = self.signature.passed();
        let Some(index) = passed.position(|param| param.name == name) else {
            return Err(format!("`{path}` is no argument"));
        };
        let ty = self.signature.passed().nth(index).map(|param| param.ty.clone()).unwrap_or(ParamType::Any);
        let base = self.extra(Extra::Originals);
        let base = self.b.ptr_add_imm(base, index as i64 * i64::from(ANY_SIZE));
        self.item(base, items, &ty)
    }

    /// The address of an item of a tuple inside a value: `items` is `[2][0]`.
    pub(super) fn item(&mut self, mut base: Value, items: &str, ty: &ParamType) -> Result<Value, String> {
        let mut ty = ty;
        for index in items.split(['[', ']']).filter(|index| !index.is_empty()) {
            let (ParamType::Tuple(types), Ok(index)) = (ty, index.parse::<usize>()) else {
                return Err("an item of an optional tuple can't be passed on; pass the tuple".to_owned());
            };
            let Some(item) = types.get(index) else { return Err(format!("the tuple has no item {index}")) };
            ty = item;
            let array = self.object_at(base);
            let data = self.b.load(Type::Ptr, array, CELL_DATA, MemFlags::ALIGNED);
            base = self.b.ptr_add_imm(data, index as i64 * i64::from(ANY_SIZE));
        }
        Ok(base)
    }

    /// The object at an address, which may be there by an rvalue reference.
    pub(super) fn object_at(&mut self, any: Value) -> Value {
        let (_, payload) = self.borrowed(any);
        payload
    }

    /// The two words of the value at an address, without taking it: of an rvalue reference, those of the object that it refers to.
    pub(super) fn borrowed(&mut self, any: Value) -> (Value, Value) {
        let word = self.b.load(Type::I64, any, TYPE_INDEX, MemFlags::ALIGNED);
        let payload = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
        let index = self.b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
        let (join, refers) = (self.b.block(), self.b.cold_block());
        let (words, payloads) = (self.b.block_param(join, Type::I64), self.b.block_param(join, Type::Ptr));
        let is = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::OBJECT_RVALUE_REF.0));
        self.b.branch_with(is, (refers, &[]), (join, &[word, payload]), Hint::Unlikely);
        self.b.switch_to(refers);
        let object = self.b.load(Type::Ptr, payload, 0, MemFlags::ALIGNED);
        let index = self.b.load(Type::I32, object, OBJECT_TYPE_INDEX, MemFlags::ALIGNED);
        let word = before_zeros(&mut self.b, index);
        self.b.jump(join, &[word, object]);
        self.b.switch_to(join);
        (words, payloads)
    }

    /// The `DLTensor` of the tensor at an address: a `DLTensor*`, or that of an `ffi.Tensor`.
    pub(super) fn descriptor_of(&mut self, any: Value) -> Value {
        let (word, payload) = self.borrowed(any);
        let index = crate::lower::abi::fields::first(&mut self.b, word);
        let bare = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::DL_TENSOR_PTR.0));
        let inside = self.b.ptr_add_imm(payload, i64::from(crate::lower::abi::HEADER));
        self.b.select(bare, payload, inside)
    }
}
