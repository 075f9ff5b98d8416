//! [`AxisReduction`]: one statistic over whole dimensions of a selection.

use half::{bf16, f16};

use super::cf::CfValues;
use super::number::{Real, RealFloat};
use super::statistics::{Cells, Statistic};
use crate::chunk::{AxisRange, Subset};
use crate::metadata::DataType;

/// Bytes that the sum of floats of similar size needs.
const USUAL_SUM_BYTES: u64 = 32;

/// A statistic over some dimensions, which the result does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisReduction {
    statistic: Statistic,
    values: CfValues,
    /// For each dimension of the array, whether it is reduced.
    is_reduced: Vec<bool>,
    data_type: DataType,
}

/// A sum of integers that no integer of 64 bits holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sum does not fit in an integer of 64 bits; `mean` does, and `/v1/stats` has sums of any length")]
pub struct SumOverflow;

impl AxisReduction {
    /// A statistic over the dimensions of an array for which `is_reduced` holds. `stored` is the type of its elements.
    #[must_use]
    pub fn new(statistic: Statistic, stored: &DataType, values: CfValues, is_reduced: Vec<bool>) -> Self {
        let data_type = statistic.data_type(stored, &values);
        Self { statistic, values, is_reduced, data_type }
    }

    /// The statistic.
    #[must_use]
    pub fn statistic(&self) -> Statistic {
        self.statistic
    }

    /// The values that elements are.
    #[must_use]
    pub fn values(&self) -> &CfValues {
        &self.values
    }

    /// For each dimension of the array, whether it is reduced.
    #[must_use]
    pub fn is_reduced(&self) -> &[bool] {
        &self.is_reduced
    }

    /// The type of results.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The selection of the shape of the result: of each reduced dimension the first element, without the dimension.
    #[must_use]
    pub fn result(&self, subset: &Subset) -> Subset {
        let axes = subset.axes().iter().zip(&self.is_reduced);
        let one = |axis: &AxisRange| AxisRange { count: 1, keep: false, ..*axis };
        Subset(axes.map(|(axis, &is_reduced)| if is_reduced { one(axis) } else { *axis }).collect())
    }

    /// The elements that some results are made of, which are a part of [`AxisReduction::result`].
    #[must_use]
    pub fn source(&self, results: &Subset, subset: &Subset) -> Subset {
        let axes = results.axes().iter().zip(subset.axes()).zip(&self.is_reduced);
        Subset(axes.map(|((result, axis), &is_reduced)| if is_reduced { *axis } else { *result }).collect())
    }

    /// Bytes of memory for one result while it is computed, usually; and the most.
    #[must_use]
    pub fn cell_bytes(&self) -> (u64, u64) {
        let (integers, sums) = match self.statistic {
            Statistic::Count | Statistic::Missing | Statistic::Nan => (0, 0),
            Statistic::Min | Statistic::Max => return (24 + 32, 24 + 32),
            Statistic::Mean | Statistic::Sum => (16, 1),
            Statistic::Std => (16 + 24, 2),
        };
        if self.values.are_integers() {
            return (24 + integers, 24 + integers);
        }
        let most = self.values.most_sum_bytes();
        (24 + 1 + sums * USUAL_SUM_BYTES.min(most), 24 + 2 + sums * most)
    }

    /// Cells for this number of results.
    #[must_use]
    pub fn cells(&self, results: usize) -> Cells {
        Cells::of_one(&self.values, results, self.statistic)
    }

    /// The results of all cells, as elements in canonical form.
    ///
    /// # Errors
    /// [`SumOverflow`].
    pub fn results(&self, cells: &Cells) -> Result<Vec<u8>, SumOverflow> {
        let mut items = Vec::with_capacity(cells.len().saturating_mul(self.data_type.element_bytes()));
        for cell in 0..cells.len() {
            let mut put = |item: &[u8]| items.extend_from_slice(item);
            match self.statistic {
                Statistic::Count => put(&cells.count(cell).to_le_bytes()),
                Statistic::Missing => put(&cells.missing(cell).to_le_bytes()),
                Statistic::Nan => put(&cells.nan(cell).to_le_bytes()),
                Statistic::Mean => put(&cells.mean(cell).unwrap_or(f64::NAN).to_le_bytes()),
                Statistic::Std => put(&cells.deviation(cell).unwrap_or(f64::NAN).to_le_bytes()),
                Statistic::Sum => match (cells.integer_sum(cell), &self.data_type) {
                    (None, _) => put(&cells.sum(cell).to_le_bytes()),
                    (Some(sum), DataType::UInt64) => {
                        put(&u64::try_from(sum).map_err(|_too_large| SumOverflow)?.to_le_bytes());
                    }
                    (Some(sum), _) => {
                        put(&i64::try_from(sum).map_err(|_too_large| SumOverflow)?.to_le_bytes());
                    }
                },
                Statistic::Min | Statistic::Max => self.put_extreme(cells, cell, &mut items),
            }
        }
        Ok(items)
    }

    /// Appends an extreme in the type of the elements; without values a missing one.
    fn put_extreme(&self, cells: &Cells, cell: usize, items: &mut Vec<u8>) {
        let extremes = cells.extremes(cell);
        let is_min = self.statistic == Statistic::Min;
        if let Some((low, high)) = extremes.integers {
            let number = if is_min { low } else { high };
            // The bytes of an integer of fewer bits are the lowest ones.
            items.extend(number.to_le_bytes().into_iter().take(self.data_type.element_bytes()));
            return;
        }
        let number = extremes.floats.map(|(low, high)| if is_min { low } else { high });
        match self.values.data_type() {
            DataType::Float16 => put_float::<f16>(number, items),
            DataType::BFloat16 => put_float::<bf16>(number, items),
            DataType::Float32 => put_float::<f32>(number, items),
            DataType::Float64 => put_float::<f64>(number, items),
            _ => {
                let zero = [0; 8];
                let missing = self.values.first_missing().unwrap_or(&zero);
                items.extend(missing.iter().copied().take(self.data_type.element_bytes()));
            }
        }
    }
}

/// Appends a float that its type holds exactly; NaN for none.
fn put_float<T: RealFloat>(number: Option<f64>, items: &mut Vec<u8>) {
    number.map_or_else(<T as Real>::undefined, T::rounded).put(items);
}
