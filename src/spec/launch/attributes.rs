//! The values of launch attributes that are words.

use std::fmt::{self, Display, Formatter};

/// How the driver distributes the blocks of a cluster (`CUclusterSchedulingPolicy`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ClusterScheduling {
    /// Each block of a cluster goes to another multiprocessor, as far as possible.
    Spread,
    /// The device balances the load of its multiprocessors.
    LoadBalancing,
}

/// The memory synchronisation domain of a launch (`CUlaunchMemSyncDomain`). A memory barrier in one domain doesn't wait
/// for memory operations in another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum MemorySyncDomain {
    /// The domain of most kernels, even if the stream has another one.
    Default,
    /// The domain of kernels that mostly access the memory of other devices.
    Remote,
}

/// The text form and the list of variants.
macro_rules! words {
    ($ty:ident: $($variant:ident = $word:literal),*) => {
        impl $ty {
            /// All variants.
            pub const ALL: &'static [Self] = &[$($ty::$variant),*];

            /// The word in the text form of a launch.
            pub const fn word(self) -> &'static str {
                match self {
                    $($ty::$variant => $word,)*
                }
            }
        }

        impl Display for $ty {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words!(ClusterScheduling: Spread = "spread", LoadBalancing = "load_balancing");
words!(MemorySyncDomain: Default = "default", Remote = "remote");
