// Machines that want to sign in as the person whose browser this is, by the codes that they show.
import { RecentTries } from "../../account/sign-in/recent-tries.ts";
import { AccountError } from "../../account/people/accounts.ts";
import { Devices } from "../../account/sign-in/devices.ts";
import type { DeviceCode } from "../../account/records.ts";
import { keyNameMaxLength, signInWindowMs } from "../../core/limits.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { noteOwn, tooManyTries } from "./entering.ts";
import { type Call, done, fail, type Failure, type Route, route, sentence } from "./route.ts";

/** Of one account, within the window of sign-in attempts. */
const deviceTriesMax = 20;

export function deviceRoutes({ office, clock }: ConsoleParts): Route[] {
  /** A code has 34 bits and lives for ten minutes; still, nobody may try many. */
  const tries = new RecentTries(deviceTriesMax, signInWindowMs);
  /** `decide` gives null where there is no such code. */
  const counted = async <Reply extends object>(
    { visitor: { account } }: Call<"account", unknown, unknown>,
    decide: () => Promise<Reply | null>,
  ): Promise<Reply | Failure> => {
    const [who, now] = [String(account.id), clock.monotonic()];
    const waitMs = tries.waitMs(who, now);
    if (waitMs > 0) return tooManyTries(Math.ceil(waitMs / 1000));
    tries.add(who, now);
    try {
      const decided = await decide();
      if (decided === null) return noSuchCode;
      tries.takeBack(who);
      return decided;
    } catch (thrown) {
      if (thrown instanceof AccountError) return fail("conflict", sentence(thrown));
      throw thrown;
    }
  };

  return [
    route("POST /device", (call) =>
      counted(call, async () => {
        const code = await office.read(({ devices }) => new Devices(devices).find(call.body.user_code));
        return code === null ? null : shownOf(code);
      }),
    ),

    route("POST /device/approve", (call) =>
      counted(call, () =>
        office.change(async (unit) => {
          const { account } = call.visitor;
          const key = await new Devices(unit.devices).approve(account.id, call.body.user_code, call.body.name);
          if (key === null) return null;
          noteOwn(unit, call, "key.create", account.id, `${JSON.stringify(key.name)}, of a machine that signed in`);
          return { name: key.name };
        }),
      ),
    ),

    route("POST /device/deny", (call) =>
      counted(call, async () => {
        const code = await office.change(({ devices }) => new Devices(devices).deny(call.body.user_code));
        return code === null ? null : done;
      }),
    ),
  ];
}

const noSuchCode = fail("not_found", "No machine waits with this code. Codes work once, for ten minutes.");

function shownOf({ program, machine, address, expiresAt }: DeviceCode) {
  const name = machine !== "" ? `${program} on ${machine}` : address !== "" ? `${program} at ${address}` : program;
  return { program, machine, address, name: name.slice(0, keyNameMaxLength), expires_at: timeOf(expiresAt) };
}
