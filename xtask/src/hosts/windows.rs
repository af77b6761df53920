//! Libraries for Windows, run under Wine.

use super::*;
use crate::wine::{GCC, GXX, TRIPLE, Wine, windows_folder, windows_path, windows_paths};

/// The linkers, each with the compiler's driver that runs it.
const LINKERS: [(&str, &str); 2] = [("mingw", GCC), ("lld", "clang-22 --target=x86_64-w64-mingw32 -fuse-ld=lld")];

/// The directory of the libraries: a name with a space, and with multi-byte characters.
const FOLDER: &str = "ünï cödé";

/// Builds libraries with each backend and each linker, and runs them in the C host and in the bundled runtime.
pub fn windows() -> Result<Tests> {
    let hosts = Hosts::build()?;
    let mut tests = Tests::default();
    for backend in BACKENDS {
        let objects = hosts.folder.join(FOLDER).join(backend);
        emit(&objects, backend, &["--target", TRIPLE])?;
        for (linker, driver) in LINKERS {
            let what = |host: &str| format!("{backend}, linked by {linker}, {host}");
            for (runtime, host) in hosts.runtimes() {
                let library = objects.join(format!("{linker} {}.dll", host.name));
                hosts.link(&objects, backend, driver, Some(&runtime), &library)?;
                expect(&mut tests, &what(host.name), hosts.run(&host.program, &library), EXPECTED)?;
            }
            let program = hosts.system(backend, linker, driver)?;
            let run = hosts.wine.run(&program, &["--system", "shop_"]);
            expect(&mut tests, &what("as a system library"), run, EXPECTED)?;
        }
        let library = hosts.msvc(backend)?;
        expect(&mut tests, &format!("{backend}, for MSVC"), hosts.run(&hosts.c, &library), EXPECTED)?;
        let unwind = hosts.wine.run(&hosts.unwind(backend)?, &[]).env("WINEPATH", &hosts.dlls());
        expect(&mut tests, &format!("{backend}, unwound"), unwind, "windows/unwind.txt")?;
    }
    hosts.refused(&mut tests)?;
    Ok(tests)
}

/// The hosts, built.
struct Hosts {
    wine: Wine,
    folder: PathBuf,
    /// The object files of the C host.
    objects: Vec<String>,
    kernels: PathBuf,
    /// The C host, with our runtime as a DLL.
    c: PathBuf,
    /// The object file of the program that unwinds through wrappers.
    unwinder: PathBuf,
}

/// A program that loads libraries.
struct Host {
    name: &'static str,
    program: PathBuf,
}

impl Hosts {
    fn build() -> Result<Self> {
        let wine = Wine::prepare()?;
        let folder = folder("windows")?;
        wine.cargo(&["build", "--package", "tvm-ffi-runtime-c", "--package", "host-bundled"]).run()?;
        let objects = c_host(GCC, &folder)?;
        let kernels = folder.join("kernels.o");
        // through the import table, as MSVC's headers do it
        let imported = ["-DTVM_FFI_DLL=__declspec(dllimport)", "-DTVM_FFI_DLL_EXPORT=__declspec(dllexport)"];
        compile(GCC, &imported, &source("kernels.c"), &kernels)?;
        let c = folder.join("host.exe");
        link_program(GCC, &objects, &[&import_library()], &c)?;
        let unwinder = folder.join("unwind.o");
        compile(GXX, &["-O2"], &source("windows/unwind.cc"), &unwinder)?;
        Ok(Self { wine, folder, objects, kernels, c, unwinder })
    }

    /// The runtimes to link libraries against, each with a host that has it: our runtime's import library, its DLL, and
    /// a program.
    fn runtimes(&self) -> [(String, Host); 3] {
        let bundled = windows_folder().join("host-bundled.exe");
        let c = |name| Host { name, program: self.c.clone() };
        [
            (import_library(), c("C")),
            (text(&windows_folder().join("tvm_ffi_runtime.dll")), c("C with the DLL itself")),
            (text(&bundled), Host { name: "the bundled runtime", program: bundled }),
        ]
    }

    /// The directories where programs find our runtime.
    fn dlls(&self) -> String {
        windows_paths(&[&windows_folder()])
    }

    fn run(&self, program: &Path, library: &Path) -> Cmd {
        self.wine.run(program, &[&windows_path(library)]).env("WINEPATH", &self.dlls())
    }

    /// Links the objects of a library with the kernels, against our runtime or upstream's.
    fn link(&self, objects: &Path, backend: &str, driver: &str, runtime: Option<&str>, library: &Path) -> Result {
        let runtime = runtime.map_or_else(Vec::new, |runtime| vec!["--runtime", runtime]);
        let (packed, kernels, signatures) =
            (text(&objects.join("bin.o")), text(&self.kernels), source("signatures.txt"));
        let wrap = ["wrap", "--signatures", &signatures, "--backend", backend, "--target", TRIPLE];
        let files = ["--object", &packed, "--object", &kernels, "-o", &text(library)];
        let command = with_llvm::command_line(&[&wrap[..], &runtime, &files].concat())?;
        command.env(&format!("CC_{TRIPLE}"), driver).run().map(|_| ())
    }

