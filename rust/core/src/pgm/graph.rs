//! From cliques to a junction tree: triangulate ([`super::eliminate`]), and join the maximal cliques.
//!
//! Maximal cliques joined by a maximum spanning tree of the sizes of their intersections form a junction tree (Jensen
//! and Jensen 1994). No table is built, so the size of a model is known beforehand.

use super::eliminate::triangulate;

/// A junction tree over all attributes; cliques are sorted, and in order of their depth.
#[derive(Debug, Clone)]
pub struct JunctionTree {
    /// Maximal cliques of the triangulated graph, the root first.
    pub cliques: Vec<Vec<usize>>,
    /// The parent of each clique except the root.
    pub parents: Vec<usize>,
    /// The depth of each clique.
    pub depths: Vec<usize>,
}

impl JunctionTree {
    /// The tree that holds all cliques, and every attribute in at least one.
    #[must_use]
    pub fn new(cardinalities: &[u32], cliques: &[Vec<usize>]) -> Self {
        let maximal = triangulate(cardinalities, cliques);
        let largest = |&i: &usize| (cells(cardinalities, &maximal[i]), usize::MAX - i);
        let root = (0..maximal.len()).max_by_key(largest);
        join(&maximal, root.unwrap_or(0))
    }

    /// Cells of all its cliques; `u128::MAX` where the number overflows.
    #[must_use]
    pub fn cells(&self, cardinalities: &[u32]) -> u128 {
        total_cells(cardinalities, &self.cliques)
    }
}

/// Cells of some cliques in total; `u128::MAX` where the number overflows.
#[must_use]
pub fn total_cells(cardinalities: &[u32], cliques: &[Vec<usize>]) -> u128 {
    cliques.iter().fold(0, |sum: u128, clique| sum.saturating_add(cells(cardinalities, clique)))
}

/// Cells of a clique.
#[must_use]
pub fn cells(cardinalities: &[u32], clique: &[usize]) -> u128 {
    clique.iter().fold(1, |product: u128, &a| product.saturating_mul(cardinalities[a].into()))
}

/// Join cliques that have most attributes in common, beginning with the root (Prim's algorithm).
fn join(maximal: &[Vec<usize>], root: usize) -> JunctionTree {
    let common = |i: usize, j: usize| maximal[i].iter().filter(|a| maximal[j].binary_search(a).is_ok()).count();
    let mut order = vec![root];
    // For each clique that is not joined yet: the number of attributes shared with its best parent so far, and that
    // parent.
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
