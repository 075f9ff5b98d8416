//! [`GeoTiffFile`]: the header of a file of one plane, and the length of the whole.

use super::directory::{Tag, TagValues, write};
use super::place::PlanePlace;
use crate::render::dataset::{AttributeValue, ExportAttribute, ExternalType};
use crate::render::xml::escape;

/// Bytes of a strip, about.
const STRIP_BYTES: u64 = 256 << 10;
/// The place of the elements is a multiple of this.
const ALIGNMENT: usize = 16;
/// Attributes that become metadata of the image, each with its name and its role in GDAL, and whether it is a number.
const ROLES: [(&str, &str, &str, bool); 4] = [
    ("scale_factor", "SCALE", "scale", true),
    ("add_offset", "OFFSET", "offset", true),
    ("units", "UNITTYPE", "unittype", false),
    ("long_name", "DESCRIPTION", "description", false),
];
/// The longest of these, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 10;

/// A plane that is to be written.
#[derive(Clone, Debug)]
pub struct GeoTiffPlane<'a> {
    /// Its rows.
    pub rows: u64,
    /// Its columns.
    pub columns: u64,
    /// The type of its elements.
    pub external: ExternalType,
    /// The attributes of the array.
    pub attributes: &'a [ExportAttribute],
    /// Where it is.
    pub place: PlanePlace,
}

/// A file without its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoTiffFile {
    /// What comes before the elements.
    pub header: Vec<u8>,
    /// Bytes of the file.
    pub bytes: u64,
}

impl GeoTiffPlane<'_> {
    /// Rows of a strip, and the number of strips; `None` for a plane without elements or of a size that no file can have.
    fn strips(&self) -> Option<(u64, u64)> {
        let row_bytes = self.columns.checked_mul(self.external.bytes() as u64)?;
        row_bytes.checked_mul(self.rows).filter(|&bytes| bytes > 0)?;
        let rows = (STRIP_BYTES / row_bytes).clamp(1, self.rows);
        Some((rows, self.rows.div_ceil(rows)))
    }

    /// Bytes of memory in which the header of its file is made, at most, besides its attributes.
    #[must_use]
    pub fn header_memory(&self) -> u64 {
        // Of a strip the place and the length, as numbers and as the bytes of their tags and of the header.
        const BYTES_OF_STRIP: u64 = 96;
        let strips = self.strips().map_or(0, |(_, strips)| strips);
        strips.saturating_mul(BYTES_OF_STRIP)
    }
}

impl GeoTiffFile {
    /// Lays a plane out; `None` for a plane without elements or of a size that no file can have.
    #[must_use]
    pub fn new(plane: &GeoTiffPlane<'_>) -> Option<Self> {
        let (rows, strips) = plane.strips()?;
        let row_bytes = plane.columns.checked_mul(plane.external.bytes() as u64)?;
        let bytes = row_bytes.checked_mul(plane.rows)?;
        let of_strip = |strip: u64| (plane.rows - strip * rows).min(rows).saturating_mul(row_bytes);
        let lengths: Vec<u64> = (0..strips).map(of_strip).collect();
        let layout = Layout { plane, rows: u32::try_from(rows).ok()?, lengths };
        // As long as it may be, so that all places have 32 bits in the shorter form.
        let longest = layout.header(true, 0)?.len() as u64;
        let is_big = longest.checked_add(bytes)? > u32::MAX.into();
        let length = layout.header(is_big, 0)?.len().next_multiple_of(ALIGNMENT);
        let mut header = layout.header(is_big, length as u64)?;
        header.resize(length, 0);
        let bytes = bytes.checked_add(length as u64)?;
        Some(Self { header, bytes })
    }
}

/// A plane in strips.
struct Layout<'a> {
    plane: &'a GeoTiffPlane<'a>,
    /// Rows of a strip.
    rows: u32,
    /// The bytes of each strip.
    lengths: Vec<u64>,
}

