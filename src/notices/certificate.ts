// Looks how long the certificate of a server is valid.
import { connect } from "node:tls";
import type { Ms } from "../core/types.ts";

const certificateTimeoutMs = 5_000;

/** When the certificate that a server shows ends; null where none is shown in time. Nothing is sent to it. */
export function certificateEnd(hostname: string, port: number): Promise<Ms | null> {
  const host = hostname.replace(/^\[|\]$/g, "");
  const isName = /[a-z]/i.test(host) && !host.includes(":");
  return new Promise((resolve) => {
    const socket = connect({ host, port, rejectUnauthorized: false, ...(isName ? { servername: host } : {}) });
    const end = (ends: Ms | null): void => {
      socket.destroy();
      resolve(ends);
    };
    socket.setTimeout(certificateTimeoutMs, () => end(null));
    socket.on("error", () => end(null));
    socket.on("secureConnect", () => {
      const ends = Date.parse(socket.getPeerCertificate().valid_to ?? "");
      end(Number.isNaN(ends) ? null : ends);
    });
  });
}
