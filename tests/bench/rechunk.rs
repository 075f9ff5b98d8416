//! What a chunk costs through the server, beside decoding and encoding it in this process: `cargo bench --bench rechunk`.
//!
//! A volume of `uint16` in shards of 256³, inner chunks of 32³ by zstd, is asked for in chunks of 64³ by zstd-3, each
//! once: by one client, and by two. In this process, the same chunks are made of the same files by as many threads: inner
//! chunks are read, decoded, put together and encoded by the chain that the server has. The two take turns, every
//! few chunks, so that both have the same machine. The volume has 1 GiB, or as many MiB as are asked for by `-- 256`; it is made in
//! the folder for temporary files.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot continue has failed, and its result is what it prints"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd::app::{ConnectionLimits, Shutdown, serve};
use zarrd::array::{DirectSource, FetchOptions, ReadLimits, Reader};
use zarrd::cache::{BoundedNodeCache, CacheOptions, CachedSource, EncodedCache};
use zarrd::chunk::{AxisRange, ChunkAxis, CopyRegion, Elements, ElementsMut};
use zarrd::codec::{CodecChain, CodecLimits};
use zarrd::cpu::{ComputePool, ComputePoolOptions};
use zarrd::http::HttpOptions;
use zarrd::metadata::{CodecMetadata, DataType, FillValue, MetadataLimits};
use zarrd::services::{AppState, ArrayEngine, Mount};
use zarrd::store::StoreOptions;
use zarrd::views::pyramid::PyramidOptions;
use zarrd::web::Endpoint;
use zarrd::write::{AppendWriter, ArrayWriter, WriteOptions};

/// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Edges of a shard, of an inner chunk, and of a chunk that is asked for.
const SHARD: u64 = 256;
const INNER: u64 = 32;
const CHUNK: u64 = 64;
const ITEM: usize = 2;
/// Shards along the last two dimensions.
const ACROSS: u64 = 4;
/// The number of chunks made by one, and then by the other.
const TURN: usize = 64;

fn little() -> CodecMetadata {
    CodecMetadata::new("bytes", json!({ "endian": "little" }))
}

fn zstd() -> CodecMetadata {
    CodecMetadata::new("zstd", json!({ "level": 3, "checksum": false }))
}

fn as_json(codec: &CodecMetadata) -> Value {
    json!({ "name": codec.name, "configuration": codec.configuration })
}

fn sharding() -> CodecMetadata {
    let index = [as_json(&little()), json!({ "name": "crc32c" })];
    let codecs = [as_json(&little()), as_json(&zstd())];
    let inner = [INNER; 3];
    let configuration = json!({ "chunk_shape": inner, "codecs": codecs, "index_codecs": index });
    CodecMetadata::new("sharding_indexed", configuration)
}

fn bound(codecs: &[CodecMetadata], edge: u64) -> CodecChain {
    let fill_value = FillValue::from_bytes(&[0; ITEM]);
    CodecChain::bind(codecs, &DataType::UInt16, &[edge; 3], &fill_value, &CodecLimits::default())
        .expect("the codecs are right")
}

fn shard_path(folder: &Path, coords: [u64; 3]) -> PathBuf {
    let [z, y, x] = coords;
    folder.join(format!("a/c/{z}/{y}/{x}"))
}

/// Smooth values with some noise, so that they compress as measured data does.
fn shard(coords: [u64; 3]) -> Vec<u8> {
    let mut noise =
        coords.iter().fold(88_172_645_463_325_252, |seed: u64, at| seed.wrapping_mul(31).wrapping_add(*at))
            | 1;
    let mut items = Vec::with_capacity(usize::try_from(SHARD.pow(3)).expect("it is small") * ITEM);
    for z in 0..SHARD {
        for y in 0..SHARD {
            for x in 0..SHARD {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                let value = 1000 + (x * 3 + y * 2 + z) / 4 + noise % 16;
                items.extend_from_slice(&u16::try_from(value).unwrap_or(u16::MAX).to_le_bytes());
            }
        }
    }
    items
}

