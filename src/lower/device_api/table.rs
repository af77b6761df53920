//! Writes the [table](crate::lower::protocol::launch_table) of a module's launches.

use super::image_hooks::ImageHooks;
use super::images::ImageRule;
use super::shared::MostShared;
use crate::lower::protocol::Encode;
use crate::lower::protocol::launch_table::{
    ALL_SHARED, ASK_DRIVER, GlobalRecord, HookRecord, ImageChoice, ImageRecord, KernelRecord, LaunchTable, ParamSizes,
};
use target_lexicon::Endianness;

/// A kernel of a table.
#[derive(Debug)]
pub(super) struct KernelRow<'a> {
    pub entry: &'a str,
    /// The offset of the cells in the state.
    pub cells: u32,
    /// The image numbers, in order of preference.
    pub images: &'a [(ImageRule, usize)],
    /// The number of the functions of each image, if the launch states any.
    pub hooks: &'a [usize],
    /// The dynamic shared memory that the kernel requests, if any.
    pub shared: Option<MostShared>,
    pub non_portable_cluster: bool,
    /// The min driver version that has the attributes of its launches, or 0.
    pub version: u32,
    /// The global variables that its launches write, each with the offset of its cells in the state.
    pub globals: &'a [(String, u32)],
    /// The parameter sizes that launches pass, in bytes, if they are compared with the driver's.
    pub params: Vec<&'a [u32]>,
}

/// The offset of a kernel's record, by its number.
pub(super) fn offset_of_kernel(number: usize) -> u32 {
    (LaunchTable::SIZE + number * KernelRecord::SIZE) as u32
}

/// The functions of an image.
#[derive(Debug)]
pub(super) struct HookRow<'a> {
    pub hooks: &'a ImageHooks,
    /// The number of the image.
    pub image: usize,
    /// The offset of the cells in the state.
    pub cells: u32,
}

