//! Turns outcomes into errors.

use super::api::{Call, LaunchForm};
use super::driver::Driver;
use super::layout::{MOST_DEVICES, attribute, config};
use super::outcome::{self, Failed};
use super::params;
use crate::ir::{BinaryOp, DataRef, Emitter, FuncRef, Hint, Module, Type, Val};
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
    module.define(func, |c| Report { c, driver, constants, pool, context: c.slot(8 * field::COUNT as usize) }.run());
}

fn value(field: u32) -> Piece<'static> {
    Piece::Value(Directive::Number, field)
}

fn string(field: u32) -> Piece<'static> {
    Piece::Value(Directive::String, field)
}

/// `report` under construction.
struct Report<'c, 'r> {
    c: Emitter<'c>,
    driver: &'r Driver,
    constants: &'r mut ConstantPool,
    pool: DataRef,
    context: Val<'c>,
}

impl<'c> Report<'c, '_> {
    fn run(mut self) {
        let (c, driver, r) = (self.c, self.driver, &mut self);
        let [caller, images, outcome, config, device] = c.params();
        r.set(field::CALLER, caller);
        let [kind, number] = outcome::halves(outcome);
        let code = outcome.truncate();
        // a hook has raised an error, and returned its code in place of a status
        c.require(code.ge(0), || c.ret(code));
        r.set(field::STATUS, number);
        r.set(field::DEVICE, device.sext());
        let shown = driver.api.shown;
        let device = format!("{}:", driver.api.device);

        r.when(kind, Failed::Library, |r| {
            let text = driver.system.failure(c);
            let unknown = r.text(&format!("{} can't be opened", driver.system.library(driver.api)));
            r.set(field::TEXT, text.is_not(0).select(text, unknown));
            r.raise(&[Piece::Text(&format!(": there is no {shown} driver on this machine: ")), string(field::TEXT)]);
        });
        r.when(kind, Failed::Function, |r| {
            let [name, version] = driver.name_and_version(number);
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
            let ten = c.i64(10);
            let (major, minor) = (number.binary(BinaryOp::UDiv, ten), number.binary(BinaryOp::URem, ten));
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
            let (place, size) = (number >> 16, number & params::MOST_BYTES);
            r.set(field::NAME, place);
            r.set(field::STATUS, size);
            let (parameter, takes) = (Piece::Text(": parameter "), Piece::Text(" of the kernel takes "));
            let passed = Piece::Text(" bytes, and not as many are passed");
            r.raise(&[parameter, value(field::NAME), takes, value(field::STATUS), passed]);
        });

        // the function of an image has raised the error
        r.when(kind, Failed::Hook, |r| r.c.ret(number.truncate()));
        r.when(kind, Failed::NoFunction, |r| {
            r.set(field::TEXT, images);
            r.raise(&[Piece::Text(": the global function `"), string(field::TEXT), Piece::Text("` isn't registered")]);
        });
        // for failures of something with a name, `images` is the name
        r.when(kind, Failed::NoGlobal, |r| {
            r.set(field::TEXT, images);
            r.raise(&[Piece::Text(": the image has no global variable `"), string(field::TEXT), Piece::Text("`")]);
        });
        r.when(kind, Failed::GlobalSize, |r| {
            r.set(field::TEXT, images);
            let size = Piece::Text("` has another size than the value that is written");
            r.raise(&[Piece::Text(": the global variable `"), string(field::TEXT), size]);
        });
        if driver.api.function(Call::Version).is_some() {
            r.when(kind, Failed::Version, |r| {
                let (thousand, ten) = (c.i64(1000), c.i64(10));
                r.set(field::NAME, number.binary(BinaryOp::UDiv, thousand));
                r.set(field::STATUS, number.binary(BinaryOp::URem, thousand).binary(BinaryOp::UDiv, ten));
                r.raise(&[
                    Piece::Text(&format!(
                        ": the {shown} driver is too old for the launch's attributes; it has to be one of version "
                    )),
                    value(field::NAME),
                    Piece::Text("."),
                    value(field::STATUS),
                    Piece::Text(" or later"),
                ]);
            });
        }

        // a call of the driver
        let [function, _] = driver.name_and_version(kind - 1);
        r.set(field::FUNCTION, function);
        r.error_texts(number);
        let [launched, before] = c.blocks();
        c.branch(config.is_not(0), launched, before, Hint::None);
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
        c.switch_to(before);
        r.raise(&[&failed[..], &[Piece::Text(&on), value(field::DEVICE)]].concat());
        c.switch_to(launched);
        for (first, at) in [(field::GRID, config::GRID), (field::BLOCK, config::BLOCK)] {
            for i in 0..3 {
                r.set(first + i as u32, config.load(Type::I32, at + 4 * i).zext());
            }
        }
        r.set(field::SHARED, config.load(Type::I32, config::SHARED).zext());
        r.set(field::STREAM, config.load(Type::Ptr, config::STREAM));
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
        match driver.api.launch {
            LaunchForm::Configuration => {
                let [clustered, alone] = c.blocks();
                let count = cluster(config);
                r.set(field::CLUSTER, count);
                c.branch(count.is(0), alone, clustered, Hint::None);
                c.switch_to(clustered);
                // leave out the name of the function, which is always the launch function: a template has a limited
                // number of pieces
                let failed =
                    [Piece::Text(": the launch failed with "), failed[3], failed[4], failed[5], failed[6], failed[7]];
                let cluster = [Piece::Text("), clusters of "), value(field::CLUSTER), Piece::Text(" blocks, ")];
                r.raise(&[&failed[..], &grid, &block, &cluster, &rest].concat());
                c.switch_to(alone);
            }
            LaunchForm::Arguments => {}
        }
        r.raise(&[&failed[..], &grid, &block, &[Piece::Text("), ")], &rest].concat());
    }

    fn set(&mut self, field: u32, value: Val<'c>) {
        self.context.store(8 * field as i32, value);
    }

    /// The address of a string in the constant pool.
    fn text(&mut self, text: &str) -> Val<'c> {
        self.c.data(self.pool, self.constants.text(text))
    }

    /// Emits the code for one kind of failure.
    fn when(&mut self, kind: Val<'c>, failed: Failed, then: impl FnOnce(&mut Self)) {
        let c = self.c;
        c.pass_unless(kind.is(failed.code()), || then(self));
    }

    /// Raises a `RuntimeError` with the caller and these pieces as its message.
    fn raise(&mut self, pieces: &[Piece<'_>]) {
        let pieces = [&[string(field::CALLER)], pieces].concat();
        let template = self.constants.template("RuntimeError", &pieces);
        self.c.ret(helpers::raise(self.c, self.pool, template, Some(self.context)));
    }

    /// Loads the driver's name and description of a status.
    fn error_texts(&mut self, status: Val<'c>) {
        let status = status.truncate();
        let unknown = self.text("an unknown error");
        for (field, call) in [(field::NAME, Call::ErrorName), (field::TEXT, Call::ErrorText)] {
            let text = self.c.var(Type::Ptr);
            // the variable stays NULL if the driver doesn't know the status
            text.set(self.c.null());
            self.driver.call(self.c, call, &[status, text.address()]);
            let text = text.get();
            self.set(field, text.is_not(0).select(text, unknown));
        }
    }
}

/// The number of blocks in a cluster of a launch; 0 without clusters. The cluster attribute is always the first.
fn cluster(config: Val<'_>) -> Val<'_> {
    let c = config.emitter();
    let [some, is, done] = c.blocks();
    let result = c.block_param(done, Type::I64);
    let zero = c.i64(0);
    let any = config.load(Type::I32, config::COUNT).is_not(0);
    c.branch_with(any, (some, &[]), (done, &[zero]), Hint::None);
    c.switch_to(some);
    let first = config.load(Type::Ptr, config::ATTRIBUTES);
    let cluster = first.load(Type::I32, attribute::ID).is(attribute::CLUSTER);
    c.branch_with(cluster, (is, &[]), (done, &[zero]), Hint::None);
    c.switch_to(is);
    let product = (0..3).fold(c.i64(1), |product, i| product * first.load(Type::I32, attribute::VALUE + 4 * i).zext());
    c.jump(done, &[product]);
    c.switch_to(done);
    result
}
