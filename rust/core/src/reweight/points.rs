//! The points that carry weights: every cell of a domain, or given rows.
//!
//! Cells of a domain are numbered in row-major order. The points of one cell of some attributes are then a box: runs of
//! neighbouring attributes that are all fixed, or all free, act as one, so a box is a few nested loops over contiguous
//! pieces. For given rows a cell is the list of its rows, looked up once.
//!
//! The tables of many queries share their work over a domain: an attribute that no query of a group has is summed out
//! once for all of them, and each group is split by the largest attribute that only some of its queries have. All triples
//! of a vector cost about four passes over it, and smaller ones. Over rows each table is one pass over its columns.

use rayon::prelude::*;

use super::Cell;
use crate::draw::deal;
use crate::error::{Error, Result};
use crate::layout;
use crate::margin::{CutMargin, sum};
use crate::parallel::{Cancel, zeros};
use crate::query::{Query, check_memory, has_u32_cells};
use crate::random::Random;
use crate::table::{Codes, Column};

/// Weights are summed and scaled in pieces of this many.
const PIECE: usize = 1 << 15;

/// Where the weights are.
#[derive(Debug, Clone)]
pub enum Points {
    /// Every cell of the domain.
    Domain {
        /// How many codes each attribute has.
        cardinalities: Vec<u32>,
    },
    /// Given rows, column by column.
    Rows {
        /// How many codes each attribute has.
        cardinalities: Vec<u32>,
        /// The codes, one column for each attribute, of one length.
        columns: Vec<Codes>,
    },
}

/// The points of one cell.
#[derive(Debug, Clone)]
pub struct Region {
    /// The code of each attribute, where the cell says one.
    codes: Vec<Option<u32>>,
    /// The rows, in order; empty for a domain.
    rows: Vec<u32>,
}

/// The sum of all weights, in pieces, so that threads change nothing.
pub fn total(weights: &[f64]) -> f64 {
    let pieces: Vec<f64> = weights.par_chunks(PIECE).map(sum).collect();
    pieces.iter().sum()
}

impl Points {
    /// All cells of a domain of at most `most` cells.
    ///
    /// # Errors
    /// [`Error::ModelTooLarge`].
    pub fn domain(cardinalities: Vec<u32>, most: u64) -> Result<Self> {
        let cells = cardinalities.iter().fold(1u128, |cells, &size| cells.saturating_mul(size.into()));
        if cells > u128::from(most).min(u128::from(u32::MAX)) {
            return Err(Error::ModelTooLarge { cells, bytes: cells.saturating_mul(8), limit: most.saturating_mul(8) });
        }
        Ok(Self::Domain { cardinalities })
    }

