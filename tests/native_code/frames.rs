//! Unwind tables of objects. Tables that libgcc can read are registered. All others are rejected, because libgcc ends
//! the process if it reads them.

use std::panic::catch_unwind;

use tvm_ffi_codegen::Kernel;

use super::{compile, engines, object_by, refusals};

/// The register numbers of the return address and of the stack pointer.
const REGISTERS: [u32; 2] = if cfg!(target_arch = "x86_64") { [16, 7] } else { [30, 31] };

/// The parts of an unwind table for one function, in assembler syntax.
#[derive(Clone)]
struct Table {
    /// The length field of each entry: the number of bytes up to the label `1`.
    length: &'static str,
    version: u32,
    augmentation: &'static str,
    /// The augmentation data, after its size.
    data: &'static str,
    /// The initial instructions of each function.
    first: String,
    start: &'static str,
    size: &'static str,
    /// The function's own augmentation data, with its size.
    more: &'static str,
    program: String,
    /// The bytes after the table.
    rest: &'static str,
}

impl Table {
    /// The table that compilers write.
    fn good() -> Self {
        Table {
            length: ".long 1f - . - 4",
            version: 1,
            augmentation: "zR",
            data: ".uleb128 1; .byte 0x1b",
            // DW_CFA_def_cfa with the stack register
            first: format!(".byte 0x0c; .uleb128 {}; .uleb128 8", REGISTERS[1]),
            start: ".long f - .",
            size: ".long 2",
            more: ".uleb128 0",
            program: String::new(),
            rest: "",
        }
    }

    /// An object with the function `f` and this table.
    fn object(&self) -> Vec<u8> {
        let Table { length, version, augmentation, data, first, start, size, more, program, rest } = self;
        let [address, _] = REGISTERS;
        let lines = [
            ".text; .globl f; .type f, %function; f: .long 0; .long 0; .size f, . - f".to_owned(),
            ".data; word: .quad f".to_owned(),
            ".section .eh_frame, \"a\", %progbits".to_owned(),
            format!("cie: {length}; .long 0; .byte {version}; .asciz \"{augmentation}\""),
            format!(".uleb128 1; .sleb128 -8; .byte {address}; {data}; {first}; .balign 4; 1:"),
            format!("fde: {length}; .long . - cie; {start}; {size}; {more}; {program}; .balign 4; 1: {rest}"),
        ];
        let text: Vec<String> = lines.iter().map(|line| format!("__asm__({line:?});\n")).collect();
        object_by(&text.concat(), &["-O2", "-fPIC", "-fno-asynchronous-unwind-tables"])
    }
}

/// A DWARF expression, after its size.
fn expression(bytes: &[u8]) -> String {
    let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!("; .uleb128 {}; .byte {}", bytes.len(), list.join(", "))
}

#[test]
fn tables_that_libgcc_reads_are_loaded() {
    let good = Table::good();
    let stack = REGISTERS[1] as u8;
    let tables = [
        good.clone(),
        Table { version: 3, ..good.clone() },
        Table { augmentation: "zRS", ..good.clone() },
        Table { data: ".uleb128 1; .byte 0x1c", start: ".quad f - .", size: ".quad 2", ..good.clone() },
        // an absolute pointer, and no stated encoding
        Table { data: ".uleb128 1; .byte 0", start: ".quad f", size: ".quad 2", ..good.clone() },
        Table { augmentation: "", data: "", start: ".quad f", size: ".quad 2", more: "", ..good.clone() },
        // an indirect pointer to a language's personality function, and data for it
        Table {
            augmentation: "zPLR",
            data: ".uleb128 7; .byte 0x9b; .long word - .; .byte 0x1b; .byte 0x1b",
            more: ".uleb128 4; .long word - .",
            ..good.clone()
        },
        // remembered states, and a frame address from an expression
        Table { program: ".byte 0x0a, 0x41, 0x0b".to_owned(), ..good.clone() },
        Table { first: format!(".byte 0x0f{}", expression(&[0x70 + stack.min(31), 8, 0x06])), ..good.clone() },
        // a terminator, followed by the rest of another table
        Table { rest: ".long 0; .long 0xffffffff", ..good.clone() },
    ];
    for (number, table) in tables.iter().enumerate() {
        for engine in engines() {
            let function = compile(&engine, "f()", &Kernel::object(table.object(), "f"));
            // LLJIT reads fewer tables, and rejects the others
            if engine.jit().backend().name() == "llvm"
                && number > 0
                && let Err(error) = &function
            {
                let error = error.to_string();
                assert!(error.starts_with("can't load the object of kernel `f`: can't load the code: "), "{error}");
                continue;
            }
            let function = function.unwrap_or_else(|error| panic!("table {number}: {error}"));
            // the unwinder searches all tables for a frame that none of them describes
            catch_unwind(|| std::panic::resume_unwind(Box::new(()))).unwrap_err();
            drop(function);
            catch_unwind(|| std::panic::resume_unwind(Box::new(()))).unwrap_err();
        }
    }
}

