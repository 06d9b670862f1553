//! What the header of `lib.rs` promises, checked on small populations.

#![allow(clippy::cast_precision_loss, reason = "shares of small counts")]

use std::collections::HashMap;

use chicle_core::random::mix;
use proptest::prelude::*;

use super::people::{CHILD, HEAD, People};
use super::roster::Roster;
use super::rule::{Drawn, Field, Link, Source, Unit};
use super::*;

const ROWS: usize = 1 << 16;

/// Rows `start..start + rows` as columns of `u32`.
fn table(census: &Census, seed: u64, start: u64, rows: usize) -> Vec<Vec<u32>> {
    let mut columns = vec![vec![0; rows]; census.cardinalities.len()];
    let mut borrowed: Vec<_> = columns.iter_mut().map(|column| ColumnMut::U32(column)).collect();
    census.fill(&mut borrowed, seed, start);
    columns
}

/// A population of all named attributes, by name.
fn population(rows: usize) -> HashMap<String, Vec<u32>> {
    let names = attributes(97).into_iter().map(|attribute| attribute.name);
    names.zip(table(&Census::new(97), 5, 0, rows)).collect()
}

/// Total variation distance between the joint distribution and the product of the 1-ways.
fn dependence(a: &[u32], b: &[u32]) -> f64 {
    let mut joint: HashMap<(u32, u32), f64> = HashMap::new();
    let (mut left, mut right): (HashMap<u32, f64>, HashMap<u32, f64>) = Default::default();
    let unit = 1.0 / a.len() as f64;
    for (&a, &b) in a.iter().zip(b) {
        *joint.entry((a, b)).or_default() += unit;
        *left.entry(a).or_default() += unit;
        *right.entry(b).or_default() += unit;
    }
    let excess = |((a, b), p): (&(u32, u32), &f64)| (p - left[a] * right[b]).max(0.0);
    joint.iter().map(excess).sum()
}

fn share(column: &[u32], holds: impl Fn(u32) -> bool) -> f64 {
    column.iter().filter(|&&code| holds(code)).count() as f64 / column.len() as f64
}

#[test]
fn the_domain_is_that_of_the_census() {
    let attributes = attributes(97);
    let mut names: Vec<_> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    assert_eq!(names[..FIRST.len()], FIRST);
    let identifier = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_')
    };
    assert!(names.iter().all(identifier));
    assert!(!names.iter().any(|name| name.starts_with("ITEM_")));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 97);
    assert_eq!(super::attributes(98)[97].name, "ITEM_098");
    let cardinalities: Vec<u32> = attributes.iter().map(|attribute| attribute.cardinality).collect();
    let sum: u32 = cardinalities.iter().sum();
    let cells = (sum * sum - cardinalities.iter().map(|c| c * c).sum::<u32>()) / 2;
    assert!((21_200_000..21_600_000).contains(&cells), "{cells} cells in all pairs");
}

