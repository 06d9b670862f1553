//! The oracle: try every record.

use crate::reweight::naive::all_rows;

/// The largest gain that any record has: the weights of the cells that it lies in, less the costs of its codes.
#[must_use]
pub fn best_gain(cardinalities: &[u32], cells: &[Vec<(usize, u32)>], weights: &[f64], costs: &[f64]) -> f64 {
    let gain = |record: &Vec<u32>| {
        let held = cells.iter().zip(weights).filter(|(cell, _)| cell.iter().all(|&(a, code)| record[a] == code));
        let mut begin = 0;
        let mut cost = 0.0;
        for (&code, &size) in record.iter().zip(cardinalities) {
            cost += costs.get(begin + code as usize).copied().unwrap_or(0.0);
            begin += size as usize;
        }
        held.map(|(_, weight)| weight).sum::<f64>() - cost
    };
    all_rows(cardinalities).iter().map(gain).fold(f64::NEG_INFINITY, f64::max)
}
