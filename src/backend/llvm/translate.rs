//! Translates a module of the IR to LLVM.

use super::function::{self, Built};
use super::module::{ModuleTranslator, Surroundings};

/// Translates every function that has a body.
pub(super) fn translate<'ctx>(m: &mut ModuleTranslator<'_, 'ctx>, surroundings: &Surroundings<'_, 'ctx>) -> Built<()> {
    let called = m.called();
    m.declare(surroundings.bindings);
    let ir = m.ir;
    for (func, decl) in &ir.functions {
        let (Some(body), Some(function)) = (&decl.body, m.functions[func]) else { continue };
        // After inlining, a load is among the caller's stores, so the read-only promise no longer holds.
        let invariant = surroundings.alone && !called[func];
        let scope = m.debug.as_mut().and_then(|debug| debug.define(decl, body, function));
        function::translate(m, body, function, invariant, scope)?;
    }
    m.finish(surroundings);
    Ok(())
}
