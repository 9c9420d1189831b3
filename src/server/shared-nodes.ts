// The pool's nodes by names that mean the same node on all gateways, which deal its slots out among themselves.
import { hostname } from "node:os";
import type { NodePool } from "../nodes/queue/pool.ts";
import type { SharingPool } from "../store/postgres/node-shares.ts";

/** A loopback address means another node on each machine. Two nodes of one address stay two, in their order. */
export function sharedNodes(pool: Pick<NodePool, "needs" | "limitSlots">, host = hostname()): SharingPool {
  const byKey = () => {
    const keyed = new Map<string, ReturnType<NodePool["needs"]>[number]>();
    for (const need of pool.needs()) {
      const { hostname: name, host: address, pathname } = new URL(need.url);
      const key = `${isLoopback(name) ? `${host} ` : ""}${address}${pathname.replace(/\/+$/, "")}`;
      let unique = key;
      for (let number = 2; keyed.has(unique); number += 1) unique = `${key} ${number}`;
      keyed.set(unique, need);
    }
    return keyed;
  };
  return {
    needs: byKey,
    share(slots) {
      const names = [...byKey()].flatMap(([key, { name }]) => {
        const share = slots.get(key);
        return share === undefined ? [] : [[name, share] as const];
      });
      pool.limitSlots(new Map(names));
    },
  };
}

const isLoopback = (name: string): boolean => name === "localhost" || name === "[::1]" || /^127\.\d/.test(name);
