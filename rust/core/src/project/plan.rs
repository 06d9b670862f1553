//! The margins that cliques share, and how each is computed and applied: everything that no sweep changes.
//!
//! **Shared sets** are the intersections of two or more cliques, and the empty set. They are closed under intersection,
//! which is what makes the order work (see [`super`]): the intersection of an intersection of some cliques with one of
//! others is the intersection of all of them. Attributes of one value are left out: they change no table.
//!
//! A clique deals only with its *largest* shared sets (**slots**): tables that agree on those agree on their subsets.
//! A pair of attributes has two slots, its single attributes, for any number of other pairs.
//!
//! **Layout.** All tables have their axes by rising cardinality, so that margins of different cliques have the same
//! layout and the longest axis moves fastest. Leading axes are the rows of a table, the rest its width; rows are
//! processed in slabs that stay in the second-level cache, and the slabs of a large table in parts that run in
//! parallel. None of this depends on the number of threads.
//!
//! Cost: the number of shared sets is at most the number of cells (a clique of k attributes has 2^k subsets and at
//! least as many cells); finding them takes, for every one, the cliques that share an attribute with it.

use std::collections::HashSet;

use crate::error::Result;
use crate::margin::Margin;
use crate::parallel::Cancel;
use crate::query::{self, Query, Target, has_u32_cells};

/// Cells processed at a time: with their copy, half of a usual second-level cache.
const SLAB_CELLS: usize = 1 << 14;

/// Parts of a table that may run in parallel, each with margins of its own.
const PARTS: usize = 8;

/// Tables of at most this many cells are one part: splitting costs more than it gains.
const PART_CELLS: usize = 1 << 17;

/// Attributes, by their rank in the common layout.
pub type Set = Vec<u32>;

/// The constant data of all sweeps.
#[derive(Debug)]
pub struct Plan {
    pub cliques: Vec<CliquePlan>,
    /// Shared sets, small ones first; the first is the empty set.
    pub sets: Vec<SharedSet>,
}

/// A clique's table and the margins it shares.
#[derive(Debug)]
pub struct CliquePlan {
    /// Cardinalities in the order that the caller gave the attributes, and the strides of those axes in the layout.
    pub shape: Vec<u32>,
    pub strides: Vec<usize>,
    pub cells: usize,
    pub width: usize,
    /// Rows in a slab, and in a part.
    pub slab_rows: usize,
    pub part_rows: usize,
    pub slots: Vec<Slot>,
    /// Cells of all slots.
    pub slot_cells: usize,
    /// For slots `a < b`: their common attributes.
    pub overlaps: Vec<Overlap>,
    /// Relative inverse variance of a cell.
    pub precision: f64,
}

/// One of the largest shared sets in a clique.
#[derive(Debug)]
pub struct Slot {
    pub set: usize,
    /// The position of its margin among those of the clique.
    pub offset: usize,
    pub cells: usize,
    /// Cells of the clique summed into one of the margin.
    pub group: f64,
    pub rows: Rows,
    /// The margin that it keeps of a row.
    pub row_margin: Margin,
}

/// Which of the leading axes a margin keeps.
#[derive(Debug, PartialEq, Eq)]
pub enum Rows {
    /// None: rows add up.
    Summed,
    /// All: the margin has one value for each row, in order.
    Plain,
    /// Some: the part of the margin that each row belongs to.
    Mapped(Vec<u32>),
}

/// The attributes that two slots have in common.
#[derive(Debug)]
pub struct Overlap {
    pub from: usize,
    pub to: usize,
    pub out: Margin,
    pub into: Margin,
}

/// A set that cliques share: its margin is the weighted mean of theirs, made to agree with the smaller sets in it.
#[derive(Debug)]
pub struct SharedSet {
    pub size: usize,
    pub cells: usize,
    pub sources: Vec<Source>,
    /// The largest shared sets in it, and how to sum it into them.
    pub inside: Vec<(usize, Margin)>,
}

