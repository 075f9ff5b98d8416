//! Names in NetCDF files ("NetCDF Classic Format Specification", the grammar of `name`).

/// The name with every character replaced that a file cannot have: a name begins with a letter, a digit or an underscore, has
/// no slash and no control character, and does not end in a blank.
pub(super) fn netcdf_name(name: &str) -> String {
    let is_valid = |character: char| character >= ' ' && character != '/' && character != '\x7f';
    let mut valid: String =
        name.chars().map(|character| if is_valid(character) { character } else { '_' }).collect();
    let starts =
        |character: char| character.is_ascii_alphanumeric() || character == '_' || !character.is_ascii();
    if !valid.starts_with(starts) {
        valid.insert(0, '_');
    }
    if valid.ends_with(' ') {
        valid.push('_');
    }
    valid
}

#[cfg(test)]
mod tests {
    use super::netcdf_name;

    #[test]
    fn a_name_has_no_character_that_the_format_excludes() {
        for (name, expected) in [
            ("air", "air"),
            ("0", "0"),
            ("t\u{e9}mp", "t\u{e9}mp"),
            ("spatial:bbox", "spatial:bbox"),
            ("a/b", "a_b"),
            ("a\nb", "a_b"),
            ("-a", "_-a"),
            ("", "_"),
            ("a ", "a _"),
        ] {
            assert_eq!(netcdf_name(name), expected);
        }
    }
}
