// Creates the audit log's entry for an operator's call.
import type { AuditAction, AuditEntry } from "../account/audit.ts";
import type { Clock } from "../core/clock.ts";
import type { AccountId } from "../core/types.ts";
import type { Call } from "./routes/route.ts";

export type OperatorCall = Pick<Call<"operator", unknown, unknown>, "visitor" | "address">;

export const auditEntry = (
  clock: Clock,
  { visitor, address }: OperatorCall,
  action: AuditAction,
  subject: AccountId,
  detail: string,
): Omit<AuditEntry, "id"> => ({ at: clock.wall(), operator: visitor.account.id, address, action, subject, detail });
