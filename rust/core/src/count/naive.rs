//! The oracle: counts as anybody would write them, one record and one clique at a time.

use crate::layout;
use crate::table::Table;

/// The counts of one clique, its axes in the order of `clique`.
///
/// # Panics
/// If the table would not fit in memory.
#[must_use]
pub fn count(table: &Table<'_>, clique: &[usize]) -> Vec<i64> {
    let shape: Vec<u32> = clique.iter().map(|&a| table.cardinalities()[a]).collect();
    let strides = layout::strides(&shape);
    let mut counts = vec![0; layout::cells(shape).expect("a table that fits in memory")];
    for record in 0..table.records() {
        let cell: usize =
            clique.iter().zip(&strides).map(|(&a, stride)| table.columns()[a].code(record) as usize * stride).sum();
        counts[cell] += 1;
    }
    counts
}
