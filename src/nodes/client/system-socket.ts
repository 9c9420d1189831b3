// What the system knows about a socket: whether unread bytes wait, and when the other side last answered.
import { dlopen, FFIType } from "bun:ffi";

const messagePeek = 0x02;
const messageDontWait = process.platform === "darwin" ? 0x80 : 0x40;
/** glibc, musl (Alpine), macOS. */
const libraries = [
  "libc.so.6",
  `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`,
  "libSystem.B.dylib",
];
const option = { args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr], returns: FFIType.i32 } as const;

const system = loadSystem();
const oneByte = Buffer.alloc(1);

/** False where the system's recv cannot be called: then no connection may carry a second request. */
export const canPeek = system !== null;

/** Whether bytes or an end wait on the socket. Only MSG_PEEK shows it: the event loop delivers them a turn later. */
export function hasWaiting(fileDescriptor: number): boolean {
  // -1: nothing waits (EAGAIN), or the socket is broken, which its own event reports
  return system !== null && Number(system.recv(fileDescriptor, oneByte, 1, messagePeek | messageDontWait)) >= 0;
}

/** Linux constants; on other systems no connection is probed. */
const isLinux = process.platform === "linux";
const socketLevel = 1;
const keepAlive = 9;
const tcpLevel = 6;
const tcpKeepIdle = 4;
const tcpKeepInterval = 5;
const tcpInfo = 11;
/** In `struct tcp_info`: unanswered retransmits and probes since the other side last answered, one byte each. */
const retransmitsAt = 2;
const probesAt = 3;
/** `tcpi_last_ack_recv`, the last of what is asked for. */
const lastHeardAt = 56;

const int = new Int32Array(1);
const info = Buffer.alloc(lastHeardAt + 4);

function set(fileDescriptor: number, level: number, name: number, value: number): void {
  int[0] = value;
  system!.setsockopt(fileDescriptor, level, name, int, int.byteLength);
}

/** Has the system probe the other side at this interval while the connection is quiet. */
export function startProbes(fileDescriptor: number, intervalMs: number): void {
  if (system === null || !isLinux) return;
  const seconds = Math.ceil(intervalMs / 1_000);
  set(fileDescriptor, socketLevel, keepAlive, 1);
  set(fileDescriptor, tcpLevel, tcpKeepInterval, seconds);
  set(fileDescriptor, tcpLevel, tcpKeepIdle, seconds); // set last: it counts from when something was heard, not from now
}

export function stopProbes(fileDescriptor: number): void {
  if (system !== null && isLinux) set(fileDescriptor, socketLevel, keepAlive, 0);
}

/** Whether the other side's system answered within the last `withinMs`. */
export function wasHeard(fileDescriptor: number, withinMs: number): boolean {
  if (!readInfo(fileDescriptor)) return false;
  const ms = info.readUInt32LE(lastHeardAt);
  return ms > 0 && ms <= withinMs; // 0: systems that only look like Linux do not fill it in
}

/** Whether its system left more than one packet or probe unanswered for `forMs`; it answers for a busy program. */
export function isGone(fileDescriptor: number, forMs: number): boolean {
  if (!readInfo(fileDescriptor) || info.readUInt32LE(lastHeardAt) < forMs) return false;
  // one may have been sent just now: during a long silence they become rare
  return info[retransmitsAt]! > 1 || info[probesAt]! > 1;
}

function readInfo(fileDescriptor: number): boolean {
  if (system === null || !isLinux) return false;
  int[0] = info.length;
  return system.getsockopt(fileDescriptor, tcpLevel, tcpInfo, info, int) === 0 && int[0] === info.length;
}

function loadSystem() {
  for (const library of libraries) {
    try {
      const { symbols } = dlopen(library, {
        recv: { args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i64_fast },
        getsockopt: { ...option, args: [...option.args, FFIType.ptr] },
        setsockopt: { ...option, args: [...option.args, FFIType.u32] },
      });
      return symbols;
    } catch {
      // This is not the system's C library; the next name is tried.
    }
  }
  return null;
}