#[test]
fn a_narrow_table_is_a_prefix_of_a_wide_one() {
    let wide = table(&Census::new(130), 3, 100, 1_000);
    for d in [1, 2, 8, 15, 41, 97, 98] {
        assert_eq!(table(&Census::new(d), 3, 100, 1_000), wide[..d], "{d} columns");
        assert_eq!(attributes(d), attributes(130)[..d]);
    }
    assert_eq!(attributes(500).len(), 500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn pieces_join_to_the_whole(seed: u64, start in 0..1_u64 << 40, cut in 0_usize..3_000) {
        let census = Census::new(12);
        let whole = table(&census, seed, start, 3_000);
        let first = table(&census, seed, start, cut);
        let second = table(&census, seed, start + cut as u64, 3_000 - cut);
        for ((whole, first), second) in whole.iter().zip(first).zip(second) {
            prop_assert_eq!(whole, &[first, second].concat());
        }
    }
}

#[test]
fn codes_are_the_same_in_any_column_type() {
    let census = Census::new(97);
    let expected = table(&census, 1, 64, 2_000);
    let mut narrow = vec![vec![0_u8; 2_000]; 97];
    let mut wide = vec![vec![0_u16; 2_000]; 97];
    let mut columns: Vec<_> = narrow
        .iter_mut()
        .zip(&mut wide)
        .zip(&census.cardinalities)
        .map(|((narrow, wide), &c)| if c <= 256 { ColumnMut::U8(narrow) } else { ColumnMut::U16(wide) })
        .collect();
    census.fill(&mut columns, 1, 64);
    for (i, &cardinality) in census.cardinalities.iter().enumerate() {
        let codes = (narrow[i].iter().zip(&wide[i])).map(|(&a, &b)| u32::from(a).max(b.into()));
        assert!(codes.eq(expected[i].iter().copied()));
        assert!(expected[i].iter().all(|&code| code < cardinality.into()));
    }
}

#[test]
fn items_stay_within_their_cardinality() {
    let census = Census::new(400);
    for (codes, &cardinality) in table(&census, 9, 0, 2_000).iter().zip(&census.cardinalities) {
        assert!(codes.iter().all(|&code| code < cardinality.into()));
    }
}

#[test]
fn seeds_give_different_people_under_the_same_laws() {
    let census = Census::new(8);
    let (one, other) = (table(&census, 1, 0, ROWS), table(&census, 2, 0, ROWS));
    for (a, b) in one.iter().zip(&other) {
        assert_ne!(a, b);
        for code in 0..4 {
            let gap = share(a, |c| c == code) - share(b, |c| c == code);
            assert!(gap.abs() < 0.02);
        }
    }
    assert_ne!(table(&census, 1, 1 << 20, 640), table(&census, 1, 0, 640));
}

/// Benchmarks are compared across dates: change the population knowingly, and say so in their records.
#[test]
fn the_population_is_frozen() {
    let mut hash = 0;
    for code in table(&Census::new(100), 0, 0, 4_096).concat() {
        hash = mix(hash ^ u64::from(code));
    }
    assert_eq!(hash, 0xddb3_a8bb_060a_b39d, "{hash:#x}");
}

#[test]
fn general_codes_are_functions_of_detailed_ones() {
    let people = population(ROWS);
    for (detailed, general) in [
        ("EDUCD", "EDUC"),
        ("EDUCD", "HIGRADE"),
        ("RACED", "RACE"),
        ("BPLD", "BPL"),
        ("MTONGUED", "MTONGUE"),
        ("HISPAND", "HISPAN"),
        ("RELATED", "RELATE"),
        ("EMPSTATD", "EMPSTAT"),
        ("EMPSTAT", "LABFORCE"),
        ("OCC", "OCCGROUP"),
        ("OCC", "OCCSCORE"),
        ("OCC", "SEI"),
        ("IND", "INDGROUP"),
        ("CLASSWKRD", "CLASSWKR"),
        ("HRSWORK1", "HRSWORK2"),
        ("MIGRATE5D", "MIGRATE5"),
        ("METAREAD", "METAREA"),
        ("ENUMDIST", "COUNTY"),
        ("COUNTY", "SEA"),
        ("CITY", "SIZEPL"),
        ("GQTYPED", "GQTYPE"),
        ("GQTYPE", "GQ"),
        ("OWNERSHPD", "OWNERSHP"),
    ] {
        let mut map = HashMap::new();
        for (&from, &to) in people[detailed].iter().zip(&people[general]) {
            assert_eq!(*map.entry(from).or_insert(to), to, "{detailed} {from} > {general}");
        }
        let mut values: Vec<_> = map.values().collect();
        values.sort_unstable();
        values.dedup();
        assert!(values.len() > 1 && map.len() >= values.len(), "{detailed} > {general}");
    }
}

#[test]
fn structural_zeros_hold() {
    let people = population(ROWS);
    let of = |name: &str, row: usize| people[name][row];
    let applies = |names: &[&str], row, expected: bool| {
        for name in names {
            assert_eq!(of(name, row) > 0, expected, "{name} in row {row}");
        }
    };
    for row in 0..ROWS {
        let (age, woman) = (of("AGE", row), of("SEX", row) == 1);
        let ever_married = of("MARST", row) < 5;
        let in_labour_force = (1..3).contains(&of("EMPSTAT", row));
        assert!(!ever_married || age >= 14);
        assert!(of("RELATE", row) != 1 || of("MARST", row) == 0);
        applies(&["EMPSTAT", "LABFORCE", "INCWAGE", "WKSWORK1", "INCNONWG"], row, age >= 14);
        applies(&["OCC", "IND", "CLASSWKR", "OCC1950", "SEI"], row, in_labour_force);
        applies(&["HRSWORK1"], row, of("EMPSTAT", row) == 1);
        applies(&["DURUNEMP"], row, of("EMPSTAT", row) == 2);
        applies(&["CHBORN"], row, woman && ever_married);
        applies(&["AGEMARR"], row, ever_married);
        applies(&["AGEMONTH"], row, age == 0);
        applies(&["VETSTAT"], row, age >= 17 && !woman);
        applies(&["CITIZEN", "YRSUSA"], row, of("BPL", row) >= 56);
        applies(&["VALUEH", "MORTGAGE"], row, of("OWNERSHP", row) == 1);
        applies(&["RENT"], row, of("OWNERSHP", row) == 2);
        applies(&["OWNERSHP", "ROOMS", "UNITSSTR"], row, of("GQTYPE", row) == 0);
        assert!(of("EDUC", row) == 0 || age >= 5);
        assert!(of("EDUC", row) <= 6 || age >= 18);
        assert!(of("AGEMARR", row) == 0 || of("AGEMARR", row) + 13 <= age);
        assert!(of("YRSUSA", row) <= age.max(1));
    }
}

#[test]
fn members_of_a_household_share_what_is_theirs() {
    let rows = 256 * 64;
    let mut roster = Roster::new(rows);
    roster.settle(&People::new(), 5, 0, rows);
    let people = population(rows);
    for rule in spec(97).0.iter().filter(|rule| !rule.latent) {
        let Source::Drawn(Drawn { unit: unit @ (Unit::Household | Unit::Family), .. }) = rule.source else {
            continue;
        };
        let mut shared = HashMap::new();
        for (key, code) in roster.keys(unit).iter().zip(&people[&rule.name]) {
            assert_eq!(shared.entry(key).or_insert(code), &code, "{}", rule.name);
        }
        assert!(shared.len() > rows / 6);
    }
}

#[test]
fn relatives_fit() {
    let rows = 256 * 64;
    let mut roster = Roster::new(rows);
    roster.settle(&People::new(), 5, 0, rows);
    let people = population(rows);
    let ages = roster.field(Field::Age);
    let mut children = 0;
    for row in 0..rows {
        let father = usize::from(roster.links(Link::Father)[row]);
        let mother = usize::from(roster.links(Link::Mother)[row]);
        assert_eq!(father != row, people["POPLOC"][row] > 0);
        assert_eq!(mother != row, people["MOMLOC"][row] > 0);
        if father != row {
            assert_eq!(people["FBPL"][row], people["BPL"][father]);
            assert_eq!(people["SEX"][father], 0);
        }
        if mother != row {
            assert_eq!(people["MBPL"][row], people["BPL"][mother]);
            assert_eq!(people["SEX"][mother], 1);
            assert!(people["NCHILD"][mother] > 0);
        }
        if people["RELATE"][row] == u32::from(CHILD) && mother != row {
            children += 1;
            assert!(ages[row] + 14 <= ages[mother], "row {row}");
        }
        let starts = row % 64 == 0 || people["RELATE"][row] == u32::from(HEAD);
        let key = roster.keys(Unit::Household)[row];
        assert_eq!(starts, row == 0 || key != roster.keys(Unit::Household)[row - 1], "row {row}");
    }
    assert!(children > rows / 4);
}

#[test]
fn attributes_are_skewed_and_depend_on_each_other() {
    let people = population(ROWS);
    for (flag, least) in [("SPLIT", 0.98), ("DEAF", 0.97), ("SLREC", 0.94), ("RACE", 0.9), ("GQ", 0.95)] {
        let first = share(&people[flag], |code| code == 0);
        assert!((least..0.999).contains(&first), "{flag}: {first}");
    }
    let county = |code| share(&people["COUNTY"], |c| c == code);
    assert!(county(0) > 0.15 && county(0) > 5.0 * county(10) && county(50) > 0.0);

    let at_work: Vec<usize> = (0..ROWS).filter(|&row| people["CLASSWKR"][row] == 1).collect();
    let of = |name: &str| -> Vec<u32> { at_work.iter().map(|&row| people[name][row]).collect() };
    let decile: Vec<u32> = of("INCWAGE").iter().map(|wage| wage / 50).collect();
    for (cause, least) in [("OCCGROUP", 0.15), ("SEX", 0.08), ("AGE", 0.1)] {
        let found = dependence(&decile, &of(cause));
        assert!(found > least, "wage of workers by {cause}: {found}");
    }
    for (a, b, least) in [
        ("AGE", "MARST", 0.3),
        ("SEX", "OCCGROUP", 0.1),
        ("COUNTY", "URBAN", 0.1),
        ("NATIVITY", "MTONGUE", 0.05),
        ("OCC", "OCC1950", 0.5),
        ("EDUC", "OCCGROUP", 0.1),
    ] {
        let found = dependence(&people[a], &people[b]);
        assert!(found > least, "{a} and {b}: {found}");
    }
    for (a, b) in [("BIRTHQTR", "SEX"), ("SLREC", "MARST"), ("LINE", "URBAN"), ("SHEET", "SEX")] {
        let found = dependence(&people[a], &people[b]);
        assert!(found < 0.02, "{a} and {b}: {found}");
    }
}
