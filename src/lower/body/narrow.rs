//! Narrowing: facts that a body has found about a tensor become part of the tensor's type.

use std::fmt;

use super::args::TensorVars;
use super::questions::is_alignment;
use super::tensor::{Known, TensorRef};
use crate::lower::abi::tensor::{SHAPE, STRIDES};
use crate::spec::{DType, Device, DeviceId, Dim, Layout, TensorShape, dim};
use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

/// Something that holds for a tensor at run time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TensorFact {
    /// The elements have this dtype.
    DType(DLDataType),
    /// The tensor has this number of dimensions.
    Rank(usize),
    /// The elements are contiguous and row-major.
    Contiguous,
    /// The address of the first element is a multiple of this number of bytes, a power of two.
    Aligned(u32),
    /// The tensor is on a device of this kind.
    DeviceKind(DLDeviceType),
}

impl fmt::Display for TensorFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorFact::DType(dtype) => write!(f, "has dtype {dtype}"),
            TensorFact::Rank(1) => f.write_str("has 1 dimension"),
            TensorFact::Rank(rank) => write!(f, "has {rank} dimensions"),
            TensorFact::Contiguous => f.write_str("is contiguous"),
            TensorFact::Aligned(bytes) => write!(f, "is aligned to {bytes} bytes"),
            TensorFact::DeviceKind(kind) => write!(f, "is on {}", Device::of(*kind)),
        }
    }
}

/// The greatest number of dimensions that a body may assume, as of the tensors that it allocates.
const MOST_DIMENSIONS: usize = 64;

impl<'b> TensorRef<'b> {
    /// The same tensor, with a fact that you state. Call this in the branch where the question had the answer yes;
    /// nothing is checked here. You can load, store and view elements of a tensor with a dtype. A tensor with a number
    /// of dimensions has sizes.
    ///
    /// Sizes, strides and the address that only the tensor's descriptor has are loaded here, so assume a fact outside
    /// of a loop. See [`Body::same_dtype`](super::Body::same_dtype) for an example. A fact that contradicts the
    /// tensor's type is an error in the body.
    #[must_use = "the fact holds for the tensor that is returned"]
    pub fn assume(self, fact: TensorFact) -> TensorRef<'b> {
        const OPERATION: &str = "assume";
        let Some(Known { name, vars }) = self.alive(OPERATION) else { return TensorRef::missing(self.body) };
        if let TensorFact::Aligned(bytes) = fact
            && !is_alignment(self.body, OPERATION, bytes)
        {
            return TensorRef::missing(self.body);
        }
        let mut narrowed = vars.clone();
        match narrow(&mut narrowed, fact) {
            Narrowed::Known => return self,
            Narrowed::More => {}
            Narrowed::Never => {
                self.body.note(OPERATION, format!("{name} never {fact}: {}", vars.ty));
                return TensorRef::missing(self.body);
            }
        }
        self.body.run(&mut |l| {
            if let TensorFact::Rank(rank) = fact {
                narrowed.shape = l.entries_of(vars, SHAPE, rank);
            }
            if narrowed.ty.layout == Layout::Any && narrowed.ty.shape.rank().is_some() && narrowed.strides.is_none() {
                narrowed.strides = Some(l.entries_of(vars, STRIDES, narrowed.shape.len()));
            }
            narrowed.data = Some(l.data_of(vars));
        });
        // what has been loaded here isn't known outside of this block
        narrowed.life.scope = self.body.scope();
        let narrowed = TensorRef::new(self.body, name, self.body.arena().tensor(narrowed));
        self.body.recorder().inspect(|recorder| recorder.assumed(narrowed, self, fact));
        narrowed
    }

    /// Whether the tensor's type allows that a fact holds.
    pub(in crate::lower) fn may_have(self, fact: TensorFact) -> bool {
        let known = self.known.map(|known| narrow(&mut known.vars.clone(), fact));
        !matches!(known, Some(Narrowed::Never))
    }
}

/// The relation of a fact to a tensor's type.
enum Narrowed {
    /// Nothing new.
    Known,
    More,
    /// The opposite.
    Never,
}

/// Adds a fact to a tensor's type.
fn narrow(vars: &mut TensorVars, fact: TensorFact) -> Narrowed {
    let same = |same: bool| if same { Narrowed::Known } else { Narrowed::Never };
    match fact {
        TensorFact::DType(dtype) => match vars.ty.dtype {
            DType::Exact(known) => return same(known == dtype),
            DType::Any | DType::Param(_) => vars.ty.dtype = DType::Exact(dtype),
        },
        TensorFact::Rank(rank) => match vars.ty.shape.rank() {
            Some(known) => return same(known == rank),
            None if rank > MOST_DIMENSIONS => return Narrowed::Never,
            None => {
                let names: Vec<Dim> = (0..rank).map(|d| dim(format!("d{d}"))).collect();
                vars.ty.shape = TensorShape::Ranked(names);
            }
        },
        TensorFact::Contiguous => {
            if vars.ty.layout == Layout::Contiguous {
                return Narrowed::Known;
            }
            vars.ty.layout = Layout::Contiguous;
            vars.strides = None;
        }
        TensorFact::Aligned(bytes) => {
            if vars.ty.alignment() >= bytes {
                return Narrowed::Known;
            }
            vars.ty.align = Some(bytes);
        }
        TensorFact::DeviceKind(kind) => match vars.ty.device.kind() {
            Some(known) => return same(known == kind),
            None => vars.ty.device = Device::Kind(kind, DeviceId::Any),
        },
    }
    Narrowed::More
}
