//! One clique's table in a sweep: add the corrections to its cells (lift), make them non-negative, sum its margins.
//!
//! A table of up to 131,072 cells is lifted into a buffer that stays in the cache, passed over a few times to find the
//! level at which its cells add up to the total, and cut and summed in a last pass. A larger one is lifted slab by slab
//! in every pass, which is cheaper than writing it out, its parts in parallel and added up in order.
//!
//! **The level.** Projecting onto the simplex lowers all cells by one `level` and cuts them at zero;
//! `sum(max(z - level, 0))` is convex and falling in the level, so Newton's method reaches the root exactly, in
//! finitely many steps, from any start: from the left it rises without overshooting, from the right it first jumps to
//! the left. Sweeps change the level little, so starting from the last one takes one step and a pass that confirms it;
//! sorting, the usual way, costs some fifty times as much.
//! Cost: O(cells) for each of the three or four passes, plus one for every slot of three or more attributes.

use rayon::prelude::*;

use super::plan::{CliquePlan, Rows};
use super::{Rule, cut};
use crate::margin::{join, sum};
use crate::simd::vectorised;

/// Cells add up to the total to this relative precision.
const EXACT: f64 = 1e-13;

/// More Newton steps than any table takes; a bound in case rounding makes two levels alternate.
const MAX_STEPS: usize = 200;

/// The table of a clique and its state in a sweep.
#[derive(Debug)]
pub struct Sheet {
    /// In the joint rule the measured values, in the others the values so far; in the layout of the plan.
    pub table: Vec<f64>,
    /// What each slot adds to the cells that count towards it.
    pub lift: Vec<f64>,
    /// The level at which the lifted cells are cut.
    pub level: f64,
    /// The margins of the non-negative table, slot after slot.
    pub margins: Vec<f64>,
}

/// Buffers that a thread reuses between tables.
#[derive(Debug, Default)]
pub struct Scratch {
    cells: Vec<f64>,
    part: PartScratch,
    base: Vec<f64>,
}

#[derive(Debug, Default)]
struct PartScratch {
    /// Sums of rows, and of columns.
    rows: Vec<f64>,
    columns: Vec<f64>,
}

/// How cells become non-negative once the level is known.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Keep,
    /// `max(cell - level, 0) * scale`.
    Level {
        level: f64,
        scale: f64,
    },
}

impl Sheet {
    /// A table as it is, with its margins.
    pub fn new(plan: &CliquePlan, table: Vec<f64>, scratch: &mut Scratch) -> Self {
        let mut sheet =
            Self { table, lift: vec![0.0; plan.slot_cells], level: 0.0, margins: vec![0.0; plan.slot_cells] };
        sheet.in_place(plan, Rule::None, 0.0, scratch);
        sheet
    }

    /// Find the level of the lifted table, and its margins; the table does not change.
    pub fn joint(&mut self, plan: &CliquePlan, total: f64, scratch: &mut Scratch) {
        let Scratch { cells, part, base } = scratch;
        spread_base(plan, &self.lift, base);
        if total <= 0.0 {
            self.level = f64::INFINITY;
            self.margins.fill(0.0);
        } else if plan.part_cells() == plan.cells {
            raise_into(plan, &self.lift, base, 0, &self.table, cells);
            self.level = level(self.level, total, |level| above(cells, level), || max(cells));
            let cut = Cut::Level { level: self.level, scale: 1.0 };
            self.margins.fill(0.0);
            cut_and_sum(plan, cut, 0, cells, part, &mut self.margins);
        } else {
            let (table, lift) = (&self.table, &self.lift);
            let fold =
                |start: f64, slab: &(dyn Fn(&[f64]) -> [f64; 2] + Sync), add: fn([f64; 2], [f64; 2]) -> [f64; 2]| {
                    in_parts(plan, table, lift, base, [start, 0.0], slab, add)
                };
            self.level = level(
                self.level,
                total,
                |level| fold(0.0, &|cells| above(cells, level), |a, b| [a[0] + b[0], a[1] + b[1]]),
                || fold(f64::NEG_INFINITY, &|cells| [max(cells), 0.0], |a, b| [a[0].max(b[0]), 0.0])[0],
            );
            let cut = Cut::Level { level: self.level, scale: 1.0 };
            let parts: Vec<Vec<f64>> = table
                .par_chunks(plan.part_cells())
                .enumerate()
                .map_init(Scratch::default, |scratch, (p, part)| {
                    let mut margins = vec![0.0; plan.slot_cells];
                    for (s, slab) in part.chunks(plan.slab_rows * plan.width).enumerate() {
                        let first = p * plan.part_rows + s * plan.slab_rows;
                        raise_into(plan, lift, base, first, slab, &mut scratch.cells);
                        cut_and_sum(plan, cut, first, &mut scratch.cells, &mut scratch.part, &mut margins);
                    }
                    margins
                })
                .collect();
            self.add_up(&parts);
        }
    }

