//! Tensors: every check of the contract's second table, and the words that the kernel receives.

use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDevice, DLDeviceType};
use tvm_ffi_codegen::spec::{DType, DTypePolicy, DeviceId, Dim, TensorShape};
use tvm_ffi_codegen::{Device, Layout, ParamType, TensorType};

use super::seen;
use super::{At, Checked, Model, Stop};
use crate::support::kernels::Noted;
use crate::support::layout::{is_opaque, is_open};
use crate::support::names::{device_name, dtype_name, kind_name};
use crate::support::value::{Data, Strides, TensorSpec, Value};

/// The max rank of a tensor type without a specified rank.
const MOST_DIMENSIONS: i32 = 64;

impl<'a> Model<'a> {
    fn wrong<T>(&self, at: &At, part: &str, expected: &str, got: &str) -> Checked<T> {
        self.refuse("ValueError", &format!("{}.{part} on argument #{}", at.path, at.argument), expected, got)
    }

    pub(super) fn tensor(&mut self, whole: &ParamType, ty: &'a TensorType, value: &Value, at: &At) -> Checked {
        let spec = match value {
            Value::Tensor(spec) if spec.null => return self.null(whole, at),
            Value::Tensor(spec) => spec,
            Value::Raw(7 | 70, 0) => return self.null(whole, at),
            Value::Raw(7 | 70, _) => return Err(Stop::TrustBroken),
            _ => return self.wrong_type(whole, at, "", &seen::shown_type(value)),
        };
        let rank = self.rank(ty, spec, at)?;
        let strides_end = if let Strides::Given(strides) = &spec.strides { strides.len() } else { rank };
        if spec.shape.len() < rank || strides_end < rank {
            return Err(Stop::TrustBroken);
        }
        if let DType::Exact(stated) = ty.dtype
            && !takes(self.signature.dtype_policy(), stated, spec.dtype)
        {
            return self.wrong(at, "dtype", &dtype_name(stated), &dtype_name(spec.dtype));
        }
        self.device(ty, spec.device, at)?;
        if spec.null_shape && rank > 0 {
            return self.wrong(at, "shape", &format!("a non-NULL pointer for ndim {rank}"), "NULL");
        }
        let shape = &spec.shape[..rank];
        self.sizes(ty, shape, at)?;
        let mut behind = vec![1i64; rank + 1];
        for d in (0..rank).rev() {
            behind[d] = match behind[d + 1].checked_mul(shape[d]) {
                Some(product) => product,
                None => return self.wrong(at, "shape", "sizes whose product fits in 64 bits", "an overflow"),
            };
        }
        let strides = match &spec.strides {
            Strides::Given(strides) => &strides[..rank],
            // NULL stands for contiguous strides
            Strides::Default | Strides::Null => &behind[1..],
        };
        let strides = &self.strides(ty, shape, strides, &behind, at)?[..];
        // a device whose bits are all 0 is invalid
        let is_device = spec.device != DLDevice::new(DLDeviceType(0), 0);
        if !at.element && self.stream.is_none() && ty.device.kind() != Some(DLDeviceType::CPU) && is_device {
            self.stream = Some(spec.device);
        }
        self.address(ty, spec, strides, behind[0], at)
    }

    fn rank(&self, ty: &TensorType, spec: &TensorSpec, at: &At) -> Checked<usize> {
        let ndim = spec.ndim.unwrap_or(spec.shape.len() as i32);
        let expected = match &ty.shape {
            TensorShape::Ranked(dims) if dims.len() as i32 == ndim => return Ok(dims.len()),
            TensorShape::Ranked(dims) => dims.len().to_string(),
            TensorShape::Any if (0..=MOST_DIMENSIONS).contains(&ndim) => return Ok(ndim as usize),
            TensorShape::Any => format!("0 to {MOST_DIMENSIONS}"),
            other => unreachable!("the model knows no {other:?}"),
        };
        self.wrong(at, "ndim", &expected, &ndim.to_string())
    }

