// The signed-in account, what this server offers, and the live numbers from its event stream.
import { computed, signal } from "@preact/signals";
import type { AccountNumbers, OperatorNumbers } from "../api/live.ts";
import type { Session } from "../api/sign-in.ts";
import { type Language, language, languageKey } from "./language.ts";
import { navigate, place } from "./route.ts";
import { address, get, listenTo, post, whenSignedOut } from "./request.ts";

/** Null until the first answer. */
export const session = signal<Session | null>(null);
export const account = computed(() => session.value?.account ?? null);
/** Whether any model costs something. If none does, pages show no money and no balance. */
export const sells = computed(() => session.value?.sells !== false);
/** Whether these rows are counted in model tokens instead of balance tokens. */
export const isFreeOfCharge = (rows: readonly Readonly<{ billed_tokens: number }>[]): boolean =>
  !sells.value && rows.every(({ billed_tokens }) => billed_tokens === 0);
export const numbers = signal<AccountNumbers | null>(null);
export const operatorNumbers = signal<OperatorNumbers | null>(null);
/** False while the event stream is interrupted: the numbers may be outdated. */
export const live = signal(true);

/** The ids of all plans, and of the present one, which may no longer be configured. */
export function planChoices(present?: string): readonly string[] {
  const ids = session.value?.plans.map(({ id }) => id) ?? [];
  return present === undefined || ids.includes(present) ? ids : [present, ...ids];
}

const listenAgainMs = 2_000;

let events: EventSource | null = null;

export async function loadSession(): Promise<void> {
  become(await get("/session"));
}

export function become(next: Session): void {
  const changed = session.value?.account?.id !== next.account?.id;
  session.value = next;
  if (!changed) return;
  stopListening();
  if (next.account === null) return;
  listen();
  speak(next.account.language);
}

/** In the store of the tab: the account is still to hear of the choice. */
const newLanguageKey = "new-language";

/** Loads the page anew: what stands on it was written in the old language. `isNew`: the person just chose it. */
export function keepLanguage(chosen: Language, isNew: boolean): void {
  localStorage.setItem(languageKey, chosen);
  if (isNew) sessionStorage.setItem(newLanguageKey, "");
  location.reload();
}

/** The account's choice counts in every browser; one made here, perhaps before the sign-in, becomes the account's. */
function speak(chosen: Language | null): void {
  if (sessionStorage.getItem(newLanguageKey) === null) {
    if (chosen !== null && chosen !== language) keepLanguage(chosen, false);
  } else
    void post("/language", { language }).then(
      () => sessionStorage.removeItem(newLanguageKey),
      () => {},
    );
}

export async function signOut(): Promise<void> {
  become(await post("/sign-out"));
  navigate("/sign-in");
}

/** Forgets the account, and remembers the page for the next sign-in. */
function leave(): void {
  const known = session.value;
  if (known?.account == null) return;
  const { path, query } = place.value;
  const here = path === "/device" ? `${path}?${query}` : path;
  become({ ...known, account: null });
  navigate(path === "/" || path === "/sign-in" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(here)}`);
}

whenSignedOut(leave);

function listen(): void {
  const source = new EventSource(address("/events"));
  events = source;
  source.addEventListener("open", () => {
    live.value = true;
  });
  source.addEventListener("error", () => {
    live.value = false;
    // The browser reconnects a broken stream, but gives up after an answer that is no stream: a proxy's 502 while the
    // server restarts, or the 401 of a session that ended before the stream was open.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => void listenAgain(source), listenAgainMs);
  });
  listenTo(source, "account", (data) => {
    numbers.value = data;
  });
  listenTo(source, "operator", (data) => {
    operatorNumbers.value = data;
  });
  listenTo(source, "ended", leave);
}

async function listenAgain(broken: EventSource): Promise<void> {
  if (events !== broken) return;
  const known = await get("/session").catch(() => null);
  if (events !== broken) return;
  if (known?.account === null) leave();
  else listen();
}

function stopListening(): void {
  events?.close();
  events = null;
  numbers.value = null;
  operatorNumbers.value = null;
  live.value = true;
}
