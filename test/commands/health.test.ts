// tollgate health: what a container or a supervisor sees.
import { expect, setDefaultTimeout, test } from "bun:test";
import { run, Server, temporaryFolder } from "./program.ts";

setDefaultTimeout(30_000);

test("is 0 while the server takes requests, and 1 with a reason when there is none", async () => {
  using folder = temporaryFolder();
  const words = ["health", "--data", folder.path];
  expect(await run(words)).toEqual({
    code: 1,
    stdout: "",
    stderr: `tollgate: no server runs on the data folder ${folder.path}`,
  });
  const server = await Server.start(["--port", "0", "--data", folder.path]);
  await using _ = server;
  expect(await run(words)).toEqual({ code: 0, stdout: "ready", stderr: "" });
  expect((await run([...words, "--json"])).stdout).toBe('{"ready":true}');
  server.signal("SIGKILL");
  await server.ended();
  expect((await run(words)).code).toBe(1);
});
