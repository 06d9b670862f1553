//! Triangulation: the maximal cliques of a graph in which eliminating an attribute joins its neighbours.
//!
//! Attributes are eliminated one by one; each leaves a clique of itself and its neighbours, which become neighbours of
//! each other. Two greedy orders are tried and the smaller model is kept: the attribute whose elimination adds the
//! least fill, an edge weighing the product of its two cardinalities, or the one whose clique has the fewest cells.
//!
//! [`model_cells_with`] sizes a model with each of many candidates. Shared work is done once: parts of the graph that a
//! candidate does not touch, and candidates that add the same edges.
//! Cost: O(attributes * degree^2) in practice for each set of edges; no table is built.

use std::collections::HashMap;

use rayon::prelude::*;

use super::graph::total_cells;
use crate::error::Result;
use crate::parallel::Cancel;

/// The maximal cliques of the triangulated graph of some cliques: the better of two orders.
#[must_use]
pub fn triangulate(cardinalities: &[u32], cliques: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let graph = Graph::new(cardinalities, cliques);
    let all: Vec<usize> = (0..cardinalities.len()).collect();
    let [by_fill, by_cells] = ORDERS.map(|greed| graph.clone().eliminate(&all, greed));
    let smaller = total_cells(cardinalities, &by_cells) < total_cells(cardinalities, &by_fill);
    if smaller { by_cells } else { by_fill }
}

/// Cells of the junction tree of some cliques, without building it; `u128::MAX` where the number overflows.
#[must_use]
pub fn model_cells(cardinalities: &[u32], cliques: &[Vec<usize>]) -> u128 {
    total_cells(cardinalities, &triangulate(cardinalities, cliques))
}

/// As [`model_cells`], for some cliques with each of the candidates.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub fn model_cells_with(
    cardinalities: &[u32],
    cliques: &[Vec<usize>],
    candidates: &[Vec<usize>],
    cancel: &Cancel,
) -> Result<Vec<u128>> {
    let graph = Graph::new(cardinalities, cliques);
    let parts = graph.parts();
    let known: Vec<[u128; 2]> = parts.par_iter().map(|part| graph.cells(part)).collect();
    let mut place_of = vec![0; cardinalities.len()];
    for (i, part) in parts.iter().enumerate() {
        for &a in part {
            place_of[a] = i;
        }
    }
    let mut numbers: HashMap<Vec<(usize, usize)>, usize> = HashMap::new();
    let kinds: Vec<usize> = candidates
        .iter()
        .map(|candidate| {
            let next = numbers.len();
            let mut set = vec![0; graph.words];
            for &a in candidate {
                insert(&mut set, a);
            }
            *numbers.entry(graph.edges_missing(&set)).or_insert(next)
        })
        .collect();
    let mut missing: Vec<(Vec<(usize, usize)>, usize)> = numbers.into_iter().collect();
    missing.sort_unstable_by_key(|&(_, number)| number);
    let sizes = missing.par_iter().map(|(edges, _)| {
        cancel.check()?;
        let mut joined: Vec<usize> = edges.iter().flat_map(|&(a, b)| [place_of[a], place_of[b]]).collect();
        joined.sort_unstable();
        joined.dedup();
        let mut members: Vec<usize> = joined.iter().flat_map(|&part| &parts[part]).copied().collect();
        members.sort_unstable();
        let apart = (0..parts.len()).filter(|part| joined.binary_search(part).is_err()).map(|part| known[part]);
        let [by_fill, by_cells] = apart
            .chain([graph.with(edges).cells(&members)])
            .fold([0; 2], |[a, b], [c, d]| [u128::saturating_add(a, c), u128::saturating_add(b, d)]);
        Ok(by_fill.min(by_cells))
    });
    let sizes: Vec<u128> = sizes.collect::<Result<_>>()?;
    Ok(kinds.into_iter().map(|kind| sizes[kind]).collect())
}

/// The cost that an elimination order minimises greedily.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greed {
    Fill,
    Cells,
}

const ORDERS: [Greed; 2] = [Greed::Fill, Greed::Cells];

/// Attributes and their neighbours: a row of bits for each.
#[derive(Debug, Clone)]
struct Graph<'a> {
    cardinalities: &'a [u32],
    words: usize,
    rows: Vec<u64>,
}

impl<'a> Graph<'a> {
    fn new(cardinalities: &'a [u32], cliques: &[Vec<usize>]) -> Self {
        let words = cardinalities.len().div_ceil(64);
        let mut graph = Self { cardinalities, words, rows: vec![0; words * cardinalities.len()] };
        for clique in cliques {
            for &a in clique {
                clique.iter().filter(|&&b| b != a).for_each(|&b| insert(graph.row_mut(a), b));
            }
        }
        graph
    }

