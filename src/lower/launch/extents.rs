//! Extents of launches: expressions over the variables and integers of a call, with their limits.

use super::super::device_api::MOST_THREADS_OF_BLOCK;
use super::emitter::Emitter;
use crate::ir::{BinaryOp, Hint, IntCC, Value};
use crate::lower::protocol::{Directive, Piece};
use crate::spec::Dim;

impl Emitter<'_, '_> {
    /// The values of expressions, each an `I64`. `what` is the name of the extents.
    pub(super) fn extents(&mut self, what: &str, dims: &[Dim]) -> Vec<Value> {
        (0..).zip(dims).map(|(number, dim)| self.values.extent(&name_of(what, dims.len(), number), dim)).collect()
    }

    /// Skips the launch if an extent of the grid is 0.
    pub(super) fn leave_if_empty(&mut self, grid: &[Value]) {
        for extent in grid {
            if self.values.b.as_int_const(*extent).is_some_and(|extent| extent != 0) {
                continue;
            }
            let next = self.values.b.block();
            let empty = self.values.b.icmp_imm(IntCC::Eq, *extent, 0);
            self.values.b.branch_with(empty, (self.done, &[]), (next, &[]), Hint::Unlikely);
            self.values.b.switch_to(next);
        }
    }

    /// Requires extents that aren't constant to be at least `least` and at most the limits in `most`.
    pub(super) fn limit(&mut self, what: &str, values: &[Value], dims: &[Dim], least: i64, most: &[i64]) {
        for (number, ((value, dim), most)) in (0..).zip(values.iter().zip(dims).zip(most)) {
            if self.values.b.as_int_const(*value).is_some() {
                continue;
            }
            let above = if least == 0 { *value } else { self.values.b.binary_imm(BinaryOp::Sub, *value, least) };
            let limit = self.values.b.i64(most - least);
            // an unsigned comparison, so a negative extent exceeds the limit, too
            let holds = self.values.b.icmp(IntCC::ULe, above, limit);
            let before = format!(", {} = ", name_of(what, dims.len(), number));
            let expected = format!(" ({}), expected {least} to {most}", self.values.shown(dim));
            self.values.require(holds, *value, &before, &[Piece::Text(&expected)], None);
        }
    }

    /// Requires a block to have no more threads than any device supports.
    pub(super) fn limit_threads(&mut self, block: &[Value]) {
        if block.iter().all(|extent| self.values.b.as_int_const(*extent).is_some()) || block.len() < 2 {
            return;
        }
        // each extent is at most 1,024, so the product fits
        let threads = block.iter().copied().reduce(|x, y| self.values.b.binary(BinaryOp::Mul, x, y));
        let Some(threads) = threads else { return };
        let holds = self.values.b.icmp_imm(IntCC::ULe, threads, MOST_THREADS_OF_BLOCK);
        let expected = format!(", expected at most {MOST_THREADS_OF_BLOCK}");
        self.values.require(holds, threads, ", the threads of a block = ", &[Piece::Text(&expected)], None);
    }

    /// Requires the extents of a cluster to divide those of the grid.
    pub(super) fn cluster_divides(&mut self, grid: &[Value], cluster: &[Value]) {
        for (number, extent) in cluster.iter().enumerate() {
            let blocks = grid.get(number).copied().unwrap_or_else(|| self.values.b.i64(1));
            if self.values.b.as_int_const(*extent).is_some_and(|extent| extent == 1) {
                continue;
            }
            if let (Some(x), Some(y)) = (self.values.b.as_int_const(blocks), self.values.b.as_int_const(*extent))
                && x % y == 0
            {
                continue;
            }
            let rest = self.values.b.binary(BinaryOp::URem, blocks, *extent);
            let holds = self.values.b.icmp_imm(IntCC::Eq, rest, 0);
            let behind = [
                Piece::Text(&format!(", expected a multiple of cluster[{number}], which is ")),
                Piece::Value(Directive::Number, 2),
            ];
            self.values.require(holds, blocks, &format!(", grid[{number}] = "), &behind, Some(*extent));
        }
    }

    /// Requires dynamic shared memory to be at most `most` bytes.
    pub(super) fn refuse_unless_at_most(&mut self, bytes: Value, most: Value) {
        let holds = self.values.b.icmp(IntCC::ULe, bytes, most);
        let behind = [
            Piece::Text(&format!(
                " ({}), expected at most ",
                self.values.shown(self.prepared.launch.shared_memory_bytes())
            )),
            Piece::Value(Directive::Number, 2),
            Piece::Text(" bytes on this device"),
        ];
        self.values.require(holds, bytes, ", shared_memory = ", &behind, Some(most));
    }
}

/// The name of an extent: `grid[1]`, or `grid` if there is only one.
fn name_of(what: &str, count: usize, number: usize) -> String {
    if count == 1 { what.to_owned() } else { format!("{what}[{number}]") }
}
