//! The problem of descent: targets with weights, and the residuals of the current records.
//!
//! A residual is count - target in fixed point, 32 bits with up to 8 of them after the point: a move adds and subtracts
//! exactly one record, so residuals never drift. Targets are rounded to 1/256 of a record, or to less where counts
//! are in the tens of millions. A [`View`] holds what a visit to one attribute needs of its marginals, computed once.

use rayon::prelude::*;

use crate::error::Result;
use crate::layout;
use crate::query::{self, Axis, Query, Target};
use crate::table::{Codes, Column};

/// The most values that one vector of 16-bit lanes sums.
pub const LANES: usize = 16;

/// The fewest, for an attribute with few values: its rows then take less of the cache.
const FEWEST_LANES: usize = 4;

/// Rows longer than this are summed in pieces of [`LONG_WIDTH`] values.
const SHORT_ROW: usize = 128;

/// See [`SHORT_ROW`].
const LONG_WIDTH: usize = 64;

/// An attribute in buckets with at most this many codes has a table of the cost of each change.
const MAX_PENALTY: usize = 256;

/// The most units of one record; a power of two, so that whole numbers are exact.
const FINEST_ONE: i32 = 256;

/// Residuals stay within this many units.
const MOST: f64 = 2.0e9;

/// A target and the residuals of the current records.
#[derive(Debug, Clone, Default)]
pub(super) struct Marginal {
    pub query: Query,
    pub strides: Vec<usize>,
    pub weight: f64,
    /// Count - target of each cell, in units of 1 / `one`.
    pub residual: Vec<i32>,
    pub one: i32,
    /// Whether records could match the target: no value is negative, and they add up to the number of records.
    pub proper: bool,
}

impl Marginal {
    /// Without any record counted.
    fn new(target: Target, one: i32, records: usize) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "numbers of records are exact")]
        let excess = (target.values.iter().sum::<f64>() - records as f64).abs();
        #[expect(clippy::cast_precision_loss, reason = "numbers of records are exact")]
        let proper = target.values.iter().all(|&value| value >= 0.0) && excess <= 0.01 * records as f64;
        Self {
            proper,
            strides: layout::strides(target.query.shape()),
            query: target.query,
            weight: target.weight,
            residual: target.values.iter().map(|&value| -fixed(value, one)).collect(),
            one,
        }
    }

    /// Add one for each record.
    pub fn count(&mut self, columns: &[Codes], records: usize) {
        const CHUNK: usize = 2048;
        let mut cells = [0u32; CHUNK];
        let axes = self.query.axes();
        let lookups: Vec<_> = axes.iter().zip(&self.strides).map(|(axis, &s)| Offsets::new(axis, s)).collect();
        for start in (0..records).step_by(CHUNK) {
            let cells = &mut cells[..CHUNK.min(records - start)];
            cells.fill(0);
            for (axis, offsets) in axes.iter().zip(&lookups) {
                offsets.add(columns[axis.attribute].column(), start, cells);
            }
            for &cell in &*cells {
                self.residual[cell as usize] += self.one;
            }
        }
    }

    /// Sum of absolute residuals, and of their squares.
    pub fn error(&self) -> (f64, f64) {
        let one = f64::from(self.one);
        let (sum, squares) = self.residual.iter().fold((0.0, 0.0), |(sum, squares), &residual| {
            let residual = f64::from(residual);
            (sum + residual.abs(), squares + residual * residual)
        });
        (sum / one, squares / (one * one))
    }
}

/// Units of one record: as fine as the range of residuals allows, from minus the largest target to all records.
pub(super) fn one(targets: &[Target], records: usize) -> i32 {
    let values = targets.iter().flat_map(|target| &target.values);
    #[expect(clippy::cast_precision_loss, reason = "a bound")]
    let reach = values.fold(0.0f64, |most, value| most.max(value.abs())) + records as f64;
    let mut one = FINEST_ONE;
    while one > 1 && reach * f64::from(one) > MOST {
        one /= 2;
    }
    one
}

#[expect(clippy::cast_possible_truncation, reason = "clamped")]
pub(super) fn fixed(value: f64, one: i32) -> i32 {
    (value * f64::from(one)).clamp(-MOST, MOST).round_ties_even() as i32
}

/// How far each code of an attribute moves through a table: a factor, or a look-up where there are buckets.
#[derive(Debug, Clone)]
pub(super) enum Offsets {
    Factor(u32),
    Lookup(Vec<u32>),
}

impl Offsets {
    /// Offsets along an axis whose buckets lie `stride` apart.
    pub fn new(axis: &Axis, stride: usize) -> Self {
        let stride = u32::try_from(stride).expect("tables have fewer than 2^32 cells");
        match &axis.buckets {
            None => Self::Factor(stride),
            Some(buckets) => Self::Lookup(buckets.iter().map(|&bucket| bucket * stride).collect()),
        }
    }

