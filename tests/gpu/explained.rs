//! Reads the explained sequence of a launch, and tells the calls of the driver that a launch makes by it.
//!
//! It refuses lines that it doesn't understand, so that an explanation names no call that isn't compared.

use std::collections::{BTreeMap, HashSet};

use tvm_ffi_codegen::spec::LaunchedSignature;

use super::standin::NAMES;

/// The conditions that the calls of a launch depend on, besides its sequence.
#[derive(Clone, Copy)]
pub struct Situation<'v> {
    /// The device of the tensors.
    pub device: i32,
    /// Its compute capability, times 10.
    pub capability: u32,
    /// The device that is current on the thread; -1 for none.
    pub current: i32,
    /// Whether the launch is on the stream NULL.
    pub is_on_null: bool,
    /// Whether the driver tells a kernel's parameters.
    pub tells_params: bool,
    /// The kernel's own shared memory.
    pub own_shared: i64,
    /// The values of the function's symbols and integers.
    pub values: &'v BTreeMap<&'static str, i64>,
}

/// The most shared memory of a block on the stand-in's device of compute capability 9.0.
const MOST_SHARED: i64 = 227 << 10;

/// A call of the driver.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    name: String,
    arguments: Vec<String>,
    fails: bool,
}

impl Call {
    fn new(name: &str, arguments: impl IntoIterator<Item = String>) -> Self {
        Call { name: name.to_owned(), arguments: arguments.into_iter().collect(), fails: false }
    }

    /// A line of the stand-in's log: `name(argument, ...)`, `name`, or `name -> status (reason)`.
    fn logged(line: &str) -> Self {
        if let Some((name, _)) = line.split_once(" -> ") {
            return Call { fails: true, ..Call::new(name, []) };
        }
        let (name, arguments) = line.split_once('(').unwrap_or((line, ""));
        let arguments = arguments.trim_end_matches(')').split(", ").filter(|argument| !argument.is_empty());
        Call::new(name, arguments.map(str::to_owned))
    }

    /// Whether a logged call is this one: it has the same arguments, as far as this one tells them.
    fn is(&self, logged: &Call) -> bool {
        let mut rest = logged.arguments.iter();
        let has_all = self.arguments.iter().all(|argument| rest.any(|other| other == argument));
        let is_whole = !self.name.contains("Launch") || self.arguments.len() == logged.arguments.len();
        self.name == logged.name && self.fails == logged.fails && has_all && is_whole
    }
}

/// The driver's functions that a text names, each with the text behind it.
pub fn functions(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        let word = &rest[start..];
        let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        let is_function =
            |prefix| word.strip_prefix(prefix).is_some_and(|name: &str| name.starts_with(char::is_uppercase));
        if is_function("cu") || is_function("hip") {
            found.push((word, behind));
        }
        rest = behind;
    }
    found
}

/// An explained sequence.
pub struct Sequence<'t> {
    pub text: &'t str,
    pub situation: Situation<'t>,
}

/// The extents of a launch, and what else its call says.
#[derive(Default)]
struct Configuration {
    extents: BTreeMap<String, Vec<i64>>,
    shared: i64,
}

impl Configuration {
    fn extents(&self, part: &str) -> Option<String> {
        let extents = self.extents.get(part)?;
        let extent = |number: usize| extents.get(number).copied().unwrap_or(1);
        Some(format!("{} {} {}", extent(0), extent(1), extent(2)))
    }
}

/// A launch that is noted for a graph.
pub struct Noted {
    /// Its kernel, its extents and its shared memory, as the stand-in logs them for a node.
    node: Vec<String>,
    /// Its attributes, as the stand-in logs them.
    attributes: Vec<String>,
    /// The stand-in's log of it as a single launch.
    alone: Vec<String>,
}

