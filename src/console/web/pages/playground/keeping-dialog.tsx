// Where conversations are kept: what that means, and the choice of the account.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { bytes, count as number } from "../../format.ts";
import { FormDialog } from "../../parts/asking-dialogs.tsx";
import { t } from "../../texts.ts";
import { keepOnServer } from "./kept.ts";
import { server } from "./places.ts";

export function KeepingDialog({ count, onClose }: Readonly<{ count: number; onClose: () => void }>): VNode {
  const [left, setLeft] = useState<number | null>(null);
  const { state, conversations_max, bytes_max } = server.value;
  const isOn = state === "on";
  return (
    <FormDialog
      title={t(isOn ? "play.keep_here_title" : "play.keep_there_title")}
      submit={t(isOn ? "play.keep_here" : "play.keep_there")}
      onSubmit={() => keepOnServer(!isOn, setLeft).then(onClose)}
      onClose={onClose}
    >
      <ul class="prose">
        {isOn ? (
          <>
            <li>{t("play.keep_here_what", { count })}</li>
            <li>{t("play.keep_here_others")}</li>
          </>
        ) : (
          <>
            <li>{t("play.keep_there_what", { count })}</li>
            <li>{t("play.keep_there_where")}</li>
            <li>{t("play.keep_there_how_long", { most: number(conversations_max), bytes: bytes(bytes_max) })}</li>
          </>
        )}
      </ul>
      {left !== null && <p role="status">{t("play.moving", { left })}</p>}
    </FormDialog>
  );
}
