// How often somebody may try to sign in, and who has to wait because of it.
import { expect, test } from "bun:test";
import {
  signInDelayMaxMs,
  signInDelayMinMs,
  signInNameTriesStep,
  SignInTries,
  type SignInTry,
  type TryingPlace,
} from "../../../src/account/sign-in/sign-in-tries.ts";
import { signInAddressTriesMax, signInTriesMax, signInWindowMs, triedKeysMax } from "../../../src/core/limits.ts";

const at = (address: string, more: Partial<TryingPlace> = {}): TryingPlace => ({
  address,
  isShared: false,
  knownBrowser: null,
  ...more,
});
const here = at("192.0.2.1");

const begin = (tries: SignInTries, email = "a@x", place = here, now = 0): SignInTry => {
  const begun = tries.begin(email, place, now);
  if (typeof begun === "number") throw new Error(`refused for ${begun} s`);
  return begun;
};
/** How many of so many tries are let through. */
const passed = (tries: SignInTries, times: number, now: number, email = "a@x", place = here): number =>
  Array.from({ length: times }, () => tries.begin(email, place, now)).filter((begun) => typeof begun !== "number")
    .length;

test("ten tries on a name from one address in any fifteen minutes, whatever the case of the name", () => {
  const tries = new SignInTries();
  expect(passed(tries, 6, 0)).toBe(6);
  expect(passed(tries, 20, signInWindowMs - 1000, "A@X")).toBe(4);
  expect(tries.begin("a@x", here, signInWindowMs - 1000)).toBe(1); // second
  expect(passed(tries, 20, signInWindowMs)).toBe(6);
  expect(passed(tries, 20, 2 * signInWindowMs - 1001)).toBe(0);
  expect(signInTriesMax).toBe(10);
});

test("whatever a stranger tries from however many addresses, another one is never refused, and waits four seconds at most", () => {
  const tries = new SignInTries();
  for (let index = 0; index < 1_000; index++) passed(tries, 12, 0, "a@x", at(`10.${index >> 8}.${index & 255}.1`));
  const { turn } = begin(tries, "a@x", at("198.51.100.7"));
  expect(turn).toEqual({ name: turn.name, rank: 0, delayMs: signInDelayMaxMs });
  expect(signInDelayMaxMs).toBeLessThanOrEqual(5_000);
});

test("tries on one name are slowed down, the more of them there were", () => {
  const tries = new SignInTries();
  const delays = Array.from(
    { length: 9 * signInNameTriesStep },
    (_, index) => begin(tries, "a@x", at(`10.0.${index}.1`)).turn.delayMs,
  );
  expect(delays.slice(0, signInNameTriesStep)).toEqual(Array<number>(signInNameTriesStep).fill(0));
  expect(delays).toEqual(delays.toSorted((one, other) => one - other));
  expect(delays[signInNameTriesStep]).toBe(signInDelayMinMs);
  expect(delays.at(-1)).toBe(signInDelayMaxMs);
  expect(begin(tries, "b@x", at("10.1.0.1")).turn.delayMs).toBe(0); // another name
  expect(begin(tries, "a@x", at("10.1.0.1"), signInWindowMs).turn.delayMs).toBe(0); // another time
});

test("a known browser has a count of its own, without delay, from the very address of a stranger", () => {
  const tries = new SignInTries();
  for (let index = 0; index < 200; index++) passed(tries, 12, 0, "a@x", at(`10.0.${index}.1`));
  expect(passed(tries, 200, 0)).toBe(10);
  const browser = { ...here, knownBrowser: "one" };
  expect(begin(tries, "a@x", browser).turn).toMatchObject({ rank: -signInTriesMax, delayMs: 0 });
  expect(passed(tries, 20, 0, "a@x", browser)).toBe(signInTriesMax - 1);
  expect(passed(tries, 20, 0, "a@x", { ...here, knownBrowser: "two" })).toBe(signInTriesMax);
  expect(begin(tries, "a@x", at("198.51.100.7")).turn.rank).toBe(0); // nor does it take others' turns
});

