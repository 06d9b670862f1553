//! The oracle: section 4.3 of [P] by loops over cells, set after set, table after table.

use std::collections::BTreeSet;

/// A clique, its flat table (axes in the clique's order) and the noise of its cells.
#[derive(Debug, Clone)]
pub struct Noisy {
    /// Positions of the attributes.
    pub clique: Vec<usize>,
    /// One value a cell.
    pub values: Vec<f64>,
    /// Standard deviation.
    pub sigma: f64,
}

impl Noisy {
    /// For every cell, the cell of `set` that it counts towards.
    #[must_use]
    pub fn owners(&self, cardinalities: &[u32], set: &BTreeSet<usize>) -> Vec<usize> {
        let owner = |mut cell: usize| {
            let mut codes = vec![0; cardinalities.len()];
            for &a in self.clique.iter().rev() {
                codes[a] = cell % cardinalities[a] as usize;
                cell /= cardinalities[a] as usize;
            }
            set.iter().fold(0, |owner, &a| owner * cardinalities[a] as usize + codes[a])
        };
        (0..self.values.len()).map(owner).collect()
    }

    /// The margin on a set of its attributes.
    #[must_use]
    pub fn margin(&self, cardinalities: &[u32], set: &BTreeSet<usize>) -> Vec<f64> {
        let mut margin = vec![0.0; set.iter().map(|&a| cardinalities[a] as usize).product()];
        for (&owner, value) in self.owners(cardinalities, set).iter().zip(&self.values) {
            margin[owner] += value;
        }
        margin
    }

    fn contains(&self, set: &BTreeSet<usize>) -> bool {
        set.iter().all(|a| self.clique.contains(a))
    }
}

/// All intersections of two or more cliques, and the empty set, small ones first.
#[must_use]
pub fn shared_sets(tables: &[Noisy]) -> Vec<BTreeSet<usize>> {
    let cliques: Vec<BTreeSet<usize>> = tables.iter().map(|table| table.clique.iter().copied().collect()).collect();
    let mut sets = BTreeSet::from([BTreeSet::new()]);
    for (i, clique) in cliques.iter().enumerate() {
        // Intersections of the cliques up to this one: those before it, alone and with it.
        let with: Vec<BTreeSet<usize>> = sets.iter().chain(&cliques[..i]).map(|set| set & clique).collect();
        sets.extend(with);
    }
    let mut sets: Vec<_> = sets.into_iter().collect();
    sets.sort_by_key(BTreeSet::len);
    sets
}

/// The inverse-variance mean of the totals.
#[must_use]
pub fn total(tables: &[Noisy]) -> f64 {
    let weighted = tables.iter().map(|table| (weight(table), table.values.iter().sum::<f64>()));
    let (sum, weights) = weighted.fold((0.0, 0.0), |(sum, weights), (w, total)| (sum + w * total, weights + w));
    sum / weights
}

#[expect(clippy::cast_precision_loss, reason = "tables of an oracle are small")]
fn weight(table: &Noisy) -> f64 {
    1.0 / (table.sigma * table.sigma * table.values.len() as f64)
}

/// Make tables agree on every shared set, once.
#[expect(clippy::cast_precision_loss, reason = "tables of an oracle are small")]
pub fn agree(cardinalities: &[u32], tables: &mut [Noisy], total: f64) {
    for set in shared_sets(tables) {
        let mut mean = vec![0.0; set.iter().map(|&a| cardinalities[a] as usize).product()];
        let mut weights = 0.0;
        for table in tables.iter().filter(|table| table.contains(&set)) {
            // rho / g, but for the factor that all have in common: the cells of the set.
            let weight = weight(table);
            weights += weight;
            for (sum, value) in mean.iter_mut().zip(table.margin(cardinalities, &set)) {
                *sum += weight * value;
            }
        }
        for value in &mut mean {
            *value /= weights;
        }
        if set.is_empty() {
            mean[0] = total;
        }
        for table in tables.iter_mut().filter(|table| table.contains(&set)) {
            let group = (table.values.len() / mean.len()) as f64;
            let margin = table.margin(cardinalities, &set);
            let owners = table.owners(cardinalities, &set);
            for (value, owner) in table.values.iter_mut().zip(owners) {
                *value += (mean[owner] - margin[owner]) / group;
            }
        }
    }
}

/// The nearest non-negative values that add up to a positive `total`.
pub fn norm_sub(values: &mut [f64], total: f64) {
    let mut falling = values.to_vec();
    falling.sort_by(|a, b| b.total_cmp(a));
    let mut sum = -total;
    let mut level = 0.0;
    for (kept, value) in (1..).zip(falling) {
        sum += value;
        if value > sum / f64::from(kept) {
            level = sum / f64::from(kept);
        }
    }
    for value in values {
        *value = (*value - level).max(0.0);
    }
}

/// The largest sum of absolute differences between margins of two tables on a shared set.
#[must_use]
pub fn disagreement(cardinalities: &[u32], tables: &[Noisy]) -> f64 {
    let mut worst: f64 = 0.0;
    for set in shared_sets(tables) {
        let sharing = tables.iter().filter(|table| table.contains(&set));
        let margins: Vec<_> = sharing.map(|table| table.margin(cardinalities, &set)).collect();
        for (i, a) in margins.iter().enumerate() {
            for b in &margins[..i] {
                worst = worst.max(a.iter().zip(b).map(|(x, y)| (x - y).abs()).sum());
            }
        }
    }
    worst
}
