// What the office must do, one operation after the other: an independent account of it, without a queue, locks or SQL. An
// operation that is done tells its model what numbers it was given; one that is refused says by which error.
import { keysMax } from "../../src/account/people/account-keys.ts";
import { purchaseRequestsPendingMax } from "../../src/account/money/purchases.ts";
import { sessionsMax } from "../../src/account/sign-in/sessions.ts";

export type Operation =
  | Readonly<{ kind: "create"; email: string; operator: boolean; credit: number }>
  | Readonly<{ kind: "come"; person: string; email: string }>
  | Readonly<{ kind: "plan"; account: number; plan: string }>
  | Readonly<{ kind: "disable" | "enable" | "promote" | "dismiss" | "erase" | "enter" | "leave"; account: number }>
  | Readonly<{ kind: "credit"; account: number; tokens: number; reference: string }>
  | Readonly<{ kind: "password"; account: number; before: string | null; after: string }>
  | Readonly<{ kind: "key"; account: number; name: string }>
  | Readonly<{ kind: "rename"; account: number; key: number; name: string }>
  | Readonly<{ kind: "revoke"; account: number; key: number }>
  | Readonly<{ kind: "ask"; account: number; tokens: number }>
  | Readonly<{ kind: "approve" | "decline" | "withdraw"; request: number }>
  | Readonly<{ kind: "invite"; credit: number }>
  | Readonly<{ kind: "join"; link: number; email: string }>
  | Readonly<{ kind: "void"; link: number }>;

/** The number that was given, or whether something was credited, decided or found; null where there is nothing to tell. */
export type Given = number | boolean | null;
export type Outcome = Readonly<{ done: Given }> | Readonly<{ refused: string }>;

type Account = {
  email: string;
  plan: string;
  credit: number;
  operator: boolean;
  disabled: boolean;
  erased: boolean;
  password: string | null;
  keys: { id: number; name: string; revoked: boolean }[];
  sessions: number[];
  pending: number;
};
type State = {
  accounts: Record<number, Account>;
  references: string[];
  identities: Record<string, number>;
  requests: Record<number, { account: number; tokens: number; state: string }>;
  links: Record<number, { credit: number; isUsed: boolean }>;
};

export class OfficeModel {
  #state: State = { accounts: {}, references: [], identities: {}, requests: {}, links: {} };

  copy(): OfficeModel {
    const copy = new OfficeModel();
    copy.#state = structuredClone(this.#state);
    return copy;
  }

  get accounts(): Readonly<Record<number, Readonly<Account>>> {
    return this.#state.accounts;
  }

  get requests(): State["requests"] {
    return this.#state.requests;
  }

