//! The table of a module's launches on the devices of one API: the data about each kernel and image for the launch
//! helpers.
//!
//! It begins with a [`LaunchTable`], followed by the [`KernelRecord`]s. Records refer to each other, and to strings, by
//! offsets from the table's start. Cells are in the module's state for the API; records refer to them by offsets in the
//! state.

use super::layout::{Descriptor, Encode, POOL_ALIGN, descriptors};
use target_lexicon::Endianness;

descriptors! {
    /// The header of a table.
    LaunchTable {
        /// Number of images, then the offset of the first [`ImageRecord`].
        images: u32,
        first_image: u32,
        /// Number of functions of images, then the offset of the first [`HookRecord`].
        hooks: u32,
        first_hook: u32,
    }

    /// A kernel.
    KernelRecord {
        /// The name in the images, a C string.
        entry: u32,
        /// The cells of the kernel's handles, one per device.
        cells: u32,
        /// Number of images that the kernel may be loaded from, then the offset of the first [`ImageChoice`]. Choices
        /// are in order of preference.
        choices: u32,
        first_choice: u32,
        /// The max dynamic shared memory of its launches, in bytes: 0 if the kernel needn't request it, [`ALL_SHARED`]
        /// for all that the device has.
        shared: u32,
        /// The static shared memory in bytes, or [`ASK_DRIVER`].
        own_shared: u32,
        /// Nonzero if the kernel may have clusters of more than 8 blocks.
        non_portable: u32,
        /// Number of [`ParamSizes`], then the offset of the first.
        params: u32,
        first_params: u32,
        /// The min driver version that has the attributes of the kernel's launches: 12050 for 12.5; 0 if all supported
        /// drivers have them.
        version: u32,
        /// Number of global variables that its launches write, then the offset of the first [`GlobalRecord`].
        globals: u32,
        first_global: u32,
    }

    /// The functions of an image: global functions that are called after it is loaded, and before it is unloaded.
    HookRecord {
        /// The name of each and its number of bytes; 0 bytes if there is no function.
        on_load: u32,
        on_load_bytes: u32,
        on_unload: u32,
        on_unload_bytes: u32,
        /// The [`ImageRecord`].
        image: u32,
        /// The cells, one per device: the state of the work for the device.
        cells: u32,
    }

    /// A global variable of images.
    GlobalRecord {
        /// The name in the images, a C string.
        name: u32,
        /// The cells of its addresses and sizes, one of each per device.
        cells: u32,
    }

    /// An image that a kernel may be loaded from.
    ImageChoice {
        /// The range of compute capabilities that the image supports: the first, and one past the last.
        min: u32,
        end: u32,
        /// The [`ImageRecord`].
        image: u32,
        /// The [`HookRecord`], or 0.
        hook: u32,
    }

    /// A launch, in the module's constant pool.
    LaunchRecord {
        /// The [`KernelRecord`] in the table.
        kernel: u32,
        /// The offset in the state of the function that launches in the device's context.
        start: u32,
        /// `Cannot launch kernel ...`, and the list of devices that have images: C strings of the pool.
        caller: u32,
        images: u32,
    }

    /// An image.
    ImageRecord {
        /// The offset of the bytes among the module's images, in units of [`IMAGE_ALIGN`].
        bytes: u32,
        /// The cells of the loaded image's handles.
        cells: u32,
    }

    /// The sizes of the parameters that a launch passes.
    ParamSizes {
        /// The number of sizes, then the offset of the first, an unsigned word.
        count: u32,
        first: u32,
    }
}

/// The alignment of images in bytes.
pub(in crate::lower) const IMAGE_ALIGN: usize = 64;

/// All dynamic shared memory that a block of the device may have in addition to the kernel's static one.
pub(in crate::lower) const ALL_SHARED: u32 = u32::MAX;
/// The images don't state the static shared memory, so the driver is queried.
pub(in crate::lower) const ASK_DRIVER: u32 = u32::MAX;
