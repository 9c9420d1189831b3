// Runs the tests of media-inside.ts in a network namespace of their own: clients name addresses, and there they exist.
import { describe, expect, test } from "bun:test";
import { namespacesAllowed, runInside } from "../fixtures/network-namespace.ts";
import { missing } from "../fixtures/optional.ts";
import { authorityFile } from "../fixtures/public-server.ts";

const timeLimit = 180_000;

describe.skipIf(missing("leave to make a network namespace", namespacesAllowed, "run as root on Linux", false))(
  "official clients",
  () => {
    test(
      "send images and files by address and inline",
      async () => {
        const { output, passed } = await runInside(`${import.meta.dir}/media-inside.ts`, {
          NODE_EXTRA_CA_CERTS: authorityFile,
        });
        expect(passed, output).toBe(true);
        for (const line of output.split("\n").filter((line) => line.startsWith("skipped:"))) console.log(line);
      },
      timeLimit,
    );
  },
);
