// Limits sign-in attempts. One person's attempts must not lock another out, so that what is refused counts only for who
// tried: by name and address together, and by address. Tries on one name from many addresses are slowed down.
//
//   from                          refused after                       counted by name
//   a browser that is known       10 of its own                       no
//   an address                    10 on the name, 100 on all names    yes: slower, never refused
//   an address that many share    never                               yes
//
// Unknown names are counted like known ones.
import { signInAddressTriesMax, signInTriesMax, signInWindowMs } from "../../core/limits.ts";
import { assert } from "../../core/assert.ts";
import type { Ms } from "../../core/types.ts";
import type { PasswordTurn } from "./passwords.ts";
import { RecentTries } from "./recent-tries.ts";

/**
 * Attempts on one name from any address: each step of them makes the next ones wait twice as long. A wait never becomes
 * a refusal: attackers must not be able to lock the owner out.
 */
export const signInNameTriesStep = 10;
export const signInDelayMinMs = 250;
export const signInDelayMaxMs = 4_000;

assert(signInDelayMinMs < signInDelayMaxMs, "waits of a name that many try grow");

/** Where a try comes from. */
export type TryingPlace = Readonly<{
  address: string;
  /** A proxy's address, whose clients look alike. */
  isShared: boolean;
  /** The browser, where it signed in to this very account before. */
  knownBrowser: string | null;
}>;

/** What an attempt counts for, as hashes: other gateways do not learn who tried. */
type Counted = Readonly<{
  pair: string;
  place: string;
  neighbors: string;
  name: string;
  /** From a browser that is known, which counts for none but itself. */
  isKnown: boolean;
}>;

/** The outcome of an attempt, for the other gateways. */
export type TryEvent = Counted & Readonly<{ what: "try" | "succeeded" | "unchecked" }>;

/** More are not counted: the longest delay is reached long before. */
const nameTriesMax = 8 * signInNameTriesStep;

export class SignInTries {
  /** Called with each attempt of this gateway, and with its outcome. */
  onEvent: (event: TryEvent) => void = () => {};
  /** Of a known browser, or of a name and an address. */
  readonly #byPair = new RecentTries(signInTriesMax, signInWindowMs);
  /** Of an address, or of an account's known browsers together. */
  readonly #byPlace = new RecentTries(signInAddressTriesMax, signInWindowMs);
  readonly #byName = new RecentTries(nameTriesMax, signInWindowMs);
  /** Only whose turn it is depends on these: an attacker with one network often has those beside it. */
  readonly #byNeighbors = new RecentTries(signInAddressTriesMax, signInWindowMs);

  /** Counts a try; or gives the seconds until the next one is allowed, when it is not counted. `now` is monotonic. */
  begin(email: string, { address, isShared, knownBrowser }: TryingPlace, now: Ms): SignInTry | number {
    const name = nameOf(email);
    const isKnown = knownBrowser !== null;
    const network = networkOf(address);
    const place = hashOf(isKnown ? `known ${name}` : network);
    const pair = hashOf(isKnown ? knownBrowser : `${name} ${network}`);
    if (isKnown || !isShared) {
      const waitMs = Math.max(this.#byPair.waitMs(pair, now), this.#byPlace.waitMs(place, now));
      if (waitMs > 0) return Math.ceil(waitMs / 1000);
    }
    const triesOnName = this.#byName.count(name, now);
    const neighbors = hashOf(neighborsOf(network));
    const triesFromThere = this.#byPlace.count(place, now) + this.#byNeighbors.count(neighbors, now);
    const turn: PasswordTurn = {
      name,
      // A few of a known browser are before all strangers', however many of those have never tried.
      rank: isKnown ? this.#byPlace.count(place, now) - signInTriesMax : isShared ? triesOnName : triesFromThere,
      delayMs: isKnown ? 0 : delayMs(triesOnName),
    };
    const counted: Counted = { pair, place, neighbors, name, isKnown };
    const note = (what: TryEvent["what"]): void => {
      const event = { what, ...counted };
      this.learn(event, now);
      this.onEvent(event);
    };
    note("try");
    return { turn, succeeded: () => note("succeeded"), unchecked: () => note("unchecked") };
  }

  /** What happened here, or at another gateway; `at` is monotonic. */
  learn({ what, pair, place, neighbors, name, isKnown }: TryEvent, at: Ms): void {
    if (what === "unchecked") return this.#byPair.takeBack(pair);
    if (what === "succeeded") {
      this.#byPair.forget(pair);
      if (!isKnown) this.#byName.takeBack(name);
      return;
    }
    this.#byPair.add(pair, at);
    this.#byPlace.add(place, at);
    if (isKnown) return;
    this.#byNeighbors.add(neighbors, at);
    this.#byName.add(name, at);
  }
}

export type SignInTry = Readonly<{
  /** When its password is checked. */
  turn: PasswordTurn;
  /** The password was right: those who know it are not slowed down. */
  succeeded(): void;
  /** The password was not looked at. */
  unchecked(): void;
}>;

function delayMs(triesOnName: number): Ms {
  const step = Math.floor(triesOnName / signInNameTriesStep);
  return step === 0 ? 0 : Math.min(signInDelayMaxMs, signInDelayMinMs * 2 ** (step - 1));
}

/** As the database compares e-mails: ASCII letters in any case. Hashed, so that a long name costs no more memory. */
const nameOf = (email: string): string => hashOf(email.replace(/[A-Z]/g, (letter) => letter.toLowerCase()));

const hashOf = (text: string): string => Bun.hash(text).toString(36);

/** A /24 of IPv4, or a /48 of IPv6. */
const neighborsOf = (network: string): string => network.split(/[.:]/, 3).join(".");

/** What counts as one address: one household has a whole /64 of IPv6. */
export function networkOf(address: string): string {
  if (!address.includes(":") || /^::ffff:[\d.]+$/i.test(address)) return address.replace(/^::ffff:/i, "");
  const [head = "", tail] = address.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(":").length;
  return [...groups, ...Array<string>(Math.max(0, missing)).fill("0"), ...(tail ?? "").split(":")]
    .slice(0, 4)
    .map((group) => group.toLowerCase().replace(/^0+(?=.)/, "") || "0")
    .join(":");
}
