//! Medians and quantiles of what was measured.

/// The `q`-quantile, between two values in proportion; 0 of nothing.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = sorted.len().saturating_sub(1) as f64 * q;
    // A rank below the number of samples, so nothing is lost.
    let at = |rank: f64| sorted.get(rank as usize).copied().unwrap_or_default();
    let (low, high) = (at(rank.floor()), at(rank.ceil()));
    low + (high - low) * rank.fract()
}

/// The median.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Combines what belongs to the same round.
pub fn paired(a: &[f64], b: &[f64], combine: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| combine(*a, *b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_what_was_measured() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&values), 3.0);
        assert_eq!(median(&[1.0, 2.0]), 1.5);
        assert_eq!(quantile(&values, 1.0), 5.0);
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn only_what_is_of_the_same_round_is_compared() {
        assert_eq!(paired(&[2.0, 9.0], &[1.0, 3.0], |a, b| a / b), [2.0, 3.0]);
    }
}
