// The changes that operators made, newest first, of one kind or of one account where somebody asks for it; each has a page.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { AuditPage as AuditPageReply } from "../../../api/server.ts";
import { fullMoment, moment } from "../../format.ts";
import { Fact } from "../../parts/fact.tsx";
import { Page } from "../../parts/page.tsx";
import { Pager } from "../../parts/pager.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get, search } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { changeQuery, place, rowOf } from "../../route.ts";
import { t } from "../../texts.ts";
import { Time } from "../../parts/time.tsx";
import { Table } from "../../parts/table.tsx";

type Entry = AuditPageReply["entries"][number];

const list = "/operator/audit";
const back = (): { href: string; name: string } => ({ href: list, name: t("menu.audit") });

export function AuditPage(): VNode {
  const row = rowOf(list);
  return row === null ? <AuditList /> : <EntryPage id={Number(row)} />;
}

function AuditList(): VNode {
  const { query } = place.value;
  const [action, account] = [query.get("action") ?? "", query.get("account") ?? ""];
  const asked = search({ action, account });
  const [cursors, setCursors] = useState<readonly string[]>([]);
  useEffect(() => setCursors([]), [asked]);
  const after = cursors.at(-1);
  const page = useResource(() => get("/operator/audit", { after, action, account }), `${asked} ${after}`);
  return (
    <Page title={t("menu.audit")} lead={t("audit.about")}>
      <section class="card flush" aria-label={t("audit.changes")}>
        {asked !== "" && (
          <div class="filters" role="group" aria-label={t("audit.only")}>
            <Filter name="action" value={action} />
            <Filter name="account" value={account} />
          </div>
        )}
        <Loaded resource={page} lines={12}>
          {({ entries, next }) => (
            <>
              {entries.length === 0 ? (
                <Empty icon="audit" title={t(asked === "" ? "audit.none" : "audit.none_such")}>
                  {asked !== "" && <a href={list}>{t("audit.all")}</a>}
                </Empty>
              ) : (
                <Entries entries={entries} />
              )}
              <Pager label={t("audit.pages")} cursors={cursors} next={next} onMove={setCursors} />
            </>
          )}
        </Loaded>
      </section>
    </Page>
  );
}

/** A filter that is on; a click takes it away. */
const Filter = ({ name, value }: Readonly<{ name: "action" | "account"; value: string }>): VNode | null =>
  value === "" ? null : (
    <button type="button" class="toggle" aria-pressed onClick={() => changeQuery({ [name]: null })}>
      {t(`audit.${name}`)}: {value} <span aria-hidden="true">×</span>
    </button>
  );

const Entries = ({ entries }: { entries: readonly Entry[] }): VNode => (
  <Table
    caption={t("audit.changes")}
    columns={[t("audit.time"), t("audit.action"), t("audit.account"), t("audit.what"), t("audit.by")]}
  >
    {entries.map((entry) => (
      <tr key={entry.id}>
        <td class="nowrap">
          <a href={`${list}/${entry.id}`}>
            <Time at={entry.time} shown={moment} />
          </a>
        </td>
        <td>
          <a class="badge" href={`${list}${search({ action: entry.action })}`}>
            {entry.action}
          </a>
        </td>
        <td class="parted sentence">
          <Subject of={entry} />
        </td>
        <td class="parted sentence">{entry.detail}</td>
        <td class="quiet parted wide-only small-text">{by(entry)}</td>
      </tr>
    ))}
  </Table>
);

const Subject = ({ of: { subject } }: { of: Entry }): VNode =>
  subject === "" ? (
    <span class="quiet">{t("audit.the_server")}</span>
  ) : (
    <a href={`${list}${search({ account: subject })}`}>{subject}</a>
  );

const by = ({ operator, address }: Entry): string => (operator === "" ? address : `${operator} · ${address}`);

function EntryPage({ id }: { id: number }): VNode {
  const page = useResource(() => get("/operator/audit", { after: id + 1, limit: 1 }), String(id));
  return (
    <Page title={t("audit.change", { id })} back={back()}>
      <Loaded resource={page} lines={6}>
        {({ entries: [entry] }) =>
          entry?.id !== id ? (
            <Empty icon="audit" title={t("audit.none_such")}>
              <a href={list}>{t("audit.all")}</a>
            </Empty>
          ) : (
            <section class="card">
              <dl class="facts start">
                <Fact name={t("audit.what")} class="break" value={entry.detail || "–"} />
                <Fact name={t("audit.action")}>
                  <a class="badge" href={`${list}${search({ action: entry.action })}`}>
                    {entry.action}
                  </a>
                </Fact>
                <Fact name={t("audit.account")}>
                  <Subject of={entry} />
                </Fact>
                <Fact name={t("audit.by")} class="break" value={by(entry)} />
                <Fact name={t("audit.time")} value={fullMoment(entry.time)} />
              </dl>
            </section>
          )
        }
      </Loaded>
    </Page>
  );
}
