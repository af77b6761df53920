//! Tensors: objects that own or share memory described by a `DLTensor`, and views of borrowed memory.
//! `object` defines the tensor, `dlpack` exchanges tensors with other frameworks, and `view` defines the views.
//! Header sections: `kTVMFFITensor`, "DLPack support APIs"; same rules as `container/tensor.h`.

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
