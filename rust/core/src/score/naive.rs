//! The oracle: counts by the naive kernel, sums in wide integers, one cell at a time.

use super::{Reference, UNITS};
use crate::count::naive;
use crate::query::{Axis, Query};
use crate::table::Table;

/// The score of one pair in units.
///
/// # Panics
/// If the query is not a pair of different attributes, or a sum does not fit an `i64`.
#[must_use]
pub fn indif(table: &Table<'_>, pair: &Query, reference: Reference<'_>) -> i64 {
    let counts = naive::count(table, pair);
    let [a, b] = pair.axes() else { panic!("a pair") };
    let one_way = |axis: &Axis| Query::new(vec![axis.clone()], table.cardinalities()).expect("an axis of the pair");
    let [rows, columns] = [a, b].map(|axis| naive::count(table, &one_way(axis)));
    let n = table.records() as i128;
    let mut sum = 0;
    for (i, &row) in rows.iter().enumerate() {
        for (j, &column) in columns.iter().enumerate() {
            let count = i128::from(counts[i * columns.len() + j]);
            sum += match reference {
                Reference::Own => (n * count - i128::from(row) * i128::from(column)).abs(),
                Reference::Given { shares, total } => {
                    let expected = shares[a.attribute][i] * total * f64::from(UNITS) * shares[b.attribute][j];
                    #[expect(clippy::cast_possible_truncation, reason = "an integer below 2^53")]
                    let rounded = expected.round_ties_even() as i128;
                    (i128::from(UNITS) * count - rounded).abs()
                }
            };
        }
    }
    if matches!(reference, Reference::Own) {
        sum = if n == 0 { 0 } else { (sum * i128::from(UNITS)).div_euclid(n) };
    }
    i64::try_from(sum).expect("a score that fits")
}

/// The distance of a query's counts from a reference, in units.
///
/// # Panics
/// If the sum does not fit an `i64`.
#[must_use]
pub fn distance(table: &Table<'_>, query: &Query, reference: &[f64]) -> i64 {
    let mut sum = 0;
    for (&count, expected) in naive::count(table, query).iter().zip(reference) {
        #[expect(clippy::cast_possible_truncation, reason = "an integer below 2^53")]
        let rounded = (expected * f64::from(UNITS)).round_ties_even() as i128;
        sum += (i128::from(UNITS) * i128::from(count) - rounded).abs();
    }
    i64::try_from(sum).expect("a distance that fits")
}
