// Nodes and models for operators, and their actions on nodes.
import type { ActivityTotal } from "../../core/activity.ts";
import { hourMs } from "../../core/units.ts";
import type { OperatorModels, OperatorNodes } from "../api/nodes.ts";
import { drain, resume } from "../../office/verbs/server.ts";
import { ask, failedAs } from "../ask.ts";
import type { ConsoleParts } from "../parts.ts";
import { type CallOf, fail, type Failure, isFailure, type Route, route } from "./route.ts";

type Parts = Pick<ConsoleParts, "nodes" | "configuration" | "activity" | "work" | "clock">;

export function nodeRoutes({ nodes, configuration, activity, work, clock }: Parts): Route[] {
  const show = async (): Promise<OperatorNodes> => ({
    nodes: [...(await nodes.states())],
    waiting: nodes.waiting,
    gateway: configuration.gateway,
  });

  return [
    route("GET /operator/line", () => nodes.line()),
    route("GET /operator/nodes", show),
    route("POST /operator/nodes/drain", (call) => setDrained(call, drain)),
    route("POST /operator/nodes/resume", (call) => setDrained(call, resume)),

    route("POST /operator/nodes/test", async ({ body }) => {
      const tested = await nodes.test(body.name);
      return "refused" in tested ? fail("conflict", `${tested.refused}.`) : tested;
    }),

    route("GET /operator/models", async () => {
      const thisHour = Math.floor(clock.wall() / hourMs) * hourMs;
      const use = new Map(
        (await activity.totals("model", thisHour - 23 * hourMs)).map(({ name, total }) => [name, total]),
      );
      return { models: nodes.models().map((model) => ({ ...model, day: dayOf(use.get(model.id)) })) };
    }),
  ];

  async function setDrained(
    call: CallOf<"POST /operator/nodes/drain" | "POST /operator/nodes/resume">,
    verb: typeof drain,
  ): Promise<OperatorNodes | Failure> {
    const outcome = await ask({ work }, "operator", call, verb, call.body).catch(failedAs("not_found"));
    return isFailure(outcome) ? outcome : show();
  }
}

type Day = OperatorModels["models"][number]["day"];

function dayOf(total: ActivityTotal["total"] | undefined): Day {
  const [requests = 0] = total?.requests ?? [];
  const [failed = 0] = total?.failed ?? [];
  const [input = 0] = total?.input ?? [];
  const [output = 0] = total?.output ?? [];
  const [first_token_p50_ms = null] = total?.firstTokenP50 ?? [];
  return { requests, failed, input, output, first_token_p50_ms };
}
