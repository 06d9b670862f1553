//! Norm-cut: keep the largest cells and drop the rest.

/// Keep the largest cells while they add up to at most `total`. The next one gets the rest of the total; all others
/// become zero. Among equal cells the earlier ones are kept.
///
/// Cost: O(cells log cells) for sorting.
pub fn keep_largest(cells: &mut [f64], total: f64) {
    let mut order: Vec<usize> = (0..cells.len()).filter(|&i| cells[i] > 0.0).collect();
    order.sort_unstable_by(|&a, &b| cells[b].total_cmp(&cells[a]).then(a.cmp(&b)));
    let mut kept = vec![0.0; cells.len()];
    let mut left = total;
    for i in order {
        kept[i] = cells[i].min(left);
        left -= kept[i];
        if left <= 0.0 {
            break;
        }
    }
    cells.copy_from_slice(&kept);
}
