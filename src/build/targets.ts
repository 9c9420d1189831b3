// The machines that the program is built for, by Bun's names. musl is Alpine's C library.
export const targets = [
  "bun-linux-x64",
  "bun-linux-arm64",
  "bun-linux-x64-musl",
  "bun-linux-arm64-musl",
  "bun-darwin-x64",
  "bun-darwin-arm64",
  "bun-windows-x64",
] as const satisfies readonly Bun.Build.CompileTarget[];
export type Target = (typeof targets)[number];
