//! What many measurements say together.

/// The middle of some figures, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// Of these figures; `None` without any.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<_> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&least, &greatest) = sorted.first().zip(sorted.last())?;
        let upper = sorted.len() / 2;
        let lower = (sorted.len() - 1) / 2;
        Some(Self {
            median: sorted[lower].midpoint(sorted[upper]),
            least,
            greatest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_between_the_two_in_the_middle() {
        for (figures, median) in [
            (vec![3.0, 1.0, 9.0], 3.0),
            (vec![4.0, 1.0, 2.0, 9.0], 3.0),
            (vec![5.0], 5.0),
        ] {
            let spread = Spread::of(figures.clone()).unwrap();
            assert_eq!(spread.median, median, "{figures:?}");
            let ends = (spread.least, spread.greatest);
            assert_eq!(ends.1, figures.iter().copied().fold(0.0, f64::max));
            assert_eq!(ends.0, figures.iter().copied().fold(f64::MAX, f64::min));
        }
    }

    #[test]
    fn no_figures_have_no_middle() {
        assert_eq!(Spread::of([]), None);
    }
}
