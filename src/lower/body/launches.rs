//! Launches of device kernels from a body, with named values in addition to the function's parameters.

use super::args::{Node, TensorVars};
use super::builder::Body;
use super::descriptor::device_of;
use super::expr::{Expr, Operand};
use super::function::BodyLowerer;
use super::tensor::TensorRef;
use crate::image::Image;
use crate::ir::{ConvertOp, Type, Value};
use crate::lower::args;
use crate::lower::convention::param::{KernelParam, ParamPart, ParamSource};
use crate::lower::convention::{Convention, KernelReturn, params};
use crate::lower::encode::{Subject, shown};
use crate::lower::fast_path::device_parts;
use crate::lower::launch::{self, LaunchSpec};
use crate::spec::{Launch, Layout, ParamType, ScalarType, Signature, TensorType, dim};

/// A value that a body passes to a launch under a name: an expression or a tensor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum LaunchValue<'b> {
    /// A number, or a pointer for the kernel.
    Scalar(Expr<'b>),
    /// A tensor. Under the name `ws`, its data is `ws`, and its sizes and strides are `ws.shape[0]` and
    /// `ws.strides[0]`.
    Tensor(TensorRef<'b>),
}

impl<'b> From<Expr<'b>> for LaunchValue<'b> {
    fn from(value: Expr<'b>) -> Self {
        LaunchValue::Scalar(value)
    }
}

impl<'b> From<TensorRef<'b>> for LaunchValue<'b> {
    fn from(value: TensorRef<'b>) -> Self {
        LaunchValue::Tensor(value)
    }
}

/// The named values of a launch.
#[derive(Default)]
struct Named {
    /// In order, each with its type as a parameter.
    params: Vec<(String, ParamType)>,
    /// C values by name; the value of a tensor is its data.
    values: Vec<(String, Value)>,
    /// Sizes and strides of tensors.
    dim_vars: Vec<(String, Value)>,
}

