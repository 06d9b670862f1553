//! The kernels of chicle: everything that touches each record or each cell.
//!
//! Plain Rust that knows neither Python nor privacy policy. Records come in as columns of codes ([`table`]). A
//! [`query`] asks for a table of them; a joint value of its axes maps to a cell by a [`layout`]. [`count`] counts
//! queries, [`score`] compares the counts with public tables, [`pack`] packs small attributes into sets, [`sets`] chooses sets by what they tell of triples, [`project`]
//! makes noisy tables agree. [`draw`] draws first records, [`gum`] and [`descent`] fit them to targets, [`pgm`] fits a
//! graphical model instead, [`reweight`] weights on the cells of a small domain or on public rows, and [`response`] finds
//! the record that answers weighted queries best. [`people`] limits the rows of each person, [`digest`] tells whether
//! rows changed, and [`noise`] alone draws exact noise.
//! [`parallel`] and [`random`] hold what the kernels share.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("chicle counts in 64-bit sizes");

pub mod count;
pub mod descent;
pub mod digest;
pub mod draw;
pub mod error;
pub mod gum;
pub mod layout;
mod margin;
pub mod mixture;
pub mod noise;
pub mod pack;
pub mod parallel;
pub mod people;
pub mod pgm;
pub mod project;
pub mod query;
pub mod random;
pub mod response;
pub mod reweight;
pub mod score;
pub mod sets;
mod simd;
pub mod table;

pub use error::{Error, Result};
