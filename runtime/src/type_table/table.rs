//! The table of types: key to index, index to info, ancestors, and reserved child slots.
//! Infos never move and are never freed, so C may keep their addresses.
//! Header sections: `TVMFFITypeGetOrAllocIndex`, `TVMFFIGetTypeInfo`, `TVMFFITypeKeyToIndex`.

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxBuildHasher;

use super::columns::Attributes;
use super::definition::{Definition, make_columns};
use super::request::{QUERY_ONLY, TypeRequest};
use crate::abi::*;
use crate::error::{Result, check_failed, runtime_error};
use crate::stable_hash;
use crate::type_info;

struct TypeEntry {
    /// Slots reserved for the type and its children, starting at its own index.
    num_slots: i32,
    /// The number of slots in use, including the type's own.
    used_slots: i32,
    can_overflow: bool,
    /// True if only the code that registered the type may lay out its objects.
    keeps_layout: bool,
}

pub(super) struct Table {
    entries: Vec<Option<TypeEntry>>,
    /// By the keys in the types' infos.
    index_of: HashMap<&'static [u8], i32, FxBuildHasher>,
    pub(super) attributes: Attributes,
}

static TABLE: OnceLock<RwLock<Table>> = OnceLock::new();

fn table() -> &'static RwLock<Table> {
    TABLE.get_or_init(|| RwLock::new(Table::with_static_types()))
}

/// Fills the table with the built-in types, unless it is filled.
pub(crate) fn fill() {
    table();
}

pub(super) fn read() -> RwLockReadGuard<'static, Table> {
    table().read().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn write() -> RwLockWriteGuard<'static, Table> {
    table().write().unwrap_or_else(PoisonError::into_inner)
}

/// The message of a failed request. The error object is made after the lock is released, since the allocator of objects
/// may run a user's code that uses the table.
struct Refusal(String);

impl Refusal {
    fn new(key: &[u8], text: impl std::fmt::Display) -> Self {
        Self(format!("type `{}`: {text}", String::from_utf8_lossy(key)))
    }
}

fn refuse<T>(key: &[u8], text: String) -> Result<T, Refusal> {
    Err(Refusal::new(key, text))
}

impl Table {
    fn with_static_types() -> Self {
        let mut table = Self {
            entries: Vec::new(),
            index_of: HashMap::with_capacity_and_hasher(64, FxBuildHasher),
            attributes: Attributes::default(),
        };
        table.entries.resize_with(TypeIndex::DYN_OBJECT_BEGIN.0 as usize, || None);
        let root = TypeIndex::OBJECT;
        table.insert(root.0, b"ffi.Object", 0, true, None);
        for &(index, key) in TypeIndex::STATIC_KEYS {
            if index.0 < 0 || index == root {
                continue;
            }
            let parent = index.is_object().then_some(root.0);
            table.insert(index.0, key.as_bytes(), 0, false, parent);
        }
        make_columns(&mut table.attributes);
        crate::handed_down::BUILTIN_TYPES
            .iter()
            .flat_map(|types| types())
            .for_each(|definition| table.define(definition));
        table
    }

    /// Adds a built-in type, or reflection to a type that is already in the table.
    fn define(&mut self, definition: Definition) {
        let key = definition.key.as_bytes();
        let index = self.index_of.get(key).copied().or_else(|| {
            let parent = *self.index_of.get(definition.parent.as_bytes())?;
            let index = self.alloc_index(key, Some(parent), 0).ok()?;
            self.insert(index, key, 0, !definition.is_final, Some(parent));
            Some(index)
        });
        if let Some(entry) = index.and_then(|index| self.entry_mut(index)) {
            entry.keeps_layout |= definition.keeps_layout;
        }
        if let Some(info) = index.and_then(|index| self.info(index)) {
            definition.fill(info, &mut self.attributes);
        }
    }

    fn entry(&self, index: i32) -> Option<&TypeEntry> {
        self.entries.get(usize::try_from(index).ok()?)?.as_ref()
    }

