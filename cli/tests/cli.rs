//! The command line from the outside: its output, messages and exit codes.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use object::read::archive::ArchiveFile;
use object::{Architecture, File, Object, ObjectSymbol};
use serde_json::Value;
use tempfile::TempDir;

/// A directory in which commands run.
struct Workdir(TempDir);

impl Workdir {
    fn new() -> Self {
        Workdir(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Writes a script by another process: a program can't start while a child that another test forks has it open for
    /// writing.
    #[cfg(target_os = "linux")]
    fn program(&self, name: &str, script: &str) {
        self.write("script.tmp", script);
        let mut install = Command::new("install");
        install.args(["-m", "755", "script.tmp", name]).current_dir(self.path("."));
        assert!(install.status().unwrap().success());
        fs::remove_file(self.path("script.tmp")).unwrap();
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tvm-ffi-codegen"));
        command.args(args).current_dir(self.0.path()).env_remove("CC");
        command
    }

    /// Runs a command to its end. Wine sometimes fails to start a program (`STATUS_DLL_INIT_FAILED`). The program has
    /// done nothing then, so it is started again.
    fn run_with(&self, args: &[&str], input: &str) -> Output {
        const NOT_STARTED: i32 = 0xC000_0142_u32 as i32;
        for _ in 0..3 {
            let mut command = self.command(args);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let written = child.stdin.take().unwrap().write_all(input.as_bytes());
            let output = child.wait_with_output().unwrap();
            if output.status.code() != Some(NOT_STARTED) {
                written.unwrap();
                return output;
            }
        }
        panic!("{args:?}: not started in three tries");
    }

    /// Runs a command that must succeed, and returns its output.
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run_with(args, "");
        assert!(output.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail, and returns its exit code and its message.
    fn err(&self, args: &[&str]) -> (i32, String) {
        let output = self.run_with(args, "");
        assert!(output.stdout.is_empty());
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn inspect(&self, file: &str) -> Value {
        serde_json::from_str(&self.ok(&["inspect", file, "--json"])).unwrap()
    }
}

fn symbols(path: &Path) -> Vec<String> {
    let bytes = fs::read(path).unwrap();
    let file = File::parse(&*bytes).unwrap();
    let global = file.symbols().filter(|symbol| symbol.is_global() && !symbol.is_undefined());
    let mut names: Vec<_> = global.map(|symbol| symbol.name().unwrap().to_owned()).collect();
    names.sort();
    names
}

const SIGNATURES: &str = "# kernels
## Adds one.
## To each.
add_one(x: Tensor([n], float32), y: Tensor([n], float32)) @ add_kernel

check(n: int32, s: str = \"a@b\")
give(x: Tensor([n], float32)) @ give_kernel dltensor returns=status
";

#[test]
fn signatures_of_a_file_become_an_object() {
    let place = Workdir::new();
    place.write("s.txt", SIGNATURES);
    assert_eq!(place.ok(&["wrap", "--signatures", "s.txt", "-o", "s.o"]), "");
    let names = symbols(&place.path("s.o"));
    for name in ["__tvm_ffi_add_one", "__tvm_ffi_check", "__tvm_ffi_give", "__tvm_ffi__doc_add_one"] {
        assert!(
            names.iter().any(|known| known.trim_start_matches('_') == name.trim_start_matches('_')),
            "{name} {names:?}"
        );
    }
    let seen = place.inspect("s.o");
    let needed: Vec<_> = seen["needed_symbols"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(needed.contains(&"add_kernel") && needed.contains(&"give_kernel"));
    let add = &seen["functions"][0];
    assert_eq!(add["signature"], "add_one(x: Tensor([n], float32), y: Tensor([n], float32))");
    assert_eq!(add["doc"], "Adds one.\nTo each.");
    assert_eq!(add["metadata"]["parameters"][1]["name"], "y");
    assert_eq!(seen["functions"][1]["signature"], "check(n: int32, s: str = \"a@b\")");
    assert_eq!(seen["functions"][1]["has_doc"], false);
}

const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
                   .visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n) { ret; }\n\
                   .visible .entry scale(.param .u64 x, .param .f32 f) { ret; }\n";

#[test]
fn c_parameters_stand_behind_kernels() {
    let place = Workdir::new();
    place.write(
        "s.txt",
        "narrow(x: Tensor([n], float32)) @ narrow_kernel returns=status args=[x, int32(x.shape[0]), x.device_id]\n",
    );
    place.ok(&["wrap", "--signatures", "s.txt", "-o", "s.o"]);
    let seen = place.inspect("s.o");
    assert!(seen["needed_symbols"].as_array().unwrap().contains(&"narrow_kernel".into()));
    place.write("wrong.txt", "\nnarrow(x: Tensor([n], float32)) @ narrow_kernel args=[x, int32(]\n");
    let (code, error) = place.err(&["wrap", "--signatures", "wrong.txt", "-o", "w.o"]);
    assert_eq!(code, 1);
    assert!(error.contains("wrong.txt:2: the args of kernel `narrow_kernel`: expected"), "{error}");
}

#[test]
fn launches_stand_behind_signatures() {
    let place = Workdir::new();
    place.write("k.ptx", PTX);
    let add = "add(x: Tensor([n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\")) \
               @ launch add grid=ceil_div(n, 128) block=128 args=[x, y, uint32(n)]";
    place.ok(&["wrap", "--signature", add, "--image", "k.ptx", "--prepare", "prepare", "-o", "add.o"]);
    let seen = place.inspect("add.o");
    let names: Vec<_> = seen["functions"].as_array().unwrap().iter().map(|function| &function["name"]).collect();
    assert_eq!(names, ["add", "prepare"]);
    // the images are found without the kernel's toolkit, and so is the driver
    let needed = seen["needed_symbols"].as_array().unwrap();
    assert!(needed.iter().all(|name| !name.as_str().unwrap().starts_with("cu")), "{needed:?}");
    place.write(
        "s.txt",
        format!(
            "{add}\nscale(x: Tensor([n], float32, device=\"cuda\"), f: float64) @ launch scale \
        grid=n args=[x, float32(f)]"
        ),
    );
    place.ok(&["wrap", "--signatures", "s.txt", "--image", "k.ptx", "-o", "s.o"]);
    assert!(
        place
            .ok(&["explain", "--signature", add, "--image", "k.ptx", "--emit", "ir"])
            .contains("__tvm_ffi_codegen_cuda_first_use(")
    );
    let explained = place.ok(&["explain", "--signature", add, "--image", "k.ptx"]);
    assert!(
        explained.starts_with("=== launch ===\n\nadd(x: ") && explained.contains("  cuLaunchKernelEx\n"),
        "{explained}"
    );
    let inspected = place.ok(&["inspect", "add.o"]);
    let lines =
        "    launch add grid=ceil_div(n, 128) block=128 args=[x, y, uint32(n)], by CUDA\n      PTX of compute_80, ";
    assert!(inspected.contains(lines), "{inspected}");
    assert!(
        inspected.contains("        add: parameters of 8, 8, 4 bytes, 0 bytes of static shared memory\n"),
        "{inspected}"
    );
    let on_cpu = add.replace(", device=\"cuda\"", "");
    assert!(
        place
            .ok(&["explain", "--signature", &on_cpu, "--emit", "launch"])
            .contains(", with add for each block: (ptr, ptr, i32 zext, ")
    );
    let wrong = add.replace("uint32(n)", "int64(n)").replace("block=128", "block=2048");
    let (code, said) = place.err(&["wrap", "--signature", &wrong, "--image", "k.ptx", "-o", "no.o"]);
    assert_eq!(code, 1);
    assert!(said.contains("has block[0] = 2048, expected 1 to 1024"), "{said}");
    assert!(said.contains("kernel `add` takes parameters of 8, 8, 4 bytes, and those of 8, 8, 8 are passed"), "{said}");
    let (_, said) =
        place.err(&["wrap", "--signature", &add.replace("grid=", "gird="), "--image", "k.ptx", "-o", "no.o"]);
    assert!(said.contains("found `gird`"), "{said}");
    let (_, said) = place.err(&["wrap", "--signature", add, "--image", "k.ptx", "--kernel", "add", "-o", "no.o"]);
    assert!(said.contains("--kernel can't be combined with an `@ launch` clause"), "{said}");
    assert_eq!(place.files(), ["add.o", "k.ptx", "s.o", "s.txt"]);
}

#[test]
fn the_output_says_what_it_is() {
    let place = Workdir::new();
    let signature = "f(n: int64) -> int64";
    for (target, output, architecture) in [
        ("aarch64-unknown-linux-gnu", "f.o", Architecture::Aarch64),
        ("x86_64-apple-darwin", "g.o", Architecture::X86_64),
        ("x86_64-pc-windows-msvc", "h.obj", Architecture::X86_64),
    ] {
        place.ok(&["wrap", "--signature", signature, "--kernel", "k", "--target", target, "-o", output]);
        let bytes = fs::read(place.path(output)).unwrap();
        assert_eq!(File::parse(&*bytes).unwrap().architecture(), architecture);
    }
    place.ok(&[
        "wrap",
        "--signature",
        signature,
        "--kernel",
        "k",
        "--target",
        "aarch64-unknown-linux-gnu",
        "--object",
        "f.o",
        "-o",
        "f.a",
    ]);
    let bytes = fs::read(place.path("f.a")).unwrap();
    let archive = ArchiveFile::parse(&*bytes).unwrap();
    let names: Vec<_> = archive.members().map(|member| member.unwrap().name().to_vec()).collect();
    assert_eq!(names, [b"f.o", b"f.o"]);
    assert!(archive.symbols().unwrap().unwrap().any(|symbol| symbol.unwrap().name() == b"__tvm_ffi_f"));
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn a_library_has_wrappers_kernels_and_modules() {
    let place = Workdir::new();
    place.write("k.c", "#include <stdint.h>\nint64_t twice(int64_t n) { return 2 * n; }\n");
    let cc = Command::new("cc").args(["-fPIC", "-c", "k.c", "-o", "k.o"]).current_dir(place.0.path()).status();
    assert!(cc.unwrap().success());
    place.write("a.bin", "first");
    place.write("b.bin", "the second");
    place.ok(&["pack", "--import", "a:one=a.bin", "--import", "two@a,_lib=b.bin", "-o", "bin.o"]);
    let signature = "twice(n: int64) -> int64";
    let wrap = [
        "wrap",
        "--signature",
        signature,
        "--kernel",
        "twice",
        "--doc",
        "Doubles.",
        "--object",
        "k.o",
        "--object",
        "bin.o",
    ];
    place.ok(&[&wrap[..], &["-o", "k.so"]].concat());
    let seen = place.inspect("k.so");
    assert_eq!(seen["linked"], true);
    assert_eq!(seen["has_context"], true);
    let functions = seen["functions"].as_array().unwrap();
    assert_eq!(functions.len(), 1);
    assert_eq!((&functions[0]["signature"], &functions[0]["doc"]), (&signature.into(), &"Doubles.".into()));
    let expected = serde_json::json!([
        { "kind": "_lib", "size": 0, "imports": [1, 2] },
        { "kind": "one", "size": 5, "imports": [2] },
        { "kind": "two", "size": 10, "imports": [] },
    ]);
    assert_eq!(seen["modules"], expected);
    let text = place.ok(&["inspect", "k.so"]);
    assert!(text.contains("  twice(n: int64) -> int64\n    Doubles.\n"), "{text}");
    assert!(text.contains("  #1 one, 5 bytes, imports #2\n"), "{text}");
    assert!(!place.files().iter().any(|name| name.starts_with('.')), "{:?}", place.files());

    // a module may be the root, above the library
    place.ok(&["pack", "--root", "a", "--import", "a:one=a.bin", "-o", "root.o"]);
    let modules = &place.inspect("root.o")["modules"];
    assert_eq!(
        (&modules[0]["kind"], &modules[0]["imports"], &modules[1]["kind"]),
        (&"one".into(), &vec![1].into(), &"_lib".into())
    );
}

/// A kernel that isn't linked is reported when the library is made, not when it is loaded.
#[cfg(target_os = "linux")]
#[test]
fn an_undefined_kernel_is_an_error_unless_it_is_allowed() {
    let place = Workdir::new();
    let wrap = ["wrap", "--signature", "f(n: int64)", "--kernel", "absent", "-o", "f.so"];
    let (code, error) = place.err(&wrap);
    assert_eq!(code, 1);
    let expected = "undefined symbol: `absent` (referred to by `__tvm_ffi_f` of the object in memory); link what \
        defines it, or allow it (`allow_undefined`, `--allow-undefined`)";
    assert!(error.contains(expected), "{error}");
    assert!(place.files().is_empty(), "{:?}", place.files());
    for allowed in ["absent", "ab*", "*"] {
        place.ok(&[&wrap[..], &["--allow-undefined", allowed]].concat());
        assert!(place.inspect("f.so")["needed_symbols"].as_array().unwrap().contains(&"absent".into()));
    }
}

#[test]
fn a_system_library_registers_the_modules_that_are_there() {
    const BIN: &str = "s___tvm_ffi__library_bin";
    let place = Workdir::new();
    place.write("a.bin", "bytes");
    place.ok(&["pack", "--import", "a=a.bin", "--system-lib", "s_", "-o", "bin.o"]);
    place.ok(&["pack", "--import", "a=a.bin", "--system-lib", "t_", "-o", "another.o"]);
    let wrap = |args: &[&str]| {
        place.ok(&[&["wrap", "--signature", "f(n: int64)", "--system-lib", "s_"], args].concat());
    };
    let asks = |file: &str| place.inspect(file)["needed_symbols"].as_array().unwrap().contains(&BIN.into());
    wrap(&["-o", "plain.o"]);
    wrap(&["--carries-modules", "-o", "with.o"]);
    assert_eq!((asks("plain.o"), asks("with.o")), (false, true));
    // an archive that is put into another one brings its members
    wrap(&["--object", "bin.o", "-o", "one.a"]);
    wrap(&["--object", "another.o", "-o", "none.a"]);
    wrap(&["--object", "one.a", "-o", "two.a"]);
    for (archive, expected) in [("one.a", true), ("none.a", false), ("two.a", true)] {
        let bytes = fs::read(place.path(archive)).unwrap();
        let first = ArchiveFile::parse(&*bytes).unwrap().members().next().unwrap().unwrap();
        place.write("first.o", first.data(&*bytes).unwrap());
        assert_eq!(asks("first.o"), expected, "{archive}");
    }
    let (code, said) = place.err(&["wrap", "--signature", "f(n: int64)", "--carries-modules", "-o", "f.o"]);
    assert!(code == 2 && said.contains("--system-lib"), "{said}");
}

#[test]
fn failures_say_what_is_wrong_and_leave_nothing() {
    let place = Workdir::new();
    place.write("s.txt", "f(x: int8)\n\nf(x: Tensr)\n");
    place.write("empty.txt", "# nothing\n");
    place.write("old.so", "what was there");
    place.write("text.o", "no object");
    let before = place.files();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["wrap", "--signatures", "s.txt", "-o", "f.o"], 1, "error: s.txt:3: expected a type, found `Tensr`"),
        (&["wrap", "--signature", "f(x: Tensr)", "-o", "f.o"], 1, "\n  f(x: Tensr)\n       ^\n"),
        (&["wrap", "--signatures", "empty.txt", "-o", "f.o"], 1, "empty.txt: it contains no signatures"),
        (&["wrap", "--signature", "f()", "-o", "f.xyz"], 2, "f.xyz: expected an output that ends in"),
        (&["wrap", "--signature", "f()", "--object", "text.o", "-o", "f.o"], 2, "--object is for archives"),
        (&["wrap", "--signature", "f()", "--object", "text.o", "-o", "f.a"], 1, "text.o: expected an object"),
        (&["wrap", "--signature", "f()", "--object", "missing.o", "-o", "old.so"], 1, "missing.o"),
        (&["pack", "--import", "k=missing", "-o", "b.o"], 1, "missing: "),
        (&["pack", "--import", "k@nobody=s.txt", "-o", "b.o"], 2, "no import has the name `nobody`"),
        (&["inspect", "text.o"], 1, "text.o: no object or library"),
    ];
    for (args, code, message) in cases {
        let (found, text) = place.err(args);
        assert_eq!(found, code, "{args:?} {text}");
        assert!(text.starts_with("tvm-ffi-codegen: error: ") && text.contains(message), "{args:?} {text}");
        assert_eq!(place.files(), before, "{args:?}");
    }
    assert_eq!(fs::read(place.path("old.so")).unwrap(), b"what was there");
    let (code, text) = place.err(&["frob"]);
    assert!(code == 2 && text.starts_with("tvm-ffi-codegen: error: "), "{text}");
}

#[test]
fn errors_are_values_where_json_is_asked_for() {
    let place = Workdir::new();
    place.write("s.txt", "f(x: int8)\n\n  f(x: Tensr)\n");
    place.write("twice.txt", "f(x: Tensor([n], float32, align=3))\n");
    let said = |args: &[&str]| -> (i32, Value) {
        let (code, text) = place.err(args);
        assert_eq!(text.lines().count(), 1, "{text}");
        (code, serde_json::from_str(&text).unwrap())
    };
    let (code, error) = said(&["--message-format", "json", "wrap", "--signatures", "s.txt", "-o", "f.o"]);
    assert_eq!(
        (code, &error["kind"], &error["place"], &error["line"]),
        (1, &"SignatureError".into(), &"s.txt".into(), &3.into())
    );
    let error = &error["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&3.into(), &8.into()), "{error}");
    assert_eq!((&error["expected"], &error["got"]), (&"a type".into(), &"`Tensr`".into()));
    let (_, error) = said(&["wrap", "--signatures", "twice.txt", "-o", "f.o", "--message-format=json"]);
    let error = &error["errors"][0];
    assert_eq!((&error["path"], &error["line"], &error["column"]), (&"x.align".into(), &1.into(), &33.into()));
    assert_eq!((&error["expected"], &error["got"]), (&"a power of two".into(), &"3".into()));
    let (_, error) = said(&["explain", "--signature", "f(x: fp16)", "--message-format=json"]);
    assert!(
        error.get("place").is_none() && error["message"].as_str().unwrap().starts_with("expected a type"),
        "{error}"
    );
    let (_, error) = said(&[
        "wrap",
        "--signature",
        "f()",
        "--target",
        "wasm32-unknown-unknown",
        "-o",
        "f.o",
        "--message-format=json",
    ]);
    assert_eq!(
        (&error["kind"], &error["target"]),
        (&"UnsupportedTargetError".into(), &"wasm32-unknown-unknown".into())
    );
    let (code, error) = said(&["--message-format=json", "frob"]);
    assert_eq!((code, &error["kind"]), (2, &"UsageError".into()));
    let (_, error) = said(&["inspect", "missing.so", "--message-format=json"]);
    assert_eq!(error["kind"], "CodegenError");
}

/// Each grammar error is listed, with its line and column in the file.
#[test]
fn errors_of_grammar_are_listed() {
    let place = Workdir::new();
    place.write("s.txt", "f(x: int8)\n  g(x: fp16, y int8, z: int8)\n");
    let (code, text) = place.err(&["wrap", "--signatures", "s.txt", "-o", "f.o", "--message-format=json"]);
    let error: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &error["kind"], &error["line"]), (1, &"SignatureError".into(), &2.into()));
    let errors = error["errors"].as_array().unwrap();
    let found: Vec<_> =
        errors.iter().map(|one| (&one["line"], &one["column"], &one["expected"], &one["got"])).collect();
    let at = |column: i32, expected: &str, got: &str| [2.into(), column.into(), expected.into(), got.into()];
    let want: [[Value; 4]; 2] = [at(8, "a type", "`fp16`"), at(16, "`:`", "`int8`")];
    let want: Vec<_> = want.iter().map(|[line, column, expected, got]| (line, column, expected, got)).collect();
    assert_eq!(found, want);

    let (_, text) = place.err(&["wrap", "--signatures", "s.txt", "-o", "f.o"]);
    assert!(text.contains("error: s.txt:2: expected a type, found `fp16`"), "{text}");
    assert!(text.contains("\nexpected `:`, found `int8`\n"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn undefined_symbols_are_listed() {
    let place = Workdir::new();
    let (_, text) =
        place.err(&["wrap", "--signature", "f()", "--kernel", "nobody", "-o", "f.so", "--message-format=json"]);
    let error: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&error["kind"], &error["symbols"][0]["name"]),
        (&"UndefinedSymbolError".into(), &"nobody".into()),
        "{error}"
    );
}

#[test]
fn objects_go_to_stdout_as_a_minus() {
    let place = Workdir::new();
    let wrap = ["wrap", "--signature", "f(x: int8)", "-o"];
    place.ok(&[&wrap[..], &["f.o"]].concat());
    let object = place.run_with(&[&wrap[..], &["-"]].concat(), "").stdout;
    assert!(object == fs::read(place.path("f.o")).unwrap());
    let pack = ["pack", "--import", "k=-", "-o"];
    assert!(place.run_with(&[&pack[..], &["p.o"]].concat(), "payload").status.success());
    let object = place.run_with(&[&pack[..], &["-"]].concat(), "payload").stdout;
    assert!(object == fs::read(place.path("p.o")).unwrap() && !object.is_empty());
    assert_eq!(place.files(), ["f.o", "p.o"]);
}

#[test]
fn explain_writes_a_page() {
    let place = Workdir::new();
    let explain = ["explain", "--signature", "f(x: Tensor([n], float32))", "--emit", "html"];
    let page = place.ok(&explain);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("data-stage=\"asm\""));
    assert!(place.ok(&[&explain[..], &["-o", "f.html"]].concat()).is_empty());
    assert_eq!(fs::read_to_string(place.path("f.html")).unwrap(), page);
    let (code, said) = place.err(&[&explain[..], &["-o", "missing/f.html"]].concat());
    assert!(code == 1 && said.contains("missing/f.html"), "{said}");
}

#[test]
fn stdin_is_a_minus() {
    let place = Workdir::new();
    let output = place.run_with(&["wrap", "--signatures", "-", "-o", "f.o"], "f(x: int8)\n");
    assert!(output.status.success());
    let output = place.run_with(&["explain", "--signature", "-", "--emit", "header"], "f(x: int8)\n");
    assert!(String::from_utf8(output.stdout).unwrap().contains("void f(int8_t x);"));
    let output = place.run_with(&["pack", "--import", "k=-", "-o", "b.o"], "payload");
    assert!(output.status.success());
    assert_eq!(place.inspect("b.o")["modules"][1]["size"], 7);
}

#[test]
fn help_and_version_succeed_and_a_closed_pipe_is_quiet() {
    let place = Workdir::new();
    assert_eq!(place.ok(&["--version"]), format!("tvm-ffi-codegen {}\n", env!("CARGO_PKG_VERSION")));
    assert!(place.ok(&["pack", "--help"]).contains("--import all:net=net.bin"));
    let mut command = place.command(&["explain", "--signature", "f(x: Tensor([n], float32))"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// If stdout or stderr is full or closed, the exit code is that of the failure, not of a panic.
#[cfg(target_os = "linux")]
#[test]
fn full_and_closed_outputs_leave_the_exit_code() {
    let place = Workdir::new();
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    for (args, code) in [(&["frob"][..], 2), (&["inspect", "missing.o"], 1), (&["--version"], 1), (&["wrap"], 2)] {
        let status = place.command(args).stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
    let output = place.command(&["--version"]).stdout(full()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("tvm-ffi-codegen: error: stdout: No space left"), "{said}");
    for (args, code) in [(&["frob"][..], 2), (&["inspect", "missing.o"], 1), (&["--version"], 0)] {
        // pipes without a reader
        let ends = [std::io::pipe().unwrap(), std::io::pipe().unwrap()];
        let [stdout, stderr] = ends.map(|(_, writer)| writer);
        let status = place.command(args).stdout(stdout).stderr(stderr).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_linker_that_writes_nothing_is_named() {
    let place = Workdir::new();
    place.program("silent", "#!/bin/sh\nexit 0\n");
    let before = place.files();
    let mut command = place.command(&["wrap", "--signature", "f()", "--linker", "cc", "-o", "f.so"]);
    let output = command.env("CC", place.path("silent")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("tvm-ffi-codegen: error: the linker succeeded without writing a library: "), "{said}");
    assert!(said.contains("/silent ") && said.contains(" -shared ") && !said.contains("No such file"), "{said}");
    assert_eq!(place.files(), before);
}

/// Asking a compiler for its version takes as long as a small link.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn the_compilers_driver_runs_once() {
    let place = Workdir::new();
    place.program("logging", "#!/bin/sh\necho \"$*\" >> calls.txt\nexec cc \"$@\"\n");
    let mut command = place.command(&["wrap", "--signature", "f()", "--linker", "cc", "-o", "f.so"]);
    assert!(command.env("CC", place.path("logging")).status().unwrap().success());
    let calls = fs::read_to_string(place.path("calls.txt")).unwrap();
    assert_eq!(calls.lines().count(), 1, "{calls}");
    assert!(calls.contains(" -shared "), "{calls}");
}

/// Waits until a condition holds, with a time limit.
#[cfg(target_os = "linux")]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed().as_secs() < 60, "it takes too long");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_ends_it_leaves_no_temporary_file() {
    use std::os::unix::process::ExitStatusExt;

    let place = Workdir::new();
    let kill = |signal: &str, pid: &str| {
        assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
    };
    let is_writing = || place.files().iter().any(|name| name.starts_with(".tvm-ffi-"));
    // an output copied from a file: long, and nearly all of it is a hole
    let payload = fs::File::create(place.path("huge")).unwrap();
    payload.set_len(16 << 30).unwrap();
    place.write("bin.o", "what was there");
    let before = place.files();
    for (signal, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        // signals that the parent process ignores, as `nohup` does, are not ignored here
        let mut command = Command::new("env");
        command.arg("--default-signal=TERM,INT,HUP").arg(env!("CARGO_BIN_EXE_tvm-ffi-codegen"));
        command.args(["pack", "--import", "k=huge", "-o", "bin.o"]).current_dir(place.0.path());
        let mut child = command.spawn().unwrap();
        wait_until(is_writing);
        kill(signal, &child.id().to_string());
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert_eq!(place.files(), before, "{signal}");
        assert_eq!(fs::read(place.path("bin.o")).unwrap(), b"what was there");
    }
    drop(payload);
    fs::remove_file(place.path("huge")).unwrap();

    // an output that a linker writes into a directory
    let script =
        "#!/bin/sh\ncase \"$*\" in *-shared*) echo $$ > linker.tmp; mv linker.tmp linker.pid; exec sleep 60;; esac\n";
    place.program("slow", script);
    let mut command = place.command(&["wrap", "--signature", "f()", "--linker", "cc", "-o", "f.so"]);
    let mut child = command.env("CC", place.path("slow")).spawn().unwrap();
    wait_until(|| place.path("linker.pid").exists());
    assert!(is_writing());
    kill("-TERM", &child.id().to_string());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    kill("-TERM", fs::read_to_string(place.path("linker.pid")).unwrap().trim());
    assert_eq!(place.files(), ["bin.o", "linker.pid", "slow"]);
}

/// `nohup` starts a program with the signal ignored.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let place = Workdir::new();
    let program = env!("CARGO_BIN_EXE_tvm-ffi-codegen");
    let script = format!("trap '' HUP; exec {program} wrap --signatures - -o f.o");
    let mut command = Command::new("sh");
    let mut child = command.args(["-c", &script]).current_dir(place.0.path()).stdin(Stdio::piped()).spawn().unwrap();
    // it is the program by now, not the shell, and it reads
    let state = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap_or_default();
    wait_until(|| state("cmdline").starts_with(program) && state("status").contains("Threads:\t2"));
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    child.stdin.take().unwrap().write_all(b"f(x: int8)\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(place.files(), ["f.o"]);
}

/// A command with a pseudo terminal as its stdin, stdout and stderr.
#[cfg(target_os = "linux")]
fn in_terminal(place: &Workdir, args: &[&str]) -> std::process::Child {
    let words = [&[env!("CARGO_BIN_EXE_tvm-ffi-codegen")], args].concat().join(" ");
    // a program ignores hangups if these tests do, as under `nohup`
    let mut command = Command::new("env");
    command.args([
        "--default-signal=HUP",
        "script",
        "--quiet",
        "--return",
        "--flush",
        "--command",
        &words,
        "typescript",
    ]);
    command.current_dir(place.0.path());
    command.env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The number of signatures whose wrappers take longer than the bar's delay on a fast machine.
#[cfg(target_os = "linux")]
const MANY: usize = 1000;

/// Signatures with wrappers that take longer than the bar's delay.
#[cfg(target_os = "linux")]
fn many_signatures(place: &Workdir) {
    let tensors = (0..4).map(|i| format!("x{i}: Tensor([n, m], float32)")).collect::<Vec<_>>().join(", ");
    let signatures: String = (0..MANY).map(|i| format!("f{i}({tensors})\n")).collect();
    place.write("many.txt", signatures);
}

#[cfg(target_os = "linux")]
#[test]
fn long_work_shows_a_bar_on_a_terminal_and_takes_it_away() {
    let place = Workdir::new();
    many_signatures(&place);
    let wrap = ["wrap", "--signatures", "many.txt", "-o", "many.o"];
    let output = in_terminal(&place, &wrap).wait_with_output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("compiling [") && shown.contains(" parts of functions "), "{shown}");
    // the line is empty at the end: the last output erases it
    assert!(shown.trim_end_matches(['\r', '\n']).ends_with("\u{1b}[2K"), "{shown:?}");
    assert_eq!(place.inspect("many.o")["functions"].as_array().unwrap().len(), MANY);

    // short work shows no bar, and neither does work with errors for programs
    place.write("few.txt", "f(x: int8)\n");
    let few = ["wrap", "--signatures", "few.txt", "-o", "few.o"];
    let json = [&wrap[..], &["--message-format=json"]].concat();
    for args in [&few[..], &json[..]] {
        let output = in_terminal(&place, args).wait_with_output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{:?}", String::from_utf8(output.stdout));
    }
    // without a terminal the bar isn't written
    place.ok(&wrap);
}

#[cfg(target_os = "linux")]
#[test]
fn packing_shows_its_bytes_on_a_terminal() {
    use std::io::Read;

    let place = Workdir::new();
    // nearly all of it is a hole, but copying it takes long
    let payload = fs::File::create(place.path("huge")).unwrap();
    payload.set_len(16 << 30).unwrap();
    let mut child = in_terminal(&place, &["pack", "--import", "k=huge", "-o", "bin.o"]);
    let (mut shown, mut piece) = (String::new(), [0; 4096]);
    let mut stdout = child.stdout.take().unwrap();
    while !(shown.contains("copying [") && shown.contains("iB/16.00 GiB")) {
        let len = stdout.read(&mut piece).unwrap();
        assert!(len > 0, "{shown}");
        shown.push_str(&String::from_utf8_lossy(&piece[..len]));
    }
    // the terminal is closed, and the program ends
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| !place.files().iter().any(|name| name.starts_with(".tvm-ffi-")));
}

#[test]
fn sources_of_kernels_become_images() {
    let place = Workdir::new();
    place.write("k.cu", "extern \"C\" __global__ void fill(float* x, long long n) { *x = VALUE; }\n");
    let signature = "fill(x: Tensor([n], float32, device=\"cuda\")) @ launch fill grid=n";
    let wrap = ["wrap", "--signature", signature, "--source", "k.cu"];
    let (code, said) = place.err(&[&wrap[..], &["-o", "k.o"]].concat());
    assert_eq!(code, 2);
    assert!(said.contains("--arch <NAME>"), "{said}");
    place.write("h.tfh", "f() {}\n");
    let (code, said) = place.err(&["wrap", "--host", "h.tfh", "--source", "k.cu", "--arch", "sm_80", "-o", "h.o"]);
    assert_eq!((code, &*said), (2, "tvm-ffi-codegen: error: --source k.cu: host text takes images, not sources\n"));
    if std::env::var_os("TVM_FFI_CODEGEN_NVRTC").is_none() {
        eprintln!("skipped: TVM_FFI_CODEGEN_NVRTC is not set; `cargo xtask test --only gpu` sets it");
        return;
    }
    let archs = ["--arch", "sm_80", "--arch", "compute_90", "--source-option", "-DVALUE=2.0f"];
    place.ok(&[&wrap[..], &archs, &["--prepare", "ready", "-o", "k.o"]].concat());
    let images = place.inspect("k.o")["functions"][0]["metadata"]["launches"][0]["images"].clone();
    let targets: Vec<_> = images.as_array().unwrap().iter().map(|image| image["targets"][0].clone()).collect();
    assert_eq!(targets, ["sm_80", "compute_90"]);
    let (code, said) = place.err(&[&wrap[..], &["--arch", "sm_80", "-o", "k.o"]].concat());
    assert_eq!(code, 1);
    assert!(
        said.contains("can't compile k.cu for sm_80:\nk.cu(1): error: identifier \"VALUE\" is undefined"),
        "{said}"
    );
}

const HOST: &str = "register forward as \"model.forward\";
matmul(x: Tensor([m, k], float32), w: Tensor([k, n], float32), to: Tensor([m, n], float32)) @ matmul_f32;
# of the model
## Calls the kernel.
forward(x: Tensor([m, k], float32), w: Tensor([k, n], float32)) -> Tensor([m, n], float32) { call symbol matmul(x,w,result); }
scale(x: Tensor([n], float32, device=\"cuda\"), f: float32) { if n>0 {launch scale grid=n args=[x,f] image=ptx;} }
";

#[test]
fn host_text_becomes_a_library() {
    let place = Workdir::new();
    let launch = "whole(x: Tensor([n], float32, device=\"cuda\")) @ launch scale grid=n args=[x, float32(2)];\n";
    place.write("m.tfh", [HOST, launch].concat());
    place.write("k.ptx", PTX);
    assert_eq!(place.ok(&["wrap", "--host", "m.tfh", "--image", "ptx=k.ptx", "--prepare", "ready", "-o", "m.o"]), "");
    let seen = place.inspect("m.o");
    let functions: Vec<_> =
        seen["functions"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(functions, ["forward", "matmul", "ready", "scale", "whole"]);
    assert_eq!(seen["functions"][0]["doc"], "Calls the kernel.");
    assert!(seen["functions"][3].to_string().contains("launch scale grid=n args=[x, f]"), "{}", seen["functions"][3]);
    assert!(seen["needed_symbols"].as_array().unwrap().contains(&"matmul_f32".into()));
    for (args, problem) in [
        (vec!["--image", "k.ptx"], "--image k.ptx: expected NAME=FILE for an image of host text"),
        (vec!["--kernel", "f"], "'--host <FILE>' cannot be used with '--kernel <SYMBOL>'"),
        (vec!["--returns", "status"], "'--host <FILE>' cannot be used with '--returns <KIND>'"),
    ] {
        let (code, error) = place.err(&[&["wrap", "--host", "m.tfh", "-o", "w.o"], &args[..]].concat());
        assert_eq!(code, 2);
        assert!(error.contains(problem), "{error}");
    }
    let (code, error) = place.err(&["wrap", "--host", "m.tfh", "-o", "w.o"]);
    assert_eq!(code, 1);
    assert!(error.starts_with("tvm-ffi-codegen: error: m.tfh: line 6: no image is called `ptx`\n"), "{error}");
    assert!(!place.files().contains(&"w.o".to_owned()));
}

#[test]
fn all_errors_of_host_text_are_listed() {
    let place = Workdir::new();
    place.write("m.tfh", HOST);
    place.write("k.ptx", PTX);
    assert_eq!(place.ok(&["check", "m.tfh", "--image", "ptx=k.ptx"]), "");
    place.write("grammar.tfh", "f(x: fp16);\n\tg(n: int64) { n = ; }\n");
    let (code, error) = place.err(&["check", "grammar.tfh"]);
    assert_eq!(code, 1);
    assert!(error.starts_with("tvm-ffi-codegen: error: grammar.tfh: line 1: expected a type, found `fp16`"), "{error}");
    assert!(error.contains("\n  f(x: fp16);\n       ^\nline 2: expected a value, found `;`\n"), "{error}");
    assert!(error.ends_with("  \tg(n: int64) { n = ; }\n  \t                  ^\n"), "{error}");
    place.write("names.tfh", "f(n: int64) -> int64 {\n  return m;\n}\ng() -> int64 { }\n");
    for command in [&["check", "names.tfh"][..], &["wrap", "--host", "names.tfh", "-o", "n.o"]] {
        let (code, error) = place.err(&[command, &["--message-format=json"]].concat());
        assert_eq!(code, 1);
        let json: Value = serde_json::from_str(&error).unwrap();
        assert_eq!((&json["kind"], &json["place"]), (&"KernelError".into(), &"names.tfh".into()));
        let errors = json["errors"].as_array().unwrap().iter();
        let lines = errors.map(|of| (of["path"].as_str().unwrap(), of["line"].as_u64(), of["column"].as_u64()));
        assert_eq!(lines.collect::<Vec<_>>(), [("f", Some(2), Some(10)), ("g", Some(4), Some(16))]);
    }
    let output = place.run_with(&["check", "-"], "f() { return x; }");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("tvm-ffi-codegen: error: stdin: the body of function `f` has errors:\n"), "{error}");
    assert!(place.err(&["check", "none.tfh"]).1.starts_with("tvm-ffi-codegen: error: none.tfh: "));
}

#[test]
fn host_text_has_a_canonical_form() {
    let place = Workdir::new();
    place.write("m.tfh", HOST);
    let text = place.ok(&["format", "m.tfh"]);
    let scale = "scale(x: Tensor([n], float32, device=\"cuda\"), f: float32) {\n  if n > 0 {\n    \
                 launch scale grid=n args=[x, f] image=ptx;\n  }\n}\n";
    assert!(text.contains("\n# of the model\n## Calls the kernel.\nforward(") && text.ends_with(scale), "{text}");
    assert_eq!(place.ok(&["format", "m.tfh", "-o", "m.tfh"]), "");
    assert_eq!(fs::read_to_string(place.path("m.tfh")).unwrap(), text);
    assert_eq!(place.ok(&["format", "m.tfh"]), text);
    place.write("wrong.tfh", "f() {");
    let (code, error) = place.err(&["format", "wrong.tfh", "-o", "wrong.tfh"]);
    assert_eq!(code, 1);
    assert!(error.starts_with("tvm-ffi-codegen: error: wrong.tfh: line 1: expected"), "{error}");
    assert_eq!(fs::read_to_string(place.path("wrong.tfh")).unwrap(), "f() {");
}
