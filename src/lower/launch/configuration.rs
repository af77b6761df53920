//! The configuration of a launch for the driver: its extents, stream and attributes.

use super::super::device_api::{LaunchForm, attribute, config};
use super::emitter::LaunchEmitter;
use crate::ir::{ConvertOp, MemFlags, StackSlot, Type, Value};

impl LaunchEmitter<'_, '_> {
    /// Writes a launch's configuration to the stack, except for the stream; returns its slot.
    pub(super) fn config(&mut self, [grid, block, cluster, preferred, shared]: [&[Value]; 5]) -> StackSlot {
        let slot = self.values.b.slot(config::SIZE, 8);
        let address = self.values.b.stack_addr(slot);
        for (extents, at) in [(grid, config::GRID), (block, config::BLOCK)] {
            self.store_extents(extents, address, at);
        }
        let bytes = self.in_32_bits(shared[0]);
        self.values.b.store(bytes, address, config::SHARED, MemFlags::ALIGNED);
        let form = self.prepared.code.on_device().map(|code| code.form);
        let (attributes, count) = match form {
            Some(LaunchForm::Configuration) => self.attributes(cluster, preferred),
            Some(LaunchForm::Arguments) | None => (self.values.b.ptr_const(0), 0),
        };
        self.values.b.store(attributes, address, config::ATTRIBUTES, MemFlags::ALIGNED);
        let count = self.values.b.iconst(Type::I32, count);
        self.values.b.store(count, address, config::COUNT, MemFlags::ALIGNED);
        if form == Some(LaunchForm::Configuration) {
            // the driver's function, and so a hook in its place, gets no device
            self.values.b.store(self.inputs.number, address, config::DEVICE, MemFlags::ALIGNED);
        }
        slot
    }

    /// Writes the stream into a launch's configuration.
    pub(super) fn set_stream(&mut self, config: StackSlot, stream: Value) {
        let address = self.values.b.stack_addr(config);
        self.values.b.store(stream, address, config::STREAM, MemFlags::ALIGNED);
    }

    /// A checked extent as 32 bits; its upper half is 0.
    fn in_32_bits(&mut self, extent: Value) -> Value {
        match self.values.b.as_int_const(extent) {
            Some(number) => self.values.b.iconst(Type::I32, number),
            None => self.values.b.convert(ConvertOp::Truncate, Type::I32, extent),
        }
    }

    /// Writes three extents. An extent that isn't stated is 1.
    fn store_extents(&mut self, extents: &[Value], address: Value, at: i32) {
        for (i, at) in (0..3).zip((at..).step_by(4)) {
            let extent = match extents.get(i) {
                Some(extent) => self.in_32_bits(*extent),
                None => self.values.b.iconst(Type::I32, 1),
            };
            self.values.b.store(extent, address, at, MemFlags::ALIGNED);
        }
    }

    /// Writes the attributes of a launch; returns their address and number. The cluster is the first attribute, because
    /// messages read it there.
    fn attributes(&mut self, cluster: &[Value], preferred: &[Value]) -> (Value, i64) {
        let launch = self.prepared.launch;
        let flag = |stated: bool, id: i64| stated.then_some((id, 1));
        let numbers = [
            flag(launch.flags().cooperative, attribute::COOPERATIVE),
            flag(launch.flags().programmatic_dependent_launch, attribute::PROGRAMMATIC),
            launch.stated_priority().map(|priority| (attribute::PRIORITY, i64::from(priority))),
        ];
        let numbers: Vec<_> = numbers.into_iter().flatten().collect();
        let clusters = [(cluster, attribute::CLUSTER), (preferred, attribute::PREFERRED_CLUSTER)];
        let clusters: Vec<_> = clusters.into_iter().filter(|(extents, _)| !extents.is_empty()).collect();
        let count = clusters.len() + numbers.len();
        if count == 0 {
            return (self.values.b.ptr_const(0), 0);
        }
        let slot = self.values.b.slot(attribute::SIZE * count as u32, 8);
        let address = self.values.b.stack_addr(slot);
        let mut at = 0;
        for (extents, id) in clusters {
            let id = self.values.b.iconst(Type::I32, id);
            self.values.b.store(id, address, at + attribute::ID, MemFlags::ALIGNED);
            self.store_extents(extents, address, at + attribute::VALUE);
            at += attribute::SIZE as i32;
        }
        for (id, value) in numbers {
            let (id, value) = (self.values.b.iconst(Type::I32, id), self.values.b.iconst(Type::I32, value));
            self.values.b.store(id, address, at + attribute::ID, MemFlags::ALIGNED);
            self.values.b.store(value, address, at + attribute::VALUE, MemFlags::ALIGNED);
            at += attribute::SIZE as i32;
        }
        (address, count as i64)
    }
}
