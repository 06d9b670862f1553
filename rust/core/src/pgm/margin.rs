//! Margins of the tables of a junction tree: as [`Axes`], with large tables shared out between threads.
//!
//! A table is cut along its first run, into pieces that depend on its shape and not on the threads; where all pieces
//! count towards the same margin, each has its own, and these are put together in order.

use rayon::prelude::*;

use crate::axes::Axes;

/// Tables of fewer cells are not cut.
const CUT: usize = 1 << 16;

/// Into about so many pieces are the others.
const PIECES: usize = 8;

/// A margin of a table.
#[derive(Debug, Clone)]
pub struct Margin {
    whole: Axes,
    pieces: Vec<Axes>,
    kept: bool,
}

impl Margin {
    /// The margin on `kept` of a table over `attributes`; both are sorted.
    pub fn new(cardinalities: &[u32], attributes: &[usize], kept: &[usize]) -> Self {
        let axis = |&a: &usize| (cardinalities[a] as usize, kept.binary_search(&a).is_ok());
        let whole = Axes::new(attributes.iter().map(axis));
        let (pieces, kept) = if whole.table_cells() >= CUT { whole.cut(PIECES) } else { (Vec::new(), false) };
        Self { whole, pieces, kept }
    }

    /// Cells of the margin.
    pub fn cells(&self) -> usize {
        self.whole.cells()
    }

    /// Write the sums of `table` to `margin`.
    pub fn sum(&self, table: &[f64], margin: &mut [f64]) {
        self.gather(table, margin, 0.0, Axes::sum, |sum, more| sum + more);
    }

    /// Write the largest cells of `table` to `margin`.
    pub fn max(&self, table: &[f64], margin: &mut [f64]) {
        self.gather(table, margin, f64::NEG_INFINITY, Axes::max, f64::max);
    }

    /// Add the values of `margin` to the cells of `table`, times `factor`.
    pub fn add(&self, table: &mut [f64], margin: &[f64], factor: f64) {
        self.apply(table, margin, |axes, table, margin| axes.spread(table, margin, factor));
    }

    /// Multiply the cells of `table` by the values of `margin`.
    pub fn scale(&self, table: &mut [f64], margin: &[f64]) {
        self.apply(table, margin, Axes::scale);
    }

    fn gather(
        &self,
        table: &[f64],
        margin: &mut [f64],
        nothing: f64,
        gather: impl Fn(&Axes, &[f64], &mut [f64]) + Sync,
        two: impl Fn(f64, f64) -> f64,
    ) {
        margin.fill(nothing);
        let [first, _, ..] = &self.pieces[..] else { return gather(&self.whole, table, margin) };
        let tables = self.pieces.par_iter().zip(table.par_chunks(first.table_cells()));
        if self.kept {
            let parts = tables.zip(margin.par_chunks_mut(first.cells()));
            parts.for_each(|((axes, table), margin)| gather(axes, table, margin));
            return;
        }
        let parts: Vec<Vec<f64>> = tables
            .map(|(axes, table)| {
                let mut part = vec![nothing; axes.cells()];
                gather(axes, table, &mut part);
                part
            })
            .collect();
        for part in parts {
            margin.iter_mut().zip(part).for_each(|(value, more)| *value = two(*value, more));
        }
    }

    fn apply(&self, table: &mut [f64], margin: &[f64], apply: impl Fn(&Axes, &mut [f64], &[f64]) + Sync) {
        let [first, _, ..] = &self.pieces[..] else { return apply(&self.whole, table, margin) };
        let tables = self.pieces.par_iter().zip(table.par_chunks_mut(first.table_cells()));
        if self.kept {
            let parts = tables.zip(margin.par_chunks(first.cells()));
            parts.for_each(|((axes, table), margin)| apply(axes, table, margin));
        } else {
            tables.for_each(|(axes, table)| apply(axes, table, margin));
        }
    }
}