/// A clique that contains a shared set.
#[derive(Debug)]
pub struct Source {
    pub clique: usize,
    pub slot: usize,
    pub margin: Margin,
    /// Weights of a set's sources add up to one.
    pub weight: f64,
}

impl Plan {
    /// Plan for the tables of `targets`.
    ///
    /// # Errors [`crate::Error::InBuckets`]; [`crate::Error::TableTooLarge`] where tables, results and margins take
    /// more than `memory_limit` bytes; [`crate::Error::Interrupted`].
    pub fn new(cardinalities: &[u32], targets: &[Target], memory_limit: u64, cancel: &Cancel) -> Result<Self> {
        let cliques = targets.iter().map(|target| target.query.clique()).collect::<Result<Vec<_>>>()?;
        // Tables, results and, at most as many again, margins: three `f64` a cell.
        let bytes = |query: &Query| query.cells().saturating_mul(super::BYTES_PER_CELL.into());
        query::check_memory(targets.iter().map(|target| &target.query), memory_limit, bytes, has_u32_cells)?;
        let mut order: Vec<usize> = (0..cardinalities.len()).filter(|&a| cardinalities[a] > 1).collect();
        order.sort_by_key(|&a| (cardinalities[a], a));
        let sizes: Vec<usize> = order.iter().map(|&a| cardinalities[a] as usize).collect();
        let mut ranks = vec![None; cardinalities.len()];
        for (rank, &attribute) in (0u32..).zip(&order) {
            ranks[attribute] = Some(rank);
        }
        let sets: Vec<Set> = cliques
            .iter()
            .map(|clique| {
                let mut set: Set = clique.iter().filter_map(|&a| ranks[a]).collect();
                set.sort_unstable();
                set
            })
            .collect();
        let index = Index::new(&sets, sizes.len());
        let shared = index.closure(cancel)?;

        let heaviest = targets.iter().fold(0.0, |most: f64, target| most.max(target.weight));
        let mut plan = Self { cliques: Vec::with_capacity(cliques.len()), sets: Vec::new() };
        let inside = within(&sets, &shared, sizes.len());
        for (c, ((set, clique), target)) in sets.iter().zip(&cliques).zip(targets).enumerate() {
            cancel.check()?;
            let slots = largest(&shared, &inside[c]);
            let axes: Vec<Option<u32>> = clique.iter().map(|&a| ranks[a]).collect();
            plan.cliques.push(CliquePlan::new(
                set,
                target.query.shape().to_vec(),
                &axes,
                &slots,
                &shared,
                &sizes,
                target.weight / heaviest,
            ));
        }
        plan.sets = shared_sets(&plan.cliques, &shared, &sizes, &inside);
        Ok(plan)
    }
}

impl CliquePlan {
    fn new(
        set: &Set,
        shape: Vec<u32>,
        axes: &[Option<u32>],
        slots: &[usize],
        shared: &[Set],
        sizes: &[usize],
        precision: f64,
    ) -> Self {
        let lengths: Vec<usize> = set.iter().map(|&a| sizes[a as usize]).collect();
        let cells: usize = lengths.iter().product();
        let leading = leading_axes(&lengths);
        let width: usize = lengths[leading..].iter().product();
        let rows = cells / width;
        let slab_rows = (SLAB_CELLS / width).max(1);
        let parts = if cells <= PART_CELLS { 1 } else { PARTS };
        let part_rows = rows.div_ceil(parts).next_multiple_of(slab_rows).min(rows);

        let mut offset = 0;
        let slots: Vec<Slot> = slots
            .iter()
            .map(|&s| {
                let kept: Vec<bool> = set.iter().map(|a| shared[s].contains(a)).collect();
                let slot = Slot::new(s, offset, &lengths, &kept, leading);
                offset += slot.cells;
                slot
            })
            .collect();
        let overlaps = (0..slots.len()).flat_map(|to| (0..to).map(move |from| (from, to))).map(|(from, to)| {
            let (a, b) = (&shared[slots[from].set], &shared[slots[to].set]);
            Overlap { from, to, out: margin_of(a, b, sizes), into: margin_of(b, a, sizes) }
        });
        let overlaps = overlaps.collect();

        let mut steps = vec![1; lengths.len()];
        for axis in (1..lengths.len()).rev() {
            steps[axis - 1] = steps[axis] * lengths[axis];
        }
        let position = |rank: u32| set.iter().position(|&a| a == rank).expect("the clique's own attribute");
        let strides = axes.iter().map(|rank| rank.map_or(0, |rank| steps[position(rank)])).collect();
        Self { shape, strides, cells, width, slab_rows, part_rows, slots, slot_cells: offset, overlaps, precision }
    }
}

