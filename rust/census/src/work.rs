//! Attributes of work and income, asked of everyone of working age.
//!
//! Occupation codes run from professions to labour, so runs of codes are occupation groups;
//! `wage` is the hidden wage bracket in which the wage code is drawn.

use super::people::WORKING_AGE;
use super::rule::Base::{Bell, Heaped, Rare, Weights, Zipf};
use super::rule::Classes::{Bands, Cuts, Each};
use super::rule::Effect::{Add, Band, Hump, Lookup, Near, Odds, Scatter, Shift, Trend, Within};
use super::rule::{MAX, Rule, by, only, person};

const ADULT: std::ops::Range<u16> = WORKING_AGE..MAX;
const LABOUR_FORCE: std::ops::Range<u16> = 1..3;
const EMPLOYED: std::ops::Range<u16> = 1..2;
const SEEKING: std::ops::Range<u16> = 2..3;
const SAMPLE_LINE: std::ops::Range<u16> = 1..2;
/// Ages at which working life changes.
const CAREER: &[u16] = &[18, 22, 30, 40, 50, 60, 70];

/// A line or a few per attribute: name, cardinality, weights, and what it depends on.
#[rustfmt::skip]
pub(super) fn rules() -> Vec<Rule> {
    vec![
        // 1 at work, 2 seeking work, 3 not in the labour force.
        person("EMPSTAT", 4, Weights(&[52.0, 7.0, 41.0]), vec![
            only("AGE", ADULT), by("AGE", Cuts(&[16, 18, 21, 25, 60, 68, 75]), Odds(&[14.0, 6.0, 1.8, 0.9, 0.7, 1.5, 3.5, 12.0])),
            by("SEX", Each, Odds(&[0.25, 4.0])), by("MARST", Each, Odds(&[1.2, 1.1, 0.8, 0.6, 1.1, 0.7])),
            by("GQTYPE", Cuts(&[2, 6]), Odds(&[1.0, 60.0, 1.0])), by("locality", Each, Scatter(0.3))]).cross(0.35),
        person("EMPSTATD", 15, Zipf(1.0), vec![
            only("EMPSTAT", 1..4), by("EMPSTAT", Each, Within(0.0)), by("SEX", Each, Scatter(0.7)),
            by("AGE", Cuts(&[20, 60]), Scatter(0.7))]),
        person("LABFORCE", 3, Zipf(0.0), vec![by("EMPSTAT", Each, Add(&[0, 2, 2, 1]))]),

        // Occupation and industry.
        person("OCC", 228, Zipf(0.8), vec![
            only("EMPSTAT", LABOUR_FORCE), by("EDUC", Cuts(&[2, 6, 7, 10]), Trend(-1.6)), by("SEX", Each, Scatter(1.1)),
            by("locality", Each, Scatter(0.9)), by("AGE", Cuts(&[22, 45]), Scatter(0.3))]).cross(0.3),
        person("OCCGROUP", 17, Zipf(0.0), vec![only("OCC", 1..MAX), by("OCC", Each, Band)]),
        person("OCC1950", 278, Zipf(4.0), vec![only("OCC", 1..MAX), by("OCC", Each, Near)]),
        person("OCCSCORE", 80, Zipf(0.0), vec![only("OCC", 1..MAX), by("OCC", Each, Lookup)]),
        person("SEI", 97, Zipf(0.0), vec![only("OCC", 1..MAX), by("OCC", Each, Lookup)]),
        person("IND", 132, Zipf(0.8), vec![
            only("EMPSTAT", LABOUR_FORCE), by("OCC", Bands(38), Scatter(1.5)), by("locality", Each, Scatter(0.6))]),
        person("INDGROUP", 17, Zipf(0.0), vec![only("IND", 1..MAX), by("IND", Each, Band)]),
        person("IND1950", 148, Zipf(4.0), vec![only("IND", 1..MAX), by("IND", Each, Near)]),
        person("CLASSWKR", 4, Weights(&[77.0, 19.0, 4.0]), vec![
            only("EMPSTAT", LABOUR_FORCE), by("OCC", Bands(19), Scatter(0.9)), by("AGE", Cuts(CAREER), Trend(0.8)),
            by("FARM", Each, Odds(&[0.7, 3.5]))]),
        person("CLASSWKRD", 17, Zipf(0.8), vec![
            only("CLASSWKR", 1..4), by("CLASSWKR", Each, Within(0.5)), by("OCC", Bands(19), Scatter(0.9))]),
        person("UOCC", 60, Zipf(0.7), vec![
            only("AGE", ADULT), only("SLREC", SAMPLE_LINE), by("OCC", Bands(38), Scatter(1.6)), by("SEX", Each, Scatter(0.6))]),
        person("UIND", 32, Zipf(0.7), vec![only("UOCC", 1..MAX), by("UOCC", Bands(20), Scatter(1.4))]),

        // Time worked.
        person("HRSWORK1", 99, Heaped(0.46, 0.11), vec![
            only("EMPSTAT", EMPLOYED), by("OCC", Bands(19), Shift(1.2)), by("SEX", Each, Trend(-1.0)),
            by("CLASSWKR", Each, Trend(1.5))]),
        person("HRSWORK2", 12, Zipf(0.0), vec![only("HRSWORK1", 1..MAX), by("HRSWORK1", Each, Band)]),
        person("WKSWORK1", 53, Weights(&WEEKS), vec![
            only("AGE", ADULT), by("LABFORCE", Cuts(&[2]), Trend(2.0)), by("AGE", Cuts(CAREER), Hump(0.5)),
            by("OCC", Bands(12), Shift(0.4))]),
        person("DURUNEMP", 100, Heaped(0.0, 0.3), vec![
            only("EMPSTAT", SEEKING), by("AGE", Cuts(CAREER), Trend(1.2)), by("OCC", Bands(12), Shift(0.5)),
            by("SEX", Each, Trend(-0.3))]),

        // Income. Bracket 1 of `wage` is no wage at all.
        person("wage", 25, Bell(0.4, 0.2), vec![
            only("AGE", ADULT), by("CLASSWKR", Each, Odds(&[0.0004, 60.0, 0.001, 0.001])), by("OCC", Bands(19), Shift(1.3)),
            by("SEX", Each, Trend(-1.2)), by("AGE", Cuts(&[18, 24, 35, 50, 65]), Hump(1.6)),
            by("status", Bands(3), Trend(1.2))]).cross(0.15).hidden(),
        person("INCWAGE", 502, Heaped(0.5, 1.0), vec![only("wage", 1..MAX), by("wage", Each, Within(-1.5))]),
        person("INCNONWG", 3, Rare(0.3), vec![
            only("AGE", ADULT), by("CLASSWKR", Each, Odds(&[0.5, 0.4, 6.0, 1.5])), by("AGE", Cuts(CAREER), Trend(0.5)),
            by("status", Each, Trend(0.4))]),
        person("SSENROLL", 3, Rare(0.5), vec![
            only("AGE", ADULT), by("CLASSWKR", Each, Odds(&[0.25, 4.0, 0.2, 0.2])), by("INDGROUP", Each, Shift(0.5)),
            by("SEX", Each, Trend(-0.2))]),

        // The slip.
        person("QOCC", 4, Rare(0.03), vec![only("OCC", 1..MAX), by("OCC", Bands(4), Trend(0.3))]),
    ]
}

/// Weeks worked in the year, from code 1 (none) to 52 (all of it); between them, whole months stand out.
const WEEKS: [f64; 52] = {
    let mut weeks = [0.5; 52];
    let mut month = 3;
    while month < 52 {
        weeks[month] = 1.6;
        month += 4;
    }
    weeks[0] = 12.0;
    weeks[51] = 30.0;
    weeks
};
