// Preloaded into a server: once it listens, it writes down the modules that it has loaded and how many schemas it has
// compiled, and ends.
import { TypeCompiler } from "@sinclair/typebox/compiler";

let compiled = 0;
const { Compile } = TypeCompiler;
Object.assign(TypeCompiler, {
  Compile(...given: Parameters<typeof Compile>) {
    compiled += 1;
    return Compile(...given);
  },
});
const { log } = console;
console.log = (line: string) => {
  if (!line.includes(" listening on ")) return;
  log(JSON.stringify({ modules: Object.keys(require.cache), compiled }));
  process.exit(0);
};
