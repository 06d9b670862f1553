//! How far the counts of queries are from public tables: scores that find where a model is wrong.
//!
//! The score of a query is `sum over cells of |UNITS * count - round(UNITS * reference)|`: an integer, to which exact
//! noise can be added. The reference is public, so one record moves one count by one and the score by at most
//! [`UNITS`], exactly. Queries have any number of axes, in buckets or not.
//! Sums are exact as in the parent module. Cost: counting, plus about a nanosecond a cell. Oracle: [`super::naive`].

use rayon::prelude::*;

use super::{MAX_RECORDS, UNITS, integer, sum_apart};
use crate::count::count_each;
use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::query::Query;
use crate::table::Table;

/// The distance of the counts of each query from a table of expected counts, in units.
///
/// # Errors
/// [`Error::InvalidParameter`] for invalid references, and for more than [`MAX_RECORDS`] records;
/// [`Error::TableTooLarge`] for the first query whose own table takes more than `memory_limit` bytes;
/// [`Error::Interrupted`].
pub fn distances(
    table: &Table<'_>,
    queries: &[Query],
    references: &[&[f64]],
    memory_limit: u64,
    cancel: &Cancel,
) -> Result<Vec<i64>> {
    check(table.records() as u64, queries.iter().map(Query::cells), references)?;
    count_each(table, queries, memory_limit, cancel, |query, counts| apart(counts, references[query]))
}

/// The same for given counts.
///
/// # Errors
/// [`Error::InvalidParameter`] as for [`distances`]; [`Error::Interrupted`].
pub fn distances_of_counts(
    tables: &[&[i64]],
    references: &[&[f64]],
    records: u64,
    cancel: &Cancel,
) -> Result<Vec<i64>> {
    check(records, tables.iter().map(|table| table.len() as u128), references)?;
    let scored = tables.par_iter().zip(references).map(|(counts, reference)| {
        cancel.check()?;
        Ok(apart(counts, reference))
    });
    scored.collect()
}

fn apart(counts: &[i64], reference: &[f64]) -> i64 {
    integer(sum_apart(counts, &[UNITS.into()], reference, UNITS.into()))
}

fn check(records: u64, cells: impl ExactSizeIterator<Item = u128>, references: &[&[f64]]) -> Result<()> {
    let refuse = |rule: &str| Err(Error::InvalidParameter(rule.to_owned()));
    if records > MAX_RECORDS {
        return refuse("distances are exact for at most 2^35 records");
    }
    if cells.len() != references.len()
        || cells.zip(references).any(|(cells, reference)| cells != reference.len() as u128)
    {
        return refuse("each clique needs a reference with an expected count for each of its cells");
    }
    #[expect(clippy::cast_precision_loss, reason = "a power of two")]
    let most = MAX_RECORDS as f64;
    let fits = |reference: &&[f64]| {
        reference.iter().all(|expected| (0.0..=most).contains(expected)) && reference.iter().sum::<f64>() <= most
    };
    if !references.par_iter().all(fits) {
        return refuse("expected counts are not negative and add up to at most 2^35");
    }
    Ok(())
}
