// Tells whether bytes are waiting in a socket, without taking them. Only recv(2) with MSG_PEEK can tell: the event loop
// shows what the system has received no sooner than its next turn, and by then a request may have been written.
import { dlopen, FFIType } from "bun:ffi";

const messagePeek = 0x02;
const messageDontWait = process.platform === "darwin" ? 0x80 : 0x40;
/** glibc, musl (Alpine), macOS. */
const libraries = [
  "libc.so.6",
  `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`,
  "libSystem.B.dylib",
];

const recv = loadRecv();
const oneByte = Buffer.alloc(1);

/** False where the system's recv cannot be called: then no connection may be used for a second request. */
export const canPeek = recv !== null;

/** Whether bytes or the other side's end wait on the socket `fileDescriptor`. */
export function hasWaiting(fileDescriptor: number): boolean {
  // -1: nothing waits (EAGAIN), or the socket is broken, which its own event tells
  return recv !== null && Number(recv(fileDescriptor, oneByte, 1, messagePeek | messageDontWait)) >= 0;
}

function loadRecv() {
  for (const library of libraries) {
    try {
      const { symbols } = dlopen(library, {
        recv: { args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i64_fast },
      });
      return symbols.recv;
    } catch {
      // not this system's C library; the next name is tried
    }
  }
  return null;
}
