//! A margin of a flat table: gather cells into it (sums, maxima), or apply its values to the cells (add, multiply).
//!
//! [`Margin`] is one thread's work; [`CutMargin`] is the same for tables so large that threads share them.
//! Neighbouring axes that are both kept, or both summed out, act as one, so most margins are one or two nested loops
//! over contiguous runs, which vectorise. Tables have their largest axis last, which keeps the runs long.
//! Cost: one pass over the larger table. Sums run in the order of the cells, on any machine.

use rayon::prelude::*;

use crate::simd::vectorised;

/// Tables of fewer cells are not cut.
const CUT: usize = 1 << 16;

/// Larger tables are cut into about this many pieces.
const PIECES: usize = 8;

/// Which axes of a table its margin keeps, as merged runs of (cells, whether kept); the last run moves fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Margin(Vec<(usize, bool)>);

impl Margin {
    /// The margin that keeps `kept` of the axes of `shape`.
    pub fn new(axes: impl IntoIterator<Item = (usize, bool)>) -> Self {
        let mut runs: Vec<(usize, bool)> = Vec::new();
        for (cells, kept) in axes {
            match runs.last_mut() {
                _ if cells == 1 => {}
                Some((run, same)) if *same == kept => *run *= cells,
                _ => runs.push((cells, kept)),
            }
        }
        Self(runs)
    }

    /// Cells of the margin.
    pub fn cells(&self) -> usize {
        self.0.iter().filter(|(_, kept)| *kept).map(|(cells, _)| cells).product()
    }

    /// Cells of the table.
    pub fn table_cells(&self) -> usize {
        self.0.iter().map(|(cells, _)| cells).product()
    }

    /// Add the margin of `table` to `margin`.
    pub fn sum(&self, table: &[f64], margin: &mut [f64]) {
        debug_assert_eq!((table.len(), margin.len()), (self.table_cells(), self.cells()));
        add_margin(&self.0, table, margin);
    }

    /// The margin of `table`.
    pub fn of(&self, table: &[f64]) -> Vec<f64> {
        let mut margin = vec![0.0; self.cells()];
        self.sum(table, &mut margin);
        margin
    }

    /// Add `scale * value` to every cell of `table` that counts towards a value of the margin.
    pub fn spread(&self, table: &mut [f64], margin: &[f64], scale: f64) {
        debug_assert_eq!((table.len(), margin.len()), (self.table_cells(), self.cells()));
        add_spread(&self.0, table, margin, scale);
    }

    /// Raise `margin` to the largest cell that counts towards each of its values.
    pub fn max(&self, table: &[f64], margin: &mut [f64]) {
        debug_assert_eq!((table.len(), margin.len()), (self.table_cells(), self.cells()));
        max_margin(&self.0, table, margin);
    }

    /// Multiply every cell of `table` by the value of the margin that it counts towards.
    pub fn scale(&self, table: &mut [f64], margin: &[f64]) {
        debug_assert_eq!((table.len(), margin.len()), (self.table_cells(), self.cells()));
        multiply_spread(&self.0, table, margin);
    }

    /// The margins of about `parts` equal pieces of the table, cut along its first run, and whether the margin is cut
    /// too.
    fn cut(&self, parts: usize) -> (Vec<Self>, bool) {
        let Some(&(count, kept)) = self.0.first() else { return (vec![self.clone()], false) };
        let length = count.div_ceil(parts);
        let piece = |start: usize| {
            let mut runs = self.0.clone();
            runs[0].0 = length.min(count - start);
            Self(runs)
        };
        ((0..count).step_by(length).map(piece).collect(), kept)
    }
}

/// A margin of a table whose pieces are distributed over threads.
///
/// A table is cut along its first run, into pieces that depend on its shape and not on the threads; if all pieces
/// count towards the same values of the margin, each piece has its own copy, and the copies are added in order.
#[derive(Debug, Clone)]
pub struct CutMargin {
    whole: Margin,
    pieces: Vec<Margin>,
    kept: bool,
}

