//! Results: scalars, tensors allocated by the wrapper, and results written by a kernel.

use super::{locations, status};
use crate::ir::{DataRef, Hint, IntCC, MemFlags, StackSlot, Type, Value};
use crate::lower::abi::fields::{self, dtype_word, pair};
use crate::lower::abi::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use crate::lower::abi::{ANY_SIZE, HEADER, PAYLOAD, TYPE_INDEX, store_any, store_result, succeed};
use crate::lower::capi;
use crate::lower::convention::TensorForm;
use crate::lower::devices::SharedId;
use crate::lower::encode::{self, Subject};
use crate::lower::fast_path::{Checks, Context};
use crate::lower::ffi_call;
use crate::lower::kernel::Kernel;
use crate::lower::once::{self, Looked};
use crate::lower::protocol::{self, Binding, Piece, helpers, offset};
use crate::lower::unit::{ModulePool, Unit};
use crate::spec::{DType, Device, ParamType, Part, ScalarType, Signature, TensorType};
use tvm_ffi_runtime::abi::{DLTensor, TypeIndex};

/// Index of the wrapper's parameter for the address of its result.
const RESULT: usize = 3;

/// Returned tensors, before the kernel fills them.
pub(super) struct Allocated {
    /// The objects, in order.
    objects: Vec<Value>,
    /// The values passed to the kernel for them.
    pub passed: Vec<Value>,
    /// The function that packs them into an Array; `None` for a single tensor, which is returned directly.
    pub packer: Option<Packer>,
}

/// The runtime function that creates an Array.
#[derive(Clone, Copy)]
pub(super) struct Packer {
    make: once::Handle,
    /// The error to raise if the runtime doesn't have it.
    template: u32,
    pool: DataRef,
}

impl Packer {
    /// The packer for a signature; `None` if it doesn't return a `Tuple`.
    pub(super) fn new(into: &mut Unit, signature: &Signature) -> Option<Self> {
        const MAKE: &str = "ffi.Array";
        let Some(ParamType::Tuple(_)) = signature.ret() else { return None };
        let Unit { module, pool, handles, prefix, .. } = into;
        let make = handles.get(module, prefix, &Looked::Global(MAKE.to_owned()));
        let caller = encode::shown(signature, Subject::Result);
        let text = format!("global function `{MAKE}`, which makes the result of `{caller}`, is not registered");
        let template = pool.constants.template("RuntimeError", &[Piece::Text(&text)]);
        Some(Packer { make, template, pool: pool.data })
    }

    /// Packs tensors into an Array and takes them over, writes the Array to the result and returns 0. On failure,
    /// returns the error's code.
    fn returns(self, c: &mut Checks<'_, '_>, tensors: &[Value]) {
        c.b.structured(|c| {
            let args = c.slot(ANY_SIZE as usize * tensors.len());
            for (number, tensor) in (0i64..).zip(tensors) {
                let to = args + number * i64::from(ANY_SIZE);
                c.with(|b| store_any(b, to.value(), TypeIndex::TENSOR, *tensor));
            }
            let done = c.block();
            let code = c.block_param(done, Type::I32);
            let make = once::load_global(c, self.make, self.pool, self.template, done);
            c.jump(done, &[ffi_call::call(c, make, args, tensors.len() as i32, c.param(RESULT))]);
            c.switch_to(done);
            // the Array holds its own references
            tensors.iter().for_each(|tensor| ffi_call::release(c, c.val(*tensor)));
            c.ret(code);
        });
    }
}

/// The results of a kernel besides its C result.
#[derive(Default)]
pub(super) struct Owned<'a> {
    /// The tensors allocated by the wrapper.
    pub allocated: Option<Allocated>,
    /// The type and the address of the result that the kernel writes.
    pub written: Option<(&'a ParamType, Value)>,
}

/// The binder's scratch memory, if the binder has made all checks.
#[derive(Clone, Copy)]
pub(super) struct BoundScratch {
    pub slot: StackSlot,
    /// Size of a binding in bytes.
    pub binding_size: i64,
}

