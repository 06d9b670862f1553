//! Make tables agree on the attributes they share, without negative cells and with one total ([P] section 4.3).
//!
//! **Agreement.** For every set A of attributes that is shared (the intersection of two or more cliques, or empty),
//! smallest first, each clique i that contains A implies a margin on A; their mean with weights `rho_i / g_i` (inverse
//! variance: `rho_i = 1/sigma_i^2`, `g_i` = cells of the clique summed into one of A) becomes the margin of all, and
//! each table's correction is spread evenly over its contributing cells.
//! *One pass in this order is enough* (`PriView`): shared sets are closed under intersection, so when A's turn comes
//! all tables agree on `A ∩ B` for every B before it; A's correction then adds up to zero on `A ∩ B`, and hence on B.
//! *One pass is the exact weighted least-squares solution*, not an approximation of it: split each table into
//! orthogonal parts, one for every set B of its attributes (the part of the margin on B that no smaller set explains).
//! The pass averages part B once, at the smallest shared set around B, with weights in the ratio
//! `1/(sigma_i^2 cells_i)`; least squares averages each part by itself with weights `1/(sigma_i^2 g_i(B))`: the same
//! ratio. Hence corrections need not be made one after the other: the common margins are computed on
//! small tables only, and a clique is then corrected once, on its largest shared sets ([`plan`]).
//!
//! **Non-negativity** breaks agreement, and agreement breaks non-negativity, so the two alternate. Agreement and
//! norm-sub (the simplex projection) are both least-squares projections in the norm weighted by `1/sigma_i^2`, so
//!
//! - [`Rule::NormSub`], the published loop, is the method of alternating projections: it converges to *some* tables
//!   with all properties, near the measured ones but not the nearest, and slowly;
//! - [`Rule::Joint`] finds the *nearest* ones, the maximum-likelihood tables under all constraints. Its dual problem
//!   has one variable for every cell of every slot: table i is `max(y_i + lift_i - level_i, 0)`, `y_i` as measured, and
//!   the gradient in the lift is the correction towards agreement. Following the gradient by steps of one would be
//!   Dykstra's algorithm; Nesterov's momentum, restarted when it points uphill (O'Donoghue and Candès 2015), needs
//!   several times fewer sweeps than either, and no sweep writes a table.
//! - [`Rule::NormMul`], [`Rule::NormCut`] and [`Rule::BasePos`] alternate like norm-sub; only the last, which is
//!   again a projection, is sure to converge.
//!
//! A sweep costs a few passes over all cells ([`sheet`]) and the margins of the shared sets ([`crate::margin`]).
//! Cliques and parts of large tables are distributed over threads. All sums have a fixed order, so results are the same
//! for any number of threads. Oracle: `naive`, and weighted least squares by a dense solver in the Python tests.

mod cut;
#[cfg(test)]
mod naive;
mod plan;
mod sheet;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::error::Result;
use crate::parallel::Cancel;
use crate::query::Target;
use plan::{CliquePlan, Plan, SharedSet};
use sheet::{Scratch, Sheet};

/// Memory counted for a cell: its table, its result, and as much again for margins and copies.
pub const BYTES_PER_CELL: u64 = 24;

/// How tables become non-negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The nearest non-negative tables that agree, in weighted least squares.
    Joint,
    /// Alternate with the projection of each table onto the simplex.
    NormSub,
    /// Alternate with cutting at zero and dropping the smallest positive cells.
    NormCut,
    /// Alternate with cutting at zero and scaling.
    NormMul,
    /// Alternate with cutting at zero.
    BasePos,
    /// Leave negative cells.
    None,
}

/// A problem: tables to project.
#[derive(Debug)]
pub struct Problem<'a> {
    /// How many codes each attribute has.
    pub cardinalities: &'a [u32],
    /// Tables without buckets, of finite values, far from overflow. Their weights are `1/sigma^2`, of which only the
    /// ratios matter.
    pub targets: Vec<Target>,
    /// The total of every table; the inverse-variance mean of the tables' totals if `None`, but not below zero
    /// unless negative cells may stay.
    pub total: Option<f64>,
    /// How tables become non-negative.
    pub rule: Rule,
    /// Bytes, at [`BYTES_PER_CELL`].
    pub memory_limit: u64,
}

/// Tables that are made to agree; every [`Projection::sweep`] brings them closer.
#[derive(Debug)]
pub struct Projection {
    plan: Plan,
    rule: Rule,
    total: f64,
    states: Vec<State>,
    /// The margin of every shared set that all tables should have.
    targets: Vec<Vec<f64>>,
    /// Nesterov's sequence, and how far to go on in the direction of the last step.
    momentum: f64,
    ahead: f64,
}

