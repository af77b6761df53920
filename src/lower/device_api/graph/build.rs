//! Builds the driver's graph of a record.

use super::super::api::Call;
use super::super::driver::Driver;
use super::super::layout::{attribute, config};
use super::super::steps::Steps;
use super::shots::{has_happened, name, node, node_of, on_record, params_slot, record, shot, shot_of, write_params};
use crate::ir::{FuncRef, Hint, Module, Type, Val};

/// Defines the function that adds nodes for the shots that have happened to a record's graph, where it has none for
/// them, and instantiates it. After a failure the record is empty.
pub(super) fn define(module: &mut Module, driver: &Driver, destroy: FuncRef) -> FuncRef {
    let func = module.declare_cold(name(driver, "build_graph"), on_record());
    module.define(func, |c| {
        let [record, shots, count, context, _, failed] = c.params();
        let steps = Steps::new(c);
        let build = Build { steps, driver, record, shots, count, context, failed };
        let graph = record.load(Type::Ptr, record::GRAPH);
        c.pass_unless(graph.is(0), || {
            steps.call(driver, Call::GraphCreate, &[record + i64::from(record::GRAPH), c.i32(0)]);
        });
        build.nodes();
        failed.store(0, c.null());
        build.instantiate();
        steps.finish(|| {
            c.call(destroy, &[record, count]);
        });
    });
    func
}

/// The function under construction.
#[derive(Clone, Copy)]
struct Build<'c, 'd> {
    steps: Steps<'c>,
    driver: &'d Driver,
    record: Val<'c>,
    shots: Val<'c>,
    count: Val<'c>,
    context: Val<'c>,
    failed: Val<'c>,
}

impl<'c> Build<'c, '_> {
    /// Adds the missing nodes. Each depends on the one before it.
    fn nodes(self) {
        let c = self.steps.c;
        // the address of the last node so far, or NULL
        let before = c.var(Type::Ptr);
        before.set(c.null());
        let params = params_slot(c);
        c.for_up(self.count, |index| {
            let (node, shot) = (node_of(self.record, index), shot_of(self.shots, index));
            let [missing, add, there, next] = c.blocks();
            c.branch(node.load(Type::Ptr, 0).is(0), missing, there, Hint::None);
            c.switch_to(missing);
            c.branch(has_happened(shot), add, next, Hint::None);
            c.switch_to(add);
            self.failed.store(0, shot);
            write_params(params, shot, self.context);
            self.add(index, node, before.get(), params);
            self.attributes(shot, node.load(Type::Ptr, 0));
            c.jump(there, &[]);
            c.switch_to(there);
            before.set(node);
            c.jump(next, &[]);
            c.switch_to(next);
        });
    }

    /// Adds a node behind another one, which is NULL for the first node, and before the nodes of later shots.
    fn add(self, index: Val<'c>, node: Val<'c>, before: Val<'c>, params: Val<'c>) {
        let (steps, c) = (self.steps, self.steps.c);
        let graph = self.record.load(Type::Ptr, record::GRAPH);
        let dependencies = before.is_not(0).zext();
        // the handle gets to the record only once the node is added
        let place = steps.place();
        steps.call(self.driver, Call::GraphAddKernel, &[place, graph, before, dependencies, params]);
        node.store(0, place.load(Type::Ptr, 0));
        let count = self.count;
        let is_missing = |index: Val<'c>| {
            let [look, done] = c.blocks();
            let result = c.block_param(done, Type::Bool);
            c.branch_with(index.lt(count), (look, &[]), (done, &[c.bool(false)]), Hint::None);
            c.switch_to(look);
            let missing = node_of(self.record, index).load(Type::Ptr, 0).is(0);
            c.jump(done, &[missing]);
            c.switch_to(done);
            result
        };
        let next = c.repeat(index + 1, is_missing, |index| index + 1);
        c.pass_unless(next.lt(count), || {
            let one = c.i64(1);
            steps.call(self.driver, Call::GraphAddEdges, &[graph, node, node_of(self.record, next), one]);
        });
    }

    /// Sets the attributes of a shot's configuration on its node. The values of attributes never change: lowering
    /// refuses others.
    fn attributes(self, shot: Val<'c>, node: Val<'c>) {
        let c = self.steps.c;
        let config = shot.load(Type::Ptr, shot::CONFIG);
        let (first, count) = (config.load(Type::Ptr, config::ATTRIBUTES), config.load(Type::I32, config::COUNT).zext());
        c.for_up(count, |index| {
            let attribute = first + index * i64::from(attribute::SIZE);
            let (id, value) = (attribute.load(Type::I32, attribute::ID), attribute + i64::from(attribute::VALUE));
            self.steps.call(self.driver, Call::GraphSetAttribute, &[node, id, value]);
        });
    }

    /// Replaces the executable graph, in which all nodes are enabled at first.
    fn instantiate(self) {
        let (steps, c) = (self.steps, self.steps.c);
        let old = self.record.load(Type::Ptr, record::EXECUTABLE);
        c.pass_unless(old.is_not(0), || {
            steps.call(self.driver, Call::GraphDestroyExec, &[old]);
            self.record.store(record::EXECUTABLE, c.null());
        });
        let graph = self.record.load(Type::Ptr, record::GRAPH);
        let place = self.record + i64::from(record::EXECUTABLE);
        steps.call(self.driver, Call::GraphInstantiate, &[place, graph, c.i64(0)]);
        c.for_up(self.count, |index| node_of(self.record, index).store(node::ENABLED, c.i32(1)));
    }
}
