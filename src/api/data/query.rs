//! [`DataQuery`]: the query parameters of the data routes, parsed once.
//!
//! Store routes ignore unknown parameters, since clients and caches add their own; these routes reject them.

use axum::http::Uri;
use utoipa::IntoParams;

use super::axis_query::AxisReductionParams;
use super::reduction_query::ReductionParams;
use crate::api::query_params::{KnownParams, ParamError, ParseParams, QueryParams, is_of_page, once, pairs};
use crate::api::selection::{ArrayParams, FieldsParams, SelectionParams, VariablesParams};
use crate::metadata::Endianness;
use crate::render::NanMode;
use crate::views::rechunk::DataTypeSpec;

/// The format of NetCDF files with the types of netCDF-3.
const CLASSIC: &str = "nc3";

/// The parameters of the response format.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FormatParams {
    /// Response format. Takes precedence over `Accept`. Alias: `f`. One of:
    pub(crate) format: Option<String>,
    /// Byte order of `bytes` and `npy`: `little` (default) or `big`.
    #[param(value_type = Option<String>)]
    endian: Option<Endianness>,
    /// Representation of NaN and infinities in JSON and CSV: `string` (default) or `null` (default of tables in JSON).
    #[param(value_type = Option<String>)]
    nan: Option<NanMode>,
    /// Header line of CSV with the names of the columns: `present` (default) or `absent`.
    #[param(value_type = Option<String>)]
    header: Option<bool>,
    /// `cf`: the elements are decoded to the values that the CF attributes `_FillValue`, `missing_value`, `scale_factor`,
    /// `add_offset` and `_Unsigned` describe, in the types that xarray gives them, and numbers of a unit since a date to times.
    /// In `nc` and `tiff` times stay numbers. `none` (default): the elements as they are stored. Tables in CSV and JSON are decoded by
    /// default, and labels of every table.
    #[param(value_type = Option<String>)]
    decode: Option<bool>,
    /// Data type to which real numbers are cast: `float32` and the like, or `safe`, which is float32 for float16, and float64 for
    /// 64-bit integers. Numbers are rounded only between floats; another number that the type cannot represent is a 501.
    #[param(value_type = Option<String>)]
    dtype: Option<DataTypeSpec>,
}

impl QueryParams for FormatParams {
    const ALIASES: &'static [(&'static str, &'static str)] = &[("f", "format")];
}

impl ParseParams for FormatParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "format" => once("format", &mut self.format, value.to_owned()),
            "endian" => once("endian", &mut self.endian, parse_endian(value)?),
            "nan" => once("nan", &mut self.nan, parse_nan(value)?),
            "decode" => once("decode", &mut self.decode, parse_decode(value)?),
            "dtype" => once("dtype", &mut self.dtype, parse_dtype(value)?),
            "header" => once("header", &mut self.header, parse_header(value)?),
            _ => Ok(false),
        }
    }
}

impl FormatParams {
    /// The representation of NaN and infinities, where the request does not say.
    pub(crate) fn nan_or(&self, default: NanMode) -> NanMode {
        self.nan.unwrap_or(default)
    }

    /// The byte order of numbers.
    pub(crate) fn endian(&self) -> Endianness {
        self.endian.unwrap_or_default()
    }

    /// The representation of NaN and infinities.
    pub(crate) fn nan(&self) -> NanMode {
        self.nan.unwrap_or_default()
    }

    /// Whether elements are decoded by the CF attributes.
    pub(crate) fn decodes(&self) -> bool {
        self.decode.unwrap_or_default()
    }

    /// Whether elements are decoded by the CF attributes, where the request does not say.
    pub(crate) fn decodes_or(&self, default: bool) -> bool {
        self.decode.unwrap_or(default)
    }

    /// Whether the request asks for elements as they are stored.
    pub(crate) fn keeps_stored(&self) -> bool {
        self.decode == Some(false)
    }

    /// The data type to which numbers are cast, if they are.
    pub(crate) fn dtype(&self) -> Option<&DataTypeSpec> {
        self.dtype.as_ref()
    }

    /// The requested format. `nc3` is a variant of `nc`.
    pub(crate) fn name(&self) -> Option<&str> {
        self.format.as_deref().map(|name| if name == CLASSIC { "nc" } else { name })
    }

    /// Whether the types of netCDF-3 are insisted on.
    pub(crate) fn is_classic(&self) -> bool {
        self.format.as_deref() == Some(CLASSIC)
    }

    /// Whether CSV starts with a header line.
    pub(crate) fn has_header(&self) -> bool {
        self.header.unwrap_or(true)
    }
}

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataQuery {
    pub(crate) selection: SelectionParams,
    /// How the selected elements are reduced.
    pub(crate) reduction: ReductionParams,
    /// The statistic over whole dimensions.
    pub(crate) over: AxisReductionParams,
    pub(crate) array: ArrayParams,
    pub(crate) fields: FieldsParams,
    /// Which variables of a group.
    pub(crate) variables: VariablesParams,
    pub(crate) format: FormatParams,
}

