//! Bands: together the selection, in C order, of whole chunks along the dimension that is cut.

use std::sync::Arc;

use proptest::prelude::*;

use super::{WriteError, WriteOptions, WritePlan};
use crate::array::Array;
use crate::chunk::{AxisRange, Subset};
use crate::codec::CodecLimits;
use crate::key::NodePath;
use crate::metadata::{MetadataLimits, v3};
use crate::store::StoreOptions;

fn array(shape: &[u64], chunks: &[u64]) -> Arc<Array> {
    let document = serde_json::json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunks } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "bytes" }],
    });
    let parsed = v3::parse(document.to_string().as_bytes(), &MetadataLimits::default());
    let Ok(v3::V3Node::Array(metadata)) = parsed else { panic!("{parsed:?}") };
    let cpu = crate::cpu::ComputePool::new(crate::cpu::ComputePoolOptions { threads: 1 }).unwrap();
    let store = crate::store::open("memory://", &StoreOptions::default(), &cpu).unwrap();
    let array = Array::bind("m".into(), store, NodePath::root(), Arc::new(metadata), &CodecLimits::default());
    Arc::new(array.unwrap())
}

/// The numbers of the selected elements in C order.
fn places(subset: &Subset, shape: &[u64]) -> Vec<u64> {
    let mut places = vec![0];
    for (range, length) in subset.axes().iter().zip(shape) {
        let along = |place: u64| (0..range.count).map(move |k| place * length + range.at(k));
        places = places.into_iter().flat_map(along).collect();
    }
    places
}

#[test]
fn bands_are_the_selection_in_its_order_and_share_no_chunk() {
    let axis = (1_u64..12, 1_u64..5, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1_i64..4);
    proptest!(|(axes in prop::collection::vec(axis, 0..4), band_bytes in 1_u64..80)| {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let chunks: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let ranges = axes.iter().map(|(length, _, start, count, step)| {
            let start = start.index(*length as usize) as u64;
            let most = (length - start).div_ceil(*step as u64);
            AxisRange { start, count: count.index(most as usize + 1) as u64, step: *step, keep: true }
        });
        let subset = Subset(ranges.collect());
        let array = array(&shape, &chunks);
        match WritePlan::new(&array, subset.clone(), band_bytes, &WriteOptions::default()) {
            Ok(plan) => {
                let bands: Vec<Subset> = plan.bands().collect();
                let together: Vec<u64> = bands.iter().flat_map(|band| places(band, &shape)).collect();
                prop_assert_eq!(together, places(&subset, &shape));
                prop_assert!(bands.iter().all(|band| band.elements() <= band_bytes.into() && band.elements() > 0));
                // Each chunk of the selection is in one band.
                let chunks = |band: &Subset| -> u128 {
                    let axes = band.axes().iter().zip(array.grid().axes());
                    axes.map(|(range, axis)| u128::from(axis.touched(range).chunks)).product()
                };
                prop_assert_eq!(bands.iter().map(chunks).sum::<u128>(), chunks(&subset));
            }
            // What a chunk has of the selection, with all that is beside it, does not fit.
            Err(WriteError::TooLarge { requested, limit, .. }) => {
                prop_assert!(requested > limit.into() && limit == band_bytes);
                prop_assert!(subset.elements() > band_bytes.into());
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    });
}

#[test]
fn steps_that_are_not_positive_and_too_many_values_are_refused() {
    let array = array(&[100], &[1]);
    let subset = |step| Subset(vec![AxisRange { start: 50, count: 20, step, keep: true }]);
    let options = WriteOptions { max_values: 10, ..WriteOptions::default() };
    let plan = |step| WritePlan::new(&array, subset(step), 1 << 20, &options);
    assert!(matches!(plan(-1), Err(WriteError::Step { dimension: 0, step: -1 })));
    assert!(matches!(plan(1), Err(WriteError::TooLarge { requested: 20, limit: 10, .. })));
}