fn write(folder: &Path, shards: [u64; 3]) {
    let (shape, shard_shape) = (shards.map(|count| count * SHARD), [SHARD; 3]);
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint16", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": shard_shape } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "codecs": [as_json(&sharding())],
    });
    std::fs::create_dir_all(folder.join("a")).expect("there is free space");
    std::fs::write(folder.join("a/zarr.json"), document.to_string()).expect("there is free space");
    let chain = bound(&[sharding()], SHARD);
    for z in 0..shards[0] {
        for y in 0..shards[1] {
            for x in 0..shards[2] {
                let path = shard_path(folder, [z, y, x]);
                std::fs::create_dir_all(path.parent().expect("it has one")).expect("there is free space");
                let encoded = chain.encode(Elements::fixed(shard([z, y, x]).into())).expect("it fits");
                std::fs::write(path, encoded).expect("there is free space");
            }
        }
    }
}

/// A chunk, made in this process.
fn make(folder: &Path, sharded: &CodecChain, target: &CodecChain, coords: [u64; 3]) -> Bytes {
    let per_shard = SHARD / CHUNK;
    let file = File::open(shard_path(folder, coords.map(|at| at / per_shard))).expect("it was written");
    let size = file.metadata().expect("it is a file").len();
    let sharding = sharded.sharding().expect("it is sharded");
    let read = |range: std::ops::Range<u64>| {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).expect("it is small")];
        file.read_exact_at(&mut bytes, range.start).expect("it is there");
        Bytes::from(bytes)
    };
    let index = sharding.index_range(size).expect("it has one");
    let index = sharding.decode_index(&read(index), size).expect("it has one");
    let ranges = coords.map(|at| AxisRange { start: at % per_shard * CHUNK, ..AxisRange::full(CHUNK) });
    let length = usize::try_from(CHUNK.pow(3)).expect("it is small") * ITEM;
    let mut elements = ElementsMut::fixed(vec![0; length], ITEM);
    let grid = [0; 3].map(|_| ChunkAxis::new(SHARD, INNER));
    for (inner, window) in CopyRegion::packed(&ranges, ITEM).split_by_chunks(&grid) {
        let number = inner.iter().fold(0, |number, at| number * (SHARD / INNER) + at);
        let range = index.get(usize::try_from(number).expect("it is small")).expect("it is not empty");
        let decoded = sharding.inner_chain().decode(read(range)).expect("it was encoded");
        elements.copy_from(&decoded, &[INNER; 3], &window).expect("it fits");
    }
    target.encode(elements.freeze()).expect("it fits")
}

fn in_process(folder: &Path, chunks: &[[u64; 3]], threads: usize) -> Duration {
    let (sharded, target) = (bound(&[sharding()], SHARD), bound(&[little(), zstd()], CHUNK));
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&coords) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    std::hint::black_box(make(folder, &sharded, &target, coords));
                }
            });
        }
    });
    start.elapsed()
}

/// A client that does no more than it must, so that what is measured is the server.
struct Client {
    connection: TcpStream,
    read: Vec<u8>,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        let connection = TcpStream::connect(address).expect("the server listens");
        connection.set_nodelay(true).expect("the option is supported");
        Self { connection, read: vec![0; 4 << 20] }
    }

    /// The bytes of a chunk.
    fn get(&mut self, [z, y, x]: [u64; 3]) -> &[u8] {
        let path = format!("/rechunk/m/{CHUNK},{CHUNK},{CHUNK}/zstd-3/a/c/{z}/{y}/{x}");
        let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n");
        self.connection.write_all(request.as_bytes()).expect("it listens");
        let (mut end, mut head) = (0, None);
        loop {
            let read = self.connection.read(&mut self.read[end..]).expect("it answers");
            assert!(read > 0, "the answer breaks off");
            end += read;
            let (start, length) = *match &mut head {
                Some(head) => head,
                None => match head_of(&self.read[..end]) {
                    Some(found) => head.insert(found),
                    None => continue,
                },
            };
            if end == start + length {
                return &self.read[start..end];
            }
        }
    }
}

/// Where the body of a good answer begins and how long it is, once its head is there.
fn head_of(read: &[u8]) -> Option<(usize, usize)> {
    let end = read.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = str::from_utf8(&read[..end]).expect("it is text").to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("it says so");
    Some((end + 4, length.parse().expect("it is a number")))
}

fn asked(clients: &mut [Client], chunks: &[[u64; 3]]) -> Duration {
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for client in clients {
            scope.spawn(|| {
                while let Some(&coords) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    std::hint::black_box(client.get(coords));
                }
            });
        }
    });
    start.elapsed()
}

