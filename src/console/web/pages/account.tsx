// The account page: theme, password, signed-in browsers, data and deletion.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { BrowserSessions } from "../../api/account.ts";
import { PasswordField } from "../parts/account-fields.tsx";
import { type DataColumn, DataTable } from "../parts/data-table.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { FormError } from "../parts/field.tsx";
import { Page } from "../parts/page.tsx";
import { ProviderButton } from "../parts/provider-button.tsx";
import { isFirstLoad, Loaded } from "../parts/states.tsx";
import { LanguageChoice } from "../parts/language-choice.tsx";
import { ThemeChoice } from "../parts/theme-choice.tsx";
import { toast } from "../parts/toasts.tsx";
import { UndoButton } from "../parts/undo-button.tsx";
import { get, post } from "../request.ts";
import { MailSection } from "./account-mail.tsx";
import { OwnDeletionSection } from "./own-deletion.tsx";
import { useAction, useResource } from "../resource.ts";
import { account, sells, session, signOut } from "../session.ts";
import { Time } from "../parts/time.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { t } from "../texts.ts";

type BrowserSession = BrowserSessions["sessions"][number];

export function AccountPage(): VNode {
  const sessions = useResource(() => get("/sessions"), "sessions");
  const deletion = useResource(() => get("/deletion"), "deletion");
  return (
    <Page
      title={t("menu.account")}
      lead={account.value?.email}
      actions={
        <Button
          caption={t("common.sign_out")}
          onClick={() => void signOut().catch((error: Error) => toast(error.message, "failed"))}
        />
      }
    >
      <div class="stack-large">
        <Card
          title={t("account.appearance")}
          class="card"
          side={<span class="quiet small-text">{t("account.appearance_about")}</span>}
        >
          <div class="grid-2">
            <label class="field">
              {t("language.language")} <LanguageChoice />
            </label>
            <div class="field">
              <span class="label">{t("theme.theme")}</span> <ThemeChoice labeled />
            </div>
          </div>
        </Card>
        {session.value?.passwords === true && <PasswordSection onChanged={sessions.reload} />}
        {session.value?.mail === true && <MailSection />}
        {session.value?.provider != null && <ProviderSection provider={session.value.provider} />}
        <Card
          title={t("account.browsers")}
          side={(sessions.value?.sessions.length ?? 0) > 1 && <EndOthers onEnded={sessions.reload} />}
        >
          <Loaded resource={sessions} lines={1}>
            {(value) => (
              <SessionTable
                sessions={value.sessions}
                end={(id) => post(`/sessions/${id}/end`)}
                onEnded={sessions.reload}
              />
            )}
          </Loaded>
        </Card>
        <section class="card stack">
          <h2>{t("account.data")}</h2>
          <p class="quiet small-text">{t(sells.value ? "account.data_about_sells" : "account.data_about")}</p>
          <ExportButton path="/export">{t("account.export")}</ExportButton>
        </section>
        <OwnDeletionSection state={deletion} />
        {/* Not before the section above it, which would move it. */}
        <p class="quiet small-text" hidden={isFirstLoad(deletion)}>
          Tollgate {session.value?.version}
        </p>
      </div>
    </Page>
  );
}

const ProviderSection = ({ provider }: { provider: string }): VNode => (
  <section class="card stack">
    <h2>{t("account.provider", { provider })}</h2>
    {account.value?.connected === true ? (
      <p>
        <span class="badge good">{t("account.connected")}</span> {t("account.connected_about", { provider })}
      </p>
    ) : (
      <>
        <p class="quiet small-text">{t("account.connect_about")}</p>
        <div>
          <ProviderButton body={{ connect: true, next: "/account" }} words="provider.connect" block={false} />
        </div>
      </>
    )}
  </section>
);

/** An account without a password cannot set one here, or else a stolen session could. */
const PasswordSection = ({ onChanged }: { onChanged: () => void }): VNode =>
  account.value?.password === false ? (
    <section class="card stack">
      <h2>{t("account_fields.password")}</h2>
      <p class="quiet small-text">{t("account.no_password")}</p>
    </section>
  ) : (
    <PasswordForm onChanged={onChanged} />
  );

