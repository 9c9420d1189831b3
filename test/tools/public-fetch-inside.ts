// Addresses that strangers chose, tried in a network in which every address of the internet is a server that answers:
// whatever is fetched although it must not be, is fetched, and seen. The system's own packets are the judge. This file is
// run by public-fetch-network.test.ts within a network namespace.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PublicFetchClient } from "../../src/tools/fetch/public-fetch-client.ts";
import { FetchRefused, type FetchOptions } from "../../src/tools/fetch/public-fetch.ts";
import { eventually } from "../fixtures/eventually.ts";
import { NameServer, type Answer, type RecordType } from "../fixtures/name-server.ts";
import { nameServerAddress } from "../fixtures/network-namespace.ts";
import { longForm } from "../fixtures/optional.ts";
import { PacketLog } from "../fixtures/packet-log.ts";
import { pixel, pixelUrl } from "../fixtures/pictures.ts";
import { PublicServer } from "../fixtures/public-server.ts";
import { post } from "../fixtures/requests.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 120_000;

const publicIPv4 = "8.8.4.4";
const publicIPv6 = "2606:4700:0:0:0:0:68:1";
const otherPublicIPv4 = "93.184.216.34";
const ownPublicIPv4 = "93.184.216.35";
const unreachableIPv4 = "93.184.216.36";

/** What names are; a function is asked at each question. */
const names: Readonly<Record<string, Answer | ((type: RecordType) => Answer)>> = {
  "pictures.com": { addresses: [publicIPv4] },
  "six.pictures.com": { addresses: [publicIPv6] },
  "both.pictures.com": { addresses: [publicIPv6, publicIPv4] },
  "alias.pictures.com": { alias: "pictures.com", addresses: [publicIPv4] },
  "other.com": { addresses: [otherPublicIPv4] },
  "private.pictures.com": { addresses: ["10.0.0.1"] },
  "loopback.pictures.com": { addresses: ["127.0.0.1"] },
  "loopback6.pictures.com": { addresses: ["::1"] },
  "mapped.pictures.com": { addresses: ["::ffff:8.8.4.4"] },
  "mixed.pictures.com": { addresses: [publicIPv4, "192.168.0.1"] },
  "mixed6.pictures.com": { addresses: [publicIPv4, "fd00::1"] },
  "private-alias.pictures.com": { alias: "private.pictures.com", addresses: ["10.0.0.1"] },
  "metadata.pictures.com": { addresses: ["169.254.169.254"] },
  "own.pictures.com": { addresses: [ownPublicIPv4] },
  "half.pictures.com": { addresses: [unreachableIPv4, publicIPv4] },
  localhost: { addresses: [publicIPv4] },
  "printer.local": { addresses: [publicIPv4] },
  intranet: { addresses: [publicIPv4] },
  "turning.pictures.com": (type) => ({
    addresses: type === "AAAA" ? [] : [turn++ % 2 === 0 ? publicIPv4 : "127.0.0.1"],
  }),
  "turning-random.pictures.com": (type) => ({
    addresses: [
      type === "A" ? (Math.random() < 0.5 ? publicIPv4 : "10.9.8.7") : Math.random() < 0.5 ? publicIPv6 : "::1",
    ],
  }),
};
let turn = 0;

let nameServer: NameServer;
let web: PublicServer;
let packets: PacketLog;
let stack: Stack;
const fetcher = new PublicFetchClient();

