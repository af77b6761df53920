//! The kind of module `hosts.prices`, as a kind of the bundled runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use tvm_ffi_runtime::module::{ModuleImpl, PropertyMask, register_module_loader};
use tvm_ffi_runtime::{Any, Bytes, Error, Function, Module, Result};

/// Prices by item, from lines `item=price`.
struct Prices {
    bytes: Bytes,
    prices: Arc<BTreeMap<String, i64>>,
}

impl Prices {
    fn new(bytes: Bytes) -> Result<Self> {
        let bad = |line: &str| Error::new("ValueError", &format!("hosts.prices: expected `item=price`, got `{line}`"));
        let text = String::from_utf8_lossy(bytes.as_bytes()).into_owned();
        let price = |line: &str| {
            let (item, price) = line.split_once('=').ok_or_else(|| bad(line))?;
            Ok((item.to_owned(), price.parse().map_err(|_| bad(line))?))
        };
        let prices = text.lines().map(price).collect::<Result<_>>()?;
        Ok(Prices { bytes, prices: Arc::new(prices) })
    }
}

impl ModuleImpl for Prices {
    fn kind(&self) -> &str {
        "hosts.prices"
    }

    fn property_mask(&self) -> PropertyMask {
        PropertyMask::RUNNABLE | PropertyMask::BINARY_SERIALIZABLE
    }

    fn get_function(&self, name: &str) -> Result<Option<Function>> {
        let prices = Arc::clone(&self.prices);
        let price_of = move |item: &str| {
            let none = || Error::new("ValueError", &format!("no price of `{item}`"));
            prices.get(item).map(|price| Any::from(*price)).ok_or_else(none)
        };
        let call = Function::from_packed(move |args| match args {
            [item] => price_of(&item.cast::<String>()?),
            _ => Err(Error::new("TypeError", "price_of: expected a str")),
        });
        Ok((name == "price_of").then_some(call))
    }

    fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        Ok(Some(self.bytes.clone()))
    }
}

/// Lets libraries carry such modules.
pub fn register() -> Result<()> {
    register_module_loader("hosts.prices", |bytes| Ok(Module::from_impl(Prices::new(bytes)?)))
}
