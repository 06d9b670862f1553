//! GUM, the gradual update method ([P] 5.2-5.3; [D18] appendix A), and MCF, the min-cost flow it is compared with.
//!
//! A pass visits every marginal once. A visit counts the marginal's cells over the synthetic records, [`plan`]s how
//! many records of each cell are freed, copied and rewritten, and [`apply`]s that. MCF is the same visit, but it goes
//! the whole way to the target at once, without copies, and freed records paired with cells by a min-cost [`flow`].
//!
//! Randomness belongs to (seed, round, marginal) and visits follow one another, so the result is the same for any
//! number of threads, which share only the final count of errors.
//! Cost of a visit: a counting, a sampling pass and the moves.
//! Used for the published system; `descent` reaches lower errors. Oracles: [`plan`]'s formulas and [`naive`].

mod apply;
pub mod flow;
pub mod naive;
pub mod plan;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::error::Result;
use crate::layout;
use crate::parallel::Cancel;
use crate::query::{Target, has_u32_cells};
use crate::random::Random;
use crate::table::{Codes, Table};
use apply::{Rows, Scratch};
use plan::{Step, plan};

/// Most records: counts and row numbers take 31 bits.
pub const MAX_RECORDS: usize = (1 << 31) - 1;

/// A target, prepared for passes.
#[derive(Debug, Clone)]
struct Marginal {
    /// Positions of the attributes that have more than one value.
    attributes: Vec<usize>,
    shape: Vec<u32>,
    strides: Vec<usize>,
    targets: Vec<f64>,
    /// The axes, in the order in which they are rewritten.
    axes: Vec<usize>,
}

impl Marginal {
    fn new(target: Target) -> Result<Self> {
        let clique = target.query.clique()?;
        // Constant attributes do not change a cell's number.
        let axes = clique.into_iter().zip(target.query.shape()).filter(|&(_, &size)| size > 1);
        let (attributes, shape): (Vec<usize>, Vec<u32>) = axes.unzip();
        assert!(has_u32_cells(&target.query), "cells are numbered by u32");
        let (strides, axes) = (layout::strides(&shape), (0..shape.len()).collect());
        Ok(Self { attributes, shape, strides, targets: target.values, axes })
    }

    /// Number of cells.
    fn cells(&self) -> usize {
        self.targets.len()
    }

    fn stride(&self, axis: usize) -> u32 {
        u32::try_from(self.strides[axis]).expect("below the cells")
    }

    /// L1 distance of counts from the targets, over the number of records.
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^31 records")]
    fn error(&self, counts: &[u32], records: usize) -> f64 {
        let distance: f64 =
            counts.iter().zip(&self.targets).map(|(&count, target)| (f64::from(count) - target).abs()).sum();
        distance / records.max(1) as f64
    }
}

/// Synthetic records that are updated towards the targets.
#[derive(Debug)]
pub struct Gum {
    rows: Rows,
    marginals: Vec<Marginal>,
    seed: u64,
    scratch: Scratch,
}

impl Gum {
    /// Start from the records of a table, towards targets that are not negative and add up to their number; weights do
    /// not matter. `ranks` has a number for each attribute: where records are matched with cells that differ from
    /// theirs in one attribute, attributes of low rank are rewritten first.
    ///
    /// # Errors
    /// [`crate::Error::InBuckets`].
    ///
    /// # Panics
    /// If there are more than [`MAX_RECORDS`], not a rank for each attribute, or 2^32 cells of a target.
    pub fn new(start: &Table<'_>, targets: Vec<Target>, ranks: &[usize], seed: u64) -> Result<Self> {
        let mut marginals = targets.into_iter().map(Marginal::new).collect::<Result<Vec<_>>>()?;
        assert_eq!(ranks.len(), start.columns().len(), "a rank for each attribute");
        for Marginal { axes, attributes, .. } in &mut marginals {
            axes.sort_by_key(|&axis| ranks[attributes[axis]]);
        }
        assert!(start.records() <= MAX_RECORDS, "rows are numbered by 31 bits");
        let columns = start.columns().iter().map(Codes::copy).collect();
        Ok(Self { rows: Rows::new(columns, start.records()), marginals, seed, scratch: Scratch::default() })
    }

    /// The error of each marginal: L1 distance over the number of records.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn errors(&self, cancel: &Cancel) -> Result<Vec<f64>> {
        let error = |scratch: &mut Scratch, marginal: &Marginal| {
            if cancel.is_cancelled() {
                return 0.0;
            }
            marginal.error(&self.rows.count(marginal, scratch, cancel).all, self.rows.records())
        };
        let errors = self.marginals.par_iter().with_max_len(1).map_init(Scratch::default, error).collect();
        cancel.check().map(|()| errors)
    }

    /// Visit the marginals in the given order; `round` is the number of the pass. Returns the error that each visit
    /// found.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`], between two visits: the records are then whole and partly updated.
    ///
    /// # Panics
    /// If a number in `order` is no marginal's.
    pub fn pass(&mut self, order: &[usize], round: u64, step: &Step, cancel: &Cancel) -> Result<Vec<f64>> {
        let mut found = vec![0.0; self.marginals.len()];
        if self.rows.records() == 0 {
            return Ok(found);
        }
        for &place in order {
            let marginal = &self.marginals[place];
            let mut random = Random::new([self.seed, round, place as u64]);
            let counts = self.rows.count(marginal, &mut self.scratch, cancel);
            cancel.check()?;
            found[place] = marginal.error(&counts.all, self.rows.records());
            let plan = plan(&counts.all, &marginal.targets, &marginal.shape, &marginal.axes, step, &mut random);
            self.rows.apply(marginal, &counts, &plan, &mut random, &mut self.scratch);
        }
        Ok(found)
    }

    /// The current records.
    #[must_use]
    pub fn records(&mut self) -> &[Codes] {
        self.rows.unfold();
        &self.rows.columns
    }
}
