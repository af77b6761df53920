//! Tensors: objects that own or share memory described by a `DLTensor`, and views of borrowed memory.
//! `object` has the tensor, `dlpack` the ways into and out of other frameworks, `view` the views.
//! Header sections: `kTVMFFITensor`, "DLPack support APIs"; rules as `container/tensor.h`.

#[cfg(feature = "ndarray")]
mod arrays;
mod dims;
mod dlpack;
mod element;
mod memory;
mod object;
mod view;

pub(crate) use dims::dims;
pub use element::{AnyBits, Element};
pub use memory::TENSOR_ALIGNMENT;
pub use object::Tensor;
pub use view::TensorView;
