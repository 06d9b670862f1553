//! The kernels of chicle: everything that touches each record or each cell.
//!
//! Plain Rust that knows neither Python nor privacy policy. Records come in as columns of codes ([`table`]), a set of
//! attributes maps to cells by a [`layout`], marginals are counted by [`count`] and made to agree by [`consistency`],
//! pairs are scored by [`select`], the rows of each person limited by [`people`], exact noise is drawn by [`noise`] and
//! nowhere else, [`start`] draws first records, [`gum`] and [`descent`] fit them to targets, [`pgm`] fits a graphical
//! model instead, and [`census`] simulates a population to try all this on. [`parallel`] and [`random`] hold what they
//! share.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("chicle counts in 64-bit sizes");

mod axes;
pub mod census;
pub mod consistency;
pub mod count;
pub mod descent;
pub mod error;
pub mod gum;
pub mod layout;
pub mod noise;
pub mod pack;
pub mod parallel;
pub mod people;
pub mod pgm;
pub mod random;
pub mod select;
mod simd;
pub mod start;
pub mod table;

pub use error::{Error, Result};
