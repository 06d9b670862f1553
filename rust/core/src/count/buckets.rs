//! Columns of buckets, made from columns of codes for a piece of the records at a time.
//!
//! A query may have attributes in buckets. The plan has a column for each attribute and one for each different
//! bucketing. A look-up makes the columns of buckets, in the smallest type, once for each piece; all blocks then count
//! plain columns. Pieces bound the memory: [`PIECE_BYTES`] for all columns of buckets.
//! Cost: about a nanosecond a record for each such column; a block then costs as much as without buckets.
//! Used only if a query has buckets. Oracle: [`super::naive`].

use rayon::prelude::*;

use crate::error::Result;
use crate::parallel::zeros;
use crate::table::{Codes, Column, ColumnMut};

/// Records of a piece: enough that clearing and summing the blocks is cheap; few in tests, to see several.
const PIECE_RECORDS: usize = if cfg!(test) { 1 << 11 } else { 1 << 18 };

/// Memory for the columns of a piece, where there are not too many of them.
const PIECE_BYTES: usize = 64 << 20;

/// Pieces of fewer records cost more to plan and to sum than to count.
const FEWEST_RECORDS: usize = 1 << 10;

/// Records that one task looks up.
const CHUNK: usize = 1 << 15;

/// Codes that a byte can hold.
const BYTE_CODES: usize = 1 << 8;

/// A column of buckets to be made.
#[derive(Debug, Clone)]
pub struct Buckets {
    /// The attribute whose codes are looked up.
    pub attribute: usize,
    /// The bucket of each code; padded to 256 codes if the attribute's type is a byte.
    of: Codes,
}

impl Buckets {
    /// The buckets of an attribute's codes, all of them below `size`.
    #[expect(clippy::cast_possible_truncation, reason = "buckets are below the size")]
    pub fn new(attribute: usize, buckets: &[u32], size: u32) -> Self {
        let all = buckets.iter().copied().chain(std::iter::repeat(0)).take(buckets.len().max(BYTE_CODES));
        let of = match Column::width_for(size) {
            1 => Codes::U8(all.map(|bucket| bucket as u8).collect()),
            2 => Codes::U16(all.map(|bucket| bucket as u16).collect()),
            _ => Codes::U32(all.collect()),
        };
        Self { attribute, of }
    }

    fn width(&self) -> usize {
        self.of.column().width()
    }

    /// Room for the buckets of so many records.
    fn room(&self, records: usize) -> Result<Codes> {
        Ok(match self.of {
            Codes::U8(_) => Codes::U8(zeros(records)?),
            Codes::U16(_) => Codes::U16(zeros(records)?),
            Codes::U32(_) => Codes::U32(zeros(records)?),
        })
    }

    fn look_up(&self, codes: Column<'_>, made: ColumnMut<'_>) {
        match (&self.of, made) {
            (Codes::U8(of), ColumnMut::U8(made)) => look_up(codes, of, made),
            (Codes::U16(of), ColumnMut::U16(made)) => look_up(codes, of, made),
            (Codes::U32(of), ColumnMut::U32(made)) => look_up(codes, of, made),
            _ => unreachable!("room of the buckets' own type"),
        }
    }
}

/// The bucket of each code. A code out of range, because another thread writes to the column, is miscounted: a panic's
/// message would contain the code, which is private.
fn look_up<B: Copy + Default>(codes: Column<'_>, of: &[B], made: &mut [B]) {
    let bucket = |code: usize| of.get(code).copied().unwrap_or_default();
    match codes {
        Column::U8(codes) => {
            // In bounds by its type, so there is no check.
            let of: &[B; BYTE_CODES] = of.first_chunk().expect("buckets of all bytes");
            made.iter_mut().zip(codes).for_each(|(made, &code)| *made = of[usize::from(code)]);
        }
        Column::U16(codes) => made.iter_mut().zip(codes).for_each(|(made, &code)| *made = bucket(code.into())),
        Column::U32(codes) => made.iter_mut().zip(codes).for_each(|(made, &code)| *made = bucket(code as usize)),
    }
}

/// How many records a piece has.
pub fn records_per_piece(all: &[Buckets]) -> usize {
    let row: usize = all.iter().map(Buckets::width).sum();
    (PIECE_BYTES / row.max(1)).clamp(FEWEST_RECORDS, PIECE_RECORDS)
}

/// The columns of one piece, rebuilt for each piece.
pub struct Made(Vec<Codes>);

impl Made {
    /// Room for pieces of up to `records` records; none for columns that are not `wanted`.
    pub fn new(all: &[Buckets], wanted: &[bool], records: usize) -> Result<Self> {
        let room = |(buckets, &wanted): (&Buckets, &bool)| buckets.room(if wanted { records } else { 0 });
        all.iter().zip(wanted).map(room).collect::<Result<_>>().map(Self)
    }

    /// Make the columns of `piece`, the columns of all attributes; returns these and the made ones after them.
    pub fn columns<'a>(&'a mut self, all: &[Buckets], piece: &[Column<'a>], records: usize) -> Vec<Column<'a>> {
        let tasks: Vec<_> = (self.0.iter_mut().zip(all))
            .flat_map(|(made, buckets)| {
                let starts = (0..records).step_by(CHUNK);
                starts.zip(made.chunks_mut(CHUNK)).map(move |(start, room)| (buckets, start, room))
            })
            .collect();
        tasks.into_par_iter().for_each(|(buckets, start, room)| {
            let codes = piece[buckets.attribute].slice(start..records.min(start + CHUNK));
            buckets.look_up(codes, room);
        });
        let made = self.0.iter().map(|codes| codes.column().slice(0..records.min(codes.column().len())));
        piece.iter().copied().chain(made).collect()
    }
}
