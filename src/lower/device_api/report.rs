//! Turns outcomes into errors.

use super::api::{Call, LaunchForm};
use super::driver::Driver;
use super::layout::{MOST_DEVICES, attribute, config};
use super::outcome::{self, Failed};
use super::params;
use crate::ir::{BinaryOp, ConvertOp, DataRef, FuncRef, FunctionBuilder, Hint, IntCC, MemFlags, Module, Type, Value};
use crate::lower::constants::ConstantPool;
use crate::lower::protocol::{Directive, Piece, helpers};

/// The values that templates print, as indices of the context's fields.
mod field {
    /// `Cannot launch kernel ... when calling ...`, a C string.
    pub(super) const CALLER: u32 = 0;
    /// A string that describes the failure.
    pub(super) const TEXT: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const STATUS: u32 = 3;
    pub(super) const DEVICE: u32 = 4;
    pub(super) const STREAM: u32 = 5;
    pub(super) const SHARED: u32 = 6;
    /// Three fields each.
    pub(super) const GRID: u32 = 7;
    pub(super) const BLOCK: u32 = 10;
    /// The blocks of a cluster; 0 without clusters.
    pub(super) const CLUSTER: u32 = 13;
    pub(super) const FUNCTION: u32 = 14;
    pub(super) const COUNT: u32 = 15;
}