impl CutMargin {
    /// The margin on `kept` of a table over `attributes`; both are sorted.
    pub fn new(cardinalities: &[u32], attributes: &[usize], kept: &[usize]) -> Self {
        let axis = |&a: &usize| (cardinalities[a] as usize, kept.binary_search(&a).is_ok());
        let whole = Margin::new(attributes.iter().map(axis));
        let (pieces, kept) = if whole.table_cells() >= CUT { whole.cut(PIECES) } else { (Vec::new(), false) };
        Self { whole, pieces, kept }
    }

    /// Cells of the margin.
    pub fn cells(&self) -> usize {
        self.whole.cells()
    }

    /// Write the sums of `table` to `margin`.
    pub fn sum(&self, table: &[f64], margin: &mut [f64]) {
        self.gather(table, margin, 0.0, Margin::sum, |sum, more| sum + more);
    }

    /// Write the largest cells of `table` to `margin`.
    pub fn max(&self, table: &[f64], margin: &mut [f64]) {
        self.gather(table, margin, f64::NEG_INFINITY, Margin::max, f64::max);
    }

    /// Add the values of `margin` to the cells of `table`, times `factor`.
    pub fn add(&self, table: &mut [f64], margin: &[f64], factor: f64) {
        self.apply(table, margin, |piece, table, margin| piece.spread(table, margin, factor));
    }

    /// Multiply the cells of `table` by the values of `margin`.
    pub fn scale(&self, table: &mut [f64], margin: &[f64]) {
        self.apply(table, margin, Margin::scale);
    }

    fn gather(
        &self,
        table: &[f64],
        margin: &mut [f64],
        nothing: f64,
        gather: impl Fn(&Margin, &[f64], &mut [f64]) + Sync,
        two: impl Fn(f64, f64) -> f64,
    ) {
        margin.fill(nothing);
        let [first, _, ..] = &self.pieces[..] else { return gather(&self.whole, table, margin) };
        let tables = self.pieces.par_iter().zip(table.par_chunks(first.table_cells()));
        if self.kept {
            let parts = tables.zip(margin.par_chunks_mut(first.cells()));
            parts.for_each(|((piece, table), margin)| gather(piece, table, margin));
            return;
        }
        let parts: Vec<Vec<f64>> = tables
            .map(|(piece, table)| {
                let mut part = vec![nothing; piece.cells()];
                gather(piece, table, &mut part);
                part
            })
            .collect();
        for part in parts {
            margin.iter_mut().zip(part).for_each(|(value, more)| *value = two(*value, more));
        }
    }

    fn apply(&self, table: &mut [f64], margin: &[f64], apply: impl Fn(&Margin, &mut [f64], &[f64]) + Sync) {
        let [first, _, ..] = &self.pieces[..] else { return apply(&self.whole, table, margin) };
        let tables = self.pieces.par_iter().zip(table.par_chunks_mut(first.table_cells()));
        if self.kept {
            let parts = tables.zip(margin.par_chunks(first.cells()));
            parts.for_each(|((piece, table), margin)| apply(piece, table, margin));
        } else {
            tables.for_each(|(piece, table)| apply(piece, table, margin));
        }
    }
}

vectorised! {
    fn add_margin(runs: &[(usize, bool)], table: &[f64], margin: &mut [f64]) {
        gather(runs, table, margin, |sum, value| sum + value, sum, add_margin);
    }
}

vectorised! {
    fn max_margin(runs: &[(usize, bool)], table: &[f64], margin: &mut [f64]) {
        gather(runs, table, margin, larger, max, max_margin);
    }
}

vectorised! {
    fn add_spread(runs: &[(usize, bool)], table: &mut [f64], margin: &[f64], scale: f64) {
        apply(runs, table, margin, |cell, value| cell + scale * value, |r, t, m| add_spread(r, t, m, scale));
    }
}

vectorised! {
    fn multiply_spread(runs: &[(usize, bool)], table: &mut [f64], margin: &[f64]) {
        apply(runs, table, margin, |cell, value| cell * value, multiply_spread);
    }
}

