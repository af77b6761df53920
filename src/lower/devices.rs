//! Determines which tensors of a signature share a device.

use crate::spec::{Device, DeviceId, Signature};
use tvm_ffi_runtime::abi::DLDeviceType;

/// The kinds of devices that a signature names, in order of appearance. Each has the id that tensors without a stated
/// id share. An extra slot is for tensors that may be on any device.
pub(in crate::lower) struct Devices {
    kinds: Vec<(DLDeviceType, Shared)>,
}

/// The id for tensors without a stated id, derived from the stated ids of the same kind of device.
#[derive(Clone, Copy, PartialEq)]
enum Shared {
    /// No id is stated: the first tensor determines it.
    Open,
    /// All stated ids are this one.
    Stated(i32),
    /// Different ids are stated: the tensors without one share an id among themselves.
    Mixed,
}

/// The id that a tensor must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum SharedId {
    /// This id.
    Fixed(i32),
    /// The id of the first tensor in its slot.
    OfSlot,
    /// Any id.
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

    /// The slot of a device, and its required id.
    pub(in crate::lower) fn place(&self, device: &Device) -> (usize, SharedId) {
        let Device::Kind(kind, id) = device else { return (self.kinds.len(), SharedId::OfSlot) };
        let slot = self.kinds.iter().position(|(known, _)| known == kind);
        let shared = slot.and_then(|slot| self.kinds.get(slot)).map(|(_, shared)| *shared);
        let id = match (id, shared) {
            (DeviceId::Fixed(id), _) => SharedId::Fixed(*id),
            (DeviceId::Shared, Some(Shared::Stated(id))) => SharedId::Fixed(id),
            (DeviceId::Shared, Some(Shared::Open | Shared::Mixed)) => SharedId::OfSlot,
            // a result may have a kind of device that no parameter has
            (DeviceId::Shared, None) | (DeviceId::Any, _) => SharedId::Any,
        };
        (slot.unwrap_or(0), id)
    }
}
