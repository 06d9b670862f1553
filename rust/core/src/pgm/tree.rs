//! Exact inference on a junction tree: from potentials to the marginals of all cliques, in two passes.
//!
//! A clique's table begins as the sum of its *terms*, all in logarithms: potentials of measured marginals, structural
//! zeros (minus infinity), and the messages of its children. Upwards, a clique subtracts the largest value of each row
//! (a row: the cells that agree on the separator towards its parent), takes exponentials, and sends the logarithm of
//! the rows' sums. Downwards, each row is scaled to the marginal of the separator, which the parent has by then; the
//! table is then the clique's marginal. There is one exponential a cell, and no row can underflow to zero, for any
//! potentials. Terms inside other terms are added to those first, and margins are taken from them, so that most work is
//! on small tables. Cliques of one depth, and pieces of large tables, are distributed over threads; sums have a fixed
//! order.
//! Cost: about five passes over the cells of the tree, and one for each term that is in no other.

use std::ops::Range;

use rayon::prelude::*;

use super::exp::exp_all;
use super::graph::JunctionTree;
use crate::error::Result;
use crate::margin::CutMargin;
use crate::parallel::{Cancel, zeros};

/// Cells whose exponentials one task computes.
const CHUNK: usize = 1 << 13;

/// The source of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The potential of a factor.
    Factor(usize),
    /// The message of a child.
    Child(usize),
}

/// One of the tables that add up to a clique's.
#[derive(Debug)]
pub struct Term {
    /// Its source.
    pub source: Source,
    cells: usize,
    /// The term that it is added to, or the clique itself; always one after it.
    into: Option<usize>,
    margin: CutMargin,
}

/// A clique of the tree.
#[derive(Debug)]
pub struct Node {
    /// Its attributes, sorted.
    pub attributes: Vec<usize>,
    /// Those it shares with its parent.
    pub separator: Vec<usize>,
    /// Its parent; the root is its own.
    pub parent: usize,
    /// Which of the parent's terms is its message.
    place: usize,
    cells: usize,
    rows: CutMargin,
    /// Small sets first.
    pub terms: Vec<Term>,
}

/// A junction tree with everything that does not depend on the potentials.
#[derive(Debug)]
pub struct Tree {
    /// How many codes each attribute has.
    pub cardinalities: Vec<u32>,
    /// In order of depth, the root first.
    pub nodes: Vec<Node>,
    levels: Vec<Range<usize>>,
    /// For each factor its node and its term there.
    pub homes: Vec<(usize, usize)>,
}

/// The tables of a clique.
#[derive(Debug, Clone)]
pub struct Belief {
    /// The clique's marginal, once the tree is calibrated.
    pub table: Vec<f64>,
    /// The margin on each term's attributes.
    pub terms: Vec<Vec<f64>>,
    sums: Vec<f64>,
    message: Vec<f64>,
}