fn site(folder: &Path) -> Endpoint {
    let cpu = ComputePool::new(ComputePoolOptions::default()).expect("there are threads");
    let store = zarrd::store::open(folder.to_str().expect("it is text"), &StoreOptions::default(), &cpu);
    let cache = CacheOptions::default();
    let source = Arc::new(DirectSource::new(cpu.clone(), FetchOptions::default()));
    let writer = ArrayWriter::new(cpu.clone(), WriteOptions::default(), zarrd::config::unix_seconds);
    let arrays = ArrayEngine {
        reader: Reader::new(Arc::new(CachedSource::new(source, &cache)), cpu.clone()),
        appends: AppendWriter::new(writer.clone(), cpu.clone()),
        writer,
        cpu,
        memo: Arc::new(BoundedNodeCache::new(cache.node_size)),
        answers_bytes: 0,
        encoded: EncodedCache::new(cache.encoded_size),
        caches: zarrd::cache::Caches::default(),
        read: ReadLimits::default(),
        pyramid: PyramidOptions::default(),
        metadata: MetadataLimits::default(),
        codec: CodecLimits::default(),
    };
    let mount = Mount::read_only("m", store.expect("the folder is there"));
    Endpoint::whole(AppState::new([mount], arrays, HttpOptions::default()).expect("the options are right"))
}

/// Time that the processor has worked for this process, its own and the kernel's.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().into_iter().flat_map(str::split_whitespace).skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn main() {
    let mib = std::env::args().find_map(|text| text.parse().ok()).unwrap_or(1024_u64);
    let deep = (mib << 20).div_ceil(ACROSS * ACROSS * SHARD.pow(3) * ITEM as u64).max(1);
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    write(folder.path(), [deep, ACROSS, ACROSS]);
    let target = bound(&[little(), zstd()], CHUNK);
    let sharded = bound(&[sharding()], SHARD);

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("there are threads");
    runtime.block_on(async {
        for clients in [1, 2] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
            let address = listener.local_addr().expect("it has one");
            let config = zarrd::config::Config::default();
            let limits = ConnectionLimits::new(config.server, config.http.max_headers);
            let shutdown = Shutdown::default();
            let serving = tokio::spawn(serve(listener, site(folder.path()), limits, shutdown.clone()));
            let mut asking: Vec<Client> = (0..clients).map(|_| Client::new(address)).collect();
            let same = make(folder.path(), &sharded, &target, [0; 3]);
            for client in &mut asking {
                let answer = tokio::task::block_in_place(|| client.get([0; 3]));
                assert_eq!(answer, same, "both make the same bytes");
            }

            let across = ACROSS * SHARD / CHUNK;
            let (mut alone, mut served, mut ratios) = (Duration::ZERO, Duration::ZERO, Vec::new());
            let mut worked = [Duration::ZERO; 2];
            let all: Vec<[u64; 3]> = (0..deep * SHARD / CHUNK)
                .flat_map(|z| (0..across).flat_map(move |y| (0..across).map(move |x| [z, y, x])))
                .collect();
            for chunks in all.chunks(TURN) {
                let begun = processor_time();
                let one = tokio::task::block_in_place(|| in_process(folder.path(), chunks, clients));
                let between = processor_time();
                let other = tokio::task::block_in_place(|| asked(&mut asking, chunks));
                worked[0] += between.saturating_sub(begun);
                worked[1] += processor_time().saturating_sub(between);
                alone += one;
                served += other;
                ratios.push(other.as_secs_f64() / one.as_secs_f64());
            }
            ratios.sort_by(f64::total_cmp);
            let count = all.len() as f64;
            let each = |time: Duration| time.as_secs_f64() * 1e6 / count;
            println!(
                "{clients} at a time: {:.0} µs a chunk in this process ({:.0} of the processor), {:.0} µs through the server \
                 ({:.0}, with its client): {:.2} times; the median of {} turns {:.2}",
                each(alone),
                each(worked[0]),
                each(served),
                each(worked[1]),
                each(served) / each(alone),
                ratios.len(),
                ratios[ratios.len() / 2],
            );
            serving.abort();
        }
    });
}