    /// Add the offset of each record from `start` on to `sums`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    pub fn add(&self, column: Column<'_>, start: usize, sums: &mut [u32]) {
        let range = start..start + sums.len();
        match column {
            Column::U8(codes) => self.add_codes(&codes[range], sums),
            Column::U16(codes) => self.add_codes(&codes[range], sums),
            Column::U32(codes) => self.add_codes(&codes[range], sums),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn add_codes<C: Copy + Into<u32>>(&self, codes: &[C], sums: &mut [u32]) {
        match self {
            Self::Factor(stride) => {
                for (sum, &code) in sums.iter_mut().zip(codes) {
                    *sum += stride * code.into();
                }
            }
            Self::Lookup(offsets) => {
                for (sum, &code) in sums.iter_mut().zip(codes) {
                    *sum += offsets[code.into() as usize];
                }
            }
        }
    }
}

/// A marginal arranged for one of its attributes: a row of that attribute's values for each joint value of the others.
#[derive(Debug, Clone)]
pub(super) struct Incidence {
    pub marginal: usize,
    /// Which axis of the marginal this attribute is.
    pub axis: usize,
    /// Where its rows start in the attribute's working copy, and how many there are.
    pub first: usize,
    pub rows: usize,
    /// Whether this marginal lets records in no over-full cell be skipped, see [`View::may_skip`].
    pub may_skip: bool,
    /// The other attributes, and how far their codes move through the working copy.
    pub others: Vec<(usize, Offsets)>,
}

/// The data of a visit to one attribute.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub cardinality: usize,
    pub incidences: Vec<Incidence>,
    /// Values summed at a time, and how many such pieces a row has.
    pub width: usize,
    pub pieces: usize,
    /// Where the table of the cost of each change starts, if buckets make it differ between values.
    pub penalty: Option<usize>,
    pub has_buckets: bool,
    /// Whether records in no over-full cell may be skipped: a cell that lacks records then always has an over-full one
    /// in its row. This fails for larger cliques, where descent would stall, and where noise left negative values:
    /// their cells stay over-full without any record, and all others lack some.
    pub may_skip: bool,
    /// Length of the working copy.
    pub length: usize,
}

impl View {
    fn new(attribute: usize, cardinality: u32, marginals: &[Marginal]) -> Self {
        let cardinality = cardinality as usize;
        let width = if cardinality <= LANES {
            cardinality.next_power_of_two().max(FEWEST_LANES)
        } else if cardinality <= SHORT_ROW {
            cardinality.next_multiple_of(LANES)
        } else {
            LONG_WIDTH
        };
        let pieces = cardinality.div_ceil(width);
        let row = width * pieces;
        let mut view = Self {
            cardinality,
            incidences: Vec::new(),
            width,
            pieces,
            penalty: None,
            has_buckets: false,
            may_skip: true,
            length: 0,
        };
        for (m, marginal) in marginals.iter().enumerate() {
            let axes = marginal.query.axes();
            let Some(own) = axes.iter().position(|axis| axis.attribute == attribute) else { continue };
            let mut others = Vec::with_capacity(axes.len() - 1);
            let mut rows = 1;
            for (_, other) in axes.iter().enumerate().rev().filter(|&(i, _)| i != own) {
                others.push((other.attribute, Offsets::new(other, rows * row)));
                rows *= other.size as usize;
            }
            view.has_buckets |= axes[own].buckets.is_some();
            let may_skip = axes.len() <= 2 && marginal.proper;
            view.may_skip &= may_skip;
            view.incidences.push(Incidence { marginal: m, axis: own, first: view.length, rows, may_skip, others });
            view.length += rows * row;
        }
        if view.has_buckets && cardinality <= MAX_PENALTY {
            view.penalty = Some(view.length);
            view.length += cardinality * row;
        }
        view
    }

    /// The view of those incidences whose marginals are `wanted`, by their number.
    pub fn among(&self, wanted: impl Fn(usize) -> bool) -> Self {
        let mut view = Self { incidences: Vec::new(), length: 0, may_skip: true, ..self.clone() };
        for incidence in self.incidences.iter().filter(|incidence| wanted(incidence.marginal)) {
            view.may_skip &= incidence.may_skip;
            view.incidences.push(Incidence { first: view.length, ..incidence.clone() });
            view.length += incidence.rows * view.row();
        }
        view.penalty = self.penalty.map(|_| view.length);
        view.length += self.penalty.map_or(0, |_| self.cardinality * view.row());
        view
    }

    pub fn row(&self) -> usize {
        self.width * self.pieces
    }
}

/// The cell of a marginal in which row `row` of `incidence` starts.
pub(super) fn first_cell(marginal: &Marginal, axis: usize, row: usize) -> usize {
    let mut rest = row;
    let mut cell = 0;
    for (i, other) in marginal.query.axes().iter().enumerate().rev().filter(|&(i, _)| i != axis) {
        cell += rest % other.size as usize * marginal.strides[i];
        rest /= other.size as usize;
    }
    cell
}

/// The residuals of every target before any record is counted.
pub(super) fn marginals(targets: Vec<Target>, records: usize) -> Vec<Marginal> {
    let one = one(&targets, records);
    targets.into_par_iter().map(|target| Marginal::new(target, one, records)).collect()
}

/// A view for each attribute.
pub(super) fn views(cardinalities: &[u32], marginals: &[Marginal]) -> Vec<View> {
    cardinalities.iter().enumerate().map(|(attribute, &c)| View::new(attribute, c, marginals)).collect()
}

/// Reject targets whose tables, with the working copies of two attributes, take more than `limit` bytes.
pub(super) fn check_memory(cardinalities: &[u32], targets: &[Target], limit: u64) -> Result<()> {
    // A target's working copy is largest for its smallest axis.
    let padded = |query: &Query| {
        let copies = query.axes().iter().map(|axis| {
            let cardinality = u128::from(cardinalities[axis.attribute]);
            (query.cells() / u128::from(axis.size).max(1)).saturating_mul(cardinality.next_multiple_of(LANES as u128))
        });
        copies.max().unwrap_or(0)
    };
    let bytes = |query: &Query| query.cells().saturating_mul(4).saturating_add(padded(query).saturating_mul(6));
    query::check_memory(targets.iter().map(|target| &target.query), limit, bytes, |query| padded(query) < 1 << 31)
}
