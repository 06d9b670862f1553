//! Exact counts of any list of cliques.
//!
//! [`plan`] covers the cliques by a smaller number of blocks, [`histogram`] counts a block over the records,
//! [`project`] reads the cliques off it, and [`stream`] does so batch by batch. Counts are integers, so sums over
//! threads and batches are exact and the same in any order. Oracle: [`naive`].
//!
//! Threads share out the blocks; where there are fewer blocks than threads want, each block's records are cut too.

pub mod histogram;
pub mod naive;
pub mod plan;
pub mod project;
pub mod stream;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::error::Result;
use crate::layout;
use crate::parallel::{self, Cancel};
use crate::table::{Column, Table};
use histogram::NARROW_CELLS;
use plan::{Block, Plan};

/// Memory that the results of one call may take unless the caller says otherwise: 4 GiB.
pub const MEMORY_LIMIT: u64 = 4 << 30;

/// Records counted before the `u32` counters of a block are added to the results; few in tests, to see it happen.
const MAX_SPAN: usize = if cfg!(test) { 1 << 17 } else { 1 << 31 };

/// Memory for copies of a block's table when its records are cut between threads.
const COPIES_BYTES: usize = 16 << 20;

/// Count every clique over the table. Axes are in the order each clique gives its attributes.
///
/// # Errors
/// [`crate::Error::TableTooLarge`] before anything is counted; [`crate::Error::OutOfMemory`];
/// [`crate::Error::Interrupted`].
pub fn count(table: &Table<'_>, cliques: &[Vec<usize>], memory_limit: u64, cancel: &Cancel) -> Result<Vec<Vec<i64>>> {
    let plan = Plan::new(table.cardinalities(), cliques, table.records(), memory_limit)?;
    let mut results = Results::new(&plan)?;
    results.add(&plan, table, cancel)?;
    Ok(results.into_tables(&plan))
}

/// Count every clique, hand each table to `see` once it is whole, and keep only what that returns.
///
/// Axes are as in [`count`]. The tables of a block live until the block is seen, so memory is that of the blocks at work
/// and not of all cliques; `memory_limit` is for each clique alone.
///
/// # Errors
/// [`crate::Error::TableTooLarge`] before anything is counted; [`crate::Error::Interrupted`].
///
/// # Panics
/// Only if `see` does.
pub fn count_each<T: Send>(
    table: &Table<'_>,
    cliques: &[Vec<usize>],
    memory_limit: u64,
    cancel: &Cancel,
    see: impl Fn(usize, &[i64]) -> T + Sync,
) -> Result<Vec<T>> {
    let plan = Plan::for_each(table.cardinalities(), cliques, table.records(), memory_limit)?;
    let one_block = |block: &Block| {
        cancel.check()?;
        let mut tables: Vec<Vec<i64>> = block.margins.iter().map(|m| vec![0; plan.cells[m.clique]]).collect();
        for start in (0..table.records()).step_by(MAX_SPAN) {
            let span = table.slice(start..table.records().min(start + MAX_SPAN));
            add_block(&mut tables, block, &span, plan.blocks.len(), cancel);
        }
        cancel.check()?;
        Ok(block.margins.iter().zip(&tables).map(|(m, counts)| (m.clique, see(m.clique, counts))).collect())
    };
    let seen: Result<Vec<Vec<(usize, T)>>> = plan.blocks.par_iter().with_max_len(1).map(one_block).collect();
    let mut seen: Vec<(usize, T)> = seen?.into_iter().flatten().collect();
    seen.sort_unstable_by_key(|&(clique, _)| clique);
    Ok(seen.into_iter().map(|(_, value)| value).collect())
}

/// The counts so far, block by block and within a block in the order of its margins.
#[derive(Debug, Clone)]
struct Results(Vec<Vec<Vec<i64>>>);

