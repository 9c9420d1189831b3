// The changes that operators made, newest first.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { AuditPage as AuditPageReply } from "../../../api/server.ts";
import { moment, utc } from "../../format.ts";
import { Page } from "../../parts/page.tsx";
import { Pager } from "../../parts/pager.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";

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
  <div class="table-scroll">
    <table class="cards">
      <caption class="for-readers">Changes by operators, newest first</caption>
      <thead>
        <tr>
          <th scope="col">Action</th>
          <th scope="col">Time</th>
          <th scope="col">Account</th>
          <th scope="col">What</th>
          <th scope="col">Operator</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <tr key={entry.id}>
            <td>
              <span class="badge">{entry.action}</span>
            </td>
            <td class="nowrap quiet">
              <time dateTime={entry.time} title={utc(entry.time)}>
                {moment(entry.time)}
              </time>
            </td>
            <td class="parted">{entry.subject === "" ? <span class="quiet">the server</span> : entry.subject}</td>
            <td class="parted sentence">{entry.detail}</td>
            <td class="quiet parted wide-only">
              {entry.operator !== "" && (
                <>
                  {entry.operator}
                  <br />
                </>
              )}
              <span class="small-text">{entry.address}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
