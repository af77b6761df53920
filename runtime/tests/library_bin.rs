//! `library_bin`: written bytes can be read back, and invalid bytes are an error.

use tvm_ffi_runtime::unstable::library_bin::{Layout, LibraryBin, LibraryBinError, Node, NodeSpec, Segment};

use crate::support::DEEP;

/// Writes nodes and the lists of their children.
pub fn write(nodes: &[Node<'_>], children: &[Vec<usize>]) -> Result<Vec<u8>, LibraryBinError> {
    let mut specs = Vec::new();
    for node in nodes {
        specs.push(match *node {
            Node::Module { kind, payload } => NodeSpec::Module { kind, payload_len: payload.len() as u64 },
            Node::Library => NodeSpec::Library,
        });
    }
    let layout = Layout::new(&specs, children)?;
    let mut blob = Vec::new();
    for segment in layout.segments() {
        match segment {
            Segment::Bytes(bytes) => blob.extend_from_slice(bytes),
            Segment::Payload { node, len } => {
                let Node::Module { payload, .. } = nodes[node] else { panic!("{:?} has no payload", nodes[node]) };
                assert_eq!(payload.len() as u64, len);
                blob.extend_from_slice(payload);
            }
        }
    }
    assert_eq!(blob.len() as u64, layout.total_len());
    Ok(blob)
}

fn module<'a>(kind: &'a str, payload: &'a [u8]) -> Node<'a> {
    Node::Module { kind, payload }
}

/// Nested imports, the library in the middle, one node imported twice.
fn nested() -> Vec<u8> {
    let nodes = [module("outer", b"one"), Node::Library, module("inner", b""), module("inner", b"a longer payload")];
    write(&nodes, &[vec![1, 3], vec![2, 3], vec![3], vec![]]).unwrap()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A blob with these words after its header.
fn blob(body: &[u64]) -> Vec<u8> {
    [words(&[body.len() as u64 * 8]), words(body)].concat()
}

#[test]
fn the_format_is_upstreams() {
    // The exact bytes that `ProcessLibraryBin` of upstream's `library_module.cc` reads.
    let mut expected = words(&[8 * 11 + 4 + 2 + 3]);
    expected.extend(words(&[3, 0, 1, 1, 1, 1, 4]));
    expected.extend(b"_lib");
    expected.extend(words(&[2]));
    expected.extend(b"ab");
    expected.extend(words(&[3]));
    expected.extend(b"xyz");
    expected[0] = (expected.len() - 8) as u8;
    assert_eq!(write(&[Node::Library, module("ab", b"xyz")], &[vec![1], vec![]]).unwrap(), expected);
    assert_eq!(LibraryBin::parse(&expected).unwrap().nodes(), [Node::Library, module("ab", b"xyz")]);
}

#[test]
fn what_is_written_is_read() {
    let mut bytes = nested();
    let check = |bin: LibraryBin<'_>| {
        let nodes =
            [module("outer", b"one"), Node::Library, module("inner", b""), module("inner", b"a longer payload")];
        assert_eq!(bin.nodes(), nodes);
        let children: Vec<&[usize]> = (0..5).map(|node| bin.children(node)).collect();
        assert_eq!(children, [&[1, 3][..], &[2, 3], &[3], &[], &[]]);
    };
    // Any bytes may follow the counted ones.
    bytes.extend(b"another symbol");
    check(LibraryBin::parse(&bytes).unwrap());
    // At any alignment.
    for shift in 0..8 {
        let shifted = [vec![0; shift], bytes.clone()].concat();
        // SAFETY: the blob is complete.
        check(unsafe { LibraryBin::from_ptr(shifted[shift..].as_ptr()) }.unwrap());
    }
}

#[test]
fn payloads_are_not_copied() {
    let bytes = nested();
    let bin = LibraryBin::parse(&bytes).unwrap();
    let Node::Module { payload, .. } = bin.nodes()[3] else { panic!("a module") };
    assert!(bytes.as_ptr_range().contains(&payload.as_ptr()));
}

#[test]
fn a_layout_needs_only_lengths() {
    let nodes = [NodeSpec::Library, NodeSpec::Module { kind: "huge", payload_len: 1 << 40 }];
    let layout = Layout::new(&nodes, &[vec![1], vec![]]).unwrap();
    let pieces: Vec<Segment<'_>> = layout.segments().collect();
    let [Segment::Bytes(head), Segment::Payload { node: 1, len }] = pieces[..] else { panic!("{pieces:?}") };
    assert_eq!(len, 1 << 40);
    assert_eq!(layout.total_len(), head.len() as u64 + len);
    assert_eq!(head[..8], (layout.total_len() - 8).to_le_bytes());
}

#[test]
fn broken_bytes_are_named() {
    let cases = [
        (vec![1, 2, 3], "library_bin, byte 0: nbytes takes 8 bytes, got 3"),
        (words(&[9, 0]), "library_bin, byte 8: what nbytes counts takes 9 bytes, got 8"),
        (words(&[u64::MAX, 0]), "library_bin, byte 8: what nbytes counts takes 18446744073709551615 bytes, got 8"),
        (blob(&[]), "library_bin, byte 8: indptr takes 8 bytes, got 0"),
        (blob(&[3, 0]), "library_bin, byte 16: indptr takes 24 bytes, got 8"),
        (blob(&[1 << 61, 0]), "library_bin, byte 16: indptr takes 18446744073709551615 bytes, got 8"),
        (blob(&[0, 0]), "library_bin, byte 8: the import tree has no nodes"),
        (blob(&[1, 0, 0]), "library_bin, byte 8: the import tree has no nodes"),
        (blob(&[2, 1, 1, 1, 0]), "library_bin, byte 16: expected indptr[0] = 0, got 1"),
        (
            blob(&[3, 0, 1, 0, 1, 0]),
            "library_bin, byte 32: expected indptr[2] = 1 to 1, the number of child indices, got 0",
        ),
        (
            blob(&[3, 0, 2, 1, 1, 0]),
            "library_bin, byte 24: expected indptr[1] = 0 to 1, the number of child indices, got 2",
        ),
        (blob(&[2, 0, 0, 1, 0]), "library_bin, byte 24: expected indptr[1] = 1, the number of child indices, got 0"),
        (blob(&[2, 0, 1, 1, 1]), "library_bin, byte 40: expected child_indices[0] < 1, the number of nodes, got 1"),
        (blob(&[2, 0, 1, 1, 0]), "library_bin, byte 40: node 0 imports itself, maybe through others"),
        (blob(&[4, 0, 1, 2, 3, 3, 1, 2, 1]), "library_bin, byte 72: node 2 imports itself, maybe through others"),
        (blob(&[2, 0, 0, 0]), "library_bin, byte 40: the kind of a node takes 8 bytes, got 0"),
        (blob(&[2, 0, 0, 0, 8, 0xff61]), "library_bin, byte 49: the kind of node 0 is not UTF-8"),
        (blob(&[2, 0, 0, 0, 0, 1]), "library_bin, byte 56: the payload of a node takes 1 bytes, got 0"),
        (blob(&[2, 0, 0, 0, 0, 0, 7]), "library_bin, byte 56: 8 bytes are left after the last node"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(LibraryBin::parse(&bytes).unwrap_err().to_string(), expected, "{bytes:?}");
    }
    // SAFETY: the header is refused before any bytes after it are read.
    let error = unsafe { LibraryBin::from_ptr([0xff_u8; 8].as_ptr()) }.unwrap_err();
    assert_eq!(error, LibraryBinError::TooLarge { size: u64::MAX });
}

#[test]
fn the_writer_refuses_what_the_reader_refuses() {
    let lib = NodeSpec::Library;
    let module = |payload_len| NodeSpec::Module { kind: "k", payload_len };
    let cases = [
        (vec![], vec![], "library_bin, byte 8: the import tree has no nodes"),
        (vec![lib], vec![], "library_bin: 0 lists of children for 1 nodes"),
        (vec![lib], vec![vec![1]], "library_bin, byte 40: expected child_indices[0] < 1, the number of nodes, got 1"),
        (
            vec![lib, module(0)],
            vec![vec![1], vec![0]],
            "library_bin, byte 48: node 0 imports itself, maybe through others",
        ),
        (vec![lib, lib], vec![vec![], vec![]], "library_bin, byte 60: node 1 is `_lib`, and so is node 0"),
        (
            vec![NodeSpec::Module { kind: "_lib", payload_len: 0 }],
            vec![vec![]],
            "library_bin: node 0 can't be a module of kind `_lib`, which stands for the library",
        ),
        (vec![module(u64::MAX)], vec![vec![]], "library_bin: 18446744073709551615 bytes are more than memory can have"),
    ];
    for (nodes, children, expected) in cases {
        assert_eq!(Layout::new(&nodes, &children).unwrap_err().to_string(), expected);
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and thousands of rounds")]
fn every_damage_is_survived() {
    let good = nested();
    for len in 0..good.len() {
        assert!(LibraryBin::parse(&good[..len]).is_err(), "{len} of {} bytes", good.len());
        // The same cut, with a header that fits it.
        if let Some(body) = len.checked_sub(8) {
            let mut cut = good[..len].to_vec();
            cut[..8].copy_from_slice(&(body as u64).to_le_bytes());
            assert!(LibraryBin::parse(&cut).is_err(), "{len} of {} bytes", good.len());
        }
    }
    let mut refused = 0;
    for place in 0..good.len() {
        for change in 1..=255 {
            let mut bytes = good.clone();
            bytes[place] ^= change;
            // A valid result can be written again, and is then the same.
            match LibraryBin::parse(&bytes) {
                Ok(bin) => {
                    let children: Vec<Vec<usize>> =
                        (0..bin.nodes().len()).map(|node| bin.children(node).to_vec()).collect();
                    assert_eq!(write(bin.nodes(), &children).unwrap(), bytes);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_chain_of_many_nodes_is_read() {
    let nodes = vec![module("k", b"p"); DEEP];
    let mut children: Vec<Vec<usize>> = (1..nodes.len()).map(|next| vec![next]).collect();
    children.push(vec![]);
    let bytes = write(&nodes, &children).unwrap();
    assert_eq!(LibraryBin::parse(&bytes).unwrap().nodes().len(), nodes.len());
    children[nodes.len() - 1].push(0);
    assert!(matches!(write(&nodes, &children).unwrap_err(), LibraryBinError::Cycle { .. }));
}