/// Computes the sizes of each returned tensor. Requires that none is negative and that their products don't overflow.
pub(super) fn sizes(cx: &mut Context<'_, '_, '_>) -> Vec<Vec<Value>> {
    let tensors = cx.plan.signature.returned_tensors();
    let sizes: Vec<_> = tensors.into_iter().map(|tensor| sizes_of(cx, tensor)).collect();
    if !sizes.is_empty() {
        cx.checks.flush();
    }
    sizes
}

fn sizes_of(cx: &mut Context<'_, '_, '_>, tensor: &TensorType) -> Vec<Value> {
    let c = &mut cx.checks;
    let dims = tensor.shape.dims().unwrap_or_default();
    let sizes: Vec<Value> = dims.iter().map(|dim| cx.dims.size(c, dim)).collect();
    c.products(&sizes, true);
    sizes
}

/// Allocates the returned tensors; `None` if the signature has none.
pub(super) fn allocate(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
    bound: Option<BoundScratch>,
    values: &[Vec<Value>],
    sizes: &[Vec<Value>],
    packer: Option<Packer>,
) -> Option<Allocated> {
    let tensors = cx.plan.signature.returned_tensors();
    let mut allocated = Allocated { objects: Vec::new(), passed: Vec::new(), packer };
    for (tensor, sizes) in tensors.into_iter().zip(sizes) {
        let object = allocate_one(cx, pool, bound, values, (tensor, sizes), &allocated.objects);
        allocated.objects.push(object);
        allocated.passed.extend(pass_allocated(cx, tensor, object, sizes));
    }
    Some(allocated).filter(|allocated| !allocated.objects.is_empty())
}

/// Allocates a tensor with `TVMFFIEnvTensorAlloc` (extra/c_env_api.h). On failure, releases the previously allocated
/// tensors.
fn allocate_one(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
    bound: Option<BoundScratch>,
    values: &[Vec<Value>],
    (tensor, sizes): (&TensorType, &[Value]),
    before: &[Value],
) -> Value {
    let signature = cx.plan.signature;
    let named = |name: &str| {
        let at = signature.params().iter().position(|param| param.name == name);
        at.and_then(|at| values.get(at)).and_then(|values| values.first()).copied()
    };
    let b = &mut cx.checks.b;
    let shape = b.slot(8 * sizes.len().max(1) as u32, 8);
    let shape = b.stack_addr(shape);
    for (d, size) in (0i32..).zip(sizes) {
        b.store(*size, shape, 8 * d, MemFlags::ALIGNED);
    }
    let prototype = b.slot(size_of::<DLTensor>() as u32, 8);
    let prototype = b.stack_addr(prototype);
    let (null, zero) = (b.ptr_const(0), b.i64(0));
    let device = device(cx, bound, tensor, &named);
    let c = &mut cx.checks;
    let ndim = c.b.iconst(Type::I32, sizes.len() as i64);
    let order = c.b.module().endianness;
    let dtype = match &tensor.dtype {
        DType::Exact(dtype) => Some(c.b.iconst(Type::I32, i64::from(dtype_word(order, *dtype) as i32))),
        DType::Param(name) => named(name),
        DType::Any => None,
    };
    let dtype = dtype.unwrap_or_else(|| c.missing(format!("the dtype {} of the result", tensor.dtype), Type::I32));
    let b = &mut c.b;
    let fields = [
        (DATA, null),
        (DEVICE, device),
        (NDIM, ndim),
        (DTYPE, dtype),
        (SHAPE, shape),
        (STRIDES, null),
        (BYTE_OFFSET, zero),
    ];
    for (offset, value) in fields {
        b.store(value, prototype, offset, MemFlags::ALIGNED);
    }
    b.structured(|c| {
        let out = c.var(Type::Ptr);
        out.set(c.val(null));
        let code = capi::result(c, capi::ENV_TENSOR_ALLOC, &[c.val(prototype), out.address()]);
        c.require(code.is(0), || {
            before.iter().for_each(|object| ffi_call::release(c, c.val(*object)));
            locations::append(c, pool, signature, Part::Result, code);
            c.ret(code);
        });
        out.get().value()
    })
}

