//! Definitions of coordinate reference systems as WKT (OGC 01-009 and OGC 18-010): the code and the unit of the whole.

use super::crs_unit::CrsUnit;

/// Radians of a degree.
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// The EPSG code of a definition, where it has one for the whole: `…,AUTHORITY["EPSG","32633"]]`, `…,ID["EPSG",32633]]`.
#[must_use]
pub fn epsg_code_of_wkt(wkt: &str) -> Option<&str> {
    let id = WktNode::parse(wkt)?.child(&["AUTHORITY", "ID"])?;
    let [authority, code, ..] = id.arguments.as_slice() else { return None };
    (unquoted(authority) == "EPSG").then(|| unquoted(code))
}

/// What the coordinates of a definition are in; `None` if it is none of a plane, or in another unit.
#[must_use]
pub fn unit_of_wkt(wkt: &str) -> Option<CrsUnit> {
    let root = WktNode::parse(wkt)?;
    let is = |names: &[&str]| names.iter().any(|name| root.keyword.eq_ignore_ascii_case(name));
    if is(&["PROJCS", "PROJCRS", "PROJECTEDCRS"]) {
        return CrsUnit::of_metres(root.unit(&["LENGTHUNIT", "UNIT"])?);
    }
    if !is(&["GEOGCS", "GEOGCRS", "GEOGRAPHICCRS", "GEODCRS", "GEODETICCRS"]) {
        return None;
    }
    if root.child(&["BASEGEOGCRS", "BASEGEODCRS", "DERIVINGCONVERSION"]).is_some() {
        return Some(CrsUnit::DerivedDegrees);
    }
    // A geocentric one has axes in metres.
    let is_in_degrees = (root.unit(&["ANGLEUNIT", "UNIT"])? / DEGREE - 1.0).abs() < 1e-8;
    is_in_degrees.then_some(CrsUnit::Degrees)
}

/// A keyword and what is in its brackets.
struct WktNode<'a> {
    keyword: &'a str,
    arguments: Vec<&'a str>,
}

impl<'a> WktNode<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (keyword, rest) = text.split_once(['[', '('])?;
        let inner = rest.strip_suffix([']', ')'])?;
        let (mut depth, mut is_quoted, mut start) = (0_usize, false, 0);
        let mut arguments = Vec::new();
        for (at, character) in inner.char_indices() {
            match character {
                // A quote in a text is two.
                '"' => is_quoted = !is_quoted,
                _ if is_quoted => {}
                '[' | '(' => depth += 1,
                ']' | ')' => depth = depth.checked_sub(1)?,
                ',' if depth == 0 => {
                    arguments.push(inner.get(start..at)?.trim());
                    start = at + 1;
                }
                _ => {}
            }
        }
        arguments.push(inner.get(start..)?.trim());
        (depth == 0 && !is_quoted).then(|| Self { keyword: keyword.trim(), arguments })
    }

    /// The last argument with one of these keywords, in the order of the keywords.
    fn child(&self, keywords: &[&str]) -> Option<WktNode<'a>> {
        let is = |argument: &str, keyword: &str| {
            argument.split_once(['[', '(']).is_some_and(|(name, _)| name.trim().eq_ignore_ascii_case(keyword))
        };
        let of = |keyword: &&str| self.arguments.iter().rev().find(|argument| is(argument, keyword));
        WktNode::parse(keywords.iter().find_map(of)?)
    }

    /// The factor of its unit, or of that of its axes.
    fn unit(&self, keywords: &[&str]) -> Option<f64> {
        let unit = self.child(keywords).or_else(|| self.child(&["AXIS"])?.child(keywords))?;
        unit.arguments.get(1)?.parse().ok()
    }
}

fn unquoted(text: &str) -> &str {
    text.trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_definition_is_that_of_the_whole() {
        for (wkt, code) in [
            (
                r#"PROJCS["x",GEOGCS["y",AUTHORITY["EPSG","4326"]],UNIT["metre",1],AUTHORITY["EPSG","32633"]]"#,
                Some("32633"),
            ),
            (r#"PROJCRS["x ""[", CS[Cartesian,2], ID["EPSG",32633], REMARK["z]"]] "#, Some("32633")),
            (r#"PROJCS["x",GEOGCS["y"],UNIT["metre",1,AUTHORITY["EPSG","9001"]]]"#, None),
            (r#"PROJCRS["x",ID["ESRI",102001]]"#, None),
            (r#"PROJCRS["x",ID["EPSG"]]"#, None),
            ("]]", None),
            ("a[[", None),
            ("a[\"]", None),
            ("", None),
        ] {
            assert_eq!(epsg_code_of_wkt(wkt), code, "{wkt}");
        }
    }

    #[test]
    fn the_unit_of_a_definition_is_that_of_its_axes() {
        let geographic =
            r#"GEOGCS["x",DATUM["d",SPHEROID["s",1,0]],PRIMEM["p",0],UNIT["degree",0.0174532925199433]]"#;
        for (wkt, unit) in [
            (geographic.to_owned(), Some(CrsUnit::Degrees)),
            (geographic.replace("0.0174532925199433", "0.015707963267949"), None),
            (format!(r#"PROJCS["x",{geographic},UNIT["metre",1.0]]"#), Some(CrsUnit::Metres)),
            (format!(r#"PROJCS["x",{geographic},UNIT["foot",0.3048]]"#), Some(CrsUnit::Feet)),
            (format!(r#"PROJCS["x",{geographic},UNIT["ft",0.304800609601219]]"#), Some(CrsUnit::UsSurveyFeet)),
            (format!(r#"PROJCS["x",{geographic},UNIT["km",1000]]"#), None),
            (format!(r#"PROJCS["x",{geographic}]"#), None),
            (
                r#"PROJCRS["x",CS[Cartesian,2],AXIS["a",east,LENGTHUNIT["metre",1]],AXIS["b",north,LENGTHUNIT["metre",1]]]"#
                    .to_owned(),
                Some(CrsUnit::Metres),
            ),
            (r#"GEOGCRS["x",BASEGEOGCRS["y"],DERIVINGCONVERSION["z"]]"#.to_owned(), Some(CrsUnit::DerivedDegrees)),
            (r#"GEODCRS["x",CS[Cartesian,3],LENGTHUNIT["metre",1]]"#.to_owned(), None),
            (format!(r#"COMPD_CS["x",{geographic},VERT_CS["z",UNIT["metre",1]]]"#), None),
            ("garbage[".to_owned(), None),
        ] {
            assert_eq!(unit_of_wkt(&wkt), unit, "{wkt}");
        }
    }
}
