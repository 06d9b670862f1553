//! A simulated census, for the demo, the tests and the benchmarks: any number of rows, no file to fetch.
//!
//! It is built after the table of the 2018 NIST challenge, the 1940 census of Colorado as coded by IPUMS
//! (662,000 persons, 97 attributes, 21 million cells in all pairs): 97 named attributes, then any
//! number of survey items (`ITEM_098`, ...). Its structure:
//!
//! - **Households** of 1 to 12 people, rooming houses and institutions, in census order. Members share place,
//!   dwelling, rent and ownership; a child's age fits its mother's, its FBPL is its father's BPL, and MOMLOC,
//!   NCHILD, NSIBS and ELDCH agree with the rows around it.
//! - **Hubs**: AGE, SEX, COUNTY, EMPSTAT and OCC, and the hidden `locality`, `status` and `origin`, through
//!   which most pairs depend on each other a little and some a lot; a few attributes (BIRTHQTR, LINE, SHEET,
//!   SLREC, SUBSAMP) on nothing.
//! - **Detailed and general codes**, the general one an exact function of the detailed one: EDUCD > EDUC and
//!   HIGRADE, RACED > RACE, BPLD > BPL, MTONGUED > MTONGUE, HISPAND > HISPAN, RELATED > RELATE, EMPSTATD >
//!   EMPSTAT > LABFORCE, OCC > OCCGROUP, OCCSCORE, SEI, IND > INDGROUP, CLASSWKRD > CLASSWKR, HRSWORK1 >
//!   HRSWORK2, MIGRATE5D > MIGRATE5, METAREAD > METAREA, ENUMDIST > COUNTY > SEA, CITY > SIZEPL, GQTYPED >
//!   GQTYPE > GQ, OWNERSHPD > OWNERSHP; and nearly one-to-one codes, OCC ~ OCC1950 and IND ~ IND1950.
//! - **Structural zeros**: code 0 where a question does not apply. Nobody under 14 works, earns or has
//!   married; men bear no children; only owners have a house value and only tenants a rent; grades, births
//!   and years since arrival are bounded by age.
//! - **Skew**: heavy first codes and Zipf tails over up to 1,162 codes, flags of which 95-99 % are equal,
//!   ages, rents and wages heaped on round numbers.
//!
//! Row r of the population `seed` depends on (seed, r) alone, not on the length or width of the table, nor on
//! the pieces or threads in which it is filled. Attributes are rules (`rule.rs`) in three lists (`place.rs`,
//! `person.rs`, `work.rs`); only the household roster (`people.rs`, `roster.rs`) is written by hand.
//! Cost: 60 ns per row for the roster and about 5 ns per code, 0.6 microseconds a row for all 97 attributes on
//! one thread; [`Census::new`] takes 50 ms and 4 MB for 97.

use chicle_core::Result;
use chicle_core::parallel::Cancel;
use chicle_core::table::{Codes, ColumnMut};
use people::People;
use plan::Plan;
use rayon::prelude::*;
use roster::BLOCK;
use rule::Rule;
use tile::{TILE, Tile};

mod draw;
mod items;
mod model;
mod people;
mod person;
mod place;
mod plan;
mod roster;
mod rule;
mod tile;
mod work;

#[cfg(test)]
mod tests;

/// Rows that a thread makes at a time.
const CHUNK: usize = 1 << 14;

/// Attributes that come first, so that a narrow table is already interesting.
#[rustfmt::skip]
const FIRST: [&str; 15] = [
    "SEX", "AGE", "COUNTY", "RACE", "MARST", "EDUC", "EMPSTAT", "OCC",
    "RELATE", "OWNERSHP", "INCWAGE", "NATIVITY", "CLASSWKR", "URBAN", "NCHILD",
];

/// Name and cardinality of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// An identifier in the manner of IPUMS.
    pub name: String,
    /// Codes are below this.
    pub cardinality: u32,
}

/// The first `d` attributes of the simulated census.
#[must_use]
pub fn attributes(d: usize) -> Vec<Attribute> {
    let (rules, published) = spec(d);
    let rules = published.iter().map(|&i| &rules[i]);
    rules.map(|rule| Attribute { name: rule.name.clone(), cardinality: rule.cardinality.into() }).collect()
}

