//! The kernels of chicle: everything that touches each record or each cell.
//!
//! Plain Rust that knows neither Python nor privacy policy. Records come in as columns of codes ([`table`]), a set of
//! attributes maps to cells by a [`layout`], marginals are counted by [`count`], made to agree by [`consistency`], exact noise is drawn by [`noise`] and
//! nowhere else, and [`census`] simulates a population to try all this on. [`parallel`] holds what they share.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("chicle counts in 64-bit sizes");

pub mod census;
pub mod consistency;
pub mod count;
pub mod error;
pub mod gum;
pub mod layout;
pub mod noise;
pub mod parallel;
pub mod select;
pub mod table;

pub use error::{Error, Result};