    /// The C host that contains our runtime and the library, which registers itself.
    fn system(&self, backend: &str, linker: &str, driver: &str) -> Result<PathBuf> {
        let objects = self.folder.join("system").join(backend);
        let kernels = objects.join("kernels.o");
        fs::create_dir_all(&objects).map_err(|e| failure(format!("{}: {e}", objects.display())))?;
        // the prefix is part of the variable's name
        compile(GCC, &["-D__tvm_ffi__library_ctx=shop___tvm_ffi__library_ctx"], &source("kernels.c"), &kernels)?;
        let options = ["--target", TRIPLE, "--system-lib", "shop_"];
        let library = emit_linked(&objects, "library.a", backend, &options, &kernels)?;
        let runtime = text(&windows_folder().join("libtvm_ffi_runtime.a"));
        let whole = ["-Wl,--whole-archive".to_owned(), text(&library), "-Wl,--no-whole-archive".to_owned()];
        let words: Vec<String> = driver.split(' ').map(str::to_owned).collect();
        let (compiler, flags) = words.split_first().ok_or_else(|| failure("there is no driver".to_owned()))?;
        let inputs = [flags, &self.objects, &whole, &[runtime]].concat();
        let program = objects.join(format!("{linker}.exe"));
        // the libraries that Rust's standard library needs
        link_program(compiler, &inputs, &["-lntdll", "-luserenv", "-lws2_32", "-ldbghelp"], &program)?;
        Ok(program)
    }

    /// A library from objects for MSVC's tools. lld replaces `link.exe`.
    fn msvc(&self, backend: &str) -> Result<PathBuf> {
        let folder = self.folder.join("msvc").join(backend);
        emit(&folder, backend, &["--target", "x86_64-pc-windows-msvc"])?;
        let [wrappers, packed, float, library] =
            ["wrappers.o", "bin.o", "fltused.o", "library.dll"].map(|name| folder.join(name));
        compile(GCC, &[], &source("windows/fltused.c"), &float)?;
        let out = format!("/out:{}", text(&library));
        let inputs = [&wrappers, &packed, &float, &self.kernels].map(|path| text(path));
        // replace MSVC's C library and its helpers with mingw's, which names its stack probe differently
        let found = |name: &str| cmd(GCC, &[&format!("-print-file-name={name}")]).read();
        let (c, helpers) = (found("libmsvcrt.a")?, found("libgcc.a")?);
        let libraries = ["/alternatename:__chkstk=___chkstk_ms", c.trim_end(), helpers.trim_end(), &import_library()];
        let options = [&["/nologo", "/dll", "/noentry", "/nodefaultlib", &*out], &libraries[..]].concat();
        let inputs = inputs.each_ref().map(String::as_str);
        cmd("lld-link-22", &[&options[..], &inputs].concat()).run()?;
        Ok(library)
    }

    /// The program that unwinds through wrappers.
    fn unwind(&self, backend: &str) -> Result<PathBuf> {
        let folder = self.folder.join("unwind");
        fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
        let [wrappers, program] = ["o", "exe"].map(|extension| folder.join(format!("{backend}.{extension}")));
        let signatures = source("windows/unwind_signatures.txt");
        let wrap = ["wrap", "--signatures", &signatures, "--backend", backend];
        codegen(&[&wrap[..], &["--target", TRIPLE, "-o", &text(&wrappers)]].concat())?;
        link_program(GXX, &[text(&self.unwinder), text(&wrappers)], &[&import_library(), "-static"], &program)?;
        Ok(program)
    }

    /// Checks that the bundled runtime reports the reason for each library that it doesn't load.
    fn refused(&self, tests: &mut Tests) -> Result {
        let backend = BACKENDS[0];
        let objects = self.folder.join(FOLDER).join(backend);
        let upstream = objects.join("upstream.dll");
        self.link(&objects, backend, GCC, None, &upstream)?;
        let text_file = objects.join("no library.dll");
        fs::write(&text_file, "text").map_err(|e| failure(format!("{}: {e}", text_file.display())))?;
        let missing = objects.join("not there.dll");
        let other = |host: &str| objects.join(format!("mingw {host}.dll"));
        let host = windows_folder().join("refused.exe");
        let own = "The TVM FFI runtime of this process is in refused.exe";
        let cases: [(&Path, &[&str]); 5] = [
            (&other("C"), &["is that of another TVM FFI runtime, tvm_ffi_runtime.dll", own]),
            (&other("the bundled runtime"), &["is that of another TVM FFI runtime, host-bundled.exe", own]),
            (&upstream, &["it needs tvm_ffi.dll, which can't be loaded", own]),
            (&missing, &["there is no such file"]),
            (&text_file, &["os error"]),
        ];
        for (library, expected) in cases {
            let path = windows_path(library);
            let printed = self.run(&host, library).read()?;
            let mut expected = expected.iter().copied().chain([&*path]);
            let missing = expected.find(|words| !printed.contains(words));
            println!("{}", printed.trim_end());
            match missing {
                None => tests.passed += 1,
                Some(words) => {
                    tests.failed += 1;
                    let what = format!("the error of {path} doesn't say `{words}`: {printed}");
                    return Err(Failure { what, tests: *tests });
                }
            }
        }
        Ok(())
    }
}

/// The import library of our runtime.
fn import_library() -> String {
    text(&windows_folder().join("libtvm_ffi_runtime.dll.a"))
}
