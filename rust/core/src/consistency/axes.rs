//! A margin of a flat table: sum cells into it, or spread its values evenly back over the cells.
//!
//! Neighbouring axes that are both kept, or both summed out, act as one, so most margins are one or two nested loops
//! over contiguous runs, which vectorise. Tables have their largest axis last, which keeps the runs long.
//! Cost: one pass over the larger table. Sums run in the order of the cells, whatever the machine.

use crate::simd::vectorised;

/// Which axes of a table its margin keeps, as merged runs of (cells, whether kept); the last run moves fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes(Vec<(usize, bool)>);

impl Axes {
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
    pub fn margin(&self, table: &[f64]) -> Vec<f64> {
        let mut margin = vec![0.0; self.cells()];
        self.sum(table, &mut margin);
        margin
    }

    /// Add `scale * value` to every cell of `table` that counts towards a value of the margin.
    pub fn spread(&self, table: &mut [f64], margin: &[f64], scale: f64) {
        debug_assert_eq!((table.len(), margin.len()), (self.table_cells(), self.cells()));
        add_spread(&self.0, table, margin, scale);
    }
}

vectorised! {
    fn add_margin(runs: &[(usize, bool)], table: &[f64], margin: &mut [f64]) {
        sum_runs(runs, table, margin);
    }
}

vectorised! {
    fn add_spread(runs: &[(usize, bool)], table: &mut [f64], margin: &[f64], scale: f64) {
        spread_runs(runs, table, margin, scale);
    }
}

/// The innermost two runs are plain loops that vectorise; only those outside them recurse.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn sum_runs(runs: &[(usize, bool)], table: &[f64], margin: &mut [f64]) {
    match *runs {
        [] | [(_, true)] => margin.iter_mut().zip(table).for_each(|(sum, value)| *sum += value),
        [(_, false)] => margin[0] += sum(table),
        [(_, true), (inner, false)] => {
            margin.iter_mut().zip(table.chunks_exact(inner)).for_each(|(total, run)| *total += sum(run));
        }
        [(_, false), (inner, true)] => {
            for run in table.chunks_exact(inner) {
                margin.iter_mut().zip(run).for_each(|(sum, value)| *sum += value);
            }
        }
        [(outer, kept), ref rest @ ..] => sum_outer(outer, kept, rest, table, margin),
    }
}

fn sum_outer(outer: usize, kept: bool, rest: &[(usize, bool)], table: &[f64], margin: &mut [f64]) {
    let slab = table.len() / outer;
    let part = if kept { margin.len() / outer } else { 0 };
    let size = margin.len() / if kept { outer } else { 1 };
    for (i, cells) in table.chunks_exact(slab).enumerate() {
        add_margin(rest, cells, &mut margin[i * part..i * part + size]);
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn spread_runs(runs: &[(usize, bool)], table: &mut [f64], margin: &[f64], scale: f64) {
    match *runs {
        [] | [(_, true)] => table.iter_mut().zip(margin).for_each(|(cell, value)| *cell += scale * value),
        [(_, false)] => {
            let value = scale * margin[0];
            for cell in table {
                *cell += value;
            }
        }
        [(_, true), (inner, false)] => {
            for (run, value) in table.chunks_exact_mut(inner).zip(margin) {
                let value = scale * value;
                for cell in run {
                    *cell += value;
                }
            }
        }
        [(_, false), (inner, true)] => {
            for run in table.chunks_exact_mut(inner) {
                run.iter_mut().zip(margin).for_each(|(cell, value)| *cell += scale * value);
            }
        }
        [(outer, kept), ref rest @ ..] => spread_outer(outer, kept, rest, table, margin, scale),
    }
}

fn spread_outer(outer: usize, kept: bool, rest: &[(usize, bool)], table: &mut [f64], margin: &[f64], scale: f64) {
    let slab = table.len() / outer;
    let part = if kept { margin.len() / outer } else { 0 };
    let size = margin.len() / if kept { outer } else { 1 };
    for (i, cells) in table.chunks_exact_mut(slab).enumerate() {
        add_spread(rest, cells, &margin[i * part..i * part + size], scale);
    }
}

/// Sum in eight lanes, then pairwise: the same order on any machine, and vectorised where there are vectors.
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
