//! Ways to make draws simpler. Each goes on until it gets no further, or the runs are spent.

use super::minimize::Shrinks;

/// Keeps the beginning only, as little of it as will do: it is what decides the shape of a run.
pub(super) fn keep_beginnings(search: &mut dyn Shrinks) {
    let mut keep = 0;
    while keep < search.draws().len() && !search.is_spent() {
        if search.accepts(search.draws()[..keep].to_vec()) {
            return;
        }
        keep += 1 + keep / 4;
    }
}

/// Leaves the end away: halves, quarters and so on.
pub(super) fn cut_tail(search: &mut dyn Shrinks) {
    let mut cut = search.draws().len() / 2;
    while cut > 0 && !search.is_spent() {
        let keep = search.draws().len().saturating_sub(cut);
        if !search.accepts(search.draws()[..keep].to_vec()) {
            cut /= 2;
        }
        cut = cut.min(search.draws().len());
    }
}

/// Deletes spans, the longest first: what comes after them moves up.
pub(super) fn delete_spans(search: &mut dyn Shrinks) {
    over_spans(search, |draws, from, to| {
        let mut without = draws.to_vec();
        without.drain(from..to);
        without
    });
}

/// Makes spans 0, the longest first: what comes after them stays where it is.
pub(super) fn zero_spans(search: &mut dyn Shrinks) {
    over_spans(search, |draws, from, to| {
        let mut zeroed = draws.to_vec();
        zeroed[from..to].fill(0);
        zeroed
    });
}

fn over_spans(search: &mut dyn Shrinks, edit: impl Fn(&[u64], usize, usize) -> Vec<u64>) {
    let mut len = search.draws().len().next_power_of_two() / 2;
    while len > 0 {
        // From the end, where what is done depends on less.
        let mut to = search.draws().len();
        while to > 0 && !search.is_spent() {
            let from = to.saturating_sub(len);
            let draws = search.draws();
            let idle = draws[from..to].iter().all(|draw| *draw == 0);
            if !idle || len == 1 {
                let edited = edit(draws, from, to);
                search.accepts(edited);
            }
            to = from.min(search.draws().len());
        }
        len /= 2;
    }
}

/// Lowers single draws, by halving what is between 0 and the least that still goes wrong.
pub(super) fn lower(search: &mut dyn Shrinks) {
    let mut at = 0;
    while at < search.draws().len() && !search.is_spent() {
        let (mut too_low, mut enough) = (0, search.draws()[at]);
        while enough.saturating_sub(too_low) > 1 && !search.is_spent() {
            let middle = too_low + (enough - too_low) / 2;
            let mut draws = search.draws().to_vec();
            draws[at] = middle;
            match search.accepts(draws) {
                true => {
                    let left = search.draws().get(at).copied();
                    enough = left.unwrap_or(0).min(middle);
                }
                false => too_low = middle,
            }
        }
        at += 1;
    }
}
