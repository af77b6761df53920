//! Kernels.

use std::ffi::c_void;
use std::sync::Arc;

use codegen::artifact::{ArchiveInput, Triple, archive_bytes};
use codegen::image::Image;
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, Array, Bytes, Obj, Object, Result};
use codegen::spec::{Launch, LaunchArg};
use codegen::{Convention, Kernel, KernelParam, KernelReturn};
use serde_json::json;

#[cfg(not(feature = "_llvm"))]
use crate::error::without_llvm;
use crate::error::{failure, other};
use crate::signature::SignatureObject;

/// The kernel of a function.
#[derive(Object)]
#[object(key = "tvm_ffi_codegen.Kernel", crate = tvm_ffi)]
pub struct KernelObject {
    #[object(skip)]
    form: Form,
    #[object(skip)]
    call: Call,
}

/// How a kernel is stated.
enum Form {
    /// A symbol, whose code comes with the compilation or is linked in.
    Symbol(String),
    /// Anything else.
    Ready(Kernel),
}

/// How a native kernel is called, where that is stated.
#[derive(Clone)]
struct Call {
    convention: Option<Convention>,
    returns: Option<KernelReturn>,
    args: Option<Vec<LaunchArg>>,
}

impl Call {
    /// `args` are the C parameters as the text form of launches has them: `x, int32(n)`.
    fn of(convention: Option<String>, returns: Option<String>, args: Option<String>) -> Result<Self> {
        let convention = convention.map(|name| name.parse().map_err(failure)).transpose()?;
        let returns = returns.map(|name| match name.as_str() {
            "nothing" => Ok(KernelReturn::Nothing),
            "status" => Ok(KernelReturn::Status),
            "value" => Ok(KernelReturn::Value),
            _ => Err(other(format!("expected that a kernel returns `nothing`, `status` or `value`, got `{name}`"))),
        });
        let args = args.map(|args| {
            let launch = launch_of(&format!("launch kernel args=[{args}]"))?;
            Ok::<_, tvm_ffi::Error>(launch.stated_args().unwrap_or_default().to_vec())
        });
        Ok(Call { convention, returns: returns.transpose()?, args: args.transpose()? })
    }

    /// The call that the signature implies.
    fn implied() -> Self {
        Call { convention: None, returns: None, args: None }
    }

    fn stated(&self, mut kernel: Kernel) -> Kernel {
        if let Some(convention) = self.convention {
            kernel = kernel.convention(convention);
        }
        if let Some(args) = &self.args {
            kernel = kernel.args(args.iter().cloned());
        }
        match self.returns {
            Some(returns) => kernel.returning(returns),
            None => kernel,
        }
    }
}

impl KernelObject {
    fn make(form: Form, call: Call) -> Result<Obj<Self>> {
        Obj::new(KernelObject { form, call })
    }

    /// The kernel without code: for an object file, whose linker has it.
    pub fn kernel(&self) -> Kernel {
        match &self.form {
            Form::Symbol(symbol) => self.call.stated(Kernel::symbol(symbol.clone())),
            Form::Ready(kernel) => kernel.clone(),
        }
    }

    /// The kernel with objects and archives that have its symbol, for this process.
    pub fn with_objects(&self, objects: Option<&Arc<[u8]>>) -> Kernel {
        match (&self.form, objects) {
            (Form::Symbol(symbol), Some(objects)) => {
                self.call.stated(Kernel::object(Arc::clone(objects), symbol.clone()))
            }
            _ => self.kernel(),
        }
    }
}

/// Several objects and archives as one; `None` of none.
pub fn together(objects: &Array<Bytes>) -> Result<Option<Arc<[u8]>>> {
    let all: Vec<Bytes> = objects.iter().collect();
    match &all[..] {
        [] => Ok(None),
        [one] => Ok(Some(Arc::from(&**one))),
        several => {
            let input = |(number, bytes): (usize, &Bytes)| ArchiveInput::Object {
                name: format!("objects[{number}]"),
                bytes: bytes.to_vec(),
            };
            let inputs: Vec<_> = several.iter().enumerate().map(input).collect();
            let archive = archive_bytes(&Triple::host(), &inputs).map_err(failure)?;
            Ok(Some(Arc::from(archive)))
        }
    }
}

/// No kernel: the function only checks its arguments.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_check_only() -> Result<Obj<KernelObject>> {
    KernelObject::make(Form::Ready(Kernel::check_only()), Call::implied())
}

/// The C function of a symbol. `convention` is `flat`, `dltensor`, `memref` or `packed`; `returns` is `nothing`, `status` or `value`; `args` are the C
/// parameters, `x, int32(n)`; None is what the signature implies.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_symbol(
    symbol: String,
    convention: Option<String>,
    returns: Option<String>,
    args: Option<String>,
) -> Result<Obj<KernelObject>> {
    KernelObject::make(Form::Symbol(symbol), Call::of(convention, returns, args)?)
}

