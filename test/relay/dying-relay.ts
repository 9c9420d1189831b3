// A Worker in the place of a relay that fails, or ends, when it is to listen: the port of its opening says which.
declare const self: Worker;

type Order = Readonly<{ order: "open"; opening: { port: number } }> | Readonly<{ order: "listen" }>;

let fails = false;

self.onmessage = ({ data }: MessageEvent<string | Order>) => {
  if (typeof data === "string") return;
  if (data.order === "open") {
    fails = data.opening.port === 1;
    return;
  }
  if (fails) throw new Error("a bug in a relay");
  self.onmessage = null; // and so it ends
};
