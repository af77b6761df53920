//! The wrapper of a function with records. Values of their fields may have no other owner: a getter may create them,
//! and a Dict may change. So the exported function has memory for their owners, calls the wrapper proper, and releases
//! them.

use crate::ir::{FuncRef, Linkage, Module, PointerFacts, Type};
use crate::lower::ffi_call;
use crate::lower::protocol::offset;
use crate::lower::protocol::state::OwnedValues;
use crate::spec::{ParamType, Signature};

/// The end of the name of a wrapper proper.
const SUFFIX: &str = "-records";
/// The parameter of a wrapper proper that is the address of [`OwnedValues`].
pub(super) const OWNED: usize = 4;

/// Defines the exported function, and returns the wrapper proper, which is declared with the facts of `outer`.
pub(super) fn enclose(module: &mut Module, outer: FuncRef, signature: &Signature) -> FuncRef {
    let decl = &module.functions[outer];
    let (name, facts) = (format!("{}{SUFFIX}", decl.name), decl.param_facts.clone());
    let mut prototype = decl.signature.clone();
    let of_pointer = prototype.params[0];
    prototype.params.push(of_pointer);
    let inner = module.declare(name, prototype, Linkage::Local);
    module.functions[inner].param_facts = facts;
    module.functions[inner].param_facts.resize(OWNED + 1, PointerFacts::NONE);
    let most: usize = signature.params().iter().map(|param| fields(&param.ty)).sum();
    module.define(outer, |c| {
        let owned = c.slot(size_of::<OwnedValues>() + 8 * most);
        owned.store(offset!(OwnedValues, count), c.i64(0));
        let code = c.result(inner, &[c.param(0), c.param(1), c.param(2), c.param(3), owned]);
        c.for_up(owned.load(Type::I64, offset!(OwnedValues, count)), |index| {
            ffi_call::release(
                c,
                (owned + size_of::<OwnedValues>() as i64).element(index, Type::Ptr).load(Type::Ptr, 0),
            );
        });
        c.ret(code);
    });
    inner
}

/// The name of the exported function, given that of the function that has the checks.
pub(super) fn exported_name(name: &str) -> &str {
    name.strip_suffix(SUFFIX).unwrap_or(name)
}

/// The number of fields of all records in a type.
fn fields(ty: &ParamType) -> usize {
    let own = if let ParamType::Record { fields: own, .. } = ty { own.len() } else { 0 };
    own + ty.inner().into_iter().map(fields).sum::<usize>()
}