    /// Rows that were checked by [`crate::table::Table::new`].
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for no rows, or 2^32 and more.
    pub fn rows(cardinalities: Vec<u32>, columns: Vec<Codes>) -> Result<Self> {
        let points = Self::Rows { cardinalities, columns };
        if points.is_empty() || u32::try_from(points.len()).is_err() {
            return Err(Error::InvalidParameter("weights need at least one row, and fewer than 2^32".into()));
        }
        Ok(points)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Domain { cardinalities } => cardinalities.iter().map(|&size| size as usize).product(),
            Self::Rows { columns, .. } => columns.first().map_or(0, |codes| codes.column().len()),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cardinalities(&self) -> &[u32] {
        match self {
            Self::Domain { cardinalities } | Self::Rows { cardinalities, .. } => cardinalities,
        }
    }

    /// The same weight for every point.
    pub(super) fn even(&self) -> Result<Vec<f64>> {
        let mut weights: Vec<f64> = zeros(self.len())?;
        weights.fill(1.0);
        Ok(weights)
    }

    /// The points of a cell.
    pub(super) fn region(&self, cell: Cell) -> Result<Region> {
        let cardinalities = self.cardinalities();
        let mut codes = vec![None; cardinalities.len()];
        for (attribute, code) in cell {
            let Some(&cardinality) = cardinalities.get(attribute) else {
                return Err(Error::NoSuchAttribute { attribute, attributes: cardinalities.len() });
            };
            if code >= cardinality {
                return Err(Error::CodeOutOfDomain { attribute, cardinality });
            }
            if codes[attribute].replace(code).is_some() {
                return Err(Error::AttributeTwice { attribute });
            }
        }
        let rows = match self {
            Self::Domain { .. } => Vec::new(),
            #[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32 rows")]
            Self::Rows { columns, .. } => (0..self.len() as u32).filter(|&row| holds(&codes, columns, row)).collect(),
        };
        Ok(Region { codes, rows })
    }

    /// The weight of a cell.
    pub(super) fn sum(&self, weights: &[f64], region: &Region) -> f64 {
        match self {
            Self::Domain { cardinalities } => sum_box(&runs(cardinalities, &region.codes), weights),
            Self::Rows { .. } => region.rows.iter().map(|&row| weights[row as usize]).sum(),
        }
    }

    /// The weight of what two cells share.
    pub(super) fn shared(&self, weights: &[f64], one: &Region, other: &Region) -> f64 {
        let both = one.codes.iter().zip(&other.codes);
        if both.clone().any(|(a, b)| matches!((a, b), (Some(a), Some(b)) if a != b)) {
            return 0.0;
        }
        match self {
            Self::Domain { cardinalities } => {
                let codes: Vec<_> = both.map(|(a, b)| a.or(*b)).collect();
                sum_box(&runs(cardinalities, &codes), weights)
            }
            Self::Rows { columns, .. } => {
                let (few, cell) =
                    if one.rows.len() < other.rows.len() { (&one.rows, other) } else { (&other.rows, one) };
                let shared = few.iter().filter(|&&row| holds(&cell.codes, columns, row));
                shared.map(|&row| weights[row as usize]).sum()
            }
        }
    }

    /// Multiply the weights of a cell.
    pub(super) fn scale(&self, weights: &mut [f64], region: &Region, factor: f64) {
        match self {
            Self::Domain { cardinalities } => scale_box(&runs(cardinalities, &region.codes), weights, factor),
            Self::Rows { .. } => region.rows.iter().for_each(|&row| weights[row as usize] *= factor),
        }
    }

    /// The tables of queries.
    pub(super) fn tables(
        &self,
        weights: &[f64],
        queries: &[Query],
        limit: u64,
        cancel: &Cancel,
    ) -> Result<Vec<Vec<f64>>> {
        check_memory(queries, limit, |query| query.cells().saturating_mul(8), has_u32_cells)?;
        queries.iter().try_for_each(Query::check_distinct)?;
        match self {
            Self::Domain { cardinalities } => {
                let asked = queries.iter().enumerate().map(|(i, query)| (i, sorted(query))).collect();
                let all: Vec<usize> = (0..cardinalities.len()).collect();
                let mut found = vec![Vec::new(); queries.len()];
                shared_margins(cardinalities, weights, &all, asked, cancel, &mut |i, attributes, table| {
                    found[i] = folded(cardinalities, &queries[i], attributes, table);
                })?;
                Ok(found)
            }
            Self::Rows { columns, .. } => queries
                .par_iter()
                .with_max_len(1)
                .map(|query| {
                    cancel.check()?;
                    Ok(sum_cells(columns, weights, query))
                })
                .collect(),
        }
    }

    /// Multiply each weight by the factor of its cell in a query's table; `factors` makes them of the answers. What
    /// `factors` says besides.
    pub(super) fn rescale<T>(
        &self,
        weights: &mut [f64],
        query: &Query,
        factors: impl FnOnce(&[f64]) -> (Vec<f64>, T),
    ) -> Result<T> {
        query.check_distinct()?;
        match self {
            Self::Domain { cardinalities } => {
                let (all, kept): (Vec<usize>, _) = ((0..cardinalities.len()).collect(), sorted(query));
                let margin = CutMargin::new(cardinalities, &all, &kept);
                let mut table = zeros(margin.cells())?;
                margin.sum(weights, &mut table);
                let (factors, said) = factors(&folded(cardinalities, query, &kept, &table));
                match query.places(&kept, cardinalities) {
                    None => margin.scale(weights, &factors),
                    Some(places) => {
                        let each: Vec<f64> = places.iter().map(|&place| factors[place as usize]).collect();
                        margin.scale(weights, &each);
                    }
                }
                Ok(said)
            }
            Self::Rows { columns, .. } => {
                let (factors, said) = factors(&sum_cells(columns, weights, query));
                weights.par_chunks_mut(PIECE).enumerate().for_each(|(piece, weights)| {
                    let cells = cells_of(columns, query, piece * PIECE..piece * PIECE + weights.len());
                    weights.iter_mut().zip(cells).for_each(|(weight, cell)| *weight *= factors[cell as usize]);
                });
                Ok(said)
            }
        }
    }

    /// Records in the proportions of the weights, in random order.
    pub(super) fn draw(&self, weights: &[f64], records: usize, random: &mut Random) -> Result<Vec<Codes>> {
        let mut drawn: Vec<u32> = zeros(records)?;
        deal(weights, &mut drawn, random);
        let cardinalities = self.cardinalities();
        let strides = layout::strides(cardinalities);
        let column = |attribute: usize| {
            let size = cardinalities[attribute];
            match self {
                #[expect(clippy::cast_possible_truncation, reason = "a code is below its cardinality")]
                Self::Domain { .. } => Codes::of(
                    size,
                    drawn.iter().map(|&point| (point as usize / strides[attribute] % size as usize) as u32),
                ),
                Self::Rows { columns, .. } => {
                    let column = columns[attribute].column();
                    Codes::of(size, drawn.iter().map(|&point| column.code(point as usize)))
                }
            }
        };
        (0..cardinalities.len()).into_par_iter().with_max_len(1).map(column).collect()
    }
}

/// Whether a row lies in a cell.
fn holds(codes: &[Option<u32>], columns: &[Codes], row: u32) -> bool {
    let mut fixed = codes.iter().zip(columns).filter_map(|(code, column)| code.map(|code| (code, column)));
    fixed.all(|(code, column)| column.column().code(row as usize) == code)
}

/// A box as runs of attributes: the cells of each run, and which of them if it is fixed; the last run moves fastest.
fn runs(cardinalities: &[u32], codes: &[Option<u32>]) -> Vec<(usize, Option<usize>)> {
    let mut runs: Vec<(usize, Option<usize>)> = Vec::new();
    for (&size, code) in cardinalities.iter().zip(codes) {
        let (size, code) = (size as usize, code.map(|code| code as usize));
        match (runs.last_mut(), code) {
            (Some((cells, None)), None) => *cells *= size,
            (Some((cells, Some(at))), Some(code)) => (*cells, *at) = (*cells * size, *at * size + code),
            _ => runs.push((size, code)),
        }
    }
    runs
}

fn sum_box(runs: &[(usize, Option<usize>)], weights: &[f64]) -> f64 {
    match *runs {
        [] => weights[0],
        [(_, None)] => sum(weights),
        [(_, None), (size, Some(at))] => weights.iter().skip(at).step_by(size).sum(),
        [(cells, Some(at)), ref rest @ ..] => {
            let size = weights.len() / cells;
            sum_box(rest, &weights[at * size..(at + 1) * size])
        }
        [(cells, None), ref rest @ ..] => {
            weights.chunks_exact(weights.len() / cells).map(|part| sum_box(rest, part)).sum()
        }
    }
}

fn scale_box(runs: &[(usize, Option<usize>)], weights: &mut [f64], factor: f64) {
    match *runs {
        [] | [(_, None)] => weights.iter_mut().for_each(|weight| *weight *= factor),
        [(_, None), (size, Some(at))] => {
            weights.iter_mut().skip(at).step_by(size).for_each(|weight| *weight *= factor);
        }
        [(cells, Some(at)), ref rest @ ..] => {
            let size = weights.len() / cells;
            scale_box(rest, &mut weights[at * size..(at + 1) * size], factor);
        }
        [(cells, None), ref rest @ ..] => {
            let size = weights.len() / cells;
            weights.chunks_exact_mut(size).for_each(|part| scale_box(rest, part, factor));
        }
    }
}

/// The attributes of a query in domain order.
fn sorted(query: &Query) -> Vec<usize> {
    let mut attributes: Vec<usize> = query.attributes().collect();
    attributes.sort_unstable();
    attributes
}

/// The table of a query, from the table of its attributes code by code.
fn folded(cardinalities: &[u32], query: &Query, attributes: &[usize], table: &[f64]) -> Vec<f64> {
    let Some(places) = query.places(attributes, cardinalities) else { return table.to_vec() };
    let cells = query.shape().iter().map(|&size| size as usize).product();
    let mut folded = vec![0.0; cells];
    places.iter().zip(table).for_each(|(&place, value)| folded[place as usize] += value);
    folded
}

/// Give `found` the margin of each group of attributes of `asked`, all of them among `attributes`, the axes of `table`.
fn shared_margins(
    cardinalities: &[u32],
    table: &[f64],
    attributes: &[usize],
    asked: Vec<(usize, Vec<usize>)>,
    cancel: &Cancel,
    found: &mut impl FnMut(usize, &[usize], &[f64]),
) -> Result<()> {
    cancel.check()?;
    if asked.is_empty() {
        return Ok(());
    }
    let has = |attribute: &usize| asked.iter().any(|(_, clique)| clique.contains(attribute));
    let needed: Vec<usize> = attributes.iter().copied().filter(has).collect();
    if needed.len() < attributes.len() {
        let margin = CutMargin::new(cardinalities, attributes, &needed);
        let mut smaller = zeros(margin.cells())?;
        margin.sum(table, &mut smaller);
        return shared_margins(cardinalities, &smaller, &needed, asked, cancel, found);
    }
    let by_some = |attribute: &&usize| asked.iter().any(|(_, clique)| !clique.contains(attribute));
    let Some(&split) = attributes.iter().filter(by_some).max_by_key(|&&attribute| cardinalities[attribute]) else {
        for (i, _) in &asked {
            found(*i, attributes, table);
        }
        return Ok(());
    };
    let (with, without): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(_, clique)| clique.contains(&split));
    shared_margins(cardinalities, table, attributes, without, cancel, found)?;
    shared_margins(cardinalities, table, attributes, with, cancel, found)
}