/// Defines [the helper](super::helpers::Called) that raises the error of an outcome.
pub(super) fn define(module: &mut Module, driver: &Driver, constants: &mut ConstantPool, pool: DataRef, func: FuncRef) {
    let mut b = FunctionBuilder::new(module, func);
    let [caller, images, outcome, config, device] = [0, 1, 2, 3, 4].map(|i| b.param(i));
    let context = b.slot(8 * field::COUNT, 8);
    let context = b.stack_addr(context);
    let mut r = Report { b: &mut b, driver, constants, pool, context };
    r.set(field::CALLER, caller);
    let [kind, number] = outcome::halves(r.b, outcome);
    r.set(field::STATUS, number);
    let device = r.b.convert(ConvertOp::SExt, Type::I64, device);
    r.set(field::DEVICE, device);
    let shown = driver.api.shown;
    let device = format!("{}:", driver.api.device);

    r.when(kind, Failed::Library, |r| {
        let text = driver.system.failure(r.b);
        let unknown = r.text(&format!("{} can't be opened", driver.system.library(driver.api)));
        let there = r.b.icmp_imm(IntCC::Ne, text, 0);
        let text = r.b.select(there, text, unknown);
        r.set(field::TEXT, text);
        r.raise(&[Piece::Text(&format!(": there is no {shown} driver on this machine: ")), string(field::TEXT)]);
    });
    r.when(kind, Failed::Function, |r| {
        let [name, version] = r.driver.name_and_version(r.b, number);
        r.set(field::FUNCTION, name);
        r.set(field::TEXT, version);
        let old = format!(": the {shown} driver is too old, as it has no `");
        match driver.api.get_proc_address {
            Some(_) => r.raise(&[
                Piece::Text(&old),
                string(field::FUNCTION),
                Piece::Text("`; it has to be one of version "),
                string(field::TEXT),
                Piece::Text(" or later"),
            ]),
            None => r.raise(&[Piece::Text(&old), string(field::FUNCTION), Piece::Text("`")]),
        }
    });
    r.when(kind, Failed::Image, |r| {
        let ten = r.b.i64(10);
        let major = r.b.binary(BinaryOp::UDiv, number, ten);
        let minor = r.b.binary(BinaryOp::URem, number, ten);
        r.set(field::NAME, major);
        r.set(field::STATUS, minor);
        r.set(field::TEXT, images);
        r.raise(&[
            Piece::Text(&format!(": no image is for {device}")),
            value(field::DEVICE),
            Piece::Text(", which has compute capability "),
            value(field::NAME),
            Piece::Text("."),
            value(field::STATUS),
            Piece::Text("; there are images for "),
            string(field::TEXT),
        ]);
    });
    r.when(kind, Failed::Number, |r| {
        let last = format!("; a library serves {device}0 to {device}{}", MOST_DEVICES - 1);
        r.raise(&[Piece::Text(&format!(": the device is {device}")), value(field::DEVICE), Piece::Text(&last)]);
    });
    r.when(kind, Failed::FewerParams, |r| {
        r.raise(&[
            Piece::Text(": the kernel takes "),
            value(field::STATUS),
            Piece::Text(" parameters, and more are passed"),
        ]);
    });
    r.when(kind, Failed::MoreParams, |r| {
        r.raise(&[
            Piece::Text(": the kernel takes more parameters than the "),
            value(field::STATUS),
            Piece::Text(" that are passed"),
        ]);
    });
    r.when(kind, Failed::ParamSize, |r| {
        let place = r.b.binary_imm(BinaryOp::LShr, number, 16);
        let size = r.b.binary_imm(BinaryOp::And, number, params::MOST_BYTES);
        r.set(field::NAME, place);
        r.set(field::STATUS, size);
        let (parameter, takes) = (Piece::Text(": parameter "), Piece::Text(" of the kernel takes "));
        let passed = Piece::Text(" bytes, and not as many are passed");
        r.raise(&[parameter, value(field::NAME), takes, value(field::STATUS), passed]);
    });

    // a call of the driver
    let one = r.b.i64(1);
    let place = r.b.binary(BinaryOp::Sub, kind, one);
    let [function, _] = driver.name_and_version(r.b, place);
    r.set(field::FUNCTION, function);
    r.error_texts(number);
    let (launched, before) = (r.b.block(), r.b.block());
    let has_config = r.b.icmp_imm(IntCC::Ne, config, 0);
    r.b.branch(has_config, launched, before, Hint::None);
    let failed = [
        Piece::Text(": `"),
        string(field::FUNCTION),
        Piece::Text("` failed with "),
        string(field::NAME),
        Piece::Text(" ("),
        value(field::STATUS),
        Piece::Text("), "),
        string(field::TEXT),
    ];
    let on = format!(", on {device}");
    r.b.switch_to(before);
    r.raise(&[&failed[..], &[Piece::Text(&on), value(field::DEVICE)]].concat());
    r.b.switch_to(launched);
    for (first, at) in [(field::GRID, config::GRID), (field::BLOCK, config::BLOCK)] {
        for i in 0..3 {
            let extent = r.b.load(Type::I32, config, at + 4 * i, MemFlags::ALIGNED);
            let extent = r.b.convert(ConvertOp::ZExt, Type::I64, extent);
            r.set(first + i as u32, extent);
        }
    }
    let shared = r.b.load(Type::I32, config, config::SHARED, MemFlags::ALIGNED);
    let shared = r.b.convert(ConvertOp::ZExt, Type::I64, shared);
    r.set(field::SHARED, shared);
    let stream = r.b.load(Type::Ptr, config, config::STREAM, MemFlags::ALIGNED);
    r.set(field::STREAM, stream);
    let extents = |first: u32, name: &'static str| {
        [Piece::Text(name), value(first), Piece::Text(", "), value(first + 1), Piece::Text(", "), value(first + 2)]
    };
    let (grid, block) = (extents(field::GRID, "; grid ("), extents(field::BLOCK, "), block ("));
    let rest = [
        value(field::SHARED),
        Piece::Text(" bytes of dynamic shared memory, stream "),
        value(field::STREAM),
        Piece::Text(&on),
        value(field::DEVICE),
    ];
    let plain = [&failed[..], &grid, &block, &[Piece::Text("), ")], &rest].concat();
    if driver.api.launch == LaunchForm::Configuration {
        let (clustered, alone) = (r.b.block(), r.b.block());
        let count = r.cluster(config);
        r.set(field::CLUSTER, count);
        let none = r.b.icmp_imm(IntCC::Eq, count, 0);
        r.b.branch(none, alone, clustered, Hint::None);
        r.b.switch_to(clustered);
        // leave out the name of the function, which is always the launch function: a template has a limited number of
        // pieces
        let failed = [Piece::Text(": the launch failed with "), failed[3], failed[4], failed[5], failed[6], failed[7]];
        let cluster = [Piece::Text("), clusters of "), value(field::CLUSTER), Piece::Text(" blocks, ")];
        r.raise(&[&failed[..], &grid, &block, &cluster, &rest].concat());
        r.b.switch_to(alone);
    }
    r.raise(&plain);
    b.finish();
}

