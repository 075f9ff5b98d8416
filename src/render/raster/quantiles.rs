//! The extremes and the quantiles of numbers.

/// The smallest and the largest of the finite numbers, if there are any.
#[must_use]
pub fn extremes(numbers: &[f64]) -> Option<(f64, f64)> {
    let finite = numbers.iter().copied().filter(|number| number.is_finite());
    finite.fold(None, |range, number| {
        let (low, high) = range.unwrap_or((number, number));
        Some((low.min(number), high.max(number)))
    })
}

/// Two quantiles of the finite numbers, between 0 and 1, by linear interpolation as in numpy; `None` if no number is finite.
#[must_use]
pub fn quantiles(numbers: &mut Vec<f64>, low: f64, high: f64) -> Option<(f64, f64)> {
    numbers.retain(|number| number.is_finite());
    Some((quantile(numbers, low)?, quantile(numbers, high)?))
}

fn quantile(numbers: &mut [f64], quantile: f64) -> Option<f64> {
    let last = numbers.len().checked_sub(1)?;
    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53")]
    let place = quantile.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and the last place"
    )]
    let index = (place.floor() as usize).min(last);
    let part = place.fract();
    let (_, &mut before, above) = numbers.select_nth_unstable_by(index, f64::total_cmp);
    let after = above.iter().copied().min_by(f64::total_cmp).unwrap_or(before);
    let distance = after - before;
    // Neighbours may be farther apart than the largest number.
    if !distance.is_finite() {
        return Some(before * (1.0 - part) + after * part);
    }
    // numpy interpolates from the nearer end, so that the result never passes it.
    Some(if part < 0.5 { before + distance * part } else { after - distance * (1.0 - part) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        // numpy.percentile([3, 1, 4, 1, 5, 9, 2, 6], [2, 98]) == [1.0, 8.58]
        let mut numbers = vec![3.0, f64::NAN, 1.0, 4.0, 1.0, 5.0, f64::INFINITY, 9.0, 2.0, 6.0];
        assert_eq!(extremes(&numbers), Some((1.0, 9.0)));
        let (low, high) = quantiles(&mut numbers, 0.02, 0.98).unwrap();
        assert!((low - 1.0).abs() < 1e-12 && (high - 8.58).abs() < 1e-12, "{low} {high}");
        assert_eq!(quantiles(&mut numbers, 0.0, 1.0), Some((1.0, 9.0)));
        assert_eq!(quantiles(&mut vec![f64::NAN], 0.0, 1.0), None);
        assert_eq!(extremes(&[]), None);
        let far = 2_f64.powi(1023);
        assert_eq!(quantiles(&mut vec![far, -far], 0.25, 0.5), Some((-far / 2.0, 0.0)));
    }
}