#[test]
fn tables_that_libgcc_does_not_read_are_refused() {
    let good = Table::good();
    let with = |change: fn(&mut Table)| {
        let mut table = good.clone();
        change(&mut table);
        table
    };
    let program = |bytes: &str| Table { program: bytes.to_owned(), ..good.clone() };
    let tables = [
        (with(|t| t.version = 4), "a CIE of version 4"),
        (with(|t| t.version = 2), "a CIE of version 2"),
        (with(|t| t.length = ".long 0xffffffff; .quad 1f - . - 8"), "an entry of the 64-bit format"),
        (with(|t| t.length = ".long 1f - . - 4 + 64"), "an entry ends in its middle"),
        (with(|t| t.length = ".long 9"), "an entry ends in its middle"),
        (with(|t| t.augmentation = "eh"), "an augmentation `e`"),
        (with(|t| t.augmentation = "zSR"), "an augmentation `R`"),
        (with(|t| t.augmentation = "zX"), "an augmentation `X`"),
        (with(|t| t.data = ".uleb128 200; .byte 0x1b"), "an entry ends in its middle"),
        // uleb128; relative to the data table; indirect; aligned
        (with(|t| t.data = ".uleb128 1; .byte 0x01"), "a pointer of the encoding 0x01"),
        (with(|t| t.data = ".uleb128 1; .byte 0x3b"), "a pointer of the encoding 0x3b"),
        (with(|t| t.data = ".uleb128 1; .byte 0x9b"), "a pointer of the encoding 0x9b"),
        (with(|t| t.data = ".uleb128 1; .byte 0x50"), "a pointer of the encoding 0x50"),
        (with(|t| t.start = ".long word - ."), "it is about code outside of the object"),
        (with(|t| t.size = ".long 9"), "it is about code outside of the object"),
        (with(|t| t.size = ".long -1"), "a function without end"),
        (with(|t| t.more = ".uleb128 100"), "an entry ends in its middle"),
        (with(|t| t.first = String::new()), "a function without a frame"),
        (
            with(|t| t.rest = ".long 2f - . - 4; .long . - cie; .long f + 1 - .; .long 2; .uleb128 0; .balign 4; 2:"),
            "two functions share code",
        ),
        (with(|t| t.rest = ".long 2f - . - 4; .long . - fde; .long f - .; .long 2; 2:"), "a function without a CIE"),
        // an unknown instruction, a restored state that was never remembered, a frame with an unknown register
        (program(".byte 0x3f"), "unknown call frame instruction"),
        (program(".byte 0x0b"), "a state that was never kept"),
        (program(".byte 0x0c; .uleb128 120; .uleb128 8"), "register 120"),
        // expressions: an empty stack, an addition of one value, a jump, an unknown operation
        (program(&format!(".byte 0x0f{}", expression(&[0x96]))), "an expression without a value"),
        (program(&format!(".byte 0x0f{}", expression(&[0x31, 0x22]))), "takes values which it hasn't"),
        (program(&format!(".byte 0x0f{}", expression(&[0x31, 0x2f, 0xfd, 0xff]))), "an unknown operation"),
        (program(&format!(".byte 0x10, 3{}", expression(&[0x97]))), "an unknown operation"),
    ];
    for (table, problem) in tables {
        for message in refusals("f()", &Kernel::object(table.object(), "f")) {
            let expected = "can't load the object of kernel `f`: section `.eh_frame` is broken: ";
            assert!(message.starts_with(expected) && message.contains(problem), "{message}\nexpected: {problem}");
        }
    }
}