fn value(field: u32) -> Piece<'static> {
    Piece::Value(Directive::Number, field)
}

fn string(field: u32) -> Piece<'static> {
    Piece::Value(Directive::String, field)
}

/// `report` under construction.
struct Report<'r, 'm> {
    b: &'r mut FunctionBuilder<'m>,
    driver: &'r Driver,
    constants: &'r mut ConstantPool,
    pool: DataRef,
    context: Value,
}

impl Report<'_, '_> {
    fn set(&mut self, field: u32, value: Value) {
        self.b.store(value, self.context, 8 * field as i32, MemFlags::ALIGNED);
    }

    /// The address of a string in the constant pool.
    fn text(&mut self, text: &str) -> Value {
        let at = self.constants.text(text);
        self.b.data_addr(self.pool, at)
    }

    /// Emits the code for one kind of failure.
    fn when(&mut self, kind: Value, failed: Failed, then: impl FnOnce(&mut Self)) {
        let (this, next) = (self.b.block(), self.b.block());
        let is = self.b.icmp_imm(IntCC::Eq, kind, failed.code());
        self.b.branch(is, this, next, Hint::None);
        self.b.switch_to(this);
        then(self);
        self.b.switch_to(next);
    }

    /// Raises a `RuntimeError` with the caller and these pieces as its message.
    fn raise(&mut self, pieces: &[Piece<'_>]) {
        let pieces = [&[string(field::CALLER)], pieces].concat();
        let template = self.constants.template("RuntimeError", &pieces);
        let (table, template) = (self.b.data_addr(self.pool, 0), self.b.iconst(Type::I32, i64::from(template)));
        let report = helpers::report(self.b.module());
        let code = self.b.call(report, &[table, template, self.context]);
        self.b.ret(code);
    }

    /// Loads the driver's name and description of a status.
    fn error_texts(&mut self, status: Value) {
        let status = self.b.convert(ConvertOp::Truncate, Type::I32, status);
        let unknown = self.text("an unknown error");
        for (field, call) in [(field::NAME, Call::ErrorName), (field::TEXT, Call::ErrorText)] {
            let slot = self.b.slot(8, 8);
            let place = self.b.stack_addr(slot);
            let null = self.b.ptr_const(0);
            self.b.store(null, place, 0, MemFlags::ALIGNED);
            // the slot stays NULL if the driver doesn't know the status
            self.driver.call(self.b, call, &[status, place]);
            let text = self.b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
            let there = self.b.icmp_imm(IntCC::Ne, text, 0);
            let text = self.b.select(there, text, unknown);
            self.set(field, text);
        }
    }

    /// The number of blocks in a cluster of a launch; 0 without clusters. The cluster attribute is always the first.
    fn cluster(&mut self, config: Value) -> Value {
        let b = &mut *self.b;
        let (some, is, done) = (b.block(), b.block(), b.block());
        let result = b.block_param(done, Type::I64);
        let zero = b.i64(0);
        let count = b.load(Type::I32, config, config::COUNT, MemFlags::ALIGNED);
        let any = b.icmp_imm(IntCC::Ne, count, 0);
        b.branch_with(any, (some, &[]), (done, &[zero]), Hint::None);
        b.switch_to(some);
        let first = b.load(Type::Ptr, config, config::ATTRIBUTES, MemFlags::ALIGNED);
        let id = b.load(Type::I32, first, attribute::ID, MemFlags::ALIGNED);
        let cluster = b.icmp_imm(IntCC::Eq, id, attribute::CLUSTER);
        b.branch_with(cluster, (is, &[]), (done, &[zero]), Hint::None);
        b.switch_to(is);
        let mut product = b.i64(1);
        for i in 0..3 {
            let extent = b.load(Type::I32, first, attribute::VALUE + 4 * i, MemFlags::ALIGNED);
            let extent = b.convert(ConvertOp::ZExt, Type::I64, extent);
            product = b.binary(BinaryOp::Mul, product, extent);
        }
        b.jump(done, &[product]);
        b.switch_to(done);
        result
    }
}
