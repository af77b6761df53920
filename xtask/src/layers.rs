//! Dependencies between modules. The import graph of a crate's files is acyclic. Each module imports only modules below
//! it in its crate's list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use petgraph::visit::EdgeRef;
use syn::visit::{self, Visit};

use crate::command::{Tests, root};
use crate::run::Failure;

/// A crate. The import graph of its files must be acyclic.
struct Layered {
    /// The directory of its sources.
    sources: &'static str,
    /// The list of its layers, if it has more than one.
    list: Option<&'static str>,
}

const CRATES: [Layered; 4] = [
    Layered { sources: "src", list: Some("src/layers.txt") },
    Layered { sources: "runtime/src", list: Some("runtime/src/layers.txt") },
    Layered { sources: "clib/src", list: None },
    Layered { sources: "cli/src", list: None },
];

/// A path in a source file that leads into this crate.
struct Import {
    /// Names, starting at the crate's root.
    path: Vec<String>,
    line: usize,
    /// The path begins with a name.
    is_relative: bool,
}

/// A source file.
struct Source {
    /// Relative to the repository.
    file: PathBuf,
    /// The module's path, starting at the crate's root.
    module: Vec<String>,
    imports: Vec<Import>,
    /// Modules that exist only in tests.
    tests: Vec<Vec<String>>,
    lines: usize,
}

/// A directory in the list. Maps each module to its layer, and to the only modules that it may import, if they are
/// stated.
type Folder = BTreeMap<String, (usize, Option<BTreeSet<String>>)>;

/// Checks every import of all crates.
pub fn check() -> Result<Tests, Failure> {
    let mut tests = Tests::default();
    let found: Result<Vec<_>, String> = CRATES.iter().map(Layered::problems).collect();
    let problems = found.map_err(|what| Failure { what, tests })?.concat();
    if problems.is_empty() {
        tests.passed += 1;
        return Ok(tests);
    }
    tests.failed += 1;
    Err(Failure { what: format!("imports go the wrong way:\n{}", problems.join("\n")), tests })
}

impl Layered {
    fn problems(&self) -> Result<Vec<String>, String> {
        let mut sources = Vec::new();
        self.read_folder(Path::new(self.sources), &mut sources)?;
        let tests: Vec<Vec<String>> = sources.iter().flat_map(|source| source.tests.clone()).collect();
        sources.retain(|source| !tests.iter().any(|test| source.module.starts_with(test)));
        let modules: BTreeSet<Vec<String>> = sources.iter().map(|source| source.module.clone()).collect();
        for source in &mut sources {
            // a path that begins with neither `crate` nor `super` leads to a child, or out of the crate
            source.imports.retain(|import| {
                let child = source.module.len() + 1;
                !import.is_relative || import.path.get(..child).is_some_and(|path| modules.contains(path))
            });
        }
        through_re_exports(&mut sources);
        let mut problems = Vec::new();
        if let Some(list) = self.list {
            let text = fs::read_to_string(root().join(list)).map_err(|e| format!("{list}: {e}"))?;
            for (folder, layers) in &parse(list, &text)? {
                self.check_folder(folder, list, layers, &sources, &mut problems);
            }
        }
        problems.extend(self.circles(&sources));
        Ok(problems)
    }

