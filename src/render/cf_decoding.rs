//! [`CfDecoding`]: elements become the values that their attributes describe (CF conventions 1.12, sections 2.5.1, 4.4 and 8.1), in
//! the types that xarray gives them.
//!
//! | elements | values |
//! |---|---|
//! | packed (`scale_factor`, `add_offset`) | `float64`; NaN where an element is missing |
//! | integers with missing values, of at most 16 bits | `float32`; NaN where an element is missing |
//! | other integers with missing values | `float64`; the same |
//! | floats | of their type; NaN where an element is missing |
//! | numbers of a unit since a date, in `standard` or `proleptic_gregorian` | `datetime64[us]`, or `[ns]` if the unit is finer |
//! | the same in another calendar | in JSON and CSV text in ISO 8601; in other formats numbers |
//! | others | as they are, with the sign that `_Unsigned` says |
//!
//! `datetime64` counts days of the Gregorian calendar at all times. A time of `standard` before 1582-10-15 is the same
//! instant there, with another date; JSON and CSV have the dates of `standard`.

use half::{bf16, f16};

use crate::labels::{Calendar, CfTimes};
use crate::metadata::{ArrayMetadata, Attributes, DataType, TimeStep, TimeUnit};
use crate::reduce::{CfError, CfValues, Visitor, is_fill_missing};

/// Characters of a date as text: a year of six digits with its sign, and nine digits of a second.
const DATE_CHARACTERS: u32 = 32;
/// Attoseconds of a microsecond and of a nanosecond.
const MICROSECOND: i128 = 1_000_000_000_000;
const NANOSECOND: i128 = 1_000_000_000;

/// How elements become values.
#[derive(Clone, Debug, PartialEq)]
pub struct CfDecoding {
    values: CfValues,
    form: Form,
}

/// What values are.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// Elements as they are.
    Same(DataType),
    /// Numbers of a float type.
    Floats(DataType),
    /// Floats of 32 bits, scaled and shifted in 32 bits: xarray keeps the type if nothing but NaN marks missing elements.
    SinglePacked(f32, f32),
    /// Steps since 1970.
    Instants(CfTimes, TimeStep),
    /// Dates as text.
    Dates(CfTimes),
}

// Scale factors and offsets are finite, so that equality is total.
impl Eq for CfDecoding {}

impl CfDecoding {
    /// The decoding of the elements of an array; `as_text` if the format is a text, which can have dates of every calendar.
    ///
    /// # Errors
    /// [`CfError::Missing`] if there are too many missing values.
    pub fn new(metadata: &ArrayMetadata, as_text: bool) -> Result<Self, CfError> {
        let (stored, attributes) = (&metadata.data_type, &metadata.attributes);
        let same = || Self { values: CfValues::stored(stored), form: Form::Same(stored.clone()) };
        if !CfValues::stored(stored).are_real() || *stored == DataType::Bool {
            return Ok(same());
        }
        let values = CfValues::of_metadata(metadata)?;
        let has_missing = values.missing_numbers().iter().any(|number| !number.is_nan());
        let is_marked = has_missing || has_fill(metadata);
        Ok(Self::of_values(values, attributes, as_text, (is_marked, has_missing)))
    }

    /// The decoding of the elements of a coordinate, none of which is missing.
    #[must_use]
    pub fn of_labels(metadata: &ArrayMetadata, as_text: bool) -> Self {
        let (stored, attributes) = (&metadata.data_type, &metadata.attributes);
        if !CfValues::stored(stored).are_real() || *stored == DataType::Bool {
            return Self { values: CfValues::stored(stored), form: Form::Same(stored.clone()) };
        }
        Self::of_values(CfValues::unmasked(stored, attributes), attributes, as_text, (false, false))
    }

