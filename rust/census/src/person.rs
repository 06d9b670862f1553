//! Attributes of the person: family, origin, schooling, migration, service.
//!
//! Birthplaces below code 56 are states of the union, the rest foreign; languages other than
//! code 0 are foreign.

use super::people::{FEMALE, MALE, MARRIED, NEVER_MARRIED};
use super::rule::Base::{Bell, Rare, Weights, Zipf};
use super::rule::Classes::{Bands, Cuts, Each};
use super::rule::Effect::{Add, AtMost, Band, Cap, Hump, Odds, Scatter, Shift, Trend, Within};
use super::rule::{Field, Link, MAX, Rule, by, family, only, person, roster};

const FOREIGN: std::ops::Range<u16> = 56..MAX;
const MEN: std::ops::Range<u16> = MALE..FEMALE;
const WOMEN: std::ops::Range<u16> = FEMALE..MAX;
const EVER_MARRIED: std::ops::Range<u16> = MARRIED..NEVER_MARRIED;
/// Stages of life, for what changes slowly with age.
const LIFE: &[u16] = &[5, 14, 18, 25, 35, 45, 55, 65, 75];

/// A line or a few per attribute: name, cardinality, weights, and what it depends on.
#[rustfmt::skip]
pub(super) fn rules() -> Vec<Rule> {
    vec![
        // Family, from the roster.
        roster("SEX", 2, Field::Sex),
        roster("AGE", 116, Field::Age),
        roster("MARST", 6, Field::MaritalStatus),
        roster("RELATE", 13, Field::Relation),
        person("RELATED", 44, Zipf(1.3), vec![
            by("RELATE", Each, Within(0.0)), by("SEX", Each, Scatter(0.6)), by("MARST", Cuts(&[5]), Scatter(0.6))]),
        roster("NCHILD", 10, Field::Children),
        roster("NCHLT5", 6, Field::ChildrenUnder5),
        roster("ELDCH", 60, Field::EldestChild),
        roster("YNGCH", 60, Field::YoungestChild),
        roster("NSIBS", 10, Field::Siblings),
        roster("MOMLOC", 13, Field::MotherLine),
        roster("POPLOC", 13, Field::FatherLine),
        person("AGEMONTH", 15, Zipf(0.0), vec![only("AGE", 0..1)]),
        person("BIRTHQTR", 4, Weights(&[24.0, 24.5, 26.5, 25.0]), vec![]),
        person("AGEMARR", 60, Bell(0.15, 0.12), vec![
            only("MARST", EVER_MARRIED), by("AGE", Each, AtMost(13)), by("SEX", Each, Trend(-0.8))]),
        person("CHBORN", 22, Zipf(0.75), vec![
            only("SEX", WOMEN), only("MARST", EVER_MARRIED),
            by("AGE", Cuts(&[18, 20, 25, 30, 40, 50]), Cap(&[2, 3, 6, 9, 15, 21, 21])),
            by("NCHILD", Cuts(&[1, 2, 3, 5]), Trend(3.0)), by("origin", Bands(4), Shift(0.4))]),

        // Origin: drawn for a family, so relatives agree and lodgers do not.
        family("RACE", 8, Rare(0.03), vec![
            by("origin", Cuts(&[1, 8, 9]), Odds(&[0.02, 0.05, 0.3, 2000.0])), by("origin", Each, Scatter(1.6))]),
        family("RACED", 238, Zipf(2.2), vec![by("RACE", Each, Within(0.3)), by("COUNTY", Bands(4), Scatter(0.4))]),
        family("HISPAN", 5, Rare(0.02), vec![
            by("origin", Each, Odds(&[0.1, 400.0, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 9000.0, 0.1, 0.1, 1.0])),
            by("COUNTY", Bands(8), Scatter(0.4))]),
        family("HISPAND", 40, Zipf(1.2), vec![only("HISPAN", 1..5), by("HISPAN", Each, Within(0.3))]),
        family("SPANNAME", 2, Rare(0.01), vec![by("HISPAN", Each, Odds(&[0.5, 900.0, 500.0, 300.0, 300.0]))]),
        person("BPL", 112, Zipf(1.5), vec![
            by("origin", Each, Scatter(1.1)), by("AGE", Cuts(&[5, 15, 30, 45, 60]), Trend(2.2)),
            by("locality", Bands(3), Scatter(0.3))]),
        person("BPLD", 540, Zipf(1.8), vec![by("BPL", Each, Within(-0.5)), by("origin", Bands(3), Scatter(0.5))]),
        person("FBPL", 112, Zipf(1.0), vec![
            by("BPL", Bands(10), Trend(1.5)), by("origin", Each, Scatter(1.1))]).inherit("BPL", Link::Father),
        person("MBPL", 112, Zipf(1.0), vec![
            by("FBPL", Bands(28), Scatter(1.4)), by("origin", Each, Scatter(0.8))]).inherit("BPL", Link::Mother),
        person("NATIVITY", 8, Zipf(0.0), vec![
            by("BPL", Cuts(&[56]), Add(&[0, 4])), by("FBPL", Cuts(&[56]), Add(&[0, 1])), by("MBPL", Cuts(&[56]), Add(&[0, 2]))]),
        person("CITIZEN", 6, Weights(&[4.0, 60.0, 9.0, 24.0, 3.0]), vec![
            only("BPL", FOREIGN), by("AGE", Cuts(LIFE), Trend(-0.8)), by("origin", Each, Scatter(0.5))]),
        person("YRSUSA", 56, Bell(0.55, 0.25), vec![
            only("BPL", FOREIGN), by("AGE", Each, AtMost(0)), by("origin", Bands(4), Shift(0.5))]),
        person("MTONGUE", 72, Rare(0.2), vec![
            by("origin", Each, Scatter(1.3)), by("NATIVITY", Cuts(&[1, 4]), Odds(&[0.25, 3.0, 15.0]))]),
        person("MTONGUED", 230, Zipf(1.6), vec![by("MTONGUE", Each, Within(0.5))]),

        // Schooling: nobody has more grades than the years since they were five.
        person("EDUC", 12, Weights(&[4.0, 9.0, 40.0, 7.0, 7.0, 4.0, 17.0, 3.0, 3.0, 2.0, 3.0, 1.0]), vec![
            by("AGE", Cuts(&[5, 10, 14, 15, 16, 17, 18, 19, 20, 21, 22]), Cap(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])),
            by("AGE", Cuts(&[35, 50, 65]), Trend(-1.2)), by("status", Each, Trend(2.0)), by("origin", Bands(6), Shift(0.4)),
            by("SEX", Each, Scatter(0.15))]),
        person("EDUCD", 44, Zipf(0.4), vec![by("EDUC", Each, Within(0.2)), by("AGE", Cuts(&[8, 12, 25]), Scatter(0.4))]),
        person("HIGRADE", 24, Zipf(0.0), vec![by("EDUCD", Each, Band)]),
        person("SCHOOL", 3, Rare(0.5), vec![
            only("AGE", 5..MAX),
            by("AGE", Cuts(&[7, 14, 16, 17, 18, 19, 21, 25, 35]), Odds(&[3.0, 40.0, 12.0, 5.0, 2.2, 1.0, 0.3, 0.05, 0.01, 0.002])),
            by("status", Each, Trend(0.4))]),

        // Migration since 1935.
        person("MIGRATE5", 5, Weights(&[58.0, 26.0, 8.0, 7.0, 0.5]), vec![
            by("AGE", Cuts(LIFE), Hump(0.7)), by("OWNERSHP", Each, Scatter(0.8)), by("locality", Each, Scatter(0.5))]),
        person("MIGRATE5D", 17, Zipf(0.9), vec![by("MIGRATE5", Each, Within(0.0)), by("URBAN", Each, Scatter(0.4))]),
        person("MIGPLAC5", 144, Zipf(0.9), vec![
            only("MIGRATE5", 3..5), by("BPL", Bands(14), Scatter(0.9)), by("locality", Each, Scatter(0.4))]),
        person("MIGSEA5", 48, Zipf(0.6), vec![only("MIGRATE5", 1..3), by("SEA", Each, Scatter(1.2))]),

        // Service and health.
        person("VETSTAT", 3, Rare(0.1), vec![
            only("AGE", 17..MAX), only("SEX", MEN), by("AGE", Cuts(&[25, 38, 56, 62]), Odds(&[0.1, 0.15, 3.5, 1.2, 0.6]))]),
        person("VETPER", 12, Zipf(1.1), vec![only("VETSTAT", 2..3), by("AGE", Cuts(&[38, 56, 65]), Scatter(1.5))]),
        person("DEAF", 2, Rare(0.008), vec![by("AGE", Cuts(LIFE), Trend(1.8))]),

        // The slip.
        person("LINE", 40, Zipf(0.0), vec![]),
        person("SLREC", 2, Rare(0.05), vec![]),
        person("QAGE", 4, Rare(0.02), vec![by("AGE", Bands(4), Trend(0.2))]),
    ]
}
