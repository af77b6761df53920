//! Which tensors of a signature share a device.

use crate::spec::{Device, DeviceId, Signature};
use tvm_ffi_runtime::abi::DLDeviceType;

/// The kinds of devices that a signature names, in order of appearance, each with the id that tensors without one share. A slot more
/// is for the tensors that may be anywhere.
pub(in crate::lower) struct Devices {
    kinds: Vec<(DLDeviceType, Shared)>,
}

/// What the stated ids of one kind of device say about the tensors without.
#[derive(Clone, Copy, PartialEq)]
enum Shared {
    /// None is stated: the first tensor says it.
    Open,
    /// All that state one state this one.
    Stated(i32),
    /// Different ones are stated: the tensors without share one among themselves.
    Mixed,
}

/// The id that a tensor has to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum SharedId {
    /// This one.
    Fixed(i32),
    /// That of the first in its slot.
    OfSlot,
    /// Any.
    Any,
}

impl Devices {
    pub(in crate::lower) fn of(signature: &Signature) -> Self {
        let mut kinds: Vec<(DLDeviceType, Shared)> = Vec::new();
        let mut add = |device: &Device| {
            let Device::Kind(kind, id) = *device else { return };
            let at = kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
                kinds.push((kind, Shared::Open));
                kinds.len() - 1
            });
            let shared = &mut kinds[at].1;
            *shared = match (*shared, id) {
                (before, DeviceId::Shared | DeviceId::Any) => before,
                (Shared::Open, DeviceId::Fixed(id)) => Shared::Stated(id),
                (Shared::Stated(known), DeviceId::Fixed(id)) if known == id => Shared::Stated(id),
                (_, DeviceId::Fixed(_)) => Shared::Mixed,
            };
        };
        for param in signature.params() {
            param.ty.for_each_tensor(&mut |tensor| add(&tensor.device));
        }
        Devices { kinds }
    }

    /// The number of slots.
    pub(in crate::lower) fn slots(&self) -> usize {
        self.kinds.len() + 1
    }

    /// The slot of a device, and the id that it has to have.
    pub(in crate::lower) fn place(&self, device: &Device) -> (usize, SharedId) {
        let Device::Kind(kind, id) = device else { return (self.kinds.len(), SharedId::OfSlot) };
        let slot = self.kinds.iter().position(|(known, _)| known == kind);
        let shared = slot.and_then(|slot| self.kinds.get(slot)).map(|(_, shared)| *shared);
        let id = match (id, shared) {
            (DeviceId::Fixed(id), _) => SharedId::Fixed(*id),
            (DeviceId::Shared, Some(Shared::Stated(id))) => SharedId::Fixed(id),
            (DeviceId::Shared, Some(Shared::Open | Shared::Mixed)) => SharedId::OfSlot,
            // a result's kind may be one of which no parameter is
            (DeviceId::Shared, None) | (DeviceId::Any, _) => SharedId::Any,
        };
        (slot.unwrap_or(0), id)
    }
}
