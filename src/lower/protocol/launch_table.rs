//! The table of a module's launches on the devices of one API: what the helpers of launches have to know of each kernel and image.
//!
//! It begins with a [`LaunchTable`], behind which stand the [`KernelRecord`]s. Records name each other, and texts, by their offsets from the table's
//! beginning. Cells are in the module's state for the API, and are named by their offsets there.

use super::layout::{Descriptor, Encode, POOL_ALIGN, descriptors};
use target_lexicon::Endianness;

descriptors! {
    /// The beginning of a table.
    LaunchTable {
        /// Number of images, and the first [`ImageRecord`].
        images: u32,
        first_image: u32,
    }

    /// A kernel.
    KernelRecord {
        /// The name in the images, a C string.
        entry: u32,
        /// The cells of the kernel's handles, one for each device.
        cells: u32,
        /// Number of images that the kernel may be loaded from, and the first [`ImageChoice`]. The one that is preferred comes first.
        choices: u32,
        first_choice: u32,
        /// The dynamic shared memory that the kernel asks for, a [`SharedKind`], and bytes.
        shared: u32,
        shared_bytes: u32,
        /// Not 0 where the kernel may have clusters of more than 8 blocks.
        non_portable: u32,
        /// Number of [`ParamSizes`], and the first.
        params: u32,
        first_params: u32,
    }

    /// An image that a kernel may be loaded from.
    ImageChoice {
        /// The compute capabilities that it is for: the least, and the one behind the last.
        least: u32,
        end: u32,
        /// The [`ImageRecord`].
        image: u32,
    }

    /// An image.
    ImageRecord {
        /// The offset of the bytes among the module's images, by [`IMAGE_ALIGN`].
        bytes: u32,
        /// The cells of the loaded image's handles.
        cells: u32,
    }

    /// The sizes of the parameters that a launch passes.
    ParamSizes {
        /// How many they are, and the first, an unsigned word.
        count: u32,
        first: u32,
    }
}

/// The alignment of images in bytes.
pub(in crate::lower) const IMAGE_ALIGN: usize = 64;

/// How the dynamic shared memory is stated that a kernel asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum SharedKind {
    /// The kernel asks for none.
    None,
    /// So many bytes.
    Bytes,
    /// All that a block of the device may have but so many bytes.
    AllBut,
}
