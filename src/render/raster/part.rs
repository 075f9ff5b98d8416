//! [`Part`]: which part of a complex number is drawn.

/// The part of a complex number that is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The absolute value.
    #[default]
    Abs,
    /// The real part.
    Real,
    /// The imaginary part.
    Imaginary,
    /// The angle, from -π to π.
    Argument,
}

impl Part {
    /// Parses `abs`, `real`, `imag` or `arg`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "abs" => Self::Abs,
            "real" => Self::Real,
            "imag" => Self::Imaginary,
            "arg" => Self::Argument,
            _ => return None,
        })
    }

    pub(super) fn of(self, real: f64, imaginary: f64) -> f64 {
        match self {
            Self::Abs => real.hypot(imaginary),
            Self::Real => real,
            Self::Imaginary => imaginary,
            Self::Argument => imaginary.atan2(real),
        }
    }
}