impl Sequence<'_> {
    /// The calls of a launch, or of a graph. `done` are the parts of sequences that were done before, and are not done
    /// again. `noted` are the launches for the next graph.
    pub fn calls(&self, done: &mut HashSet<String>, noted: &mut Vec<Noted>) -> Vec<Call> {
        let (head, rest) = self.text.split_once("\n\n").unwrap();
        if let Some((_, entries)) = head.split_once(" @ graph of ") {
            let noted = std::mem::take(noted);
            let happened: Vec<&str> = entries.split(", ").take(noted.len()).collect();
            return if noted.is_empty() { Vec::new() } else { self.graph(rest, &noted, &happened, done) };
        }
        head.parse::<LaunchedSignature>().unwrap();
        let mut calls = Vec::new();
        let parts: Vec<(&str, Vec<&str>)> = rest
            .split("\n\n")
            .map(|part| {
                let (heading, lines) = part.split_once(":\n").unwrap();
                (heading, lines.lines().collect())
            })
            .collect();
        let (last, lines) = parts.last().unwrap();
        assert_eq!(*last, "each call");
        let Some(each) = self.each_call(lines, noted) else { return calls };
        for (heading, lines) in &parts[..parts.len() - 1] {
            let what = heading.strip_prefix("once for each ").unwrap().split(',').next().unwrap();
            let place = match what {
                "library" => String::new(),
                "device" | "device and kernel" | "image and device" => self.situation.device.to_string(),
                _ => panic!("{heading}"),
            };
            if done.insert(format!("{heading}{place}{lines:?}")) {
                calls.extend(self.once(what, lines));
            }
        }
        calls.extend(each);
        calls
    }

    /// The calls of a part that is done once.
    fn once(&self, what: &str, lines: &[&str]) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut is_loaded = false;
        for (number, line) in lines.iter().enumerate() {
            let line = line.strip_prefix("  ").unwrap();
            if let Some(opened) = line.strip_prefix("dlopen ") {
                let (library, finds) = opened.split_once(", ").unwrap();
                assert!(cfg!(windows) || NAMES.contains(&library));
                if finds != "dlsym for the functions below" {
                    calls.push(Call::new(finds.strip_suffix(" for the functions below").unwrap(), []));
                }
            } else if let Some(image) = line.strip_prefix("for ") {
                let (rule, loads) = image.split_once(": ").unwrap();
                if !is_loaded && self.is_for_device(rule) {
                    is_loaded = true;
                    let (load, bytes) = loads.split_once(" of ").unwrap();
                    assert!(bytes.strip_suffix(" bytes").unwrap().parse::<usize>().is_ok_and(|bytes| bytes > 0));
                    let behind = lines[number..].iter().find(|line| line.starts_with("    "));
                    calls.extend(self.around(behind.copied(), vec![Call::new(load, [])]));
                }
            } else if line.starts_with("the global function `") {
                calls.extend(self.around(Some(lines[number + 1]), Vec::new()));
            } else if line.starts_with("before the image is unloaded: ") {
                // launches don't unload
            } else if let Some((function, names)) =
                line.split_once(" \"").filter(|(name, _)| name.ends_with("GetGlobal"))
            {
                let names = names.strip_suffix('"').unwrap().split("\", \"");
                let found = names.map(|name| Call::new(function, [name.to_owned()])).collect();
                calls.extend(self.around(Some(lines[number + 1]), found));
            } else if line.contains(", where the driver has it: parameters of ") {
                calls.extend(self.around(Some(lines[number + 1]), self.first_use(what, line)));
            } else if !line.starts_with("  ") {
                calls.extend(self.first_use(what, line));
            }
        }
        calls
    }

    /// Whether an image is for the device.
    fn is_for_device(&self, rule: &str) -> bool {
        let number = || rule.split(' ').next().unwrap().replace('.', "").parse::<u32>().unwrap();
        match rule {
            "those in a bundle" => true,
            _ if rule.ends_with(" alone") => self.situation.capability == number(),
            _ if rule.ends_with(" and later") => self.situation.capability >= number(),
            _ => panic!("{rule}"),
        }
    }

    /// The calls of a line of a part that is done once.
    fn first_use(&self, what: &str, line: &str) -> Vec<Call> {
        let [(name, behind)] = functions(line)[..] else { panic!("{line}") };
        assert!(line.starts_with(name), "{line}");
        let own = self.situation.own_shared;
        if let Some(sizes) = behind.strip_prefix(", where the driver has it: parameters of [") {
            let sizes = sizes.strip_suffix("] bytes, and no more").unwrap().split(", ").enumerate();
            let asked = sizes.map(|(number, size)| Call::new(name, [number.to_string(), size.to_owned()]));
            let last = Call { fails: true, ..Call::new(name, []) };
            return if self.situation.tells_params { asked.chain([last]).collect() } else { Vec::new() };
        }
        if let Some(memory) = behind.strip_prefix(" 8: ") {
            let (bytes, text) = match memory.split_once(" bytes of dynamic shared memory") {
                Some((bytes, condition)) => (bytes.parse().unwrap(), condition),
                None => {
                    let beside = memory.strip_prefix("all dynamic shared memory that a block may have").unwrap();
                    assert!(own == 0 || beside.starts_with(" beside the kernel's own"), "{line}");
                    (MOST_SHARED - own, "")
                }
            };
            let needs = match text.strip_prefix(", where the kernel's own and these are more than ") {
                Some(without) => own + bytes > without.parse::<i64>().unwrap(),
                None => text.is_empty(),
            };
            return needs.then(|| Call::new(name, ["8".to_owned(), bytes.to_string()])).into_iter().collect();
        }
        if behind == " 14: clusters of more than 8 blocks" {
            return vec![Call::new(name, ["14", "1"].map(str::to_owned))];
        }
        if name == "cuDriverGetVersion" {
            assert!(behind.ends_with(" or later"), "{line}");
            return vec![Call::new(name, [])];
        }
        if let Some(text) = behind.strip_prefix(" \"") {
            return vec![Call::new(name, [text.strip_suffix('"').unwrap().to_owned()])];
        }
        match behind.split_once(": ") {
            Some((numbers, _)) => {
                let numbers = numbers.replace(" and ", ", ");
                numbers.split(", ").map(|number| Call::new(name, [number.trim().to_owned()])).collect()
            }
            None => {
                assert_eq!(behind, "");
                vec![Call::new(name, (what == "device").then(|| self.situation.device.to_string()))]
            }
        }
    }

    /// Calls with those that make the device current, where they are needed.
    fn around(&self, line: Option<&str>, calls: Vec<Call>) -> Vec<Call> {
        let Some(line) = line else { return calls };
        let [(current, _), (enter, _), (leave, _)] = functions(line)[..] else { panic!("{line}") };
        let Situation { device, current: before, is_on_null, .. } = self.situation;
        if line.trim().starts_with("on a stream that is NULL or belongs to the thread: ") && !is_on_null {
            return calls;
        }
        let current = Call::new(current, []);
        if line.contains(" where another ") && before == device {
            return [vec![current], calls].concat();
        }
        // a function that enters and leaves gets what to restore
        let restored = (enter == leave).then(|| before.to_string());
        let enter = Call::new(enter, [device.to_string()]);
        [vec![current, enter], calls, vec![Call::new(leave, restored)]].concat()
    }

    /// The calls of each launch; `None` where the grid has an extent of 0.
    fn each_call(&self, lines: &[&str], noted: &mut Vec<Noted>) -> Option<Vec<Call>> {
        let mut calls = Vec::new();
        let mut config = Configuration::default();
        let mut launched = false;
        let mut lines = lines.iter().peekable();
        while let Some(line) = lines.next() {
            let text = line.trim_start();
            let product = |part: &str| config.extents[part].iter().product::<i64>();
            if line.starts_with("    ") {
                match text {
                    "where one is 0, nothing more" if product("grid") == 0 => return None,
                    "where one is 0, nothing more" => {}
                    "each divides that of the grid" => {
                        let pairs = config.extents["grid"].iter().zip(&config.extents["cluster"]);
                        pairs.for_each(|(grid, cluster)| assert_eq!(grid % cluster, 0));
                    }
                    _ if let Some(max) = text.strip_prefix("together at most ") => {
                        let max = max.strip_suffix(" threads").unwrap().parse().unwrap();
                        assert!(product("block") <= max, "{line}");
                    }
                    _ => panic!("{line}"),
                }
            } else if text == "the kernel's parameters:" {
                while let Some(param) = lines.next_if(|line| line.starts_with("    ")) {
                    let behind = lines.next_if(|line| line.starts_with("      "));
                    calls.extend(self.param(param.trim(), behind.copied()));
                }
            } else if text == "the global variables, on the stream:" {
                let mut written = Vec::new();
                while let Some(line) = lines.next_if(|line| !line.starts_with("      ")) {
                    for (name, behind) in functions(line.rsplit_once(": ").unwrap().1) {
                        let bytes = behind.strip_prefix(" for ").unwrap().split(' ').next().unwrap();
                        let each = if name.contains("D32") { 4 } else { 1 };
                        let count = bytes.parse::<usize>().unwrap() / each;
                        written.extend(std::iter::repeat_n(Call::new(name, []), count));
                    }
                }
                calls.extend(self.around(lines.next().copied(), written));
            } else if let Some(shared) = text.strip_prefix("shared_memory = ") {
                config.shared = self.value(shared.strip_suffix(" bytes of dynamic shared memory").unwrap());
            } else if let Some(attributes) = text.strip_prefix("noted for the graph below") {
                let arguments = self.launch("cu", attributes, &config).arguments;
                let alone = arguments.clone();
                let (attributes, mut node): (Vec<_>, Vec<_>) =
                    arguments.into_iter().partition(|argument| argument.starts_with("attribute "));
                // a node has its device by its context
                node.retain(|argument| !argument.starts_with("device "));
                noted.push(Noted { node, attributes, alone });
                launched = true;
            } else if text.starts_with("the stream: ") {
                // the stand-in's devices have no streams
            } else if let Some((part, extent)) = text.split_once(" = ") {
                let (part, number) = part.strip_suffix(']').unwrap().split_once('[').unwrap();
                let extents = config.extents.entry(part.to_owned()).or_default();
                assert_eq!(number.parse(), Ok(extents.len()));
                extents.push(self.limited(extent));
            } else {
                let [(name, attributes)] = functions(text)[..] else { panic!("{line}") };
                let launch = self.launch(name, attributes, &config);
                calls.extend(self.around(lines.next().copied(), vec![launch]));
                launched = true;
            }
        }
        assert!(launched);
        Some(calls)
    }

    /// The calls of a graph whose launches have happened, all of them in each call.
    fn graph(&self, text: &str, noted: &[Noted], entries: &[&str], done: &mut HashSet<String>) -> Vec<Call> {
        if let Some(singly) = text.strip_prefix("each call, for each launch that has happened:\n") {
            let (launch, around) = singly.split_once('\n').unwrap();
            let [(name, "")] = functions(launch)[..] else { panic!("{text}") };
            let call = |launch: &Noted| {
                let alone = launch.alone.iter().filter(|argument| !argument.starts_with("attribute "));
                self.around(Some(around), vec![Call::new(name, alone.cloned())])
            };
            return noted.iter().flat_map(call).collect();
        }
        let (each, others) = text.split_once("\n\n").unwrap();
        assert!(others.starts_with("the launches go out singly, each by cuLaunchKernelEx, too:\n"), "{text}");
        // those that aren't called when all launches happen
        let others = ["cuGraphAddDependencies", "cuGraphExecDestroy", "cuGraphNodeSetEnabled"];
        let behind = ["cuGraphAddKernelNode", "cuGraphKernelNodeSetAttribute", "cuGraphExecKernelNodeSetParams"];
        let named: Vec<&str> = functions(each).into_iter().map(|(name, _)| name).collect();
        for (other, before) in others.iter().zip(behind) {
            let at = named.iter().position(|name| name == other).unwrap_or_default();
            assert_eq!(named[at.saturating_sub(1)], before, "{text}");
        }
        let mut lines = each.lines();
        assert_eq!(lines.next(), Some("each call, in the device's context, where a launch has happened:"));
        let [(current, _), (enter, _), (leave, _)] = functions(lines.next().unwrap())[..] else { panic!("{text}") };
        let device = self.situation.device;
        let is_first = done.insert(format!("graph on {device}"));
        let elsewhere = self.situation.current != device;
        let mut calls = vec![Call::new(current, [])];
        calls.extend(elsewhere.then(|| Call::new(enter, [device.to_string()])));
        let (mut is_once, mut of_each) = (false, Vec::new());
        // what is said for each launch, in order: the calls of one launch follow each other
        let end_of_each = |calls: &mut Vec<Call>, of_each: &mut Vec<(&str, &str)>| {
            for launch in noted {
                for (name, when) in of_each.iter() {
                    match *when {
                        "behind the launch before it" | "if it happens" => {
                            calls.push(Call::new(name, launch.node.clone()))
                        }
                        "for each attribute" => {
                            calls.extend(
                                launch.attributes.iter().map(|attribute| Call::new(name, attribute_of_node(attribute))),
                            );
                        }
                        _ => panic!("{when}"),
                    }
                }
            }
            of_each.clear();
        };
        for line in lines {
            let text = line.trim_start();
            if !line.starts_with("    ") {
                end_of_each(&mut calls, &mut of_each);
                is_once = text == "once for each device, and for each launch that happens there for the first time:";
                match functions(text)[..] {
                    [] => assert!(is_once || text == "for each launch that has happened on the device:", "{line}"),
                    [(name, "")] => calls.push(Call::new(name, entries.iter().map(|entry| (*entry).to_owned()))),
                    [(name, ": the launches go out singly where the stream is captured")] => {
                        calls.push(Call::new(name, []))
                    }
                    _ => panic!("{line}"),
                }
                continue;
            }
            let [(name, when)] = functions(text)[..] else { panic!("{line}") };
            match when.strip_prefix(": ").unwrap_or_default() {
                _ if is_once && !is_first => {}
                "once for each device" => calls.push(Call::new(name, [])),
                "" => {
                    end_of_each(&mut calls, &mut of_each);
                    calls.push(Call::new(name, []));
                }
                // all launches happen in the first call, and in each
                "the one before"
                | "before the launch behind it, if that is there"
                | "if it happens and didn't the last time, or the other way round" => {}
                when => of_each.push((name, when)),
            }
        }
        calls.extend(elsewhere.then(|| Call::new(leave, [])));
        calls
    }

    /// The calls that a parameter takes.
    fn param(&self, param: &str, behind: Option<&str>) -> Vec<Call> {
        let Some((map, name)) = param.split_once(": ").filter(|(map, _)| map.starts_with("tensor_map(")) else {
            assert!(functions(param).is_empty() && behind.is_none(), "{param}");
            return Vec::new();
        };
        let [(name, "")] = functions(name)[..] else { panic!("{param}") };
        let (_, dims) = map.split_once("box=(").unwrap();
        let dims: Vec<&str> = dims.split_once(')').unwrap().0.split(", ").collect();
        // the driver's first dimension is the last one
        let boxes: Vec<String> = dims.iter().rev().map(|dim| self.value(dim).to_string()).collect();
        let arguments = [format!("rank {}", dims.len()), format!("box {}", boxes.join(" "))];
        self.around(Some(behind.unwrap()), vec![Call::new(name, arguments)])
    }

    /// The launch, with all of its arguments that the stand-in logs.
    fn launch(&self, name: &str, attributes: &str, config: &Configuration) -> Call {
        let mut arguments = vec![
            format!("grid {}", config.extents("grid").unwrap()),
            format!("block {}", config.extents("block").unwrap()),
            format!("shared {}", config.shared),
            format!("device {}", self.situation.device),
        ];
        // HIP's launches have no attributes, and a function for those that are cooperative
        if name.starts_with("cu") {
            let clusters = [("cluster", 4), ("preferred_cluster", 11)];
            let clusters = clusters.iter().filter_map(|(part, id)| Some((id, config.extents(part)?)));
            arguments.extend(clusters.map(|(id, extents)| format!("attribute {id} = {extents}")));
        }
        for attribute in attributes.split(", ").filter(|attribute| !attribute.is_empty()) {
            arguments.push(match attribute {
                "cooperative" if name.starts_with("hip") => continue,
                "cooperative" => "attribute 2".to_owned(),
                "programmatic_dependent_launch" => "attribute 6".to_owned(),
                _ => self.attribute(attribute),
            });
        }
        Call::new(name, arguments)
    }

    /// An attribute with a value, as the stand-in logs it.
    fn attribute(&self, attribute: &str) -> String {
        let (name, value) = attribute.split_once('=').unwrap();
        let (id, number) = match (name, value) {
            ("priority", _) => (8, value.parse().unwrap()),
            ("cluster_scheduling", "spread") => (5, 1),
            ("cluster_scheduling", "load_balancing") => (5, 2),
            ("memory_sync_domain", "default") => (10, 0),
            ("memory_sync_domain", "remote") => (10, 1),
            ("shared_memory_carveout", _) => (14, value.parse().unwrap()),
            ("completion_event", _) => (12, self.value(value)),
            _ => panic!("{attribute}"),
        };
        // the driver skips an attribute without an event
        if (id, number) == (12, 0) { "attribute 0".to_owned() } else { format!("attribute {id} = {number}") }
    }

    /// The value of an expression that may have limits behind it.
    fn limited(&self, text: &str) -> i64 {
        let limits = text.rsplit_once(", ").and_then(|(expression, limits)| {
            let (min, max) = limits.split_once(" to ")?;
            Some((expression, min.parse().unwrap()..=max.parse().unwrap()))
        });
        let Some((expression, limits)) = limits else { return self.value(text) };
        let value = self.value(expression);
        assert!(limits.contains(&value), "{text}");
        value
    }

    fn value(&self, expression: &str) -> i64 {
        let LaunchedSignature { launch, .. } = format!("f() @ launch f grid={expression}").parse().unwrap();
        launch.grid_extents()[0].eval(&|name| self.situation.values.get(name).copied()).unwrap()
    }
}