#[derive(Debug)]
struct State {
    sheet: Sheet,
    /// The results of the last two steps, before momentum; only in the joint rule.
    next: Vec<f64>,
    last: Vec<f64>,
}

impl Projection {
    /// Plan, copy the tables, and find the margins they should have.
    ///
    /// # Errors
    /// [`crate::Error::InBuckets`]; [`crate::Error::TableTooLarge`]; [`crate::Error::Interrupted`].
    ///
    /// # Panics
    /// If the targets are over another domain.
    pub fn new(problem: Problem<'_>, cancel: &Cancel) -> Result<Self> {
        let Problem { cardinalities, targets, rule, .. } = problem;
        let plan = Plan::new(cardinalities, &targets, problem.memory_limit, cancel)?;
        let states = (plan.cliques.par_iter().zip(targets))
            .map_init(Scratch::default, |scratch, (clique, target)| {
                cancel.check()?;
                let mut own = vec![0.0; clique.cells];
                let mut values = target.values.iter();
                let mut place = |cell: &mut f64| *cell = *values.next().expect("as many as cells");
                permute(&clique.shape, &clique.strides, &mut own, &mut place);
                let sheet = Sheet::new(clique, own, scratch);
                Ok(State { sheet, next: vec![0.0; clique.slot_cells], last: vec![0.0; clique.slot_cells] })
            })
            .collect::<Result<Vec<_>>>()?;
        let targets = plan.sets.iter().map(|set| vec![0.0; set.cells]).collect();
        let mut new = Self { plan, rule, total: 0.0, states, targets, momentum: 1.0, ahead: 0.0 };
        let mean = mean_margin(&new.plan.sets[0], &new.plan, &new.states)[0];
        new.total = problem.total.unwrap_or(if rule == Rule::None { mean } else { mean.max(0.0) });
        new.agree(cancel)?;
        Ok(new)
    }

