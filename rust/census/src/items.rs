//! Survey items beyond the named attributes: `ITEM_098` and on, as many as asked for.
//!
//! Every third item is independent of all other attributes; the others follow one or two of the hub
//! attributes, from weakly to strongly. An item is derived from a hash of its number, so it is the
//! same in any table.

use chicle_core::random::mix;

use super::draw::{below, salt};
use super::rule::Base::{Rare, Zipf};
use super::rule::Classes::Bands;
use super::rule::Effect::{Scatter, Trend};
use super::rule::{Rule, by, household, person};

const PERSON_HUBS: [&str; 8] = ["AGE", "SEX", "EDUC", "OCC", "RELATE", "EMPSTAT", "BPL", "MARST"];
const HOUSEHOLD_HUBS: [&str; 4] = ["COUNTY", "status", "locality", "OWNERSHP"];
const CARDINALITIES: [u16; 16] = [2, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 10, 12, 20, 40, 100];

/// The item that is the `number`-th attribute, from 1.
pub(super) fn item(number: usize) -> Rule {
    let name = format!("ITEM_{number:03}");
    let mut hash = salt(&name);
    let mut pick = |n: u16| {
        hash = mix(hash);
        below(hash, n)
    };
    let cardinality = CARDINALITIES[usize::from(pick(16))];
    let base = if pick(3) == 0 { Rare(0.05) } else { Zipf(0.4 * f64::from(pick(5))) };
    let strength = 0.3 * f64::from(1 + pick(5));
    let bands = 2 + pick(9);
    let person_hub = PERSON_HUBS[usize::from(pick(8))];
    let household_hub = HOUSEHOLD_HUBS[usize::from(pick(4))];
    let scatter = |hub| by(hub, Bands(bands), Scatter(strength));
    match number % 3 {
        0 => person(&name, cardinality, base, vec![]),
        1 => {
            let trend = by(household_hub, Bands(3), Trend(0.5 * strength));
            person(&name, cardinality, base, vec![scatter(person_hub), trend])
        }
        _ => household(&name, cardinality, base, vec![scatter(household_hub)]),
    }
}
