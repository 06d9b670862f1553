//! The oracle: a plan carried out on a list of records, one after another, with every copy written out.
//!
//! It need not pick the same records as [`super::apply`]; what it and `apply` must agree on is the number of records in each
//! cell, and that the records left alone, copied and rewritten are made from the records there were.

use super::plan::{Plan, VANISH};

/// Carry out a plan on the cell numbers of the records; picks the first records of each cell.
///
/// # Panics
/// If the plan asks for records that are not there.
#[must_use]
pub fn apply(cells: &[u32], plan: &Plan) -> Vec<u32> {
    let mut left = plan.remove.clone();
    let mut fates = Vec::new();
    let mut next = 0;
    for &count in &plan.remove {
        fates.push(plan.fates[next..next + count as usize].to_vec());
        next += count as usize;
    }
    let mut after: Vec<u32> = Vec::new();
    for &cell in cells {
        if left[cell as usize] == 0 {
            after.push(cell);
            continue;
        }
        left[cell as usize] -= 1;
        let fate = fates[cell as usize].pop().expect("one fate for each freed record");
        if fate != VANISH {
            after.push(fate);
        }
    }
    assert!(left.iter().all(|&count| count == 0), "a cell loses no more records than it has");
    for (cell, &copies) in (0u32..).zip(&plan.duplicate) {
        after.extend(std::iter::repeat_n(cell, copies as usize));
    }
    after
}
