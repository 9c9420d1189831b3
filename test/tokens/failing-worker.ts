// A Worker that dies at its first message.
declare const self: Worker;

self.onmessage = () => {
  throw new Error("planted");
};