    /// Lift the table, make it non-negative by `rule`, and sum its margins.
    pub fn in_place(&mut self, plan: &CliquePlan, rule: Rule, total: f64, scratch: &mut Scratch) {
        spread_base(plan, &self.lift, &mut scratch.base);
        let (base, lift) = (&scratch.base, &self.lift);
        let length = plan.part_cells();
        self.table.par_chunks_mut(length).enumerate().for_each(|(p, cells)| {
            raise(plan, lift, base, p * plan.part_rows, cells);
        });
        let table = &self.table;
        let above_all = |level: f64| {
            let parts: Vec<[f64; 2]> = table.par_chunks(length).map(|cells| above(cells, level)).collect();
            parts.iter().fold([0.0, 0.0], |sums, part| [sums[0] + part[0], sums[1] + part[1]])
        };
        let cut = match rule {
            Rule::None => Cut::Keep,
            _ if total <= 0.0 => Cut::Level { level: f64::INFINITY, scale: 1.0 },
            Rule::Joint | Rule::NormSub => {
                self.level = level(self.level, total, above_all, || max(table));
                Cut::Level { level: self.level, scale: 1.0 }
            }
            Rule::NormMul => Cut::Level { level: 0.0, scale: total / above_all(0.0)[0].max(f64::MIN_POSITIVE) },
            Rule::NormCut => {
                cut::keep_largest(&mut self.table, total);
                Cut::Keep
            }
            Rule::BasePos => Cut::Level { level: 0.0, scale: 1.0 },
        };
        let parts: Vec<Vec<f64>> = self
            .table
            .par_chunks_mut(length)
            .enumerate()
            .map_init(PartScratch::default, |scratch, (p, cells)| {
                let mut margins = vec![0.0; plan.slot_cells];
                cut_and_sum(plan, cut, p * plan.part_rows, cells, scratch, &mut margins);
                margins
            })
            .collect();
        self.add_up(&parts);
    }

    /// The lifted table, cut at its level.
    pub fn lifted(&self, plan: &CliquePlan) -> Vec<f64> {
        let mut scratch = Scratch::default();
        spread_base(plan, &self.lift, &mut scratch.base);
        let mut cells = self.table.clone();
        raise(plan, &self.lift, &scratch.base, 0, &mut cells);
        let cut = Cut::Level { level: self.level, scale: 1.0 };
        cut_and_sum(plan, cut, 0, &mut cells, &mut scratch.part, &mut vec![0.0; plan.slot_cells]);
        cells
    }

