//! [`Mapping`]: the place of a number within a range, on a linear or another scale.

/// How places follow from numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scale {
    /// Equal steps of the number.
    #[default]
    Linear,
    /// Equal factors of the number. Numbers of 0 and less are below every range.
    Log,
    /// The square root of the linear place.
    Sqrt,
    /// The linear place to this power.
    Gamma(f64),
}

impl Scale {
    /// Parses `linear`, `log`, `sqrt` or `gamma:0.5`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "linear" => Some(Self::Linear),
            "log" => Some(Self::Log),
            "sqrt" => Some(Self::Sqrt),
            _ => {
                let exponent: f64 = text.strip_prefix("gamma:")?.parse().ok()?;
                (exponent.is_finite() && exponent > 0.0).then_some(Self::Gamma(exponent))
            }
        }
    }

    /// Its spelling in URLs.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Linear => "linear".to_owned(),
            Self::Log => "log".to_owned(),
            Self::Sqrt => "sqrt".to_owned(),
            Self::Gamma(exponent) => format!("gamma:{exponent}"),
        }
    }
}

/// A range of numbers and the scale within it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapping {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Mapping {
    /// A mapping of a range; `None` if its ends are not finite or in reverse, or if a logarithmic range does not begin above 0.
    #[must_use]
    pub fn new(low: f64, high: f64, scale: Scale) -> Option<Self> {
        let is_range = low.is_finite() && high.is_finite() && low <= high;
        (is_range && (scale != Scale::Log || low > 0.0)).then_some(Self { low, high, scale })
    }

    /// The ends of the range.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The scale.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The place of a number of the range: 0 for its smallest, 1 for its largest. For other numbers it is below 0, above 1 or
    /// NaN. Where the ends are equal, all numbers of the range are at 0.
    #[must_use]
    #[inline]
    pub fn place(&self, number: f64) -> f64 {
        if number > self.high {
            return 2.0;
        }
        if number < self.low {
            return -1.0;
        }
        if self.low >= self.high {
            return if number.is_finite() { 0.0 } else { f64::NAN };
        }
        let linear = || {
            let span = self.high - self.low;
            // A range may be wider than the largest number.
            let is_wide = !span.is_finite();
            if is_wide {
                (number / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
            } else {
                (number - self.low) / span
            }
        };
        match self.scale {
            Scale::Linear => linear(),
            Scale::Log => factor(self.low, number) / factor(self.low, self.high),
            Scale::Sqrt => linear().sqrt(),
            Scale::Gamma(exponent) => linear().powf(exponent),
        }
    }

    /// The number at a place between 0 and 1.
    #[must_use]
    pub fn number(&self, place: f64) -> f64 {
        let linear = |place: f64| {
            let span = self.high - self.low;
            if span.is_finite() {
                self.low + place * span
            } else {
                self.low * (1.0 - place) + self.high * place
            }
        };
        match self.scale {
            Scale::Linear => linear(place),
            Scale::Log => {
                let ratio = self.high / self.low;
                let wide = || (self.low.ln() + place * factor(self.low, self.high)).exp();
                if ratio.is_finite() { self.low * ratio.powf(place) } else { wide() }
            }
            Scale::Sqrt => linear(place * place),
            Scale::Gamma(exponent) => linear(place.powf(1.0 / exponent)),
        }
    }
}

/// The logarithm of the quotient of two numbers above 0, which itself may be larger than every number.
fn factor(low: f64, number: f64) -> f64 {
    let quotient = number / low;
    if quotient.is_finite() { quotient.ln() } else { number.ln() - low.ln() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the places are exact")]
    fn ranges_wider_than_the_largest_number_have_places() {
        let far = 2_f64.powi(1023);
        let widest = |scale| Mapping::new(-far, far, scale).unwrap();
        let linear = widest(Scale::Linear);
        for (number, place) in [(-far, 0.0), (0.0, 0.5), (far, 1.0), (far / 2.0, 0.75)] {
            assert_eq!(linear.place(number), place, "{number}");
            assert_eq!(linear.number(place), number, "{place}");
        }
        assert_eq!(widest(Scale::Sqrt).place(-far / 2.0), 0.5);
        assert_eq!(widest(Scale::Gamma(2.0)).place(0.0), 0.25);
        let (low, high) = (1e-300, 1e300);
        let log = Mapping::new(low, high, Scale::Log).unwrap();
        assert_eq!((log.place(low), log.place(high)), (0.0, 1.0));
        assert!((log.place(1.0) - 0.5).abs() < 1e-12 && (log.number(0.5) - 1.0).abs() < 1e-9);
        assert_eq!(log.number(0.0).total_cmp(&f64::MIN_POSITIVE), std::cmp::Ordering::Greater);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the places are exact")]
    fn places_follow_the_scale() {
        let place = |low, high, scale, number| Mapping::new(low, high, scale).unwrap().place(number);
        assert_eq!(place(10.0, 20.0, Scale::Linear, 12.5), 0.25);
        assert_eq!(place(0.0, 16.0, Scale::Sqrt, 4.0), 0.5);
        assert_eq!(place(0.0, 4.0, Scale::Gamma(2.0), 2.0), 0.25);
        assert!((place(1.0, 1000.0, Scale::Log, 10.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!(place(0.0, 1.0, Scale::Linear, f64::NAN).is_nan());
        assert!(place(0.0, 1.0, Scale::Linear, f64::INFINITY) > 1.0);
        assert!(place(1.0, 2.0, Scale::Log, -3.0) < 0.0);
        assert_eq!(place(3.0, 3.0, Scale::Linear, 3.0), 0.0);
        assert!(place(3.0, 3.0, Scale::Linear, 3.5) > 1.0 && place(3.0, 3.0, Scale::Linear, 2.0) < 0.0);
        for scale in ["linear", "log", "sqrt", "gamma:0.5", "gamma:2"].map(|name| Scale::parse(name).unwrap())
        {
            let mapping = Mapping::new(2.0, 32.0, scale).unwrap();
            assert!((mapping.place(mapping.number(0.3)) - 0.3).abs() < 1e-12, "{scale:?}");
            assert_eq!(Scale::parse(&scale.name()), Some(scale));
        }
    }

    #[test]
    fn impossible_ranges_and_scales_are_rejected() {
        for (low, high, scale) in [
            (1.0, 0.0, Scale::Linear),
            (f64::NAN, 1.0, Scale::Linear),
            (0.0, f64::INFINITY, Scale::Linear),
            (0.0, 1.0, Scale::Log),
        ] {
            assert_eq!(Mapping::new(low, high, scale), None, "{low} {high} {scale:?}");
        }
        for text in ["", "symlog", "gamma", "gamma:", "gamma:0", "gamma:-1", "gamma:inf", "gamma:x"] {
            assert_eq!(Scale::parse(text), None, "{text}");
        }
    }
}
