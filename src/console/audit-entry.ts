// Writes an operator's call to the audit log.
import type { AuditAction } from "../core/audit-actions.ts";
import type { Unit } from "../account/office.ts";
import type { AccountId } from "../core/types.ts";
import type { Call } from "./routes/route.ts";

export type OperatorCall = Pick<Call<"operator", unknown, unknown>, "visitor" | "address">;

/** In one commit with what it did. */
export const audit = (
  { auditLog, now }: Unit,
  { visitor, address }: OperatorCall,
  action: AuditAction,
  subject: AccountId,
  detail: string,
): void => auditLog.append({ at: now, operator: visitor.account.id, address, action, subject, detail });