    fn entry_mut(&mut self, index: i32) -> Option<&mut TypeEntry> {
        self.entries.get_mut(usize::try_from(index).ok()?)?.as_mut()
    }

    pub(super) fn info(&self, index: i32) -> Option<*mut TVMFFITypeInfo> {
        self.entry(index).and_then(|_| type_info::get(index))
    }

    /// Fills the slot `index`, which must be empty and within the table. C code may keep the address of the key until
    /// the process ends.
    fn insert(&mut self, index: i32, key: &'static [u8], child_slots: i32, overflow: bool, parent: Option<i32>) {
        let mut ancestors: Vec<*const TVMFFITypeInfo> = Vec::new();
        if let Some(parent) = parent.and_then(|parent| self.info(parent)) {
            // SAFETY: infos are never freed, and the fields read here never change. A type of depth n has n ancestors.
            unsafe {
                for depth in 0..(*parent).type_depth as usize {
                    ancestors.push(*(*parent).type_ancestors.add(depth));
                }
            }
            ancestors.push(parent);
        }
        let depth = ancestors.len() as i32;
        // Leaked on purpose: C code may keep these addresses until the process ends.
        let ancestors: &'static mut [*const TVMFFITypeInfo] = Vec::leak(ancestors);
        let info = Box::leak(Box::new(TVMFFITypeInfo {
            type_index: index,
            type_depth: depth,
            type_key: TVMFFIByteArray::from_slice(key),
            type_ancestors: ancestors.as_mut_ptr(),
            type_key_hash: stable_hash::type_key(key),
            num_fields: 0,
            num_methods: 0,
            fields: std::ptr::null(),
            methods: std::ptr::null(),
            metadata: std::ptr::null(),
        }));
        if let Some(slot) = self.entries.get_mut(index as usize) {
            type_info::publish(index, info);
            *slot = Some(TypeEntry {
                num_slots: child_slots + 1,
                used_slots: 1,
                can_overflow: overflow,
                keeps_layout: false,
            });
            self.index_of.insert(key, index);
        }
    }

    fn get_or_alloc(&mut self, request: TypeRequest<'_>) -> Result<i32, Refusal> {
        let TypeRequest { key, parent, .. } = request;
        if let Some(&index) = self.index_of.get(key) {
            return Ok(index);
        }
        if parent == QUERY_ONLY {
            return Ok(QUERY_ONLY);
        }
        let parent = (parent >= 0).then_some(parent);
        let mut overflow = request.child_slots_can_overflow;
        let mut parent_depth = -1;
        if let Some(parent) = parent {
            let Some(entry) = self.entry(parent) else {
                return refuse(key, format!("no parent with type index {parent}"));
            };
            overflow &= entry.can_overflow;
            if let Some(info) = type_info::get(parent) {
                // SAFETY: infos are never freed and a type's depth never changes.
                parent_depth = unsafe { (*info).type_depth };
            }
        }
        if request.depth != parent_depth + 1 || request.num_child_slots < 0 {
            let text = format!("depth {} does not fit its parent's, or its child slots are negative", request.depth);
            return refuse(key, text);
        }
        let index = if request.static_index >= 0 {
            self.check_static_index(key, request.static_index)?
        } else {
            self.alloc_index(key, parent, request.num_child_slots)?
        };
        self.insert(index, Vec::leak(key.to_owned()), request.num_child_slots, overflow, parent);
        Ok(index)
    }

    fn check_static_index(&self, key: &[u8], index: i32) -> Result<i32, Refusal> {
        match self.entries.get(index as usize) {
            Some(None) => Ok(index),
            Some(Some(_)) => refuse(key, format!("type index {index} is taken")),
            None => refuse(key, format!("no static type index {index}")),
        }
    }

