//! How far the counts of cliques are from public tables: the scores of mechanisms that look for what a model gets wrong.
//!
//! The score of a clique is `sum over cells of |UNITS * count - round(UNITS * reference)|`: an integer, to which exact
//! noise can be added. The reference is public, so one record moves one count by one and the score by at most
//! [`UNITS`], exactly. Cliques have any order.
//! Sums are exact as in the parent module. Cost: counting, plus about a nanosecond a cell. Oracle: [`super::naive`].

use rayon::prelude::*;

use super::{MAX_RECORDS, UNITS, distance, integer};
use crate::count::count_each;
use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::table::Table;

/// The distance of the counts of each clique from a table of expected counts, in units.
///
/// # Errors
/// [`Error::InvalidParameter`] for references that are none, and for more than [`MAX_RECORDS`] records;
/// [`Error::TableTooLarge`] for the first clique whose own table takes more than `memory_limit` bytes;
/// [`Error::Interrupted`].
///
/// # Panics
/// If a clique names an attribute that the table does not have, or one twice.
pub fn distances(
    table: &Table<'_>,
    cliques: &[Vec<usize>],
    references: &[&[f64]],
    memory_limit: u64,
    cancel: &Cancel,
) -> Result<Vec<i64>> {
    let sizes = table.cardinalities();
    let cells = cliques.iter().map(|clique| clique.iter().map(|&a| sizes[a] as usize).product());
    check(table.records() as u64, cells, references)?;
    count_each(table, cliques, memory_limit, cancel, |clique, counts| apart(counts, references[clique]))
}

/// The same of counts that are at hand.
///
/// # Errors
/// [`Error::InvalidParameter`] as for [`distances`]; [`Error::Interrupted`].
pub fn distances_of_counts(
    tables: &[&[i64]],
    references: &[&[f64]],
    records: u64,
    cancel: &Cancel,
) -> Result<Vec<i64>> {
    check(records, tables.iter().map(|table| table.len()), references)?;
    let scored = tables.par_iter().zip(references).map(|(counts, reference)| {
        cancel.check()?;
        Ok(apart(counts, reference))
    });
    scored.collect()
}

fn apart(counts: &[i64], reference: &[f64]) -> i64 {
    integer(distance(counts, &[UNITS.into()], reference, UNITS.into()))
}

fn check(records: u64, cells: impl ExactSizeIterator<Item = usize>, references: &[&[f64]]) -> Result<()> {
    let refuse = |rule: &str| Err(Error::InvalidParameter(rule.to_owned()));
    if records > MAX_RECORDS {
        return refuse("distances are exact for at most 2^35 records");
    }
    if cells.len() != references.len() || cells.zip(references).any(|(cells, reference)| cells != reference.len()) {
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