impl Layout<'_> {
    /// The header of a file whose elements begin at a place.
    fn header(&self, is_big: bool, begin: u64) -> Option<Vec<u8>> {
        let plane = self.plane;
        let bits = u16::try_from(plane.external.bytes() * 8).ok()?;
        let mut places = Vec::with_capacity(self.lengths.len());
        let mut place = begin;
        for length in &self.lengths {
            places.push(place);
            place = place.saturating_add(*length);
        }
        let short = |number, value| Tag { number, values: TagValues::Shorts(vec![value]) };
        let long =
            |number, value| Some(Tag { number, values: TagValues::Longs(vec![u32::try_from(value).ok()?]) });
        let mut tags = vec![
            long(256, plane.columns)?,
            long(257, plane.rows)?,
            short(258, bits),
            // No compression, and the smallest value is black.
            short(259, 1),
            short(262, 1),
            Tag { number: 273, values: TagValues::Places(places) },
            short(277, 1),
            Tag { number: 278, values: TagValues::Longs(vec![self.rows]) },
            Tag { number: 279, values: TagValues::Places(self.lengths.clone()) },
            short(284, 1),
            short(339, sample_format(plane.external)),
        ];
        tags.extend(plane.place.tags());
        if let Some(text) = metadata(plane.attributes) {
            tags.push(Tag { number: 42_112, values: TagValues::Text(text) });
        }
        if let Some(text) = no_data(plane.attributes) {
            tags.push(Tag { number: 42_113, values: TagValues::Text(text) });
        }
        Some(write(&tags, is_big))
    }
}

/// The tag `SampleFormat`.
const fn sample_format(external: ExternalType) -> u16 {
    match external {
        ExternalType::Char
        | ExternalType::UByte
        | ExternalType::UShort
        | ExternalType::UInt
        | ExternalType::UInt64 => 1,
        ExternalType::Byte | ExternalType::Short | ExternalType::Int | ExternalType::Int64 => 2,
        ExternalType::Float | ExternalType::Double => 3,
    }
}

fn find<'a>(attributes: &'a [ExportAttribute], name: &str) -> Option<&'a AttributeValue> {
    attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
}

/// A text or one number as text.
fn text(value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::Text(text) => Some(text.clone()),
        AttributeValue::Numbers(external, bytes) if bytes.len() == external.bytes() => {
            Some(external.text_of(bytes))
        }
        AttributeValue::Texts(_) | AttributeValue::Numbers(..) => None,
    }
}

/// The missing value, as GDAL reads it.
fn no_data(attributes: &[ExportAttribute]) -> Option<String> {
    let value = text(find(attributes, "_FillValue")?)?;
    Some(match value.as_str() {
        "NaN" => "nan".to_owned(),
        "Infinity" => "inf".to_owned(),
        "-Infinity" => "-inf".to_owned(),
        _ => value,
    })
}

/// One finite number as text.
fn number(value: &AttributeValue) -> Option<String> {
    let AttributeValue::Numbers(..) = value else { return None };
    text(value).filter(|text| text.parse().is_ok_and(f64::is_finite))
}

/// The attributes that GDAL has a place for, as its XML.
fn metadata(attributes: &[ExportAttribute]) -> Option<String> {
    let item = |&(name, of_gdal, role, is_number): &(&str, &str, &str, bool)| {
        let value = find(attributes, name)?;
        let value = if is_number { number(value) } else { text(value) };
        // GDAL resolves references in an item twice, and writes them so.
        let value = escape(&escape(&value.filter(|text| text.len() <= MAX_TEXT_BYTES)?));
        Some(format!("<Item name=\"{of_gdal}\" sample=\"0\" role=\"{role}\">{value}</Item>"))
    };
    let items: String = ROLES.iter().filter_map(item).collect();
    (!items.is_empty()).then(|| format!("<GDALMetadata>{items}</GDALMetadata>"))
}

#[cfg(test)]
mod tests {
    use super::super::place::PlaneCrs;
    use super::*;

    const PLACE: PlanePlace = PlanePlace {
        west: -10.5,
        north: 60.25,
        width: 0.5,
        height: 0.5,
        crs: Some(PlaneCrs::Geographic(4326)),
    };