function PasswordForm({ onChanged }: { onChanged: () => void }): VNode {
  const [oldPassword, setOld] = useState("");
  const [newPassword, setNew] = useState("");
  const action = useAction();
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const done = await action.run(async () => {
      await post("/password", { old_password: oldPassword, new_password: newPassword });
    });
    if (!done) return;
    setOld("");
    setNew("");
    toast(t("account.password_changed"));
    onChanged();
  };
  return (
    <form class="card stack" onSubmit={(event) => void submit(event)}>
      <h2>{t("account_fields.password")}</h2>
      <div class="grid-2">
        <PasswordField label={t("account.current_password")} value={oldPassword} onValue={setOld} isNew={false} />
        <PasswordField label={t("door.new_password")} value={newPassword} onValue={setNew} isNew />
      </div>
      <FormError message={action.error} />
      <div>
        <Button caption={t("account.change_password")} type="submit" busy={action.busy} />
      </div>
    </form>
  );
}

const EndOthers = ({ onEnded }: { onEnded: () => void }): VNode => (
  <UndoButton
    caption={t("account.end_others")}
    class="button small"
    done={t("account.others_ended")}
    act={() => post("/sessions/end-others")}
    onChanged={onEnded}
  />
);

type SessionTableProps = Readonly<{
  sessions: readonly BrowserSession[];
  end: (session: number) => Promise<unknown>;
  onEnded: () => void;
}>;

export const SessionTable = ({ sessions, end, onEnded }: SessionTableProps): VNode => (
  <DataTable
    caption={t("account.browsers")}
    columns={[
      ...sessionColumns,
      {
        ...{ id: "actions", name: "common.actions", isActions: true },
        cell: (session) => !session.current && <EndSession {...{ session, end, onEnded }} />,
      },
    ]}
    rows={sessions}
    rowKey={({ id }) => id}
    first=""
    prefix="session-"
  />
);

const sessionColumns: readonly DataColumn<BrowserSession>[] = [
  {
    ...{ id: "browser", name: "account.browser", look: "break" },
    cell: ({ browser, current }) => (
      <span title={browser}>
        {browserName(browser)} {current && <span class="badge good">{t("account.this_browser")}</span>}
      </span>
    ),
  },
  { id: "address", name: "common.address", look: "quiet break", cell: ({ address }) => address },
  {
    ...{ id: "made", name: "account.signed_in", look: "quiet nowrap" },
    sort: (row) => row.created_at,
    cell: (row) => <Time at={row.created_at} />,
  },
  {
    ...{ id: "used", name: "keys.last_used", look: "quiet nowrap" },
    sort: (row) => row.last_used_at,
    cell: (row) => <Time at={row.last_used_at} />,
  },
];

type EndSessionProps = Omit<SessionTableProps, "sessions"> & Readonly<{ session: BrowserSession }>;

function EndSession({ session: { id, browser, address }, end, onEnded }: EndSessionProps): VNode {
  const name = browserName(browser);
  return (
    <UndoButton
      caption={t("common.sign_out")}
      label={t("account.end_label", { name, address })}
      class="button small"
      done={t("account.ended", { name })}
      act={() => end(id)}
      onChanged={onEnded}
    />
  );
}

const browsers = [
  [/Edg\//, "Edge"],
  [/OPR\//, "Opera"],
  [/Firefox\//, "Firefox"],
  [/Chrome\//, "Chrome"],
  [/Safari\//, "Safari"],
] as const;
const systems = [
  [/iPhone|iPad/, "iOS"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"],
] as const;

/** `Firefox on Linux`, or the header itself if it is of another kind. */
function browserName(agent: string): string {
  const browser = browsers.find(([sign]) => sign.test(agent))?.[1];
  const system = systems.find(([sign]) => sign.test(agent))?.[1];
  if (browser === undefined) return agent === "" ? t("account.unknown_browser") : agent;
  return system === undefined ? browser : t("account.browser_on", { browser, system });
}
