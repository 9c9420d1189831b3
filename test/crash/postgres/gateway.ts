// A gateway's books alone, as a process that can be killed: POST /request {key, requestId} admits, waits and settles. It
// says 200 when the charge is on disk, 429 or 503 when there is none, and breaks the connection off where nobody knows.
import { isRefusal } from "../../../src/core/refusals.ts";
import { OutcomeUnknown } from "../../../src/core/types.ts";
import { brokenReply } from "../../../src/http/reply.ts";
import { PostgresBooks } from "../../../src/store/postgres/books.ts";
import { openServer } from "../../../src/store/postgres/start.ts";
import { ask, output, plans } from "../../account/office.ts";

const [url, gateway, port] = process.argv.slice(2) as [string, string, string];

const books = await PostgresBooks.open({
  server: await openServer(url),
  gateway,
  version: "test",
  configDigest: "",
  rules: { plans, siteUrl: "http://site", maxWaitMs: 10_000, inputRequestsPerMinute: 3_000 },
  log: (level, event, fields) => console.error(JSON.stringify({ level, event, ...fields })),
});

Bun.serve({
  port: Number(port),
  hostname: "127.0.0.1",
  async fetch(request) {
    if (new URL(request.url).pathname === "/counts") return Response.json(books.lane.counts);
    const { key, requestId, tokens, runsMs } = (await request.json()) as Record<string, string & number>;
    try {
      const principal = await books.principal(key!);
      if (principal === null) return new Response("401", { status: 401 });
      const admitted = await books.admit({ ...principal, ask: ask(5_000), inputTokens: 0, requestId: requestId! });
      if (isRefusal(admitted)) {
        return new Response(admitted.refusal, { status: admitted.refusal === "quota_unverified" ? 503 : 429 });
      }
      using hold = admitted;
      if (hold.ready !== null && (await hold.ready) !== null) return new Response("waited in vain", { status: 429 });
      await Bun.sleep(runsMs!);
      await hold.settle(output(tokens!), false, Date.now());
      return new Response("settled");
    } catch (thrown) {
      if (thrown instanceof OutcomeUnknown) return brokenReply();
      return new Response(String(thrown), { status: 503 });
    }
  },
});
console.log("listening");
process.on("SIGTERM", () => void books.close().then(() => process.exit(0)));
