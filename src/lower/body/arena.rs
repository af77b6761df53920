//! Memory for the data that a body's values refer to. It lives until the body is built.

use super::args::{Args, TensorVars};
use crate::spec::ParamType;

/// Values returned by calls, and tensors created by the body.
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
