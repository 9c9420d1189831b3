// Runs the tests of public-fetch-inside.ts in a network namespace of their own.
import { describe, expect, test } from "bun:test";
import { namespacesAllowed, runInside } from "../fixtures/network-namespace.ts";
import { missing } from "../fixtures/optional.ts";
import { authorityFile } from "../fixtures/public-server.ts";

const timeLimit = 180_000;

describe.skipIf(missing("leave to make a network namespace", namespacesAllowed, "run as root on Linux", false))(
  "addresses that strangers chose",
  () => {
    test(
      "are fetched where they are public, and nothing else is ever sent to",
      async () => {
        const { output, passed } = await runInside(`${import.meta.dir}/public-fetch-inside.ts`, {
          NODE_EXTRA_CA_CERTS: authorityFile,
        });
        expect(passed, output).toBe(true);
        expect(output).toMatch(/^ *[1-9][0-9]{2} pass$/m); // the file was run, with its more than a hundred tests
      },
      timeLimit,
    );
  },
);