impl DataQuery {
    /// Parses the query of a URL.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(crate) fn from_uri(uri: &Uri) -> Result<Self, ParamError> {
        Self::parse(&pairs(uri)?)
    }

    /// Takes a parameter; `false` if it is not known.
    ///
    /// # Errors
    /// [`ParamError`] if the value is invalid, or the parameter was given before.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        let Self { selection, reduction, over, array, fields, variables, format } = self;
        Ok(selection.take(name, value)?
            || reduction.take(name, value)?
            || over.take(name, value)?
            || array.take(name, value)?
            || fields.take(name, value)?
            || variables.take(name, value)?
            || format.take(name, value)?)
    }

    fn parse(pairs: &[(String, String)]) -> Result<Self, ParamError> {
        let mut query = Self::default();
        for (name, value) in pairs {
            if !query.take(name, value)? && !is_of_page(name) {
                return Err(ParamError::unknown(name, &Self::known()));
            }
        }
        query.checked()
    }

    /// The query, if its parameters do not exclude each other.
    ///
    /// # Errors
    /// [`ParamError::Exclusive`].
    pub(super) fn checked(self) -> Result<Self, ParamError> {
        let query = self;
        if query.reduction.reduces() && query.over.reduces() {
            return Err(ParamError::Exclusive("downsampling and `reduce.NAME`"));
        }
        if query.format.decodes() && (query.reduction.reduces() || query.over.reduces()) {
            return Err(ParamError::Exclusive("`decode=cf` and a reduction"));
        }
        if query.format.decodes() && query.fields.fields.is_some() {
            return Err(ParamError::Exclusive("`decode=cf` and `fields`"));
        }
        Ok(query)
    }

    /// The names of all parameters.
    pub(super) fn known() -> KnownParams {
        KnownParams::default()
            .and::<SelectionParams>()
            .and::<ReductionParams>()
            .and::<AxisReductionParams>()
            .and::<FormatParams>()
            .and::<FieldsParams>()
            .and::<VariablesParams>()
            .and::<ArrayParams>()
    }
}

pub(super) fn parse_endian(value: &str) -> Result<Endianness, ParamError> {
    match value {
        "little" => Ok(Endianness::Little),
        "big" => Ok(Endianness::Big),
        _ => Err(ParamError::value("endian", value, "`little` or `big`")),
    }
}

fn parse_nan(value: &str) -> Result<NanMode, ParamError> {
    match value {
        "null" => Ok(NanMode::Null),
        "string" => Ok(NanMode::String),
        _ => Err(ParamError::value("nan", value, "`null` or `string`")),
    }
}

fn parse_decode(value: &str) -> Result<bool, ParamError> {
    match value {
        "cf" => Ok(true),
        "none" => Ok(false),
        _ => Err(ParamError::value("decode", value, "`cf` or `none`")),
    }
}

fn parse_dtype(value: &str) -> Result<DataTypeSpec, ParamError> {
    let takes = "`safe`, `stored`, or the name of a type of real numbers, such as `float32` or `int16`";
    DataTypeSpec::from_name(value).ok_or_else(|| ParamError::value("dtype", value, takes))
}

fn parse_header(value: &str) -> Result<bool, ParamError> {
    match value {
        "present" | "yes" => Ok(true),
        "absent" | "no" => Ok(false),
        _ => Err(ParamError::value("header", value, "`present` (or `yes`) or `absent` (or `no`)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<DataQuery, ParamError> {
        DataQuery::parse(
            &pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn invalid_parameters_are_rejected_and_misspelt_ones_with_a_suggestion() {
        assert_eq!(parse(&[("slice", "0"), ("select", "1")]).unwrap_err(), ParamError::Twice("slice"));
        assert_eq!(parse(&[("slice", "0"), ("isel.x", "1")]).unwrap_err(), ParamError::SliceAndNames);
        assert_eq!(parse(&[("isel.x", "1"), ("slice", "0")]).unwrap_err(), ParamError::SliceAndNames);
        let error = parse(&[("slcie", "0")]).unwrap_err().to_string();
        assert!(error.starts_with("`slcie` is not a parameter here; did you mean `slice`?"), "{error}");
        assert!(error.contains("slice (or select), isel.NAME, sel.NAME, wrap, downsample, "), "{error}");
        let error = parse(&[("wavelength", "0")]).unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
        for (name, value) in [
            ("header", "maybe"),
            ("endian", "middle"),
            ("dtype", "text"),
            ("nan", "0"),
            ("expected_shape", "1,x"),
            ("slice", "1:2:3:4"),
        ] {
            assert!(parse(&[(name, value)]).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn parameters_of_the_page_alone_are_ignored() {
        let page = [("tab", "line"), ("at", "3,4"), ("grid", "1"), ("box", "0,0,9,9"), ("level", "1")];
        let [ignored, none] = [parse(&page), parse(&[])].map(|query| format!("{:?}", query.unwrap()));
        assert_eq!(ignored, none);
        let query = parse(&[page.as_slice(), &[("slice", "3")]].concat()).unwrap();
        assert_eq!(format!("{query:?}"), format!("{:?}", parse(&[("slice", "3")]).unwrap()));
        assert!(matches!(parse(&[("colormap", "gray")]), Err(ParamError::Unknown { .. })));
    }

    #[test]
    fn every_documented_parameter_is_accepted() {
        for name in DataQuery::known().to_string().replace(" (or ", ", ").replace(')', "").split(", ") {
            let name = name.replace("NAME", "x");
            let is_unknown = |value| matches!(parse(&[(&name, value)]), Err(ParamError::Unknown { .. }));
            assert!(!is_unknown("0") && DataQuery::known().contains("f"), "{name}");
        }
    }

    #[test]
    fn a_query_is_parsed_into_its_parameters() {
        let query = parse(&[("f", "npy"), ("endian", "big"), ("expected_shape", "[3, 4]")]).unwrap();
        assert_eq!((query.format.format.as_deref(), query.format.endian()), (Some("npy"), Endianness::Big));
        assert!(query.array.check_shape(&[3, 4]).is_ok() && query.array.check_shape(&[4, 3]).is_err());
        let has_header = |value| parse(&[("header", value)]).unwrap().format.has_header();
        assert!(query.format.has_header() && !has_header("no") && !has_header("absent"));
    }
}
