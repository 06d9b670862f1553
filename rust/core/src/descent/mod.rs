//! Residual descent: move records, one attribute of one record at a time, until their marginals fit the targets.
//!
//! The loss is the sum over marginals m of `w_m |R_m|^2`, `R_m` = counts of the records - target. Moving a record from
//! value u0 of an attribute to u changes it by `2 (s[u] - s[u0] + w)`, where `s[u]` is the weighted sum of the
//! residuals of the cells the record would be in, and w the weight of the marginals whose cell changes. A sweep visits
//! each attribute and takes the best u for each record where that lowers the loss (`threshold` 1; below 1 also small
//! losses are taken). Noise in the targets makes records move too: with `noise`, a move must gain more than noise
//! explains.
//! Records of which only a first guess is given are placed: each attribute is visited once, against those before it.
//! It is exact weighted least squares over tables of n records: always consistent and non-negative, for any targets.
//!
//! [`problem`] holds targets and residuals, [`schedule`] orders the visits, [`visit`] moves records. Cost of a sweep:
//! O(records * sum of clique sizes), about 3 ns each for pairs; memory of 4 bytes a cell. Oracle: `naive`.
//! Chicle's own: no paper describes it.
//!
//! Tried and left out, 2026-11-19 (sampling from releases of Prism; time of a simulated census at epsilon 1, d = 20 and
//! 80; errors against the same release sampled without):
//!
//! - Placing all records of a drawn start, not only those in over-full cells: at epsilon 5 3-way errors of 0.4 % (adult)
//!   to 2.0 % (`acs2024_ny`) more. Placing in random order, or the smallest tables first: 2 % more (adult, 5).
//! - Levels that tell how far each record was from a move when last looked at, so that later sweeps pass over the far
//!   ones. A record is out of date once any of its other attributes moved, which most do between the first sweeps: the
//!   levels cost what they saved.
//! - Every sweep a random half or quarter of the records, more sweeps: for as much time, errors of 0 to 6 % more.
//! - All sweeps hasty: 20 to 40 % less time, but at epsilon 5 errors of 1 to 18 % more. The first one only: as good, but
//!   placing does more. Of many values a random 64 a visit: 3-way errors of 1 to 60 % more, little time less.
//! - Half the records, each repeated, and one more sweep: 20 % less time, 3-way errors 2 to 9 % higher (`acs2018_income`,
//!   `acs2024_ny`).

mod moments;
#[cfg(test)]
mod naive;
mod problem;
mod schedule;
#[cfg(test)]
mod tests;
mod visit;

use rayon::prelude::*;

use moments::{Moments, Scores};
use problem::{Marginal, View};
use visit::{Bar, Task};

pub use moments::Pull;

use crate::error::Result;
use crate::parallel::Cancel;
use crate::query::Target;
use crate::random::Random;
use crate::table::{Codes, Table};

/// An attribute whose last visit made less than this share of the mean number of moves skips some sweeps.
const FEW_MOVES: f64 = 0.05;

/// The most sweeps in a row that it skips.
const MAX_REST: u32 = 2;

/// Names the random streams of placing.
const PLACING: u64 = u64::MAX;

/// How much more a move must stand out from noise while attributes are placed, when part of their targets is not seen.
const CAUTION: f64 = 3.0;

/// How well the records fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Mean over the targets of the L1 distance to the counts, divided by the number of records (at least 1).
    pub error: f64,
    /// Weighted sum of squared residuals.
    pub loss: f64,
}

/// Records that descend towards the targets.
#[derive(Debug, Clone)]
pub struct Descent {
    columns: Vec<Codes>,
    records: usize,
    marginals: Vec<Marginal>,
    views: Vec<View>,
    groups: Vec<Vec<usize>>,
    seed: u64,
    sweeps: u64,
    last: Vec<Visits>,
}

