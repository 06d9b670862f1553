//! The marginals of any sets of attributes under a calibrated tree, many at once.
//!
//! Inside a clique a marginal is a margin of the clique's table. Otherwise it is computed by messages along the part of
//! the tree that connects its attributes ([`plan`](super::plan)): a margin of a clique is multiplied by the messages
//! that reach it, and other attributes are summed out, without storing products ([`contract`](super::contract)).
//! Marginals share messages, and all margins of a clique are computed at once: at each axis, the sets without it share
//! one summed table.
//! Cost: a few passes over the cells of the tree for all, and the cost of the plan. That may be high, so there are
//! limits: on the bytes for the tables of one marginal and, if requested, on multiplications. Messages are dropped when
//! all of them take more bytes than the limit, or than [`MOST_KEPT`].

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::contract::{View, contract, reorder};
use super::plan::{Job, Plan};
use super::tree::{Belief, Tree};
use super::{BYTES_PER_CELL, graph, sorted};
use crate::error::{Error, Result};
use crate::margin::Margin;
use crate::parallel::Cancel;

/// The most cells of kept messages: 2 GiB. With more, marginals of wide tables would share little more.
const MOST_KEPT: u128 = 1 << 28;

/// Margins of one clique, by their attributes.
type Margins<'a> = HashMap<&'a [usize], Cow<'a, [f64]>>;

/// The same margins, each in its own slot.
type Pairs<'a> = Vec<(&'a [usize], Cow<'a, [f64]>)>;

/// The marginals of cliques, axes in their order; `None` for one that costs more than `most` multiplications by itself.
///
/// # Errors
/// Without `most`: [`Error::ModelTooLarge`] if an intermediate table takes more than `limit` bytes.
/// [`Error::Interrupted`].
pub fn marginals(
    tree: &Tree,
    beliefs: &[Belief],
    cliques: &[Vec<usize>],
    limit: u64,
    most: Option<u64>,
    cancel: &Cancel,
) -> Result<Vec<Option<Vec<f64>>>> {
    let mut found: Vec<Option<Vec<f64>>> = vec![None; cliques.len()];
    let most_cells = u128::from(limit / BYTES_PER_CELL);
    let most_kept = most_cells.min(MOST_KEPT);
    #[expect(clippy::cast_precision_loss, reason = "a cost")]
    let most_work = most.map_or(f64::INFINITY, |most| most as f64);
    let mut next = 0;
    while next < cliques.len() {
        let mut plan = Plan::new(tree);
        let mut jobs: Vec<(usize, Job)> = Vec::new();
        while next < cliques.len() && plan.stored <= most_kept {
            match plan.marginal(&sorted(cliques[next].iter().copied()), most_cells, most_work) {
                Ok(job) => jobs.push((next, job)),
                Err(_) if most.is_some() => {}
                Err(cells) => {
                    let bytes = cells.saturating_mul(BYTES_PER_CELL.into());
                    return Err(Error::ModelTooLarge { cells, bytes, limit });
                }
            }
            next += 1;
        }
        for (clique, table) in run(tree, beliefs, &plan, &jobs, cliques, cancel)? {
            found[clique] = Some(table);
        }
    }
    Ok(found)
}

/// Shared by all jobs of a plan.
struct Work<'a> {
    tree: &'a Tree,
    margins: Vec<Margins<'a>>,
    messages: Vec<Vec<f64>>,
    plan: &'a Plan<'a>,
    /// Tables that are no longer needed, for reuse: allocation is expensive.
    spare: Mutex<Vec<Vec<f64>>>,
}

