//! Attributes of the household: where it is, what it lives in, how the slip was filled.
//!
//! Hidden causes connect them with each other and with the people: `locality` (0 city, 1 town, 2 village, 3 farm,
//! 4 ranch, 5 mining camp) and `status` (0 poor to 4 rich) of a household, `origin` of a family.

use super::people::{INSTITUTION, PRIVATE, ROOMING_HOUSE};
use super::rule::Base::{Bell, Heaped, Rare, Weights, Zipf};
use super::rule::Classes::{Bands, Cuts, Each};
use super::rule::Effect::{Add, Band, Hump, Lookup, Odds, Scatter, Shift, Trend, Within};
use super::rule::{Field, MAX, Rule, by, family, household, only, roster};

const HOUSEHOLDS: std::ops::Range<u16> = PRIVATE..ROOMING_HOUSE;
const OWNED: std::ops::Range<u16> = 1..2;
const RENTED: std::ops::Range<u16> = 2..3;

/// A line or a few per attribute: name, cardinality, weights, and what it depends on.
#[rustfmt::skip]
pub(super) fn rules() -> Vec<Rule> {
    vec![
        // Hidden causes.
        household("locality", 6, Weights(&[36.0, 19.0, 14.0, 17.0, 6.0, 8.0]), vec![
            by("COUNTY", Each, Scatter(1.5)), by("NUMPREC", Cuts(&[3, 4, 6]), Shift(0.7)),
            by("head_age", Cuts(&[30, 45, 60]), Shift(0.3))]).hidden(),
        household("status", 5, Bell(0.4, 0.3), vec![
            by("locality", Each, Shift(1.2)), by("COUNTY", Bands(16), Shift(0.5)), by("NUMPREC", Cuts(&[3, 5, 7]), Trend(-1.0)),
            by("head_age", Cuts(&[25, 35, 45, 60, 70]), Hump(0.8))]).hidden(),
        family("origin", 12, Weights(&[56.0, 11.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 0.5, 0.5]), vec![
            by("COUNTY", Each, Scatter(1.1)), by("status", Each, Trend(-1.5)), by("locality", Each, Scatter(0.5))]).hidden(),
        roster("head_age", 116, Field::HeadAge).hidden(),

        // Place: a county, and finer and coarser views of it.
        household("COUNTY", 64, Zipf(1.05), vec![]),
        household("URBAN", 2, Zipf(0.0), vec![by("locality", Each, Add(&[1, 1, 0, 0, 0, 0]))]),
        household("FARM", 2, Zipf(0.0), vec![by("locality", Each, Add(&[0, 0, 0, 1, 1, 0]))]),
        household("CITY", 1162, Zipf(1.6), vec![only("locality", 0..2), by("COUNTY", Each, Within(0.8))]),
        household("SIZEPL", 20, Zipf(0.0), vec![only("CITY", 1..MAX), by("CITY", Each, Lookup)]),
        household("METRO", 5, Rare(0.5), vec![by("COUNTY", Bands(16), Scatter(1.5)), by("locality", Each, Scatter(1.5))]),
        household("METAREA", 84, Zipf(0.8), vec![only("METRO", 2..5), by("COUNTY", Each, Scatter(2.5))]),
        household("METAREAD", 378, Zipf(1.5), vec![only("METAREA", 1..MAX), by("METAREA", Each, Within(0.6))]),
        household("SEA", 17, Zipf(0.0), vec![by("COUNTY", Each, Band)]),
        household("ENUMDIST", 192, Zipf(0.5), vec![by("COUNTY", Each, Within(1.0))]),
        household("WARD", 24, Zipf(0.7), vec![
            only("locality", 0..1), by("COUNTY", Bands(32), Scatter(0.7)), by("status", Each, Scatter(0.4))]),

        // Quarters and families in them.
        roster("GQTYPE", 8, Field::Quarters),
        household("GQ", 3, Zipf(0.0), vec![by("GQTYPE", Each, Add(&[0, 1, 2, 2, 2, 2, 2, 2]))]),
        household("GQTYPED", 36, Zipf(1.0), vec![only("GQTYPE", 1..8), by("GQTYPE", Each, Within(0.0))]),
        roster("NUMPREC", 14, Field::Size),
        roster("HHTYPE", 8, Field::HouseholdType),
        roster("MULTGEN", 4, Field::Generations),

        // Dwelling.
        household("OWNERSHP", 3, Zipf(0.0), vec![
            only("GQTYPE", HOUSEHOLDS), by("head_age", Cuts(&[25, 35, 45, 60]), Trend(-0.9)), by("status", Each, Trend(-0.8)),
            by("locality", Each, Shift(0.6)), by("NUMPREC", Cuts(&[3, 5]), Trend(-0.3))]),
        household("OWNERSHPD", 8, Zipf(1.0), vec![
            only("OWNERSHP", 1..3), by("OWNERSHP", Each, Within(0.0)), by("status", Each, Scatter(0.5))]),
        household("RENT", 113, Heaped(0.22, 0.13), vec![
            only("OWNERSHP", RENTED), by("status", Each, Trend(4.0)), by("locality", Each, Shift(1.5)),
            by("COUNTY", Bands(8), Shift(0.8))]),
        household("VALUEH", 113, Heaped(0.25, 0.14), vec![
            only("OWNERSHP", OWNED), by("status", Each, Trend(5.0)), by("locality", Each, Shift(1.5)),
            by("COUNTY", Bands(8), Shift(0.8))]),
        household("MORTGAGE", 5, Weights(&[55.0, 36.0, 6.0, 3.0]), vec![
            only("OWNERSHP", OWNED), by("head_age", Cuts(&[30, 40, 50, 65]), Trend(-1.2)), by("status", Each, Scatter(0.3))]),
        household("UNITSSTR", 13, Zipf(2.0), vec![
            only("GQTYPE", HOUSEHOLDS), by("locality", Each, Trend(-2.5)), by("OWNERSHP", Each, Trend(2.0)),
            by("status", Each, Scatter(0.3))]),
        household("ROOMS", 16, Bell(0.4, 0.2), vec![
            only("GQTYPE", HOUSEHOLDS), by("NUMPREC", Cuts(&[2, 3, 4, 5, 7]), Trend(1.2)), by("status", Each, Trend(2.0)),
            by("OWNERSHP", Each, Trend(-0.6))]),
        household("BUILTYR", 30, Bell(0.5, 0.3), vec![
            only("GQTYPE", HOUSEHOLDS), by("COUNTY", Bands(16), Scatter(0.4)), by("locality", Each, Shift(0.8)),
            by("status", Each, Trend(-0.8))]),
        household("FUELHEAT", 12, Zipf(1.0), vec![
            only("GQTYPE", HOUSEHOLDS), by("locality", Each, Scatter(0.8)), by("COUNTY", Bands(16), Scatter(0.5)),
            by("status", Each, Shift(0.5))]),
        household("RADIO", 2, Rare(0.82), vec![
            by("status", Each, Odds(&[0.3, 0.7, 1.3, 2.5, 5.0])), by("locality", Each, Shift(0.4))]),

        // The slip: how it was filled and kept. Nothing else depends on it.
        household("SHEET", 40, Zipf(0.2), vec![]),
        household("SPLIT", 2, Rare(0.4), vec![by("GQTYPE", Cuts(&[INSTITUTION]), Odds(&[0.0, 1.0]))]),
        household("SUBSAMP", 100, Zipf(0.0), vec![]),
    ]
}
