//! [`Reducer`]: one method for the elements of one type.

use half::{bf16, f16};

use super::accumulate::{Accumulate, Folded};
use super::extreme::PresentExtreme;
use super::mean::Average;
use super::method::{Method, ReduceError};
use super::missing::Missing;
use super::number::Real;
use super::present::PresentOnly;
use super::read_as::read_as;
use super::windows::Windows;
use super::{complex, extreme, mode, stride};
use crate::metadata::{ArrayMetadata, DataType};

/// A method for the elements of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reducer {
    method: Method,
    data_type: DataType,
    missing: Missing,
}

/// Work on elements of some real type.
trait Visit {
    type Result;

    fn visit<T: Average>(self, missing: PresentOnly<T>) -> Self::Result;
}

impl Reducer {
    /// A method for the elements of a type, of which some values are missing.
    ///
    /// # Errors
    /// [`ReduceError::Undefined`].
    pub fn new(method: Method, data_type: &DataType, missing: Missing) -> Result<Self, ReduceError> {
        method.check(data_type)?;
        Ok(Self { method, data_type: data_type.clone(), missing })
    }

    /// A method for the elements of an array, with the sign that `_Unsigned` says, and its [missing values](Missing::of_array).
    ///
    /// # Errors
    /// [`ReduceError`].
    pub fn of_array(method: Method, metadata: &ArrayMetadata) -> Result<Self, ReduceError> {
        let data_type = &metadata.data_type;
        method.check(data_type)?;
        let missing = match method {
            Method::Stride => Missing::default(),
            _ => Missing::of_array(metadata)?,
        };
        Self::new(method, &read_as(&metadata.attributes, data_type), missing)
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// The bytes of an element, which are those of a result too.
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        self.data_type.element_bytes()
    }

    /// Reduces a box of elements of this shape, given in canonical form and C order, by a factor for each dimension. The
    /// result has `ceil(length / factor)` elements along each.
    #[must_use]
    pub fn reduce(&self, items: &[u8], shape: &[usize], factors: &[usize]) -> Vec<u8> {
        let windows = &Windows::new(shape, factors);
        if self.method == Method::Stride {
            return stride::reduce(items, windows, self.element_bytes());
        }
        match &self.data_type {
            DataType::ComplexFloat16 => complex::reduce::<f16>(items, windows),
            DataType::ComplexBFloat16 => complex::reduce::<bf16>(items, windows),
            DataType::Complex64 => complex::reduce::<f32>(items, windows),
            DataType::Complex128 => complex::reduce::<f64>(items, windows),
            _ => self.visit(Boxed { method: self.method, items, windows }).unwrap_or_default(),
        }
    }

    /// One window whose elements are given one part after the other; `None` for `mode`, which needs all of them at once.
    #[must_use]
    pub fn accumulate(&self) -> Option<Box<dyn Accumulate>> {
        if self.method == Method::Stride {
            return Some(Box::new(First { element_bytes: self.element_bytes(), item: Vec::new() }));
        }
        match &self.data_type {
            DataType::ComplexFloat16 => Some(Box::new(complex::ComplexSum::<f16>::default())),
            DataType::ComplexBFloat16 => Some(Box::new(complex::ComplexSum::<bf16>::default())),
            DataType::Complex64 => Some(Box::new(complex::ComplexSum::<f32>::default())),
            DataType::Complex128 => Some(Box::new(complex::ComplexSum::<f64>::default())),
            _ => self.visit(Accumulated { method: self.method }).flatten(),
        }
    }

    /// Calls the visitor with the type of the elements; `None` if they are not real numbers.
    fn visit<V: Visit>(&self, visitor: V) -> Option<V::Result> {
        Some(match &self.data_type {
            DataType::Bool | DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
                visitor.visit(self.present::<u8>())
            }
            DataType::Int2 | DataType::Int4 | DataType::Int8 => visitor.visit(self.present::<i8>()),
            DataType::UInt16 => visitor.visit(self.present::<u16>()),
            DataType::Int16 => visitor.visit(self.present::<i16>()),
            DataType::UInt32 => visitor.visit(self.present::<u32>()),
            DataType::Int32 => visitor.visit(self.present::<i32>()),
            DataType::UInt64 => visitor.visit(self.present::<u64>()),
            DataType::Int64 => visitor.visit(self.present::<i64>()),
            DataType::Float16 => visitor.visit(self.present::<f16>()),
            DataType::BFloat16 => visitor.visit(self.present::<bf16>()),
            DataType::Float32 => visitor.visit(self.present::<f32>()),
            DataType::Float64 => visitor.visit(self.present::<f64>()),
            _ => return None,
        })
    }

    fn present<T: Real>(&self) -> PresentOnly<T> {
        let missing = self.missing.elements().filter_map(|element| T::raw(element).first().copied());
        PresentOnly::new(missing.map(T::get).collect())
    }
}

/// A box of elements to reduce.
struct Boxed<'a> {
    method: Method,
    items: &'a [u8],
    windows: &'a Windows,
}

impl Visit for Boxed<'_> {
    type Result = Vec<u8>;

    fn visit<T: Average>(self, present: PresentOnly<T>) -> Vec<u8> {
        let Self { method, items, windows } = self;
        match method {
            Method::Mean => T::mean(items, windows, present),
            Method::Mode => mode::reduce(items, windows, &present),
            Method::Min => extreme::reduce::<T, false>(items, windows, present),
            Method::Max => extreme::reduce::<T, true>(items, windows, present),
            Method::Stride => Vec::new(),
        }
    }
}

/// A window whose elements come one part after the other.
struct Accumulated {
    method: Method,
}

impl Visit for Accumulated {
    type Result = Option<Box<dyn Accumulate>>;

    fn visit<T: Average>(self, present: PresentOnly<T>) -> Self::Result {
        match self.method {
            Method::Mean => Some(T::accumulated_mean(present)),
            Method::Min => Some(Box::new(Folded::new(PresentExtreme::<T, false>(present)))),
            Method::Max => Some(Box::new(Folded::new(PresentExtreme::<T, true>(present)))),
            Method::Mode | Method::Stride => None,
        }
    }
}

/// The first element of any size.
struct First {
    element_bytes: usize,
    item: Vec<u8>,
}

impl Accumulate for First {
    fn add(&mut self, items: &[u8]) {
        if self.item.is_empty() {
            self.item.extend_from_slice(items.get(..self.element_bytes).unwrap_or_default());
        }
    }

    fn finish(&self, reduced: &mut Vec<u8>) {
        reduced.extend_from_slice(&self.item);
    }
}
