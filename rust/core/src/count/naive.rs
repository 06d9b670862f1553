//! The oracle: the obvious way to count, one record and one query at a time.

use crate::query::Query;
use crate::table::Table;

/// The counts of one query.
///
/// # Panics
/// If the table would not fit in memory.
#[must_use]
pub fn count(table: &Table<'_>, query: &Query) -> Vec<i64> {
    let mut counts = vec![0; usize::try_from(query.cells()).expect("a table that fits in memory")];
    for record in 0..table.records() {
        let cell = query.axes().iter().fold(0, |cell, axis| {
            let code = table.columns()[axis.attribute].code(record);
            cell * axis.size as usize + axis.place(code) as usize
        });
        counts[cell] += 1;
    }
    counts
}
