//! Kernels.

use std::sync::Arc;

use codegen::artifact::{ArchiveInput, Triple, archive_bytes};
use codegen::image::Image;
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, Array, Bytes, Obj, Object, Result};
use codegen::spec::{KernelArg, Launch};
use codegen::{Convention, Kernel, KernelParam, KernelReturn};
use serde_json::json;

#[cfg(not(feature = "_llvm"))]
use crate::error::without_llvm;
use crate::error::{bad_value, failure, other};
use crate::signature::SignatureObject;

/// The kernel of a function.
#[derive(Object)]
#[object(key = "tvm_ffi_codegen.Kernel", crate = tvm_ffi)]
pub struct KernelObject {
    #[object(skip)]
    form: Form,
    #[object(skip)]
    call: Call,
    #[object(skip)]
    given: Given,
}

/// How the caller specified the kernel.
#[derive(Clone)]
enum Form {
    /// A symbol. Its code is passed at compilation or linked in.
    Symbol(String),
    /// A function that comes with its code.
    WithCode(Kernel),
    /// Runs another kernel as a launch on the CPU.
    OnCpu(Launch, Obj<KernelObject>),
    /// Any other kernel; it refers to no symbol.
    Ready(Kernel),
}

/// The addresses of symbols that a kernel's code refers to, and the object that owns them.
#[derive(Clone, Default)]
struct Given {
    symbols: Vec<(String, usize)>,
    owners: Vec<Any>,
}

impl Given {
    fn add_to(&self, kernel: Kernel) -> Kernel {
        let give = |kernel: Kernel, (name, address): &(String, usize)| {
            kernel.with_symbol(name, std::ptr::with_exposed_provenance::<u8>(*address))
        };
        let kernel = self.symbols.iter().fold(kernel, give);
        self.owners.iter().fold(kernel, |kernel, owner| kernel.keep_alive(Arc::new(owner.clone())))
    }
}

/// The stated parts of a native kernel's calling convention.
#[derive(Clone)]
struct Call {
    convention: Option<Convention>,
    returns: Option<KernelReturn>,
    args: Option<Vec<KernelArg>>,
}

impl Call {
    /// `args` are the C parameters in their text form: `x, int32(n)`.
    fn of(convention: Option<String>, returns: Option<String>, args: Option<String>) -> Result<Self> {
        let convention =
            convention.map(|name| name.parse().map_err(|error| bad_value("convention", error))).transpose()?;
        let returns = returns.map(|name| name.parse().map_err(|error| bad_value("returns", error))).transpose()?;
        let args = args.map(|args| KernelArg::list(&args).map_err(failure));
        Ok(Call { convention, returns, args: args.transpose()? })
    }

    /// The calling convention that the signature implies.
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
            Some(returns) => kernel.returns(returns),
            None => kernel,
        }
    }
}

impl KernelObject {
    fn make(form: Form, call: Call) -> Result<Obj<Self>> {
        Obj::new(KernelObject { form, call, given: Given::default() })
    }

    /// The kernel without code, for an object file: the linker supplies the code.
    pub fn kernel(&self) -> Kernel {
        self.with_code(None)
    }

    /// The kernel for this process. `objects` are objects and archives that define its symbol, or the symbols that its
    /// own code refers to.
    pub fn with_objects(&self, objects: Option<&Arc<[u8]>>) -> Result<Kernel> {
        match (self.refers_to_symbols(), objects) {
            (false, Some(_)) => Err(bad_value(
                "objects",
                "expected none for a kernel that refers to no symbol: an address, a launch on a device, or none",
            )),
            _ => Ok(self.with_code(objects)),
        }
    }

