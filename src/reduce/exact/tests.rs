//! Exact sums against what is known of them, and against integers.

#![expect(
    clippy::float_cmp,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "results are exact"
)]

use proptest::prelude::*;

use super::*;

fn sums(numbers: &[f64]) -> (Signed, Natural) {
    let mut one = ExactSums::new(Exponents::Numbers, 1);
    let mut squares = ExactSums::new(Exponents::Squares, 1);
    for &number in numbers {
        one.add(0, number, 1);
        squares.add(0, number, 1);
    }
    (one.sum(0), squares.sum(0).magnitude)
}

fn sum(numbers: &[f64]) -> f64 {
    rounded(&sums(numbers).0)
}

fn mean_of(numbers: &[f64]) -> f64 {
    mean(&sums(numbers).0, numbers.len() as u64)
}

fn deviation_of(numbers: &[f64]) -> f64 {
    let (sum, squares) = sums(numbers);
    deviation(&sum, &squares, numbers.len() as u64)
}

#[test]
fn sums_are_rounded_once() {
    assert_eq!(sum(&[]), 0.0);
    assert_eq!(sum(&[1e308, 1.0, -1e308]), 1.0);
    assert_eq!(sum(&[1e16, 1.0, 1.0]), 1e16 + 2.0);
    assert_eq!(sum(&[0.1; 10]), 1.0);
    assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    assert_eq!(sum(&[-f64::MAX, -f64::MAX, f64::MAX]), -f64::MAX);
    assert_eq!(sum(&[f64::from_bits(1), f64::from_bits(2)]), f64::from_bits(3));
    assert_eq!(sum(&[f64::MIN_POSITIVE, -f64::from_bits(1)]), f64::MIN_POSITIVE - f64::from_bits(1));
    // A tie, and what lies just beside it.
    assert_eq!(sum(&[1.0, 2_f64.powi(-53)]), 1.0);
    assert_eq!(sum(&[1.0, 2_f64.powi(-53), 2_f64.powi(-1000)]), 1.0 + 2_f64.powi(-52));
    assert_eq!(sum(&[1.0 + 2_f64.powi(-52), 2_f64.powi(-53)]), 1.0 + 2_f64.powi(-51));
}

#[test]
fn means_and_deviations_are_those_of_exact_arithmetic() {
    assert_eq!(mean_of(&[f64::MAX, f64::MAX, f64::MAX]), f64::MAX);
    assert_eq!(deviation_of(&[f64::MAX, f64::MAX]), 0.0);
    assert_eq!(deviation_of(&[f64::MAX, -f64::MAX]), f64::MAX);
    assert_eq!(deviation_of(&[1e15 + 1.0, 1e15 + 3.0]), 1.0);
    assert_eq!(deviation_of(&[0.0, f64::from_bits(4)]), f64::from_bits(2));
    assert_eq!(mean_of(&[1.0, 2.0, 2.0]), 5.0 / 3.0);
    assert_eq!(deviation_of(&[1.0, 2.0, 3.0, 4.0]), 1.25_f64.sqrt());
    assert_eq!(mean_of(&[-1.0, 0.0]), -0.5);
    let integer = |numbers: &[i128]| {
        let square = |number: &i128| number.unsigned_abs().pow(2);
        let squares: u128 = numbers.iter().map(square).sum();
        let squares = Natural::integer([squares as u64, (squares >> 64) as u64, 0]);
        deviation(&Signed::integer(numbers.iter().sum()), &squares, numbers.len() as u64)
    };
    assert_eq!(integer(&[i128::from(i64::MAX), i128::from(i64::MIN)]), 2_f64.powi(63) - 0.5);
    assert_eq!(integer(&[7]), 0.0);
    assert_eq!(mean(&Signed::integer(-(1 << 100)), 1 << 50), -(2_f64.powi(50)));
}

#[test]
fn a_number_many_times_is_that_many_numbers() {
    for number in [1.1, -2.5e-310, 7e200] {
        for exponents in [Exponents::Numbers, Exponents::Squares] {
            let (mut one, mut other) = (ExactSums::new(exponents, 1), ExactSums::new(exponents, 1));
            one.add(0, number, 1000);
            (0..1000).for_each(|_| other.add(0, number, 1));
            assert_eq!(rounded(&one.sum(0)), rounded(&other.sum(0)));
        }
    }
}

#[test]
fn sums_that_need_more_bytes_than_permitted_are_full() {
    let mut sums = ExactSums::new(Exponents::Numbers, 4).within(4 * 8 * 4);
    sums.add(0, 1.0, 1);
    sums.add(3, 1e10, 1);
    assert!(!sums.is_full() && sums.memory_bytes() <= 128);
    sums.add(1, 1e-200, 1);
    assert!(sums.is_full());
}

proptest! {
    #[test]
    fn any_order_and_any_division_gives_the_same_sum(
        numbers in prop::collection::vec((-1e9..1e9_f64, -300..300_i32), 0..60),
        cut in 0..60_usize,
    ) {
        let mut numbers: Vec<f64> = numbers.iter().map(|(number, power)| number * 2_f64.powi(*power)).collect();
        let whole = sums(&numbers);
        let (first, rest) = numbers.split_at(cut.min(numbers.len()));
        let mut parts = ExactSums::new(Exponents::Numbers, 3);
        for &number in first {
            parts.add(1, number, 1);
        }
        let mut other = ExactSums::new(Exponents::Numbers, 2);
        for &number in rest {
            other.add(0, number, 1);
        }
        other.add(1, 5.0, 1);
        let mut cells = [1, 2].into_iter();
        parts.merge(&other, || cells.next().unwrap());
        prop_assert_eq!(rounded(&parts.sum(1)).to_bits(), rounded(&whole.0).to_bits());
        prop_assert_eq!(rounded(&parts.sum(2)), 5.0);
        prop_assert_eq!(rounded(&parts.sum(0)), 0.0);
        numbers.reverse();
        let count = numbers.len().max(1) as u64;
        prop_assert_eq!(mean(&sums(&numbers).0, count).to_bits(), mean(&whole.0, count).to_bits());
        let (sum, squares) = sums(&numbers);
        prop_assert_eq!(deviation(&sum, &squares, count), deviation(&whole.0, &whole.1, count));
    }

    #[test]
    fn sums_and_means_of_whole_numbers_are_those_of_integers(numbers in prop::collection::vec(any::<i32>(), 1..40)) {
        let floats: Vec<f64> = numbers.iter().map(|&number| number.into()).collect();
        let total: i64 = numbers.iter().map(|&number| i64::from(number)).sum();
        prop_assert_eq!(sum(&floats), total as f64);
        let count = numbers.len() as u64;
        prop_assert_eq!(mean_of(&floats), mean(&Signed::integer(total.into()), count));
        // Both are below 2^53, so that the quotient of the processor is rounded once.
        prop_assert_eq!(mean_of(&floats), total as f64 / count as f64);
        // The root lies between the numbers that are half a unit away.
        let found = deviation_of(&floats);
        let squares: i128 = numbers.iter().map(|&number| i128::from(number).pow(2)).sum();
        let variance = squares * i128::from(count) - i128::from(total).pow(2);
        let scaled = found * count as f64;
        prop_assert!((scaled * scaled - variance as f64).abs() <= variance as f64 * 1e-15);
    }
}
