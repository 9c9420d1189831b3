#!/usr/bin/env node
// The command of the npm package, `npx tollgate serve`: the launcher with the program in front of the words.
import process from "node:process";
import { fileURLToPath } from "node:url";

process.argv.splice(2, 0, fileURLToPath(new URL("main.ts", import.meta.url)));
await import("./launch.mjs");