    /// Allocates an index from the parent's reserved slots, or at the end of the table if they don't suffice.
    fn alloc_index(&mut self, key: &[u8], parent: Option<i32>, child_slots: i32) -> Result<i32, Refusal> {
        let no_parent = || Refusal::new(key, "a dynamic type needs a parent");
        let too_many = || Refusal::new(key, "too many types");
        let parent = parent.ok_or_else(no_parent)?;
        let slots = child_slots.checked_add(1).ok_or_else(too_many)?;
        let entry = self.entry_mut(parent).ok_or_else(no_parent)?;
        if entry.num_slots - entry.used_slots >= slots {
            let index = parent + entry.used_slots;
            entry.used_slots += slots;
            return Ok(index);
        }
        if !entry.can_overflow {
            return refuse(key, format!("the parent type {parent} takes no more child types"));
        }
        let index = i32::try_from(self.entries.len()).map_err(|_| too_many())?;
        // Limit the reserved slots, so a single invalid call can't use up all memory.
        if slots > 1 << 20 {
            return Err(too_many());
        }
        let len = self.entries.len() + slots as usize;
        self.entries.resize_with(len, || None);
        Ok(index)
    }
}

/// Returns the index of a type, and registers the type if it is new.
///
/// # Errors
/// `RuntimeError` if the parent is unknown or allows no more child types, the depth isn't the parent's plus one, or the
/// static index is taken.
pub fn get_or_alloc_index(request: TypeRequest<'_>) -> Result<i32> {
    if let Some(index) = key_to_index(request.key) {
        return Ok(index);
    }
    let index = write().get_or_alloc(request);
    // Make the error after the lock is released.
    index.map_err(|Refusal(text)| runtime_error(&text))
}

/// Reserves the layout of a type and its children: only the code that registered the type may lay out their objects.
pub(crate) fn keep_layout(index: i32) {
    if let Some(entry) = write().entry_mut(index) {
        entry.keeps_layout = true;
    }
}

/// The type that [`keep_layout`] was called for: this one or an ancestor.
pub(crate) fn layout_owner(index: TypeIndex) -> Option<TypeIndex> {
    let table = read();
    let info = table.info(index.0)?;
    // SAFETY: infos are never freed; depth and ancestors never change, and a type of depth n has n ancestors.
    let ancestors = unsafe {
        let depth = (*info).type_depth as usize;
        (0..depth).map(move |i| (**(*info).type_ancestors.add(i)).type_index)
    };
    ancestors.chain([index.0]).find(|&index| table.entry(index).is_some_and(|entry| entry.keeps_layout)).map(TypeIndex)
}

/// The index of a registered type.
pub fn key_to_index(key: &(impl AsRef<[u8]> + ?Sized)) -> Option<i32> {
    read().index_of.get(key.as_ref()).copied()
}

/// As [`key_to_index`].
///
/// # Errors
/// `InternalError` for an unknown key.
pub(crate) fn required_index(key: &[u8]) -> Result<i32> {
    let unknown = || format!("Cannot find type `{}`", String::from_utf8_lossy(key));
    key_to_index(key).ok_or_else(|| check_failed("it != type_key2index_.end()", &unknown()))
}

/// The info of a registered type, read without a lock. Its address stays valid until the process ends.
pub fn type_info(index: i32) -> Option<*const TVMFFITypeInfo> {
    match ready_type_info(index) {
        Some(info) => Some(info),
        None => first_type_info(index),
    }
}

/// The info of a type; `None` if the type is unknown or the table isn't initialised yet. During initialisation an info
/// may still change.
#[inline]
pub(crate) fn ready_type_info(index: i32) -> Option<*const TVMFFITypeInfo> {
    TABLE.get()?;
    type_info::get(index).map(<*mut _>::cast_const)
}

#[cold]
#[inline(never)]
fn first_type_info(index: i32) -> Option<*const TVMFFITypeInfo> {
    table();
    type_info::get(index).map(<*mut _>::cast_const)
}

/// The keys of all types, by their index.
pub(crate) fn keys() -> Vec<Vec<u8>> {
    let table = read();
    let mut keys: Vec<(i32, Vec<u8>)> = table.index_of.iter().map(|(key, &index)| (index, key.to_vec())).collect();
    drop(table);
    keys.sort_unstable();
    keys.into_iter().map(|(_, key)| key).collect()
}
