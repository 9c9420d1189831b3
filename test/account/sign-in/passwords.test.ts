// Hashing of passwords: how many at a time, and that the time it takes does not reveal who exists.
import { expect, test } from "bun:test";
import {
  type Hasher,
  passwordHashesMax,
  passwordHashesNameWaitingMax,
  passwordHashesWaitingMax,
  Passwords,
  PasswordsBusy,
  type PasswordTurn,
} from "../../../src/account/sign-in/passwords.ts";
import { cheapHasher, Office } from "../office.ts";

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

test("as many as leave a core run at a time, in the order in which they came, and a bounded number waits", async () => {
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

const turn = (rank: number, more: Partial<PasswordTurn> = {}): PasswordTurn => ({
  name: null,
  rank,
  delayMs: 0,
  ...more,
});

/** Runs all that wait, one by one. */
async function runAll(hasher: SlowHasher): Promise<void> {
  for (let work = hasher.running.shift(); work !== undefined; work = hasher.running.shift()) {
    work.resolve("hash");
    await turns();
  }
}

test("who tried least often is first, and takes the place of who tried most often where there is none", async () => {
  const hasher = new SlowHasher();
  const passwords = new Passwords(hasher);
  const ended: string[] = [];
  const ask = (what: string, rank: number) =>
    passwords.verify("p", "h", turn(rank)).then(
      () => void ended.push(what),
      (thrown: Error) => void ended.push(`${what}: ${thrown.name}`),
    );
  const crowd = Array.from({ length: passwordHashesMax + passwordHashesWaitingMax }, (_, index) =>
    ask(`crowd ${index}`, 5),
  );
  await turns();
  const last = passwordHashesMax + passwordHashesWaitingMax - 1;
  const others = [ask("fresh", 0)];
  await turns();
  others.push(ask("one of the crowd", 5));
  await turns();
  expect(ended).toEqual([`crowd ${last}: PasswordsBusy`, "one of the crowd: PasswordsBusy"]);
  await runAll(hasher);
  await Promise.all([...crowd, ...others]);
  expect(ended.indexOf("fresh")).toBeLessThan(ended.indexOf(`crowd ${passwordHashesMax}`));
});

test("tries on one name take a part of the places only", async () => {
  const hasher = new SlowHasher();
  const passwords = new Passwords(hasher);
  const all = Array.from({ length: passwordHashesWaitingMax }, () =>
    passwords.verify("p", "h", turn(0, { name: "attacked" })),
  );
  const outcomes = Promise.allSettled(all);
  await turns();
  const other = passwords.verify("p", "h", turn(9, { name: "other" }));
  await runAll(hasher);
  await other;
  const busy = (await outcomes).filter(({ status }) => status === "rejected").length;
  expect(busy).toBe(passwordHashesWaitingMax - passwordHashesMax - passwordHashesNameWaitingMax);
});

test("one that has to wait keeps nobody else waiting, and has its turn when the wait is over", async () => {
  const hasher = new SlowHasher();
  const slept: PromiseWithResolvers<void>[] = [];
  const passwords = new Passwords(hasher, () => {
    slept.push(Promise.withResolvers());
    return slept.at(-1)!.promise;
  });
  const slowed = Array.from({ length: 10 }, () => passwords.verify("p", "h", turn(0, { delayMs: 4_000 })));
  const other = passwords.verify("p", "h", turn(9));
  await turns();
  expect(hasher.running.length).toBe(1);
  await runAll(hasher);
  await other;
  for (const each of slept) each.resolve();
  await turns();
  expect(hasher.running.length).toBe(passwordHashesMax);
  await runAll(hasher);
  await Promise.all(slowed);
});

test("one that fails gives its place on", async () => {
  const hasher = new SlowHasher();
  const passwords = new Passwords(hasher);
  const all = [1, 2, 3].map(() => passwords.hash("p"));
  hasher.running.shift()!.reject(new Error("no memory"));
  await expect(all[0]!).rejects.toThrow("no memory");
  await turns();
  expect(hasher.running.length).toBe(passwordHashesMax);
  await runAll(hasher);
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
