//! Stored chunks that were damaged or forged, of every codec that has a format of its own: bits and bytes changed anywhere, numbers
//! set to extremes, cut off, spliced from others, and noise behind a valid beginning. Each decodes to as many bytes as the chunk
//! has, or is corrupt: nothing panics, and nothing takes memory that such a chunk is not worth.
//!
//! A test binary of its own, with one test: the allocator counts what the codecs allocate. The libraries in C have their own,
//! for them the process must not grow. Longer by hand, and then with a bound on the time that a chunk takes:
//! `ZARRD_DAMAGED=100000 cargo test --test damaged -- --nocapture`.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd::chunk::{Elements, Runs};
use zarrd::codec::{CodecChain, CodecError, CodecLimits};
use zarrd::metadata::{CodecMetadata, DataType, FillValue};

const SHAPE: [u64; 3] = [16, 16, 16];
const ELEMENTS: usize = 16 * 16 * 16;
/// Chunks of each family in `cargo test`.
const FEW: u64 = 600;
/// Memory that a decoder may use beside its output: bzip2's tables take 3.6 MiB, if a chunk says so.
const TABLES_BYTES: u64 = 4 << 20;
/// A buffer that grows is there twice.
const TIMES: u64 = 2;
/// By how much the process may grow over all, for the tables and windows of libraries in C.
const GROWN_BYTES: u64 = 192 << 20;
/// Seconds of CPU that a chunk of 32 KiB may take at most, measured only by hand.
const MOST_SECONDS: f64 = 1.0;

/// A codec's name, and the chains with it over elements of a type.
type Family = (&'static str, Vec<(Value, DataType)>);

fn families() -> Vec<Family> {
    let little = || json!(["bytes", {"endian": "little"}]);
    let behind = |codecs: &[Value]| -> Value { [little()].iter().chain(codecs).cloned().collect() };
    let of_bytes = |name: &'static str, configurations: Vec<Value>| -> Family {
        let chains = configurations.into_iter().flat_map(|configuration| {
            let codec = json!([name, configuration]);
            // Alone, where the size is known, and behind another, where only a bound is.
            let twice = json!([name, codec[1]]);
            [
                (behind(std::slice::from_ref(&codec)), DataType::UInt32),
                (behind(&[codec, twice]), DataType::UInt16),
            ]
        });
        (name, chains.collect())
    };
    let mut blosc = Vec::new();
    for cname in ["lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"] {
        for shuffle in ["noshuffle", "shuffle", "bitshuffle"] {
            for blocksize in [0, 1 << 10] {
                blosc.push(json!({"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": blocksize}));
            }
        }
    }
    let mut pcodec = Vec::new();
    for data_type in [
        DataType::Int8,
        DataType::UInt16,
        DataType::Int32,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
    ] {
        for delta in ["none", "try_consecutive", "try_lookback"] {
            let configuration = json!({"level": 4, "delta_spec": delta, "equal_pages_up_to": 1000});
            pcodec.push((json!([["numcodecs.pcodec", configuration]]), data_type.clone()));
        }
    }
    let mut zfp = Vec::new();
    for data_type in [DataType::Int32, DataType::Int64, DataType::Float32, DataType::Float64] {
        for codec in [
            json!(["zfp", {"mode": "reversible"}]),
            json!(["zfp", {"mode": "fixed_accuracy", "tolerance": 0.01}]),
            json!(["zfp", {"mode": "fixed_precision", "precision": 13}]),
            json!(["zfp", {"mode": "fixed_rate", "rate": 7}]),
            json!(["zfp", {"mode": "expert", "minbits": 1, "maxbits": 400, "maxprec": 20, "minexp": -1074}]),
            json!(["numcodecs.zfpy", {"mode": 4, "tolerance": 0.5}]),
            json!(["numcodecs.zfpy", {"mode": 2, "rate": 9}]),
            json!(["numcodecs.zfpy", {}]),
        ] {
            zfp.push((json!([codec]), data_type.clone()));
        }
    }
    vec![
        of_bytes("blosc", blosc),
        of_bytes("numcodecs.lz4", vec![json!({"acceleration": 1})]),
        of_bytes(
            "zstd",
            vec![json!({"level": 1}), json!({"level": 3, "checksum": true}), json!({"level": 19})],
        ),
        ("numcodecs.pcodec", pcodec),
        ("zfp", zfp),
        of_bytes("gzip", vec![json!({"level": 1}), json!({"level": 9})]),
        of_bytes("numcodecs.zlib", vec![json!({"level": 1})]),
        of_bytes("numcodecs.bz2", vec![json!({"level": 1})]),
        of_bytes(
            "numcodecs.lzma",
            vec![
                json!({"preset": 0}),
                json!({"filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]}),
                json!({"format": 2, "preset": 0}),
                json!({"format": 3, "filters": [{"id": 33, "dict_size": 65_536}]}),
            ],
        ),
    ]
}

/// A chain, and chunks that it has encoded.
struct Good {
    chain: CodecChain,
    /// The chain that decodes a part of a chunk, if the codec can.
    part: Option<CodecChain>,
    chunks: Vec<Bytes>,
}

fn good(list: &Value, data_type: &DataType) -> Good {
    let codecs: Vec<CodecMetadata> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|codec| CodecMetadata::new(codec[0].as_str().unwrap(), codec[1].clone()))
        .collect();
    let fill = FillValue::zero(data_type);
    let chain = CodecChain::bind(&codecs, data_type, &SHAPE, &fill, &CodecLimits::default());
    let chain = chain.unwrap_or_else(|error| panic!("{list}: {error}"));
    let size = data_type.element_bytes();
    let part = chain.part(Runs { start: 64 * size, count: 3, length: 40 * size, stride: 256 * size });
    let chunks = (0..4).map(|kind| chain.encode(Elements::fixed(items(data_type, kind))).unwrap()).collect();
    Good { chain, part, chunks }
}

/// Elements of a kind: all alike, a ramp, a ramp with noise, and noise. Finite, where they are floats.
fn items(data_type: &DataType, kind: usize) -> Bytes {
    let mut dice = Dice(kind as u64);
    let mut items = Vec::new();
    for place in 0..ELEMENTS as u64 {
        let number = match kind {
            0 => 7,
            1 => place,
            2 => place / 8 + dice.below(5),
            _ => dice.next() >> 40,
        };
        let small = u16::try_from(number % 1000).unwrap();
        match data_type {
            DataType::Float16 => items.extend(half::f16::from_f32(f32::from(small)).to_le_bytes()),
            DataType::Float32 => items.extend((f32::from(small) / 3.0).to_le_bytes()),
            DataType::Float64 => items.extend((f64::from(small) / 3.0).to_le_bytes()),
            other => items.extend(&number.to_le_bytes()[..other.element_bytes()]),
        }
    }
    Bytes::from(items)
}

/// Numbers that seem random and are always the same.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    /// A place in a value: mostly near an end, where headers and footers are.
    fn place(&mut self, length: usize) -> usize {
        let near = length.min(48);
        match self.below(4) {
            0 => self.index(length),
            1 => length - 1 - self.index(near),
            _ => self.index(near),
        }
    }
}