impl<'a> Body<'a> {
    /// Launches a kernel of `images` on the device of the function's first tensor with that kind of device, as
    /// [`Kernel::launch`](crate::Kernel::launch) does. Extents and parameters are expressions over the function's
    /// dimension variables and parameters. If a launch fails, the function releases what the body owns and raises the
    /// error.
    ///
    /// Errors in the launch itself are reported with the body's other errors, as
    /// [`LowerError::Body`](crate::LowerError::Body).
    pub fn launch(&self, launch: Launch, images: impl IntoIterator<Item = Image>) {
        self.launch_with(launch, images, std::iter::empty::<(&str, LaunchValue<'_>)>());
    }

    /// Like [`launch`](Self::launch), with named values of the body for the launch's expressions and parameters. A name
    /// must not be one of the function's own, except that of a parameter whose type is open: there it is the
    /// [narrowed](TensorRef::assume) tensor. Without stated [`args`](Launch::args) the kernel receives the values
    /// after the function's parameters, by convention `flat`.
    ///
    /// ```
    /// use tvm_ffi_codegen::lower::LaunchValue;
    /// use tvm_ffi_codegen::spec::{Launch, KernelArg};
    /// use tvm_ffi_codegen::{DLDataType, Kernel, dim};
    /// # let images: Vec<tvm_ffi_codegen::image::Image> = Vec::new();
    ///
    /// // norm(x: Tensor([n], float32, device="cuda"), y: Tensor([n], float32, device="cuda"))
    /// let norm = Kernel::body(move |b| {
    ///     let blocks = (b.dim("n") + 1023) / 1024;
    ///     let sums = b.alloc_tensor([blocks], DLDataType::FLOAT32, b.tensor("x"));
    ///     let args = |names: [&str; 2]| names.map(|name| KernelArg::Param(name.to_owned()));
    ///     let first = Launch::new("sums").grid([dim("sums.shape[0]")]).block([128]).args(args(["x", "sums"]));
    ///     b.launch_with(first, images.clone(), [("sums", sums)]);
    ///     let second = Launch::new("scale").grid([dim("blocks")]).block([128]).args(args(["sums", "y"]));
    ///     let values = [("sums", LaunchValue::from(sums)), ("blocks", blocks.into())];
    ///     b.launch_with(second, images.clone(), values);
    /// });
    /// # let _ = norm;
    /// ```
    pub fn launch_with<'b, N: AsRef<str>, V: Into<LaunchValue<'b>>>(
        &'b self,
        launch: Launch,
        images: impl IntoIterator<Item = Image>,
        values: impl IntoIterator<Item = (N, V)>,
    ) {
        let operation = format!("launch of `{}`", launch.entry());
        let images: Vec<Image> = images.into_iter().collect();
        let values = values.into_iter().map(|(name, value)| (name.as_ref().to_owned(), value.into()));
        let values: Vec<(String, LaunchValue<'b>)> = values.collect();
        self.recorder().inspect(|recorder| recorder.launch(&launch, &images, &values));
        let mut named = Named::default();
        let mut tensors: Vec<TensorRef<'b>> = Vec::new();
        let mut missing = false;
        for (name, value) in values {
            let name = name.as_str();
            // a narrowed tensor may have its parameter's name
            let own = self.signature.params().iter().find(|param| param.name == name);
            let narrowed = matches!((own, &value), (Some(param), LaunchValue::Tensor(tensor))
                if param.ty.as_tensor().is_some_and(TensorType::is_open) && tensor.is_named(name));
            let taken = self.signature.names_in_dims().contains(&name)
                || own.is_some_and(|_| !narrowed)
                || named.params.iter().any(|(known, _)| known == name);
            if taken || name.is_empty() {
                self.error(&operation, format!("the name `{name}` of a value is empty or has another meaning"));
                continue;
            }
            match value {
                LaunchValue::Scalar(value) => {
                    missing |= value.is_missing();
                    self.name_scalar(&mut named, &operation, name, value);
                }
                LaunchValue::Tensor(tensor) => {
                    missing |= tensor.ended().is_some() || tensor.known.is_none();
                    self.name_tensor(&mut named, &operation, name, tensor);
                    tensors.push(tensor);
                }
            }
        }
        // skip the launch: it would only report an unknown value, and the error of that value is recorded already
        if missing {
            return;
        }
        let signature = self.signature.with_values(named.params.iter().cloned());
        let spec = LaunchSpec::new(launch, images);
        let mut problems: Vec<String> = spec.problems(&signature).iter().map(ToString::to_string).collect();
        problems.extend(self.graph_problems(&spec));
        if !problems.is_empty() {
            return problems.into_iter().for_each(|problem| self.error(&operation, problem));
        }
        let on_the_api = |ty: &TensorType| ty.device.kind() == Some(spec.device().0);
        let first = self.args.params.iter().find_map(|param| first_tensor(param, &on_the_api));
        let first = first.map(|path| self.tensor(path));
        let of_values = || tensors.iter().copied().find(|tensor| tensor.known.is_some_and(|t| on_the_api(&t.vars.ty)));
        let Some(device) = first.or_else(of_values).and_then(|tensor| device_of(tensor, &operation)) else { return };
        let missing = self.emit(|l| l.launch(&spec, &signature, &named, device).err());
        if let Some(missing) = missing {
            self.error(&operation, format!("{missing} isn't known to the body"));
        }
    }

    fn name_scalar(&self, named: &mut Named, operation: &str, name: &str, value: Expr<'_>) {
        let ty = value.ty();
        let value = self.coerce(operation, ty, Operand::Expr(value)).value;
        let value = match ty {
            // a C `bool` is a byte
            ScalarType::Bool => self.value(|l| l.b.convert(ConvertOp::ZExt, Type::I8, value)),
            _ => value,
        };
        named.params.push((name.to_owned(), ParamType::Scalar(ty)));
        named.values.push((name.to_owned(), value));
    }

    fn name_tensor(&self, named: &mut Named, operation: &str, name: &str, tensor: TensorRef<'_>) {
        // the error of a missing tensor is recorded already
        let Some(known) = tensor.alive(operation) else { return };
        if !(tensor.knows_rank(operation) && tensor.knows_dtype(operation) && tensor.knows_device(operation)) {
            return;
        }
        let TensorVars { ty, shape, .. } = known.vars;
        let strides = (ty.layout != Layout::Contiguous).then(|| self.emit(|l| l.strides_of(known.vars)));
        let data = self.coerce(operation, ScalarType::Handle, Operand::Expr(tensor.ptr())).value;
        let mut part = |part: &str, values: &[Value]| -> Vec<_> {
            let names: Vec<String> = (0..values.len()).map(|d| format!("{name}.{part}[{d}]")).collect();
            named.dim_vars.extend(names.iter().cloned().zip(values.iter().copied()));
            names.into_iter().map(dim).collect()
        };
        let mut ty = ty.clone();
        // the dimensions of a parameter are the function's own
        let own =
            self.signature.params().iter().find(|param| param.name == name).and_then(|param| param.ty.as_tensor());
        if own.is_none_or(|own| own.shape.rank().is_none()) {
            ty.shape = part("shape", shape).into();
        }
        ty.layout = match strides {
            Some(_) if own.is_some_and(|own| own.strides().is_some()) => ty.layout,
            Some(strides) => Layout::Strides(part("strides", &strides)),
            None => Layout::Contiguous,
        };
        named.params.push((name.to_owned(), ParamType::Tensor(ty)));
        named.values.push((name.to_owned(), data));
    }
}

/// The path of the first tensor with a property that is certain to be given: a parameter or inside one.
fn first_tensor<'n>(node: &'n Node, is_it: &dyn Fn(&TensorType) -> bool) -> Option<&'n str> {
    match &node.ty {
        ParamType::Tensor(ty) if is_it(ty) => Some(&node.path),
        ParamType::Optional(_) => None,
        _ => node.items.iter().find_map(|item| first_tensor(item, is_it)),
    }
}

impl BodyLowerer<'_> {
    /// Emits a launch, given a signature with the function's parameters and the named values.
    ///
    /// # Errors
    /// The name of a value that isn't available.
    fn launch(&mut self, spec: &LaunchSpec, signature: &Signature, named: &Named, device: Value) -> Result<(), String> {
        let called = shown(self.signature, Subject::Call);
        let shot = self.next_shot(spec);
        let prepared = launch::prepare(self.module_parts(), spec, signature, &called, shot.is_some());
        let [kind, number] = device_parts(&mut self.b, device);
        let own = params::params(self.signature, Convention::Flat, KernelReturn::Status);
        let flat = params::params(signature, Convention::Flat, KernelReturn::Status);
        let params: Option<Vec<(&KernelParam, Value)>> =
            flat.iter().map(|param| Some((param, self.flat_value(&own, named, param)?))).collect();
        let params = params.ok_or_else(|| "a parameter of the kernel".to_owned())?;
        let args = args::Inputs { params, device_ids: Vec::new() };
        let inputs = launch::Inputs { args, device, kind: Some(kind), number, shot };
        let failure = launch::emit(&mut self.b, self.pool, &prepared, &inputs)?;
        self.fail_by(&failure);
        Ok(())
    }

