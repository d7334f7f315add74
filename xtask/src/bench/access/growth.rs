//! How time and memory grow with the cluster: the exponent of a power law.

/// Fits `y = a * x^k` by least squares over the logarithms and returns `k`; none of fewer than two different sizes.
/// Points that are not positive are left out.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> =
        points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0).map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = logs.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (logs.len() > 1 && spread > 0.0).then(|| together / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_of_a_power_law_is_found() {
        let square: Vec<(f64, f64)> = [1.0, 10.0, 50.0, 200.0].map(|x| (x, 3.0 * x * x)).to_vec();
        assert!((exponent(&square).unwrap() - 2.0).abs() < 1e-9);
        // A fixed cost flattens the small end.
        let flat: Vec<(f64, f64)> = [1.0, 10.0, 50.0].map(|x| (x, 100.0 + x)).to_vec();
        assert!(exponent(&flat).unwrap() < 0.2);
    }

    #[test]
    fn nothing_is_fitted_to_one_size() {
        assert_eq!(exponent(&[(5.0, 1.0)]), None);
        assert_eq!(exponent(&[(5.0, 1.0), (5.0, 2.0)]), None);
        assert_eq!(exponent(&[(5.0, 1.0), (6.0, 0.0)]), None);
    }
}