/// Changes a value by one to three of the ways there are.
fn damage(dice: &mut Dice, value: &mut Vec<u8>, decoded: u64, others: &[Bytes]) {
    for _ in 0..=dice.below(3) {
        if value.is_empty() {
            return;
        }
        let length = value.len();
        match dice.below(8) {
            0 => (0..=dice.below(8)).for_each(|_| {
                let place = dice.index(length);
                value[place] ^= 1 << dice.below(8);
            }),
            1 => (0..=dice.below(8)).for_each(|_| {
                let place = dice.place(length);
                value[place] = dice.next().to_le_bytes()[0];
            }),
            2 => value.truncate(dice.index(length)),
            3 => extreme(dice, value, decoded),
            4 => {
                // A valid beginning, and a part of another value.
                let other = &others[dice.index(others.len())];
                let (keep, from) = (dice.place(length), dice.index(other.len()));
                value.truncate(keep);
                value.extend_from_slice(&other[from..]);
            }
            5 => {
                let keep = dice.place(length);
                value[keep..].iter_mut().for_each(|byte| *byte = dice.next().to_le_bytes()[0]);
            }
            6 => {
                // Runs of bits all alike: counters at their ends, and tables of one entry.
                let (from, byte) = (dice.place(length), if dice.below(2) == 0 { 0 } else { 0xff });
                let run = dice.index(12);
                value.iter_mut().skip(from).take(run).for_each(|place| *place = byte);
            }
            _ => {
                let (from, count) = (dice.index(length), dice.index(300));
                let again: Vec<u8> = value.iter().copied().skip(from).take(count).collect();
                let at = dice.index(length);
                value.splice(at..at, again);
            }
        }
    }
}

