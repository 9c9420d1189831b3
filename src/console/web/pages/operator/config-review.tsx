// What a change of the configuration file would do, and what another operator did to it meanwhile.
import type { VNode } from "preact";
import type { ConfigEdited, ConfigShown } from "../../../api/server.ts";
import { ago } from "../../format.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormError } from "../../parts/field.tsx";
import type { Action } from "../../resource.ts";
import { rich, t } from "../../texts.ts";
import { valuesIn, type Wish } from "./config-form.tsx";

type ReviewProps = Readonly<{ edited: ConfigEdited; action: Action; onApply: () => void; onClose: () => void }>;

export const ReviewDialog = ({ edited, action, onApply, onClose }: ReviewProps): VNode => (
  <Dialog title={t("config.would_change")} onClose={onClose}>
    <Outcome of={edited} />
    <FormError message={action.error} />
    <footer>
      <Button caption={t("config.cancel")} onClick={onClose} />
      <Button
        caption={t("config.apply")}
        class="button primary"
        busy={action.busy}
        disabled={edited.what.length === 0}
        onClick={onApply}
      />
    </footer>
  </Dialog>
);

const Outcome = ({ of }: { of: ConfigEdited }): VNode => (
  <div class="stack">
    <pre class="message diff" tabIndex={0} aria-label={t("config.lines")}>
      {of.diff.map(({ sign, text }, at) => {
        const line = sign === null ? "…\n" : `${sign} ${text}\n`;
        return sign === "+" ? <ins key={at}>{line}</ins> : sign === "-" ? <del key={at}>{line}</del> : line;
      })}
    </pre>
    {of.diff.length === 0 && of.what.map((each) => <p key={each}>{each}</p>)}
    {of.what.length === 0 && <p>{t("config.nothing")}</p>}
    {of.warnings.map((line) => (
      <p key={line} class="notice">
        <span class="break">{line}</span>
      </p>
    ))}
    {of.needs_restart.length > 0 && <p>{t("config.restart", { what: of.needs_restart.join(", ") })}</p>}
  </div>
);

type ConflictProps = Readonly<{
  wish: Wish;
  /** The file as it was read here, and as it is now. */
  seen: ConfigShown;
  now: ConfigShown;
  action: Action;
  onTheirs: () => void;
  onMine: () => void;
  onClose: () => void;
}>;

export function ConflictDialog({ wish: { own }, seen, now, action, onTheirs, onMine, onClose }: ConflictProps): VNode {
  const known = new Set(seen.changes.map(({ at }) => at));
  const theirs = now.changes.filter(({ at }) => !known.has(at));
  const [before, after] = [valuesIn(seen, own), valuesIn(now, own)];
  const both = Object.entries(own?.typed ?? {}).filter(([key]) => before[key] !== after[key]);
  return (
    <Dialog title={t("config.conflict")} onClose={onClose}>
      <div class="stack">
        {theirs.length === 0 && <p>{t("config.conflict_by_hand")}</p>}
        {theirs.map(({ at, by, what }) => (
          <p key={at} class="break">
            <strong>{by}</strong>, {ago(at)}: {what.join("; ")}
          </p>
        ))}
        {both.map(([key, mine]) => (
          <p key={key} class="notice">
            <span class="break">
              {rich("config.conflict_both", {
                key: <code>{key}</code>,
                theirs: <code>{after[key] ?? "–"}</code>,
                mine: <code>{mine === null || mine === "" ? "–" : mine}</code>,
              })}
            </span>
          </p>
        ))}
        <p>{t("config.conflict_kept")}</p>
        <FormError message={action.error} />
      </div>
      <footer>
        <Button caption={t("config.theirs")} onClick={onTheirs} />
        <Button caption={t("config.mine")} class="button primary" busy={action.busy} onClick={onMine} />
      </footer>
    </Dialog>
  );
}