/// The device of a returned tensor: the stated device, or the device of the tensors that must share it.
fn device(
    cx: &mut Context<'_, '_, '_>,
    bound: Option<BoundScratch>,
    tensor: &TensorType,
    named: &dyn Fn(&str) -> Option<Value>,
) -> Value {
    let Context { checks: c, devices, plan, .. } = cx;
    let (kind, (slot, id)) = match &tensor.device {
        Device::Kind(kind, _) => (*kind, plan.devices.place(&tensor.device)),
        Device::Param(name) if let Some(value) = named(name) => return value,
        other => return c.missing(format!("the device {other} of the result"), Type::I64),
    };
    let number = match id {
        SharedId::Fixed(id) => id,
        SharedId::OfSlot | SharedId::Any => 0,
    };
    let order = c.b.module().endianness;
    let otherwise = c.b.i64(pair(order, kind.0 as u32, number as u32));
    match id {
        // only the binder knows the devices of tensors in containers
        SharedId::OfSlot if let Some(BoundScratch { slot: scratch, binding_size }) = bound => {
            let bindings = protocol::bindings_offset(plan.signature);
            let number = plan.signature.names_in_dims().len() + slot;
            let scratch = c.b.stack_addr(scratch);
            let offset = (bindings + number as i64 * binding_size) as i32;
            let device = c.b.load(Type::I64, scratch, offset + offset!(Binding, value), MemFlags::ALIGNED);
            let present = c.b.icmp_imm(IntCC::Ne, device, 0);
            c.b.select(present, device, otherwise)
        }
        SharedId::OfSlot => devices.first(c.b, otherwise, |seen| seen.slot == Some(slot)),
        SharedId::Fixed(_) | SharedId::Any => otherwise,
    }
}

fn pass_allocated(cx: &mut Context<'_, '_, '_>, tensor: &TensorType, object: Value, sizes: &[Value]) -> Vec<Value> {
    let c = &mut cx.checks;
    let descriptor = c.b.ptr_add_imm(object, i64::from(HEADER));
    let form = match cx.plan.convention.form(tensor) {
        // convention `dltensor`, or an open type in convention `flat`: the kernel takes a `DLTensor*`
        TensorForm::Descriptor => return vec![descriptor],
        form => form,
    };
    let data = c.b.load(Type::Ptr, descriptor, DATA, MemFlags::ALIGNED);
    let byte_offset = c.b.load(Type::I64, descriptor, BYTE_OFFSET, MemFlags::ALIGNED);
    if tensor.is_opaque() {
        return vec![data, byte_offset];
    }
    let start = c.b.ptr_add(data, byte_offset);
    if form == TensorForm::Data {
        return vec![start];
    }
    let zero = c.b.i64(0);
    let strides = c.products(sizes, false);
    [start, start, zero].into_iter().chain(sizes.iter().copied()).chain(strides).collect()
}

/// A slot for the kernel's result, initially None.
pub(super) fn owned_slot(c: &mut Checks<'_, '_>) -> Value {
    let slot = c.b.slot(ANY_SIZE as u32, 8);
    let slot = c.b.stack_addr(slot);
    let zero = c.b.i64(0);
    store_any(c.b, slot, TypeIndex::NONE, zero);
    slot
}

/// A slot for a plain value that a kernel writes in addition to its status, initially 0; with its type.
pub(super) fn plain_slot(c: &mut Checks<'_, '_>, ty: Type) -> (Type, Value) {
    let slot = c.b.slot(8, 8);
    let slot = c.b.stack_addr(slot);
    let zero = c.b.i64(0);
    c.b.store(zero, slot, 0, MemFlags::ALIGNED);
    (ty, slot)
}

/// A status, with the native kernel that returned it; a body raises the errors for its codes itself.
pub(super) struct Status<'a> {
    pub kernel: Option<&'a Kernel>,
    pub code: Value,
}

/// Continues if a status is 0. Otherwise releases everything owned and returns the [code](status::code).
pub(super) fn unless_failed(
    c: &mut Checks<'_, '_>,
    pool: &mut ModulePool,
    signature: &Signature,
    status: Status<'_>,
    owned: &Owned<'_>,
) {
    let Status { kernel, code: status } = status;
    let (ok, failed) = (c.b.block(), c.b.cold_block());
    let fine = c.b.icmp_imm(IntCC::Eq, status, 0);
    c.b.branch(fine, ok, failed, Hint::Likely);
    c.b.switch_to(failed);
    let code = kernel.map_or(status, |kernel| status::code(c, pool, signature, kernel, status));
    leave(c, code, owned);
    c.b.switch_to(ok);
}

