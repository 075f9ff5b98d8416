//! [`NpyHead`]: the head of an npy file (`numpy.lib.format`, versions 1.0 to 3.0), and what it says about the elements.

use std::borrow::Cow;

use super::error::ParseError;
use super::npy_literal::Literal;
use crate::metadata::{DataType, Endianness};
use crate::render::npy_type;

/// The longest head that is read, in bytes. numpy itself warns of any over 10,000.
pub const MAX_NPY_HEAD_BYTES: usize = 64 << 10;

const MAGIC: &[u8] = b"\x93NUMPY";

/// The head of an npy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHead {
    /// Bytes before the first element.
    pub bytes: usize,
    /// The shape of the elements.
    pub shape: Vec<u64>,
    /// The type, in a form that does not depend on the writer.
    descr: Literal,
    is_fortran: bool,
}

/// How the elements of a file become those of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NpyContents {
    /// They are of the array's type, in this byte order.
    Same(Endianness),
    /// They are numbers of another type, in this byte order.
    Numbers(DataType, Endianness),
    /// They are texts or bytes of this type, for elements of variable length.
    Padded(DataType, Endianness),
}

/// Parses the head of an npy file; `None` if the bytes end before it does.
///
/// # Errors
/// [`ParseError::Malformed`].
pub fn parse_npy_head(file: &[u8]) -> Result<Option<NpyHead>, ParseError> {
    let start = MAGIC.get(..file.len().min(MAGIC.len())).unwrap_or(MAGIC);
    if !file.starts_with(start) {
        return Err(malformed("it does not begin with the magic bytes of one"));
    }
    let (length_at, length_bytes) = match file.get(MAGIC.len()) {
        None => return Ok(None),
        Some(1) => (8, 2),
        Some(2 | 3) => (8, 4),
        Some(version) => return Err(malformed(format!("version {version} is not known"))),
    };
    let text_at = length_at + length_bytes;
    let Some(length) = file.get(length_at..text_at) else { return Ok(None) };
    let length = length.iter().rev().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    let bytes = text_at.saturating_add(length);
    if bytes > MAX_NPY_HEAD_BYTES {
        return Err(malformed(format!("its head has {bytes} bytes; at most {MAX_NPY_HEAD_BYTES} are read")));
    }
    let Some(text) = file.get(text_at..bytes) else { return Ok(None) };
    let unreadable = || malformed("its head is not a dictionary with `descr`, `fortran_order` and `shape`");
    let text = head_text(text, file.get(MAGIC.len()).copied()).ok_or_else(unreadable)?;
    let Some(Literal::Dictionary(members)) = Literal::parse(&text) else { return Err(unreadable()) };
    let member = |name: &str| {
        let found = members.iter().find(|(key, _)| matches!(key, Literal::Text(text) if text == name));
        found.map(|(_, value)| value)
    };
    let (Some(descr), Some(Literal::Truth(is_fortran)), Some(Literal::Tuple(shape))) =
        (member("descr"), member("fortran_order"), member("shape"))
    else {
        return Err(unreadable());
    };
    let shape =
        shape.iter().map(|length| if let Literal::Number(length) = length { Some(*length) } else { None });
    let shape = shape.collect::<Option<_>>().ok_or_else(unreadable)?;
    Ok(Some(NpyHead { bytes, shape, descr: normal(descr), is_fortran: *is_fortran }))
}

/// The text of a head: in Latin-1 before version 3, and in UTF-8 since.
fn head_text(bytes: &[u8], version: Option<u8>) -> Option<Cow<'_, str>> {
    if bytes.is_ascii() || version == Some(3) {
        str::from_utf8(bytes).ok().map(Cow::Borrowed)
    } else {
        Some(bytes.iter().map(|&byte| char::from(byte)).collect())
    }
}

fn malformed(reason: impl Into<String>) -> ParseError {
    ParseError::Malformed { format: "an npy file", reason: reason.into() }
}

