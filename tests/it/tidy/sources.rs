//! The Rust files of `src/`, as text and as syntax.

use std::path::{Path, PathBuf};

/// One Rust file of `src/`.
pub struct Source {
    /// Path below `src/`.
    pub path: String,
    pub text: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// The first folder of the path; `main` for files beside `lib.rs` and for the binary's own modules.
    pub fn layer(&self) -> &str {
        match self.path.split_once('/') {
            None | Some(("telemetry", _)) => "main",
            Some((layer, _)) => layer,
        }
    }

    pub fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name == "tests.rs" || name.starts_with("test_") || self.path.contains("/tests/")
    }

    /// Lines of code, numbered from one, without the test module at the end of the file.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.test_module();
        self.lines().take_while(move |(number, _)| *number < end)
    }

    /// Lines of code, tests included.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The text with empty lines in place of comment lines: line numbers stay the same.
    pub fn text_without_comments(&self) -> String {
        let code = |line: &'_ str| !line.trim_start().starts_with("//");
        self.text.lines().map(|line| if code(line) { format!("{line}\n") } else { "\n".to_owned() }).collect()
    }

    /// The line of the inline test module, or the one after the last.
    pub fn test_module(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        let module = lines.windows(2).position(|pair| {
            pair[0].trim() == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        });
        module.map_or(lines.len() + 1, |index| index + 1)
    }

    pub fn syntax(&self) -> syn::File {
        syn::parse_file(&self.text).unwrap_or_else(|error| panic!("src/{}: {error}", self.path))
    }
}

/// All Rust files below `src/`, sorted by path.
pub fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources: Vec<Source> = files_below(&root)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            Source { path: relative(&path, &root), text }
        })
        .collect();
    sources.sort_by(|one, two| one.path.cmp(&two.path));
    sources
}

pub fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/")
}

/// All files below a folder, except those of folders that programs fill.
pub fn files_below(root: &Path) -> Vec<PathBuf> {
    const GENERATED: [&str; 7] =
        [".git", "target", "node_modules", "__pycache__", ".venv", ".pytest_cache", "book"];
    let mut folders = vec![root.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !path.is_dir() {
                files.push(path);
            } else if !GENERATED.contains(&name.as_str()) {
                folders.push(path);
            }
        }
    }
    files
}

/// Whether attributes say `#[cfg(test)]`.
pub fn is_cfg_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// The attributes of an item.
pub fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