    fn row(&self, a: usize) -> &[u64] {
        &self.rows[a * self.words..][..self.words]
    }

    fn row_mut(&mut self, a: usize) -> &mut [u64] {
        &mut self.rows[a * self.words..][..self.words]
    }

    /// The members of a set after an attribute that are not its neighbours.
    fn strangers(&self, a: usize, set: &[u64]) -> impl Iterator<Item = usize> {
        bits(set.iter().zip(self.row(a)).map(|(word, known)| word & !known)).filter(move |&b| b > a)
    }

    /// The edges of a clique that the graph lacks, sorted.
    fn edges_missing(&self, clique: &[u64]) -> Vec<(usize, usize)> {
        members(clique).flat_map(|a| self.strangers(a, clique).map(move |b| (a, b))).collect()
    }

    fn with(&self, edges: &[(usize, usize)]) -> Self {
        let mut graph = self.clone();
        for &(a, b) in edges {
            insert(graph.row_mut(a), b);
            insert(graph.row_mut(b), a);
        }
        graph
    }

    /// The connected parts, each sorted.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.cardinalities.len()];
        let mut parts = Vec::new();
        for first in 0..self.cardinalities.len() {
            if seen[first] {
                continue;
            }
            seen[first] = true;
            let mut part = vec![first];
            let mut next = 0;
            while next < part.len() {
                for b in members(self.row(part[next])) {
                    if !seen[b] {
                        seen[b] = true;
                        part.push(b);
                    }
                }
                next += 1;
            }
            part.sort_unstable();
            parts.push(part);
        }
        parts
    }

    /// Cells of the maximal cliques of a separate part, in either order.
    fn cells(&self, part: &[usize]) -> [u128; 2] {
        ORDERS.map(|greed| total_cells(self.cardinalities, &self.clone().eliminate(part, greed)))
    }

    /// Eliminate the attributes of a separate part; returns the maximal cliques that they leave.
    fn eliminate(mut self, part: &[usize], greed: Greed) -> Vec<Vec<usize>> {
        let mut costs = vec![0.0; self.cardinalities.len()];
        for &a in part {
            costs[a] = self.cost(a, greed);
        }
        let mut left = part.to_vec();
        let mut maximal: Vec<Vec<u64>> = Vec::new();
        while let Some(position) = (0..left.len()).min_by(|&i, &j| costs[left[i]].total_cmp(&costs[left[j]])) {
            let gone = left.remove(position);
            let mut clique = self.row(gone).to_vec();
            let around: Vec<usize> = members(&clique).collect();
            let fill = self.edges_missing(&clique);
            for &a in &around {
                self.row_mut(a)[gone / 64] &= !(1 << (gone % 64));
            }
            for &(a, b) in &fill {
                insert(self.row_mut(a), b);
                insert(self.row_mut(b), a);
            }
            for &a in &around {
                costs[a] = self.cost(a, greed);
            }
            if greed == Greed::Fill {
                // A neighbour of both ends of a new edge has less to fill than before.
                let mut touched = vec![0; self.words];
                for &(a, b) in &fill {
                    let both = self.row(a).iter().zip(self.row(b)).map(|(a, b)| a & b);
                    touched.iter_mut().zip(both).for_each(|(word, more)| *word |= more);
                }
                touched.iter_mut().zip(&clique).for_each(|(word, done)| *word &= !done);
                members(&touched).for_each(|a| costs[a] = self.cost(a, greed));
            }
            insert(&mut clique, gone);
            let inside = |larger: &Vec<u64>| clique.iter().zip(larger).all(|(part, word)| part & !word == 0);
            if !maximal.iter().any(inside) {
                maximal.push(clique);
            }
        }
        maximal.iter().map(|clique| members(clique).collect()).collect()
    }

    fn cost(&self, attribute: usize, greed: Greed) -> f64 {
        let size = |a: usize| f64::from(self.cardinalities[a]);
        let around = self.row(attribute);
        match greed {
            Greed::Cells => members(around).fold(size(attribute), |product, a| product * size(a)),
            Greed::Fill => members(around).map(|a| size(a) * self.strangers(a, around).map(size).sum::<f64>()).sum(),
        }
    }
}

fn insert(set: &mut [u64], a: usize) {
    set[a / 64] |= 1 << (a % 64);
}

fn members(set: &[u64]) -> impl Iterator<Item = usize> {
    bits(set.iter().copied())
}

fn bits(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(i, word)| {
        std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)))
            .take_while(|&word| word != 0)
            .map(move |word| 64 * i + word.trailing_zeros() as usize)
    })
}