/// Encodes a table as bytes.
pub(super) fn encode(
    order: Endianness,
    kernels: &[KernelRow<'_>],
    images: &[ImageRecord],
    hooks: &[HookRow<'_>],
) -> Vec<u8> {
    let first_image = offset_of_kernel(kernels.len()) as usize;
    // after the records of images and their functions comes the data that kernel records refer to, words before strings
    let image_at = |number: usize| (first_image + number * ImageRecord::SIZE) as u32;
    let first_hook = image_at(images.len());
    let hook_at = |number: usize| first_hook + (number * HookRecord::SIZE) as u32;
    let behind = hook_at(hooks.len());
    let mut more = Vec::new();
    let mut records: Vec<KernelRecord> = Vec::new();
    for row in kernels {
        let first_choice = behind + more.len() as u32;
        for (number, (rule, image)) in row.images.iter().enumerate() {
            let [min, end] = rule.capabilities();
            let hook = row.hooks.get(number).map_or(0, |hook| hook_at(*hook));
            ImageChoice { min, end, image: image_at(*image), hook }.write(order, &mut more);
        }
        let first_params = behind + more.len() as u32;
        let mut first = first_params + (row.params.len() * ParamSizes::SIZE) as u32;
        for sizes in &row.params {
            let count = sizes.len() as u32;
            ParamSizes { count, first }.write(order, &mut more);
            first += 4 * count;
        }
        row.params.iter().copied().flatten().for_each(|size| size.write(order, &mut more));
        let first_global = behind + more.len() as u32;
        for (_, cells) in row.globals {
            GlobalRecord { name: 0, cells: *cells }.write(order, &mut more);
        }
        let (shared, own_shared) =
            row.shared.map_or((0, 0), |max| (max.dynamic.unwrap_or(ALL_SHARED), max.own.unwrap_or(ASK_DRIVER)));
        records.push(KernelRecord {
            entry: 0,
            cells: row.cells,
            choices: row.images.len() as u32,
            first_choice,
            shared,
            own_shared,
            non_portable: row.non_portable_cluster.into(),
            params: row.params.len() as u32,
            first_params,
            version: row.version,
            globals: row.globals.len() as u32,
            first_global,
        });
    }
    for (record, row) in records.iter_mut().zip(kernels) {
        record.entry = behind + more.len() as u32;
        put_text(&mut more, row.entry);
        for (number, (name, cells)) in row.globals.iter().enumerate() {
            let at = (record.first_global - behind) as usize + number * GlobalRecord::SIZE;
            let mut bytes = Vec::new();
            GlobalRecord { name: behind + more.len() as u32, cells: *cells }.write(order, &mut bytes);
            more[at..][..bytes.len()].copy_from_slice(&bytes);
            put_text(&mut more, name);
        }
    }
    let mut hook_records = Vec::new();
    for row in hooks {
        let [on_load, on_unload] = [&row.hooks.on_load, &row.hooks.on_unload].map(|name| {
            let name = name.as_deref().unwrap_or_default();
            let at = behind + more.len() as u32;
            put_text(&mut more, name);
            (at, name.len() as u32)
        });
        hook_records.push(HookRecord {
            on_load: on_load.0,
            on_load_bytes: on_load.1,
            on_unload: on_unload.0,
            on_unload_bytes: on_unload.1,
            image: image_at(row.image),
            cells: row.cells,
        });
    }
    let mut table = Vec::new();
    let header = LaunchTable {
        images: images.len() as u32,
        first_image: first_image as u32,
        hooks: hooks.len() as u32,
        first_hook,
    };
    header.write(order, &mut table);
    records.iter().for_each(|record| record.write(order, &mut table));
    images.iter().for_each(|record| record.write(order, &mut table));
    hook_records.iter().for_each(|record| record.write(order, &mut table));
    table.extend(more);
    table
}

/// Appends a C string.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::protocol::Descriptors;

    #[test]
    fn records_lead_to_each_other() -> Result<(), String> {
        let globals = [("scale".to_owned(), 7000), ("table".to_owned(), 8000)];
        let kernels = [
            KernelRow {
                entry: "first",
                cells: 5000,
                images: &[(ImageRule::Exact(90), 1), (ImageRule::Least(80), 0)],
                hooks: &[0, 1],
                shared: None,
                non_portable_cluster: false,
                version: 0,
                globals: &[],
                params: Vec::new(),
            },
            KernelRow {
                entry: "second",
                cells: 6000,
                images: &[(ImageRule::Any, 0)],
                hooks: &[],
                shared: Some(MostShared { dynamic: None, own: Some(7) }),
                non_portable_cluster: true,
                version: 12050,
                globals: &globals,
                params: vec![&[8, 4], &[1]],
            },
        ];
        let images = [ImageRecord { bytes: 1, cells: 4000 }, ImageRecord { bytes: 2, cells: 4008 }];
        let functions = ImageHooks { on_load: Some("init".to_owned()), on_unload: None };
        let hook = |image, cells| HookRow { hooks: &functions, image, cells };
        let hooks = [hook(1, 9000), hook(0, 9512)];
        for order in [Endianness::Little, Endianness::Big] {
            let bytes = encode(order, &kernels, &images, &hooks);
            let table = Descriptors { bytes: &bytes, order };
            let text = |at: u32| bytes[at as usize..].split(|byte| *byte == 0).next().unwrap_or_default();
            let word = |at: u32| u32::read(order, &bytes[at as usize..]).unwrap_or(u32::MAX);
            let head: LaunchTable = table.read(0)?;
            assert_eq!(head.images, 2);
            for (number, image) in (0..).zip(&images) {
                assert_eq!(table.read::<ImageRecord>(head.first_image + number * ImageRecord::SIZE as u32)?, *image);
            }
            let first: KernelRecord = table.read(offset_of_kernel(0))?;
            assert_eq!((text(first.entry), first.cells, first.choices, first.params), (&b"first"[..], 5000, 2, 0));
            assert_eq!((first.shared, first.non_portable, first.version), (0, 0, 0));
            let choice: ImageChoice = table.read(first.first_choice)?;
            let image = head.first_image + ImageRecord::SIZE as u32;
            assert_eq!(choice, ImageChoice { min: 90, end: 91, image, hook: head.first_hook });
            let hook: HookRecord = table.read(choice.hook)?;
            assert_eq!((text(hook.on_load), hook.on_load_bytes, hook.on_unload_bytes), (&b"init"[..], 4, 0));
            assert_eq!((hook.image, hook.cells, head.hooks), (image, 9000, 2));
            let choice: ImageChoice = table.read(first.first_choice + ImageChoice::SIZE as u32)?;
            let hook = head.first_hook + HookRecord::SIZE as u32;
            assert_eq!(choice, ImageChoice { min: 80, end: i32::MAX as u32, image: head.first_image, hook });
            let second: KernelRecord = table.read(offset_of_kernel(1))?;
            assert_eq!((text(second.entry), second.cells, second.choices), (&b"second"[..], 6000, 1));
            assert_eq!((second.shared, second.own_shared), (ALL_SHARED, 7));
            assert_eq!((second.non_portable, second.version), (1, 12050));
            for (number, (name, cells)) in (0..).zip(&globals) {
                let record: GlobalRecord = table.read(second.first_global + number * GlobalRecord::SIZE as u32)?;
                assert_eq!((text(record.name), record.cells), (name.as_bytes(), *cells));
            }
            assert_eq!((first.globals, second.globals), (0, 2));
            let sizes = |number: u32| -> Result<Vec<u32>, String> {
                let list: ParamSizes = table.read(second.first_params + number * ParamSizes::SIZE as u32)?;
                Ok((0..list.count).map(|i| word(list.first + 4 * i)).collect())
            };
            assert_eq!((second.params, sizes(0)?, sizes(1)?), (2, vec![8, 4], vec![1]));
        }
        Ok(())
    }
}
