// Tollgate as a subject
import type { ClientDialect } from "./dialect.ts";
import type { Subject } from "./subject.ts";
export async function startGateway(_settings: {
  nodePort: number;
  dialect: ClientDialect;
  requests: number;
}): Promise<Subject> {
  throw new Error("the gateway is not runnable yet");
}
