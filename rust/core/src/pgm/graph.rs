//! From cliques to a junction tree: triangulate, keep the maximal cliques, join them.
//!
//! Attributes are eliminated one by one; each leaves a clique of itself and its neighbours, who become neighbours of each
//! other. Two greedy orders are tried and the smaller model is kept: the attribute whose elimination adds the
//! least fill, an edge weighing the product of its two cardinalities, or the one whose clique has the fewest cells.
//! Maximal cliques joined by a maximum spanning tree of the sizes of their intersections form a junction tree (Jensen and
//! Jensen 1994). Cost: O(attributes * degree^2) in practice; no table is built, so the size of a model is known beforehand.

use rayon::prelude::*;

use crate::error::Result;
use crate::parallel::Cancel;

/// A junction tree over all attributes; cliques are sorted, and stand in order of their depth.
#[derive(Debug, Clone)]
pub struct JunctionTree {
    /// Maximal cliques of the triangulated graph, the root first.
    pub cliques: Vec<Vec<usize>>,
    /// The clique that each but the root hangs on.
    pub parents: Vec<usize>,
    /// How deep each clique hangs.
    pub depths: Vec<usize>,
}

impl JunctionTree {
    /// The tree that holds all cliques, and each attribute at least by itself.
    #[must_use]
    pub fn new(cardinalities: &[u32], cliques: &[Vec<usize>]) -> Self {
        let maximal = triangulate(cardinalities, cliques);
        let largest = |&i: &usize| (cells(cardinalities, &maximal[i]), usize::MAX - i);
        let root = (0..maximal.len()).max_by_key(largest);
        join(&maximal, root.unwrap_or(0))
    }

    /// Cells of all its cliques together; `u128::MAX` where that is too large a number.
    #[must_use]
    pub fn cells(&self, cardinalities: &[u32]) -> u128 {
        total_cells(cardinalities, &self.cliques)
    }
}

/// Cells of the junction tree of some cliques, which is not built; `u128::MAX` where that is too large a number.
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
    let cells = |candidate: &Vec<usize>| {
        cancel.check()?;
        let all: Vec<Vec<usize>> = cliques.iter().chain([candidate]).cloned().collect();
        Ok(model_cells(cardinalities, &all))
    };
    candidates.par_iter().map(cells).collect()
}

/// Cells of a clique.
#[must_use]
pub fn cells(cardinalities: &[u32], clique: &[usize]) -> u128 {
    clique.iter().fold(1, |product: u128, &a| product.saturating_mul(cardinalities[a].into()))
}

fn total_cells(cardinalities: &[u32], cliques: &[Vec<usize>]) -> u128 {
    cliques.iter().fold(0, |sum: u128, clique| sum.saturating_add(cells(cardinalities, clique)))
}

/// What an elimination order is greedy for.
#[derive(Debug, Clone, Copy)]
enum Greed {
    Fill,
    Cells,
}

fn triangulate(cardinalities: &[u32], cliques: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let graph = Graph::new(cardinalities, cliques);
    let by_fill = graph.clone().eliminate(Greed::Fill);
    let by_cells = graph.eliminate(Greed::Cells);
    let smaller = total_cells(cardinalities, &by_cells) < total_cells(cardinalities, &by_fill);
    if smaller { by_cells } else { by_fill }
}

/// Attributes and who is whose neighbour.
#[derive(Debug, Clone)]
struct Graph<'a> {
    cardinalities: &'a [u32],
    neighbours: Vec<Set>,
}

impl<'a> Graph<'a> {
    fn new(cardinalities: &'a [u32], cliques: &[Vec<usize>]) -> Self {
        let mut neighbours = vec![Set::new(cardinalities.len()); cardinalities.len()];
        for clique in cliques {
            for &a in clique {
                clique.iter().filter(|&&b| b != a).for_each(|&b| neighbours[a].insert(b));
            }
        }
        Self { cardinalities, neighbours }
    }

