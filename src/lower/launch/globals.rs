//! The global variables that a launch writes: their values, in one block for the helper.

use super::super::device_api::{Launchable, VALUE_OF_GLOBAL};
use super::emitter::LaunchEmitter;
use crate::ir::{MemFlags, Value};
use crate::lower::args::Stores;

impl LaunchEmitter<'_, '_> {
    /// Writes the launch's global variables on a stream, after the kernel's first use.
    pub(super) fn write_globals(&mut self, launchable: Launchable, stream: Value) {
        let (globals, Some(failures)) = (self.prepared.launch.globals(), self.failures) else { return };
        if globals.is_empty() {
            return;
        }
        let (mut stores, mut size) = (Stores::new(), 0_u32);
        for (_, value) in globals {
            let memory = &mut self.memory;
            let laid = self.values.argument(value, &mut |values, bytes, align| memory.scratch(values, bytes, align));
            let bytes = self.values.b.i64(i64::from(laid.bytes));
            stores.push((size, bytes));
            let at = size + VALUE_OF_GLOBAL;
            stores.extend(laid.stores.into_iter().map(|(offset, value)| (at + offset, value)));
            size = at + laid.bytes.next_multiple_of(8);
        }
        let block = self.values.b.slot(size, 8);
        let block = self.values.b.stack_addr(block);
        for (at, value) in stores {
            self.values.b.store(value, block, at as i32, MemFlags::UNALIGNED);
        }
        let device = self.inputs.number;
        self.values.b.structured(|c| {
            let [values, stream, device] = [block, stream, device].map(|value| c.val(value));
            launchable.write_globals(values, stream, device, failures);
        });
    }
}
