//! The oracle: the joint distribution of all attributes, cell by cell; and sizes of models, step by step.

use std::collections::{BTreeMap, BTreeSet};

use super::{Query, Target, Zeros};
use crate::query::Axis;

/// The codes of a cell of the whole domain, the last attribute moving fastest.
fn codes(cardinalities: &[u32], mut cell: usize) -> Vec<u32> {
    let mut codes = vec![0; cardinalities.len()];
    for (code, &size) in codes.iter_mut().zip(cardinalities).rev() {
        *code = u32::try_from(cell % size as usize).expect("below the size");
        cell /= size as usize;
    }
    codes
}

/// Which of a query's cells a joint cell counts towards.
fn place(query: &Query, codes: &[u32]) -> usize {
    let along = |axis: &Axis| axis.place(codes[axis.attribute]) as usize;
    query.axes().iter().fold(0, |place, axis| place * axis.size as usize + along(axis))
}

/// All joint values.
pub fn cells(cardinalities: &[u32]) -> Vec<Vec<u32>> {
    (0..cardinalities.iter().map(|&c| c as usize).product()).map(|cell| codes(cardinalities, cell)).collect()
}

/// The counts of `total` records over all joint values, under the potentials of each target.
pub fn joint(
    cardinalities: &[u32],
    targets: &[Target],
    potentials: &[&[f64]],
    zeros: &[Zeros],
    total: f64,
) -> Vec<f64> {
    let allowed = |codes: &[u32]| zeros.iter().all(|(query, forbidden)| !forbidden[place(query, codes)]);
    let exponent = |codes: &Vec<u32>| {
        let sum = targets.iter().zip(potentials).map(|(target, values)| values[place(&target.query, codes)]).sum();
        if allowed(codes) { sum } else { f64::NEG_INFINITY }
    };
    let exponents: Vec<f64> = cells(cardinalities).iter().map(exponent).collect();
    let most = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = exponents.iter().map(|exponent| (exponent - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| total * weight / sum).collect()
}

/// The table of a query under a joint distribution.
pub fn marginal(cardinalities: &[u32], joint: &[f64], query: &Query) -> Vec<f64> {
    let mut values = vec![0.0; usize::try_from(query.cells()).unwrap()];
    for (codes, count) in cells(cardinalities).iter().zip(joint) {
        values[place(query, codes)] += count;
    }
    values
}

/// The loss of a joint distribution, and a bound on its distance from the smallest loss.
///
/// The loss is convex, so its linear approximation bounds the gain of any distribution of as many records: at most that
/// of putting them all on the joint value where the gradient is smallest.
pub fn loss_and_gap(cardinalities: &[u32], joint: &[f64], targets: &[Target], zeros: &[Zeros]) -> (f64, f64) {
    let mut loss = 0.0;
    let mut gradient = vec![0.0; joint.len()];
    for target in targets {
        let have = marginal(cardinalities, joint, &target.query);
        let residuals: Vec<f64> = have.iter().zip(&target.values).map(|(have, want)| have - want).collect();
        loss += target.weight * residuals.iter().map(|r| r * r).sum::<f64>() / 2.0;
        for (codes, slope) in cells(cardinalities).iter().zip(&mut gradient) {
            *slope += target.weight * residuals[place(&target.query, codes)];
        }
    }
    let total: f64 = joint.iter().sum();
    let uniform = self::joint(cardinalities, &[], &[], zeros, total);
    let least =
        gradient.iter().zip(uniform).filter(|(_, allowed)| *allowed > 0.0).fold(f64::MAX, |l, (g, _)| l.min(*g));
    let here: f64 = gradient.iter().zip(joint).map(|(slope, count)| slope * count).sum();
    (loss, here - total * least)
}

/// Cells of a triangulated graph: all costs of the whole graph are recomputed before each elimination.
pub fn model_cells(cardinalities: &[u32], cliques: &[Vec<usize>]) -> u128 {
    let size = |a: usize| f64::from(cardinalities[a]);
    let mut best = u128::MAX;
    for by_fill in [true, false] {
        let joins =
            |a: usize, b: usize| a != b && cliques.iter().any(|clique| clique.contains(&a) && clique.contains(&b));
        let mut around: BTreeMap<usize, BTreeSet<usize>> = (0..cardinalities.len())
            .map(|a| (a, (0..cardinalities.len()).filter(|&b| joins(a, b)).collect()))
            .collect();
        let mut left: Vec<BTreeSet<usize>> = Vec::new();
        while !around.is_empty() {
            let cost = |a: usize| -> f64 {
                let near = &around[&a];
                let fill = |b: usize| {
                    near.iter().filter(|&&c| c > b && !around[&b].contains(&c)).map(|&c| size(c)).sum::<f64>()
                };
                if by_fill {
                    near.iter().map(|&b| size(b) * fill(b)).sum()
                } else {
                    near.iter().fold(size(a), |product, &b| product * size(b))
                }
            };
            let gone = *around.keys().min_by(|&&a, &&b| cost(a).total_cmp(&cost(b))).unwrap();
            let near = around.remove(&gone).unwrap();
            for a in &near {
                let known = around.get_mut(a).unwrap();
                known.extend(&near);
                known.remove(a);
                known.remove(&gone);
            }
            let clique: BTreeSet<usize> = near.into_iter().chain([gone]).collect();
            if !left.iter().any(|larger| larger.is_superset(&clique)) {
                left.push(clique);
            }
        }
        best = best.min(
            left.iter().map(|clique| clique.iter().map(|&a| u128::from(cardinalities[a])).product::<u128>()).sum(),
        );
    }
    best
}
