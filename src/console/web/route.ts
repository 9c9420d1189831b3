// The current page: the browser's address as a signal, and links that change it without a reload.
import { signal } from "@preact/signals";

export type Place = Readonly<{ path: string; query: URLSearchParams }>;

const here = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export const place = signal<Place>(here());

/** Which row of a list the address names: `gpu-a` of `/operator/nodes/gpu-a`; null: the list itself. */
export function rowOf(list: string): string | null {
  const { path } = place.value;
  if (!path.startsWith(`${list}/`)) return null;
  try {
    return decodeURIComponent(path.slice(list.length + 1));
  } catch {
    return path.slice(list.length + 1);
  }
}

let moved = false;
/** False while the page that the browser loaded first is shown. */
export const hasMoved = (): boolean => moved;

function arrive(): void {
  moved = true;
  place.value = here();
}

export function navigate(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  arrive();
}

const isPage = (name: string): boolean => name.endsWith("page") || name.endsWith("after");

/** Changes these parts of the address's query; empty ones and null go. What turns no page begins with the first ones. */
export function changeQuery(more: Readonly<Record<string, string | null>>, { replace = false } = {}): void {
  const { path, query } = place.value;
  const next = new URLSearchParams(query);
  if (!Object.keys(more).some(isPage)) for (const name of [...query.keys()].filter(isPage)) next.delete(name);
  for (const [name, value] of Object.entries(more)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  navigate(next.size === 0 ? path : `${path}?${next}`, { replace });
}

/** Handles clicks on links to pages of the console; the browser follows all others. */
export function followLinks(): void {
  addEventListener("popstate", arrive);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link === null || link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.dataset["leaves"] !== undefined || link.hash !== "") return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