impl NpyHead {
    /// The data type of an array for these elements; `None` for a type that a new array cannot have.
    #[must_use]
    pub fn data_type(&self) -> Option<DataType> {
        let Literal::Text(text) = &self.descr else { return None };
        DataType::from_numpy(text).ok().map(|(data_type, _)| data_type)
    }

    /// Compares the head with what is to be written.
    ///
    /// # Errors
    /// [`ParseError::Shape`], [`ParseError::DataType`], [`ParseError::FortranOrder`].
    pub fn check(
        &self,
        data_type: &DataType,
        shape: &[u64],
        may_cast: bool,
    ) -> Result<NpyContents, ParseError> {
        let contents = self.contents(data_type, may_cast)?;
        if self.shape != shape {
            return Err(ParseError::Shape { given: self.shape.clone(), expected: shape.to_vec() });
        }
        // The two orders differ only where two dimensions have several elements.
        if self.is_fortran && shape.iter().filter(|&&length| length != 1).count() > 1 {
            return Err(ParseError::FortranOrder);
        }
        Ok(contents)
    }

    fn contents(&self, data_type: &DataType, may_cast: bool) -> Result<NpyContents, ParseError> {
        if let Some(order) = self.order_of(data_type) {
            return Ok(NpyContents::Same(order));
        }
        if let (true, Some(padded)) = (data_type.is_variable(), self.padded(data_type)) {
            return Ok(padded);
        }
        let number =
            DataType::NUMPY_REALS.into_iter().find_map(|number| Some((self.order_of(&number)?, number)));
        if let (Some((order, number)), true) = (number, may_cast)
            && super::SafeCast::new(&number, data_type).is_some()
        {
            return Ok(NpyContents::Numbers(number, order));
        }
        let advice = if may_cast {
            "no cast between them is safe: cast the elements before sending"
        } else {
            "cast the elements before sending, or say `cast=safe` where nothing is lost by it"
        };
        Err(ParseError::DataType { given: text_of(&self.descr), expected: data_type.name(), advice })
    }

    /// The byte order, if the elements are of this type.
    fn order_of(&self, data_type: &DataType) -> Option<Endianness> {
        if data_type.is_variable() {
            return None;
        }
        [Endianness::Little, Endianness::Big].into_iter().find(|order| {
            Literal::parse(&npy_type(data_type, *order)).is_some_and(|own| normal(&own) == self.descr)
        })
    }

    /// Texts for elements that are texts, and bytes for elements that are bytes.
    fn padded(&self, data_type: &DataType) -> Option<NpyContents> {
        let Literal::Text(text) = &self.descr else { return None };
        let mut chars = text.chars();
        let (order, kind) = (chars.next()?, chars.next()?);
        let length: u32 = chars.as_str().parse().ok()?;
        let order = if order == '>' { Endianness::Big } else { Endianness::Little };
        let items = match (data_type, kind) {
            (DataType::String, 'U') => DataType::FixedLengthUtf32 { code_points: length },
            (DataType::VariableBytes, 'S') => DataType::NullTerminatedBytes { bytes: length },
            _ => return None,
        };
        (length > 0).then_some(NpyContents::Padded(items, order))
    }
}

/// A type in a form that does not depend on the writer: the byte order of what has none is `|`.
fn normal(descr: &Literal) -> Literal {
    match descr {
        Literal::Text(text) => Literal::Text(normal_text(text)),
        Literal::List(fields) => Literal::List(fields.iter().map(normal_field).collect()),
        other => other.clone(),
    }
}

/// A field of a struct: its name, its type, and perhaps its shape.
fn normal_field(field: &Literal) -> Literal {
    let Literal::Tuple(parts) = field else { return field.clone() };
    let part = |(place, part): (usize, &Literal)| match (place, part) {
        (1, data_type) => normal(data_type),
        // A field of one dimension may give its length without parentheses.
        (2, Literal::Number(length)) => Literal::Tuple(vec![Literal::Number(*length)]),
        (_, other) => other.clone(),
    };
    Literal::Tuple(parts.iter().enumerate().map(part).collect())
}

