//! The imports of an image, read from its mapping in memory. For the names see Microsoft's "PE format".

use std::mem::offset_of;

use windows_sys::Win32::System::Diagnostics::Debug::{
    IMAGE_DATA_DIRECTORY, IMAGE_DIRECTORY_ENTRY_IMPORT, IMAGE_NT_HEADERS64, IMAGE_NT_OPTIONAL_HDR64_MAGIC,
    IMAGE_OPTIONAL_HEADER64,
};
use windows_sys::Win32::System::SystemServices::{
    IMAGE_DOS_HEADER, IMAGE_DOS_SIGNATURE, IMAGE_IMPORT_BY_NAME, IMAGE_IMPORT_DESCRIPTOR, IMAGE_NT_SIGNATURE,
    IMAGE_ORDINAL_FLAG64,
};

/// The number of bytes that any mapped image has at least: a page.
const PAGE: usize = 4096;

/// A mapped image. Its contents are untrusted, as a file's are.
pub(super) struct Image {
    base: *const u8,
    size: usize,
}

/// An import of an image.
pub(super) struct Import {
    /// The program or library that the symbol comes from.
    pub image: String,
    /// The symbol's name, or `None` if it is imported by its ordinal.
    pub symbol: Option<String>,
    /// The address to which the loader has bound the symbol. The value is meaningless if it isn't bound.
    pub address: usize,
}

/// Numbers and structs of numbers: every bit pattern is a valid value.
///
/// # Safety
/// The type must have no padding that matters and no invalid bit patterns.
unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: a struct of integers.
unsafe impl Plain for IMAGE_DOS_HEADER {}
// SAFETY: structs of integers.
unsafe impl Plain for IMAGE_NT_HEADERS64 {}
// SAFETY: a struct of integers, and a union of them.
unsafe impl Plain for IMAGE_IMPORT_DESCRIPTOR {}

impl Image {
    /// The image that begins at `base`; `None` if its headers are not those of a 64-bit image.
    ///
    /// # Safety
    /// Windows must have mapped an image there, and it must stay mapped for as long as the value lives.
    pub(super) unsafe fn at(base: *const u8) -> Option<Self> {
        let page = Self { base, size: PAGE };
        let dos: IMAGE_DOS_HEADER = page.read(0)?;
        let headers: IMAGE_NT_HEADERS64 = page.read(usize::try_from(dos.e_lfanew).ok()?)?;
        let optional = headers.OptionalHeader;
        let known = dos.e_magic == IMAGE_DOS_SIGNATURE
            && headers.Signature == IMAGE_NT_SIGNATURE
            && optional.Magic == IMAGE_NT_OPTIONAL_HDR64_MAGIC;
        known.then_some(Self { base, size: optional.SizeOfImage as usize })
    }

    /// The image's load-time imports, as far as its tables can be read.
    pub(super) fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        let Some(table) = self.import_table() else { return imports };
        for at in (table..).step_by(size_of::<IMAGE_IMPORT_DESCRIPTOR>()) {
            let Some(descriptor) = self.read::<IMAGE_IMPORT_DESCRIPTOR>(at) else { break };
            if descriptor.Name == 0 {
                break;
            }
            let image = self.text(descriptor.Name as usize).unwrap_or_default();
            // SAFETY: both fields of the union are integers.
            let names = unsafe { descriptor.Anonymous.OriginalFirstThunk } as usize;
            let addresses = descriptor.FirstThunk as usize;
            // Without a table of names, the table of addresses holds the names until it is bound.
            let names = if names == 0 { addresses } else { names };
            for offset in (0..).step_by(size_of::<u64>()) {
                let (name, address) = (self.read::<u64>(names + offset), self.read::<u64>(addresses + offset));
                let (Some(name @ 1..), Some(address)) = (name, address) else { break };
                let named = name & IMAGE_ORDINAL_FLAG64 == 0;
                let symbol = named.then(|| self.text(name as usize + offset_of!(IMAGE_IMPORT_BY_NAME, Name))).flatten();
                imports.push(Import { image: image.clone(), symbol, address: address as usize });
            }
        }
        imports
    }

    fn import_table(&self) -> Option<usize> {
        let dos: IMAGE_DOS_HEADER = self.read(0)?;
        let headers: IMAGE_NT_HEADERS64 = self.read(usize::try_from(dos.e_lfanew).ok()?)?;
        let optional: IMAGE_OPTIONAL_HEADER64 = headers.OptionalHeader;
        let index = IMAGE_DIRECTORY_ENTRY_IMPORT;
        let directory: &IMAGE_DATA_DIRECTORY = optional.DataDirectory.get(usize::from(index))?;
        let there = u32::from(index) < optional.NumberOfRvaAndSizes && directory.VirtualAddress != 0;
        there.then_some(directory.VirtualAddress as usize)
    }

    fn read<T: Plain>(&self, offset: usize) -> Option<T> {
        if offset.checked_add(size_of::<T>())? > self.size {
            return None;
        }
        // SAFETY: the bytes lie in the image, which is mapped as a whole, and `T: Plain` allows any bytes.
        Some(unsafe { self.base.add(offset).cast::<T>().read_unaligned() })
    }

    /// The string up to the next NUL.
    fn text(&self, offset: usize) -> Option<String> {
        let bytes = (offset..).map(|at| self.read::<u8>(at)).take_while(|byte| *byte != Some(0));
        let bytes: Option<Vec<u8>> = bytes.collect();
        Some(String::from_utf8_lossy(&bytes?).into_owned())
    }
}