/// The innermost two runs are plain loops that vectorise; only those outside them recurse, by `outer`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn gather(
    runs: &[(usize, bool)],
    table: &[f64],
    margin: &mut [f64],
    two: impl Fn(f64, f64) -> f64,
    all: impl Fn(&[f64]) -> f64,
    outer: impl Fn(&[(usize, bool)], &[f64], &mut [f64]),
) {
    match *runs {
        [] | [(_, true)] => margin.iter_mut().zip(table).for_each(|(sum, value)| *sum = two(*sum, *value)),
        [(_, false)] => margin[0] = two(margin[0], all(table)),
        [(_, true), (inner, false)] => {
            margin.iter_mut().zip(table.chunks_exact(inner)).for_each(|(sum, run)| *sum = two(*sum, all(run)));
        }
        [(_, false), (inner, true)] => {
            for run in table.chunks_exact(inner) {
                margin.iter_mut().zip(run).for_each(|(sum, value)| *sum = two(*sum, *value));
            }
        }
        [(count, kept), ref rest @ ..] => {
            let (part, size) = part_of(margin.len(), count, kept);
            for (i, cells) in table.chunks_exact(table.len() / count).enumerate() {
                outer(rest, cells, &mut margin[i * part..i * part + size]);
            }
        }
    }
}

/// As [`gather`], the other way.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn apply(
    runs: &[(usize, bool)],
    table: &mut [f64],
    margin: &[f64],
    two: impl Fn(f64, f64) -> f64,
    outer: impl Fn(&[(usize, bool)], &mut [f64], &[f64]),
) {
    let one = |run: &mut [f64], value: f64| run.iter_mut().for_each(|cell| *cell = two(*cell, value));
    match *runs {
        [] | [(_, true)] => table.iter_mut().zip(margin).for_each(|(cell, value)| *cell = two(*cell, *value)),
        [(_, false)] => one(table, margin[0]),
        [(_, true), (inner, false)] => {
            table.chunks_exact_mut(inner).zip(margin).for_each(|(run, value)| one(run, *value));
        }
        [(_, false), (inner, true)] => {
            for run in table.chunks_exact_mut(inner) {
                run.iter_mut().zip(margin).for_each(|(cell, value)| *cell = two(*cell, *value));
            }
        }
        [(count, kept), ref rest @ ..] => {
            let (part, size) = part_of(margin.len(), count, kept);
            for (i, cells) in table.chunks_exact_mut(table.len() / count).enumerate() {
                outer(rest, cells, &margin[i * part..i * part + size]);
            }
        }
    }
}

/// The stride of the margin between values of the first run, and the cells of the margin for each value.
fn part_of(margin: usize, count: usize, kept: bool) -> (usize, usize) {
    if kept { (margin / count, margin / count) } else { (0, margin) }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// The largest value, in eight lanes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn max(values: &[f64]) -> f64 {
    let (groups, rest) = values.as_chunks::<8>();
    let mut lanes = [f64::NEG_INFINITY; 8];
    for group in groups {
        for (lane, value) in lanes.iter_mut().zip(group) {
            *lane = larger(*lane, *value);
        }
    }
    lanes.iter().chain(rest).fold(f64::NEG_INFINITY, |most, value| larger(most, *value))
}

/// Sum in eight lanes, then pairwise: the same order on any machine, and vectorised where the machine can.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
pub fn sum(values: &[f64]) -> f64 {
    let (groups, rest) = values.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for group in groups {
        for (lane, value) in lanes.iter_mut().zip(group) {
            *lane += value;
        }
    }
    rest.iter().fold(join(lanes), |sum, value| sum + value)
}

/// The sum of eight lanes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
pub fn join(lanes: [f64; 8]) -> f64 {
    let halves: [f64; 4] = std::array::from_fn(|i| lanes[i] + lanes[i + 4]);
    (halves[0] + halves[2]) + (halves[1] + halves[3])
}