    /// Reads the sources in a directory and below.
    fn read_folder(&self, folder: &Path, sources: &mut Vec<Source>) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        let entries = fs::read_dir(root().join(folder)).map_err(failed)?;
        let mut names =
            entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        names.sort();
        for name in names {
            let file = folder.join(&name);
            if root().join(&file).is_dir() {
                self.read_folder(&file, sources)?;
            } else if file.extension().is_some_and(|extension| extension == "rs") {
                sources.push(self.read(file)?);
            }
        }
        Ok(())
    }

    /// Reads a source file.
    fn read(&self, file: PathBuf) -> Result<Source, String> {
        let text = fs::read_to_string(root().join(&file)).map_err(|e| format!("{}: {e}", file.display()))?;
        let parsed = syn::parse_file(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        let stem = file.with_extension("");
        let mut module = self.path_of(&stem);
        module.pop_if(|last| last == "mod" || last == "lib" || last == "main");
        let mut visitor = Imports { module: module.clone(), found: Vec::new(), tests: Vec::new() };
        visitor.visit_file(&parsed);
        Ok(Source { file, module, imports: visitor.found, tests: visitor.tests, lines: text.lines().count() })
    }

    /// The names from the crate's root to a file or directory.
    fn path_of(&self, file: &Path) -> Vec<String> {
        let inside = file.strip_prefix(self.sources).unwrap_or(file);
        inside.iter().map(|part| part.to_string_lossy().into_owned()).collect()
    }

    /// The module of a directory into which a path from the crate's root leads.
    fn part<'p>(&self, folder: &Path, path: &'p [String]) -> Option<&'p str> {
        let above = self.path_of(folder);
        let inside = path.len() > above.len() && path.starts_with(&above);
        inside.then(|| path[above.len()].as_str())
    }

    /// Checks the imports between the modules of one directory, and prints its layers.
    fn check_folder(&self, folder: &Path, list: &str, layers: &Folder, sources: &[Source], problems: &mut Vec<String>) {
        let mut lines: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for source in sources {
            // the directory's own file composes its modules
            let Some(from) = self.part(folder, &source.module) else { continue };
            let Some((layer, only)) = layers.get(from) else {
                if folder != Path::new(self.sources) || from != "lib" {
                    problems.push(format!("{}: module {from} is missing in {}", source.file.display(), list));
                }
                continue;
            };
            *lines.entry((*layer, from)).or_default() += source.lines;
            for import in &source.imports {
                let Some(to) = self.part(folder, &import.path).filter(|to| *to != from) else { continue };
                let Some((other, _)) = layers.get(to) else { continue };
                let allowed = only.as_ref().map_or(other < layer, |only| only.contains(to));
                if !allowed {
                    let (file, line) = (source.file.display(), import.line);
                    problems.push(format!(
                        "{file}:{line}: {from} must not import {to} (crate::{})",
                        import.path.join("::")
                    ));
                }
            }
        }
        println!("{}", folder.display());
        for ((_, module), lines) in lines {
            println!("  {module:<12} {lines:>6} lines");
        }
    }

    /// The cycles in the import graph, each as text.
    fn circles(&self, sources: &[Source]) -> Vec<String> {
        let by_module: BTreeMap<&[String], usize> =
            sources.iter().enumerate().map(|(i, source)| (&source.module[..], i)).collect();
        // the longest prefix of a path that is a file's module
        let file_of = |path: &[String]| (1..=path.len()).rev().find_map(|n| by_module.get(&path[..n]).copied());
        let mut graph = DiGraph::<usize, usize>::new();
        let nodes: Vec<_> = (0..sources.len()).map(|i| graph.add_node(i)).collect();
        for (from, source) in sources.iter().enumerate() {
            for import in &source.imports {
                if let Some(to) = file_of(&import.path).filter(|to| *to != from) {
                    graph.update_edge(nodes[from], nodes[to], import.line);
                }
            }
        }
        let circles = tarjan_scc(&graph).into_iter().filter(|files| files.len() > 1);
        circles
            .map(|files| {
                let edges = graph
                    .edge_references()
                    .filter(|edge| files.contains(&edge.source()) && files.contains(&edge.target()));
                let lines: Vec<_> = edges
                    .map(|edge| {
                        let [from, to] = [edge.source(), edge.target()].map(|node| sources[graph[node]].file.display());
                        format!("  {from}:{} imports {to}", edge.weight())
                    })
                    .collect();
                format!("{} files import each other in a circle:\n{}", files.len(), lines.join("\n"))
            })
            .collect()
    }
}