fn normal_text(text: &str) -> String {
    let (order, rest) = match text.chars().next() {
        Some(order @ ('<' | '>' | '|' | '=')) => (order, text.get(1..).unwrap_or_default()),
        _ => ('=', text),
    };
    let has_no_order = rest.starts_with(['S', 'V', 'b', 'a']) || matches!(rest, "i1" | "u1" | "?");
    let order = match order {
        _ if has_no_order => '|',
        '=' | '|' => '<',
        order => order,
    };
    let rest = if rest == "?" { "b1" } else { rest };
    format!("{order}{rest}")
}

/// A type as numpy spells it, shortened.
fn text_of(descr: &Literal) -> String {
    const SHOWN: usize = 80;
    let text = match descr {
        Literal::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, head: &str) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([version, 0]);
        let length = head.len() as u32;
        if version == 1 {
            file.extend((length as u16).to_le_bytes());
        } else {
            file.extend(length.to_le_bytes());
        }
        file.extend(head.as_bytes());
        file
    }

    fn head(descr: &str, shape: &str) -> NpyHead {
        let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
        parse_npy_head(&file(1, &text)).unwrap().unwrap()
    }

    #[test]
    fn the_head_of_every_type_that_is_written_is_read_back() {
        let types =
            [DataType::Bool, DataType::RawBits { bytes: 3 }, DataType::FixedLengthUtf32 { code_points: 4 }];
        for data_type in DataType::NUMPY_REALS.into_iter().chain(types) {
            for order in [Endianness::Little, Endianness::Big] {
                let head = head(&npy_type(&data_type, order), "(2, 3)");
                let NpyContents::Same(found) = head.check(&data_type, &[2, 3], false).unwrap() else {
                    panic!()
                };
                assert!(found == order || data_type.endian_unit_bytes() == Some(1), "{data_type:?}");
            }
        }
    }

    #[test]
    fn names_in_a_head_are_latin_1_before_version_3_and_utf_8_since() {
        let text = |bytes: &[u8]| head_text(bytes, Some(1)).map(Cow::into_owned);
        assert_eq!(text(b"'\xe9'").as_deref(), Some("'é'"));
        assert_eq!(text("'é'".as_bytes()).as_deref(), Some("'Ã©'"));
        assert_eq!(head_text("'é'".as_bytes(), Some(3)).as_deref(), Some("'é'"));
        assert_eq!(head_text(b"'\xe9'", Some(3)), None);
    }

    #[test]
    fn another_type_shape_or_order_is_an_error_that_names_both() {
        assert_eq!(
            head("'<f4'", "(2,)").check(&DataType::Float32, &[3], false),
            Err(ParseError::Shape { given: vec![2], expected: vec![3] })
        );
        let wrong = head("'<f4'", "(2,)").check(&DataType::Float64, &[2], false).unwrap_err();
        assert!(wrong.to_string().contains("<f4") && wrong.to_string().contains("float64"), "{wrong}");
        let contents = head("'>i2'", "(2,)").check(&DataType::Float64, &[2], true).unwrap();
        assert_eq!(contents, NpyContents::Numbers(DataType::Int16, Endianness::Big));
        assert!(head("'<f8'", "(2,)").check(&DataType::Float32, &[2], true).is_err());
        let fortran = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }";
        let fortran = parse_npy_head(&file(2, fortran)).unwrap().unwrap();
        assert_eq!(fortran.check(&DataType::UInt8, &[2, 2], false), Err(ParseError::FortranOrder));
    }

    #[test]
    fn a_head_that_has_not_arrived_is_waited_for_and_a_wrong_one_refused() {
        let whole = file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }");
        for end in 0..whole.len() {
            assert_eq!(parse_npy_head(&whole[..end]), Ok(None), "{end}");
        }
        assert!(parse_npy_head(&whole).unwrap().is_some());
        for wrong in
            [&b"PK"[..], b"\x93NUMPY\x09\0", b"\x93NUMPY\x02\0\xff\xff\xff\xff", &file(1, "{'descr': '<f4'}")]
        {
            assert!(parse_npy_head(wrong).is_err());
        }
    }
}
