//! How far counts are from a reference, as exact integers: the scores that selection adds noise to.
//!
//! Here: how far pairs of attributes are from independence, `InDif` of [P] section 4.1. [`distance`] compares queries
//! of any order with public tables.
//!
//! The score of a pair is `sum over cells of |count - reference|` in fixed point, units of `1 / UNITS` of a record, so
//! that exact integer noise can be added to it. Two references:
//!
//! - [`Reference::Given`]: a product of shares that are public already, times a public total, rounded to units. Nothing
//!   in it depends on the records, so one record moves one count by one and the score by at most [`UNITS`], exactly.
//! - [`Reference::Own`]: the pair's own exact margins, `a_i * b_j / n`, as published. The score is
//!   `floor(UNITS * T / n)` with `T = sum |n * count - a_i * b_j|` an integer. One record moves `T / n` by less than 4
//!   (Lemma 4); since `4 * UNITS` is an integer, the floors differ by no more than that either.
//!
//! The pairs are counted block by block and scored as soon as a block is counted, so the tables of all pairs never
//! exist at once. [`sum_apart`] serves both references in `f64`: every term and every partial sum is an integer below
//! 2^53, so the sum is exact in any order. Above [`NARROW_RECORDS`] the published score is summed in 128-bit integers.
//! Cost: counting, plus about a nanosecond a cell. Oracle: [`naive`].

pub mod distance;
pub mod naive;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::count::count_each;
use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::query::{Axis, Query};
use crate::table::Table;

/// Units of one record.
pub const UNITS: u32 = 1 << 16;

/// The most records, and the largest public total: scores then stay far below 2^53 units.
pub const MAX_RECORDS: u64 = 1 << 35;

/// Up to this many records `n`, twice `n^2` is at most 2^53.
const NARROW_RECORDS: u64 = 1 << 26;

/// Adding and taking away 2^52 rounds a number from 0 to 2^52 to the nearest integer, ties to even.
const ROUNDING: f64 = 4_503_599_627_370_496.0;

/// The reference that the counts of a pair are compared with.
#[derive(Debug, Clone, Copy)]
pub enum Reference<'a> {
    /// The product of the pair's own exact margins.
    Own,
    /// The product of public shares of each attribute's values, times a public total.
    Given {
        /// For each attribute of the table, the share of each place on its axis; not negative, adding up to 1.
        shares: &'a [&'a [f64]],
        /// The public number of records.
        total: f64,
    },
}

/// The scores of pairs, queries of two axes, in units.
///
/// An attribute whose shares are given has the same axis in every pair.
///
/// # Errors
/// [`Error::InvalidParameter`] for invalid shares or totals, for queries that are not pairs, and for more than
/// [`MAX_RECORDS`] records; [`Error::TableTooLarge`] for the first pair whose own table takes more than `memory_limit`
/// bytes; [`Error::Interrupted`].
pub fn indif(
    table: &Table<'_>,
    pairs: &[Query],
    reference: Reference<'_>,
    memory_limit: u64,
    cancel: &Cancel,
) -> Result<Vec<i64>> {
    let records = table.records() as u64;
    check(records, pairs, reference)?;
    count_each(table, pairs, memory_limit, cancel, |pair, counts| score(counts, &pairs[pair], records, reference))
}

/// The scores of pairs with given counts, in units: as [`indif`] gives for the records that were counted.
///
/// # Errors
/// [`Error::InvalidParameter`] as for [`indif`], and for a table that has another size than its pair;
/// [`Error::Interrupted`].
pub fn indif_of_counts(
    tables: &[&[i64]],
    pairs: &[Query],
    records: u64,
    reference: Reference<'_>,
    cancel: &Cancel,
) -> Result<Vec<i64>> {
    check(records, pairs, reference)?;
    let fits = |(table, pair): (&&[i64], &Query)| table.len() as u128 == pair.cells();
    if tables.len() != pairs.len() || !tables.iter().zip(pairs).all(fits) {
        return Err(Error::InvalidParameter("each pair needs a table with a count for each of its cells".to_owned()));
    }
    let scored = tables.par_iter().zip(pairs).map(|(counts, pair)| {
        cancel.check()?;
        Ok(score(counts, pair, records, reference))
    });
    scored.collect()
}

/// The score of one pair, from its counts.
fn score(counts: &[i64], pair: &Query, records: u64, reference: Reference<'_>) -> i64 {
    let [rows, columns] = pair.axes() else { unreachable!("checked") };
    match reference {
        Reference::Own => own(counts, columns.size as usize, records),
        Reference::Given { shares, total } => given(counts, shares[rows.attribute], shares[columns.attribute], total),
    }
}

