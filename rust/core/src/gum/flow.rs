//! Move records between the cells of a table so that the fewest attributes change: an exact min-cost flow ([P] 5.1).
//!
//! Moving a record costs the number of attributes in which its old and new cell differ. Instead of one arc for each
//! pair of cells, records pass through one layer an attribute: there a record keeps its code (cost 0) or goes through
//! the hub of its line to any other code (cost 1). That has O(attributes * cells) arcs, and a path costs the attributes
//! it changes.
//!
//! Solved by the primal-dual method: shortest distances under potentials (Dijkstra), then a maximum flow over the arcs
//! on shortest paths (Dinic), until the demand is met. Costs are small integers, so there are few rounds.
//! Taking the cheapest moves first is *not* optimal: with freed records in (0,0) and (0,2) and demand in (0,1) and
//! (1,0), the greedy move (0,0) -> (0,1) leaves (0,2) -> (1,0), at a cost of 3 where 2 is possible. For two attributes
//! a maximum flow over cost-1 moves would do; for more, levels of cost compete with each other. Hence an exact min-cost
//! flow.
//! Cost: O(rounds * attributes * cells * log cells), in practice. Oracle: all assignments of a few records, in the
//! tests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::layout;

#[derive(Debug, Clone, Copy)]
struct Arc {
    to: u32,
    capacity: u32,
    cost: i8,
}

/// Arcs in pairs: `arcs[i ^ 1]` is the reverse of `arcs[i]`.
#[derive(Debug, Default)]
struct Network {
    arcs: Vec<Arc>,
    out: Vec<Vec<u32>>,
}

#[expect(clippy::cast_possible_truncation, reason = "networks have fewer than 2^32 nodes and arcs: `min_cost` checks")]
impl Network {
    fn link(&mut self, from: usize, to: usize, capacity: u32, cost: i8) {
        self.out[from].push(self.arcs.len() as u32);
        self.arcs.push(Arc { to: to as u32, capacity, cost });
        self.out[to].push(self.arcs.len() as u32);
        self.arcs.push(Arc { to: from as u32, capacity: 0, cost: -cost });
    }

    /// Shortest distances from `source` by reduced costs, which are not negative; unreached nodes are `None`.
    fn distances(&self, source: usize, potentials: &[i64]) -> Vec<Option<i64>> {
        let mut distances = vec![None; self.out.len()];
        let mut queue = BinaryHeap::from([Reverse((0, source))]);
        while let Some(Reverse((distance, node))) = queue.pop() {
            if distances[node].is_some() {
                continue;
            }
            distances[node] = Some(distance);
            for arc in self.out[node].iter().map(|&a| self.arcs[a as usize]).filter(|arc| arc.capacity > 0) {
                let to = arc.to as usize;
                if distances[to].is_none() {
                    queue.push(Reverse((distance + i64::from(arc.cost) + potentials[node] - potentials[to], to)));
                }
            }
        }
        distances
    }

    /// Whether the arc has room and lies on a shortest path.
    fn is_tight(from: usize, arc: Arc, potentials: &[i64]) -> bool {
        arc.capacity > 0 && i64::from(arc.cost) + potentials[from] == potentials[arc.to as usize]
    }

    /// Steps from `source` over tight arcs.
    fn levels(&self, source: usize, potentials: &[i64]) -> Vec<u32> {
        let mut levels = vec![u32::MAX; self.out.len()];
        levels[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            for &a in &self.out[node] {
                let arc = self.arcs[a as usize];
                if Self::is_tight(node, arc, potentials) && levels[arc.to as usize] == u32::MAX {
                    levels[arc.to as usize] = levels[node] + 1;
                    queue.push_back(arc.to as usize);
                }
            }
        }
        levels
    }

    /// Push all that fits through tight arcs from level to level; returns how much that was.
    fn push(&mut self, source: usize, sink: usize, potentials: &[i64], levels: &[u32]) -> u64 {
        let mut next = vec![0; self.out.len()];
        let mut path: Vec<u32> = Vec::new();
        let (mut node, mut pushed) = (source, 0);
        loop {
            if node == sink {
                let amount = path.iter().map(|&a| self.arcs[a as usize].capacity).min().unwrap_or(0);
                for &a in &path {
                    self.arcs[a as usize].capacity -= amount;
                    self.arcs[a as usize ^ 1].capacity += amount;
                }
                pushed += u64::from(amount);
                path.clear();
                node = source;
            }
            let usable = |&a: &u32| {
                let arc = self.arcs[a as usize];
                Self::is_tight(node, arc, potentials) && levels[arc.to as usize] == levels[node].saturating_add(1)
            };
            if let Some(skipped) = self.out[node][next[node]..].iter().position(usable) {
                next[node] += skipped;
                let a = self.out[node][next[node]];
                path.push(a);
                node = self.arcs[a as usize].to as usize;
            } else if let Some(a) = path.pop() {
                // A dead end: step back and do not try this node again.
                node = self.arcs[a as usize ^ 1].to as usize;
                next[node] += 1;
            } else {
                return pushed;
            }
        }
    }
}