impl Tree {
    /// Plan a tree that holds all factors, given as sorted sets of attributes.
    ///
    /// # Panics
    /// If a factor is in no clique of the tree.
    pub fn new(cardinalities: &[u32], shape: &JunctionTree, factors: &[Vec<usize>]) -> Self {
        let cells = |set: &[usize]| set.iter().map(|&a| cardinalities[a] as usize).product::<usize>();
        let mut sources: Vec<Vec<(Vec<usize>, Source)>> = vec![Vec::new(); shape.cliques.len()];
        for (i, factor) in factors.iter().enumerate() {
            let holding = (0..shape.cliques.len()).filter(|&n| contains(&shape.cliques[n], factor));
            let home = holding.min_by_key(|&n| cells(&shape.cliques[n])).expect("the tree was made for the factors");
            sources[home].push((factor.clone(), Source::Factor(i)));
        }
        let mut separators = vec![Vec::new()];
        for n in 1..shape.cliques.len() {
            let parent = shape.parents[n];
            let separator: Vec<usize> =
                shape.cliques[n].iter().copied().filter(|a| shape.cliques[parent].binary_search(a).is_ok()).collect();
            sources[parent].push((separator.clone(), Source::Child(n)));
            separators.push(separator);
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(shape.cliques.len());
        for (n, (mut sources, separator)) in sources.into_iter().zip(separators).enumerate() {
            let attributes = &shape.cliques[n];
            sources.sort_by_key(|(set, _)| set.len());
            let into: Vec<Option<usize>> = (0..sources.len())
                .map(|t| {
                    let later = (t + 1..sources.len()).filter(|&u| contains(&sources[u].0, &sources[t].0));
                    later.min_by_key(|&u| cells(&sources[u].0))
                })
                .collect();
            let terms = (0..sources.len()).map(|t| {
                let (set, source) = &sources[t];
                let host = into[t].map_or(&attributes[..], |u| &sources[u].0);
                let margin = CutMargin::new(cardinalities, host, set);
                Term { source: *source, cells: cells(set), into: into[t], margin }
            });
            nodes.push(Node {
                rows: CutMargin::new(cardinalities, attributes, &separator),
                cells: cells(attributes),
                parent: shape.parents[n],
                place: 0,
                terms: terms.collect(),
                attributes: attributes.clone(),
                separator,
            });
        }
        let mut homes = vec![(0, 0); factors.len()];
        let placed: Vec<(usize, usize, Source)> = (nodes.iter().enumerate())
            .flat_map(|(n, node)| node.terms.iter().enumerate().map(move |(t, term)| (n, t, term.source)))
            .collect();
        for (n, t, source) in placed {
            match source {
                Source::Factor(i) => homes[i] = (n, t),
                Source::Child(child) => nodes[child].place = t,
            }
        }
        let deepest = shape.depths.last().map_or(0, |&depth| depth + 1);
        let level = |depth| {
            let start = shape.depths.partition_point(|&d| d < depth);
            start..shape.depths.partition_point(|&d| d <= depth)
        };
        Self { cardinalities: cardinalities.to_vec(), nodes, levels: (0..deepest).map(level).collect(), homes }
    }

    /// Cliques of each depth, from the root on.
    pub fn levels(&self) -> impl Iterator<Item = Range<usize>> {
        self.levels.iter().cloned()
    }

    /// Memory for the tables.
    pub fn beliefs(&self) -> Result<Vec<Belief>> {
        let belief = |node: &Node| {
            Ok(Belief {
                table: zeros(node.cells)?,
                terms: node.terms.iter().map(|term| zeros(term.cells)).collect::<Result<_>>()?,
                sums: vec![0.0; node.rows.cells()],
                message: vec![0.0; node.rows.cells()],
            })
        };
        self.nodes.iter().map(belief).collect()
    }

    /// The marginals of the distribution whose potentials `potential(i, table)` writes, scaled to `total`.
    ///
    /// Returns false where every cell of the domain is forbidden.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`]: the tables are then useless.
    pub fn calibrate(
        &self,
        beliefs: &mut [Belief],
        total: f64,
        potential: impl Fn(usize, &mut [f64]) + Sync,
        cancel: &Cancel,
    ) -> Result<bool> {
        for level in self.levels.iter().rev() {
            let (above, below) = beliefs.split_at_mut(level.end);
            let nodes = self.nodes[level.clone()].par_iter().zip(&mut above[level.clone()]);
            nodes.with_max_len(1).for_each(|(node, belief)| {
                if !cancel.is_cancelled() {
                    node.collect(belief, |source, table| match source {
                        Source::Factor(i) => potential(i, table),
                        Source::Child(child) => table.copy_from_slice(&below[child - level.end].message),
                    });
                }
            });
            cancel.check()?;
        }
        for level in &self.levels {
            let (above, here) = beliefs.split_at_mut(level.start);
            let nodes = self.nodes[level.clone()].par_iter().zip(here);
            nodes.with_max_len(1).for_each(|(node, belief)| {
                if !cancel.is_cancelled() {
                    match above.get(node.parent) {
                        Some(parent) => node.distribute(belief, &parent.terms[node.place]),
                        None => node.distribute(belief, &[total]),
                    }
                }
            });
            cancel.check()?;
        }
        Ok(beliefs[0].sums[0] > 0.0)
    }
}

impl Node {
    /// Add up the terms, take exponentials row by row, and find the message.
    fn collect(&self, belief: &mut Belief, source: impl Fn(Source, &mut [f64])) {
        let Belief { table, terms, sums, message } = belief;
        table.par_chunks_mut(CHUNK).for_each(|cells| cells.fill(0.0));
        for (term, values) in self.terms.iter().zip(&mut *terms) {
            source(term.source, values);
        }
        for (t, term) in self.terms.iter().enumerate() {
            let (done, later) = terms.split_at_mut(t + 1);
            let into = term.into.map_or(&mut *table, |u| &mut later[u - t - 1]);
            term.margin.add(into, &done[t], 1.0);
        }
        self.rows.max(table, message);
        // A row whose cells are all forbidden stays unchanged; its exponentials are zeros.
        for highest in message.iter_mut().filter(|highest| !highest.is_finite()) {
            *highest = 0.0;
        }
        self.rows.add(table, message, -1.0);
        table.par_chunks_mut(CHUNK).for_each(exp_all);
        self.rows.sum(table, sums);
        message.iter_mut().zip(&*sums).for_each(|(message, sum)| *message += sum.ln());
    }

    /// Scale the rows to the marginal of the separator, and take the margins of the terms.
    fn distribute(&self, belief: &mut Belief, separator: &[f64]) {
        let Belief { table, terms, sums, message } = belief;
        for ((factor, wanted), &sum) in message.iter_mut().zip(separator).zip(&*sums) {
            *factor = if sum > 0.0 { wanted / sum } else { 0.0 };
        }
        self.rows.scale(table, message);
        for (t, term) in self.terms.iter().enumerate().rev() {
            let (these, later) = terms.split_at_mut(t + 1);
            let from = term.into.map_or(&**table, |u| &later[u - t - 1]);
            term.margin.sum(from, &mut these[t]);
        }
    }
}

/// Whether a sorted set contains another.
pub fn contains(set: &[usize], part: &[usize]) -> bool {
    part.iter().all(|a| set.binary_search(a).is_ok())
}
