// Keeps the focus near the user's work when an action removes the focused element: browsers give it to the page.

/** Marks the element that gets the focus when the focused one is gone; without it, the page's heading does. */
export const focusHome = { "data-focus-home": "" };

export function goHome(): void {
  // On a phone, a focused field would open the keyboard.
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
  // A click beside everything leaves the element on purpose.
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
    } else had = null; // the user left it, with Tab to the browser's own bars
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled"] });
}
