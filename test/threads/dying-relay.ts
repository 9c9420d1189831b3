// A Worker in the place of a relay that fails, or ends, when it is to listen, or ends when it is to stop: the port of its
// opening says which.
declare const self: Worker;

type Order = Readonly<{ order: "open"; opening: { port: number } }> | Readonly<{ order: "listen" | "stop" }>;

let port = 0;

self.onmessage = ({ data }: MessageEvent<string | Order>) => {
  if (typeof data === "string") return;
  if (data.order === "open") {
    port = data.opening.port;
    return;
  }
  if (port === 1) throw new Error("a bug in a relay");
  if (port === 2 || data.order === "stop") self.onmessage = null; // and so it ends
};