fn check(records: u64, pairs: &[Query], reference: Reference<'_>) -> Result<()> {
    let refuse = |rule: &str| Err(Error::InvalidParameter(rule.to_owned()));
    if records > MAX_RECORDS {
        return refuse("InDif is exact for at most 2^35 records");
    }
    if pairs.iter().any(|pair| pair.axes().len() != 2) {
        return refuse("InDif is of pairs of attributes");
    }
    if let Reference::Given { shares, total } = reference {
        #[expect(clippy::cast_precision_loss, reason = "a power of two")]
        if !(0.0..=MAX_RECORDS as f64).contains(&total) {
            return refuse("the public number of records must lie between 0 and 2^35");
        }
        let are_shares = |shares: &&[f64]| {
            shares.iter().all(|share| (0.0..=1.0).contains(share)) && shares.iter().sum::<f64>() < 1.001
        };
        let fits = |axis: &Axis| shares.get(axis.attribute).is_some_and(|shares| shares.len() == axis.size as usize);
        if !shares.iter().all(are_shares) || !pairs.iter().flat_map(Query::axes).all(fits) {
            return refuse(
                "the shares of an attribute's values are as many as its values, not negative, and add up to 1",
            );
        }
    }
    Ok(())
}

/// Against a public product: `sum |UNITS * count - round(UNITS * total * row share * column share)|`.
fn given(counts: &[i64], row_shares: &[f64], column_shares: &[f64], total: f64) -> i64 {
    let rows: Vec<f64> = row_shares.iter().map(|share| share * total * f64::from(UNITS)).collect();
    integer(sum_apart(counts, &rows, column_shares, UNITS.into()))
}

/// Against the product of the own margins: `floor(UNITS * sum |n * count - row sum * column sum| / n)`.
fn own(counts: &[i64], columns: usize, n: u64) -> i64 {
    if n == 0 {
        return 0;
    }
    if n > NARROW_RECORDS {
        return own_wide(counts, columns, n);
    }
    let (rows, columns) = margins(counts, columns);
    let float = |sums: &[i64]| -> Vec<f64> { sums.iter().map(|&sum| real(sum)).collect() };
    #[expect(clippy::cast_precision_loss, reason = "at most 2^26")]
    let n_times_score = sum_apart(counts, &float(&rows), &float(&columns), n as f64);
    quotient(integer(n_times_score).into(), n)
}

/// [`own`] for any number of records.
fn own_wide(counts: &[i64], columns: usize, n: u64) -> i64 {
    let (rows, columns) = margins(counts, columns);
    let mut sum = 0;
    for (counts, &row) in counts.chunks_exact(columns.len()).zip(&rows) {
        for (&count, &column) in counts.iter().zip(&columns) {
            sum += (i128::from(n) * i128::from(count) - i128::from(row) * i128::from(column)).abs();
        }
    }
    quotient(sum, n)
}

/// `floor(UNITS * sum / n)`: at most `2 * UNITS * n`, which fits.
fn quotient(sum: i128, n: u64) -> i64 {
    i64::try_from(sum * i128::from(UNITS) / i128::from(n)).expect("at most 2 UNITS for each of 2^35 records")
}

/// Row and column sums of a table with `columns` columns.
fn margins(counts: &[i64], columns: usize) -> (Vec<i64>, Vec<i64>) {
    let rows = counts.chunks_exact(columns).map(|row| row.iter().sum()).collect();
    let mut sums = vec![0; columns];
    for row in counts.chunks_exact(columns) {
        sums.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
    }
    (rows, sums)
}

/// `sum |scale * count - round(row * column)|` over the cells.
///
/// Exact, and the same in any order, where `scale` is an integer and the sums of `scale * count` and of the rounded
/// products add up to at most 2^53. Eight partial sums let it vectorise.
fn sum_apart(counts: &[i64], rows: &[f64], columns: &[f64], scale: f64) -> f64 {
    const LANES: usize = 8;
    let term = |count: i64, row: f64, column: f64| (scale * real(count) - (row * column + ROUNDING - ROUNDING)).abs();
    let mut sums = [0.0; LANES];
    let (column_lanes, last_columns) = columns.as_chunks::<LANES>();
    for (counts, &row) in counts.chunks_exact(columns.len()).zip(rows) {
        let (count_lanes, last_counts) = counts.as_chunks::<LANES>();
        for (counts, columns) in count_lanes.iter().zip(column_lanes) {
            for lane in 0..LANES {
                sums[lane] += term(counts[lane], row, columns[lane]);
            }
        }
        for ((sum, &count), &column) in sums.iter_mut().zip(last_counts).zip(last_columns) {
            *sum += term(count, row, column);
        }
    }
    sums.iter().sum()
}

/// A count, which is at most 2^35, as `f64`.
#[expect(clippy::cast_precision_loss, reason = "counts are at most the number of records")]
fn real(count: i64) -> f64 {
    count as f64
}

/// A sum of [`sum_apart`], which is an integer.
#[expect(clippy::cast_possible_truncation, reason = "an integer of at most 2^53")]
fn integer(sum: f64) -> i64 {
    debug_assert!(sum.fract() == 0.0 && sum <= 2.0_f64.powi(53), "an exact sum");
    sum as i64
}
