// Runs the tests of vanished-node-inside.ts in a network namespace of their own.
import { describe, expect, test } from "bun:test";
import { namespacesAllowed, runInside } from "../../fixtures/network-namespace.ts";
import { missing } from "../../fixtures/optional.ts";

describe.skipIf(missing("leave to make a network namespace", namespacesAllowed, "run as root on Linux", false))(
  "a node whose machine is gone",
  () => {
    test("loses the requests that it has, and one that only works does not", async () => {
      const { output, passed } = await runInside(`${import.meta.dir}/vanished-node-inside.ts`);
      expect(passed, output).toBe(true);
      expect(output).toMatch(/^ *4 pass$/m); // the file was run
    });
  },
);
