//! Containers: [`Array`] and [`List`] are sequences, [`Map`] and [`Dict`] map keys to values.
//! `Array` and `Map` never change once made. `List` and `Dict` are mutable, and every handle sees the changes. Header
//! sections: `TVMFFISeqCell`, `kTVMFFIArray`, `...Map`, `...List`, `...Dict`.
//!
//! **Threads.** Upstream requires its users to synchronize access. Here every method of `List` and `Dict` is one step
//! that other threads see entirely or not at all. No user code (a destructor, a comparison) runs within a step, so a
//! step can't block forever. C and C++ code that accesses the memory of a list or dict directly takes no lock. It must
//! keep Rust code out meanwhile, as upstream requires.
//!
//! **Types.** `Array<T>`, `List<T>`, `Map<K, V>` and `Dict<K, V>` are handles to the same objects with checked
//! elements. Without type parameters, elements can be of any type.
//!
//! ```
//! use tvm_ffi_runtime::{Any, Array, Dict, Error, Function, List, Map};
//!
//! # fn main() -> Result<(), Error> {
//! let total = Function::from_typed(|weights: Map<String, f64>, names: Array<String>| -> Result<f64, Error> {
//!     Ok(names.iter().map(|name| weights.get(&name)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().sum())
//! });
//! let weights: Map<String, f64> = [("a".to_owned(), 0.5), ("b".to_owned(), 2.0)].into_iter().collect();
//! assert_eq!(total.call_as::<f64>((&weights, vec!["a", "b", "c"]))?, 2.5);
//! assert!(total.call((&weights, vec![1])).is_err());
//!
//! let list: List<i64> = [1i64, 2].into_iter().collect();
//! list.into_untyped().push("any value");
//!
//! let dict: Dict<String, Any> = Dict::default();
//! dict.insert("any".to_owned(), total.into())?;
//! # Ok(())
//! # }
//! ```
//!
//! **Cycles.** As upstream, a list or dict that contains itself is never freed.

mod array;
mod block;
mod collections;
mod convert;
mod dict;
#[cfg(not(feature = "external"))]
pub(crate) mod globals;
#[cfg(not(feature = "external"))]
mod inner;
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
pub(crate) use inner::Inner;
pub use item::ContainerItem;
pub use list::List;
pub use map::{Map, MapIter};
pub use plain_key::PlainKey;