/// The C function of a symbol with the objects or archives that have it.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_object(
    objects: Array<Bytes>,
    symbol: String,
    convention: Option<String>,
    returns: Option<String>,
    args: Option<String>,
) -> Result<Obj<KernelObject>> {
    let call = Call::of(convention, returns, args)?;
    let objects = together(&objects)?.ok_or_else(|| other("expected at least one object"))?;
    KernelObject::make(Form::Ready(call.stated(Kernel::object(objects, symbol))), call)
}

/// The C function of a symbol in LLVM's textual IR.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_llvm_ir(
    text: String,
    symbol: String,
    convention: Option<String>,
    returns: Option<String>,
    args: Option<String>,
) -> Result<Obj<KernelObject>> {
    let call = Call::of(convention, returns, args)?;
    #[cfg(feature = "_llvm")]
    return KernelObject::make(Form::Ready(call.stated(Kernel::llvm_ir(text, symbol))), call);
    #[cfg(not(feature = "_llvm"))]
    {
        drop((text, symbol, call));
        Err(without_llvm())
    }
}

/// The C function of a symbol in LLVM's bitcode.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_bitcode(
    bitcode: Bytes,
    symbol: String,
    convention: Option<String>,
    returns: Option<String>,
    args: Option<String>,
) -> Result<Obj<KernelObject>> {
    let call = Call::of(convention, returns, args)?;
    #[cfg(feature = "_llvm")]
    return KernelObject::make(Form::Ready(call.stated(Kernel::bitcode(&*bitcode, symbol))), call);
    #[cfg(not(feature = "_llvm"))]
    {
        drop((bitcode, symbol, call));
        Err(without_llvm())
    }
}

/// The C function at an address of this process. `owner` lives as long as a function that calls it.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_address(
    address: i64,
    owner: Any,
    convention: Option<String>,
    returns: Option<String>,
    args: Option<String>,
) -> Result<Obj<KernelObject>> {
    let call = Call::of(convention, returns, args)?;
    let address = usize::try_from(address as u64).map_err(|_| other(format!("{address:#x} is no address")))?;
    let kernel = Kernel::address(std::ptr::with_exposed_provenance::<c_void>(address)).keep_alive(Arc::new(owner));
    KernelObject::make(Form::Ready(call.stated(kernel)), call)
}

/// A kernel of a device by the text of its launch, `launch ENTRY grid=...`, with the images that have it: cubins, fatbins, PTX or AMD's code objects.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_launch(launch: &str, images: Array<Bytes>) -> Result<Obj<KernelObject>> {
    let image = |bytes: Bytes| Image::from_bytes(&*bytes).map_err(failure);
    let images = images.iter().map(image).collect::<Result<Vec<_>>>()?;
    KernelObject::make(Form::Ready(Kernel::launch(launch_of(launch)?, images)), Call::implied())
}

/// A launch on the CPU by its text: a kernel that is called for each block of the grid.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_launch_on_cpu(launch: &str, function: &Obj<KernelObject>) -> Result<Obj<KernelObject>> {
    let kernel = Kernel::launch_on_cpu(launch_of(launch)?, function.kernel());
    KernelObject::make(Form::Ready(kernel), Call::implied())
}

fn launch_of(text: &str) -> Result<Launch> {
    text.parse::<Launch>().map_err(failure)
}

/// A function of its own that does what the first launches of kernels do otherwise; its signature is `NAME(device: device)`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_first_use(kernels: Array<Obj<KernelObject>>) -> Result<Obj<KernelObject>> {
    let kernels: Vec<Kernel> = kernels.iter().map(|kernel| kernel.kernel()).collect();
    KernelObject::make(Form::Ready(Kernel::first_use(&kernels)), Call::implied())
}

/// The C function that a kernel has to be as JSON: `text`, the prototype; `params` (`name`, `type`, `source`), in order; and `returns`, a C type or null.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_prototype(signature: &Obj<SignatureObject>, kernel: &Obj<KernelObject>) -> Result<String> {
    let (signature, kernel) = (&signature.signature, kernel.kernel());
    let param = |param: &KernelParam| json!({ "name": param.name, "type": param.c_type.to_string(), "source": param.source.to_string() });
    let params = kernel.parameters(signature).map_err(failure)?;
    let returns = kernel.return_type(signature).map_err(failure)?;
    let json = json!({
        "text": kernel.c_prototype(signature).map_err(failure)?,
        "params": params.iter().map(param).collect::<Vec<_>>(),
        "returns": returns.map(|ty| ty.to_string()),
    });
    Ok(json.to_string())
}

/// The C function that a kernel has to be, as a C header.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_header(signature: &Obj<SignatureObject>, kernel: &Obj<KernelObject>) -> Result<String> {
    kernel.kernel().header(&signature.signature).map_err(failure)
}
