// The focus stays near where somebody works. What has it may be taken away or disabled by its own action: a row that is
// deleted, a form that was sent, a button that is busy. Browsers then leave it to the whole page, without a word.

/** Where it goes when what had it is gone: the element so marked, else the page's heading. */
export const focusHome = { "data-focus-home": "" };

export function goHome(): void {
  // On a phone the focus in a field would bring up the keyboard.
  const field = matchMedia("(pointer: coarse)").matches ? null : find("[data-focus-home]");
  (field ?? find("main h1"))?.focus({ preventScroll: true });
}

const find = (selector: string): HTMLElement | null => document.querySelector<HTMLElement>(selector);

export function keepFocus(): void {
  let had: HTMLElement | null = null;
  let wasBusy = false;
  document.addEventListener("focusin", ({ target }) => {
    had = target instanceof HTMLElement ? target : null;
    wasBusy = false;
  });
  // Who clicks beside everything has left it.
  document.addEventListener("pointerdown", () => (had = null), { capture: true });
  new MutationObserver(() => {
    if (had === null) return;
    const isBusy = had.isConnected && had.matches(":disabled");
    wasBusy ||= isBusy;
    if (isBusy || document.activeElement !== document.body) return;
    if (!had.isConnected) {
      had = null;
      goHome();
    } else if (wasBusy) {
      had.focus({ preventScroll: true });
    } else had = null; // left by itself, with Tab to the browser's own bars
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled"] });
}