    /// The total of every table.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// One sweep: correct all tables towards agreement, make them non-negative, and measure how far they disagree.
    ///
    /// Returns the largest distance, over cliques and shared sets, between the clique's margin and the common one: the
    /// sum of absolute differences, over the total (or over one, where that is larger).
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`]; the tables are then useless.
    pub fn sweep(&mut self, cancel: &Cancel) -> Result<f64> {
        let Self { plan, rule, total, states, ahead, .. } = self;
        let cliques = states.par_iter_mut().zip(&plan.cliques);
        cliques.for_each_init(Scratch::default, |scratch, (state, clique)| {
            if !cancel.is_cancelled() {
                state.step(*rule, *ahead);
                match rule {
                    Rule::Joint => state.sheet.joint(clique, *total, scratch),
                    _ => state.sheet.in_place(clique, *rule, *total, scratch),
                }
            }
        });
        cancel.check()?;
        self.agree(cancel)
    }

    /// The tables, flat and in the caller's layout.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn tables(&self, cancel: &Cancel) -> Result<Vec<Vec<f64>>> {
        (self.plan.cliques.par_iter().zip(&self.states))
            .map(|(clique, State { sheet, .. })| {
                cancel.check()?;
                let lifted = if self.rule == Rule::Joint { Some(sheet.lifted(clique)) } else { None };
                let mut source = lifted.unwrap_or_else(|| sheet.table.clone());
                let mut table = Vec::with_capacity(clique.cells);
                permute(&clique.shape, &clique.strides, &mut source, &mut |cell| table.push(*cell));
                Ok(table)
            })
            .collect()
    }

    /// Find the common margins, and for every clique the correction towards them; returns the disagreement.
    fn agree(&mut self, cancel: &Cancel) -> Result<f64> {
        let Self { plan, states, targets, .. } = self;
        (targets.par_iter_mut().zip(&plan.sets)).for_each(|(target, set)| *target = mean_margin(set, plan, states));
        targets[0][0] = self.total;
        let mut first = 1;
        while first < targets.len() {
            cancel.check()?;
            let length = plan.sets[first..].iter().take_while(|set| set.size == plan.sets[first].size).count();
            let (smaller, rest) = targets.split_at_mut(first);
            let layer = rest[..length].par_iter_mut().zip(&plan.sets[first..]);
            layer.for_each(|(target, set)| fit(target, set, &plan.sets, smaller));
            first += length;
        }
        let found: Vec<[f64; 2]> = (states.par_iter_mut().zip(&plan.cliques))
            .map(|(state, clique)| state.correct(clique, targets, self.rule))
            .collect();
        cancel.check()?;
        let uphill: f64 = found.iter().map(|[_, slope]| slope).sum();
        if uphill < 0.0 {
            self.momentum = 1.0;
        }
        let next = f64::midpoint(1.0, (1.0 + 4.0 * self.momentum * self.momentum).sqrt());
        self.ahead = (self.momentum - 1.0) / next;
        self.momentum = next;
        Ok(found.iter().fold(0.0, |worst: f64, [distance, _]| worst.max(*distance)) / self.total.abs().max(1.0))
    }
}

impl State {
    /// Take the step that [`State::correct`] found.
    fn step(&mut self, rule: Rule, ahead: f64) {
        let Self { sheet, next, last } = self;
        for ((lift, next), last) in sheet.lift.iter_mut().zip(next).zip(last) {
            *lift = if rule == Rule::Joint { *next + ahead * (*next - *last) } else { *next };
            *last = *next;
        }
    }

    /// Find the next step: towards the common margins, spread evenly over the cells.
    ///
    /// Returns the disagreement, and how far the step after the last one still follows the gradient.
    fn correct(&mut self, clique: &CliquePlan, targets: &[Vec<f64>], rule: Rule) -> [f64; 2] {
        let Self { sheet, next, last } = self;
        let mut worst: f64 = 0.0;
        let mut missing = vec![0.0; clique.slot_cells];
        for slot in &clique.slots {
            let mut distance = 0.0;
            let pairs = targets[slot.set].iter().zip(&sheet.margins[slot.range()]);
            for (missing, (target, margin)) in missing[slot.range()].iter_mut().zip(pairs) {
                *missing = target - margin;
                distance += missing.abs();
            }
            worst = worst.max(distance);
        }
        let gradient = missing.clone();
        // A slot's correction changes the margins of those after it through what they have in common.
        for overlap in &clique.overlaps {
            let (from, to) = (&clique.slots[overlap.from], &clique.slots[overlap.to]);
            let common = overlap.out.of(&missing[from.range()]);
            #[expect(clippy::cast_precision_loss, reason = "below 2^53 by the memory limit")]
            let share = common.len() as f64 / to.cells as f64;
            overlap.into.spread(&mut missing[to.range()], &common, -share);
        }
        let mut slope = 0.0;
        for slot in &clique.slots {
            for i in slot.range() {
                let step = missing[i] / slot.group;
                next[i] = if rule == Rule::Joint { sheet.lift[i] + step } else { step };
                slope += gradient[i] * (next[i] - last[i]);
            }
        }
        [worst, slope * clique.precision]
    }
}

/// The weighted mean of the margins that cliques imply on a set.
fn mean_margin(set: &SharedSet, plan: &Plan, states: &[State]) -> Vec<f64> {
    let mut mean = vec![0.0; set.cells];
    for source in &set.sources {
        let range = plan.cliques[source.clique].slots[source.slot].range();
        let margin = &states[source.clique].sheet.margins[range];
        if margin.len() == mean.len() {
            mean.iter_mut().zip(margin).for_each(|(sum, value)| *sum += source.weight * value);
        } else {
            let margin = source.margin.of(margin);
            mean.iter_mut().zip(&margin).for_each(|(sum, value)| *sum += source.weight * value);
        }
    }
    mean
}

/// Correct a margin so that it agrees with those of the shared sets inside it.
fn fit(target: &mut [f64], set: &SharedSet, sets: &[SharedSet], smaller: &[Vec<f64>]) {
    for (s, margin) in &set.inside {
        let mut missing = margin.of(target);
        missing.iter_mut().zip(&smaller[*s]).for_each(|(missing, goal)| *missing = goal - *missing);
        #[expect(clippy::cast_precision_loss, reason = "below 2^53 by the memory limit")]
        let share = sets[*s].cells as f64 / target.len() as f64;
        margin.spread(target, &missing, share);
    }
}

/// Visit the cells of `table`, whose axes have `strides`, in row-major order of `shape`.
fn permute(shape: &[u32], strides: &[usize], table: &mut [f64], visit: &mut impl FnMut(&mut f64)) {
    match (shape, strides) {
        ([length], [stride]) => {
            for code in 0..*length as usize {
                visit(&mut table[code * stride]);
            }
        }
        ([length, shape @ ..], [stride, strides @ ..]) => {
            for code in 0..*length as usize {
                permute(shape, strides, &mut table[code * stride..], visit);
            }
        }
        _ => visit(&mut table[0]),
    }
}
