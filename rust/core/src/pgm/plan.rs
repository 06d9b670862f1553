//! Plan the marginals that no clique of the tree holds: which messages, in which order, at what cost.
//!
//! A *message* over an edge of the tree is a conditional table, P(wanted attributes behind the edge | separator). A
//! clique computes it from its own margin and the messages of the cliques behind; a marginal is computed the same way,
//! at a clique where messages from all sides meet. A message depends only on the edge and the wanted attributes, so
//! marginals share it: all that want `a` from far away use one chain of tables P(a | separator).
//! Messages of a marginal may meet at any clique between its attributes; the plan takes the one that adds the least
//! cost. Nothing is computed here. Cost: O(cliques between the attributes) for each marginal.

use std::collections::{BTreeMap, HashMap};

use super::graph::cells;
use super::tree::{Tree, contains};

/// A stored cell costs about as much as this many multiplications, because of its memory.
const STORED: f64 = 10.0;

/// A table to compute at a clique.
#[derive(Debug, Clone)]
pub struct Job {
    /// The clique.
    pub node: usize,
    /// Attributes of the result; for a message those of the separator, then the wanted ones.
    pub kept: Vec<usize>,
    /// How many of the last attributes are conditional on the others; none for a marginal.
    pub wanted: usize,
    /// The margin of the clique to start from, sorted.
    pub margin: Vec<usize>,
    /// Messages to multiply it by, in this order, and what to sum out with each.
    pub inputs: Vec<(usize, Vec<usize>)>,
    /// Its cost, including the messages that it needs.
    pub work: f64,
    /// Its cost without them.
    own: f64,
    /// Cells of its largest table, or of a message that it needs.
    pub largest: u128,
    /// Messages before it in a chain.
    pub depth: usize,
}

/// Messages so far.
#[derive(Debug)]
pub struct Plan<'a> {
    tree: &'a Tree,
    /// For each attribute and each clique without it: the next clique on the way there.
    sides: Vec<Vec<usize>>,
    /// All messages considered so far.
    pub messages: Vec<Job>,
    /// Whether each is in the plan.
    pub chosen: Vec<bool>,
    /// Cells of the messages in the plan.
    pub stored: u128,
    known: HashMap<(usize, usize, Vec<usize>), usize>,
}

impl<'a> Plan<'a> {
    /// An empty plan.
    pub fn new(tree: &'a Tree) -> Self {
        let nodes = &tree.nodes;
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        for (n, node) in nodes.iter().enumerate().skip(1) {
            neighbours[n].push(node.parent);
            neighbours[node.parent].push(n);
        }
        let mut sides = vec![vec![usize::MAX; nodes.len()]; tree.cardinalities.len()];
        for (attribute, sides) in sides.iter_mut().enumerate() {
            // Outwards from the cliques that have it.
            let mut reached: Vec<usize> =
                (0..nodes.len()).filter(|&n| nodes[n].attributes.binary_search(&attribute).is_ok()).collect();
            let mut seen = vec![false; nodes.len()];
            for &n in &reached {
                seen[n] = true;
            }
            while let Some(n) = reached.pop() {
                for &next in &neighbours[n] {
                    if !std::mem::replace(&mut seen[next], true) {
                        sides[next] = n;
                        reached.push(next);
                    }
                }
            }
        }
        Self { tree, sides, messages: Vec::new(), chosen: Vec::new(), stored: 0, known: HashMap::new() }
    }

    /// Plan the marginal of a sorted set; `Err` with the cells of its largest table if all ways have one above `limit`
    /// cells, or cost more than `most`.
    pub fn marginal(&mut self, set: &[usize], limit: u128, most: f64) -> Result<Job, u128> {
        let nodes = &self.tree.nodes;
        let holding = (0..nodes.len()).filter(|&n| contains(&nodes[n].attributes, set));
        let ways: Vec<usize> = match holding.min_by_key(|&n| cells(&self.tree.cardinalities, &nodes[n].attributes)) {
            Some(node) => vec![node],
            None => (0..nodes.len()).filter(|&n| self.is_between(n, set)).collect(),
        };
        let ways: Vec<Job> = ways.into_iter().map(|n| self.job(n, set.to_vec(), 0)).collect();
        let smallest = ways.iter().map(|way| way.largest).min().unwrap_or(0);
        let cheapest = ways.iter().map(|way| way.work).fold(f64::INFINITY, f64::min);
        if cheapest > most {
            return Err(smallest);
        }
        let ways = ways.into_iter().filter(|way| way.largest <= limit).map(|way| (self.added(&way), way));
        let best = ways.min_by(|(one, _), (other, _)| one.total_cmp(other)).ok_or(smallest)?.1;
        for (message, _) in &best.inputs {
            self.choose(*message);
        }
        Ok(best)
    }

