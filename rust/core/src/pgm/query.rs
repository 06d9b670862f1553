//! The marginals of any sets of attributes under a calibrated tree.
//!
//! Inside a clique a marginal is a margin of the clique's table. Otherwise the part of the tree that connects the attributes
//! is a chain of conditional distributions: leaves that add nothing are dropped, each clique is reduced to the wanted
//! attributes and its separators and divided by its row sums, and what is not wanted is eliminated, the attribute with
//! the smallest product first. All margins that a list of sets needs of a clique are read off together: at each axis, the
//! sets without it share one summed table. Cost: a few passes over the cells of the tree for all, and for each set the cells
//! of its products, which may be many more, hence a limit.

use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;

use super::margin::Margin;
use super::tree::{Belief, Tree, contains};
use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::parallel::{Cancel, zeros};

/// A table over a sorted set of attributes.
struct Factor {
    attributes: Vec<usize>,
    table: Vec<f64>,
}

/// A margin of a clique that a marginal is made of.
struct Part {
    node: usize,
    attributes: Vec<usize>,
    /// Whether it is taken given the separator to the clique's parent.
    given: bool,
}

/// Margins of one clique, by their attributes.
type Margins<'a> = HashMap<&'a [usize], Vec<f64>>;

/// The marginals of sorted sets of attributes.
///
/// # Errors
/// [`Error::ModelTooLarge`] where a table on the way takes more than `limit` bytes; [`Error::Interrupted`].
pub fn marginals(
    tree: &Tree,
    beliefs: &[Belief],
    sets: &[Vec<usize>],
    limit: u64,
    cancel: &Cancel,
) -> Result<Vec<Vec<f64>>> {
    let parts: Vec<Vec<Part>> = sets.par_iter().map(|set| parts_of(tree, beliefs, set)).collect();
    let mut needed: Vec<BTreeSet<&[usize]>> = vec![BTreeSet::new(); tree.nodes.len()];
    for part in parts.iter().flatten() {
        needed[part.node].insert(&part.attributes);
    }
    let margins: Vec<Margins<'_>> = (needed.par_iter().enumerate())
        .map(|(n, wanted)| {
            let wanted: Vec<&[usize]> = wanted.iter().copied().collect();
            let found = read_off(tree, &beliefs[n].table, 1, &tree.nodes[n].attributes, &wanted, cancel)?;
            Ok(found.into_iter().collect())
        })
        .collect::<Result<_>>()?;
    (sets.par_iter().zip(&parts))
        .map(|(set, parts)| eliminate(tree, parts.iter().map(|part| factor(tree, part, &margins)), set, limit, cancel))
        .collect()
}

/// The wanted margins of a table over the axes decided so far, of `kept` cells, and the attributes `rest`.
fn read_off<'a>(
    tree: &Tree,
    table: &[f64],
    kept: usize,
    rest: &[usize],
    wanted: &[&'a [usize]],
    cancel: &Cancel,
) -> Result<Vec<(&'a [usize], Vec<f64>)>> {
    cancel.check()?;
    let Some((first, rest)) = rest.split_first() else {
        return Ok(wanted.iter().map(|&set| (set, table.to_vec())).collect());
    };
    let size = tree.cardinalities[*first] as usize;
    let (with, without): (Vec<_>, Vec<_>) = wanted.iter().partition(|set| set.contains(first));
    let (with, without) = rayon::join(
        || if with.is_empty() { Ok(Vec::new()) } else { read_off(tree, table, kept * size, rest, &with, cancel) },
        || {
            if without.is_empty() {
                return Ok(Vec::new());
            }
            let axes = Axes::new([(kept, true), (size, false), (table.len() / (kept * size), true)]);
            read_off(tree, &axes.margin(table), kept, rest, &without, cancel)
        },
    );
    let mut all = with?;
    all.extend(without?);
    Ok(all)
}

/// Multiply factors and sum out what is not wanted.
fn eliminate(
    tree: &Tree,
    factors: impl Iterator<Item = Factor>,
    wanted: &[usize],
    limit: u64,
    cancel: &Cancel,
) -> Result<Vec<f64>> {
    let mut factors: Vec<Factor> = factors.collect();
    loop {
        cancel.check()?;
        let hidden = factors.iter().flat_map(|factor| &factor.attributes).filter(|a| !wanted.contains(a));
        let Some(&next) = hidden.min_by_key(|&&a| (cells_of(tree, &union(&factors, Some(a))), a)) else { break };
        let (with, without) = factors.into_iter().partition(|factor| factor.attributes.contains(&next));
        factors = without;
        let Factor { attributes, table } = product(tree, with, limit)?;
        let kept: Vec<usize> = attributes.iter().copied().filter(|&a| a != next).collect();
        let margin = Margin::new(&tree.cardinalities, &attributes, &kept);
        let mut summed = vec![0.0; margin.cells()];
        margin.sum(&table, &mut summed);
        factors.push(Factor { attributes: kept, table: summed });
    }
    Ok(product(tree, factors, limit)?.table)
}

/// What to read off which cliques for a marginal: one margin, or those along the part of the tree that connects it.
fn parts_of(tree: &Tree, beliefs: &[Belief], wanted: &[usize]) -> Vec<Part> {
    let holding = (0..tree.nodes.len()).filter(|&n| contains(&tree.nodes[n].attributes, wanted));
    if let Some(node) = holding.min_by_key(|&n| beliefs[n].table.len()) {
        return vec![Part { node, attributes: wanted.to_vec(), given: false }];
    }
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
    let mut shown: BTreeSet<usize> = wanted.iter().copied().collect();
    shown.extend(edges.iter().flat_map(|&n| &tree.nodes[n].separator));
    let part = |node: usize| {
        let attributes = tree.nodes[node].attributes.iter().copied().filter(|a| shown.contains(a)).collect();
        Part { node, attributes, given: edges.contains(&node) }
    };
    (0..used.len()).filter(|&n| used[n]).map(part).collect()
}

/// A margin, divided by its own margin on the separator where it is taken given that.
fn factor(tree: &Tree, part: &Part, margins: &[Margins<'_>]) -> Factor {
    let attributes = part.attributes.clone();
    let mut table = margins[part.node][&attributes[..]].clone();
    if part.given {
        let rows = Margin::new(&tree.cardinalities, &attributes, &tree.nodes[part.node].separator);
        let mut sums = vec![0.0; rows.cells()];
        rows.sum(&table, &mut sums);
        for sum in &mut sums {
            // What is below has no finite inverse, and its rows no weight.
            *sum = if *sum >= f64::MIN_POSITIVE { 1.0 / *sum } else { 0.0 };
        }
        rows.scale(&mut table, &sums);
    }
    Factor { attributes, table }
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

fn product(tree: &Tree, mut factors: Vec<Factor>, limit: u64) -> Result<Factor> {
    if factors.len() == 1 {
        return Ok(factors.remove(0));
    }
    let attributes = union(&factors, None);
    let cells = cells_of(tree, &attributes);
    let bytes = cells.saturating_mul(8);
    let Some(size) = u32::try_from(cells).ok().filter(|_| bytes <= limit.into()) else {
        return Err(Error::ModelTooLarge { cells, bytes, limit });
    };
    let mut table = zeros(size as usize)?;
    table.fill(1.0);
    for factor in factors {
        Margin::new(&tree.cardinalities, &attributes, &factor.attributes).scale(&mut table, &factor.table);
    }
    Ok(Factor { attributes, table })
}
