//! The tags of an image, and how they are written: an image file directory (TIFF 6.0, section 2; BigTIFF).

/// Values out of their entries begin at a multiple of this.
const ALIGNMENT: usize = 8;

/// The values of a tag.
pub(super) enum TagValues {
    /// `ASCII`, which ends with a zero.
    Text(String),
    /// `SHORT`.
    Shorts(Vec<u16>),
    /// `LONG`.
    Longs(Vec<u32>),
    /// Places and lengths: `LONG`, in BigTIFF `LONG8`.
    Places(Vec<u64>),
    /// `DOUBLE`.
    Doubles(Vec<f64>),
}

/// A tag and its values.
pub(super) struct Tag {
    pub(super) number: u16,
    pub(super) values: TagValues,
}

/// Tags in ascending order of their numbers, as a file begins with them: the header of the file, the directory, and what does not
/// fit in it. The length follows from the numbers of values.
pub(super) fn write(tags: &[Tag], is_big: bool) -> Vec<u8> {
    let mut out = Output { bytes: b"MM".to_vec(), is_big };
    if is_big {
        // The version, the bytes of a place, and zero.
        for number in [43_u16, 8, 0] {
            out.bytes.extend_from_slice(&number.to_be_bytes());
        }
        out.place(16);
        out.bytes.extend_from_slice(&(tags.len() as u64).to_be_bytes());
    } else {
        out.bytes.extend_from_slice(&42_u16.to_be_bytes());
        out.place(8);
        out.bytes.extend_from_slice(&u16::try_from(tags.len()).unwrap_or(u16::MAX).to_be_bytes());
    }
    let entry = 4 + 2 * out.place_bytes();
    let directory_end = out.bytes.len() + tags.len() * entry + out.place_bytes();
    let begin = directory_end.next_multiple_of(ALIGNMENT);
    let mut outside: Vec<u8> = Vec::new();
    for Tag { number, values } in tags {
        let (kind, count, mut bytes) = values.encode(is_big);
        out.bytes.extend_from_slice(&number.to_be_bytes());
        out.bytes.extend_from_slice(&kind.to_be_bytes());
        out.place(count as u64);
        if bytes.len() <= out.place_bytes() {
            bytes.resize(out.place_bytes(), 0);
            out.bytes.extend_from_slice(&bytes);
        } else {
            out.place((begin + outside.len()) as u64);
            outside.extend_from_slice(&bytes);
            outside.resize(outside.len().next_multiple_of(ALIGNMENT), 0);
        }
    }
    // There is no other image.
    out.place(0);
    out.bytes.resize(begin, 0);
    out.bytes.extend_from_slice(&outside);
    out.bytes
}

impl TagValues {
    /// The number of the type, the number of values, and their bytes.
    fn encode(&self, is_big: bool) -> (u16, usize, Vec<u8>) {
        match self {
            Self::Text(text) => {
                let bytes = [text.as_bytes(), &[0]].concat();
                (2, bytes.len(), bytes)
            }
            Self::Shorts(list) => (3, list.len(), list.iter().flat_map(|one| one.to_be_bytes()).collect()),
            Self::Longs(list) => (4, list.len(), list.iter().flat_map(|one| one.to_be_bytes()).collect()),
            Self::Places(list) if is_big => {
                (16, list.len(), list.iter().flat_map(|one| one.to_be_bytes()).collect())
            }
            Self::Places(list) => {
                let narrow = |one: &u64| u32::try_from(*one).unwrap_or(u32::MAX).to_be_bytes();
                (4, list.len(), list.iter().flat_map(narrow).collect())
            }
            Self::Doubles(list) => (12, list.len(), list.iter().flat_map(|one| one.to_be_bytes()).collect()),
        }
    }
}

/// The bytes of a file while they are written.
struct Output {
    bytes: Vec<u8>,
    is_big: bool,
}

impl Output {
    fn place_bytes(&self) -> usize {
        if self.is_big { 8 } else { 4 }
    }

    fn place(&mut self, place: u64) {
        if self.is_big {
            self.bytes.extend_from_slice(&place.to_be_bytes());
        } else {
            self.bytes.extend_from_slice(&u32::try_from(place).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}
