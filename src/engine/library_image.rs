//! Libraries in memory for the system's loader: code linked here is loaded, found and unloaded like a library in a
//! file.
//!
//! The image that the loader gets contains no code. It has the library's symbols, with the addresses where the code
//! already is, and two functions. The loader calls one when it loads the image, which runs the library's constructors.
//! It calls the other when it unloads the image, which runs the destructors and frees the memory. The loader finds the
//! image under a name in `/proc`, so nothing is written to disk.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use object::elf;
use object::write::elf::{FileHeader, ProgramHeader, Sym, Writer};

use super::code::KeepAlive;
use super::error::EngineError;
use super::objects::{Input, LoadedLibrary, Unit, load_library};
use super::symbols::SymbolResolver;

/// A library in memory that the system's loader accepts as a file.
///
/// You load it from its [path](Self::path) like any library. The code lives as long as the loaded library or this
/// value, whichever is longer.
#[derive(Debug)]
pub struct LibraryImage {
    file: File,
    number: usize,
    library: Arc<LoadedImage>,
}

/// A library's code, with its constructors and destructors.
struct LoadedImage {
    constructors: Vec<usize>,
    destructors: Vec<usize>,
    is_opened: AtomicBool,
    _code: KeepAlive,
}

impl std::fmt::Debug for LoadedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedImage").finish_non_exhaustive()
    }
}

/// The libraries by number: those that the loader has loaded, and those that it hasn't loaded yet.
static LIBRARIES: Mutex<Option<HashMap<usize, Arc<LoadedImage>>>> = Mutex::new(None);

/// Whether the process is exiting. Destructors run then, but memory that another thread may still use isn't freed.
static ENDS: AtomicBool = AtomicBool::new(false);

fn with_libraries<T>(f: impl FnOnce(&mut HashMap<usize, Arc<LoadedImage>>) -> T) -> T {
    f(LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

fn run(function: usize) {
    let function: *const () = std::ptr::with_exposed_provenance(function);
    // SAFETY: the address is that of loaded code, from a list of functions that loaders call without arguments. The
    // caller of `LibraryImage::link` has guaranteed that the functions may be called so.
    unsafe { std::mem::transmute::<*const (), extern "C" fn()>(function)() }
}

/// The loader's callback after it has loaded an image.
extern "C" fn opened(number: usize) {
    let library = with_libraries(|all| all.get(&number).cloned());
    if let Some(library) = &library {
        library.is_opened.store(true, Ordering::Release);
    }
    // without the lock: a constructor may load a library
    for constructor in library.iter().flat_map(|library| &library.constructors) {
        run(*constructor);
    }
}

/// The loader's callback when it unloads an image.
extern "C" fn closed(number: usize) {
    let library = with_libraries(|all| all.remove(&number));
    for destructor in library.iter().flat_map(|library| library.destructors.iter().rev()) {
        run(*destructor);
    }
    if ENDS.load(Ordering::Acquire) {
        std::mem::forget(library);
    }
}

extern "C" fn note_end() {
    ENDS.store(true, Ordering::Release);
}

impl LibraryImage {
    /// Links objects and archives into an image. `symbols` resolves symbols that none of them defines. `None` if the
    /// system's loader doesn't support such images: only glibc's does, from version 2.28 on.
    ///
    /// # Safety
    /// The objects' constructors and destructors may be run by a loader. The objects' code calls the functions in
    /// `symbols` with the right prototypes. The addresses stay valid as long as the library is loaded.
    ///
    /// # Errors
    /// An object can't be loaded, a symbol is missing, or the system has no memory.
    pub unsafe fn link<'o>(
        objects: impl IntoIterator<Item = &'o [u8]>,
        symbols: &SymbolResolver,
    ) -> Result<Option<Self>, EngineError> {
        static NUMBERS: AtomicUsize = AtomicUsize::new(1);
        static AT_EXIT: Once = Once::new();
        if !takes_absolute_symbols() {
            return Ok(None);
        }
        let input = |(number, bytes): (usize, &'o [u8])| Input {
            label: format!("object {number} of a library"),
            bytes,
            kernels: Vec::new(),
            wanted: Vec::new(),
        };
        let inputs: Vec<Input<'_>> = objects.into_iter().enumerate().map(input).collect();
        let unit = Unit::of_library(&inputs)?;
        let mut missing = Vec::new();
        let mut addresses = Vec::with_capacity(unit.imports.len());
        for import in &unit.imports {
            match symbols.resolve(import.name) {
                Some(address) => addresses.push(address.expose_provenance()),
                None if import.weak => addresses.push(0),
                None => missing.push(import.name.to_owned()),
            }
        }
        if !missing.is_empty() {
            let references = unit.referrers(&missing);
            return Err(EngineError::Unresolved { names: missing, callers: Default::default(), references });
        }
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let loaded = load_library(&unit, &addresses, [opened, closed], number)?;
        let image = image(&loaded).map_err(|error| EngineError::internal(error.to_string()))?;
        let file = in_memory(&image).map_err(|source| EngineError::Memory { size: image.len(), source })?;
        let LoadedLibrary { constructors, destructors, owner, .. } = loaded;
        let library =
            Arc::new(LoadedImage { constructors, destructors, is_opened: AtomicBool::new(false), _code: owner });
        with_libraries(|all| all.insert(number, Arc::clone(&library)));
        AT_EXIT.call_once(|| {
            // SAFETY: the function only stores a value, and its code stays loaded. If this fails, memory is freed at
            // the process's end, as with `dlclose`.
            unsafe { libc::atexit(note_end) };
        });
        Ok(Some(LibraryImage { file, number, library }))
    }

    /// The image's path, for a loader of this process. No two images of a process ever have the same path, because a
    /// loader identifies a loaded library by its path. Names in `/proc` are fixed, so the path encodes a number: each
    /// bit is a `/.` or nothing.
    pub fn path(&self) -> String {
        let bits = (0..usize::BITS - self.number.leading_zeros()).map(|bit| self.number >> bit & 1 == 1);
        let unique: String = bits.map(|bit| if bit { "/." } else { "//" }).collect();
        format!("/proc/self{unique}/fd/{}", self.file.as_raw_fd())
    }
}

impl Drop for LibraryImage {
    fn drop(&mut self) {
        // the path is no longer available, so the image can't be loaded any more
        if !self.library.is_opened.load(Ordering::Acquire) {
            drop(with_libraries(|all| all.remove(&self.number)));
        }
    }
}

/// Whether the system's loader leaves absolute symbols unchanged. Older versions of glibc, and other loaders, add the
/// image's base address.
fn takes_absolute_symbols() -> bool {
    static TAKES: OnceLock<bool> = OnceLock::new();
    *TAKES.get_or_init(|| {
        // SAFETY: the name is a C string.
        let version = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"gnu_get_libc_version".as_ptr()) };
        if version.is_null() {
            return false;
        }
        // SAFETY: gnu/libc-version.h declares it with this prototype, and the string is a constant.
        let version =
            unsafe { CStr::from_ptr(std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(version)()) };
        let mut parts = version.to_str().unwrap_or_default().split('.').map_while(|part| part.parse::<u32>().ok());
        (parts.next(), parts.next()) >= (Some(2), Some(28))
    })
}

