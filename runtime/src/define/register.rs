//! Adds a type to the runtime's table, once.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use super::field::Field;
use super::object::{Ancestor, Obj, Object, size, value_offset};
use super::registration::{FieldOptions, NewField, NewMethod, Registration};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::boundary::{guard, null_argument, required, required_out};
use crate::error::{Error, Result, runtime_error};
use crate::function::Function;
use crate::host::check_shared;
use crate::type_table::{self, TypeRequest};
use crate::typed::{TypedFunction, metadata};

impl<T: Object> Ancestor for T {
    const DEPTH: i32 = T::Parent::DEPTH + 1;

    fn type_index() -> Result<TypeIndex> {
        T::slot().get_or_register(register::<T>)
    }
}

/// Registers a type with everything that it declares about itself.
fn register<T: Object>() -> Result<TypeIndex> {
    check_shared()?;
    let parent = T::Parent::type_index()?;
    let mut registration = Registration::new();
    // Runs before the type is added to the table, so a failure leaves nothing there.
    T::describe(&mut registration)?;
    let taken = || runtime_error(&format!("type `{}` is registered already, by other code", T::TYPE_KEY));
    if type_table::key_to_index(T::TYPE_KEY).is_some() {
        return Err(taken());
    }
    let index = type_table::get_or_alloc_index(TypeRequest {
        key: T::TYPE_KEY.as_bytes(),
        static_index: -1,
        depth: T::DEPTH,
        num_child_slots: 0,
        child_slots_can_overflow: true,
        parent: parent.0,
    })?;
    type_table::keep_layout(index);
    registration.publish(index).map(|()| TypeIndex(index))
}

fn text(text: &str) -> TVMFFIByteArray {
    if text.is_empty() { TVMFFIByteArray::EMPTY } else { TVMFFIByteArray::from_slice(text.as_bytes()) }
}

impl<T: Object> Registration<T> {
    fn new() -> Self {
        let (fields, methods, attributes) = Default::default();
        Self { doc: "", creator: None, fields, methods, attributes, of: PhantomData }
    }

    /// Sets the type's documentation.
    pub fn doc(&mut self, doc: &'static str) {
        self.doc = doc;
    }

    /// Lets reflection create objects with `T::default()`.
    pub fn creator(&mut self)
    where
        T: Default,
    {
        self.creator = Some(create::<T>);
        let new = Function::from_typed_named(T::TYPE_KEY, || Obj::new(T::default()));
        self.attributes.push(("__ffi_new__", new.into()));
    }

    /// Adds a field.
    ///
    /// # Safety
    /// `T` must have a field of type `F` at `offset`.
    pub unsafe fn field<F: Field>(&mut self, name: &'static str, offset: usize, options: FieldOptions) {
        let writable = if F::IS_WRITABLE { kTVMFFIFieldFlagBitMaskWritable } else { 0 };
        let defaults = if options.default.is_some() { kTVMFFIFieldFlagBitMaskHasDefault } else { 0 };
        let info = TVMFFIFieldInfo {
            name: text(name),
            doc: text(options.doc),
            metadata: TVMFFIByteArray::EMPTY,
            flags: writable | defaults,
            size: size_of::<F>() as i64,
            alignment: align_of::<F>() as i64,
            offset: (value_offset::<T>() + offset) as i64,
            getter: Some(get_field::<F>),
            setter: set_field::<F> as TVMFFIFieldSetter as *mut c_void,
            default_value_or_factory: TVMFFIAny::none(),
            field_static_type_index: TypeIndex::ANY.0,
        };
        let default = options.default.unwrap_or_default();
        self.fields.push(NewField { info, metadata: metadata(&F::schema()), default });
    }