/// The first `records` people of the population `seed` with the first `d` attributes, made in parallel.
///
/// # Errors
/// [`chicle_core::Error::OutOfMemory`]; [`chicle_core::Error::Interrupted`].
pub fn generate(records: usize, d: usize, seed: u64, cancel: &Cancel) -> Result<Vec<Codes>> {
    let mut columns: Vec<Codes> =
        attributes(d).iter().map(|a| Codes::zeros(a.cardinality, records)).collect::<Result<_>>()?;
    let mut rows: Vec<Vec<ColumnMut<'_>>> = Vec::new();
    rows.resize_with(records.div_ceil(CHUNK), Vec::new);
    for column in &mut columns {
        rows.iter_mut().zip(column.chunks_mut(CHUNK)).for_each(|(row, chunk)| row.push(chunk));
    }
    let census = Census::new(d);
    rows.par_iter_mut().enumerate().try_for_each(|(i, row)| {
        cancel.check()?;
        census.fill(row, seed, (i * CHUNK) as u64);
        Ok(())
    })?;
    Ok(columns)
}

/// All rules, and which of them are the first `d` attributes, in order.
fn spec(d: usize) -> (Vec<Rule>, Vec<usize>) {
    let mut rules: Vec<Rule> = [person::rules(), work::rules(), place::rules()].into_iter().flatten().collect();
    let visible = (0..rules.len()).filter(|&i| !rules[i].latent);
    let rank = |i: usize| FIRST.iter().position(|&name| name == rules[i].name).unwrap_or(FIRST.len());
    let mut published: Vec<usize> = visible.collect();
    published.sort_by_key(|&i| rank(i));
    for number in published.len() + 1..=d {
        published.push(rules.len());
        rules.push(items::item(number));
    }
    published.truncate(d);
    (rules, published)
}

/// The laws of the population, ready to fill tables of the first `d` attributes.
pub struct Census {
    plan: Plan,
    people: People,
    cardinalities: Vec<u16>,
}

impl Census {
    /// Prepare the distributions that the first `d` attributes need.
    #[must_use]
    pub fn new(d: usize) -> Self {
        let (rules, published) = spec(d);
        let cardinalities = published.iter().map(|&i| rules[i].cardinality).collect();
        Self { plan: Plan::new(&rules, &published), people: People::new(), cardinalities }
    }

    /// Fill rows `start_row..start_row + len` of the population `seed`; `len` is the length of the columns.
    ///
    /// Row r depends on (seed, r) alone, so a table may be filled in any pieces, in any order, in parallel.
    ///
    /// # Panics
    /// If there are not `d` columns of one length, or a column's type is too narrow for its cardinality.
    pub fn fill(&self, columns: &mut [ColumnMut<'_>], seed: u64, start_row: u64) {
        let len = check(columns, &self.cardinalities);
        let mut tile = Tile::new(self.plan.steps.len());
        let mut done = 0;
        while done < len {
            let row = start_row + done as u64;
            let block = row / BLOCK as u64 * BLOCK as u64;
            let skip = usize::try_from(row - block).expect("a block is short");
            let taken = skip..(skip + len - done).min(TILE);
            tile.generate(&self.people, &self.plan.steps, seed, block, taken.end.next_multiple_of(BLOCK));
            for (column, &step) in columns.iter_mut().zip(&self.plan.published) {
                write(column, done, &tile.column(step)[taken.clone()]);
            }
            done += taken.len();
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "`check` saw that the codes fit")]
fn write(column: &mut ColumnMut<'_>, start: usize, codes: &[u16]) {
    match column {
        ColumnMut::U8(out) => out[start..].iter_mut().zip(codes).for_each(|(out, &code)| *out = code as u8),
        ColumnMut::U16(out) => out[start..start + codes.len()].copy_from_slice(codes),
        ColumnMut::U32(out) => out[start..].iter_mut().zip(codes).for_each(|(out, &code)| *out = code.into()),
    }
}

/// The common length of the columns.
fn check(columns: &[ColumnMut<'_>], cardinalities: &[u16]) -> usize {
    assert_eq!(columns.len(), cardinalities.len(), "one column per attribute");
    let len = columns.first().map_or(0, length);
    for (column, &cardinality) in columns.iter().zip(cardinalities) {
        assert_eq!(length(column), len, "columns differ in length");
        let fits = cardinality <= 256 || !matches!(column, ColumnMut::U8(_));
        assert!(fits, "{cardinality} codes do not fit u8");
    }
    len
}

fn length(column: &ColumnMut<'_>) -> usize {
    match column {
        ColumnMut::U8(codes) => codes.len(),
        ColumnMut::U16(codes) => codes.len(),
        ColumnMut::U32(codes) => codes.len(),
    }
}
