//! The configuration of a launch for the driver: its extents, stream and attributes.

use super::super::device_api::{LaunchForm, attribute, config};
use super::attributes::{self, AttributeValue};
use super::emitter::LaunchEmitter;
use crate::ir::{ConvertOp, IntCC, MemFlags, StackSlot, Type, Value};

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
        if form.is_some() {
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

    /// Writes the attributes of a launch; returns their address and number.
    fn attributes(&mut self, cluster: &[Value], preferred: &[Value]) -> (Value, i64) {
        let stated = attributes::stated(self.prepared.launch);
        let count = stated.len();
        if count == 0 {
            return (self.values.b.ptr_const(0), 0);
        }
        let slot = self.values.b.slot(attribute::SIZE * count as u32, 8);
        let address = self.values.b.stack_addr(slot);
        for (stated, at) in stated.iter().zip((0..).step_by(attribute::SIZE as usize)) {
            let (id, value) = (at + attribute::ID, at + attribute::VALUE);
            if let AttributeValue::Event(name) = stated.value {
                self.store_event(name, stated.id, address, at);
                continue;
            }
            let number = self.values.b.iconst(Type::I32, stated.id);
            self.values.b.store(number, address, id, MemFlags::ALIGNED);
            match stated.value {
                AttributeValue::Extents(_) => {
                    let extents = if stated.id == attribute::CLUSTER { cluster } else { preferred };
                    self.store_extents(extents, address, value);
                }
                AttributeValue::Flag => self.store_number(1, address, value),
                AttributeValue::Number(number) | AttributeValue::Word(number, _) => {
                    self.store_number(number, address, value);
                }
                AttributeValue::Event(_) => {}
            }
        }
        (address, count as i64)
    }

    fn store_number(&mut self, number: i64, address: Value, at: i32) {
        let number = self.values.b.iconst(Type::I32, number);
        self.values.b.store(number, address, at, MemFlags::ALIGNED);
    }

    /// Writes the attribute of an event, a parameter. The driver skips the attribute if there is no event.
    fn store_event(&mut self, name: &str, id: i64, address: Value, at: i32) {
        let named = self.values.named(name).map(|(_, event)| event);
        let event = named.unwrap_or_else(|| self.values.missing_value(format!("the event {name}"), Type::I64));
        let b = &mut *self.values.b;
        let event = match b.type_of(event) {
            Type::Ptr => b.convert(ConvertOp::PtrToInt, Type::I64, event),
            _ => event,
        };
        let none = b.icmp_imm(IntCC::Eq, event, 0);
        let (skipped, id) = (b.iconst(Type::I32, attribute::IGNORE), b.iconst(Type::I32, id));
        let id = b.select(none, skipped, id);
        b.store(id, address, at + attribute::ID, MemFlags::ALIGNED);
        b.store(event, address, at + attribute::VALUE, MemFlags::ALIGNED);
        self.store_number(0, address, at + attribute::EVENT_FLAGS);
    }
}
