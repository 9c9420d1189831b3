// What `check` and `doctor` say of the identity provider.
import { expect, test } from "bun:test";
import { providerFindings } from "../../src/commands/provider-findings.ts";
import { readConfig } from "../../src/config/config.ts";
import { ScriptedProvider } from "../fixtures/scripted-provider.ts";

const found = async (issuer: string, more = "", server = 'base_url = "https://llm.example.org"') => {
  const toml = `[server]\n${server}\n[oidc]\nissuer = "${issuer}"\nclient_id = "tollgate"\nname = "Acme"\n${more}`;
  return (await providerFindings(readConfig("tollgate.toml", toml, {}, {}))).map(({ level, detail }) => [
    level,
    detail,
  ]);
};
const limited = 'allowed_domains = ["example.org"]';

test("a provider that is well is told with what must be registered there", async () => {
  await using provider = await ScriptedProvider.start();
  expect(await found(provider.issuer, limited)).toEqual([
    [
      "ok",
      `Acme at ${provider.issuer}, a public client; registered there must be https://llm.example.org/sign-in/callback`,
    ],
  ]);
  expect([...provider.asked.keys()]).toEqual(["discovery", "jwks"]);
});

test("one that is away, has no keys or is another is a problem", async () => {
  await using provider = await ScriptedProvider.start();
  provider.away.set("jwks", 404);
  expect((await found(provider.issuer, limited))[0]).toEqual([
    "problem",
    expect.stringContaining("/jwks answers with status 404"),
  ]);
  provider.away.clear();
  provider.discovery = { issuer: "https://another.example" };
  expect((await found(provider.issuer, limited))[0]?.[0]).toBe("problem");
  provider.discovery = { jwks_uri: undefined };
  expect((await found(provider.issuer, limited))[0]).toEqual([
    "problem",
    expect.stringContaining("metadata lacks jwks_uri"),
  ]);
  expect((await found("http://127.0.0.1:9", limited))[0]).toEqual([
    "problem",
    expect.stringContaining("cannot be reached"),
  ]);
});

test("that everybody may come in, and that nobody knows the address, are warnings", async () => {
  await using provider = await ScriptedProvider.start();
  const levels = await found(provider.issuer, "", "");
  expect(levels.map(([level]) => level)).toEqual(["ok", "warning", "warning"]);
  expect(levels.flat().join()).toContain("everyone at the provider may sign in");
  expect(levels.flat().join()).toContain("base_url is missing");
});

test("without a provider nothing is said", async () => {
  expect(await providerFindings(readConfig(null, "", {}, {}))).toEqual([]);
});