    fn with_code(&self, objects: Option<&Arc<[u8]>>) -> Kernel {
        let kernel = match (&self.form, objects) {
            (Form::Symbol(symbol), None) => self.call.stated(Kernel::symbol(symbol.clone())),
            (Form::Symbol(symbol), Some(objects)) => {
                self.call.stated(Kernel::object(Arc::clone(objects), symbol.clone()))
            }
            (Form::WithCode(kernel), Some(objects)) => kernel.clone().beside(Arc::clone(objects)),
            (Form::OnCpu(launch, function), _) => Kernel::launch_on_cpu(launch.clone(), function.with_code(objects)),
            (Form::WithCode(kernel) | Form::Ready(kernel), _) => kernel.clone(),
        };
        self.given.add_to(kernel)
    }

    /// True if the kernel is code that can refer to symbols of objects and addresses.
    fn refers_to_symbols(&self) -> bool {
        match &self.form {
            Form::Symbol(_) | Form::WithCode(_) => true,
            Form::OnCpu(_, function) => function.refers_to_symbols(),
            Form::Ready(_) => false,
        }
    }
}

/// Combines several objects and archives into one; `None` if there are none.
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

/// The kernel that is the C function with this symbol. `convention` is `flat`, `dltensor`, `memref` or `packed`.
/// `returns` is `nothing`, `status` or `value`. `args` are the C parameters, such as `x, int32(n)`. For each of the
/// three, None means what the signature implies.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_symbol(
    symbol: String,
    convention: Option<String>,
    returns: Option<String>,
    args: Option<String>,
) -> Result<Obj<KernelObject>> {
    KernelObject::make(Form::Symbol(symbol), Call::of(convention, returns, args)?)
}

/// The kernel that is the C function with this symbol, with the objects or archives that define it.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_object(
    objects: Array<Bytes>,
    symbol: String,
    convention: Option<String>,
    returns: Option<String>,
    args: Option<String>,
) -> Result<Obj<KernelObject>> {
    let call = Call::of(convention, returns, args)?;
    let objects = together(&objects)?.ok_or_else(|| bad_value("objects", "expected at least one object"))?;
    KernelObject::make(Form::WithCode(call.stated(Kernel::object(objects, symbol))), call)
}

/// The kernel that is the C function with this symbol in LLVM's textual IR.
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
    return KernelObject::make(Form::WithCode(call.stated(Kernel::llvm_ir(text, symbol))), call);
    #[cfg(not(feature = "_llvm"))]
    {
        drop((text, symbol, call));
        Err(without_llvm())
    }
}

/// The kernel that is the C function with this symbol in LLVM bitcode.
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
    return KernelObject::make(Form::WithCode(call.stated(Kernel::bitcode(&*bitcode, symbol))), call);
    #[cfg(not(feature = "_llvm"))]
    {
        drop((bitcode, symbol, call));
        Err(without_llvm())
    }
}

/// The kernel that is the C function at an address of this process. `owner` lives as long as a function that calls it.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_address(
    address: i64,
    owner: Any,
    convention: Option<String>,
    returns: Option<String>,
    args: Option<String>,
) -> Result<Obj<KernelObject>> {
    let call = Call::of(convention, returns, args)?;
    let kernel =
        Kernel::address(std::ptr::with_exposed_provenance::<u8>(address_of(address)?)).keep_alive(Arc::new(owner));
    KernelObject::make(Form::Ready(call.stated(kernel)), call)
}

/// A device kernel, specified by the text of its launch, `launch ENTRY grid=...`. The images that contain it are
/// cubins, fatbins, PTX or AMD code objects.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_launch(launch: &str, images: Array<Bytes>) -> Result<Obj<KernelObject>> {
    let image = |bytes: Bytes| Image::from_bytes(&*bytes).map_err(failure);
    let images = images.iter().map(image).collect::<Result<Vec<_>>>()?;
    KernelObject::make(Form::Ready(Kernel::launch(launch_of(launch)?, images)), Call::implied())
}

/// A launch on the CPU, specified by its text: the kernel is called for each block of the grid.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_launch_on_cpu(launch: &str, function: &Obj<KernelObject>) -> Result<Obj<KernelObject>> {
    KernelObject::make(Form::OnCpu(launch_of(launch)?, function.clone()), Call::implied())
}

