//! Checks tensors (C5, C10).

use super::check::Arg;
use super::helper::{Binder, EXPECTED_NUMBER, EXPECTED_TEXT, GOT, GOT_NUMBER, PATH, VALUE_ERROR, piece};
use super::state::BinderState;
use super::structured::{Behind, Condition};
use crate::ir::{Type, Val};
use crate::lower::abi::HEADER;
use crate::lower::abi::fields::{DTypeField, dtype_word};
use crate::lower::abi::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use crate::lower::protocol::{
    ANY_ID, Binding, Capability, Directive, Field, Path, Piece, TensorDescriptor, TensorFlags, field, offset,
};
use crate::spec::MAX_RANK;
use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType, DLTensor, TypeIndex};

/// A tensor that is being checked.
#[derive(Clone, Copy)]
pub(super) struct Tensor<'c> {
    pub ty: Val<'c>,
    pub flags: Val<'c>,
    /// Its `DLTensor`.
    pub from: Val<'c>,
    /// The accepted copy.
    pub copy: Val<'c>,
    pub rank: Val<'c>,
    pub shape: Val<'c>,
}

impl<'c> Binder<'c, '_> {
    /// Checks a tensor. Writes a copy with strides and with room for a header before it.
    pub(super) fn tensor(&self, arg: Arg<'c>) {
        self.require_index(arg, &[TypeIndex::TENSOR, TypeIndex::DL_TENSOR_PTR]);
        self.require_non_null(arg.payload);
        // an object's DLTensor follows its header (c_api.h, kTVMFFITensor)
        let base = arg.payload.pointer();
        let inside = base + HEADER;
        let from = arg.index.is(TypeIndex::TENSOR.0).select(inside, base);

        // The accepted argument is an object with a copy of the DLTensor; its header stays unset because it is never
        // read.
        let copy = self.take_memory(size_of::<DLTensor>() as i64);
        self.accept(arg.to, TypeIndex::TENSOR, (copy + (-i64::from(HEADER))).address());
        let flags = arg.ty.read(field!(TensorDescriptor, flags));
        let rank = self.rank(arg.ty, from);
        let shape = from.load(Type::Ptr, SHAPE);
        let t = Tensor { ty: arg.ty, flags, from, copy, rank, shape };
        self.set_field(Field::Memory, self.compact_strides(t).element(rank, Type::I64));

        self.tensor_dtype(t);
        self.device(t);
        self.require_member(
            Condition::Any(vec![shape.is_not(0), rank.is(0)]),
            ".shape",
            &[Piece::Text("a non-NULL pointer for ndim "), EXPECTED_NUMBER, Piece::Text(", got NULL")],
            || self.set_field(Field::Expected, rank),
        );
        self.sizes(t);
        let count = self.strides(t);
        copy.store(SHAPE, shape);
        copy.store(STRIDES, self.compact_strides(t));
        self.data(t, count);
    }

    /// The address of the copy's strides, directly after the copy.
    pub(super) fn compact_strides(&self, t: Tensor<'c>) -> Val<'c> {
        t.copy + (size_of::<DLTensor>() as i64)
    }

    /// Requires a property of a member of the tensor: `Mismatched x.dtype on ...`. `tell` sets the fields that only
    /// this message prints.
    pub(super) fn require_member(
        &self,
        ok: impl Into<Condition<'c>>,
        member: &str,
        expected: &[Piece<'_>],
        tell: impl FnOnce(),
    ) {
        self.require_of_telling(ok, VALUE_ERROR, &[PATH, Piece::Text(member)], expected, tell);
    }

    pub(super) fn has_flag(&self, flags: Val<'c>, flag: TensorFlags) -> Val<'c> {
        (flags & self.c.i64(flag.bits().into())).is_not(0)
    }

    fn rank(&self, ty: Val<'c>, from: Val<'c>) -> Val<'c> {
        let (rank, got) = (ty.read32(field!(TensorDescriptor, rank)), from.word32(NDIM / 4));
        let ndim = got.sext();
        let any = rank.lt(0);
        if self.has(Capability::Ranked) {
            let same = got.is(rank);
            let ok = if self.has(Capability::AnyRank) { any | same } else { same };
            self.require_member(ok, ".ndim", &[EXPECTED_NUMBER, GOT, GOT_NUMBER], || {
                self.set_field(Field::Got, ndim);
                self.set_field(Field::Expected, rank.sext());
            });
        }
        if !self.has(Capability::AnyRank) {
            return ndim;
        }
        let in_range = ndim.ule(MAX_RANK as i64);
        let stated = !any;
        let ok = in_range | stated;
        let pieces = [Piece::Text(&format!("0 to {MAX_RANK}")), GOT, GOT_NUMBER];
        self.require_member(ok, ".ndim", &pieces, || self.set_field(Field::Got, ndim));
        ndim
    }

    /// Checks the dtype: the stated one, or one that the policy accepts instead. In the copy, the latter becomes the
    /// stated one.
    fn tensor_dtype(&self, t: Tensor<'c>) {
        let (got, stated) = (t.from.word32(DTYPE / 4), t.ty.read32(field!(TensorDescriptor, dtype)));
        let mut ok = got.is(stated);
        let [dtype, wanted] = [got, stated].map(|word| word.zext());
        if self.has(Capability::DTypeCodes) {
            let by_code = self.same_but_code(t.ty, dtype, wanted);
            ok = ok | by_code;
        }
        if self.has(Capability::SameStorage) {
            let stored = self.has_flag(t.flags, TensorFlags::SAME_STORAGE);
            let (bits, wanted_bits) = (self.dtype_bits(dtype), self.dtype_bits(wanted));
            let by_storage = stored & bits.is(wanted_bits);
            ok = ok | by_storage;
        }
        let any = self.has_flag(t.flags, TensorFlags::ANY_DTYPE);
        if self.has(Capability::AnyDType) {
            ok = ok | any;
        }
        self.require_member(ok, ".dtype", &[EXPECTED_TEXT, GOT, piece(Directive::DType, Field::Got)], || {
            self.set_field(Field::Got, got.zext());
            self.set_field(Field::Text, self.pool_text(t.ty, field!(TensorDescriptor, dtype_text)));
        });
        t.copy.store(NDIM, t.from.load(Type::I64, NDIM));
        if !self.has(Capability::DTypeCodes) && !self.has(Capability::SameStorage) {
            // the copy already has this dtype
            return;
        }
        t.copy.store(DTYPE, any.select(got, stated));
    }

    /// Whether bits and lanes match, and the code is one of the accepted ones.
    fn same_but_code(&self, ty: Val<'c>, dtype: Val<'c>, wanted: Val<'c>) -> Val<'c> {
        let codes = ty.read(field!(TensorDescriptor, dtype_codes));
        let difference = dtype ^ wanted;
        let all_but_code = DLDataType { code: 0, bits: u8::MAX, lanes: u16::MAX };
        let same =
            (difference & self.c.i64(self.c.with(|b| dtype_word(b.module().endianness, all_but_code)).into())).is(0);
        let code = self.c.value(|b| DTypeField::Code.of(b, dtype.value()));
        let small = code.ult(32);
        let taken = ((codes >> (code & 31)) & 1).is_not(0);
        (same & small) & taken
    }

    /// Bits times lanes of a dtype.
    fn dtype_bits(&self, dtype: Val<'c>) -> Val<'c> {
        self.c.value(|b| DTypeField::Bits.of(b, dtype.value()))
            * self.c.value(|b| DTypeField::Lanes.of(b, dtype.value()))
    }

    /// Checks the kind of device, then its id: the stated device, or that of the first tensor in the same slot.
    fn device(&self, t: Tensor<'c>) {
        let device = t.from.load(Type::I64, DEVICE);
        t.copy.store(DEVICE, device);
        let wanted = t.ty.read32(field!(TensorDescriptor, device_type));
        let stated = t.ty.read32(field!(TensorDescriptor, device_id));
        let got = piece(Directive::Device, Field::Got);
        let mut ok = None;
        if self.has(Capability::DeviceType) {
            let device_type = t.from.word32(DEVICE / 4);
            let any_type = wanted.lt(0);
            let same_type = device_type.is(wanted);
            ok = Some(if self.has(Capability::AnyDevice) { any_type | same_type } else { same_type });
        }
        if self.has(Capability::DeviceId) {
            let id = t.from.word32(DEVICE / 4 + 1);
            let any_id = stated.lt(0);
            let same_id = id.is(stated);
            let id_ok = any_id | same_id;
            ok = Some(ok.map_or(id_ok, |ok| ok & id_ok));
        }
        if let Some(ok) = ok {
            self.require_member(ok, ".device", &[EXPECTED_TEXT, GOT, got], || {
                self.set_field(Field::Got, device);
                self.set_field(Field::Text, self.pool_text(t.ty, field!(TensorDescriptor, device_text)));
            });
        }
        if !self.has(Capability::SameDevice) {
            return;
        }
        // only a tensor that may be on any device determines the device of the others
        let shared = stated.lt(ANY_ID);
        let share = || {
            let stated = t.ty.read(field!(TensorDescriptor, device_id));
            let first = self.c.i64(i64::from(ANY_ID) - 1);
            let binding = self.device_binding(first - stated);
            self.c.when_else(
                self.is_bound(binding),
                || {
                    let first = binding.load(Type::I64, offset!(Binding, value));
                    self.require_member(
                        device.is(first),
                        ".device",
                        &[
                            piece(Directive::NumberedDevice, Field::Expected),
                            Piece::Text(" (from "),
                            piece(Directive::ValuePath, Field::Origin),
                            Piece::Text(".device), got "),
                            got,
                        ],
                        || {
                            self.set_field(Field::Got, device);
                            self.set_field(Field::Expected, first);
                            self.set_field(Field::Origin, binding + offset!(Binding, path));
                        },
                    );
                },
                || self.bind_device(binding, device),
            );
        };
        match self.has(Capability::DeviceId) || self.has(Capability::AnyDeviceId) {
            true => self.c.when(shared, share),
            false => share(),
        }
    }

    /// Binds a slot of tensors to a device. Messages show the tensor's path without a dimension.
    fn bind_device(&self, binding: Val<'c>, device: Val<'c>) {
        if self.has(Capability::Elements) {
            return self.bind(binding, device);
        }
        binding.store(offset!(Binding, value), device);
        let name = self.path().load(Type::Ptr, offset!(Path, name));
        binding.store(offset!(Binding, path.name), name);
    }

    pub(super) fn device_binding(&self, slot: Val<'c>) -> Val<'c> {
        self.field_ptr(Field::DeviceBindings).nth(slot, self.binding_size())
    }

    pub(super) fn set_member(&self, member: &str) {
        let member = self.own_text(member);
        self.set_path(offset!(Path, member), member);
    }

    /// Requires the first element's address to be aligned and not NULL, unless there are no elements. Then the fast
    /// path gets an aligned address that must not be read (C10.19, C10.20).
    fn data(&self, t: Tensor<'c>, count: Val<'c>) {
        let data = t.from.load(Type::I64, DATA);
        let byte_offset = t.from.load(Type::I64, BYTE_OFFSET);
        let empty = count.is(0);
        let there = data.is_not(0);
        self.require_member(
            Condition::Any(vec![there, empty]),
            ".data",
            &[Piece::Text("a non-NULL pointer to "), EXPECTED_NUMBER, Piece::Text(" elements, got NULL")],
            || self.set_field(Field::Expected, count),
        );

        let sum = data + byte_offset;
        let opaque = self.may_be_opaque().then(|| self.is_opaque(t));
        let address = opaque.map_or(sum, |opaque| opaque.select(byte_offset, sum));
        let align = t.ty.read(field!(TensorDescriptor, align));
        let one = self.c.i64(1);
        let rest = address & (align - one);
        let aligned = rest.is(0);
        self.require_member(
            Condition::Any(vec![aligned, empty]),
            ".data",
            &[
                EXPECTED_TEXT,
                Piece::Text(" to be a multiple of "),
                EXPECTED_NUMBER,
                Piece::Text(", got an address off by "),
                GOT_NUMBER,
            ],
            || {
                self.set_field(Field::Expected, align);
                self.set_field(Field::Got, rest);
                let mut text = self.own_text("data + byte_offset");
                if let Some(opaque) = opaque {
                    text = opaque.select(self.own_text("byte_offset"), text);
                }
                self.set_field(Field::Text, text);
            },
        );

        let zero = self.c.i64(0);
        let (mut accepted, mut accepted_offset) = (data, byte_offset);
        if self.has(Capability::Fold) {
            let mut fold = self.has_flag(t.flags, TensorFlags::FOLD);
            if let Some(opaque) = opaque {
                fold = fold & !opaque;
            }
            accepted = fold.select(sum, accepted);
            accepted_offset = fold.select(zero, accepted_offset);
        }
        let fine = there & aligned;
        let accepted = fine.select(accepted, align);
        let accepted_offset = fine.select(accepted_offset, zero);
        t.copy.store(DATA, accepted);
        t.copy.store(BYTE_OFFSET, accepted_offset);
    }

    fn may_be_opaque(&self) -> bool {
        self.has(Capability::Opaque) || self.has(Capability::AnyDevice)
    }

    /// Whether the data pointer is a handle instead of an address: by the signature, or by the kind of the actual
    /// device.
    fn is_opaque(&self, t: Tensor<'c>) -> Val<'c> {
        let opaque = self.c.var(Type::I64);
        opaque.set(self.has_flag(t.flags, TensorFlags::OPAQUE).zext());
        self.c.when(t.ty.read32(field!(TensorDescriptor, device_type)).lt(0), || {
            let device_type = t.from.word32(DEVICE / 4);
            // unknown kinds count as they do in `DLDeviceType::is_direct_address`
            let mut direct = device_type.lt(DLDeviceType::CPU.0);
            for kind in DLDeviceType::ALL.iter().filter(|kind| kind.is_direct_address()) {
                let is = device_type.is(kind.0);
                direct = direct | is;
            }
            opaque.set((!direct).zext());
        });
        opaque.get().is_not(0)
    }
}