/// The weights in each cell of a query's table, piece by piece of the rows.
fn sum_cells(columns: &[Codes], weights: &[f64], query: &Query) -> Vec<f64> {
    let mut table = vec![0.0; query.shape().iter().map(|&size| size as usize).product()];
    for (piece, weights) in weights.chunks(PIECE).enumerate() {
        let cells = cells_of(columns, query, piece * PIECE..piece * PIECE + weights.len());
        weights.iter().zip(cells).for_each(|(weight, cell)| table[cell as usize] += weight);
    }
    table
}

/// The cell of each of some rows.
fn cells_of(columns: &[Codes], query: &Query, rows: std::ops::Range<usize>) -> Vec<u32> {
    let mut cells = vec![0u32; rows.len()];
    for axis in query.axes() {
        let add = |cell: &mut u32, code: u32| *cell = *cell * axis.size + axis.place(code);
        match columns[axis.attribute].column().slice(rows.clone()) {
            Column::U8(codes) => cells.iter_mut().zip(codes).for_each(|(cell, &code)| add(cell, code.into())),
            Column::U16(codes) => cells.iter_mut().zip(codes).for_each(|(cell, &code)| add(cell, code.into())),
            Column::U32(codes) => cells.iter_mut().zip(codes).for_each(|(cell, &code)| add(cell, code)),
        }
    }
    cells
}
