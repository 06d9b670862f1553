//! Answers and gradients of tables: products over attributes, summed over components.
//!
//! A table has an axis for each attribute, with all its values or a single one: the table of one cell is a table too.
//! Its cells are walked as a tree: the products of the first attributes are kept, and the last attribute is a product of
//! a matrix and a vector. Going back, each product passes its gradient on, so a cell costs two further multiplications a
//! component, whatever the order of the table.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::Result;
use crate::parallel::{Cancel, zeros};
use crate::simd::vectorised;

/// Components that a task of the gradient has.
const BLOCK: usize = 128;

/// The axes of a table: rows of probabilities, one after another, for each attribute.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Range<usize>>,
    cells: usize,
}

impl Table {
    pub(super) fn new(rows: Vec<Range<usize>>) -> Self {
        let cells = rows.iter().map(ExactSizeIterator::len).product();
        Self { rows, cells }
    }

    /// The rows of each axis.
    #[cfg(test)]
    pub(super) fn rows(&self) -> &[Range<usize>] {
        &self.rows
    }

    /// How many cells it has.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.cells
    }
}

/// The probabilities of the cells of tables, end to end: means over components.
pub(super) fn answers(probabilities: &[f32], components: usize, tables: &[Table], cancel: &Cancel) -> Result<Vec<f32>> {
    let mut all = zeros(tables.iter().map(Table::cells).sum())?;
    let (mut rest, mut parts) = (all.as_mut_slice(), Vec::with_capacity(tables.len()));
    for table in tables {
        let (own, others) = rest.split_at_mut(table.cells);
        parts.push((table, own));
        rest = others;
    }
    parts.into_par_iter().with_max_len(1).try_for_each(|(table, out)| {
        cancel.check()?;
        let mut scratch = vec![0.0; components * table.rows.len().saturating_sub(2)];
        answer(probabilities, components, &table.rows, None, &mut scratch, out);
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let share = 1.0 / components as f32;
        for cell in out.iter_mut() {
            *cell *= share;
        }
        Ok(())
    })?;
    Ok(all)
}

/// The sums over components of the cells below a product of the first attributes.
fn answer(p: &[f32], k: usize, rows: &[Range<usize>], before: Option<&[f32]>, scratch: &mut [f32], out: &mut [f32]) {
    match (rows, before) {
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        ([], _) => out[0] = k as f32,
        ([last], None) => sums(&p[last.start * k..last.end * k], k, out),
        ([last], Some(before)) => dots(before, &p[last.start * k..last.end * k], out),
        ([first, rest @ ..], before) => {
            let below = out.len() / first.len().max(1);
            for (row, out) in first.clone().zip(out.chunks_exact_mut(below.max(1))) {
                let own = &p[row * k..][..k];
                match before {
                    None => answer(p, k, rest, Some(own), scratch, out),
                    Some(before) => {
                        let (here, scratch) = scratch.split_at_mut(k);
                        product(before, own, here);
                        answer(p, k, rest, Some(here), scratch, out);
                    }
                }
            }
        }
    }
}

/// The gradient in the probabilities, given that in the answers of all cells.
///
/// Each task has some components and all tables, so no two tasks write to the same place.
pub(super) fn gradient(
    probabilities: &[f32],
    components: usize,
    tables: &[Table],
    cells: &[f32],
    out: &mut [f32],
    cancel: &Cancel,
) -> Result<()> {
    let rows = probabilities.len() / components;
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let share = 1.0 / components as f32;
    let blocks: Vec<Range<usize>> =
        (0..components).step_by(BLOCK).map(|start| start..components.min(start + BLOCK)).collect();
    let found: Vec<Vec<f32>> = blocks
        .par_iter()
        .map(|block| {
            let k = block.len();
            let mut own = Vec::with_capacity(rows * k);
            probabilities.chunks_exact(components).for_each(|row| own.extend_from_slice(&row[block.clone()]));
            let mut gradient = zeros(rows * k)?;
            let mut cells = cells;
            let mut scratch = Vec::new();
            for table in tables {
                let (here, rest) = cells.split_at(table.cells);
                cells = rest;
                if here.iter().any(|&cell| cell != 0.0) {
                    cancel.check()?;
                    scratch.resize(2 * k * table.rows.len(), 0.0);
                    let mut walk = Walk { p: &own, g: &mut gradient, k };
                    walk.down(&table.rows, None, &mut scratch, here, None);
                }
            }
            for g in &mut gradient {
                *g *= share;
            }
            Ok(gradient)
        })
        .collect::<Result<_>>()?;
    out.par_chunks_exact_mut(components).enumerate().for_each(|(row, out)| {
        for (block, found) in blocks.iter().zip(&found) {
            out[block.clone()].copy_from_slice(&found[row * block.len()..][..block.len()]);
        }
    });
    Ok(())
}