/// When a record moves.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// The gain must exceed the cost of the move so many times,
    threshold: f64,
    /// plus so much, for marginals of total weight 2.
    noise: f64,
    /// Whether the record must be in over-full cells.
    hasty: bool,
}

/// The recent moves of an attribute.
#[derive(Debug, Clone, Copy, Default)]
struct Visits {
    moves: usize,
    rested: u32,
}

impl Descent {
    /// Start from given records.
    ///
    /// # Errors
    /// The errors of [`Table::new`]; [`crate::Error::AttributeTwice`]; [`crate::Error::TableTooLarge`]
    /// where the targets take more than `memory_limit` bytes.
    ///
    /// # Panics
    /// If there are 2^31 records or more.
    pub fn new(
        columns: Vec<Codes>,
        cardinalities: &[u32],
        targets: Vec<Target>,
        seed: u64,
        memory_limit: u64,
    ) -> Result<Self> {
        let mut descent = Self::uncounted(columns, cardinalities, targets, seed, memory_limit)?;
        let (columns, records) = (&descent.columns, descent.records);
        descent.marginals.par_iter_mut().with_max_len(1).for_each(|marginal| marginal.count(columns, records));
        Ok(descent)
    }

    /// Start from records of which only a first guess is given: visit each attribute once, against those visited
    /// before it.
    ///
    /// That costs half a sweep and does more, since no record moves towards attributes that are still to move
    /// themselves. Only records in over-full cells move: the others keep what the first guess knows about attributes
    /// that no target joins. `threshold` and `noise` are as for a sweep.
    ///
    /// # Errors
    /// Those of [`Descent::new`]; [`crate::Error::Interrupted`].
    ///
    /// # Panics
    /// If there are 2^31 records or more.
    pub fn placed(
        columns: Vec<Codes>,
        cardinalities: &[u32],
        targets: Vec<Target>,
        seed: u64,
        memory_limit: u64,
        (threshold, noise): (f64, f64),
        cancel: &Cancel,
    ) -> Result<Self> {
        let mut descent = Self::uncounted(columns, cardinalities, targets, seed, memory_limit)?;
        descent.place(threshold, noise, cancel)?;
        Ok(descent)
    }

    fn uncounted(
        columns: Vec<Codes>,
        cardinalities: &[u32],
        targets: Vec<Target>,
        seed: u64,
        memory_limit: u64,
    ) -> Result<Self> {
        let table = Table::new(columns.iter().map(Codes::column).collect(), cardinalities.to_vec())?;
        let records = table.records();
        assert!(i32::try_from(records).is_ok(), "counts are 32-bit");
        targets.iter().try_for_each(|target| target.query.check_distinct())?;
        problem::check_memory(cardinalities, &targets, memory_limit)?;
        let marginals = problem::marginals(targets, records);
        let views = problem::views(cardinalities, &marginals);
        let groups = schedule::groups(&views, marginals.len());
        let last = vec![Visits::default(); cardinalities.len()];
        Ok(Self { columns, records, marginals, views, groups, seed, sweeps: 0, last })
    }

    /// Leave these attributes as they are from now on: their records keep their values.
    pub fn freeze(&mut self, attributes: &[usize]) {
        self.groups.iter_mut().for_each(|group| group.retain(|attribute| !attributes.contains(attribute)));
    }

    /// Visit every attribute once, except those that hardly move any more; returns the number of moves.
    ///
    /// Without the cost of the move itself, the loss would fall by some amount. A record moves if half of it exceeds
    /// `threshold` times that cost, plus `noise` times `sqrt(2 W)` for marginals of total weight W. With weights
    /// `(s / sigma_m)^2` and `noise = c s`, that is c standard deviations of what noise of `sigma_m` adds to it.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`]: the records keep the moves made so far.
    pub fn sweep(&mut self, threshold: f64, noise: f64, cancel: &Cancel) -> Result<usize> {
        let resting = self.resting();
        let moves = self.visit(|a| !resting[a], None, Rule { threshold, noise, hasty: false }, cancel)?;
        self.sweeps += 1;
        Ok(moves)
    }

