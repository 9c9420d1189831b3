// The changes that operators made, newest first.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { AuditPage as AuditPageReply } from "../../../api/server.ts";
import { moment } from "../../format.ts";
import { Page } from "../../parts/page.tsx";
import { Pager } from "../../parts/pager.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { AccountLink } from "../../parts/account-link.tsx";
import { Time } from "../../parts/time.tsx";
import { Table } from "../../parts/table.tsx";

export function AuditPage(): VNode {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const after = cursors.at(-1);
  const page = useResource(() => get("/operator/audit", { after }), String(after));
  return (
    <Page title="Audit log" lead="Every change by an operator, in the console or by a command on the server.">
      <section class="card flush" aria-label="Changes by operators">
        <Loaded resource={page} lines={8}>
          {({ entries, next }) => (
            <>
              {entries.length === 0 ? (
                <Empty icon="audit" title="No operator has changed anything yet" />
              ) : (
                <Entries entries={entries} />
              )}
              <Pager label="Pages of the audit log" cursors={cursors} next={next} onMove={setCursors} />
            </>
          )}
        </Loaded>
      </section>
    </Page>
  );
}

const Entries = ({ entries }: Pick<AuditPageReply, "entries">): VNode => (
  <Table caption="Changes by operators, newest first" columns={["Action", "Time", "Account", "What", "Operator"]}>
    {entries.map((entry) => (
      <tr key={entry.id}>
        <td>
          <span class="badge">{entry.action}</span>
        </td>
        <td class="nowrap quiet">
          <Time at={entry.time} shown={moment} />
        </td>
        <td class="parted">
          {entry.subject === "" ? <span class="quiet">the server</span> : <AccountLink name={entry.subject} />}
        </td>
        <td class="parted sentence">{entry.detail}</td>
        <td class="quiet parted wide-only">
          {entry.operator !== "" && (
            <>
              <AccountLink name={entry.operator} />
              <br />
            </>
          )}
          <span class="small-text">{entry.address}</span>
        </td>
      </tr>
    ))}
  </Table>
);