/// An anonymous file with these bytes.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a C string.
    let number = unsafe { libc::memfd_create(c"tvm-ffi-codegen".as_ptr(), libc::MFD_CLOEXEC) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the file was just opened, and nothing else owns it.
    let mut file = unsafe { File::from_raw_fd(number) };
    file.write_all(bytes)?;
    Ok(file)
}

/// The alignment of the image's only segment: the largest page size of Linux on these architectures.
const PAGE: u64 = 1 << 16;

/// The image of a library: an ELF shared library without sections ("System V ABI", "Dynamic Linking").
fn image(library: &LoadedLibrary) -> object::write::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(object::Endianness::Little, true, &mut bytes);
    let exports = &library.exports;
    let names: Vec<_> = exports.iter().map(|(name, _)| writer.add_dynamic_string(name.as_bytes())).collect();
    // a string table must not be empty
    writer.add_dynamic_string(b"library");
    // the first symbol of a table is the null symbol
    let (buckets, chains) = (exports.len().max(1) as u32, exports.len() as u32 + 1);
    writer.reserve_file_header();
    writer.reserve_program_headers(3);
    writer.reserve_null_dynamic_symbol_index();
    for _ in exports {
        writer.reserve_dynamic_symbol_index();
    }
    let symbols = writer.reserve_dynsym() as u64;
    let strings = writer.reserve_dynstr() as u64;
    let strings_size = writer.dynstr_len() as u64;
    let hash = writer.reserve_hash(buckets, chains) as u64;
    const ENTRIES: usize = 10;
    let dynamic = writer.reserve_dynamic(ENTRIES) as u64;
    let hooks = writer.reserve(8 * library.hooks.len(), 8) as u64;
    let size = writer.reserved_len() as u64;

    writer.write_file_header(&FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine: if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 },
        e_entry: 0,
        e_flags: 0,
    })?;
    let read_and_write = elf::PF_R | elf::PF_W;
    let dynamic_size = (ENTRIES * size_of::<elf::Dyn64<object::Endianness>>()) as u64;
    for (p_type, start, size, p_align) in [
        (elf::PT_LOAD, 0, size, PAGE),
        (elf::PT_DYNAMIC, dynamic, dynamic_size, 8),
        // the stack isn't executable
        (elf::PT_GNU_STACK, 0, 0, 16),
    ] {
        writer.write_program_header(&ProgramHeader {
            p_type,
            p_flags: read_and_write,
            p_offset: start,
            p_vaddr: start,
            p_paddr: start,
            p_filesz: size,
            p_memsz: size,
            p_align,
        });
    }
    writer.write_null_dynamic_symbol();
    for ((_, address), name) in exports.iter().zip(names) {
        writer.write_dynamic_symbol(&Sym {
            name: Some(name),
            section: None,
            st_info: elf::STB_GLOBAL << 4 | elf::STT_NOTYPE,
            st_other: elf::STV_DEFAULT,
            st_shndx: elf::SHN_ABS,
            st_value: *address,
            st_size: 0,
        });
    }
    writer.write_dynstr();
    let hash_of = |index: u32| index.checked_sub(1).map(|index| elf::hash(exports[index as usize].0.as_bytes()));
    writer.write_hash(buckets, chains, hash_of);
    writer.write_align_dynamic();
    for (tag, value) in [
        (elf::DT_HASH, hash),
        (elf::DT_SYMTAB, symbols),
        (elf::DT_STRTAB, strings),
        (elf::DT_STRSZ, strings_size),
        (elf::DT_SYMENT, size_of::<elf::Sym64<object::Endianness>>() as u64),
        (elf::DT_INIT_ARRAY, hooks),
        (elf::DT_INIT_ARRAYSZ, 8),
        (elf::DT_FINI_ARRAY, hooks + 8),
        (elf::DT_FINI_ARRAYSZ, 8),
        (elf::DT_NULL, 0),
    ] {
        writer.write_dynamic(tag, value)?;
    }
    writer.write_align(8);
    library.hooks.iter().for_each(|hook| writer.write(&(*hook as u64).to_le_bytes()));
    Ok(bytes)
}
