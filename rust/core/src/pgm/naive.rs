//! The oracle: the joint distribution of all attributes, cell by cell; and sizes of models, step by step.

use std::collections::{BTreeMap, BTreeSet};

use super::{Target, Zeros};

/// The codes of a cell of the whole domain, the last attribute moving fastest.
fn codes(cardinalities: &[u32], mut cell: usize) -> Vec<u32> {
    let mut codes = vec![0; cardinalities.len()];
    for (code, &size) in codes.iter_mut().zip(cardinalities).rev() {
        *code = u32::try_from(cell % size as usize).expect("below the size");
        cell /= size as usize;
    }
    codes
}

/// Which of a target's cells a joint cell counts towards.
fn place(target: &Target, codes: &[u32]) -> usize {
    let bucket = |axis: &super::Axis| axis.bucket(codes[axis.attribute]);
    target.axes.iter().fold(0, |place, axis| place * axis.size as usize + bucket(axis))
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
    let allowed = |codes: &[u32]| {
        zeros.iter().all(|(clique, forbidden)| {
            let cell = clique.iter().fold(0, |cell, &a| cell * cardinalities[a] as usize + codes[a] as usize);
            !forbidden[cell]
        })
    };
    let exponent = |codes: &Vec<u32>| {
        let sum = targets.iter().zip(potentials).map(|(target, values)| values[place(target, codes)]).sum();
        if allowed(codes) { sum } else { f64::NEG_INFINITY }
    };
    let exponents: Vec<f64> = cells(cardinalities).iter().map(exponent).collect();
    let most = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = exponents.iter().map(|exponent| (exponent - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| total * weight / sum).collect()
}

/// The marginal of a joint distribution that a target measures.
pub fn marginal(cardinalities: &[u32], joint: &[f64], target: &Target) -> Vec<f64> {
    let mut values = vec![0.0; target.values.len()];
    for (codes, count) in cells(cardinalities).iter().zip(joint) {
        values[place(target, codes)] += count;
    }
    values
}

/// The loss of a joint distribution, and by how much it is above the smallest at most.
///
/// The loss is convex, so no distribution of as many records is better by more than its linear approximation says: that
/// of putting them all on the joint value where the gradient is smallest.
pub fn loss_and_gap(cardinalities: &[u32], joint: &[f64], targets: &[Target], zeros: &[Zeros]) -> (f64, f64) {
    let mut loss = 0.0;
    let mut gradient = vec![0.0; joint.len()];
    for target in targets {
        let have = marginal(cardinalities, joint, target);
        let residuals: Vec<f64> = have.iter().zip(&target.values).map(|(have, want)| have - want).collect();
        loss += target.weight * residuals.iter().map(|r| r * r).sum::<f64>() / 2.0;
        for (codes, slope) in cells(cardinalities).iter().zip(&mut gradient) {
            *slope += target.weight * residuals[place(target, codes)];
        }
    }
    let total: f64 = joint.iter().sum();
    let uniform = self::joint(cardinalities, &[], &[], zeros, total);
    let least =
        gradient.iter().zip(uniform).filter(|(_, allowed)| *allowed > 0.0).fold(f64::MAX, |l, (g, _)| l.min(*g));
    let here: f64 = gradient.iter().zip(joint).map(|(slope, count)| slope * count).sum();
    (loss, here - total * least)
}

/// Cells of a triangulated graph: every cost anew before each elimination, the whole graph at a time.
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