    fn sizes(&mut self, ty: &'a TensorType, shape: &[i64], at: &At) -> Checked {
        for (d, &size) in shape.iter().enumerate() {
            match &ty.shape {
                TensorShape::Ranked(dims) => self.size(at, &format!(".shape[{d}]"), &dims[d], size)?,
                TensorShape::Any if size < 0 => {
                    return self.wrong(at, &format!("shape[{d}]"), "a size of at least 0", &size.to_string());
                }
                TensorShape::Any => {}
                other => unreachable!("the model knows no {other:?}"),
            }
        }
        Ok(())
    }

    /// Checks strides, and returns those that the kernel receives.
    fn strides(
        &mut self,
        ty: &'a TensorType,
        shape: &[i64],
        strides: &[i64],
        behind: &[i64],
        at: &At,
    ) -> Checked<Vec<i64>> {
        let mut found = Vec::new();
        for (d, &stride) in strides.iter().enumerate() {
            let compared = behind[0] != 0 && shape[d] != 1;
            match &ty.layout {
                Layout::Contiguous if compared && stride != behind[d + 1] => {
                    let expected = format!("{} (contiguous)", behind[d + 1]);
                    return self.wrong(at, &format!("strides[{d}]"), &expected, &stride.to_string());
                }
                Layout::Contiguous => found.push(behind[d + 1]),
                Layout::Any => found.push(stride),
                Layout::Strides(dims) => {
                    self.stride(at, &format!(".strides[{d}]"), &dims[d], stride, compared)?;
                    found.push(match &dims[d] {
                        Dim::Const(expected) => *expected,
                        Dim::Var(name) => self.symbols.get(&name[..]).map_or(stride, |(value, _)| *value),
                        _ => stride,
                    });
                }
                other => unreachable!("the model knows no {other:?}"),
            }
        }
        Ok(found)
    }

    fn device(&mut self, ty: &TensorType, got: DLDevice, at: &At) -> Checked {
        let (kind, id) = match ty.device {
            Device::Kind(kind, id) => (kind, id),
            _ => return self.device_anywhere(got, at),
        };
        let known = match id {
            DeviceId::Fixed(id) => Some(id),
            DeviceId::Any => None,
            DeviceId::Shared => self.only_stated_id(kind),
            other => unreachable!("the model knows no {other:?}"),
        };
        if got.device_type != kind || known.is_some_and(|id| id != got.device_id) {
            let stated = if id == DeviceId::Any { ":any".to_owned() } else { String::new() };
            let id = known.map_or(stated, |id| format!(":{id}"));
            return self.wrong(at, "device", &format!("{}{id}", kind_name(kind)), &device_name(got));
        }
        if known.is_some() || id == DeviceId::Any {
            return Ok(());
        }
        match self.devices.get(&kind) {
            Some((id, from)) if *id != got.device_id => {
                self.wrong(at, "device", &format!("{}:{id} (from {from})", kind_name(kind)), &device_name(got))
            }
            Some(_) => Ok(()),
            None => {
                self.devices.insert(kind, (got.device_id, format!("{}.device", at.from)));
                Ok(())
            }
        }
    }

    fn device_anywhere(&mut self, got: DLDevice, at: &At) -> Checked {
        match &self.anywhere {
            Some((first, from)) if *first != got => {
                let expected = format!("{}:{} (from {from})", kind_name(first.device_type), first.device_id);
                self.wrong(at, "device", &expected, &device_name(got))
            }
            Some(_) => Ok(()),
            None => {
                self.anywhere = Some((got, format!("{}.device", at.from)));
                Ok(())
            }
        }
    }

    /// The common id of all tensor types with an explicit id on this kind of device.
    pub(super) fn only_stated_id(&self, kind: DLDeviceType) -> Option<i32> {
        let mut ids = Vec::new();
        for param in self.signature.params() {
            param.ty.for_each_tensor(&mut |tensor| match tensor.device {
                Device::Kind(of, DeviceId::Fixed(id)) if of == kind && !ids.contains(&id) => ids.push(id),
                _ => {}
            });
        }
        if let [id] = ids[..] { Some(id) } else { None }
    }

