// A machine wants to sign in: who asks, from where, and the person's answer. Nothing is approved by opening the page.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { WaitingDevice } from "../../api/sign-in.ts";
import { Button } from "../parts/button.tsx";
import { FormError, TextField } from "../parts/field.tsx";
import { Page } from "../parts/page.tsx";
import { post } from "../request.ts";
import { useAction } from "../resource.ts";
import { place } from "../route.ts";
import { account } from "../session.ts";

export function DevicePage(): VNode {
  const [code, setCode] = useState(place.value.query.get("user_code") ?? "");
  const [waiting, setWaiting] = useState<WaitingDevice | null>(null);
  const [name, setName] = useState("");
  const [end, setEnd] = useState<string | null>(null);
  const action = useAction();
  const look = (): void =>
    void action.run(async () => {
      const found = await post("/device", { user_code: code });
      setName(found.name);
      setWaiting(found);
    });
  const approve = (): void =>
    void action.run(async () => {
      const made = await post("/device/approve", { user_code: code, name: name.trim() });
      setEnd(`Signed in as “${made.name}”. Go back to your program; the API key page lists it and revokes it.`);
    });
  const deny = (): void =>
    void action.run(async () => {
      await post("/device/deny", { user_code: code });
      setEnd("Denied. The program was told no.");
    });
  return (
    <Page title="Sign in a program">
      <form
        class="card stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (waiting === null) look();
          else approve();
        }}
      >
        {end !== null ? (
          <p role="status">{end}</p>
        ) : waiting === null ? (
          <TextField
            label="Code"
            hint="The code that your program shows"
            required
            autofocus
            autocomplete="off"
            autocapitalize="characters"
            spellcheck={false}
            maxLength={40}
            value={code}
            onValue={setCode}
          />
        ) : (
          <>
            <Asking waiting={waiting} code={code} />
            <TextField label="Name" hint="Usage shows it" required maxLength={64} value={name} onValue={setName} />
          </>
        )}
        <FormError message={action.error} />
        {end === null && (
          <div class="row">
            <Button
              caption={waiting === null ? "Continue" : "Approve"}
              type="submit"
              class="button primary"
              busy={action.busy}
            />
            {waiting !== null && <Button caption="Deny" class="button" onClick={deny} />}
          </div>
        )}
      </form>
    </Page>
  );
}

const Asking = ({ waiting, code }: Readonly<{ waiting: WaitingDevice; code: string }>): VNode => (
  <>
    <p>
      <strong>{waiting.program}</strong>
      {waiting.machine !== "" && (
        <>
          {" "}
          on <strong>{waiting.machine}</strong>
        </>
      )}
      , at the address {waiting.address || "unknown"}, wants to use your account <strong>{account.value?.email}</strong>
      .
    </p>
    <p class="quiet">
      These are its own words. Approve only if you have just started this sign-in yourself and your program shows the
      code <code>{code.toUpperCase()}</code>; whoever has it will spend your balance.
    </p>
  </>
);