    /// Eliminate all attributes; the maximal cliques that they leave.
    fn eliminate(mut self, greed: Greed) -> Vec<Vec<usize>> {
        let size = self.cardinalities.len();
        let mut costs: Vec<f64> = (0..size).map(|a| self.cost(a, greed)).collect();
        let mut left: Vec<usize> = (0..size).collect();
        let mut maximal: Vec<Set> = Vec::new();
        while let Some(position) = (0..left.len()).min_by(|&i, &j| costs[left[i]].total_cmp(&costs[left[j]])) {
            let gone = left.remove(position);
            let around: Vec<usize> = self.neighbours[gone].members().collect();
            let mut touched = self.neighbours[gone].clone();
            for &a in &around {
                self.neighbours[a].remove(gone);
                for &b in around.iter().filter(|&&b| b != a) {
                    self.neighbours[a].insert(b);
                }
                touched.extend(&self.neighbours[a]);
            }
            // Only these have other neighbours, or neighbours with other neighbours, than before.
            touched.members().for_each(|a| costs[a] = self.cost(a, greed));
            let mut clique = std::mem::replace(&mut self.neighbours[gone], Set::new(0));
            clique.insert(gone);
            if !maximal.iter().any(|larger| larger.contains_all(&clique)) {
                maximal.push(clique);
            }
        }
        maximal.iter().map(|clique| clique.members().collect()).collect()
    }

    fn cost(&self, attribute: usize, greed: Greed) -> f64 {
        let size = |a: usize| f64::from(self.cardinalities[a]);
        let around = &self.neighbours[attribute];
        match greed {
            Greed::Cells => around.members().fold(size(attribute), |product, a| product * size(a)),
            Greed::Fill => around
                .members()
                .map(|a| size(a) * around.members_but(&self.neighbours[a]).filter(|&b| b > a).map(size).sum::<f64>())
                .sum(),
        }
    }
}

/// Hang cliques on each other where they have most in common, beginning with the root.
fn join(maximal: &[Vec<usize>], root: usize) -> JunctionTree {
    let common = |i: usize, j: usize| maximal[i].iter().filter(|a| maximal[j].binary_search(a).is_ok()).count();
    let mut order = vec![root];
    // For each clique that hangs nowhere yet: what it has in common with the best place so far, and that place.
    let mut places: Vec<Option<(usize, usize)>> = (0..maximal.len()).map(|i| Some((common(i, root), root))).collect();
    places[root] = None;
    let mut hangs_on = vec![root; maximal.len()];
    let mut depth = vec![0; maximal.len()];
    while let Some(next) =
        (0..maximal.len()).filter(|&i| places[i].is_some()).max_by_key(|&i| (places[i], maximal.len() - i))
    {
        let Some((_, place)) = places[next].take() else { break };
        hangs_on[next] = place;
        depth[next] = depth[place] + 1;
        order.push(next);
        for (i, place) in places.iter_mut().enumerate() {
            if let Some((most, _)) = place
                && common(i, next) > *most
            {
                *place = Some((common(i, next), next));
            }
        }
    }
    order.sort_by_key(|&i| depth[i]);
    let mut position = vec![0; order.len()];
    order.iter().enumerate().for_each(|(p, &i)| position[i] = p);
    JunctionTree {
        parents: order.iter().map(|&i| position[hangs_on[i]]).collect(),
        depths: order.iter().map(|&i| depth[i]).collect(),
        cliques: order.iter().map(|&i| maximal[i].clone()).collect(),
    }
}

/// A set of attributes, as bits.
#[derive(Debug, Clone)]
struct Set(Vec<u64>);

impl Set {
    fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    fn insert(&mut self, a: usize) {
        self.0[a / 64] |= 1 << (a % 64);
    }

    fn remove(&mut self, a: usize) {
        self.0[a / 64] &= !(1 << (a % 64));
    }

    fn extend(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    fn contains_all(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(word, part)| part & !word == 0)
    }

    fn members(&self) -> impl Iterator<Item = usize> {
        bits(self.0.iter().copied())
    }

    /// The members that another set has not.
    fn members_but(&self, other: &Self) -> impl Iterator<Item = usize> {
        bits(self.0.iter().zip(&other.0).map(|(word, without)| word & !without))
    }
}

fn bits(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(i, word)| {
        std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)))
            .take_while(|&word| word != 0)
            .map(move |word| 64 * i + word.trailing_zeros() as usize)
    })
}
