//! The states of a compiler's own runtime ([`ParamType::EnvState`]) that a wrapper passes to its kernel.

use crate::ir::Value;
use crate::lower::fast_path::Context;
use crate::lower::once::{self, State};
use crate::lower::unit::{Pool, Unit};
use crate::spec::{ParamType, Signature};

/// The states, each with the number of its parameter.
#[derive(Default)]
pub(super) struct States(Vec<(usize, State)>);

impl States {
    /// Those of a signature.
    pub(super) fn new(into: &mut Unit, signature: &Signature) -> Self {
        let Unit { module, pool, handles, prefix, .. } = into;
        let mut states = Vec::new();
        for (number, param) in signature.params().iter().enumerate() {
            if let ParamType::EnvState(name) = &param.ty {
                states.push((number, handles.state(module, prefix, name, &mut pool.constants, pool.data)));
            }
        }
        States(states)
    }

    /// Puts the states in their places among the values.
    pub(super) fn take(&self, cx: &mut Context<'_, '_, '_>, pool: &mut Pool, values: &mut [Vec<Value>]) {
        let b = &mut *cx.checks.b;
        for (number, state) in &self.0 {
            let caller = pool.constants.text(&cx.plan.signature.to_string());
            let state = once::load_state(b, *state, |b| b.data_addr(pool.data, caller), |b, code| b.ret(Some(code)));
            if let Some(values) = values.get_mut(*number) {
                *values = vec![state];
            }
        }
    }
}
