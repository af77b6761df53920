//! The shared memory of a kernel's launches, and how much the kernel has to request.

use std::fmt::{self, Display, Formatter};

/// The max shared memory of a block that needs no request, in bytes, including the kernel's static shared memory
/// (cuda.h, `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`; CUDA C++ Programming Guide, compute capabilities).
pub(super) const WITHOUT_ASKING: i64 = 48 * 1024;

/// The shared memory of a kernel's launches, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::lower) struct Shared {
    /// The dynamic shared memory; `None` if it varies between launches.
    pub dynamic: Option<u32>,
    /// The kernel's static shared memory; `None` if the images don't state it.
    pub own: Option<u32>,
}

/// The max dynamic shared memory that a kernel requests at its first use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) struct MostShared {
    /// The number of bytes; `None` for all that a block may have.
    pub dynamic: Option<u32>,
    /// The kernel's static shared memory, if known. Otherwise the driver is queried, to find out whether a request is
    /// needed.
    pub own: Option<u32>,
}

impl Shared {
    /// The dynamic shared memory that the kernel has to request; `None` if the default is enough.
    pub(in crate::lower) fn asked(self) -> Option<MostShared> {
        let Shared { dynamic, own } = self;
        let is_enough = match (dynamic, own) {
            (Some(0), _) => true,
            (Some(bytes), Some(own)) => i64::from(bytes) + i64::from(own) <= WITHOUT_ASKING,
            _ => false,
        };
        (!is_enough).then_some(MostShared { dynamic, own })
    }
}

impl MostShared {
    /// The request that suits the launches of both.
    pub(super) fn and(self, other: Self) -> Self {
        let larger = |one: Option<u32>, other: Option<u32>| Some(one?.max(other?));
        MostShared { dynamic: larger(self.dynamic, other.dynamic), own: larger(self.own, other.own) }
    }
}

impl Display for MostShared {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.dynamic, self.own) {
            (Some(bytes), Some(_)) => write!(f, "{bytes} bytes of dynamic shared memory"),
            (Some(bytes), None) => {
                write!(
                    f,
                    "{bytes} bytes of dynamic shared memory, where the kernel's own and these are more than \
                     {WITHOUT_ASKING}"
                )
            }
            (None, Some(0)) => f.write_str("all dynamic shared memory that a block may have"),
            (None, Some(own)) => {
                write!(f, "all dynamic shared memory that a block may have beside the kernel's own {own} bytes")
            }
            (None, None) => f.write_str("all dynamic shared memory that a block may have beside the kernel's own"),
        }
    }
}
