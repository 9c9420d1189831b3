// Starts what a benchmark compares: the node, and the ways to it that are measured.
import type { DialectName } from "./dialect.ts";
import { clientDialects, dialectNamed } from "./dialect.ts";
import { startGateway } from "./gateway.ts";
import { nginxMissing, startNginx } from "./nginx.ts";
import type { NodeSettings, PacedNode } from "./paced-node.ts";
import { startPacedNode } from "./paced-node.ts";
import { isPeer, peerMissing, peerNames, startPeer } from "./peers.ts";
import type { Subject, SubjectName } from "./subject.ts";

export type Lineup = Readonly<{
  node: PacedNode;
  subjects: readonly Subject[];
  /** Baselines that are missing, and why. */
  skipped: readonly string[];
  stop(): Promise<void>;
}>;

export type LineupSettings = Readonly<{
  node: NodeSettings;
  /** Comma-separated subjects, e.g. "direct,nginx,tollgate"; peers too. */
  only: string;
  /** The dialect spoken to Tollgate; the baselines relay the node's own, chat-completions. */
  dialect: string;
  /** Requests that Tollgate will get at most: decides how many accounts it needs. */
  requests: number;
}>;

/** Starts everything; a missing nginx or peer is left out, and said. */
export async function startLineup(settings: LineupSettings): Promise<Lineup> {
  const names = settings.only.split(",").map(subjectNamed);
  const node = await startPacedNode(settings.node);
  const subjects: Subject[] = [];
  const skipped: string[] = [];
  const stop = async () => {
    for (const subject of subjects) await subject.stop();
    await node.stop();
  };
  try {
    for (const name of names) {
      const missing = missingReason(name);
      if (missing !== null) {
        skipped.push(`${name} skipped: ${missing}`);
        continue;
      }
      try {
        subjects.push(await startSubject(name, node, dialectNamed(settings.dialect), settings));
      } catch (thrown) {
        if (!isPeer(name)) throw thrown;
        // Strangers' programs may need what this machine lacks; the others can be compared all the same.
        console.error(thrown);
        skipped.push(`${name} skipped: it did not start`);
      }
    }
  } catch (thrown) {
    await stop();
    throw thrown;
  }
  for (const line of skipped) console.log(`  ${line}`);
  return { node, subjects, skipped, stop };
}

async function startSubject(
  name: SubjectName,
  node: PacedNode,
  dialect: DialectName,
  settings: LineupSettings,
): Promise<Subject> {
  switch (name) {
    case "direct":
      return {
        name,
        port: node.port,
        dialect: clientDialects.chat,
        keys: ["unused"],
        pids: [],
        stop: () => Promise.resolve(),
      };
    case "nginx":
      return startNginx(node.port);
    case "tollgate":
      return startGateway({ nodePort: node.port, dialect: clientDialects[dialect], requests: settings.requests });
    default:
      return startPeer(name, node.port);
  }
}

function missingReason(name: SubjectName): string | null {
  if (name === "nginx") return nginxMissing();
  return isPeer(name) ? peerMissing(name) : null;
}

function subjectNamed(name: string): SubjectName {
  if (name === "direct" || name === "nginx" || name === "tollgate" || isPeer(name)) return name;
  throw new Error(`--only needs direct, nginx, tollgate or one of ${peerNames.join(", ")}, not "${name}"`);
}