    fn number(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// The values of a tag of a file in the shorter form, as numbers.
    fn values(header: &[u8], wanted: u64) -> Vec<u64> {
        let entries = usize::try_from(number(&header[8..10])).unwrap();
        let entry =
            header[10..].chunks(12).take(entries).find(|entry| number(&entry[..2]) == wanted).unwrap();
        let size = [0, 1, 1, 2, 4][usize::try_from(number(&entry[2..4])).unwrap()];
        let count = usize::try_from(number(&entry[4..8])).unwrap();
        let values = if size * count <= 4 {
            &entry[8..8 + size * count]
        } else {
            let place = usize::try_from(number(&entry[8..])).unwrap();
            &header[place..place + size * count]
        };
        values.chunks(size).map(number).collect()
    }

    #[test]
    fn strips_cover_the_rows_and_follow_the_header() {
        let plane = GeoTiffPlane {
            rows: 721,
            columns: 1440,
            external: ExternalType::Float,
            attributes: &[],
            place: PLACE,
        };
        let file = GeoTiffFile::new(&plane).unwrap();
        let (places, lengths) = (values(&file.header, 273), values(&file.header, 279));
        assert_eq!((places[0], lengths.iter().sum::<u64>()), (file.header.len() as u64, 721 * 1440 * 4));
        assert_eq!(file.bytes, file.header.len() as u64 + 721 * 1440 * 4);
        for (at, pair) in places.windows(2).enumerate() {
            assert_eq!(pair[1] - pair[0], lengths[at]);
        }
        assert_eq!(values(&file.header, 278), [45]);
        assert_eq!(
            values(&file.header, 34_735),
            [1, 1, 0, 3, 1024, 0, 1, 2, 1025, 0, 1, 1, 2048, 0, 1, 4326]
        );
    }

    #[test]
    fn a_plane_of_more_than_4_gib_has_places_of_64_bits() {
        let plane = |rows| GeoTiffPlane {
            rows,
            columns: 1 << 20,
            external: ExternalType::Double,
            attributes: &[],
            place: PLACE,
        };
        assert_eq!(GeoTiffFile::new(&plane(8)).unwrap().header[..4], *b"MM\0\x2a");
        let big = GeoTiffFile::new(&plane(1024)).unwrap();
        assert_eq!(big.header[..4], *b"MM\0\x2b");
        assert_eq!(big.bytes, big.header.len() as u64 + (8 << 30));
        assert_eq!(GeoTiffFile::new(&plane(0)), None);
        assert_eq!(GeoTiffFile::new(&plane(u64::MAX)), None);
    }

    #[test]
    fn attributes_become_what_gdal_reads() {
        let attribute = |name: &str, value| ExportAttribute { name: name.to_owned(), value };
        let attributes = [
            attribute("_FillValue", AttributeValue::Numbers(ExternalType::Short, vec![0x80, 0])),
            attribute(
                "scale_factor",
                AttributeValue::Numbers(ExternalType::Double, 0.5_f64.to_be_bytes().to_vec()),
            ),
            attribute("units", AttributeValue::Text("<K>".to_owned())),
        ];
        assert_eq!(no_data(&attributes).as_deref(), Some("-32768"));
        let expected = "<GDALMetadata><Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.5</Item>\
            <Item name=\"UNITTYPE\" sample=\"0\" role=\"unittype\">&amp;lt;K&amp;gt;</Item></GDALMetadata>";
        assert_eq!(metadata(&attributes).as_deref(), Some(expected));
    }

    #[test]
    fn a_scale_and_an_offset_are_finite_numbers() {
        let attribute = |name: &str, value| ExportAttribute { name: name.to_owned(), value };
        let double =
            |number: f64| AttributeValue::Numbers(ExternalType::Double, number.to_be_bytes().to_vec());
        for value in [
            AttributeValue::Text("abc".to_owned()),
            AttributeValue::Text("NaN".to_owned()),
            AttributeValue::Text("0.5".to_owned()),
            AttributeValue::Numbers(ExternalType::Byte, vec![1, 2]),
            double(f64::INFINITY),
            double(f64::NAN),
        ] {
            assert_eq!(metadata(&[attribute("scale_factor", value.clone())]), None, "{value:?}");
            assert_eq!(metadata(&[attribute("add_offset", value.clone())]), None, "{value:?}");
        }
        let large = metadata(&[attribute("add_offset", double(-1e20))]).unwrap();
        assert!(large.contains(">-1e20<"), "{large}");
    }
}