    /// Adds a method. Its first argument is the object.
    pub fn method<Args: 'static, F: TypedFunction<Args>>(&mut self, name: &'static str, doc: &'static str, body: F) {
        self.add_method(name, doc, 0, body);
    }

    /// Adds a method that takes no object.
    pub fn static_method<Args: 'static, F: TypedFunction<Args>>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        body: F,
    ) {
        self.add_method(name, doc, kTVMFFIFieldFlagBitMaskIsStaticMethod, body);
    }

    /// Sets the constructor, `__ffi_init__`.
    pub fn init<Args: 'static, F: TypedFunction<Args>>(&mut self, doc: &'static str, body: F) {
        const NAME: &str = "__ffi_init__";
        let function = self.add_method(NAME, doc, kTVMFFIFieldFlagBitMaskIsStaticMethod, body);
        self.attributes.push((NAME, function.into()));
    }

    fn add_method<Args: 'static, F: TypedFunction<Args>>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        flags: i64,
        body: F,
    ) -> Function {
        let function = Function::from_typed_named(&format!("{}.{name}", T::TYPE_KEY), body);
        let metadata = metadata(&F::schema());
        self.methods.push(NewMethod { name, doc, flags, function: function.clone(), metadata });
        function
    }

    /// Adds everything to the runtime's table.
    fn publish(self, index: i32) -> Result<()> {
        let info = TVMFFITypeMetadata {
            doc: text(self.doc),
            creator: self.creator,
            total_size: i32::try_from(size::<T>()).unwrap_or(0),
            structural_eq_hash_kind: kTVMFFISEqHashKindUnsupported,
        };
        // SAFETY: all strings and values are alive, and the table copies them. By the contract of `field`, getters and
        // setters match the fields' types. Metadata comes first: when two copies of this code register one key at the
        // same time, the second one fails there.
        unsafe {
            type_table::register_metadata(index, &info)?;
            for field in &self.fields {
                let default_value_or_factory = *field.default.as_raw();
                let info = TVMFFIFieldInfo { metadata: text(&field.metadata), default_value_or_factory, ..field.info };
                type_table::register_field(index, &info)?;
            }
            for method in &self.methods {
                let value: Any = method.function.clone().into();
                let info = TVMFFIMethodInfo {
                    name: text(method.name),
                    doc: text(method.doc),
                    metadata: text(&method.metadata),
                    flags: method.flags,
                    method: *value.as_raw(),
                };
                type_table::register_method(index, &info)?;
            }
        }
        for (name, value) in &self.attributes {
            type_table::register_attr(index, name.as_bytes(), value.as_view())?;
        }
        Ok(())
    }
}

/// The getter for fields of type `F`.
unsafe extern "C" fn get_field<F: Field>(field: *mut c_void, result: *mut TVMFFIAny) -> c_int {
    guard(|| {
        let result = required_out(result, "result")?;
        // SAFETY: by the header's contract, a getter is called with the address of its field in an object that is
        // alive.
        let field = unsafe { required(field.cast_const().cast::<F>(), "field")? };
        let value = field.get_any();
        // SAFETY: not NULL, and writable by contract. As upstream, the previous contents are ignored.
        unsafe { result.write(value.into_raw()) };
        Ok(())
    })
}

/// The setter for fields of type `F`.
unsafe extern "C" fn set_field<F: Field>(field: *mut c_void, value: *const TVMFFIAny) -> c_int {
    guard(|| {
        // SAFETY: as for getters; the value is a view that is valid for the call.
        let (field, value) = unsafe {
            let field = required(field.cast_const().cast::<F>(), "field")?;
            (field, AnyView::from_raw(*required(value, "value")?))
        };
        field.set_any(value)
    })
}

/// The creator of a type's objects.
unsafe extern "C" fn create<T: Object + Default>(result: *mut TVMFFIObjectHandle) -> c_int {
    guard(|| {
        let result = if result.is_null() { Err(null_argument("result")) } else { Ok(result) }?;
        let object = Obj::new(T::default())?.into_object().into_raw();
        // SAFETY: not NULL, and writable by contract.
        unsafe { result.write(object.cast()) };
        Ok(())
    })
}

/// The result of a constructor: a value of the type, a reference to an object, or a `Result` of either.
pub trait InitResult<T> {
    /// Converts to an object reference.
    ///
    /// # Errors
    /// The error of a `Result`; otherwise as [`Obj::new`].
    fn into_obj(self) -> Result<Obj<T>>;
}

impl<T: Object> InitResult<T> for T {
    fn into_obj(self) -> Result<Obj<T>> {
        Obj::new(self)
    }
}

impl<T: Object> InitResult<T> for Obj<T> {
    fn into_obj(self) -> Result<Obj<T>> {
        Ok(self)
    }
}

impl<T: Object, R: InitResult<T>, E: Into<Error>> InitResult<T> for Result<R, E> {
    fn into_obj(self) -> Result<Obj<T>> {
        self.map_err(E::into)?.into_obj()
    }
}

/// The methods of a type, declared with the attribute `methods` on an `impl`.
pub trait Methods: Object {
    /// Registers the methods.
    fn methods(registration: &mut Registration<Self>);
}

/// Finds a type's methods, if it has any, with `(&MethodsOf::<T>::new()).state(registration)`.
#[derive(Debug)]
pub struct MethodsOf<T>(PhantomData<T>);

impl<T> MethodsOf<T> {
    /// A handle to the methods of `T`.
    #[expect(clippy::new_without_default, reason = "only generated code has one")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Methods> MethodsOf<T> {
    /// Registers the methods.
    pub fn state(&self, registration: &mut Registration<T>) {
        T::methods(registration);
    }
}

/// As [`MethodsOf::state`], for types without methods.
pub trait NoMethods<T> {
    /// Registers nothing.
    fn state(&self, _registration: &mut Registration<T>) {}
}

impl<T> NoMethods<T> for &MethodsOf<T> {}