    /// The decoding of the elements of an array to numbers. Those of a unit since a date stay as they are stored. Of a coordinate
    /// none is missing.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn to_numbers(metadata: &ArrayMetadata, is_coordinate: bool) -> Result<Self, CfError> {
        if CfTimes::of_attributes(&metadata.attributes).is_some() {
            let stored = &metadata.data_type;
            return Ok(Self { values: CfValues::stored(stored), form: Form::Same(stored.clone()) });
        }
        if is_coordinate { Ok(Self::of_labels(metadata, false)) } else { Self::new(metadata, false) }
    }

    /// Bytes of a stored element.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        self.values.element_bytes()
    }

    /// The decoding to values, of which some are marked as missing, and some of these by a number.
    fn of_values(values: CfValues, attributes: &Attributes, as_text: bool, marked: (bool, bool)) -> Self {
        let form_of_times =
            CfTimes::of_attributes(attributes).and_then(|times| Self::form_of_times(times, as_text));
        let form = form_of_times.unwrap_or_else(|| Self::form_of_numbers(&values, marked));
        Self { values, form }
    }

    fn form_of_times(times: CfTimes, as_text: bool) -> Option<Form> {
        let is_gregorian = match times.calendar() {
            Calendar::ProlepticGregorian => true,
            Calendar::Standard => !as_text || times.begin_in_gregorian(),
            _ => false,
        };
        match (is_gregorian, as_text) {
            (true, _) => {
                let unit = if times.are_fine() { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
                let step = TimeStep::new(unit, 1)?;
                let is_mixed = as_text && times.calendar() == Calendar::Standard;
                Some(Form::Instants(times, if is_mixed { step.with_julian_dates() } else { step }))
            }
            (false, true) => Some(Form::Dates(times)),
            (false, false) => None,
        }
    }

    fn form_of_numbers(values: &CfValues, (is_marked, has_missing): (bool, bool)) -> Form {
        let read_as = values.data_type();
        let is_float = !matches!(
            read_as,
            DataType::Int2
                | DataType::Int4
                | DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::UInt2
                | DataType::UInt4
                | DataType::UInt8
                | DataType::UInt16
                | DataType::UInt32
                | DataType::UInt64
        );
        match values.packing() {
            #[expect(clippy::cast_possible_truncation, reason = "the arithmetic is in 32 bits")]
            Some((scale, offset)) if *read_as == DataType::Float32 && is_marked && !has_missing => {
                Form::SinglePacked(scale as f32, offset as f32)
            }
            None if is_float => Form::Floats(read_as.clone()),
            None if !is_marked => Form::Same(read_as.clone()),
            None if read_as.element_bytes() <= 2 => Form::Floats(DataType::Float32),
            _ => Form::Floats(DataType::Float64),
        }
    }

    /// The type of the values.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        match &self.form {
            Form::Same(data_type) | Form::Floats(data_type) => data_type.clone(),
            Form::SinglePacked(..) => DataType::Float32,
            Form::Instants(_, step) => DataType::DateTime64(*step),
            Form::Dates(_) => DataType::FixedLengthUtf32 { code_points: DATE_CHARACTERS },
        }
    }

    /// Whether values are the elements themselves.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        matches!(self.form, Form::Same(_))
    }

    /// The values of elements in canonical form.
    #[must_use]
    pub fn decode(&self, items: &[u8]) -> Vec<u8> {
        let count = items.len() / self.values.element_bytes().max(1);
        let mut output = Vec::with_capacity(count.saturating_mul(self.data_type().element_bytes()));
        match &self.form {
            Form::Same(_) => output.extend_from_slice(items),
            Form::Floats(data_type) => {
                self.values.visit(items, &mut Floats { data_type, output: &mut output });
            }
            Form::SinglePacked(scale, offset) => {
                let (items, _) = items.as_chunks();
                for &item in items {
                    let number = f32::from_le_bytes(item) * scale + offset;
                    output.extend_from_slice(&number.to_le_bytes());
                }
            }
            Form::Instants(times, step) => {
                let step = if step.unit() == TimeUnit::Nanosecond { NANOSECOND } else { MICROSECOND };
                let put = |instant: Option<i128>, output: &mut Vec<u8>| {
                    let steps = instant.and_then(|instant| i64::try_from(instant.div_euclid(step)).ok());
                    output.extend_from_slice(&steps.unwrap_or(i64::MIN).to_le_bytes());
                };
                self.values.visit(items, &mut Times { units: times, put, output: &mut output });
            }
            Form::Dates(times) => {
                let put = |instant: Option<i128>, output: &mut Vec<u8>| {
                    let text = instant.map_or_else(|| "NaT".to_owned(), |instant| times.text(instant));
                    let characters = text.chars().map(u32::from).chain(std::iter::repeat(0));
                    for character in characters.take(DATE_CHARACTERS as usize) {
                        output.extend_from_slice(&character.to_le_bytes());
                    }
                };
                self.values.visit(items, &mut Times { units: times, put, output: &mut output });
            }
        }
        output
    }
}

/// Whether the metadata mark elements as missing, by a value that elements have or not.
fn has_fill(metadata: &ArrayMetadata) -> bool {
    let has_attribute = |name| metadata.attributes.contains_key(name);
    is_fill_missing(metadata) || has_attribute("_FillValue") || has_attribute("missing_value")
}

/// Appends values as floats of a type.
struct Floats<'a> {
    data_type: &'a DataType,
    output: &'a mut Vec<u8>,
}

impl Visitor for Floats<'_> {
    #[expect(clippy::cast_precision_loss, reason = "values are floats")]
    fn integer(&mut self, number: i128) {
        self.float(number as f64);
    }

    #[expect(clippy::cast_possible_truncation, reason = "values of 32 bits are exact, or were of 32 bits")]
    fn float(&mut self, number: f64) {
        match self.data_type {
            DataType::Float16 => self.output.extend_from_slice(&f16::from_f64(number).to_le_bytes()),
            DataType::BFloat16 => self.output.extend_from_slice(&bf16::from_f64(number).to_le_bytes()),
            DataType::Float32 => self.output.extend_from_slice(&(number as f32).to_le_bytes()),
            _ => self.output.extend_from_slice(&number.to_le_bytes()),
        }
    }

    fn missing(&mut self) {
        self.float(f64::NAN);
    }
}

/// Appends the instants of numbers.
struct Times<'a, F> {
    units: &'a CfTimes,
    put: F,
    output: &'a mut Vec<u8>,
}

impl<F: Fn(Option<i128>, &mut Vec<u8>)> Visitor for Times<'_, F> {
    fn integer(&mut self, number: i128) {
        (self.put)(self.units.of_integer(number), self.output);
    }

    fn float(&mut self, number: f64) {
        (self.put)(self.units.of_float(number), self.output);
    }

    fn missing(&mut self) {
        (self.put)(None, self.output);
    }
}
