//! Checks the page of `explain --emit html` in a browser, with `page.js` in this directory.

use std::fs;
use std::path::Path;

use crate::command::{Tests, cmd, root};
use crate::run::Failure;
use crate::with_llvm;

/// Records errors from the start of the page on.
const WATCH: &str = "<script>
const problems = [];
addEventListener(\"error\", (event) => problems.push(`error: ${event.message}`));
addEventListener(\"securitypolicyviolation\", (event) => problems.push(`policy: ${event.violatedDirective}`));
for (const level of [\"error\", \"warn\"]) console[level] = (...words) => problems.push(`console: ${words}`);
</script>";
/// Checks the loaded page, and writes the problems into it.
const CHECK: &str = include_str!("page.js");
/// The text of a page without problems.
const GOOD: &str = "<pre id=\"problems\">none</pre>";

const SIGNATURE: &str =
    r#"saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32), mode: str = "a<b & \"c\" </ol>")"#;

/// A browser's window.
struct Window {
    backend: &'static str,
    width: u32,
    scheme: &'static str,
}

const WINDOWS: &[Window] = &[
    Window { backend: "cranelift", width: 1600, scheme: "light" },
    Window { backend: "llvm", width: 1600, scheme: "dark" },
    Window { backend: "llvm", width: 600, scheme: "light" },
];

/// Opens the pages in headless Chromium.
pub fn check() -> Result<Tests, Failure> {
    let folder = root().join("target/page");
    let failure = |what: String| Failure { what, tests: Tests::default() };
    fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    for window in WINDOWS {
        let page = page(&folder, window.backend)?;
        let profile = folder.join("profile");
        // the profile of an earlier run may be of another version
        let _ = fs::remove_dir_all(&profile);
        let dark = if window.scheme == "dark" { 0 } else { 1 };
        let size = format!("--window-size={},900", window.width);
        let text = |name: &str, value: &Path| format!("--{name}={}", value.display());
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            // don't log the buses that a container lacks
            "--log-level=3",
            "--dump-dom",
            &size,
            &format!("--blink-settings=preferredColorScheme={dark}"),
            &text("user-data-dir", &profile),
            &format!("file://{}", page.display()),
        ];
        let dom = cmd("chromium", &args).read()?;
        if !dom.contains(GOOD) || !dom.contains(&format!("data-scheme=\"{}\"", window.scheme)) {
            let told = dom.split_once("<pre id=\"problems\">").and_then(|(_, rest)| rest.split_once("</pre>"));
            let told = told.map_or("the script of the check didn't run to its end", |(problems, _)| problems);
            let Window { backend, width, scheme } = window;
            return Err(failure(format!("the page of {backend}, {width} wide, {scheme}: {told}")));
        }
    }
    Ok(Tests { passed: WINDOWS.len() as u64, ..Tests::default() })
}

/// Writes a function's page with the scripts of the check.
fn page(folder: &Path, backend: &str) -> Result<std::path::PathBuf, Failure> {
    let failure = |what: String| Failure { what, tests: Tests::default() };
    let path = folder.join(format!("{backend}.html"));
    let words =
        ["explain", "--signature", SIGNATURE, "--kernel", "saxpy_kernel", "--emit", "html", "--backend", backend];
    with_llvm::command_line(&[&words[..], &["--output", &path.to_string_lossy()]].concat())?.run()?;
    let html = fs::read_to_string(&path).map_err(|e| failure(format!("{}: {e}", path.display())))?;
    let watched = html.replacen("<head>", &format!("<head>{WATCH}"), 1);
    let checked = watched.replacen("</body>", &format!("<script>{CHECK}</script></body>"), 1);
    let path = folder.join(format!("{backend}-checked.html"));
    fs::write(&path, checked).map_err(|e| failure(format!("{}: {e}", path.display())))?;
    Ok(path)
}
