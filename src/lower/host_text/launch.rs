//! Lowers launches: the local values in them are the named values of `launch_with`.

use super::driver::Driver;
use super::value::Val;
use crate::host::tree::{LaunchOf, Span};
use crate::lower::body::LaunchValue;
use crate::spec::{Dim, KernelArg, Launch, LaunchLocal, ParamType};

impl<'b> Driver<'b, '_, '_> {
    pub(super) fn launch(&self, span: &Span, launch: &LaunchOf) {
        let (stated, items) = (&launch.launch, &launch.items);
        let images = self.source.images_of(stated.entry(), items.images.as_deref());
        let mut named: Vec<(String, LaunchValue<'b>)> = Vec::new();
        for LaunchLocal { name, value, span } in items.values.iter().flatten() {
            let value = self.named(span, value);
            named.extend(self.launch_value(span, value).map(|value| (name.clone(), value)));
        }
        for name in names(stated) {
            let known = named.iter().any(|(known, _)| *known == name);
            let local = self.narrowed(&name).map(Val::Tensor).or_else(|| self.local(&name)).filter(|_| !known);
            named.extend(local.and_then(|value| self.launch_value(span, value)).map(|value| (name, value)));
        }
        self.at(span);
        self.body.launch_with(stated.clone(), images, named);
    }

    fn launch_value(&self, span: &Span, value: Val<'b, '_>) -> Option<LaunchValue<'b>> {
        self.at(span);
        let of_param = |param: crate::lower::body::ParamRef<'b>| match param.ty() {
            Some(ParamType::Tensor(_)) => param.tensor().into(),
            _ => param.value().into(),
        };
        match value {
            Val::Expr(expr) => Some(expr.into()),
            Val::Tensor(tensor) => Some(tensor.into()),
            Val::Param(param) | Val::Whole(param) => Some(of_param(param)),
            Val::Result(result) => Some(of_param(*result)),
            Val::Missing => None,
            _ => {
                self.error(span, "launch", "takes numbers, pointers and tensors");
                None
            }
        }
    }
}

/// The names in a launch's expressions and parameters, without the parts behind a dot.
fn names(launch: &Launch) -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |name: &str| {
        let name = name.split('.').next().unwrap_or_default();
        if !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
    };
    let extents =
        [launch.grid_extents(), launch.block_extents(), launch.cluster_extents(), launch.preferred_cluster_extents()];
    let dims = extents.into_iter().flatten().chain([launch.shared_memory_bytes()]);
    dims.for_each(|dim: &Dim| dim.for_each_var(&mut |name| add(name)));
    let args = launch.stated_args().unwrap_or_default().iter().chain(launch.globals().iter().map(|(_, value)| value));
    args.for_each(|arg| names_of_arg(arg, &mut add));
    launch.stated_stream().iter().chain(&launch.stated_completion_event()).for_each(|name| add(name));
    all
}

fn names_of_arg(arg: &KernelArg, add: &mut dyn FnMut(&str)) {
    match arg {
        KernelArg::Param(name) | KernelArg::Cast(name, _) | KernelArg::Stride(name, ..) | KernelArg::DeviceId(name) => {
            add(name);
        }
        KernelArg::Int(dim, _) | KernelArg::Scratch { bytes: dim, .. } => dim.for_each_var(&mut |name| add(name)),
        // the parser limits how deep structs are nested
        KernelArg::Struct { fields, .. } => fields.iter().for_each(|(_, field)| names_of_arg(field, add)),
        KernelArg::TensorMap(map) => {
            add(&map.tensor);
            map.box_dims.iter().for_each(|dim| dim.for_each_var(&mut |name| add(name)));
        }
        KernelArg::Float(..) | KernelArg::Null => {}
    }
}
