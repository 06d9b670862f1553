//! Run the plan over a few blocks of rows, one attribute after another.
//!
//! Columns of a tile stay in the second-level cache, so parents are read where they were written.
//! Cost: about 1 ns per parent and 3 ns per draw; 2 bytes per row and step.

use super::draw::bits;
use super::people::People;
use super::plan::{Action, Parent, Step};
use super::roster::{BLOCK, Roster};

/// Rows of a tile.
pub(super) const TILE: usize = 16 * BLOCK;

/// The codes of up to [`TILE`] rows, one column per step of the plan.
pub(super) struct Tile {
    roster: Roster,
    contexts: Vec<u32>,
    columns: Vec<Vec<u16>>,
}

impl Tile {
    pub(super) fn new(steps: usize) -> Self {
        let columns = vec![vec![0; TILE]; steps];
        Self { roster: Roster::new(TILE), contexts: vec![0; TILE], columns }
    }

    pub(super) fn column(&self, step: usize) -> &[u16] {
        &self.columns[step]
    }

    /// All columns of rows `first..first + rows`, which are whole blocks.
    pub(super) fn generate(&mut self, people: &People, steps: &[Step], seed: u64, first: u64, rows: usize) {
        self.roster.settle(people, seed, first, rows);
        for (i, step) in steps.iter().enumerate() {
            // Taken out of the list, so that it can be written while earlier columns are read.
            let mut column = std::mem::take(&mut self.columns[i]);
            let out = &mut column[..rows];
            match &step.action {
                Action::Roster(field) => out.copy_from_slice(&self.roster.field(*field)[..rows]),
                Action::Function { parents, codes } => {
                    self.find_contexts(parents, codes.len(), rows);
                    for (code, &context) in out.iter_mut().zip(&self.contexts) {
                        *code = codes[context as usize];
                    }
                }
                Action::Draw { salt, unit, parents, table } => {
                    self.find_contexts(parents, table.contexts(), rows);
                    let keys = self.roster.keys(*unit);
                    for ((code, &context), &key) in out.iter_mut().zip(&self.contexts).zip(keys) {
                        *code = table.draw(context as usize, bits(key, *salt));
                    }
                }
            }
            if let Some((parent, link)) = step.inherit {
                let relatives = self.roster.links(link).iter().map(|&row| usize::from(row));
                for (row, (code, relative)) in out.iter_mut().zip(relatives).enumerate() {
                    if relative != row {
                        *code = self.columns[parent][relative];
                    }
                }
            }
            self.columns[i] = column;
        }
    }

    /// Add up the parents' offsets; a sum past the last context means "does not apply", which is the last.
    fn find_contexts(&mut self, parents: &[Parent], count: usize, rows: usize) {
        let last = u32::try_from(count - 1).expect("`Model::table` counts contexts in u32");
        let contexts = &mut self.contexts[..rows];
        contexts.fill(0);
        for Parent { column, offsets } in parents {
            for (context, &code) in contexts.iter_mut().zip(&self.columns[*column]) {
                *context += offsets[usize::from(code)];
            }
        }
        for context in contexts {
            *context = (*context).min(last);
        }
    }
}
