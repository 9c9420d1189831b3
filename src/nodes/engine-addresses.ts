// Looks for engines on a host, at the ports that they usually have.
import type { Ms } from "../core/types.ts";
import { listsModels, localEngines } from "./engine.ts";

/** Further ports that engines, and proxies in front of them, are often given. */
const otherPorts = [8001, 8081, 5000, 3000, 4000];

/** Addresses where something lists models as engines do. */
export async function engineAddresses(host: string, timeoutMs: Ms): Promise<string[]> {
  const urls = [...localEngines.map(({ port }) => port), ...otherPorts].map((port) => `http://${host}:${port}/v1`);
  const answers = await Promise.all(urls.map((url) => listsModels(url, timeoutMs)));
  return urls.filter((_, at) => answers[at]);
}
