//! The stages side by side: which lines correspond, and that the reported code is the code that is generated otherwise.

use std::collections::{BTreeMap, BTreeSet};

use object::{Object, ObjectSection};
use tvm_ffi_codegen::backend::cranelift;
use tvm_ffi_codegen::explain::{Column, Line, SideBySide, Stage, explain, side_by_side};
use tvm_ffi_codegen::ir::{self, Module};
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::{Backend, Kernel, OptLevel, Signature};

use crate::fixtures::signatures;
use crate::support::parallel;

const LEVEL: OptLevel = OptLevel::Speed;

fn stages(signature: &Signature, kernel: &Kernel, backend: Backend) -> SideBySide {
    side_by_side(signature, kernel, backend, LEVEL).unwrap()
}

fn column(stages: &SideBySide, stage: Stage) -> &Column {
    stages.columns.iter().find(|column| column.stage == stage).unwrap()
}

fn lines(stages: &SideBySide, stage: Stage) -> &[Line] {
    &column(stages, stage).panels[0].lines
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{}\n", line.text)).collect()
}

/// The IR line that a line corresponds to, if it corresponds to exactly one.
fn origin<'a>(ir: &'a [Line], line: &Line) -> Option<&'a str> {
    let mut numbers = line.ir_lines.iter();
    let number = numbers.next()?;
    assert_eq!(numbers.next(), None, "{line:?}");
    Some(&ir[*number as usize - 1].text)
}

/// For every fixture: the listings are those of the single stages, and corresponding lines have the same meaning.
#[test]
fn lines_belong_to_the_ir_that_they_were_made_from() {
    let fixtures = signatures();
    assert!(!fixtures.is_empty());
    for &backend in Backend::ALL {
        // the backends are slow in a debug build
        let step = if backend.name() == "llvm" { 40 } else { 4 };
        let some: Vec<_> = fixtures.iter().step_by(step).collect();
        parallel::map(&some, |(heading, signature, kernel)| check(heading, signature, kernel, backend));
    }
}

fn check(heading: &str, signature: &Signature, kernel: &Kernel, backend: Backend) {
    let stages = stages(signature, kernel, backend);
    let ir = lines(&stages, Stage::Ir);
    let alone = |stage| explain(signature, kernel, stage, backend, LEVEL).unwrap();
    assert!(text(ir).trim_end() == alone(Stage::Ir).trim_end(), "{heading}");
    for (number, line) in (1..).zip(ir) {
        assert!(line.ir_lines.is_empty() || line.ir_lines.iter().eq([&number]), "{heading}: {line:?}");
    }
    for stage in [Stage::Clif, Stage::Llvm, Stage::Asm] {
        let Some(column) = stages.columns.iter().find(|column| column.stage == stage) else { continue };
        let lines = &column.panels[0].lines;
        // this shows other text than Cranelift's own listing, which doesn't state where an instruction is
        if (backend.name(), stage) != ("cranelift", Stage::Asm) {
            assert!(text(lines).trim_end() == alone(stage).trim_end(), "{heading}: {stage}");
        }
        assert!(lines.iter().any(|line| !line.ir_lines.is_empty()), "{heading}: {stage}");
        if stage == Stage::Asm {
            // each function begins with its label, which LLVM follows with a comment
            let is_label = |line: &Line| {
                let code = line.text.split('#').next().unwrap_or_default().trim_end();
                code.ends_with(':') && !code.starts_with(['.', ' ', '\t'])
            };
            let starts: Vec<usize> = (0..lines.len()).filter(|&index| is_label(&lines[index])).collect();
            assert!(!starts.is_empty(), "{heading}");
            for (index, &start) in starts.iter().enumerate() {
                let end = starts.get(index + 1).copied().unwrap_or(lines.len());
                let known = lines[start..end].iter().any(|line| !line.ir_lines.is_empty());
                assert!(known, "{heading}: {}", lines[start].text);
            }
        }
        for line in lines {
            if let Some(origin) = origin(ir, line) {
                assert!(origin.starts_with("    ") && !origin.trim().is_empty(), "{heading}: {line:?} of {origin}");
                agree(heading, stage, &line.text, origin);
            }
        }
    }
}

