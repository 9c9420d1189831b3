// Hashing of passwords: how many at a time, and that the work says nothing about who exists.
import { expect, test } from "bun:test";
import { type Hasher, Passwords, PasswordsBusy } from "../../src/account/passwords.ts";
import { passwordHashesMax, passwordHashesWaitingMax } from "../../src/limits.ts";
import { cheapHasher, Office } from "./office.ts";

/** Hashes when it is told to. */
class SlowHasher implements Hasher {
  readonly running: PromiseWithResolvers<string>[] = [];
  most = 0;

  hash(): Promise<string> {
    const work = Promise.withResolvers<string>();
    this.running.push(work);
    this.most = Math.max(this.most, this.running.length);
    return work.promise;
  }

  verify(): Promise<boolean> {
    return this.hash().then(() => true);
  }
}

const turns = async () => {
  for (let index = 0; index < 10; index++) await Promise.resolve();
};

test("at most two run at a time, in the order in which they came, and a bounded number waits", async () => {
  const hasher = new SlowHasher();
  const passwords = new Passwords(hasher);
  const ended: number[] = [];
  const all = Array.from({ length: passwordHashesMax + passwordHashesWaitingMax }, (_, index) =>
    passwords.hash("p").then(() => ended.push(index)),
  );
  await expect(passwords.verify("p", "h")).rejects.toBeInstanceOf(PasswordsBusy);
  while (ended.length < all.length) {
    expect(hasher.running.length).toBeLessThanOrEqual(passwordHashesMax);
    hasher.running.shift()!.resolve("hash");
    await turns();
  }
  expect(hasher.most).toBe(passwordHashesMax);
  expect(ended).toEqual(ended.map((_, index) => index));
});

test("one that fails gives its place on", async () => {
  const hasher = new SlowHasher();
  const passwords = new Passwords(hasher);
  const all = [1, 2, 3].map(() => passwords.hash("p"));
  hasher.running.shift()!.reject(new Error("no memory"));
  await expect(all[0]!).rejects.toThrow("no memory");
  await turns();
  expect(hasher.running.length).toBe(2);
  for (const work of hasher.running.splice(0)) work.resolve("hash");
  expect(await Promise.all(all.slice(1))).toEqual(["hash", "hash"]);
});

test("a sign-in costs the same work whether the account exists, has a password, or neither", async () => {
  let verified: string[] = [];
  const hasher: Hasher = {
    hash: cheapHasher.hash,
    verify(password, hash) {
      verified.push(hash);
      return cheapHasher.verify(password, hash);
    },
  };
  const office = new Office(undefined, new Passwords(hasher));
  await office.accounts.create({ email: "with@x", password: "correct horse" });
  await office.accounts.create({ email: "without@x" });
  const { id } = await office.accounts.create({ email: "disabled@x", password: "correct horse" });
  await office.accounts.setDisabled(id, true);
  await office.accounts.signIn("with@x", "wrong"); // makes the hash that nobody's password has
  for (const email of ["with@x", "without@x", "disabled@x", "unknown@x", "", "a".repeat(254)]) {
    verified = [];
    expect(await office.accounts.signIn(email, "wrong")).toBeNull();
    expect(verified.length).toBe(1);
    expect(verified[0]).toStartWith("$argon2id$");
  }
  expect(await office.accounts.signIn("without@x", "")).toBeNull();
  expect(await office.accounts.signIn("disabled@x", "correct horse")).toBeNull();
  expect(await office.accounts.signIn("WITH@x", "correct horse")).toMatchObject({ email: "with@x" });
});

test("the passwords of this program are hashed with argon2id", async () => {
  const hash = await new Passwords().hash("correct horse");
  expect(hash).toStartWith("$argon2id$");
  expect(await new Passwords().verify("correct horse", hash)).toBe(true);
});
