// What happens to the process when a relay dies: what it held is unknown, so nothing may go on.
import { expect, test } from "bun:test";
import { readConfig, splitConfig } from "../../src/config/config.ts";
import { FollowedNodes } from "../../src/threads/followed-nodes.ts";
import { Relays } from "../../src/threads/relays.ts";
import { eventually } from "../fixtures/eventually.ts";
import { SimulatedRelays } from "./simulated-relays.ts";

test.each([
  [1, "a relay failed: "],
  [2, "a relay ended"],
  [3, "a relay ended"],
])("a relay that dies is fatal (%i): %s", async (port, expected) => {
  const fatal: Error[] = [];
  const config = readConfig(null, "", {}, {});
  const rules = {
    models: [],
    plans: {} as never,
    creditPacksTokens: [],
    options: splitConfig(config).live,
    secrets: [],
  };
  const relays = new Relays(
    1,
    { fixed: splitConfig(config).fixed, port, unix: "", sealingKey: new Uint8Array(32), rules },
    {
      ...new SimulatedRelays(1, 0).relaySessionParts(),
      nodes: new FollowedNodes(),
      onFatal: (error) => void fatal.push(error),
      onLastWords: () => {},
      startWorker: () => new Worker(new URL("./dying-relay.ts", import.meta.url).href),
    },
  );
  expect(fatal).toEqual([]);
  void relays.listen();
  if (port === 3) void relays.stop(0); // which nobody would ever say is done
  await eventually("it is told", async () => fatal.length > 0);
  expect(fatal[0]).toMatchObject({ name: "RelayFailed", message: expect.stringContaining(expected) });
});