/// Reads a list of layers.
fn parse(list: &str, text: &str) -> Result<BTreeMap<PathBuf, Folder>, String> {
    let mut folders: BTreeMap<PathBuf, Folder> = BTreeMap::new();
    let mut current: Option<PathBuf> = None;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
    {
        let Some(layer) = line.strip_prefix("  ") else {
            folders.insert(line.into(), Folder::new());
            current = Some(line.into());
            continue;
        };
        let folder = current.as_ref().and_then(|current| folders.get_mut(current));
        let folder = folder.ok_or_else(|| format!("{}:{}: a layer without a folder above it", list, number + 1))?;
        let (modules, only) = match layer.split_once(':') {
            Some((modules, only)) => (modules, Some(only.split_whitespace().map(str::to_owned).collect())),
            None => (layer, None),
        };
        for module in modules.split_whitespace() {
            if folder.insert(module.to_owned(), (number, only.clone())).is_some() {
                return Err(format!("{}:{}: {module} is listed twice", list, number + 1));
            }
        }
    }
    Ok(folders)
}

/// Makes each path to a re-exported name lead to the module that defines the name.
fn through_re_exports(sources: &mut [Source]) {
    let re_exports: BTreeMap<Vec<String>, Vec<String>> = sources
        .iter()
        .flat_map(|source| {
            let inner = source.imports.iter().filter(|import| {
                import.path.len() > source.module.len() + 1 && import.path.starts_with(&source.module)
            });
            inner.filter_map(|import| {
                Some(([&source.module[..], &[import.path.last()?.clone()]].concat(), import.path.clone()))
            })
        })
        .collect();
    for source in sources {
        for import in &mut source.imports {
            // a name may be re-exported by several modules on its way up
            while let Some((end, path)) = (1..=import.path.len())
                .find_map(|end| Some((end, re_exports.get(&import.path[..end])?)))
                .filter(|(end, path)| {
                    !path.starts_with(&import.path[..*end]) && !source.module.starts_with(&path[..path.len() - 1])
                })
            {
                import.path.splice(..end, path.iter().cloned());
            }
        }
    }
}

/// Collects paths that lead into the crate, except those in tests.
struct Imports {
    module: Vec<String>,
    found: Vec<Import>,
    tests: Vec<Vec<String>>,
}

impl Imports {
    /// Records a path of the current module.
    fn note(&mut self, names: &[String], line: usize) {
        let mut path = match names.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self") => self.module.clone(),
            Some("super") => self.module[..self.module.len().saturating_sub(1)].to_vec(),
            _ => self.module.clone(),
        };
        let is_relative = !matches!(names.first().map(String::as_str), Some("crate" | "self" | "super"));
        for name in &names[usize::from(!is_relative)..] {
            match name.as_str() {
                "super" => drop(path.pop()),
                name => path.push(name.to_owned()),
            }
        }
        self.found.push(Import { path, line, is_relative });
    }

    fn use_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.use_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) if name.ident == "self" => self.note(before, name.ident.span().start().line),
            syn::UseTree::Name(name) => self.note(&with(&name.ident), name.ident.span().start().line),
            syn::UseTree::Rename(name) if name.ident == "self" => self.note(before, name.ident.span().start().line),
            syn::UseTree::Rename(name) => self.note(&with(&name.ident), name.ident.span().start().line),
            syn::UseTree::Glob(glob) => self.note(before, glob.star_token.spans[0].start().line),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.use_tree(before, tree)),
        }
    }
}

/// True if an item exists only in tests.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        matches!(&attribute.meta, syn::Meta::List(list)
            if list.path.is_ident("cfg") && list.tokens.to_string().contains("test"))
    })
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        if is_test(&item.attrs) {
            self.tests.push(self.module.clone());
            self.module.pop();
            return;
        }
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.use_tree(&[], &item.tree);
        }
    }

    /// `pub(in crate::lower)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(first) = path.segments.first().filter(|_| names.len() > 1) {
            self.note(&names, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }
}
