//! The states of a compiler's own runtime ([`ParamType::EnvState`]) that a wrapper passes to its kernel.

use super::locations;
use crate::ir::Value;
use crate::lower::encode::{self, Subject};
use crate::lower::fast_path::Context;
use crate::lower::once::{self, Source, State};
use crate::lower::unit::{ModulePool, Unit};
use crate::spec::{ParamType, Part, Signature};

/// The states, each with the index of its parameter.
#[derive(Default)]
pub(super) struct States(Vec<(usize, State)>);

impl States {
    /// Finds the states of a signature.
    pub(super) fn new(into: &mut Unit, signature: &Signature) -> Self {
        let Unit { module, pool, handles, prefix, .. } = into;
        let mut states = Vec::new();
        for (number, param) in signature.params().iter().enumerate() {
            if let ParamType::EnvState(name) = &param.ty {
                let source = Source::of_state(name);
                states.push((number, handles.state(module, prefix, source, &mut pool.constants, pool.data)));
            }
        }
        States(states)
    }

    /// Loads the states and inserts them at their positions among the values.
    pub(super) fn take(&self, cx: &mut Context<'_, '_, '_>, pool: &mut ModulePool, values: &mut [Vec<Value>]) {
        let (b, signature) = (&mut *cx.checks.b, cx.plan.signature);
        for (number, state) in &self.0 {
            let caller = pool.constants.text(&encode::shown(signature, Subject::Param(*number)));
            let data = pool.data;
            let state = b.structured(|c| {
                let failed = |code| {
                    locations::append(c, pool, signature, Part::Param(*number), code);
                    c.ret(code);
                };
                once::load_state(c, *state, || c.data(data, caller), failed).value()
            });
            if let Some(values) = values.get_mut(*number) {
                *values = vec![state];
            }
        }
    }
}