/// Calls originate from calls of the same symbol. In CLIF, which isn't optimised yet, branches originate from branches
/// and returns from returns.
fn agree(heading: &str, stage: Stage, line: &str, origin: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let said = format!("{heading}: {stage}: `{line}` of `{origin}`");
    let has = |word: &str| words.contains(&word);
    match stage {
        Stage::Clif => {
            let ir = origin.split_whitespace().collect::<Vec<_>>();
            let ir_has = |word: &str| ir.iter().any(|known| known.starts_with(word));
            assert!(!has("brif") || ir_has("br") || ir_has("same_bytes"), "{said}");
            assert!(!has("jump") || ir_has("jump") || ir_has("same_bytes"), "{said}");
            assert!(!has("return") || ir_has("return"), "{said}");
            assert!(!has("call_indirect") || ir_has("call"), "{said}");
        }
        Stage::Asm => {
            let call = words.iter().position(|word| word.starts_with("call"));
            let symbol = call.and_then(|call| words.get(call + 1)).map(|symbol| symbol.trim_end_matches("@PLT"));
            let named = |symbol: &&str| symbol.starts_with("TVMFFI") || symbol.starts_with("__tvm_ffi");
            if let Some(symbol) = symbol.filter(named) {
                assert!(origin.contains(symbol.split('(').next().unwrap_or_default()), "{said}");
            }
        }
        _ => {}
    }
}

/// The code of every fixture is the same when the IR's lines are its source locations.
#[test]
fn locations_do_not_change_code() {
    let fixtures = signatures();
    let both = |signature: &Signature, kernel: &Kernel| {
        let module = lower(signature, kernel, RuntimeHelpers::Import).unwrap();
        let located = module.located_in_listing().1;
        [module, located].map(|module| ir::verify(module).unwrap())
    };
    let isas = cranelift::ByLoops::new(LEVEL, &cranelift::IsaOptions::default(), cranelift::host_isa).unwrap();
    for (heading, signature, kernel) in &fixtures {
        let [plain, located] = both(signature, kernel).map(|module| {
            let options = cranelift::Options::default();
            let compiled = cranelift::Compiler::new().compile_by_loops(&module, &isas, options).unwrap();
            compiled.functions().iter().map(|function| function.code.clone()).collect::<Vec<_>>()
        });
        assert!(plain == located, "{heading}");
    }
    #[cfg(feature = "_llvm")]
    {
        use tvm_ffi_codegen::backend::llvm;

        let some: Vec<_> = fixtures.iter().step_by(40).collect();
        parallel::map(&some, |(heading, signature, kernel)| {
            let target = llvm::LlvmTarget::host(&llvm::TargetOptions::default()).unwrap();
            let [plain, located] = both(signature, kernel).map(|module| {
                code_sections(
                    &llvm::Compiler::new(target.clone()).compile(&module, llvm::Options::default()).unwrap().object,
                )
            });
            assert!(!plain.is_empty() && plain == located, "{heading}");
        });
    }
}

/// The code sections of an object.
#[cfg_attr(not(feature = "_llvm"), allow(dead_code))]
fn code_sections(object: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let object = object::File::parse(object).unwrap();
    let code = object.sections().filter(|section| section.kind() == object::SectionKind::Text);
    code.map(|section| (section.name().unwrap().to_owned(), section.data().unwrap().to_vec())).collect()
}

