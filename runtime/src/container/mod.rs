//! Containers: [`Array`] and [`List`] are sequences, [`Map`] and [`Dict`] map keys to values.
//! `Array` and `Map` never change once made; `List` and `Dict` change, and every handle to one
//! sees that. Header sections: `TVMFFISeqCell`, `kTVMFFIArray`, `...Map`, `...List`, `...Dict`.
//!
//! **Threads.** Upstream leaves it to its users to keep threads apart. Here every method of
//! `List` and `Dict` is one step that others see whole or not at all; nothing that a user wrote
//! (a destructor, a comparison) runs within such a step, so none of them can block for ever. C and
//! C++ code that reads or changes the memory of a list or dict itself takes no part in this and
//! must keep Rust code out meanwhile, as upstream asks.
//!
//! **Types.** `Array<T>`, `List<T>`, `Map<K, V>` and `Dict<K, V>` are handles to the same objects, of which elements were checked;
//! without parameters, elements are of any type.
//!
//! **Cycles.** A list or dict that contains itself is never freed, as upstream.

mod array;
mod block;
mod collections;
mod convert;
mod dict;
#[cfg(not(feature = "external"))]
mod globals;
mod item;
mod list;
mod lock;
mod map;
mod plain_key;
mod seq;
mod table;
mod typed_map;
mod typed_seq;

pub use array::Array;
pub use dict::{Dict, DictIter};
#[cfg(not(feature = "external"))]
pub(crate) use globals::globals;
pub use item::ContainerItem;
pub use list::List;
pub use map::{Map, MapIter};
pub use plain_key::PlainKey;