impl Slot {
    fn new(set: usize, offset: usize, lengths: &[usize], kept: &[bool], leading: usize) -> Self {
        let axes = |range: std::ops::Range<usize>| range.map(|axis| (lengths[axis], kept[axis]));
        let row_margin = Margin::new(axes(leading..lengths.len()));
        let rows = if !kept[..leading].contains(&true) {
            Rows::Summed
        } else if row_margin.cells() == 1 && !kept[..leading].contains(&false) {
            Rows::Plain
        } else {
            Rows::Mapped(row_map(&lengths[..leading], &kept[..leading]))
        };
        let cells = Margin::new(axes(0..lengths.len())).cells();
        #[expect(clippy::cast_precision_loss, reason = "below 2^53 by the memory limit")]
        let group = (lengths.iter().product::<usize>() / cells) as f64;
        Self { set, offset, cells, group, rows, row_margin }
    }

    /// The position of its margin among those of its clique.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.cells
    }
}

/// How many axes make the rows: one, or more where the first are too short to be split between threads.
fn leading_axes(lengths: &[usize]) -> usize {
    let cells: usize = lengths.iter().product();
    let most = lengths.len().saturating_sub(1);
    let mut leading = most.min(1);
    while cells > PART_CELLS && leading < most && lengths[..leading].iter().product::<usize>() < 4 * PARTS {
        leading += 1;
    }
    leading
}

/// For every row, the cell of the kept leading axes that it belongs to.
fn row_map(lengths: &[usize], kept: &[bool]) -> Vec<u32> {
    let mut map = vec![0u32];
    for (&length, &kept) in lengths.iter().zip(kept) {
        let length = u32::try_from(length).expect("a cardinality");
        let step = |cell: u32| (0..length).map(move |code| if kept { cell * length + code } else { cell });
        map = map.into_iter().flat_map(step).collect();
    }
    map
}

/// Cliques by attribute.
struct Index<'a> {
    cliques: &'a [Set],
    containing: Vec<Vec<usize>>,
}

impl<'a> Index<'a> {
    fn new(cliques: &'a [Set], attributes: usize) -> Self {
        let mut containing = vec![Vec::new(); attributes];
        for (c, clique) in cliques.iter().enumerate() {
            for &a in clique {
                containing[a as usize].push(c);
            }
        }
        Self { cliques, containing }
    }

    /// All intersections of two or more cliques, and the empty set, by size and then by attributes.
    fn closure(&self, cancel: &Cancel) -> Result<Vec<Set>> {
        let mut found: HashSet<Set> = HashSet::from([Set::new()]);
        let mut queue: Vec<Set> = Vec::new();
        let mut seen = vec![usize::MAX; self.cliques.len()];
        let mut stamp = 0;
        for (c, clique) in self.cliques.iter().enumerate() {
            cancel.check()?;
            seen[c] = stamp;
            self.intersect(clique, &mut seen, stamp, &mut found, &mut queue);
            stamp += 1;
        }
        while let Some(set) = queue.pop() {
            cancel.check()?;
            self.intersect(&set, &mut seen, stamp, &mut found, &mut queue);
            stamp += 1;
        }
        let mut sets: Vec<Set> = found.into_iter().collect();
        sets.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        Ok(sets)
    }

