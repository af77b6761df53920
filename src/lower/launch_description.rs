//! The launches of a function, as its metadata describes them. Lowering writes them;
//! [`inspect`](crate::artifact::inspect) reads them from files.

use serde_json::{Value, json};

use crate::image::{EntryParam, Image, ImageEntry};
use crate::spec::Launch;

/// Notes on a function's launches, taken while it is lowered.
#[derive(Debug, Default)]
pub(super) struct NotedLaunches {
    pub described: Vec<LaunchDescription>,
    /// The printed sequence of each launch's driver calls, if requested.
    pub sequences: Option<Vec<String>>,
}

impl NotedLaunches {
    /// Clears the notes on the previous function.
    pub(super) fn clear(&mut self) {
        self.described.clear();
        self.sequences.iter_mut().for_each(Vec::clear);
    }
}

/// A launch of a function's kernel, or of a body's.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LaunchDescription {
    /// The launch's text form: `launch add grid=((n + 127) // 128) block=128`.
    pub launch: String,
    /// The device API that launches: `CUDA` or `HIP`; `CPU` for a launch on the CPU.
    pub api: String,
    /// The images that have the kernel, in the order in which they were given; none on the CPU.
    pub images: Vec<ImageDescription>,
}

/// An image of a [`LaunchDescription`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ImageDescription {
    /// The kind: `cubin`, `fatbin`, `PTX` or `code object`.
    pub kind: String,
    /// The size in bytes.
    pub size: u64,
    /// The architectures that the image has code for, such as `sm_90a` or `gfx90a`. A fatbin or a bundle lists all of
    /// them. Empty if the image doesn't state any.
    pub targets: Vec<String>,
    /// The launched kernel, if the image describes its kernels.
    pub entry: Option<ImageEntry>,
}

impl LaunchDescription {
    /// A launch with its images.
    pub(super) fn new(launch: &Launch, api: &str, images: &[Image]) -> Self {
        let image = |image: &Image| ImageDescription {
            kind: image.kind().to_string(),
            size: image.bytes().len() as u64,
            targets: image.targets().iter().map(ToString::to_string).collect(),
            entry: image.entry(launch.entry()).cloned(),
        };
        LaunchDescription {
            launch: launch.to_string(),
            api: api.to_owned(),
            images: images.iter().map(image).collect(),
        }
    }

    /// The launch as an item of the metadata's `launches`.
    pub(crate) fn to_json(&self) -> Value {
        let images: Vec<_> = self.images.iter().map(ImageDescription::to_json).collect();
        json!({ "launch": self.launch, "api": self.api, "images": images })
    }

    /// Reads the `launches` of a function's metadata. Skips JSON values that aren't launches.
    pub(crate) fn all_of(metadata: &Value) -> Vec<Self> {
        let launches = metadata.get("launches").and_then(Value::as_array);
        launches.into_iter().flatten().filter_map(Self::from_json).collect()
    }

    fn from_json(json: &Value) -> Option<Self> {
        let images = json.get("images")?.as_array()?;
        Some(LaunchDescription {
            launch: json.get("launch")?.as_str()?.to_owned(),
            api: json.get("api")?.as_str()?.to_owned(),
            images: images.iter().map(ImageDescription::from_json).collect::<Option<_>>()?,
        })
    }
}

impl ImageDescription {
    fn to_json(&self) -> Value {
        let entry = self.entry.as_ref().map(|entry| {
            let param = |param: &EntryParam| json!({ "offset": param.offset, "size": param.size });
            json!({
                "name": entry.name,
                "parameters": entry.params.as_ref().map(|params| params.iter().map(param).collect::<Vec<_>>()),
                "static_shared": entry.static_shared,
                "registers": entry.registers,
                "required_block": entry.required_block,
                "is_tile": entry.is_tile,
                "max_threads": entry.max_threads,
                "cluster": entry.cluster,
            })
        });
        json!({ "kind": self.kind, "size": self.size, "targets": self.targets, "entry": entry })
    }

    fn from_json(json: &Value) -> Option<Self> {
        let targets = json.get("targets")?.as_array()?;
        Some(ImageDescription {
            kind: json.get("kind")?.as_str()?.to_owned(),
            size: json.get("size")?.as_u64()?,
            targets: targets.iter().map(|target| Some(target.as_str()?.to_owned())).collect::<Option<_>>()?,
            entry: match json.get("entry")? {
                Value::Null => None,
                entry => Some(entry_from_json(entry)?),
            },
        })
    }
}

fn entry_from_json(json: &Value) -> Option<ImageEntry> {
    let number = |json: &Value| u32::try_from(json.as_u64()?).ok();
    let param =
        |json: &Value| Some(EntryParam { offset: number(json.get("offset")?)?, size: number(json.get("size")?)? });
    let extents = |key: &str| -> Option<[u32; 3]> {
        let numbers: Option<Vec<u32>> = json.get(key)?.as_array()?.iter().map(number).collect();
        numbers?.try_into().ok()
    };
    Some(ImageEntry {
        name: json.get("name")?.as_str()?.to_owned(),
        params: match json.get("parameters").and_then(Value::as_array) {
            Some(params) => Some(params.iter().map(param).collect::<Option<_>>()?),
            None => None,
        },
        static_shared: number(json.get("static_shared")?)?,
        registers: json.get("registers").and_then(number),
        required_block: extents("required_block"),
        // libraries of earlier versions don't have this key
        is_tile: json.get("is_tile").and_then(Value::as_bool).unwrap_or(false),
        max_threads: json.get("max_threads").and_then(number),
        cluster: extents("cluster"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn json_is_read_back() {
        let entry = ImageEntry {
            name: "add".to_owned(),
            params: Some(vec![EntryParam { offset: 0, size: 8 }, EntryParam { offset: 8, size: 4 }]),
            static_shared: 4096,
            registers: Some(24),
            required_block: Some([128, 1, 1]),
            is_tile: true,
            max_threads: None,
            cluster: Some([2, 1, 1]),
        };
        let image = |entry| ImageDescription {
            kind: "cubin".to_owned(),
            size: 4_000,
            targets: vec!["sm_90a".to_owned()],
            entry,
        };
        let unknown = ImageEntry { name: "add".to_owned(), ..ImageEntry::default() };
        let described = LaunchDescription {
            launch: "launch add block=128".to_owned(),
            api: "CUDA".to_owned(),
            images: vec![image(Some(entry)), image(Some(unknown)), image(None)],
        };
        let json = described.to_json();
        assert_eq!(LaunchDescription::all_of(&json!({ "launches": [json.clone(), 3, { "launch": 4 }] })), [described]);
        assert_eq!(LaunchDescription::all_of(&json!({ "launches": {} })), []);
        assert_eq!(LaunchDescription::all_of(&json!({})), []);
    }
}
