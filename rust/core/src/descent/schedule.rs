//! Which attributes are visited at once, and in which order their records are visited.
//!
//! Two attributes that share no marginal can be visited at once: neither changes a residual that the other reads. So
//! the graph of attributes that share a marginal is coloured greedily, from the largest degree down; each colour is a
//! group. Nothing here depends on the number of threads.

use super::problem::View;
use crate::random::Random;

/// Attributes in groups that share no marginal, the busiest first within each.
pub(super) fn groups(views: &[View], marginals: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..views.len()).filter(|&a| movable(&views[a])).collect();
    let cost = |a: usize| views[a].incidences.len();
    order.sort_by_key(|&a| std::cmp::Reverse(cost(a)));
    // For each group, which marginals its attributes are in.
    let mut groups: Vec<(Vec<usize>, Vec<bool>)> = Vec::new();
    for a in order {
        let touched = |used: &[bool]| views[a].incidences.iter().any(|incidence| used[incidence.marginal]);
        let free = groups.iter().position(|(_, used)| !touched(used)).unwrap_or(groups.len());
        if free == groups.len() {
            groups.push((Vec::new(), vec![false; marginals]));
        }
        let (members, used) = &mut groups[free];
        members.push(a);
        views[a].incidences.iter().for_each(|incidence| used[incidence.marginal] = true);
    }
    groups.into_iter().map(|(members, _)| members).collect()
}

/// Whether an attribute is in any marginal and has another value to move to.
fn movable(view: &View) -> bool {
    view.cardinality > 1 && !view.incidences.is_empty()
}

/// All of `0..n` once, from a random start in steps of a random stride.
pub(super) fn strided(n: usize, random: &mut Random) -> impl Iterator<Item = usize> + use<> {
    let start = if n == 0 { 0 } else { random.below(n) };
    let mut stride = if n == 0 { 1 } else { 1 + random.below(n) };
    while greatest_common_divisor(stride, n) > 1 {
        stride = stride % n + 1;
    }
    (0..n).scan(start, move |next, _| {
        let this = *next;
        *next = (*next + stride) % n;
        Some(this)
    })
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_reach_everything_once() {
        for n in [0, 1, 2, 12, 97, 1000] {
            let mut seen: Vec<_> = strided(n, &mut Random::new([n as u64])).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..n), "{n}");
        }
    }
}
