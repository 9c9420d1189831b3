// How a process that the gateway starts for dangerous work behaves: it leaves the processor to streams, and does not
// outlive the gateway.
import { dlopen, FFIType } from "bun:ffi";
import { setPriority } from "node:os";

/** Streams have the processor first where both want the same core. */
const niceness = 10;
const setParentDeathSignal = 1; // prctl(2), PR_SET_PDEATHSIG
const killSignal = 9;

export function standBehindGateway(): void {
  setPriority(0, niceness);
  dieWithParent();
}

/** A gateway that is killed outright cannot end a check that never ends. Linux alone can be asked to. */
function dieWithParent(): void {
  if (process.platform !== "linux") return;
  for (const library of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      const { symbols } = dlopen(library, { prctl: { args: [FFIType.i32, FFIType.u64], returns: FFIType.i32 } });
      symbols.prctl(setParentDeathSignal, killSignal);
      return;
    } catch {
      // not this system's C library; the next name is tried
    }
  }
}