    /// Visit every ordinal attribute once, with the moments of its targets in the loss; returns the number of moves.
    ///
    /// `amounts` has, for each ordinal attribute, the number that each of its codes stands for; one that is not finite
    /// has no place in the order. `threshold` and `noise` are as for a sweep.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`]: the records keep the moves made so far.
    ///
    /// # Panics
    /// Unless there is an entry for each attribute, and a number for each code.
    pub fn polish(
        &mut self,
        amounts: &[Option<Vec<f64>>],
        pull: Pull,
        threshold: f64,
        noise: f64,
        cancel: &Cancel,
    ) -> Result<usize> {
        let scores = Scores::new(amounts, &self.views, &self.columns);
        let rule = Rule { threshold, noise, hasty: false };
        let moves = self.visit(|a| !scores.of[a].is_empty(), Some((&scores, pull)), rule, cancel)?;
        self.sweeps += 1;
        Ok(moves)
    }

    /// Visit the attributes group by group, the largest tables first, each against the groups before it.
    ///
    /// A target is counted once all its attributes are reached.
    fn place(&mut self, threshold: f64, noise: f64, cancel: &Cancel) -> Result<()> {
        let rule = Rule { threshold, noise: CAUTION * noise, hasty: true };
        let order = self.largest_first();
        let mut missing: Vec<usize> = self.marginals.iter().map(|marginal| marginal.query.attributes().len()).collect();
        let views = self.views.clone();
        let reach = |descent: &mut Self, missing: &mut [usize], a: usize| {
            for incidence in &views[a].incidences {
                missing[incidence.marginal] -= 1;
            }
            let complete = views[a].incidences.iter().map(|incidence| incidence.marginal);
            let complete: Vec<usize> = complete.filter(|&m| missing[m] == 0).collect();
            let mut counted: Vec<_> = complete.iter().map(|&m| std::mem::take(&mut descent.marginals[m])).collect();
            counted.par_iter_mut().for_each(|marginal| marginal.count(&descent.columns, descent.records));
            for (m, marginal) in complete.into_iter().zip(counted) {
                descent.marginals[m] = marginal;
            }
        };
        let movable: Vec<usize> = self.groups.concat();
        for a in (0..views.len()).filter(|a| !movable.contains(a)) {
            reach(self, &mut missing, a);
        }
        for members in order {
            for &a in &members {
                reach(self, &mut missing, a);
                self.views[a] = views[a].among(|m| missing[m] == 0);
            }
            let constrained: Vec<usize> =
                members.iter().copied().filter(|&a| !self.views[a].incidences.is_empty()).collect();
            self.visit_group(&constrained, PLACING, None, rule, cancel)?;
            for a in members {
                self.views[a] = views[a].clone();
            }
        }
        Ok(())
    }

    /// The groups in the order in which they are placed.
    fn largest_first(&self) -> Vec<Vec<usize>> {
        let mut order = self.groups.clone();
        let largest = |group: &Vec<usize>| group.iter().map(|&a| self.views[a].length).max();
        order.sort_by_key(|group| std::cmp::Reverse(largest(group)));
        order
    }

    /// Visit some attributes once, in random order; returns the number of moves.
    fn visit(
        &mut self,
        wanted: impl Fn(usize) -> bool,
        moments: Option<(&Scores, Pull)>,
        rule: Rule,
        cancel: &Cancel,
    ) -> Result<usize> {
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        Random::new([self.seed, self.sweeps]).shuffle(&mut order);
        let mut moves = 0;
        for group in order {
            let members: Vec<usize> = self.groups[group].iter().copied().filter(|&a| wanted(a)).collect();
            moves += self.visit_group(&members, self.sweeps, moments, rule, cancel)?;
        }
        Ok(moves)
    }