/// The cheapest moves `(from, to, records)` that meet all of `demand` out of `supply`, which is at least as large.
///
/// # Panics
/// If the network has 2^32 arcs or more; callers keep tables below 2^26 cells.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "cells are fewer than 2^32")]
pub fn min_cost(supply: &[u32], demand: &[u32], shape: &[u32]) -> Vec<(u32, u32, u32)> {
    let (cells, axes) = (supply.len(), shape.len());
    assert!(u32::try_from(8 * cells * (axes + 1)).is_ok(), "arcs are numbered by u32");
    let strides = layout::strides(shape);
    let hubs: Vec<usize> = shape.iter().map(|&size| cells / size as usize).collect();
    let first_hub = (axes + 1) * cells;
    let source = first_hub + hubs.iter().sum::<usize>();
    let sink = source + 1;
    let mut network = Network { arcs: Vec::new(), out: vec![Vec::new(); sink + 1] };
    for cell in (0..cells).filter(|&cell| supply[cell] > 0) {
        network.link(source, cell, supply[cell], 0);
    }
    for cell in (0..cells).filter(|&cell| demand[cell] > 0) {
        network.link(axes * cells + cell, sink, demand[cell], 0);
    }
    let mut hub_start = first_hub;
    for axis in 0..axes {
        let size = shape[axis] as usize;
        for cell in 0..cells {
            if axis > 0 || supply[cell] > 0 {
                let line = cell / (strides[axis] * size) * strides[axis] + cell % strides[axis];
                network.link(axis * cells + cell, (axis + 1) * cells + cell, u32::MAX, 0);
                network.link(axis * cells + cell, hub_start + line, u32::MAX, 1);
            }
            if axis + 1 < axes || demand[cell] > 0 {
                let line = cell / (strides[axis] * size) * strides[axis] + cell % strides[axis];
                network.link(hub_start + line, (axis + 1) * cells + cell, u32::MAX, 0);
            }
        }
        hub_start += hubs[axis];
    }

    let mut left: u64 = demand.iter().map(|&d| u64::from(d)).sum();
    let mut potentials = vec![0i64; sink + 1];
    while left > 0 {
        let distances = network.distances(source, &potentials);
        let Some(farthest) = distances[sink] else { break };
        for (potential, distance) in potentials.iter_mut().zip(&distances) {
            *potential += distance.map_or(farthest, |d| d.min(farthest));
        }
        loop {
            let levels = network.levels(source, &potentials);
            if levels[sink] == u32::MAX {
                break;
            }
            left -= network.push(source, sink, &potentials, &levels);
        }
    }

    // Read the moves off: follow the flow from each cell with supply; layers rule out cycles.
    let mut flow: Vec<u32> = (0..network.arcs.len() / 2).map(|pair| network.arcs[2 * pair + 1].capacity).collect();
    let mut next = vec![0; sink + 1];
    let mut moves = Vec::new();
    for cell in (0..cells).filter(|&cell| supply[cell] > 0) {
        loop {
            let (mut node, mut path) = (cell, Vec::new());
            while node != sink {
                let carries = |&&a: &&u32| a % 2 == 0 && flow[a as usize / 2] > 0;
                let Some(skipped) = network.out[node][next[node]..].iter().position(|a| carries(&a)) else { break };
                next[node] += skipped;
                let arc = network.out[node][next[node]] as usize;
                path.push(arc / 2);
                node = network.arcs[arc].to as usize;
            }
            let Some(amount) = path.iter().map(|&pair| flow[pair]).min() else { break };
            for &pair in &path {
                flow[pair] -= amount;
            }
            let last = path[path.len() - 1];
            let end = network.arcs[2 * last + 1].to as usize;
            moves.push((cell as u32, (end - axes * cells) as u32, amount));
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changed(from: u32, to: u32, shape: &[u32]) -> u32 {
        let (mut from, mut to, mut changed) = (from, to, 0);
        for &size in shape.iter().rev() {
            changed += u32::from(from % size != to % size);
            (from, to) = (from / size, to / size);
        }
        changed
    }

    fn cost(moves: &[(u32, u32, u32)], shape: &[u32]) -> u32 {
        moves.iter().map(|&(from, to, records)| records * changed(from, to, shape)).sum()
    }

    /// The oracle: the cheapest way to give each wanted cell one of the freed records, over all ways.
    fn naive(freed: &[u32], wanted: &[u32], shape: &[u32]) -> u32 {
        let Some((&to, others)) = wanted.split_first() else { return 0 };
        let with = |i: usize| {
            let mut rest = freed.to_vec();
            let from = rest.swap_remove(i);
            changed(from, to, shape) + naive(&rest, others, shape)
        };
        (0..freed.len()).map(with).min().expect("as much supply as demand")
    }

    fn counts(cells: usize, list: &[u32]) -> Vec<u32> {
        let mut counts = vec![0; cells];
        for &cell in list {
            counts[cell as usize] += 1;
        }
        counts
    }

    #[test]
    fn greedy_is_refuted() {
        let shape = [2, 3];
        let moves = min_cost(&counts(6, &[0, 2]), &counts(6, &[1, 3]), &shape);
        assert_eq!(cost(&moves, &shape), 2, "{moves:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn matches_naive(
            shape in prop::collection::vec(1u32..4, 1..4),
            freed in prop::collection::vec(0u32..1000, 0..7),
            wanted in prop::collection::vec(0u32..1000, 0..7),
        ) {
            let cells: u32 = shape.iter().product();
            let freed: Vec<u32> = freed.iter().map(|cell| cell % cells).collect();
            let mut wanted: Vec<u32> = wanted.iter().map(|cell| cell % cells).collect();
            wanted.truncate(freed.len());
            let (supply, demand) = (counts(cells as usize, &freed), counts(cells as usize, &wanted));
            let moves = min_cost(&supply, &demand, &shape);
            let (mut taken, mut given) = (vec![0; supply.len()], vec![0; supply.len()]);
            for &(from, to, records) in &moves {
                taken[from as usize] += records;
                given[to as usize] += records;
            }
            prop_assert_eq!(&given, &demand);
            prop_assert!(taken.iter().zip(&supply).all(|(taken, supply)| taken <= supply));
            prop_assert_eq!(cost(&moves, &shape), naive(&freed, &wanted, &shape));
        }
    }
}