    /// Add the intersections of `set` with the cliques that share an attribute with it and are not yet `seen`.
    fn intersect(&self, set: &Set, seen: &mut [usize], stamp: usize, found: &mut HashSet<Set>, queue: &mut Vec<Set>) {
        let mut common = Set::new();
        for &c in set.iter().flat_map(|&a| &self.containing[a as usize]) {
            if seen[c] == stamp {
                continue;
            }
            seen[c] = stamp;
            common.clear();
            common.extend(set.iter().filter(|a| self.cliques[c].binary_search(a).is_ok()));
            if !found.contains(&common) {
                found.insert(common.clone());
                queue.push(common.clone());
            }
        }
    }
}

/// For every clique, the shared sets in it, small ones first.
fn within(cliques: &[Set], shared: &[Set], attributes: usize) -> Vec<Vec<usize>> {
    let index = Index::new(cliques, attributes);
    let mut inside = vec![vec![0]; cliques.len()];
    for (s, set) in shared.iter().enumerate().skip(1) {
        let rarest = set.iter().map(|&a| &index.containing[a as usize]).min_by_key(|cliques| cliques.len());
        for &c in rarest.expect("only the first set is empty") {
            if contains(&cliques[c], set) {
                inside[c].push(s);
            }
        }
    }
    inside
}

fn contains(large: &Set, small: &Set) -> bool {
    small.iter().all(|a| large.binary_search(a).is_ok())
}

/// Those of `candidates` (small ones first) that are in no other.
fn largest(shared: &[Set], candidates: &[usize]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for &s in candidates.iter().rev() {
        if !kept.iter().any(|&k| contains(&shared[k], &shared[s])) {
            kept.push(s);
        }
    }
    kept.reverse();
    kept
}

/// The margin of a table over `set` on its attributes that are in `other`.
fn margin_of(set: &Set, other: &Set, sizes: &[usize]) -> Margin {
    Margin::new(set.iter().map(|a| (sizes[*a as usize], other.binary_search(a).is_ok())))
}

fn shared_sets(cliques: &[CliquePlan], shared: &[Set], sizes: &[usize], inside: &[Vec<usize>]) -> Vec<SharedSet> {
    let cells = |set: &Set| set.iter().map(|&a| sizes[a as usize]).product();
    let mut sets: Vec<SharedSet> = shared
        .iter()
        .map(|set| SharedSet { size: set.len(), cells: cells(set), sources: Vec::new(), inside: Vec::new() })
        .collect();
    // The shared sets inside a set are inside every clique that contains it: take them from the first such clique.
    for (c, (clique, sets_inside)) in cliques.iter().zip(inside).enumerate() {
        for (position, &s) in sets_inside.iter().enumerate() {
            if sets[s].sources.is_empty() {
                let smaller: Vec<usize> =
                    sets_inside[..position].iter().copied().filter(|&t| contains(&shared[s], &shared[t])).collect();
                sets[s].inside = largest(shared, &smaller)
                    .into_iter()
                    .map(|t| (t, margin_of(&shared[s], &shared[t], sizes)))
                    .collect();
            }
            let slot = clique.slots.iter().position(|slot| contains(&shared[slot.set], &shared[s]));
            let slot = slot.expect("every shared set is in a largest one");
            let margin = margin_of(&shared[clique.slots[slot].set], &shared[s], sizes);
            #[expect(clippy::cast_precision_loss, reason = "below 2^53 by the memory limit")]
            let weight = clique.precision / clique.cells as f64;
            sets[s].sources.push(Source { clique: c, slot, margin, weight });
        }
    }
    for set in &mut sets {
        let sum: f64 = set.sources.iter().map(|source| source.weight).sum();
        set.sources.iter_mut().for_each(|source| source.weight /= sum);
    }
    sets
}