/// Releases everything owned, and returns the code of an error that is already raised.
pub(super) fn leave(c: &mut Checks<'_, '_>, code: Value, owned: &Owned<'_>) {
    for object in owned.allocated.iter().flat_map(|allocated| &allocated.objects) {
        c.b.structured(|c| ffi_call::release(c, c.val(*object)));
    }
    if let Some((_, slot)) = owned.written {
        release_written(c, slot);
    }
    c.b.ret(Some(code));
}

/// Returns 0, with the result that the kernel has written or filled.
pub(super) fn written(c: &mut Checks<'_, '_>, pool: &mut ModulePool, signature: &Signature, owned: Owned<'_>) {
    let Owned { allocated, written } = owned;
    match written {
        Some((ret, slot)) => {
            let descriptor = encode::encode_result(&mut pool.constants, signature, ret);
            let table = c.b.data_addr(pool.data, 0);
            let descriptor = match descriptor {
                Ok(offset) => c.b.iconst(Type::I32, i64::from(offset)),
                Err(missing) => c.missing(missing, Type::I32),
            };
            // a function that returns nothing leaves the caller's None unchanged
            let result = if *ret == ParamType::None { slot } else { c.b.param(RESULT) };
            let take_result = helpers::take_result(c.b.module());
            c.b.structured(|c| {
                let code = c.result(take_result, &[table, descriptor, slot, result].map(|arg| c.val(arg)));
                if signature.location(Part::Result).is_some() {
                    c.require(code.is(0), || {
                        locations::append(c, pool, signature, Part::Result, code);
                        c.ret(code);
                    });
                }
                c.ret(code);
            });
        }
        None => success(c, allocated),
    }
}

/// Returns 0, with the allocated tensors.
pub(super) fn success(c: &mut Checks<'_, '_>, allocated: Option<Allocated>) {
    if let Some(Allocated { objects, packer, .. }) = allocated {
        match (packer, objects.as_slice()) {
            (Some(packer), objects) => return packer.returns(c, objects),
            (None, [object, ..]) => {
                let result = c.b.param(RESULT);
                store_any(c.b, result, TypeIndex::TENSOR, *object);
            }
            (None, []) => {}
        }
    }
    succeed(c.b);
}

/// Returns 0, with the kernel's C result.
pub(super) fn value(c: &mut Checks<'_, '_>, signature: &Signature, value: Value) {
    let result = c.b.param(RESULT);
    match signature.ret() {
        Some(ParamType::Scalar(ScalarType::Bool)) => {
            let value = c.b.icmp_imm(IntCC::Ne, value, 0);
            store_result(c.b, result, ScalarType::Bool, value);
        }
        Some(ParamType::Scalar(ty)) => store_result(c.b, result, *ty, value),
        Some(ParamType::DType) => {
            let value = fields::before_zeros(c.b, value);
            store_any(c.b, result, TypeIndex::DATA_TYPE, value);
        }
        Some(ParamType::Device) => store_any(c.b, result, TypeIndex::DEVICE, value),
        // kernels don't return other types as C values
        _ => {}
    }
    succeed(c.b);
}

/// Releases an object that a kernel has written before it failed.
fn release_written(c: &mut Checks<'_, '_>, slot: Value) {
    c.b.structured(|c| {
        let slot = c.val(slot);
        let (index, payload) = (slot.load(Type::I32, TYPE_INDEX), slot.load(Type::Ptr, PAYLOAD));
        let owned = index.ge(TypeIndex::STATIC_OBJECT_BEGIN.0) & payload.is_not(0);
        let (yes, no) = (c.cold_block(), c.cold_block());
        c.branch(owned, yes, no, Hint::None);
        c.switch_to(yes);
        ffi_call::release(c, payload);
        c.jump(no, &[]);
        c.switch_to(no);
    });
}
