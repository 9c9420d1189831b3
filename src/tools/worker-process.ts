// A process for dangerous work yields to streams, does not outlive the gateway, and may be ended when it hangs.
import { dlopen, FFIType, ptr } from "bun:ffi";
import { setPriority } from "node:os";

/** Streams come first where both want the same core. */
const niceness = 10;
const setParentDeathSignal = 1; // prctl(2), PR_SET_PDEATHSIG
const killSignal = 9;
const processorTime = 0; // setrlimit(2), RLIMIT_CPU
const unlimited = 2n ** 64n - 1n;

const system = process.platform === "linux" ? systemCalls() : null;

export function standBehindGateway(): void {
  setPriority(0, niceness);
  endWithGateway();
}

/** A gateway that is killed outright cannot end a check that never ends. Only Linux offers this. */
export function endWithGateway(): void {
  system?.prctl(setParentDeathSignal, killSignal);
}

/** The system ends this process once it uses another 2 to 3 seconds of the processor. On Linux. */
export function endWhenStuck(): void {
  const { user, system: inSystem } = process.cpuUsage();
  const seconds = Math.floor((user + inSystem) / 1e6) + 3;
  // Keeps the hard limit where possible: only then can the limit be set again.
  system?.setrlimit(processorTime, ptr(new BigUint64Array([BigInt(seconds), unlimited])));
}

function systemCalls() {
  for (const library of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      return dlopen(library, {
        prctl: { args: [FFIType.i32, FFIType.u64], returns: FFIType.i32 },
        setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
      }).symbols;
    } catch {
      // This is not the system's C library; the next name is tried.
    }
  }
  return null;
}