    fn add_up(&mut self, parts: &[Vec<f64>]) {
        self.margins.fill(0.0);
        for part in parts {
            self.margins.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
    }
}

impl CliquePlan {
    fn part_cells(&self) -> usize {
        self.part_rows * self.width
    }
}

/// Fold a function over the lifted slabs of a large table: parts in parallel, results in order.
fn in_parts(
    plan: &CliquePlan,
    table: &[f64],
    lift: &[f64],
    base: &[f64],
    start: [f64; 2],
    slab: &(dyn Fn(&[f64]) -> [f64; 2] + Sync),
    add: fn([f64; 2], [f64; 2]) -> [f64; 2],
) -> [f64; 2] {
    let parts: Vec<[f64; 2]> = table
        .par_chunks(plan.part_cells())
        .enumerate()
        .map_init(Vec::new, |cells, (p, part)| {
            let slabs = part.chunks(plan.slab_rows * plan.width).enumerate();
            slabs.fold(start, |so_far, (s, values)| {
                raise_into(plan, lift, base, p * plan.part_rows + s * plan.slab_rows, values, cells);
                add(so_far, slab(cells))
            })
        })
        .collect();
    parts.into_iter().fold(start, add)
}

/// The level at which cells add up to `total`; `above` gives the sum of the excesses over a level and the number of
/// cells above it.
fn level(start: f64, total: f64, above: impl Fn(f64) -> [f64; 2], max: impl Fn() -> f64) -> f64 {
    let mut level = if start.is_finite() { start } else { 0.0 };
    let mut last_count = f64::NAN;
    for _ in 0..MAX_STEPS {
        let [sum, count] = above(level);
        // As many cells as at the last level: these are the same cells, so the last step was exact.
        #[expect(clippy::float_cmp, reason = "whole numbers")]
        if count == last_count || (sum - total).abs() <= EXACT * total {
            break;
        }
        // With no cell above, go to where the largest alone holds the total: the root is at it or to its right.
        level = if count > 0.0 { level + (sum - total) / count } else { max() - total };
        last_count = count;
    }
    level
}

/// What the slots that keep nothing of the rows add to every row.
fn spread_base(plan: &CliquePlan, lift: &[f64], base: &mut Vec<f64>) {
    base.clear();
    base.resize(plan.width, 0.0);
    for slot in plan.slots.iter().filter(|slot| slot.rows == Rows::Summed) {
        slot.row_margin.spread(base, &lift[slot.range()], 1.0);
    }
}

/// Add what all slots add to the rows from `first` on.
fn raise(plan: &CliquePlan, lift: &[f64], base: &[f64], first: usize, cells: &mut [f64]) {
    raise_rows(cells, base, plain(plan, lift, first, cells.len()));
    raise_mapped(plan, lift, first, cells);
}

/// The same, from `values` into `cells`.
fn raise_into(plan: &CliquePlan, lift: &[f64], base: &[f64], first: usize, values: &[f64], cells: &mut Vec<f64>) {
    cells.resize(values.len(), 0.0);
    raise_rows_into(values, base, plain(plan, lift, first, values.len()), cells);
    raise_mapped(plan, lift, first, cells);
}

/// What is added to each row as a whole, from row `first` on.
fn plain<'a>(plan: &CliquePlan, lift: &'a [f64], first: usize, cells: usize) -> &'a [f64] {
    let slot = plan.slots.iter().find(|slot| slot.rows == Rows::Plain);
    slot.map_or(&[], |slot| &lift[slot.range()][first..][..cells / plan.width])
}

fn raise_mapped(plan: &CliquePlan, lift: &[f64], first: usize, cells: &mut [f64]) {
    for slot in &plan.slots {
        if let Rows::Mapped(map) = &slot.rows {
            let (lift, length) = (&lift[slot.range()], slot.row_margin.cells());
            for (row, &part) in cells.chunks_exact_mut(plan.width).zip(&map[first..]) {
                slot.row_margin.spread(row, &lift[part as usize * length..][..length], 1.0);
            }
        }
    }
}

/// Cut the cells of the rows from `first` on and add their margins.
fn cut_and_sum(
    plan: &CliquePlan,
    cut: Cut,
    first: usize,
    cells: &mut [f64],
    scratch: &mut PartScratch,
    margins: &mut [f64],
) {
    let PartScratch { rows, columns } = scratch;
    rows.clear();
    rows.resize(cells.len() / plan.width, 0.0);
    columns.clear();
    columns.resize(plan.width, 0.0);
    match cut {
        Cut::Keep => sum_rows(cells, rows, columns),
        Cut::Level { level, scale } => cut_rows(cells, level, scale, rows, columns),
    }
    for slot in &plan.slots {
        let margin = &mut margins[slot.range()];
        match &slot.rows {
            Rows::Summed => slot.row_margin.sum(columns, margin),
            Rows::Plain => margin[first..][..rows.len()].copy_from_slice(rows),
            Rows::Mapped(map) => {
                let length = slot.row_margin.cells();
                for (row, &part) in cells.chunks_exact(plan.width).zip(&map[first..]) {
                    slot.row_margin.sum(row, &mut margin[part as usize * length..][..length]);
                }
            }
        }
    }
}

