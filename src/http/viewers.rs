//! [`Viewer`]: a viewer of others that node documents link to.

/// What a viewer opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    /// OME images.
    Images,
    /// OME images, plates, wells and collections.
    AllOfOme,
    /// OME images, and arrays.
    ImagesAndArrays,
    /// Every node with a picture.
    Pictures,
}

/// How a viewer is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start<'a> {
    /// A page. `{url}` in its URL stands for the percent-encoded URL of a node.
    Page(&'a str),
    /// A page of Neuroglancer, with the state of the viewer after its URL.
    Neuroglancer(&'a str),
    /// A command, with the URL of a node after it.
    Command(&'a str),
}

/// A viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Viewer<'a> {
    /// Its name for people.
    pub(crate) name: &'a str,
    pub(crate) start: Start<'a>,
    pub(crate) opens: Opens,
}

/// The known viewers, by their names in the configuration.
const KNOWN: [(&str, Viewer<'static>); 7] = [
    (
        "neuroglancer",
        Viewer {
            name: "Neuroglancer",
            start: Start::Neuroglancer("https://neuroglancer-demo.appspot.com/#!"),
            opens: Opens::ImagesAndArrays,
        },
    ),
    (
        "vizarr",
        Viewer {
            name: "Vizarr",
            start: Start::Page("https://hms-dbmi.github.io/vizarr/?source={url}"),
            opens: Opens::AllOfOme,
        },
    ),
    (
        "avivator",
        Viewer {
            name: "Avivator",
            start: Start::Page("https://avivator.gehlenborglab.org/?image_url={url}"),
            opens: Opens::Images,
        },
    ),
    (
        "vol-e",
        Viewer {
            name: "Vol-E",
            start: Start::Page("https://vole.allencell.org/viewer?url={url}"),
            opens: Opens::Images,
        },
    ),
    (
        "itk-vtk",
        Viewer {
            name: "itk-vtk-viewer",
            start: Start::Page("https://kitware.github.io/itk-vtk-viewer/app/?fileToLoad={url}"),
            opens: Opens::Images,
        },
    ),
    (
        "ome-ngff-validator",
        Viewer {
            name: "OME-NGFF validator",
            start: Start::Page("https://ome.github.io/ome-ngff-validator/?source={url}"),
            opens: Opens::AllOfOme,
        },
    ),
    (
        "napari",
        Viewer {
            name: "napari",
            start: Start::Command("napari --plugin napari-ome-zarr"),
            opens: Opens::AllOfOme,
        },
    ),
];

/// The names of the known viewers.
pub(crate) fn names() -> Vec<String> {
    KNOWN.iter().map(|(name, _)| (*name).to_owned()).collect()
}

impl<'a> Viewer<'a> {
    /// A viewer of the configuration: the name of a known one, or `NAME=URL`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if let Some((_, known)) = KNOWN.iter().find(|(name, _)| *name == text) {
            return Some(*known);
        }
        let (name, url) = text.split_once('=')?;
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let is_viewer = !name.trim().is_empty() && is_web && url.contains("{url}");
        is_viewer.then_some(Self { name, start: Start::Page(url), opens: Opens::Pictures })
    }

    /// The origin of the viewer's page; `None` for a command.
    pub(crate) fn origin(&self) -> Option<&'a str> {
        let (Start::Page(url) | Start::Neuroglancer(url)) = self.start else { return None };
        let host = url.find("://")? + 3;
        let end = url.get(host..)?.find(['/', '?', '#']).map_or(url.len(), |at| host + at);
        url.get(..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_viewer_has_an_origin_or_is_a_command() {
        for name in names() {
            let viewer = Viewer::parse(&name).unwrap();
            match viewer.start {
                Start::Command(_) => assert_eq!(viewer.origin(), None, "{name}"),
                Start::Page(url) => assert!(url.contains("{url}"), "{name}"),
                Start::Neuroglancer(url) => assert!(url.ends_with("#!"), "{name}"),
            }
        }
        assert_eq!(Viewer::parse("vizarr").unwrap().origin(), Some("https://hms-dbmi.github.io"));
    }

    #[test]
    fn a_viewer_of_the_configuration_needs_a_name_and_a_place_for_the_node() {
        let own = Viewer::parse("Mine=https://viewer.example:8443?data={url}").unwrap();
        assert_eq!((own.name, own.origin()), ("Mine", Some("https://viewer.example:8443")));
        for text in ["", "vizar", "=https://a/{url}", "a=javascript:{url}", "a=https://a/", "a=ftp://a/{url}"]
        {
            assert_eq!(Viewer::parse(text), None, "{text}");
        }
    }
}