/// A body as host text: a block in braces. `images` are those that its launches may use, each with the name at its
/// place in `image_names`. `objects` are objects and archives with the functions that it calls by their symbols.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_host(
    text: &str,
    image_names: Array<String>,
    images: Array<Bytes>,
    objects: Array<Bytes>,
) -> Result<Obj<KernelObject>> {
    let kernel = Kernel::text(text, named_images(&image_names, &images)?).map_err(failure)?;
    let kernel = match together(&objects)? {
        Some(objects) => kernel.beside(objects),
        None => kernel,
    };
    KernelObject::make(Form::WithCode(kernel), Call::implied())
}

/// The images of a host text with their names.
pub fn named_images(names: &Array<String>, images: &Array<Bytes>) -> Result<Vec<(String, Image)>> {
    if names.len() != images.len() {
        let problem = format!("expected one name for each, got {} names for {} images", names.len(), images.len());
        return Err(bad_value("images", problem));
    }
    let image = |(name, bytes): (String, Bytes)| match Image::from_bytes(&*bytes) {
        Ok(image) => Ok((name, image)),
        Err(error) => Err(other(format!("image `{name}`: {error}"))),
    };
    names.iter().zip(images.iter()).map(image).collect()
}

/// The kernel with the addresses of symbols that its code refers to: `names` and `addresses` have equal length. `owner`
/// lives as long as a function that calls the kernel.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_with_symbols(
    kernel: &Obj<KernelObject>,
    names: Array<String>,
    addresses: Array<i64>,
    owner: Any,
) -> Result<Obj<KernelObject>> {
    if !kernel.refers_to_symbols() {
        return Err(bad_value(
            "symbols",
            "expected none for a kernel that refers to no symbol: an address, a launch on a device, or none",
        ));
    }
    let mut given = kernel.given.clone();
    let symbols = names.iter().zip(addresses.iter()).map(|(name, address)| Ok((name, address_of(address)?)));
    given.symbols.extend(symbols.collect::<Result<Vec<_>>>()?);
    given.owners.push(owner);
    Obj::new(KernelObject { form: kernel.form.clone(), call: kernel.call.clone(), given })
}

/// An address of this process, passed as the bits of an `i64`.
fn address_of(address: i64) -> Result<usize> {
    usize::try_from(address as u64).map_err(|_| other(format!("{address:#x} isn't an address")))
}

pub fn launch_of(text: &str) -> Result<Launch> {
    text.parse::<Launch>().map_err(failure)
}

/// A separate function that does the one-time work that kernels' first launches would otherwise do. Its signature is
/// `NAME(device: device)`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_prepare(kernels: Array<Obj<KernelObject>>) -> Result<Obj<KernelObject>> {
    let kernels: Vec<Kernel> = kernels.iter().map(|kernel| kernel.kernel()).collect();
    KernelObject::make(Form::Ready(Kernel::prepare(&kernels)), Call::implied())
}

/// The prototype that the kernel's C function must have, as JSON: `text`, the prototype; `params` (`name`, `type`,
/// `source`, `key`), in order; `returns`, a C type or null.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_prototype(signature: &Obj<SignatureObject>, kernel: &Obj<KernelObject>) -> Result<String> {
    let (signature, kernel) = (&signature.signature, kernel.kernel());
    let param = |param: &KernelParam| {
        let (ty, source) = (param.c_type.to_string(), param.source.to_string());
        json!({ "name": param.name, "type": ty, "source": source, "key": param.key() })
    };
    let params = kernel.parameters(signature).map_err(failure)?;
    let returns = kernel.return_type(signature).map_err(failure)?;
    let json = json!({
        "text": kernel.c_prototype(signature).map_err(failure)?,
        "params": params.iter().map(param).collect::<Vec<_>>(),
        "returns": returns.map(|ty| ty.to_string()),
    });
    Ok(json.to_string())
}

/// The prototype that the kernel's C function must have, as a C header.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_kernel_header(signature: &Obj<SignatureObject>, kernel: &Obj<KernelObject>) -> Result<String> {
    kernel.kernel().header(&signature.signature).map_err(failure)
}