    /// The parts of the module that launches are added to.
    pub(super) fn module_parts(&mut self) -> launch::ModuleParts<'_> {
        let (module, launches) = (self.b.module(), &mut *self.launches);
        let (pool, handles) = (&mut *self.pool, &mut *self.handles);
        launch::ModuleParts { module, pool, drivers: self.drivers, handles, prefix: self.prefix, launches }
    }

    /// Leaves the function where a launch has failed.
    pub(super) fn fail_by(&mut self, failure: &launch::Failure) {
        let here = self.b.current();
        self.b.switch_to(failure.block);
        self.exit(failure.code);
        self.b.switch_to(here);
    }

    /// The value of a parameter of convention `flat`: a named value or one of the function's own parameters.
    fn flat_value(&self, own: &[KernelParam], named: &Named, param: &KernelParam) -> Option<Value> {
        let by_name = |values: &[(String, Value)], name: &str| {
            values.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
        };
        let found = match &param.source {
            ParamSource::Argument(path, ParamPart::Value | ParamPart::Data) => by_name(&named.values, path),
            ParamSource::DimVar { name, .. } => by_name(&named.dim_vars, name),
            _ => None,
        };
        let is_it = |known: &KernelParam| match (&known.source, &param.source) {
            (ParamSource::DimVar { name: known, .. }, ParamSource::DimVar { name, .. }) => known == name,
            (known, source) => known == source,
        };
        found.or_else(|| own.iter().position(is_it).map(|at| self.b.param(at)))
    }
}