  /** What comes of it now; `given` is what was told where it was done. */
  apply(operation: Operation, given: Given): Outcome {
    const { accounts, references, identities, requests, links } = this.#state;
    switch (operation.kind) {
      case "create":
        return this.#make(operation.email, given as number, operation.credit, operation.operator);
      case "come": {
        const { person, email } = operation;
        const known = identities[person];
        if (known !== undefined) return { done: known };
        const made = this.#make(email, given as number, 0, false);
        if ("done" in made) identities[person] = given as number;
        return made;
      }
      case "plan":
        return this.#change(operation.account, (account) => (account.plan = operation.plan));
      case "disable":
        if (this.#isLastOperator(operation.account)) return refused;
        return this.#change(
          operation.account,
          (account) => {
            account.disabled = true;
            account.sessions = [];
          },
          true,
        );
      case "enable":
        return this.#change(operation.account, (account) => (account.disabled = false));
      case "promote":
        return this.#change(operation.account, (account) => (account.operator = true));
      case "dismiss":
        if (accounts[operation.account]!.erased || this.#isLastOperator(operation.account)) return refused;
        return this.#change(operation.account, (account) => (account.operator = false));
      case "erase": {
        const { account: id } = operation;
        if (this.#isLastOperator(id)) return refused;
        const none = { password: null, operator: false, disabled: true, erased: true, sessions: [], pending: 0 };
        Object.assign(accounts[id]!, { ...none, email: `deleted-${id}@invalid` });
        for (const key of accounts[id]!.keys) Object.assign(key, { name: `key ${key.id}`, revoked: true });
        for (const [person, of] of Object.entries(identities)) if (of === id) delete identities[person];
        const asked = Object.values(requests).filter(({ account, state }) => account === id && state === "pending");
        for (const request of asked) request.state = "withdrawn";
        return { done: null };
      }
      case "credit": {
        const { account, tokens, reference } = operation;
        if (accounts[account]!.erased) return refused;
        const isNew = !references.includes(reference);
        if (isNew) {
          references.push(reference);
          accounts[account]!.credit += tokens;
        }
        return { done: isNew };
      }
      case "password": {
        const { account: id, before, after } = operation;
        const account = accounts[id]!;
        if (account.disabled || account.password !== before) return { done: false };
        account.password = after;
        return { done: true };
      }
      case "enter": {
        const account = accounts[operation.account]!;
        if (account.disabled) return { done: null };
        account.sessions = [...account.sessions, given as number].slice(-sessionsMax);
        return { done: given };
      }
      case "leave":
        accounts[operation.account]!.sessions = [];
        return { done: null };
      case "key": {
        const { name } = operation;
        const { erased, keys } = accounts[operation.account]!;
        const live = keys.filter(({ revoked }) => !revoked);
        if (erased || live.length >= keysMax || live.some((key) => key.name === name)) return refused;
        keys.push({ id: given as number, name, revoked: false });
        return { done: keys.length + 1 };
      }
      case "rename": {
        const { keys } = accounts[operation.account]!;
        const key = keys.find(({ id, revoked }) => id === operation.key && !revoked);
        if (key === undefined) return { refused: "KeyNotFound" };
        if (keys.some((other) => other !== key && !other.revoked && other.name === operation.name)) return refused;
        key.name = operation.name;
        return { done: null };
      }
      case "revoke": {
        const key = accounts[operation.account]!.keys.find(({ id, revoked }) => id === operation.key && !revoked);
        if (key === undefined) return { refused: "KeyNotFound" };
        key.revoked = true;
        return { done: null };
      }
      case "ask": {
        const account = accounts[operation.account]!;
        if (account.pending >= purchaseRequestsPendingMax) return refused;
        account.pending += 1;
        requests[given as number] = { account: operation.account, tokens: operation.tokens, state: "pending" };
        return { done: given };
      }
      case "approve":
      case "decline":
      case "withdraw":
        return this.#decide(operation.request, `${operation.kind.replace(/e$/, "")}${endings[operation.kind]}`);
      case "invite":
        links[given as number] = { credit: operation.credit, isUsed: false };
        return { done: given };
      case "join": {
        const link = links[operation.link];
        if (link === undefined || link.isUsed) return { refused: "LinkVoid" };
        const made = this.#make(operation.email, given as number, link.credit, false);
        if ("done" in made) link.isUsed = true;
        return made;
      }
      case "void": {
        const link = links[operation.link];
        if (link === undefined || link.isUsed) return { refused: "LinkVoid" };
        delete links[operation.link];
        return { done: null };
      }
    }
  }

  #make(email: string, id: number, credit: number, operator: boolean): Outcome {
    const { accounts } = this.#state;
    if (Object.values(accounts).some((account) => account.email === email)) return { refused: "EmailTaken" };
    const fresh = { plan: "free", disabled: false, erased: false, password: null, keys: [], sessions: [], pending: 0 };
    accounts[id] = { ...fresh, email, credit, operator };
    return { done: id };
  }

  #change(id: number, change: (account: Account) => unknown, alsoErased = false): Outcome {
    const account = this.#state.accounts[id]!;
    if (account.erased && !alsoErased) return refused;
    change(account);
    return { done: null };
  }

  #decide(id: number, state: string): Outcome {
    const request = this.#state.requests[id]!;
    const account = this.#state.accounts[request.account]!;
    if (request.state === state) return { done: false };
    if (request.state !== "pending") return { refused: "DecidedOtherwise" };
    if (state === "approved") {
      if (account.erased) return refused;
      account.credit += request.tokens;
    }
    request.state = state;
    account.pending -= 1;
    return { done: true };
  }

  #isLastOperator(id: number): boolean {
    const others = Object.entries(this.#state.accounts).filter(
      ([other, { operator, disabled }]) => operator && !disabled && Number(other) !== id,
    );
    return this.#state.accounts[id]!.operator && others.length === 0;
  }
}

const refused: Outcome = { refused: "AccountError" };
const endings = { approve: "ed", decline: "ed", withdraw: "n" } as const;
