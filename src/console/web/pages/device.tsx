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
import { rich, t } from "../texts.ts";

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
      setEnd(t("device.done", { name: made.name }));
    });
  const deny = (): void =>
    void action.run(async () => {
      await post("/device/deny", { user_code: code });
      setEnd(t("device.denied"));
    });
  return (
    <Page title={t("menu.device")}>
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
          <CodeField code={code} onCode={setCode} />
        ) : (
          <>
            <Asking waiting={waiting} code={code} />
            <TextField
              label={t("common.name")}
              hint={t("device.name_hint")}
              required
              maxLength={64}
              value={name}
              onValue={setName}
            />
          </>
        )}
        <FormError message={action.error} />
        {end === null && (
          <div class="row">
            <Button
              caption={t(waiting === null ? "common.continue" : "device.approve")}
              type="submit"
              class="button primary"
              busy={action.busy}
            />
            {waiting !== null && <Button caption={t("device.deny")} class="button" onClick={deny} />}
          </div>
        )}
      </form>
    </Page>
  );
}

const CodeField = ({ code, onCode }: Readonly<{ code: string; onCode: (code: string) => void }>): VNode => (
  <TextField
    label={t("device.code")}
    hint={t("device.code_hint")}
    required
    autofocus
    autocomplete="off"
    autocapitalize="characters"
    spellcheck={false}
    maxLength={40}
    value={code}
    onValue={onCode}
  />
);

const Asking = ({ waiting, code }: Readonly<{ waiting: WaitingDevice; code: string }>): VNode => (
  <>
    <p>
      {rich(waiting.machine === "" ? "device.asks" : "device.asks_on", {
        program: <strong>{waiting.program}</strong>,
        machine: <strong>{waiting.machine}</strong>,
        address: waiting.address || t("device.unknown"),
        email: <strong>{account.value?.email}</strong>,
      })}
    </p>
    <p class="quiet">{rich("device.warning", { code: <code>{code.toUpperCase()}</code> })}</p>
  </>
);
