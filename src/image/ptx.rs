//! Reads the kernels in PTX source (PTX ISA, directives).

use super::contents::{EntryParam, ImageEntry, ImageKind, Read};
use super::cubin::TILE_IR;
use super::error::ImageError;
use super::target::{CudaTarget, GpuTarget};

pub(super) fn read(bytes: &[u8]) -> Result<Read, ImageError> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains(".version"));
    let Some(text) = text else {
        let found = match bytes {
            [] => "nothing".to_owned(),
            bytes => format!("bytes that begin with {:02x?}", &bytes[..bytes.len().min(4)]),
        };
        return Err(ImageError::Unknown { found });
    };
    let mut tokens = Tokens { rest: text };
    let (mut target, mut entries) = (None, Vec::new());
    while let Some(token) = tokens.next() {
        match token {
            ".target" => target = tokens.next().and_then(|name| name.parse::<CudaTarget>().ok()),
            ".entry" => entries.push(tokens.entry()?),
            _ => {}
        }
    }
    let target = target.ok_or_else(|| broken("it has no .target that is an architecture"))?;
    let target = GpuTarget::Cuda(CudaTarget { is_virtual: true, ..target });
    Ok(Read::of_one(ImageKind::Ptx, Some(target), entries))
}

fn broken(problem: impl Into<String>) -> ImageError {
    ImageError::Broken { kind: "PTX", problem: problem.into() }
}

/// The tokens of PTX source: words with their dots, numbers, strings, and single characters. Comments are skipped.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        self.skip();
        let first = self.rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '%');
        let end = match first {
            // a path in a string may contain comment markers
            '"' => self.rest[1..].find('"').map_or(self.rest.len(), |end| end + 2),
            first if is_word(first) => self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len()),
            first => first.len_utf8(),
        };
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(token)
    }
}

impl Tokens<'_> {
    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let (comment, end) = match self.rest.as_bytes() {
                [b'/', b'*', ..] => (&self.rest[2..], "*/"),
                [b'/', b'/', ..] => (&self.rest[2..], "\n"),
                _ => return,
            };
            self.rest = comment.split_once(end).map_or("", |(_, behind)| behind);
        }
    }

    /// Reads a kernel after `.entry`.
    fn entry(&mut self) -> Result<ImageEntry, ImageError> {
        let cut = || broken("it ends inside a kernel");
        let name = self.next().ok_or_else(cut)?.to_owned();
        let mut entry = ImageEntry { name, ..ImageEntry::default() };
        let (mut params, mut depth) = (Vec::new(), 0_u32);
        let mut shared = 0_u32;
        loop {
            match self.next().ok_or_else(cut)? {
                // a declaration of a kernel without its code
                ";" if depth == 0 => break,
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                ".param" if depth == 0 => {
                    let offset = params.last().map_or(0, |last: &EntryParam| last.offset + last.size);
                    let (size, align) = self.variable().ok_or_else(cut)?;
                    let offset = offset.checked_next_multiple_of(align).ok_or_else(cut)?;
                    offset.checked_add(size).ok_or_else(cut)?;
                    params.push(EntryParam { offset, size });
                }
                ".shared" if depth > 0 => {
                    // in an instruction the state space is part of the word: `ld.shared`
                    let (size, align) = self.variable().unwrap_or((0, 1));
                    shared = shared.checked_next_multiple_of(align).unwrap_or(shared).saturating_add(size);
                }
                ".reqntid" => entry.required_block = Some(self.extents()),
                ".maxntid" => entry.max_threads = Some(self.extents().iter().fold(1, |x, y| x.saturating_mul(*y))),
                ".language" => entry.is_tile = self.extents()[0] == TILE_IR,
                ".reqnctapercluster" => entry.cluster = Some(self.extents()),
                _ => {}
            }
        }
        entry.params = Some(params);
        entry.static_shared = shared;
        Ok(entry)
    }

    /// Reads a variable after its state space: its size and alignment in bytes.
    fn variable(&mut self) -> Option<(u32, u32)> {
        let (mut align, mut element) = (None, 0_u32);
        loop {
            match self.next()? {
                ".align" => align = self.next()?.parse().ok().filter(|align: &u32| align.is_power_of_two()),
                // attributes of the pointee
                ".ptr" => {
                    let mut ahead = Tokens { rest: self.rest };
                    while let Some(token @ (".global" | ".const" | ".local" | ".shared" | ".align")) = ahead.next() {
                        if token == ".align" {
                            ahead.next();
                        }
                        self.rest = ahead.rest;
                    }
                }
                word if word.starts_with('.') => {
                    let digits = word.trim_start_matches(|c: char| !c.is_ascii_digit());
                    element = match digits.parse::<u32>() {
                        Ok(bits) if element == 0 => bits / 8,
                        _ => element.max(1),
                    };
                }
                // the name; for an array, the length follows
                _ => break,
            }
        }
        let mut size = element;
        let mut ahead = Tokens { rest: self.rest };
        while ahead.next() == Some("[") {
            let length = ahead.next()?;
            // an array whose length is set by the launch
            let Ok(length) = length.parse::<u32>() else {
                size = 0;
                break;
            };
            size = size.checked_mul(length)?;
            ahead.next();
            self.rest = ahead.rest;
        }
        Some((size, align.unwrap_or(element).max(1)))
    }

    /// One to three extents, separated by commas.
    fn extents(&mut self) -> [u32; 3] {
        let mut extents = [1; 3];
        for extent in &mut extents {
            *extent = self.next().and_then(|number| number.parse().ok()).unwrap_or(1);
            let mut ahead = Tokens { rest: self.rest };
            if ahead.next() != Some(",") {
                break;
            }
            self.rest = ahead.rest;
        }
        extents
    }
}