/// Compute the messages of a plan, those that need no others first, and then the marginals.
fn run(
    tree: &Tree,
    beliefs: &[Belief],
    plan: &Plan<'_>,
    jobs: &[(usize, Job)],
    cliques: &[Vec<usize>],
    cancel: &Cancel,
) -> Result<Vec<(usize, Vec<f64>)>> {
    let chosen: Vec<usize> = (0..plan.messages.len()).filter(|&message| plan.chosen[message]).collect();
    let mut needed: Vec<BTreeSet<&[usize]>> = vec![BTreeSet::new(); tree.nodes.len()];
    for job in chosen.iter().map(|&message| &plan.messages[message]).chain(jobs.iter().map(|(_, job)| job)) {
        needed[job.node].insert(&job.margin);
    }
    let margins: Vec<Margins<'_>> = (needed.par_iter().enumerate())
        .map(|(n, wanted)| {
            let wanted: Vec<&[usize]> = wanted.iter().copied().collect();
            let table = Cow::Borrowed(&beliefs[n].table[..]);
            let found = if wanted.is_empty() {
                Vec::new()
            } else {
                read_off(tree, table, 1, &tree.nodes[n].attributes, &wanted, cancel)?
            };
            Ok(found.into_iter().collect())
        })
        .collect::<Result<_>>()?;
    let messages = vec![Vec::new(); plan.messages.len()];
    let mut work = Work { tree, margins, messages, plan, spare: Mutex::default() };
    let deepest = chosen.iter().map(|&message| plan.messages[message].depth + 1).max().unwrap_or(0);
    for depth in 0..deepest {
        let these: Vec<usize> = chosen.iter().copied().filter(|&m| plan.messages[m].depth == depth).collect();
        let tables: Vec<Vec<f64>> = (these.par_iter().with_max_len(1))
            .map(|&message| {
                let job = &plan.messages[message];
                let mut table = work.table(job, &job.kept, cancel)?;
                normalise(&mut table, graph::cells(&tree.cardinalities, &job.kept[job.kept.len() - job.wanted..]));
                Ok(table)
            })
            .collect::<Result<_>>()?;
        these.into_iter().zip(tables).for_each(|(message, table)| work.messages[message] = table);
    }
    let tables = jobs.par_iter().with_max_len(1);
    tables.map(|(clique, job)| Ok((*clique, work.table(job, &cliques[*clique], cancel)?))).collect()
}

impl Work<'_> {
    /// The table of a job, its axes in a given order.
    fn table(&self, job: &Job, order: &[usize], cancel: &Cancel) -> Result<Vec<f64>> {
        let sizes = &self.tree.cardinalities;
        let margin = &self.margins[job.node][&job.margin[..]];
        let mut attributes = job.margin.clone();
        let (mut now, mut next) = (Vec::new(), self.spare());
        for (i, (message, gone)) in job.inputs.iter().enumerate() {
            cancel.check()?;
            let table = View { attributes: &attributes, cells: if i == 0 { margin } else { &now } };
            let Job { kept, wanted, .. } = &self.plan.messages[*message];
            let given = View { attributes: kept, cells: &self.messages[*message] };
            attributes = contract(sizes, table, given, *wanted, gone, &mut next);
            if i == 0 && job.inputs.len() > 1 {
                now = self.spare();
            }
            std::mem::swap(&mut now, &mut next);
        }
        cancel.check()?;
        let cells = if job.inputs.is_empty() { margin } else { &now[..] };
        let table = reorder(sizes, View { attributes: &attributes, cells }, order);
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend([now, next].into_iter().filter(|table| table.capacity() > 0));
        Ok(table)
    }

    fn spare(&self) -> Vec<f64> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }
}

/// Make each row of a table sum to one.
fn normalise(table: &mut [f64], width: u128) {
    let Ok(width) = usize::try_from(width) else { unreachable!("less than the table has") };
    table.par_chunks_exact_mut(width).with_min_len(1024).for_each(|row| {
        let sum: f64 = row.iter().sum();
        // Smaller sums have no finite inverse, and their rows no weight.
        let factor = if sum >= f64::MIN_POSITIVE { 1.0 / sum } else { 0.0 };
        for cell in row {
            *cell *= factor;
        }
    });
}

/// The wanted margins, at least one, of a table over the axes decided so far, of `kept` cells, and the attributes
/// `rest`.
fn read_off<'a>(
    tree: &Tree,
    table: Cow<'a, [f64]>,
    kept: usize,
    rest: &[usize],
    wanted: &[&'a [usize]],
    cancel: &Cancel,
) -> Result<Pairs<'a>> {
    cancel.check()?;
    let Some((first, rest)) = rest.split_first() else { return Ok(vec![(wanted[0], table)]) };
    let size = tree.cardinalities[*first] as usize;
    let (with, without): (Vec<_>, Vec<_>) = wanted.iter().partition(|set| set.contains(first));
    if without.is_empty() {
        return read_off(tree, table, kept * size, rest, &with, cancel);
    }
    let margin = Margin::new([(kept, true), (size, false), (table.len() / (kept * size), true)]);
    let summed = Cow::Owned(margin.of(&table));
    if with.is_empty() {
        drop(table);
        return read_off(tree, summed, kept, rest, &without, cancel);
    }
    let (with, without) = rayon::join(
        || read_off(tree, table, kept * size, rest, &with, cancel),
        || read_off(tree, summed, kept, rest, &without, cancel),
    );
    let mut all = with?;
    all.extend(without?);
    Ok(all)
}
