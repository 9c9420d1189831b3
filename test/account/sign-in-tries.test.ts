// How often somebody may try to sign in.
import { expect, test } from "bun:test";
import { SignInTries } from "../../src/account/sign-in-tries.ts";
import { signInAddressTriesMax, triedKeysMax, signInTriesMax, signInWindowMs } from "../../src/limits.ts";

const count = (tries: SignInTries, times: number, now: number, email = "a@x", address = "192.0.2.1"): number =>
  Array.from({ length: times }, () => tries.count(email, address, now)).filter((seconds) => seconds === 0).length;

test("ten tries in any fifteen minutes, whatever the case of the name", () => {
  const tries = new SignInTries();
  expect(count(tries, 6, 0)).toBe(6);
  expect(count(tries, 20, signInWindowMs - 1000, "A@X")).toBe(4);
  expect(tries.count("a@x", "192.0.2.1", signInWindowMs - 1000)).toBe(1); // second
  expect(count(tries, 20, signInWindowMs)).toBe(6);
  expect(count(tries, 20, 2 * signInWindowMs - 1001)).toBe(0);
  expect(signInTriesMax).toBe(10);
});

test("an account is not slowed down by the tries on another, nor by another address", () => {
  const tries = new SignInTries();
  expect(count(tries, 11, 0)).toBe(10);
  expect(count(tries, 11, 0, "b@x")).toBe(10);
  expect(count(tries, 1, 0, "a@x", "198.51.100.7")).toBe(0);
});

test("whoever knows the password is not slowed down", () => {
  const tries = new SignInTries();
  for (let round = 0; round < 5; round++) {
    expect(tries.count("a@x", `192.0.2.${round}`, 0)).toBe(0);
    tries.succeeded("A@x");
  }
  expect(count(tries, 11, 0)).toBe(10);
});

test("one address cannot try many accounts", () => {
  const tries = new SignInTries();
  const names = Array.from({ length: 3 * signInAddressTriesMax }, (_, index) => `${index}@x`);
  expect(names.filter((name) => tries.count(name, "192.0.2.1", 0) === 0).length).toBe(signInAddressTriesMax);
  expect(tries.count("new@x", "192.0.2.2", 0)).toBe(0);
});

test.each([
  ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true],
  ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ["2001:db8::1", "2001:db8:0:0:1::", true],
  ["::1", "::2", true],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.2", false],
  ["192.0.2.1", "192.0.2.2", false],
])("%s and %s are of one network: %p", (one, other, same) => {
  const tries = new SignInTries();
  for (let index = 0; index < signInAddressTriesMax; index++) tries.count(`${index}@x`, one, 0);
  expect(tries.count("new@x", other, 0) > 0).toBe(same);
});

test("what is remembered is bounded, and the oldest tries are forgotten first", () => {
  const tries = new SignInTries();
  expect(count(tries, 10, 0, "first@x")).toBe(10);
  expect(count(tries, 10, 1, "second@x")).toBe(10);
  for (let index = 0; index < triedKeysMax - 1; index++) tries.count(`${index}@x`, `10.0.${index % 9_000}`, 2);
  expect(tries.count("second@x", "192.0.2.2", 3)).toBeGreaterThan(0);
  expect(tries.count("first@x", "192.0.2.2", 3)).toBe(0);
});
