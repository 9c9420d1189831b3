// A Worker that dies of the first order it gets.
declare const self: Worker;

self.onmessage = () => {
  throw new Error("planted");
};
