//! Large images, and images whose tables refer to the same bytes many times. They are read in one pass, or rejected.

use std::time::{Duration, Instant};

use tvm_ffi_codegen::image::{Image, ImageError};

use super::made::{self, CONTENTS, Section};

/// Reads an image that would take minutes with quadratic cost.
fn read_in_time(what: &str, bytes: Vec<u8>) -> Result<Image, ImageError> {
    let (len, start) = (bytes.len(), Instant::now());
    let image = Image::from_bytes(bytes);
    let time = start.elapsed();
    println!("{what}, {len} bytes: {time:?}");
    assert!(time < Duration::from_secs(10), "{what}, {len} bytes: {time:?}");
    image
}

#[test]
fn ptx_is_read_in_one_pass() {
    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";
    const KERNEL: &str = ".visible .entry f(.param .u64 a) { ret; }\n";
    for piece in ["// c\n", "/* c */ ", "/ ", "* ", "/**/", "\"/*\" ", "\"\" ", ".global .u8 x[4]; ", "\n"] {
        let text = format!("{HEAD}{}{KERNEL}", piece.repeat((4 << 20) / piece.len()));
        let image = read_in_time(piece, text.into_bytes()).unwrap();
        let names: Vec<_> = image.entries().unwrap().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["f"], "{piece}");
    }
    let text = format!("{HEAD}{}", (0..50_000).map(|i| KERNEL.replace('f', &format!("f{i}"))).collect::<String>());
    assert_eq!(read_in_time("kernels", text.into_bytes()).unwrap().entries().unwrap().len(), 50_000);
    let params = (0..100_000).map(|i| format!(".param .u64 .ptr .global .align 4 p{i}")).collect::<Vec<_>>();
    let text = format!("{HEAD}.entry f({}) {{ ret; }}", params.join(", "));
    let image = read_in_time("parameters", text.into_bytes()).unwrap();
    assert_eq!(image.entry("f").unwrap().params.as_ref().unwrap().len(), 100_000);
}

/// Comments and kernels inside a string are ignored, and the last comment may be unterminated.
#[test]
fn strings_and_comments_of_ptx_are_skipped() {
    let text = ".version 8.0\n.target sm_80 // .entry a()\n.file 1 \"/tmp//x/*.cu\"\n.pragma \".entry b\";\n\
                .entry f/*;*/(.param .u32 x) { ret; } /* .entry g() */ .entry h() { } /* .entry i() { } ";
    let image = Image::from_bytes(text.as_bytes()).unwrap();
    let entries: Vec<_> = image.entries().unwrap().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(entries, ["f", "h"]);
    assert_eq!(image.entry("f").unwrap().params.as_ref().unwrap().len(), 1);
}

/// Names, each followed by a NUL, and their offsets.
#[derive(Default)]
struct Names(Vec<u8>);

impl Names {
    fn add(&mut self, name: &str) -> usize {
        let at = self.0.len();
        self.0.extend(name.as_bytes());
        self.0.push(0);
        at
    }
}

#[test]
fn cubins_of_many_kernels_are_read_in_time() {
    const COUNT: usize = 30_000;
    // the maximum number of threads of a block, as `.nv.info.<kernel>` encodes it
    let info = [0x04, 0x05, 12, 0, 128, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
    let mut names = Names(vec![0]);
    let (mut kernels, mut sections) = (Vec::new(), Vec::new());
    for i in 0..COUNT {
        let kernel = format!("a_kernel_whose_name_is_as_long_as_that_of_others_{i}");
        kernels.push(names.add(&kernel));
        let name = names.add(&format!(".nv.info.{kernel}"));
        sections.push(Section { name, kind: 1, offset: CONTENTS + i * info.len(), size: info.len() });
        let name = names.add(&format!(".nv.shared.{kernel}"));
        sections.push(Section { name, kind: 8, offset: CONTENTS, size: 4 * i });
    }
    let cubin = made::cubin(&info.repeat(COUNT), &names.0, &kernels, &sections);
    let image = read_in_time("a cubin", cubin).unwrap();
    assert_eq!(image.entries().unwrap().len(), COUNT);
    for (i, entry) in image.entries().unwrap().iter().enumerate() {
        assert_eq!((entry.static_shared, entry.max_threads), (4 * i as u32, Some(128)), "{}", entry.name);
    }
}

#[test]
fn tables_that_overlap_are_refused() {
    const LEN: usize = 1 << 20;
    let problem = |what: &str, bytes: Vec<u8>| read_in_time(what, bytes).unwrap_err().to_string();
    // sections of a cubin, each of which covers nearly all of the same megabyte of attributes
    let name = Section { name: 1, kind: 1, offset: CONTENTS, size: 0 };
    let section = |i: usize| Section { offset: CONTENTS + 4 * i, size: LEN - 4 * i, ..name };
    let sections: Vec<_> = (0..60_000).map(section).collect();
    let error = problem("sections", made::cubin(&vec![0; LEN], b"\0.nv.info\0", &[], &sections));
    assert_eq!(error, "the cubin is broken: its sections overlap");
    // overlapping names of kernels, and of sections
    let names = [&vec![b'a'; LEN][..], &[0]].concat();
    let kernels: Vec<_> = (0..60_000).collect();
    let error = problem("kernels", made::cubin(&[], &names, &kernels, &[]));
    assert!(error.contains("its names overlap"), "{error}");
    let sections: Vec<_> = (0..60_000).map(|at| Section { name: at, ..name }).collect();
    let error = problem("names of sections", made::cubin(&[], &names, &[], &sections));
    assert!(error.contains("its names overlap"), "{error}");
    // segments of a code object, each of which covers nearly all of the same megabyte of notes, none of them AMD's
    let notes = [4_u32, 0, 1, 0].map(u32::to_le_bytes).concat().repeat(LEN / 16);
    let mut object = made::code_object_of(&[], 3);
    let header = object[64..120].to_vec();
    object.resize(object.len().next_multiple_of(8), 0);
    let at = object.len() as u64;
    object.extend(&notes);
    let headers_at = object.len() as u64;
    object[32..40].copy_from_slice(&headers_at.to_le_bytes());
    object[56..58].copy_from_slice(&60_000_u16.to_le_bytes());
    for _ in 0..60_000 {
        let mut header = header.clone();
        header[8..16].copy_from_slice(&at.to_le_bytes());
        for size in [32, 40] {
            header[size..size + 8].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        }
        object.extend(header);
    }
    assert_eq!(problem("notes", object), "the code object is broken: its notes overlap");
}