/** Private rows; a URL with no host stays as it is. */
const refused: Readonly<Record<string, readonly string[]>> = {
  "F1 IPv4": [
    ...["127.0.0.1", "127.255.255.254", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "017700000001", "0.0.0.0"],
    ...["0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.169.254"],
    ...["192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "240.0.0.1"],
    ...["255.255.255.255", "168.63.129.16", "１２７.0.0.1", "127.0.0.1."],
  ].map((host) => `http://${host}/image`),
  "F2 IPv6": [
    ...["::", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.4.4", "::ffff:0:7f00:1", "::127.0.0.1"],
    ...["64:ff9b::7f00:1", "64:ff9b::808:404", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:808:404::1", "2001::1"],
    ...["2606:4700::5efe:7f00:1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1"],
    ...["100::1", "3fff::1", "4000::1", "0:0:0:0:0:0:0:1"],
  ].map((host) => `http://[${host}]/image`),
  "F3 names": [
    ...["private.pictures.com", "loopback.pictures.com", "loopback6.pictures.com", "mapped.pictures.com"],
    ...["mixed.pictures.com", "mixed6.pictures.com", "private-alias.pictures.com", "metadata.pictures.com"],
    ...["private.pictures.com.", "localhost", "localhost.", "LOCALHOST", "printer.local", "intranet", "nowhere.com"],
    ...["①②⑦.⓪.⓪.①", "127。0。0。1"],
  ].map((host) => `http://${host}/image`),
  "an address of this machine itself": [`http://${ownPublicIPv4}/image`, "http://own.pictures.com/image"],
  "F5 redirects": [
    ...[
      "http://127.0.0.1/image",
      "http://[::1]/image",
      "http://private.pictures.com/image",
      "ftp://pictures.com/image",
    ],
    ...["file:///etc/hostname", "http://pictures.com:22/image", "http://user@pictures.com/image", "//10.0.0.1/image"],
  ].map((target) => `http://pictures.com/to/${encodeURIComponent(target)}`),
  "F5 the sixth redirect": ["http://pictures.com/hops/6"],
  "F6 one parser": [
    ...[
      "http://user@pictures.com/image",
      "http://user:secret@pictures.com/image",
      "http://pictures.com@127.0.0.1/image",
    ],
    ...["http://127.0.0.1#@pictures.com/image", "http://127.0.0.1\\@pictures.com/image", "http:\\\\127.0.0.1\\image"],
    ...["http://127.0.0.1\t/image", "ht\ntp://127.0.0.1/image", "http://%31%32%37.0.0.1/image", "http:127.0.0.1/image"],
    ...["http:///127.0.0.1/image", "http://127.0.0.1%2f@pictures.com/image", "http://[::1%25lo]/image"],
  ],
  "F7 other schemes": [
    ...["ftp://pictures.com/image", "file:///etc/hostname", "gopher://127.0.0.1:80/_GET", "javascript:1"],
    ...["ws://pictures.com/image", "unix:///var/run/docker.sock", "blob:http://pictures.com/image", "about:blank"],
  ],
  "F8 ports": [22, 25, 53, 81, 3000, 6379, 8000, 8400, 9200, 11434].map((port) => `http://pictures.com:${port}/image`),
  "F10 certificates": [
    ...["https://other.com/image", `https://${otherPublicIPv4}/image`, `https://[${publicIPv6}]/image`],
    "https://pictures.com:80/image",
  ],
  "F9 bodies": [
    ...["size/8388609", "until-close/8388609", "lying-short", "lying-huge", "gzip"].map(
      (page) => `http://pictures.com/${page}`,
    ),
  ],
  "F12 headers of images": ["dimensions/10000x5001", "dimensions/0x1", "binary.bin", "latin1.txt"].map(
    (page) => `http://pictures.com/${page}`,
  ),
  "F13 failures": ["status/404", "status/500", "status/204", "status/206", "nothing"].map(
    (page) => `http://pictures.com/${page}`,
  ),
};

const served: readonly string[] = [
  "http://pictures.com/image",
  "http://pictures.com:80/image?a=b#c",
  "http://pictures.com:8080/image",
  "https://pictures.com/image",
  "https://pictures.com:8443/image",
  "https://www.pictures.com./image",
  "http://six.pictures.com/image",
  "https://both.pictures.com/image",
  "http://alias.pictures.com/image",
  "http://half.pictures.com/image",
  `http://${publicIPv4}/image`,
  `https://${publicIPv4}/image`,
  `http://[${publicIPv6}]/image`,
  "http://pictures.com/hops/5",
  `http://pictures.com/to/${encodeURIComponent("https://other.pictures.com/image")}`,
  "HTTP://PICTURES.COM/image",
  "http://pictures.com/dimensions/10000x5000",
];
/** The servers of these answer 8 MiB, and say so or do not. */
const largest: readonly string[] = ["http://pictures.com/size/8388608", "http://pictures.com/until-close/8388608"];

const options: FetchOptions = {
  account: 1,
  bytesMax: 8 * 1024 * 1024,
  timeoutMs: 20_000,
  redirectsMax: 5,
  accept: "*/*",
};
const never = new AbortController().signal;
/** "fetched" or the whole text of the error, which must tell nothing. */
const outcome = (url: string, more: Partial<FetchOptions> = {}, cancelSignal = never): Promise<string> =>
  fetcher.get(url, { ...options, ...more }, cancelSignal).then(
    () => "fetched",
    (error: Error) => (error instanceof FetchRefused ? `${error}` : `not refused: ${error}`),
  );
const refusal = String(new FetchRefused());

/** Which of `destinations` nobody may be sent to: all but the public addresses, the name server and the test's own parts. */
function strays(destinations: ReadonlySet<string>): string[] {
  const own = new Set([stack.node.port, Number(new URL(stack.gateway.url).port)]);
  return [...destinations].filter((destination) => {
    const [protocol, address = "", port] = destination.split(" ");
    if (protocol === "udp") return address !== nameServerAddress && port !== "0";
    if (address === "127.0.0.1" && !["80", "443", "8080", "8443"].includes(port!)) return false; // the test's own parts
    if (own.has(Number(port))) return false;
    return (
      ![publicIPv4, publicIPv6, otherPublicIPv4].includes(address) || !["80", "443", "8080", "8443"].includes(port!)
    );
  });
}

beforeAll(async () => {
  nameServer = await NameServer.start((name, type) => {
    const answer = name === "www.pictures.com" || name === "other.pictures.com" ? names["pictures.com"] : names[name];
    return typeof answer === "function" ? answer(type) : answer;
  });
  web = new PublicServer([80, 8080], [443, 8443]);
  expect(Bun.spawnSync(["ip", "address", "add", `${ownPublicIPv4}/32`, "dev", "lo"]).success).toBe(true);
  expect(Bun.spawnSync(["ip", "route", "add", "unreachable", `${unreachableIPv4}/32`]).success).toBe(true);
  packets = new PacketLog();
  // Proxies of the environment would be asked instead of the address that was judged.
  const proxies = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
  for (const name of proxies) process.env[name] = "http://10.1.1.1:8080";
  stack = await Stack.start({ config: '[search]\nprovider = "none"\n' });
  for (const name of proxies) delete process.env[name];
  packets.destinations();
}, timeLimit);
afterAll(async () => {
  packets[Symbol.dispose]();
  web[Symbol.dispose]();
  await nameServer[Symbol.asyncDispose]();
  await stack[Symbol.asyncDispose]();
});

describe("the canaries are awake", () => {
  test("a connection to a private address is seen, and answered", async () => {
    const reply = await fetch("http://10.0.0.1/image");
    expect(Buffer.from(await reply.arrayBuffer())).toEqual(pixel);
    expect(strays(packets.destinations())).toContain("tcp 10.0.0.1 80");
  });
});

describe("the fetcher", () => {
  test.each(Object.entries(refused).flatMap(([row, urls]) => urls.map((url) => [row, url] as const)))(
    "%s: %j is refused",
    async (row, url) => {
      const result = await outcome(url);
      if (row.startsWith("F12") && !url.includes("binary"))
        expect(result).toBe("fetched"); // refused as an image only
      else if (!row.startsWith("F12")) expect(result).toBe(refusal); // F13: all look alike
      expect(strays(packets.destinations())).toEqual([]);
    },
    timeLimit,
  );

  test.each([...served, ...largest])("%j is fetched", async (url) => {
    expect(await outcome(url)).toBe("fetched");
    expect(strays(packets.destinations())).toEqual([]);
  });

  test("F3 a mixed answer is refused without a packet to its public address", async () => {
    expect(await outcome("http://mixed.pictures.com/image")).toBe(refusal);
    expect([...packets.destinations()].filter((destination) => destination.startsWith("tcp"))).toEqual([]);
  });

  test(
    "F4 a name that turns between the look and the connection reaches nothing private in 1,000 rounds",
    async () => {
      for (const name of ["turning.pictures.com", "turning-random.pictures.com"]) {
        nameServer.questions.length = 0;
        const results: string[] = [];
        for (let round = 0; round < 500; round++) {
          results.push(await outcome(`http://${name}/image`));
          if (round % 20 === 0) expect(strays(packets.destinations())).toEqual([]);
        }
        expect(strays(packets.destinations())).toEqual([]);
        const fetched = results.filter((result) => result === "fetched").length;
        expect(results.filter((result) => result === refusal)).toHaveLength(500 - fetched);
        expect(fetched).toBeGreaterThan(50);
        expect(fetched).toBeLessThan(450);
        // looked up once each: nobody asks again to connect
        expect(nameServer.questions.filter((question) => question === `A ${name}`)).toHaveLength(500);
        expect(nameServer.questions.filter((question) => question === `AAAA ${name}`)).toHaveLength(500);
      }
    },
    timeLimit,
  );

  test("F5 a request says nothing of ours or of the client", async () => {
    const { bytes } = await fetcher.get("http://pictures.com/head.txt?a=b", { ...options, accept: "image/*" }, never);
    expect(Buffer.from(bytes).toString()).toBe(
      "GET /head.txt?a=b HTTP/1.1\r\nhost: pictures.com\r\naccept: image/*\r\naccept-encoding: identity\r\n" +
        "user-agent: Tollgate\r\nconnection: close\r\n\r\n",
    );
  });

  test.each(["endless", "drip", "silent"])("F9 %s ends with the time, and without a trace", async (page) => {
    const url = `http://pictures.com/${page}`;
    expect(await outcome(url, { timeoutMs: 300, bytesMax: 1e9 })).toBe(refusal);
    expect(await outcome("http://pictures.com/image")).toBe("fetched");
  });

  test("F9 an endless body ends with the bytes", async () =>
    expect(await outcome("http://pictures.com/endless")).toBe(refusal));

  test("a client that leaves ends it at once", async () => {
    const cancelSignal = new AbortController();
    const result = outcome("http://pictures.com/silent", {}, cancelSignal.signal);
    setTimeout(() => cancelSignal.abort(), 20);
    expect(await result).toBe(refusal);
    expect(await outcome("http://pictures.com/image", {}, AbortSignal.abort())).toBe(refusal);
  });
});

describe("the gateway", () => {
  const image = (url: string) => ({ type: "image_url", image_url: { url } });

  /** The data URLs of the images that the node was given for these addresses; and it was given nothing else. */
  async function imagesAtNode(urls: readonly string[]): Promise<string[]> {
    const marker = stack.node.marker("text");
    const content = [{ type: "text", text: `[[${marker}]]` }, ...urls.map(image)];
    const account = await stack.gateway.account();
    const reply = await post(stack, account, { model: "core-3", messages: [{ role: "user", content }] });
    expect(reply.status, await reply.text()).toBe(200);
    const { messages } = (await stack.node.request(marker)).body as { messages: { content: unknown }[] };
    const given = messages.at(-1)!.content;
    if (typeof given === "string") return [];
    return (given as { type: string; image_url?: { url: string } }[]).flatMap(({ image_url }) => image_url?.url ?? []);
  }

  test.each(Object.entries(refused))(
    "%s: the request is answered without them, and nobody is sent to",
    async (_, urls) => {
      expect(await imagesAtNode([...urls, "http://pictures.com/image"])).toEqual([pixelUrl]);
      expect(strays(packets.destinations())).toEqual([]);
    },
    timeLimit,
  );

  test("F12 the node is given bytes, never an address", async () => {
    const given = await imagesAtNode(served);
    expect(given).toHaveLength(served.length);
    for (const url of given) expect(url).toStartWith("data:image/png;base64,");
  });

  test(
    "F11 of 1,000 addresses 100 are fetched",
    async () => {
      const urls = Array.from({ length: 1_000 }, (_, index) => `http://pictures.com/image?${index}`);
      expect(await imagesAtNode(urls)).toHaveLength(100);
    },
    timeLimit,
  );

  test(
    "F11 more than 32 MiB together are not fetched",
    async () => {
      const urls = Array.from({ length: 6 }, (_, index) => `http://pictures.com/size/8388608?${index}`);
      const given = await imagesAtNode(urls);
      expect(given.length).toBeGreaterThanOrEqual(3);
      expect(given.length).toBeLessThanOrEqual(4);
    },
    timeLimit,
  );

  test.each([
    ["/v1/messages/count_tokens", { type: "image", source: { type: "url", url: "http://pictures.com/image" } }],
    ["/v1/messages/count_tokens", { type: "document", source: { type: "url", url: "http://pictures.com/hello.pdf" } }],
    ["/v1/responses/input_tokens", { type: "input_image", image_url: "http://pictures.com/image" }],
    ["/v1/tokenize", image("http://pictures.com/image")],
  ])("counting at %s fetches nothing: %j", async (path, part) => {
    packets.destinations();
    const messages = [{ role: "user", content: [part] }];
    const body = { model: "core-3", ...(path.includes("responses") ? { input: messages } : { messages }) };
    const reply = await post(stack, await stack.gateway.account(), body, { path });
    expect(reply.status, await reply.text()).toBe(200);
    expect([...packets.destinations()].filter((destination) => destination.includes(publicIPv4))).toEqual([]);
  });

  test("nor does a request that is refused: a model that reads text only, an empty balance", async () => {
    packets.destinations();
    const messages = [{ role: "user", content: [image("http://pictures.com/image")] }];
    const poor = await stack.gateway.account(0);
    const refusals = [
      await post(stack, await stack.gateway.account(), { model: "open-01-3BIT-REAP", messages }),
      await post(stack, poor, { model: "core-3", max_tokens: 60_000, messages }),
    ];
    expect(refusals.map(({ status }) => status)).toEqual([400, 429]);
    expect([...packets.destinations()].filter((destination) => destination.includes(publicIPv4))).toEqual([]);
  });

  test.skipIf(!longForm)(
    "F9 an address that drips and redirects has 20 seconds in all",
    async () => {
      const urls = [
        "http://pictures.com/drip",
        `http://pictures.com/to/${encodeURIComponent("http://pictures.com/drip")}`,
      ];
      expect(await imagesAtNode([...urls, "http://pictures.com/image"])).toEqual([pixelUrl]);
      expect(web.open).toBe(0);
    },
    timeLimit,
  );

  test(
    "a stream is kept alive while an address is slow, and ends it when the client leaves",
    async () => {
      const marker = stack.node.marker("text");
      const content = [{ type: "text", text: `[[${marker}]]` }, image("http://pictures.com/silent")];
      const leave = new AbortController();
      const account = await stack.gateway.account();
      const body = { model: "core-3", stream: true, messages: [{ role: "user", content }] };
      const reply = await post(stack, account, body, { signal: leave.signal });
      const first = await reply.body!.getReader().read();
      expect(Buffer.from(first.value!).toString()).toStartWith(":");
      expect(web.open).toBe(1);
      leave.abort();
      await eventually("the address is let go", async () => web.open === 0);
      await stack.gateway.expectNothingReserved();
      expect(await stack.node.requests(marker)).toEqual([]);
    },
    timeLimit,
  );
});
