//! The kernels of chicle: everything that touches each record or each cell.
//!
//! Plain Rust that knows neither Python nor privacy policy. Records come in as columns of codes ([`table`]), a set of
//! attributes maps to cells by a [`layout`], marginals are counted by [`count`], exact noise is drawn by [`noise`] and
//! nowhere else, [`start`] draws first records and [`descent`] fits them to targets, and [`census`] simulates a
//! population to try all this on. [`parallel`] and [`random`] hold what they share.

pub mod census;
pub mod count;
pub mod descent;
pub mod error;
pub mod layout;
pub mod noise;
pub mod parallel;
pub mod random;
mod simd;
pub mod start;
pub mod table;

pub use error::{Error, Result};