    /// Whether a clique has one of the attributes, or lies on a path to them.
    fn is_between(&self, node: usize, set: &[usize]) -> bool {
        let side = |a: &usize| self.sides[*a][node];
        let first = set.first().map(side);
        set.iter().any(|a| side(a) == usize::MAX || Some(side(a)) != first)
    }

    /// The table over `kept` at a clique; its last `wanted` attributes are conditional on the others.
    fn job(&mut self, node: usize, kept: Vec<usize>, wanted: usize) -> Job {
        let sizes = &self.tree.cardinalities;
        let mut behind: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut margin = Vec::new();
        for &a in &kept {
            match self.sides[a][node] {
                usize::MAX => margin.push(a),
                side => behind.entry(side).or_default().push(a),
            }
        }
        let mut inputs: Vec<(usize, Vec<usize>)> = Vec::new();
        for (side, mut attributes) in behind {
            attributes.sort_unstable();
            let message = self.message(side, node, attributes);
            inputs.push((message, self.separator(side, node).to_vec()));
        }
        margin.extend(inputs.iter().flat_map(|(_, separator)| separator));
        margin.sort_unstable();
        margin.dedup();
        let mut job = Job {
            own: STORED * number(cells(sizes, &kept)),
            largest: cells(sizes, &kept),
            depth: 0,
            node,
            wanted,
            work: 0.0,
            inputs: Vec::new(),
            margin: margin.clone(),
            kept,
        };
        // Take the message with the smallest product next: each leaves fewer attributes.
        let mut now = margin;
        while !inputs.is_empty() {
            let product = |(message, _): &(usize, Vec<usize>)| {
                cells(sizes, &now).saturating_mul(cells(sizes, self.fresh(*message)))
            };
            let next = (0..inputs.len()).min_by_key(|&i| product(&inputs[i])).unwrap_or(0);
            job.own += number(product(&inputs[next]));
            let (message, separator) = inputs.remove(next);
            let needed = |a: &usize| job.kept.contains(a) || inputs.iter().any(|(_, other)| other.contains(a));
            let gone: Vec<usize> = separator.into_iter().filter(|a| now.contains(a) && !needed(a)).collect();
            now.retain(|a| !gone.contains(a));
            now.extend(self.fresh(message));
            let input = &self.messages[message];
            job.largest = job.largest.max(input.largest).max(cells(sizes, &now));
            job.depth = job.depth.max(input.depth + 1);
            job.work += input.work;
            job.inputs.push((message, gone));
        }
        job.work += job.own;
        job
    }

    /// The message of the wanted attributes behind an edge.
    fn message(&mut self, from: usize, to: usize, wanted: Vec<usize>) -> usize {
        let key = (from, to, wanted);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let kept = [self.separator(from, to), &key.2].concat();
        let job = self.job(from, kept, key.2.len());
        self.messages.push(job);
        self.chosen.push(false);
        self.known.insert(key, self.messages.len() - 1);
        self.messages.len() - 1
    }

    /// The attributes that a message adds.
    fn fresh(&self, message: usize) -> &[usize] {
        let Job { kept, wanted, .. } = &self.messages[message];
        &kept[kept.len() - wanted..]
    }

    /// The attributes that two neighbours share: the separator of the deeper one.
    fn separator(&self, one: usize, other: usize) -> &'a [usize] {
        &self.tree.nodes[one.max(other)].separator
    }

    /// The cost that a job adds to the plan.
    fn added(&self, job: &Job) -> f64 {
        let missing = job.inputs.iter().map(|(message, _)| *message).filter(|&message| !self.chosen[message]);
        job.own + missing.map(|message| self.added(&self.messages[message])).sum::<f64>()
    }

    fn choose(&mut self, message: usize) {
        if !std::mem::replace(&mut self.chosen[message], true) {
            let stored = cells(&self.tree.cardinalities, &self.messages[message].kept);
            self.stored = self.stored.saturating_add(stored);
            let inputs: Vec<usize> = self.messages[message].inputs.iter().map(|(input, _)| *input).collect();
            for input in inputs {
                self.choose(input);
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a cost")]
fn number(cells: u128) -> f64 {
    cells as f64
}