struct Walk<'a> {
    p: &'a [f32],
    g: &'a mut [f32],
    k: usize,
}

impl Walk<'_> {
    /// Add the gradient of the cells below a product, and pass on the gradient in the product itself.
    fn down(
        &mut self,
        rows: &[Range<usize>],
        before: Option<&[f32]>,
        scratch: &mut [f32],
        cells: &[f32],
        passed: Option<&mut [f32]>,
    ) {
        let k = self.k;
        let [first, rest @ ..] = rows else { return };
        if rest.is_empty() {
            let (p, g) = (&self.p[first.start * k..first.end * k], &mut self.g[first.start * k..first.end * k]);
            match (before, passed) {
                (Some(before), Some(passed)) => leaf(before, p, cells, g, passed),
                _ => g.chunks_exact_mut(k).zip(cells).for_each(|(g, &cell)| g.iter_mut().for_each(|g| *g += cell)),
            }
            return;
        }
        let mut passed = passed;
        let below = cells.len() / first.len().max(1);
        for (row, cells) in first.clone().zip(cells.chunks_exact(below.max(1))) {
            let (here, scratch) = scratch.split_at_mut(k);
            let (from_below, scratch) = scratch.split_at_mut(k);
            let own = row * k..(row + 1) * k;
            from_below.fill(0.0);
            if let (Some(before), Some(passed)) = (before, passed.as_deref_mut()) {
                product(before, &self.p[own.clone()], here);
                self.down(rest, Some(here), scratch, cells, Some(from_below));
                add_product(from_below, before, &mut self.g[own.clone()]);
                add_product(from_below, &self.p[own], passed);
            } else {
                here.copy_from_slice(&self.p[own.clone()]);
                self.down(rest, Some(here), scratch, cells, Some(from_below));
                self.g[own].iter_mut().zip(from_below).for_each(|(g, &mut x)| *g += x);
            }
        }
    }
}

/// Sums that are kept apart, so that they are added in one instruction.
const LANES: usize = 32;

#[inline(always)]
#[expect(clippy::inline_always, reason = "it takes on the target features of its callers")]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = left.remainder().iter().zip(right.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in left.zip(right) {
        for i in 0..LANES {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f32>() + rest
}

vectorised! {
    /// The products of a vector with each row of a matrix.
    fn dots(vector: &[f32], matrix: &[f32], out: &mut [f32]) {
        for (out, row) in out.iter_mut().zip(matrix.chunks_exact(vector.len())) {
            *out = dot(vector, row);
        }
    }
}

vectorised! {
    /// The sums of each row of a matrix.
    fn sums(matrix: &[f32], columns: usize, out: &mut [f32]) {
        for (out, row) in out.iter_mut().zip(matrix.chunks_exact(columns)) {
            *out = row.iter().sum();
        }
    }
}

vectorised! {
    fn product(a: &[f32], b: &[f32], out: &mut [f32]) {
        for ((out, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *out = x * y;
        }
    }
}

vectorised! {
    fn add_product(a: &[f32], b: &[f32], out: &mut [f32]) {
        for ((out, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *out += x * y;
        }
    }
}

vectorised! {
    /// The gradient of the last attribute, and of the product before it.
    fn leaf(before: &[f32], p: &[f32], cells: &[f32], g: &mut [f32], passed: &mut [f32]) {
        let k = before.len();
        for ((p, g), &cell) in p.chunks_exact(k).zip(g.chunks_exact_mut(k)).zip(cells) {
            for i in 0..k {
                g[i] += cell * before[i];
                passed[i] += cell * p[i];
            }
        }
    }
}