/// Sets a number of one to eight bytes, in either order, to an arbitrary value.
fn extreme(dice: &mut Dice, value: &mut [u8], decoded: u64) {
    let length = value.len() as u64;
    let numbers = [
        0,
        1,
        2,
        decoded - 1,
        decoded,
        decoded + 1,
        2 * decoded,
        length - 1,
        length,
        length + 1,
        1 << 24,
        1 << 27,
        1 << 30,
        0x7fff_ffef,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_fff0,
        0xffff_ffff,
        1 << 32,
        1 << 46,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    let number = numbers[dice.index(numbers.len())];
    let width = 1 << dice.below(4);
    let mut bytes = number.to_le_bytes()[..width].to_vec();
    if dice.below(4) == 0 {
        bytes.reverse();
    }
    let at = dice.place(value.len());
    // Numbers stand at even places more often than not.
    let at = if dice.below(2) == 0 { at / width * width } else { at };
    value.iter_mut().skip(at).zip(bytes).for_each(|(place, byte)| *place = byte);
}

/// The outcomes for the chunks of a family.
#[derive(Default)]
struct Tally {
    decoded: u64,
    corrupt: u64,
    most_bytes: u64,
    most_seconds: f64,
}

impl Tally {
    fn decode(&mut self, chain: &CodecChain, value: &Bytes, timed: bool) {
        let begun = if timed { seconds() } else { 0.0 };
        let before = counting::begin();
        let decoded = catch_unwind(AssertUnwindSafe(|| chain.decode(value.clone())));
        let took = counting::most() - before;
        if timed {
            self.most_seconds = self.most_seconds.max(seconds() - begun);
        }
        self.most_bytes = self.most_bytes.max(took);
        let most = TIMES * (chain.working_bytes() + value.len() as u64) + TABLES_BYTES;
        assert!(took <= most, "{took} bytes for {}", hex(value));
        match decoded {
            Ok(Ok(elements)) => {
                assert_eq!(elements.items().len() as u64, chain.decoded_bytes(), "{}", hex(value));
                self.decoded += 1;
            }
            // A dictionary of LZMA that is too large is none that is read here.
            Ok(Err(CodecError::Corrupt { .. } | CodecError::Unsupported(_))) => self.corrupt += 1,
            Ok(Err(error)) => panic!("{error:?} for {}", hex(value)),
            Err(panicked) => panic!("{panicked:?} for {}", hex(value)),
        }
    }
}

fn hex(value: &[u8]) -> String {
    value.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Seconds of CPU that this thread has had.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
    nanoseconds / 1e9
}

/// The most memory that the process has had, in bytes.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_damaged_chunk_decodes_to_its_size_or_is_corrupt_and_takes_no_more_than_it_is_worth() {
    let by_hand: Option<u64> =
        std::env::var_os("ZARRD_DAMAGED").map(|text| text.to_str().unwrap().parse().unwrap());
    for (name, chains) in families() {
        let good: Vec<Good> = chains.iter().map(|(list, data_type)| good(list, data_type)).collect();
        let (mut tally, mut dice, resident) = (Tally::default(), Dice(1), most_resident());
        for number in 0..by_hand.unwrap_or(FEW) {
            let Good { chain, part, chunks } = &good[dice.index(good.len())];
            let mut value = chunks[dice.index(chunks.len())].to_vec();
            damage(&mut dice, &mut value, chain.decoded_bytes(), chunks);
            let value = Bytes::from(value);
            let chain = part.as_ref().filter(|_| number % 4 == 0).unwrap_or(chain);
            tally.decode(chain, &value, by_hand.is_some());
        }
        let Tally { decoded, corrupt, most_bytes, most_seconds } = tally;
        let grown = most_resident() - resident;
        println!(
            "{name}: {decoded} decoded, {corrupt} corrupt; at most {} KiB and {:.1} ms a chunk; {} MiB more in memory",
            most_bytes >> 10,
            1000.0 * most_seconds,
            grown >> 20,
        );
        assert!(decoded > 0 && corrupt > 0, "{name}: what is never decoded, or always, is no test");
        assert!(grown <= GROWN_BYTES, "{name}: {grown} bytes");
        assert!(most_seconds <= MOST_SECONDS, "{name}: {most_seconds} s");
    }
}

/// The system's allocator, with a count of allocated bytes.
#[expect(unsafe_code, reason = "an allocator cannot be written otherwise; it passes on what it is given")]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[global_allocator]
    static ALLOCATOR: Counting = Counting { live: AtomicU64::new(0), most: AtomicU64::new(0) };

    struct Counting {
        live: AtomicU64,
        most: AtomicU64,
    }

    /// Restarts the count; bytes that are allocated now.
    pub(super) fn begin() -> u64 {
        let live = ALLOCATOR.live.load(Relaxed);
        ALLOCATOR.most.store(live, Relaxed);
        live
    }

    /// The most bytes that have been allocated since.
    pub(super) fn most() -> u64 {
        ALLOCATOR.most.load(Relaxed)
    }

    impl Counting {
        fn add(&self, bytes: usize) {
            let live = self.live.fetch_add(bytes as u64, Relaxed) + bytes as u64;
            self.most.fetch_max(live, Relaxed);
        }
    }

    // SAFETY: every call is passed on to the system's allocator as it came.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.add(layout.size());
            // SAFETY: the caller keeps what `alloc` asks for.
            unsafe { System.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            self.add(layout.size());
            // SAFETY: the caller keeps what `alloc_zeroed` asks for.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            self.add(size);
            self.live.fetch_sub(layout.size() as u64, Relaxed);
            // SAFETY: the caller keeps what `realloc` asks for.
            unsafe { System.realloc(pointer, layout, size) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            self.live.fetch_sub(layout.size() as u64, Relaxed);
            // SAFETY: the caller keeps what `dealloc` asks for.
            unsafe { System.dealloc(pointer, layout) }
        }
    }
}
