//! The memory of what values of a body refer to: it lives as long as the body is being written.

use super::args::{Args, TensorVars};
use crate::spec::ParamType;

/// Values that a call has returned, and tensors that the body has made.
#[derive(Default)]
pub(super) struct Arena {
    args: typed_arena::Arena<Args>,
    tensors: typed_arena::Arena<TensorVars>,
    names: typed_arena::Arena<String>,
    types: typed_arena::Arena<ParamType>,
}

impl Arena {
    pub(super) fn args(&self, args: Args) -> &Args {
        self.args.alloc(args)
    }

    pub(super) fn tensor(&self, tensor: TensorVars) -> &TensorVars {
        self.tensors.alloc(tensor)
    }

    pub(super) fn ty(&self, ty: ParamType) -> &ParamType {
        self.types.alloc(ty)
    }

    pub(super) fn name(&self, name: String) -> &str {
        self.names.alloc(name)
    }
}
