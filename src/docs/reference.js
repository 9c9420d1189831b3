"use strict";
(() => {
  // The theme that was chosen in the console holds here too, and before the first paint.
  const theme = localStorage.getItem("tollgate-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  document.documentElement.classList.add("scripted");

  const languageKey = "tollgate-docs-language";

  const choose = (label) => {
    for (const tab of document.querySelectorAll('[role="tab"]')) {
      const chosen = tab.dataset.label === label;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    for (const panel of document.querySelectorAll(".sample")) panel.hidden = panel.dataset.label !== label;
  };

  /** The samples above may change their height: what was clicked stays where it is. */
  const chooseAt = (tab) => {
    const before = tab.getBoundingClientRect().top;
    localStorage.setItem(languageKey, tab.dataset.label);
    choose(tab.dataset.label);
    window.scrollBy(0, tab.getBoundingClientRect().top - before);
  };

  const copy = async (button) => {
    try {
      await navigator.clipboard.writeText(button.nextElementSibling.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };

  document.addEventListener("DOMContentLoaded", () => {
    const known = [...document.querySelectorAll('[role="tab"]')].map((tab) => tab.dataset.label);
    const kept = localStorage.getItem(languageKey);
    choose(known.includes(kept) ? kept : known[0]);
    // On a phone the list of endpoints would fill the first screen. Until here the style hides it, so that nothing moves.
    if (matchMedia("(max-width: 900px)").matches) document.querySelector(".side details").open = false;
    document.documentElement.classList.add("ready");
    document.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (button?.matches('[role="tab"]')) chooseAt(button);
      if (button?.matches(".copy")) void copy(button);
    });
    document.addEventListener("keydown", ({ key, target }) => {
      if (!target.matches('[role="tab"]') || (key !== "ArrowLeft" && key !== "ArrowRight")) return;
      const tabs = [...target.parentElement.children];
      const next = tabs[(tabs.indexOf(target) + (key === "ArrowRight" ? 1 : tabs.length - 1)) % tabs.length];
      chooseAt(next);
      next.focus();
    });
  });
})();
