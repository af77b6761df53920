use std::str::FromStr;

use cranelift_codegen::isa::OwnedTargetIsa;
use object::Object as _;
use target_lexicon::{Endianness, Triple};

use crate::backend::cranelift::{Compiler, Error, IsaOptions, Options, compile, host_isa, isa_for};
use crate::ir::testing::module_of;
use crate::ir::*;

fn floor_module(endianness: Endianness) -> VerifiedModule {
    module_of("f", FuncSig::new([Type::F64], Some(Type::F64)), |b| {
        b.module().endianness = endianness;
        let data = b.module().add_data("data", vec![1; 100], 4);
        let other = b.module().import("other", FuncSig::new([Type::Ptr], None));
        b.module().import("unused", FuncSig::new([], None));
        let at = b.data_addr(data, 3);
        b.call(other, &[at]);
        let r = b.unary(UnaryOp::Floor, b.param(0));
        b.ret(Some(r));
    })
}

#[test]
fn objects_for_other_targets() {
    for triple in [
        "x86_64-unknown-linux-gnu",
        "x86_64-apple-darwin",
        "x86_64-pc-windows-msvc",
        "aarch64-unknown-linux-gnu",
        "aarch64-apple-darwin",
        "riscv64gc-unknown-linux-gnu",
        "s390x-unknown-linux-gnu",
    ] {
        for pic in [false, true] {
            let triple_of = Triple::from_str(triple).unwrap();
            let isa = isa_for(&triple_of, &IsaOptions { pic, ..IsaOptions::default() });
            let code = compile(&floor_module(triple_of.endianness().unwrap()), &*isa.unwrap()).unwrap();
            assert!(code.code_size() > 0, "{triple}");
            assert_eq!(code.data_size(), 100);
            assert_eq!(code.imports().map(|f| &*f.name).collect::<Vec<_>>(), ["other"], "{triple}");
        }
    }
}

#[test]
fn unsupported_targets_are_named() {
    for (triple, why) in [("wasm32-unknown-unknown", "x86-64, AArch64"), ("i686-unknown-linux-gnu", "x86-64, AArch64")]
    {
        let e = isa_for(&Triple::from_str(triple).unwrap(), &IsaOptions::default()).err().unwrap();
        let text = e.to_string();
        assert!(matches!(e, Error::UnsupportedTarget { .. }) && text.contains(triple) && text.contains(why), "{text}");
    }
}

#[test]
fn byte_orders_are_told_apart() {
    for (triple, other) in
        [("x86_64-unknown-linux-gnu", Endianness::Big), ("s390x-unknown-linux-gnu", Endianness::Little)]
    {
        let isa = isa_for(&Triple::from_str(triple).unwrap(), &IsaOptions::default()).unwrap();
        let e = compile(&floor_module(other), &*isa).err().unwrap();
        assert!(matches!(&e, Error::Endianness { target, module } if target == triple && *module == other), "{e}");
    }
}

#[test]
fn features() {
    let triple = Triple::from_str("x86_64-unknown-linux-gnu").unwrap();
    let with = |feature: &str| isa_for(&triple, &IsaOptions { features: vec![feature.into()], ..Default::default() });
    let libcalls = |isa: OwnedTargetIsa| compile(&floor_module(Endianness::Little), &*isa).unwrap().libcalls().len();
    assert_eq!(libcalls(isa_for(&triple, &IsaOptions::default()).unwrap()), 1);
    assert_eq!(libcalls(with("has_sse41").unwrap()), 0);
    let e = with("has_everything").err().unwrap().to_string();
    assert!(e.contains("has_everything") && e.contains("x86_64"), "{e}");
}

#[test]
fn listings_and_unwind_information_on_request() {
    let isa = host_isa(&IsaOptions::default()).unwrap();
    let mut compiler = Compiler::new();
    let plain = compiler.compile(&floor_module(HOST_ENDIANNESS), &*isa, Options::default()).unwrap();
    assert!(plain.functions()[0].disasm.is_none() && plain.functions()[0].unwind.is_none());
    let full = compiler
        .compile(&floor_module(HOST_ENDIANNESS), &*isa, Options { disasm: true, unwind: true, ..Options::default() })
        .unwrap();
    let f = &full.functions()[0];
    assert!(f.disasm.as_ref().unwrap().contains("block0"));
    assert!(f.unwind.is_some());
    assert_eq!(f.code, plain.functions()[0].code);
}

#[test]
fn a_frame_that_is_too_large_is_an_error() {
    let isa = host_isa(&IsaOptions::default()).unwrap();
    let module = module_of("f", FuncSig::new([], Some(Type::Ptr)), |b| {
        b.slot(u32::MAX, 8);
        let slot = b.slot(u32::MAX, 8);
        let at = b.stack_addr(slot);
        b.ret(Some(at));
    });
    let e = compile(&module, &*isa).err().unwrap();
    assert!(matches!(&e, Error::TooLarge { function, .. } if function == "f"), "{e}");
}

#[test]
fn lines_are_in_the_objects_of_every_format_but_coff() {
    for (triple, lines) in [
        ("x86_64-unknown-linux-gnu", true),
        ("aarch64-unknown-linux-gnu", true),
        ("riscv64gc-unknown-linux-gnu", true),
        ("s390x-unknown-linux-gnu", true),
        ("x86_64-apple-darwin", true),
        ("aarch64-apple-darwin", true),
        ("x86_64-pc-windows-gnu", false),
    ] {
        let triple = Triple::from_str(triple).unwrap();
        let object = |located: bool| {
            let module = module_of("f", FuncSig::new([Type::I64], Some(Type::I64)), |b| {
                b.module().endianness = triple.endianness().unwrap();
                let (file, function) = ("model.dsl".to_owned(), "outer".to_owned());
                let location = b.module().locations.push(LocationData { file, line: 7, function });
                b.set_location(Some(location).filter(|_| located));
                let sum = b.binary_imm(BinaryOp::Add, b.param(0), 1);
                b.ret(Some(sum));
            });
            let isa = isa_for(&triple, &IsaOptions { pic: true, ..IsaOptions::default() }).unwrap();
            compile(&module, &*isa).unwrap().into_object(isa).unwrap()
        };
        let has_lines = |bytes: &[u8]| object::File::parse(bytes).unwrap().section_by_name(".debug_line").is_some();
        let (plain, located) = (object(false), object(true));
        assert_eq!((has_lines(&plain), has_lines(&located)), (false, lines), "{triple}");
    }
}
