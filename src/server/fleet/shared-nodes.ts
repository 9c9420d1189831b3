// The pool's nodes by names that mean the same node on all gateways, which deal its slots out among themselves.
import { hostname } from "node:os";
import type { NodePool } from "../../nodes/queue/pool.ts";
import type { SharingPool } from "../../store/postgres/node-shares.ts";

type SharedPool = Pick<
  NodePool,
  "needs" | "limitSlots" | "modelNeeds" | "limitModels" | "takeServed" | "servedElsewhere" | "addresses"
>;

/** A loopback address means another node on each machine. Two nodes of one address stay two, in their order. */
export function sharedNodes(pool: SharedPool, host = hostname()): SharingPool & NamedNodes {
  const byKey = () => {
    const keyed = new Map<string, ReturnType<NodePool["needs"]>[number]>();
    for (const need of pool.needs()) {
      const key = keyOf(need.url, host);
      let unique = key;
      for (let number = 2; keyed.has(unique); number += 1) unique = `${key} ${number}`;
      keyed.set(unique, need);
    }
    return keyed;
  };
  const named: NamedNodes["named"] = (byName) =>
    new Map(
      [...byKey()].flatMap(([key, { name }]) => {
        const value = byName.get(key);
        return value === undefined ? [] : [[name, value] as const];
      }),
    );
  return {
    needs: () =>
      new Map([...byKey(), ...[...pool.modelNeeds()].map(([id, need]) => [`${modelMark}${id}`, need] as const)]),
    named,
    share(slots) {
      pool.limitSlots(named(slots));
      const ofModels = [...slots].filter(([key]) => key.startsWith(modelMark));
      pool.limitModels(new Map(ofModels.map(([key, share]) => [key.slice(modelMark.length), share])));
    },
    takeServed() {
      const { addresses } = pool;
      return pool.takeServed().flatMap((work) => {
        const url = addresses.get(work.node);
        return url === undefined ? [] : [{ ...work, node: keyOf(url, host) }];
      });
    },
    servedElsewhere(served) {
      const names = new Map([...pool.addresses].map(([name, url]) => [keyOf(url, host), name]));
      for (const work of served) {
        const node = names.get(work.node);
        if (node !== undefined) pool.servedElsewhere({ ...work, node });
      }
    },
  };
}

/** Models with a limit are shared as nodes are. No address begins so. */
const modelMark = "[model] ";

type NamedNodes = Readonly<{
  /** By the names that the nodes have in this gateway's configuration. */
  named<Value>(byName: ReadonlyMap<string, Value>): ReadonlyMap<string, Value>;
}>;

function keyOf(url: string, host: string): string {
  const { hostname: name, host: address, pathname } = new URL(url);
  return `${isLoopback(name) ? `${host} ` : ""}${address}${pathname.replace(/\/+$/, "")}`;
}

const isLoopback = (name: string): boolean => name === "localhost" || name === "[::1]" || /^127\.\d/.test(name);