vectorised! {
    /// Add `base` to every row, and to each its own value of `plain` (none, if that is empty).
    fn raise_rows(cells: &mut [f64], base: &[f64], plain: &[f64]) {
        let plain = plain.iter().copied().chain(std::iter::repeat(0.0));
        for (row, own) in cells.chunks_exact_mut(base.len()).zip(plain) {
            for (cell, common) in row.iter_mut().zip(base) {
                *cell += common + own;
            }
        }
    }
}

vectorised! {
    /// The same, from `values` into `cells`.
    fn raise_rows_into(values: &[f64], base: &[f64], plain: &[f64], cells: &mut [f64]) {
        let plain = plain.iter().copied().chain(std::iter::repeat(0.0));
        let rows = cells.chunks_exact_mut(base.len()).zip(values.chunks_exact(base.len()));
        for ((row, values), own) in rows.zip(plain) {
            for ((cell, value), common) in row.iter_mut().zip(values).zip(base) {
                *cell = value + (common + own);
            }
        }
    }
}

vectorised! {
    /// Sum rows and columns.
    fn sum_rows(cells: &mut [f64], rows: &mut [f64], columns: &mut [f64]) {
        for (row, total) in cells.chunks_exact(columns.len()).zip(rows) {
            columns.iter_mut().zip(row).for_each(|(column, cell)| *column += cell);
            *total = sum(row);
        }
    }
}

vectorised! {
    /// Lower cells by `level`, cut them at zero, scale them, and sum rows and columns.
    fn cut_rows(cells: &mut [f64], level: f64, scale: f64, rows: &mut [f64], columns: &mut [f64]) {
        for (row, total) in cells.chunks_exact_mut(columns.len()).zip(rows) {
            let (groups, rest) = row.as_chunks_mut::<4>();
            let (column_groups, column_rest) = columns.as_chunks_mut::<4>();
            let mut lanes = [0.0; 4];
            for (group, columns) in groups.iter_mut().zip(column_groups) {
                for ((cell, column), lane) in group.iter_mut().zip(columns).zip(&mut lanes) {
                    *cell = positive(*cell - level) * scale;
                    *column += *cell;
                    *lane += *cell;
                }
            }
            let mut sum = 0.0;
            for (cell, column) in rest.iter_mut().zip(column_rest) {
                *cell = positive(*cell - level) * scale;
                *column += *cell;
                sum += *cell;
            }
            let [a, b, c, d] = lanes;
            *total = sum + ((a + c) + (b + d));
        }
    }
}

/// The sum of the excesses over a level, and the number of cells above it.
fn above(cells: &[f64], level: f64) -> [f64; 2] {
    let mut sums = [0.0; 2];
    add_above(cells, level, &mut sums);
    sums
}

vectorised! {
    fn add_above(cells: &[f64], level: f64, sums: &mut [f64; 2]) {
        let (groups, rest) = cells.as_chunks::<8>();
        // Counted as integers: as floats, the compiler would pair each sum with its count instead of eight sums.
        let (mut lanes, mut counts) = ([0.0; 8], [0i64; 8]);
        for group in groups {
            for (cell, lane) in group.iter().zip(&mut lanes) {
                *lane += positive(cell - level);
            }
            for (cell, count) in group.iter().zip(&mut counts) {
                *count += i64::from(*cell > level);
            }
        }
        let (mut sum, mut count) = (0.0, counts.iter().sum::<i64>());
        for &cell in rest {
            sum += positive(cell - level);
            count += i64::from(cell > level);
        }
        #[expect(clippy::cast_precision_loss, reason = "below 2^53 by the memory limit")]
        let count = count as f64;
        *sums = [sum + join(lanes), count];
    }
}

fn max(cells: &[f64]) -> f64 {
    cells.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// `max(value, 0)`, as one instruction.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { 0.0 }
}