    /// The id shared by tensors on this kind of device, if it is already known.
    pub(super) fn shared_id(&self, kind: DLDeviceType) -> Option<i32> {
        self.only_stated_id(kind).or_else(|| self.devices.get(&kind).map(|(id, _)| *id))
    }

    fn address(&mut self, ty: &TensorType, spec: &TensorSpec, strides: &[i64], elements: i64, at: &At) -> Checked {
        // the tests align memory to 256 bytes before the shift; received addresses are relative to the shifted data
        let (data, told) = match spec.data {
            Data::Address(address) => (address, address),
            _ => (1 << 32 | spec.shift as u64, 0),
        };
        if data == 0 && elements != 0 {
            return self.wrong(at, "data", &format!("a non-NULL pointer to {elements} elements"), "NULL");
        }
        let align = alignment(ty);
        let opaque = is_opaque(spec.device.device_type);
        let (aligned, what) = match opaque {
            true => (spec.byte_offset, "byte_offset"),
            false => (data.wrapping_add(spec.byte_offset), "data + byte_offset"),
        };
        let off = aligned % align;
        if off != 0 && elements != 0 {
            let expected = format!("{what} to be a multiple of {align}");
            return self.wrong(at, "data", &expected, &format!("an address off by {off}"));
        }
        // if no element may be accessed, the wrapper may replace an invalid address
        let word = |word: u64| (elements != 0 || (data != 0 && off == 0)).then_some(Noted::Word(word));
        let (first, offset) = match opaque {
            true => (word(told), word(spec.byte_offset)),
            false => (word(told.wrapping_add(spec.byte_offset)), Some(Noted::Word(0))),
        };
        if is_open(ty) {
            let dtype = if let DType::Exact(stated) = ty.dtype { stated } else { spec.dtype };
            self.give(at, [Some(descriptor(spec, dtype, strides).into()), first, offset]);
        } else if opaque {
            self.give(at, [first, offset]);
        } else {
            self.give(at, [first]);
        }
        Ok(())
    }
}

/// The tensor in the form of `show::descriptor`.
fn descriptor(spec: &TensorSpec, dtype: DLDataType, strides: &[i64]) -> String {
    let shape = &spec.shape[..strides.len()];
    let tensor = format!("Tensor({shape:?}, {}, {})", dtype_name(dtype), device_name(spec.device));
    format!("{tensor}, strides {strides:?}")
}

/// The specified alignment, or that of one lane.
fn alignment(ty: &TensorType) -> u64 {
    let lane = |bits: u64| if bits >= 8 && bits.is_power_of_two() { bits / 8 } else { 1 };
    let own = match ty.dtype {
        // a complex number consists of two floats
        DType::Exact(DLDataType { code: 5, bits, .. }) => lane(u64::from(bits) / 2),
        DType::Exact(dtype) => lane(dtype.bits.into()),
        _ => 1,
    };
    ty.align.map_or(own, u64::from)
}

/// Whether the dtype policy accepts a dtype for the specified one.
fn takes(policy: DTypePolicy, stated: DLDataType, got: DLDataType) -> bool {
    let bits = |dtype: DLDataType| u32::from(dtype.bits) * u32::from(dtype.lanes);
    let one_of = |codes: &[u8]| codes.contains(&stated.code) && codes.contains(&got.code);
    let same_width = stated.bits == got.bits && stated.lanes == got.lanes;
    let byte = stated.bits == 8;
    stated == got
        || (policy.contains(DTypePolicy::STORAGE) && bits(stated) == bits(got))
        || (same_width && policy.contains(DTypePolicy::SIGN) && one_of(&[0, 1]))
        || (same_width && byte && policy.contains(DTypePolicy::BOOL) && one_of(&[1, 6]))
        || (same_width && byte && policy.contains(DTypePolicy::FP8) && (one_of(&[8, 9, 10, 11]) || one_of(&[12, 13])))
}