/// How the stand-in logs an attribute of a node, of one that it logs for a launch without a value.
fn attribute_of_node(attribute: &str) -> [String; 1] {
    [if attribute.contains('=') { attribute.to_owned() } else { format!("{attribute} = 1") }]
}

/// Compares a log with the calls that are expected. `text` are the sequences.
pub fn compare(text: &str, expected: &[Call], log: &str) {
    let said = || format!("{text}\nexpected: {expected:#?}\nmade:\n{log}");
    let mut made = log.lines().map(Call::logged).peekable();
    for call in expected {
        if call.name != "cuGetProcAddress_v2" {
            let found = made.next().unwrap_or_else(|| panic!("no {call:?}: {}", said()));
            assert!(call.is(&found), "{call:?}, and {found:?} is made: {}", said());
            continue;
        }
        let mut found = HashSet::new();
        while let Some(lookup) = made.next_if(|made| made.name == call.name) {
            found.extend(lookup.arguments.into_iter().next());
        }
        for line in text.lines().filter(|line| !line.contains(", where the driver has it")) {
            let named = functions(line).into_iter().map(|(name, _)| name);
            let missing: Vec<_> = named.filter(|name| *name != call.name && !found.contains(*name)).collect();
            assert!(missing.is_empty(), "{missing:?} of {line}: {}", said());
        }
    }
    assert_eq!(made.next(), None, "{}", said());
}