    /// Visit attributes that share no marginal, at once; returns the number of moves.
    fn visit_group(
        &mut self,
        members: &[usize],
        round: u64,
        moments: Option<(&Scores, Pull)>,
        rule: Rule,
        cancel: &Cancel,
    ) -> Result<usize> {
        cancel.check()?;
        let mut tasks: Vec<Task> = members.iter().map(|&a| self.take(a)).collect();
        // Whether blocks are distributed over threads changes only the time.
        let alone = members.len() < 4 * rayon::current_num_threads();
        tasks.par_iter_mut().zip(members).with_max_len(1).for_each(|(task, &a)| {
            let stream = [self.seed, round, a as u64];
            let threshold = rule.threshold + rule.noise * (2.0 / task.weight()).sqrt();
            task.moments = moments
                .and_then(|(scores, pull)| Moments::new(a, &self.views[a], &task.marginals, scores, pull, threshold));
            if moments.is_none() || task.moments.is_some() {
                let bar = Bar { threshold, hasty: rule.hasty };
                visit::visit(&self.views[a], task, &self.columns, bar, stream, alone, cancel);
            }
        });
        let moves = tasks.iter().map(|task| task.moves).sum();
        for (task, &a) in tasks.into_iter().zip(members) {
            self.put_back(task, a);
        }
        cancel.check()?;
        Ok(moves)
    }

    /// How well the records fit now.
    #[must_use]
    pub fn fit(&self) -> Fit {
        let errors: Vec<_> = self.marginals.par_iter().map(|marginal| (marginal.weight, marginal.error())).collect();
        #[expect(clippy::cast_precision_loss, reason = "numbers of records and marginals are exact")]
        let scale = (self.records.max(1) * errors.len().max(1)) as f64;
        Fit {
            error: errors.iter().map(|(_, (sum, _))| sum).sum::<f64>() / scale,
            loss: errors.iter().map(|(weight, (_, squares))| weight * squares).sum(),
        }
    }

    /// The records.
    #[must_use]
    pub fn columns(&self) -> &[Codes] {
        &self.columns
    }

    /// Move the records out, without a copy; the state is then empty.
    pub fn finish(&mut self) -> Vec<Codes> {
        let columns = std::mem::take(&mut self.columns);
        (self.records, self.groups) = (0, Vec::new());
        columns
    }

    /// Which attributes skip this sweep.
    fn resting(&mut self) -> Vec<bool> {
        let visited = self.groups.iter().map(Vec::len).sum::<usize>();
        let moves: usize = self.last.iter().map(|visits| visits.moves).sum();
        #[expect(clippy::cast_precision_loss, reason = "a rule of thumb")]
        let few = FEW_MOVES * moves as f64 / visited.max(1) as f64;
        let early = self.sweeps < 2;
        let rest = |visits: &mut Visits| {
            #[expect(clippy::cast_precision_loss, reason = "a rule of thumb")]
            let rests = !early && (visits.moves as f64) < few && visits.rested < MAX_REST;
            visits.rested = if rests { visits.rested + 1 } else { 0 };
            rests
        };
        self.last.iter_mut().map(rest).collect()
    }

    fn take(&mut self, attribute: usize) -> Task {
        let codes = std::mem::replace(&mut self.columns[attribute], Codes::U8(Vec::new()));
        let incidences = &self.views[attribute].incidences;
        let marginals = incidences.iter().map(|i| std::mem::take(&mut self.marginals[i.marginal])).collect();
        Task { codes, marginals, moments: None, moves: 0 }
    }

    fn put_back(&mut self, task: Task, attribute: usize) {
        self.columns[attribute] = task.codes;
        for (incidence, marginal) in self.views[attribute].incidences.iter().zip(task.marginals) {
            self.marginals[incidence.marginal] = marginal;
        }
        self.last[attribute].moves = task.moves;
    }
}
