//! The marginal of any set of attributes under a calibrated tree.
//!
//! Inside a clique it is a margin of the clique's table. Otherwise the part of the tree that connects the attributes is a
//! chain of conditional distributions: leaves that add nothing are dropped, each clique is reduced to the wanted
//! attributes and its separators and divided by its row sums, and what is not wanted is eliminated, the attribute with the smallest
//! product first. Cost: the cells of the products, which may be many more than those of the tree, hence a limit.

use super::margin::Margin;
use super::tree::{Belief, Tree, contains};
use crate::error::{Error, Result};
use crate::parallel::{Cancel, zeros};

/// A table over a sorted set of attributes.
struct Factor {
    attributes: Vec<usize>,
    table: Vec<f64>,
}

/// The marginal of a sorted set of attributes.
///
/// # Errors
/// [`Error::ModelTooLarge`] where a table on the way takes more than `limit` bytes; [`Error::Interrupted`].
pub fn marginal(tree: &Tree, beliefs: &[Belief], wanted: &[usize], limit: u64, cancel: &Cancel) -> Result<Vec<f64>> {
    let holding = (0..tree.nodes.len()).filter(|&n| contains(&tree.nodes[n].attributes, wanted));
    if let Some(n) = holding.min_by_key(|&n| beliefs[n].table.len()) {
        return Ok(project(tree, &tree.nodes[n].attributes, &beliefs[n].table, wanted));
    }
    let mut factors = connect(tree, beliefs, wanted);
    loop {
        cancel.check()?;
        let hidden = factors.iter().flat_map(|factor| &factor.attributes).filter(|a| !wanted.contains(a));
        let Some(&next) = hidden.min_by_key(|&&a| (cells_of(tree, &union(&factors, Some(a))), a)) else { break };
        let (with, without) = factors.into_iter().partition(|factor| factor.attributes.contains(&next));
        factors = without;
        let Factor { mut attributes, table } = product(tree, &with, limit)?;
        let kept: Vec<usize> = attributes.iter().copied().filter(|&a| a != next).collect();
        let table = project(tree, &attributes, &table, &kept);
        attributes = kept;
        factors.push(Factor { attributes, table });
    }
    Ok(product(tree, &factors, limit)?.table)
}

/// The distribution of the wanted attributes, and of what connects them, as factors to multiply.
fn connect(tree: &Tree, beliefs: &[Belief], wanted: &[usize]) -> Vec<Factor> {
    let mut used = vec![true; tree.nodes.len()];
    loop {
        let mut degrees = vec![0; tree.nodes.len()];
        for (n, node) in tree.nodes.iter().enumerate().skip(1).filter(|(n, node)| used[*n] && used[node.parent]) {
            degrees[n] += 1;
            degrees[node.parent] += 1;
        }
        // A leaf hangs on one separator: its own, or that of the only child of a root.
        let adds_nothing = |&n: &usize| {
            let child = || (1..used.len()).find(|&c| used[c] && tree.nodes[c].parent == n);
            let own = n > 0 && used[tree.nodes[n].parent];
            let edge = if own { Some(n) } else { child() };
            let held = |a: &&usize| tree.nodes[n].attributes.binary_search(a).is_ok();
            edge.is_some_and(|e| wanted.iter().filter(held).all(|a| tree.nodes[e].separator.contains(a)))
        };
        let Some(leaf) = (0..used.len()).filter(|&n| used[n] && degrees[n] == 1).find(adds_nothing) else { break };
        used[leaf] = false;
    }
    let edges: Vec<usize> = (1..used.len()).filter(|&n| used[n] && used[tree.nodes[n].parent]).collect();
    let mut shown: Vec<usize> = wanted.to_vec();
    shown.extend(edges.iter().flat_map(|&n| &tree.nodes[n].separator));
    let factor = |n: usize| {
        let node = &tree.nodes[n];
        let attributes: Vec<usize> = node.attributes.iter().copied().filter(|a| shown.contains(a)).collect();
        let mut table = project(tree, &node.attributes, &beliefs[n].table, &attributes);
        if edges.contains(&n) {
            let rows = Margin::new(&tree.cardinalities, &attributes, &node.separator);
            let mut sums = vec![0.0; rows.cells()];
            rows.sum(&table, &mut sums);
            for sum in &mut sums {
                *sum = if *sum > 0.0 { 1.0 / *sum } else { 0.0 };
            }
            rows.scale(&mut table, &sums);
        }
        Factor { attributes, table }
    };
    (0..used.len()).filter(|&n| used[n]).map(factor).collect()
}

/// The attributes of all factors, or of those that have a given one; sorted.
fn union(factors: &[Factor], having: Option<usize>) -> Vec<usize> {
    let chosen = factors.iter().filter(|factor| having.is_none_or(|a| factor.attributes.contains(&a)));
    let mut all: Vec<usize> = chosen.flat_map(|factor| &factor.attributes).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn cells_of(tree: &Tree, set: &[usize]) -> u128 {
    super::graph::cells(&tree.cardinalities, set)
}

fn product(tree: &Tree, factors: &[Factor], limit: u64) -> Result<Factor> {
    let attributes = union(factors, None);
    let cells = cells_of(tree, &attributes);
    let bytes = cells.saturating_mul(8);
    let Some(size) = usize::try_from(cells).ok().filter(|_| bytes <= limit.into()) else {
        return Err(Error::ModelTooLarge { cells, bytes, limit });
    };
    let mut table = zeros(size)?;
    table.fill(1.0);
    for factor in factors {
        Margin::new(&tree.cardinalities, &attributes, &factor.attributes).scale(&mut table, &factor.table);
    }
    Ok(Factor { attributes, table })
}

fn project(tree: &Tree, attributes: &[usize], table: &[f64], wanted: &[usize]) -> Vec<f64> {
    let margin = Margin::new(&tree.cardinalities, attributes, wanted);
    let mut result = vec![0.0; margin.cells()];
    margin.sum(table, &mut result);
    result
}
