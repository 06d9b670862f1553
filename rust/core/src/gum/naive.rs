//! The oracle: a plan carried out on a list of records, one after another, with every copy written out.
//!
//! It need not pick the same records as [`super::apply`]. Both must have the same number of records in each cell, and
//! make the unchanged, copied and rewritten records from the records before.

use super::plan::Plan;

/// Carry out a plan on the cell numbers of the records; picks the first records of each cell.
///
/// # Panics
/// If the plan asks for records that are not there.
#[must_use]
pub fn apply(cells: &[u32], plan: &Plan) -> Vec<u32> {
    let mut freed = plan.remove.clone();
    let mut after = Vec::new();
    for &cell in cells {
        if freed[cell as usize] > 0 {
            freed[cell as usize] -= 1;
        } else {
            after.push(cell);
        }
    }
    assert!(freed.iter().all(|&count| count == 0), "a cell loses no more records than it has");
    after.extend(&plan.fates);
    for (cell, &copies) in (0u32..).zip(&plan.duplicate) {
        after.extend(std::iter::repeat_n(cell, copies as usize));
    }
    after
}