impl Results {
    fn new(plan: &Plan) -> Result<Self> {
        let zeros = |block: &Block| block.margins.iter().map(|m| parallel::zeros(plan.cells[m.clique])).collect();
        plan.blocks.iter().map(zeros).collect::<Result<_>>().map(Self)
    }

    /// Add the records of `table`. After an error the counts are useless.
    fn add(&mut self, plan: &Plan, table: &Table<'_>, cancel: &Cancel) -> Result<()> {
        for start in (0..table.records()).step_by(MAX_SPAN) {
            let span = table.slice(start..table.records().min(start + MAX_SPAN));
            self.0.par_iter_mut().zip(&plan.blocks).with_max_len(1).for_each(|(tables, block)| {
                if !cancel.is_cancelled() {
                    add_block(tables, block, &span, plan.blocks.len(), cancel);
                }
            });
        }
        cancel.check()
    }

    fn merge(&mut self, other: &Self) {
        let pairs = self.0.iter_mut().flatten().zip(other.0.iter().flatten());
        for (sum, count) in pairs.flat_map(|(a, b)| a.iter_mut().zip(b)) {
            *sum += count;
        }
    }

    fn add_tables(&mut self, plan: &Plan, tables: &[&[i64]]) {
        for (counts, block) in self.0.iter_mut().zip(&plan.blocks) {
            for (table, margin) in counts.iter_mut().zip(&block.margins) {
                table.iter_mut().zip(tables[margin.clique]).for_each(|(sum, count)| *sum += count);
            }
        }
    }

    fn into_tables(self, plan: &Plan) -> Vec<Vec<i64>> {
        let mut tables = vec![Vec::new(); plan.cliques.len()];
        for (counts, block) in self.0.into_iter().zip(&plan.blocks) {
            for (table, margin) in counts.into_iter().zip(&block.margins) {
                tables[margin.clique] = table;
            }
        }
        tables
    }
}

fn add_block(tables: &mut [Vec<i64>], block: &Block, span: &Table<'_>, blocks: usize, cancel: &Cancel) {
    let columns: Vec<Column<'_>> = block.attributes.iter().map(|&a| span.columns()[a]).collect();
    let strides = layout::strides(&block.shape);
    let pieces = pieces(block.cells, span.records(), blocks);
    if let ([margin], [table]) = (&block.margins[..], &mut *tables)
        && block.cells > NARROW_CELLS
        && pieces == 1
        && margin.strides == strides
    {
        histogram::count_direct(&columns, &strides, table, cancel);
        return;
    }
    let counts = if pieces == 1 {
        histogram::count(&columns, &strides, block.cells, span.records(), cancel)
    } else {
        let length = span.records().div_ceil(pieces);
        (0..pieces)
            .into_par_iter()
            .map(|piece| {
                let range = (piece * length).min(span.records())..((piece + 1) * length).min(span.records());
                let columns: Vec<_> = columns.iter().map(|c| c.slice(range.clone())).collect();
                histogram::count(&columns, &strides, block.cells, range.len(), cancel)
            })
            .reduce_with(|mut sums, counts| {
                sums.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += count);
                sums
            })
            .expect("at least one piece")
    };
    let kept: Vec<u64> = block.margins.iter().map(|m| m.kept).collect();
    project::project(&counts, &block.shape, &kept, &mut |m, counts| {
        let margin = &block.margins[m];
        project::add_permuted(&mut tables[m], &margin.shape, counts, &margin.strides);
    });
}

/// How many ways to cut a block's records: as many as keep all threads busy, while the copies stay small beside the
/// table itself and each piece is worth its copy.
fn pieces(cells: usize, records: usize, blocks: usize) -> usize {
    let wanted = (4 * rayon::current_num_threads()).div_ceil(blocks);
    let afforded = 1 + COPIES_BYTES / (cells * size_of::<u32>());
    let worthwhile = 1 + records / (1 << 16).max(4 * cells);
    wanted.min(afforded).min(worthwhile).min(4 * rayon::current_num_threads())
}