/// The locations are the lines of a listing: each instruction and each block end has the line that shows it.
#[test]
fn the_listing_tells_the_lines_of_instructions() {
    let signature: Signature = "f(x: Tensor([n], float32), n_max: int64) -> int64".parse().unwrap();
    let module: Module = lower(&signature, &Kernel::symbol("f"), RuntimeHelpers::Define).unwrap();
    let (listing, located) = module.located_in_listing();
    assert_eq!(listing, module.to_string());
    let lines: Vec<&str> = listing.lines().collect();
    let mut seen = BTreeSet::new();
    for body in located.functions.values().filter_map(|decl| decl.body.as_ref()) {
        for (block, data) in &body.blocks {
            let insts = data.insts.iter().map(|inst| (body.locations[*inst], body.insts[*inst].result));
            for (location, result) in insts.chain([(body.end_locations[block], None)]) {
                let line = located.locations[location.expand().unwrap()].line;
                assert!(seen.insert(line), "two are line {line}");
                let shown = lines[line as usize - 1];
                assert!(result.is_none_or(|result| shown.starts_with(&format!("    {result} = "))), "{shown}");
            }
        }
    }
    let code =
        lines.iter().filter(|line| line.starts_with("    ") && !line.contains("slot") || line.contains("stack_addr"));
    assert!(seen.len() > 50 && seen.len() >= code.filter(|line| !line.trim_start().starts_with("sig")).count());
}

/// A parameter corresponds to the lines that load its argument, and not to lines that load only another one.
#[test]
fn parameters_belong_to_the_code_of_their_arguments() {
    let signature: Signature = r#"f(a: int64, b: float64, x: Tensor([n], float32, device="cuda"), stream: EnvStream, c: int64)"#.parse().unwrap();
    for &backend in Backend::ALL {
        let stages = stages(&signature, &Kernel::symbol("f"), backend);
        let ir = lines(&stages, Stage::Ir);
        let params: Vec<&Line> = column(&stages, Stage::Header).panels[0].lines[1..6].iter().collect();
        assert!(params[3].text.contains("stream") && params[3].ir_lines.is_empty(), "{:?}", params[3]);
        let of =
            |param: &Line| param.ir_lines.iter().map(|line| ir[*line as usize - 1].text.clone()).collect::<Vec<_>>();
        for (param, slot) in [(params[0], 0..16), (params[1], 16..32), (params[2], 32..48), (params[4], 48..64)] {
            let code = of(param);
            let loads: Vec<i32> = code.iter().filter_map(|line| argument_load(line)).collect();
            assert!(loads.len() >= 2 && loads.iter().all(|offset| slot.contains(offset)), "{}: {code:#?}", param.text);
            assert!(code.iter().any(|line| line.contains("call @f(")), "{code:#?}");
            assert!(code.iter().any(|line| line.contains("icmp") || line.contains("br")), "{code:#?}");
        }
    }
}

/// The offset of a load from the argument array.
fn argument_load(line: &str) -> Option<i32> {
    let (_, address) = line.split_once("load.")?;
    match address.split_whitespace().last()?.strip_prefix("v1")? {
        "" => Some(0),
        offset => offset.strip_prefix('+')?.parse().ok(),
    }
}

#[test]
fn the_page_is_one_text_that_shows_texts_as_they_are() {
    let signature: Signature = r#"f(x: Tensor([n], float32), mode: str = "a<b & \"c\" </script>")"#.parse().unwrap();
    for &backend in Backend::ALL {
        let page = explain(&signature, &Kernel::symbol("f"), Stage::Html, backend, LEVEL).unwrap();
        assert_eq!(page, stages(&signature, &Kernel::symbol("f"), backend).to_html());
        assert!(page.starts_with("<!DOCTYPE html>"));
        assert!(page.contains("mode: str = &quot;a&lt;b &amp; \\&quot;c\\&quot; &lt;/script&gt;&quot;"), "{page}");
        assert_eq!(page.matches("</script>").count(), 1);
        // the page loads nothing
        for reference in ["http://", "https://", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(reference), "{reference}");
        }
    }
}
