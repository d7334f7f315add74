//! Medians and quantiles of what was measured.

/// The `q`-quantile by the nearest rank; 0 of nothing.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    // A rank below the number of samples, so nothing is lost.
    let rank = (last as f64 * q).ceil() as usize;
    sorted.get(rank.min(last)).copied().unwrap_or_default()
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
    fn quantiles_are_values_that_were_measured() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&values), 3.0);
        assert_eq!(quantile(&values, 0.99), 5.0);
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn only_what_is_of_the_same_round_is_compared() {
        assert_eq!(paired(&[2.0, 9.0], &[1.0, 3.0], |a, b| a / b), [2.0, 3.0]);
    }
}
