//! The text of a function, from its kernel: bodies of text as they are, bodies of Rust as recorded.

use super::body::{self, Enclosing, Images};
use super::convention::{Convention, KernelReturn};
use super::error::LowerError;
use super::kernel::{Kernel, KernelCode, NativeTarget};
use super::problem::ReturnProblem;
use crate::host::Text;
use crate::host::tree::{At, Function, FunctionKernel, LaunchOf};
use crate::image::Image;
use crate::spec::{HostItems, Signature};

/// Functions of text, and the images that their launches use, each with its name.
pub(crate) type Printed = (Vec<Function>, Vec<(String, Image)>);

/// The functions as text, and the images that their launches use. Each function comes with whether it is a C function.
///
/// # Errors
/// A body has errors, text can't state a kernel, or the kernel of a C function isn't a body.
pub(crate) fn text_of<'k>(
    functions: impl IntoIterator<Item = (&'k Signature, &'k Kernel, bool)>,
) -> Result<Printed, LowerError> {
    let images = Images::default();
    let function = |(signature, kernel, is_extern): (&Signature, &Kernel, bool)| {
        kernel.check(signature)?;
        let kernel = kernel_of(signature, kernel, is_extern, &images)?;
        if is_extern && !matches!(kernel, FunctionKernel::Body(_)) {
            let function = signature.name().to_owned();
            return Err(LowerError::KernelReturn { function, problem: ReturnProblem::NoBody });
        }
        Ok(Function { signature: signature.clone(), is_extern, span: 0..0, kernel })
    };
    let functions = functions.into_iter().map(function).collect::<Result<Vec<_>, LowerError>>()?;
    let images = images.take().into_iter().enumerate();
    Ok((functions, images.map(|(number, image)| (body::image_name(number), image)).collect()))
}

fn kernel_of(
    signature: &Signature,
    kernel: &Kernel,
    is_c: bool,
    images: &Images,
) -> Result<FunctionKernel, LowerError> {
    let no_text = |what| Err(LowerError::NoText { function: signature.name().to_owned(), what });
    let (target, call) = match &kernel.code {
        KernelCode::CheckOnly => return Ok(FunctionKernel::CheckOnly),
        KernelCode::Body(build) => {
            if let Some(text) = &kernel.text {
                return Ok(FunctionKernel::Body(Text::clone(text)));
            }
            let symbol = if is_c { signature.name().to_owned() } else { signature.symbol() };
            let enclosing = Enclosing { wrapper: &symbol, is_c, captured: &[] };
            let block = body::record(signature, enclosing, &**build, images)?;
            return Ok(FunctionKernel::Body(Text { block: block.into(), comments: [].into() }));
        }
        KernelCode::Native { target, call } => (target, call),
    };
    match target {
        NativeTarget::Symbol(symbol) if kernel.arguments().is_empty() => Ok(FunctionKernel::Symbol {
            symbol: symbol.clone(),
            convention: stated(Some(call.convention).filter(|convention| *convention != Convention::Flat)),
            returns: stated(call.returns.map(KernelReturn::name)),
            args: kernel.stated_args().map(<[_]>::to_vec),
        }),
        NativeTarget::Symbol(_) => no_text("a function that takes arguments as they came"),
        NativeTarget::Address(_) => no_text("an address of this process"),
        NativeTarget::FirstUses(_) => no_text("the first-use work of launches"),
        NativeTarget::Launch(spec) if spec.block_function().is_some() => no_text("a launch on the CPU"),
        NativeTarget::Launch(spec) => {
            let images = body::image_names(spec.images(), images);
            let items = HostItems { images: Some(images), values: None };
            Ok(FunctionKernel::Launch(Box::new(LaunchOf { launch: spec.launch.clone(), items })))
        }
    }
}

fn stated<T: ToString>(value: Option<T>) -> Option<At<String>> {
    value.map(|value| At { span: 0..0, value: value.to_string() })
}