test("where all come from one proxy, nobody is refused", () => {
  const tries = new SignInTries();
  const proxy = at("127.0.0.1", { isShared: true });
  expect(passed(tries, 1_000, 0, "a@x", proxy)).toBe(1_000);
  for (let index = 0; index < 1_000; index++) tries.begin(`${index}@x`, proxy, 0);
  expect(begin(tries, "a@x", proxy).turn.delayMs).toBe(signInDelayMaxMs);
  expect(begin(tries, "new@x", proxy).turn).toMatchObject({ rank: 0, delayMs: 0 });
});

test("whoever knows the password is not slowed down, and what nobody looked at does not count", () => {
  const tries = new SignInTries();
  for (let round = 0; round < 50; round++) begin(tries, "A@x", at(`10.0.${round}.1`)).succeeded();
  expect(begin(tries, "a@x", at("10.1.0.1")).turn.delayMs).toBe(0);
  for (let round = 0; round < 50; round++) begin(tries).unchecked();
  expect(passed(tries, 20, 0)).toBe(signInTriesMax);
});

test("one address cannot try many accounts, and who tried less often from there is before who tried more", () => {
  const tries = new SignInTries();
  const names = Array.from({ length: 3 * signInAddressTriesMax }, (_, index) => `${index}@x`);
  const begun = names.map((name) => tries.begin(name, here, 0)).filter((each) => typeof each !== "number");
  expect(begun.length).toBe(signInAddressTriesMax);
  const ranks = begun.map(({ turn }) => turn.rank);
  expect(ranks).toEqual(ranks.toSorted((one, other) => one - other));
  expect(new Set(ranks).size).toBe(signInAddressTriesMax);
  const near = begin(tries, "new@x", at("192.0.2.2")).turn.rank;
  expect(near).toBeGreaterThan(begin(tries, "new@x", at("198.51.100.7")).turn.rank);
  expect(near).toBeLessThan(ranks.at(-1)!);
});

test("networks beside each other do not take turns from those elsewhere", () => {
  const tries = new SignInTries();
  for (let index = 0; index < 500; index++) tries.begin("a@x", at(`2001:db8:1:${index.toString(16)}::1`), 0);
  expect(begin(tries, "a@x", at("2001:db8:1:ffff::1")).turn.rank).toBeGreaterThan(0);
  expect(begin(tries, "a@x", at("2001:db8:2::1")).turn.rank).toBe(0);
});

test.each([
  ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true],
  ["2001:db8:1:2::1", "2001:0DB8:0001:0002::9", true],
  ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ["2001:db8::1", "2001:db8:0:0:1::", true],
  ["::1", "::2", true],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.2", false],
  ["::ffff:192.0.2.1", "192.0.2.1", true],
  ["192.0.2.1", "192.0.2.2", false],
])("%s and %s are of one network: %p", (one, other, same) => {
  const tries = new SignInTries();
  for (let index = 0; index < signInAddressTriesMax; index++) tries.begin(`${index}@x`, at(one), 0);
  expect(typeof tries.begin("new@x", at(other), 0) === "number").toBe(same);
});

test("what is remembered is bounded, and the oldest tries are forgotten first", () => {
  const tries = new SignInTries();
  expect(passed(tries, 10, 0, "first@x")).toBe(10);
  expect(passed(tries, 10, 1, "second@x")).toBe(10);
  for (let index = 0; index < triedKeysMax - 1; index++)
    tries.begin(`${index}@x`, at(`10.${index >> 14}.${(index >> 6) & 255}.1`), 2);
  expect(typeof tries.begin("second@x", here, 3)).toBe("number");
  expect(typeof tries.begin("first@x", here, 3)).toBe("object");
}, 120_000);

test("tries at another gateway count as those here, as does what became of them", () => {
  const [one, other] = [new SignInTries(), new SignInTries()];
  one.onEvent = (event) => other.learn(event, 0);
  other.onEvent = (event) => one.learn(event, 0);
  expect([passed(one, 6, 0), passed(other, 20, 0), passed(one, 20, 0)]).toEqual([6, 4, 0]);
  const elsewhere = at("198.51.100.1");
  begin(one, "a@x", elsewhere).unchecked();
  expect(passed(other, 20, 0, "a@x", elsewhere)).toBe(10);
  const third = at("198.51.100.2");
  expect(passed(one, 9, 0, "b@x", third)).toBe(9);
  begin(other, "b@x", third).succeeded();
  expect(passed(one, 20, 0, "b@x", third)).toBe(10);
});
